//! Reasons of revocation: one table for AWS's names, RFC 5280's names and the codes.

use const_oid::db::rfc5280::ID_CE_CRL_REASONS;
use der::asn1::OctetString;
use der::{Encode, EncodeValue};
use x509_cert::ext::Extension;

/// A reason (RFC 5280, section 5.3.1).
#[derive(Debug, PartialEq, Eq)]
pub struct Reason {
    /// The `CRLReason` code.
    pub code: u8,
    /// AWS's `RevocationReason`; `None` for reasons that Private CA does not have.
    pub aws_name: Option<&'static str>,
    /// Name in RFC 5280.
    pub rfc_name: &'static str,
}

/// No reason is given.
pub static UNSPECIFIED: &Reason = &REASONS[0];

/// All reasons.
pub static REASONS: &[Reason] = &[
    Reason { code: 0, aws_name: Some("UNSPECIFIED"), rfc_name: "unspecified" },
    Reason { code: 1, aws_name: Some("KEY_COMPROMISE"), rfc_name: "keyCompromise" },
    Reason {
        code: 2,
        aws_name: Some("CERTIFICATE_AUTHORITY_COMPROMISE"),
        rfc_name: "cACompromise",
    },
    Reason { code: 3, aws_name: Some("AFFILIATION_CHANGED"), rfc_name: "affiliationChanged" },
    Reason { code: 4, aws_name: Some("SUPERSEDED"), rfc_name: "superseded" },
    Reason { code: 5, aws_name: Some("CESSATION_OF_OPERATION"), rfc_name: "cessationOfOperation" },
    Reason { code: 6, aws_name: None, rfc_name: "certificateHold" },
    Reason { code: 8, aws_name: None, rfc_name: "removeFromCRL" },
    Reason { code: 9, aws_name: Some("PRIVILEGE_WITHDRAWN"), rfc_name: "privilegeWithdrawn" },
    Reason { code: 10, aws_name: Some("A_A_COMPROMISE"), rfc_name: "aACompromise" },
];

impl Reason {
    /// The row with AWS's name.
    pub fn by_aws_name(name: &str) -> Option<&'static Self> {
        REASONS.iter().find(|row| row.aws_name == Some(name))
    }

    /// The row with this code.
    pub fn by_code(code: u8) -> Option<&'static Self> {
        REASONS.iter().find(|row| row.code == code)
    }

    pub(super) fn index(&self) -> Option<usize> {
        REASONS.iter().position(|row| row.code == self.code)
    }

    /// The entry extension with the reason: `reasonCode`, never critical.
    pub(super) fn extensions(&self) -> der::Result<Vec<u8>> {
        let value = CrlReasonCode(self.code).to_der()?;
        let extension = Extension {
            extn_id: ID_CE_CRL_REASONS,
            critical: false,
            extn_value: OctetString::new(value)?,
        };
        vec![extension].to_der()
    }
}

/// `CRLReason ::= ENUMERATED`, also with codes that the table lacks: a CRL may contain any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CrlReasonCode(pub u8);

impl der::FixedTag for CrlReasonCode {
    const TAG: der::Tag = der::Tag::Enumerated;
}

impl EncodeValue for CrlReasonCode {
    fn value_len(&self) -> der::Result<der::Length> {
        self.0.value_len()
    }

    fn encode_value(&self, writer: &mut impl der::Writer) -> der::Result<()> {
        self.0.encode_value(writer)
    }
}

impl<'a> der::DecodeValue<'a> for CrlReasonCode {
    type Error = der::Error;

    fn decode_value<R: der::Reader<'a>>(reader: &mut R, header: der::Header) -> der::Result<Self> {
        let value = u8::decode_value(reader, der::Header::new(der::Tag::Integer, header.length()))?;
        Ok(Self(value))
    }
}
