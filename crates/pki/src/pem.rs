//! PEM (RFC 7468).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, CertificateSigningRequestDer};

use crate::PkiError;
use crate::certificate::Certificate;

/// A certificate as PEM text, in lines of 64 characters.
pub fn certificate(der: &[u8]) -> String {
    encode("CERTIFICATE", der)
}

/// A certificate request as PEM text.
pub fn certificate_request(der: &[u8]) -> String {
    encode("CERTIFICATE REQUEST", der)
}

/// PKCS #8 under a passphrase as PEM text.
pub fn encrypted_private_key(der: &[u8]) -> String {
    encode("ENCRYPTED PRIVATE KEY", der)
}

/// A CMS message as PEM text.
pub fn cms(der: &[u8]) -> String {
    encode("CMS", der)
}

/// A CMS message as PEM text with the label that `gpgsm` writes and git knows X.509 signatures by.
pub fn signed_message(der: &[u8]) -> String {
    encode("SIGNED MESSAGE", der)
}

/// Several certificates, one after the other.
pub fn chain<'a>(certificates: impl IntoIterator<Item = &'a [u8]>) -> String {
    certificates.into_iter().map(certificate).collect()
}

/// Joins PEM texts, each on lines of its own: AWS's answers end without a newline.
pub fn join<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let lines = |text: &'a str| [text.trim_end(), "\n"];
    texts.into_iter().filter(|text| !text.trim().is_empty()).flat_map(lines).collect()
}

/// Parses all certificates in PEM text, in order; or the single one, if the bytes are DER.
pub fn read_certificates(bytes: &[u8]) -> Result<Vec<Vec<u8>>, PkiError> {
    let malformed = |reason: String| PkiError::Malformed { what: "certificate", reason };
    let found = if bytes.first() == Some(&0x30) {
        vec![bytes.to_vec()]
    } else {
        CertificateDer::pem_slice_iter(bytes)
            .map(|certificate| certificate.map(|der| der.to_vec()))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| malformed(error.to_string()))?
    };
    if found.is_empty() {
        return Err(malformed("there is no CERTIFICATE block in it".into()));
    }
    for der in &found {
        Certificate::parse(der)?;
    }
    Ok(found)
}

impl Certificate {
    /// Parses exactly one certificate from PEM or DER.
    ///
    /// ```
    /// use outlast_pki::certificate::Certificate;
    ///
    /// let error = Certificate::parse_one(b"not a certificate").unwrap_err();
    /// assert_eq!(error.to_string(), "not a valid certificate: there is no CERTIFICATE block in it");
    /// ```
    pub fn parse_one(bytes: &[u8]) -> Result<Self, PkiError> {
        match read_certificates(bytes)?.as_slice() {
            [one] => Self::parse(one),
            several => Err(PkiError::Malformed {
                what: "certificate",
                reason: format!("there are {} of them, not one", several.len()),
            }),
        }
    }
}

/// The certificate request in PEM text or DER.
pub fn read_certificate_request(bytes: &[u8]) -> Result<Vec<u8>, PkiError> {
    if bytes.first() == Some(&0x30) {
        return Ok(bytes.to_vec());
    }
    // keytool and `openssl req -newhdr` write the older label (RFC 7468, section 7).
    let text =
        String::from_utf8_lossy(bytes).replace("NEW CERTIFICATE REQUEST", "CERTIFICATE REQUEST");
    CertificateSigningRequestDer::from_pem_slice(text.as_bytes()).map(|der| der.to_vec()).map_err(
        |error| PkiError::Malformed { what: "certificate request", reason: error.to_string() },
    )
}

/// The CMS message in PEM text (labels CMS, PKCS7 and SIGNED MESSAGE) or BER.
pub(crate) fn read_cms(bytes: &[u8]) -> Result<Vec<u8>, PkiError> {
    if bytes.first() == Some(&0x30) {
        return Ok(bytes.to_vec());
    }
    let malformed = |reason: String| PkiError::Malformed { what: "CMS message", reason };
    if bytes.is_empty() {
        return Err(malformed("it is empty".into()));
    }
    // Without such a line it is not PEM, and a PEM parser's reasons would mislead.
    if !bytes.windows(BEGIN.len()).any(|window| window == BEGIN) {
        return Err(malformed("it is neither DER, BER nor PEM".into()));
    }
    let (label, der) = der::pem::decode_vec(bytes).map_err(|error| malformed(error.to_string()))?;
    match label {
        "CMS" | "PKCS7" | "SIGNED MESSAGE" => Ok(der),
        other => Err(malformed(format!("the PEM label is {other}"))),
    }
}

const BEGIN: &[u8] = b"-----BEGIN ";

fn encode(label: &str, der: &[u8]) -> String {
    // The PEM crate encodes in constant time, which is slow, and nothing here is secret.
    let text = STANDARD.encode(der);
    let mut out = String::with_capacity(text.len() + text.len() / 64 + 2 * label.len() + 40);
    out.push_str("-----BEGIN ");
    out.push_str(label);
    out.push_str("-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, more) = rest.split_at(rest.len().min(64));
        out.push_str(line);
        out.push('\n');
        rest = more;
    }
    out.push_str("-----END ");
    out.push_str(label);
    out.push_str("-----\n");
    out
}
