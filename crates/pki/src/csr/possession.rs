//! Statements of possession of a private key (RFC 9883): a request for a key that cannot sign, signed with the key of
//! a certificate that the subject already has.

use cms::cert::IssuerAndSerialNumber;
use const_oid::ObjectIdentifier;
use der::asn1::{Any, SetOfVec};
use der::{Decode, Encode};
use outlast_crypto::signatures::{Message, SignatureAlgorithm};
use x509_cert::attr::Attribute;
use x509_cert::name::Name;

use super::CertificateRequest;
use crate::PkiError;
use crate::certificate::Certificate;
use crate::extensions::SUBJECT_ALT_NAME;
use crate::general_name::decode_names;

/// `id-at-statementOfPossession`
pub(super) const STATEMENT: ObjectIdentifier =
    ObjectIdentifier::new_unwrap("1.3.6.1.4.1.22112.2.1");

/// The certificate whose key signed a request.
#[derive(Debug, Clone)]
pub struct Possession {
    /// Its issuer.
    pub issuer: Name,
    /// Its serial number, big-endian without leading zeros.
    pub serial: Vec<u8>,
    /// The certificate itself, if it was enclosed. Only its issuer and serial number have been checked.
    pub certificate: Option<Certificate>,
}

/// PrivateKeyPossessionStatement ::= SEQUENCE { signer IssuerAndSerialNumber, cert Certificate OPTIONAL }
#[derive(der::Sequence)]
struct Statement {
    signer: IssuerAndSerialNumber,
    certificate: Option<x509_cert::Certificate>,
}

impl Possession {
    /// The statement that `certificate`'s key signs. `enclosed` includes the certificate, which may be left out if
    /// the CA issued it (RFC 9883, section 3).
    pub fn by(certificate: &Certificate, enclosed: bool) -> Self {
        Self {
            issuer: certificate.issuer().clone(),
            serial: certificate.serial().to_vec(),
            certificate: enclosed.then(|| certificate.clone()),
        }
    }

    pub(super) fn from_attribute(attribute: &Attribute) -> Result<Self, PkiError> {
        let wrong = |reason: String| PkiError::Possession(reason);
        let [value] = attribute.values.as_slice() else {
            return Err(wrong("the attribute does not have one value".into()));
        };
        let der = value.to_der().map_err(|error| wrong(error.to_string()))?;
        let statement = Statement::from_der(&der).map_err(|error| wrong(error.to_string()))?;
        let certificate = match statement.certificate {
            Some(certificate) => {
                let der = certificate.to_der().map_err(|error| wrong(error.to_string()))?;
                Some(Certificate::parse(&der)?)
            }
            None => None,
        };
        let serial = statement.signer.serial_number.as_bytes();
        let zeros = serial.iter().take_while(|byte| **byte == 0).count();
        let serial = serial[zeros.min(serial.len().saturating_sub(1))..].to_vec();
        let possession = Self { issuer: statement.signer.issuer, serial, certificate };
        match &possession.certificate {
            Some(certificate) if !possession.names(certificate) => {
                Err(wrong("the enclosed certificate is not the one that it names".into()))
            }
            _ => Ok(possession),
        }
    }

    pub(super) fn to_attribute(&self) -> Result<Attribute, PkiError> {
        let malformed = |error: der::Error| PkiError::malformed("statement of possession", &error);
        let certificate = self.certificate.as_ref().map(Certificate::der);
        // A positive INTEGER of this value: a zero before a high bit.
        let mut serial = self.serial.clone();
        if serial.first().is_none_or(|first| *first >= 0x80) {
            serial.insert(0, 0);
        }
        let statement = Statement {
            signer: IssuerAndSerialNumber {
                issuer: self.issuer.clone(),
                serial_number: x509_cert::serial_number::SerialNumber::new(&serial)
                    .map_err(malformed)?,
            },
            certificate: certificate
                .map(x509_cert::Certificate::from_der)
                .transpose()
                .map_err(malformed)?,
        };
        let value = Any::encode_from(&statement).map_err(malformed)?;
        Ok(Attribute {
            oid: STATEMENT,
            values: SetOfVec::try_from(vec![value]).map_err(malformed)?,
        })
    }

    /// Whether the statement names this certificate.
    pub fn names(&self, certificate: &Certificate) -> bool {
        *certificate.issuer() == self.issuer && certificate.serial() == self.serial
    }
}

/// A request that was signed with the key of another certificate, not verified yet.
#[derive(Debug)]
pub struct WithStatement {
    pub(super) possession: Possession,
    pub(super) request: CertificateRequest,
    pub(super) algorithm: &'static SignatureAlgorithm,
    pub(super) signed: Vec<u8>,
    pub(super) signature: Vec<u8>,
}

impl WithStatement {
    /// The certificate whose key is said to have signed.
    pub fn possession(&self) -> &Possession {
        &self.possession
    }

    /// Verifies the request with the certificate that the statement names. Before, the caller MUST have validated the
    /// path of `signer` (RFC 9883, section 4), with revocation.
    ///
    /// RFC 9883, section 4, leaves it to policy whether names may differ. Here they must not: the subjects are the
    /// same, and `signer` has every alternative name that is requested.
    pub fn verify_with(self, signer: &Certificate) -> Result<CertificateRequest, PkiError> {
        let wrong = |reason: &str| Err(PkiError::Possession(reason.into()));
        if !self.possession.names(signer) {
            return wrong("this is not the certificate that it names");
        }
        if signer.key_usage().is_some_and(|(_, usage)| !usage.digital_signature()) {
            return wrong("the certificate's key usage lacks digitalSignature");
        }
        if self.request.subject != *signer.subject() {
            return wrong("the request's subject is not the certificate's");
        }
        let names = |extensions: &[x509_cert::ext::Extension]| {
            extensions
                .iter()
                .find(|extension| extension.extn_id == SUBJECT_ALT_NAME)
                .map_or(Ok(Vec::new()), |extension| decode_names(extension.extn_value.as_bytes()))
        };
        let owned = names(signer.extensions())?;
        if !names(&self.request.extensions)?.iter().all(|name| owned.contains(name)) {
            return wrong("the request has an alternative name that the certificate lacks");
        }
        self.algorithm
            .verify(&signer.public_key()?, Message::Raw(&self.signed), &self.signature)
            .map_err(|_| PkiError::RequestSignature)?;
        Ok(CertificateRequest { possession: Some(self.possession), ..self.request })
    }
}
