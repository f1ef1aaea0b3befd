//! The contents of a file: certificates, requests, CRLs, keys, OCSP responses; PEM with several, or DER.
//!
//! PEM names its contents by labels (RFC 7468); DER is told apart by its outermost structure, so that an object that
//! is damaged further inside is still recognised, and the reason given.

use der::pem::Decoder;
use der::{Reader, SliceReader, Tag, Tagged};
use outlast_crypto::Secret;

use crate::PkiError;

/// Objects in one file at most.
pub const MAX_OBJECTS: usize = 1024;

/// A kind of object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// X.509 certificate.
    Certificate,
    /// PKCS #10 certificate request.
    CertificateRequest,
    /// Certificate revocation list.
    Crl,
    /// `SubjectPublicKeyInfo`.
    PublicKey,
    /// PKCS #8 private key.
    PrivateKey,
    /// SEC 1 `ECPrivateKey`.
    EcPrivateKey,
    /// PKCS #1 `RSAPrivateKey`.
    RsaPrivateKey,
    /// PKCS #8 private key under a passphrase.
    EncryptedPrivateKey,
    /// A private key in OpenSSL's older encryption (`Proc-Type: 4,ENCRYPTED`).
    LegacyEncryptedKey,
    /// OCSP response.
    OcspResponse,
    /// CMS message.
    Cms,
}

/// A kind with its name for people and its PEM labels, beginning with the one that is written.
struct Row {
    kind: Kind,
    name: &'static str,
    labels: &'static [&'static str],
}

/// RFC 7468, sections 5 to 13; the labels without an RFC are OpenSSL's.
static KINDS: &[Row] = &[
    Row {
        kind: Kind::Certificate,
        name: "certificate",
        labels: &["CERTIFICATE", "X509 CERTIFICATE"],
    },
    Row {
        kind: Kind::CertificateRequest,
        name: "certificate request",
        labels: &["CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST"],
    },
    Row { kind: Kind::Crl, name: "CRL", labels: &["X509 CRL", "CRL"] },
    Row { kind: Kind::PublicKey, name: "public key", labels: &["PUBLIC KEY"] },
    Row { kind: Kind::PrivateKey, name: "private key", labels: &["PRIVATE KEY"] },
    Row { kind: Kind::EcPrivateKey, name: "private key", labels: &["EC PRIVATE KEY"] },
    Row { kind: Kind::RsaPrivateKey, name: "private key", labels: &["RSA PRIVATE KEY"] },
    Row {
        kind: Kind::EncryptedPrivateKey,
        name: "encrypted private key",
        labels: &["ENCRYPTED PRIVATE KEY"],
    },
    Row { kind: Kind::LegacyEncryptedKey, name: "encrypted private key", labels: &[] },
    Row { kind: Kind::OcspResponse, name: "OCSP response", labels: &["OCSP RESPONSE"] },
    Row { kind: Kind::Cms, name: "CMS message", labels: &["CMS", "PKCS7", "SIGNED MESSAGE"] },
];

impl Kind {
    fn row(self) -> &'static Row {
        // Every kind has a row, which a test checks; the first row is a harmless default.
        KINDS.iter().find(|row| row.kind == self).unwrap_or(&KINDS[0])
    }

    /// For people: `certificate request`.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The label of its PEM form.
    pub fn label(self) -> &'static str {
        self.row().labels.first().copied().unwrap_or_default()
    }

    /// Whether it holds a private key that nothing encrypts.
    pub fn is_bare_private_key(self) -> bool {
        matches!(self, Self::PrivateKey | Self::EcPrivateKey | Self::RsaPrivateKey)
    }
}

/// An object of a file. Its bytes may be a private key, so there is no `Debug`.
pub struct Object {
    /// Kind of the object.
    pub kind: Kind,
    /// Its DER (BER for some CMS messages).
    pub der: Secret,
}

impl Object {
    /// As PEM text, lines of 64 characters.
    pub fn to_pem(&self) -> Result<Secret, PkiError> {
        der::pem::encode_string(self.kind.label(), der::pem::LineEnding::LF, self.der.expose())
            .map(|text| Secret::new(text.into_bytes()))
            .map_err(|error| malformed(self.kind.name(), &error))
    }
}

fn malformed(what: &'static str, reason: &dyn std::fmt::Display) -> PkiError {
    PkiError::Malformed { what, reason: reason.to_string() }
}

/// Whether a file is PEM text.
pub fn is_pem(bytes: &[u8]) -> bool {
    kind_of_der(bytes).is_none() && find(bytes, BEGIN).is_some()
}

/// All objects of a file, in order. Text around PEM blocks is ignored; a block with an unknown label is an error, and
/// so is a file without any object.
pub fn read(bytes: &[u8]) -> Result<Vec<Object>, PkiError> {
    if let Some(kind) = kind_of_der(bytes) {
        return Ok(vec![Object { kind, der: Secret::new(bytes.to_vec()) }]);
    }
    if find(bytes, BEGIN).is_none() {
        return Err(malformed("file", &"neither PEM nor a known DER object"));
    }
    let mut out = Vec::new();
    let mut rest = bytes;
    while let Some(start) = find(rest, BEGIN) {
        if out.len() >= MAX_OBJECTS {
            return Err(malformed("file", &format!("it holds more than {MAX_OBJECTS} objects")));
        }
        let block = &rest[start..];
        let label = label_of(block).ok_or_else(|| malformed("PEM block", &"its label"))?;
        let end = format!("-----END {label}-----");
        let length = find(block, end.as_bytes())
            .map(|at| at + end.len())
            .ok_or_else(|| malformed("PEM block", &format!("{end} is missing")))?;
        rest = &block[length..];
        // OpenSSL writes the curve before an EC key, which names the curve itself.
        if label != "EC PARAMETERS" {
            out.push(object(label, &block[..length])?);
        }
    }
    if out.is_empty() {
        return Err(malformed("file", &"there is no object in it"));
    }
    Ok(out)
}

const BEGIN: &[u8] = b"-----BEGIN ";

fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes.windows(pattern.len()).position(|window| window == pattern)
}

fn label_of(block: &[u8]) -> Option<&str> {
    let label = block.strip_prefix(BEGIN)?;
    let label = &label[..find(&label[..label.len().min(100)], b"-----")?];
    std::str::from_utf8(label).ok()
}

fn object(label: &str, block: &[u8]) -> Result<Object, PkiError> {
    let row = KINDS
        .iter()
        .find(|row| row.labels.contains(&label))
        .ok_or_else(|| malformed("PEM block", &format!("the label {label} is unknown")))?;
    // RFC 1421 headers: encrypted under a key from a single MD5.
    if find(block, b"Proc-Type: 4,ENCRYPTED").is_some() {
        return Ok(Object { kind: Kind::LegacyEncryptedKey, der: Secret::new(Vec::new()) });
    }
    let mut der = Vec::new();
    // Text from mail or a form often has trailing blanks.
    let lines = block.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).collect::<Vec<_>>();
    let text = Secret::new(lines.join(&b'\n'));
    Decoder::new_detect_wrap(text.expose())
        .and_then(|mut decoder| decoder.decode_to_end(&mut der).map(|_| ()))
        .map_err(|error| malformed(row.name, &error))?;
    Ok(Object { kind: row.kind, der: Secret::new(der) })
}

/// The kind of a DER object by its outermost structure.
fn kind_of_der(bytes: &[u8]) -> Option<Kind> {
    let outer = children(bytes)?;
    let tags: Vec<Tag> = outer.iter().map(|(tag, _)| *tag).collect();
    Some(match tags.as_slice() {
        [Tag::Sequence, Tag::Sequence, Tag::BitString] => signed_kind(outer.first()?.1)?,
        [Tag::Sequence, Tag::BitString] => Kind::PublicKey,
        [Tag::Sequence, Tag::OctetString] => Kind::EncryptedPrivateKey,
        [Tag::Integer, Tag::Sequence, Tag::OctetString, ..] => Kind::PrivateKey,
        [Tag::Integer, Tag::OctetString, ..] => Kind::EcPrivateKey,
        [Tag::Integer, Tag::Integer, Tag::Integer, ..] => Kind::RsaPrivateKey,
        [Tag::Enumerated, ..] => Kind::OcspResponse,
        [Tag::ObjectIdentifier, ..] => Kind::Cms,
        _ => return None,
    })
}

/// Certificate, request or CRL: recognised by the to-be-signed part.
fn signed_kind(tbs: &[u8]) -> Option<Kind> {
    let tags: Vec<Tag> = children(tbs)?.iter().map(|(tag, _)| *tag).collect();
    let is_time = |tag: &Tag| matches!(tag, Tag::UtcTime | Tag::GeneralizedTime);
    Some(match tags.as_slice() {
        // RFC 2986: version, subject, key, [0] attributes.
        [Tag::Integer, Tag::Sequence, Tag::Sequence, Tag::ContextSpecific { .. }] => {
            Kind::CertificateRequest
        }
        // RFC 5280, 5.1: signature, issuer, thisUpdate behind an optional version.
        [Tag::Integer, Tag::Sequence, Tag::Sequence, time, ..] if is_time(time) => Kind::Crl,
        [Tag::Sequence, Tag::Sequence, time, ..] if is_time(time) => Kind::Crl,
        _ => Kind::Certificate,
    })
}

/// The elements of a SEQUENCE, each with its tag and its whole encoding.
pub(crate) fn children(bytes: &[u8]) -> Option<Vec<(Tag, &[u8])>> {
    let mut reader = SliceReader::new(bytes).ok()?;
    let mut out = Vec::new();
    reader
        .sequence(|inner| {
            while !inner.is_finished() {
                if out.len() > 16 {
                    return Err(der::ErrorKind::Failed.into());
                }
                let encoding = inner.tlv_bytes()?;
                out.push((der::asn1::AnyRef::try_from(encoding)?.tag(), encoding));
            }
            Ok::<_, der::Error>(())
        })
        .ok()?;
    reader.is_finished().then_some(out)
}

#[cfg(test)]
mod tests {
    use outlast_crypto::keys::KeySpec;

    use super::*;

    #[test]
    fn every_kind_has_a_row_and_every_label_one_kind() {
        let mut labels = std::collections::HashSet::new();
        for row in KINDS {
            assert_eq!(row.kind.row().kind, row.kind);
            assert!(row.labels.iter().all(|label| labels.insert(*label)));
        }
    }

    #[test]
    fn a_bundle_is_read_in_order_with_text_between() {
        let spec = KeySpec::by_name("ML_DSA_44").unwrap();
        let key = Object {
            kind: Kind::PrivateKey,
            der: spec.to_pkcs8(&spec.generate().unwrap()).unwrap(),
        };
        let pem = String::from_utf8(key.to_pem().unwrap().expose().to_vec()).unwrap();
        // The first character is also a valid first byte of DER.
        let text = format!("0 Subject: x\r\n{}\n# and again\n{pem}", pem.replace('\n', "  \r\n"));
        let read = read(text.as_bytes()).unwrap();
        assert_eq!(read.len(), 2);
        for object in read {
            assert_eq!(object.kind, Kind::PrivateKey);
            assert_eq!(object.der.expose(), key.der.expose());
        }
        assert_eq!(kind_of_der(key.der.expose()), Some(Kind::PrivateKey));
    }

    #[test]
    fn what_is_not_understood_is_said() {
        let reason = |bytes: &[u8]| read(bytes).err().unwrap().to_string();
        assert!(reason(b"hello").contains("neither PEM nor"));
        assert!(reason(b"-----BEGIN CERTIFICATE-----\nAAAA\n").contains("is missing"));
        let odd = b"-----BEGIN PGP MESSAGE-----\nAAAA\n-----END PGP MESSAGE-----\n";
        assert!(reason(odd).contains("PGP MESSAGE"), "{}", reason(odd));
        let legacy = b"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\n\
                       AAAA\n-----END RSA PRIVATE KEY-----\n";
        assert_eq!(read(legacy).unwrap()[0].kind, Kind::LegacyEncryptedKey);
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>) {
            let _ = read(&bytes);
            let _ = kind_of_der(&bytes);
            let _ = read(&[b"-----BEGIN CERTIFICATE-----\n", &bytes[..], b"\n-----END CERTIFICATE-----"].concat());
        }
    }
}
