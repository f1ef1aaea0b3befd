//! Reasons of revocation: one table for AWS's names, RFC 5280's names and the codes.

use std::fmt;

use const_oid::db::rfc5280::{ID_CE_CRL_REASONS, ID_CE_INVALIDITY_DATE};
use der::asn1::{GeneralizedTime, OctetString};
use der::{Decode, Encode, EncodeValue};
use x509_cert::ext::Extension;

use crate::time::rfc3339;

/// A reason (RFC 5280, section 5.3.1).
#[derive(Debug, PartialEq, Eq)]
pub struct Reason {
    /// The `CRLReason` code.
    pub code: u8,
    /// AWS's `RevocationReason`; `None` for reasons that Private CA does not have.
    pub aws_name: Option<&'static str>,
    /// Name in RFC 5280.
    pub rfc_name: &'static str,
    /// Whether the key may be in other hands. Signatures with it are then worth nothing unless somebody else says
    /// that they are older than the revocation. A reason that is not given counts as the worst (RFC 5280, section
    /// 5.3.1: `unspecified`), and so does a hold, whose outcome is open.
    pub key_at_risk: bool,
}

/// A revocation, as a CRL entry or an OCSP response states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Revoked {
    /// When the CA revoked the certificate, seconds since 1970.
    pub at: i64,
    /// The CA's reason.
    pub reason: &'static Reason,
    /// Since when the key is known or suspected to be compromised, seconds since 1970 (`invalidityDate`, RFC 5280,
    /// section 5.3.2); usually before `at`.
    pub invalid_since: Option<i64>,
}

impl Revoked {
    /// From when on signatures are not to be believed, seconds since 1970.
    pub fn since(&self) -> i64 {
        self.invalid_since.map_or(self.at, |since| since.min(self.at))
    }
}

impl fmt::Display for Revoked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}", rfc3339(self.at), self.reason.rfc_name)?;
        if let Some(since) = self.invalid_since {
            write!(f, ", its key invalid since {}", rfc3339(since))?;
        }
        f.write_str(")")
    }
}

/// The invalidity date among the extensions of a CRL entry or of an OCSP response about one certificate (RFC 6960,
/// section 4.4.5, allows the same extensions there).
pub(crate) fn invalidity_date(extensions: &[Extension]) -> Option<i64> {
    let found = extensions.iter().find(|one| one.extn_id == ID_CE_INVALIDITY_DATE)?;
    let time = GeneralizedTime::from_der(found.extn_value.as_bytes()).ok()?;
    i64::try_from(time.to_unix_duration().as_secs()).ok()
}

/// No reason is given.
pub static UNSPECIFIED: &Reason = &REASONS[0];

/// All reasons.
pub static REASONS: &[Reason] = &[
    Reason { code: 0, aws_name: Some("UNSPECIFIED"), rfc_name: "unspecified", key_at_risk: true },
    Reason {
        code: 1,
        aws_name: Some("KEY_COMPROMISE"),
        rfc_name: "keyCompromise",
        key_at_risk: true,
    },
    Reason {
        code: 2,
        aws_name: Some("CERTIFICATE_AUTHORITY_COMPROMISE"),
        rfc_name: "cACompromise",
        key_at_risk: true,
    },
    Reason {
        code: 3,
        aws_name: Some("AFFILIATION_CHANGED"),
        rfc_name: "affiliationChanged",
        key_at_risk: false,
    },
    Reason { code: 4, aws_name: Some("SUPERSEDED"), rfc_name: "superseded", key_at_risk: false },
    Reason {
        code: 5,
        aws_name: Some("CESSATION_OF_OPERATION"),
        rfc_name: "cessationOfOperation",
        key_at_risk: false,
    },
    Reason { code: 6, aws_name: None, rfc_name: "certificateHold", key_at_risk: true },
    Reason { code: 8, aws_name: None, rfc_name: "removeFromCRL", key_at_risk: true },
    Reason {
        code: 9,
        aws_name: Some("PRIVILEGE_WITHDRAWN"),
        rfc_name: "privilegeWithdrawn",
        key_at_risk: false,
    },
    Reason {
        code: 10,
        aws_name: Some("A_A_COMPROMISE"),
        rfc_name: "aACompromise",
        key_at_risk: true,
    },
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
