//! tls-alpn-01 (RFC 8737): a certificate made for the validation and presented under its own ALPN name.

use std::sync::Arc;

use const_oid::ObjectIdentifier;
use der::asn1::OctetStringRef;
use der::{Decode, Encode};
use outlast_domain::acme::Kind;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use tokio_rustls::TlsConnector;
use x509_cert::Certificate;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

use super::step;
use super::{Unmet, Validator};

/// `id-pe-acmeIdentifier`
const ACME_IDENTIFIER: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.1.31");
/// ALPN name.
pub(super) const ALPN: &[u8] = b"acme-tls/1";

impl Validator {
    pub(super) async fn tls_alpn(&self, host: &str, digest: &[u8; 32]) -> Result<(), Unmet> {
        let stream = self.connect(host, self.settings.tls_port).await?;
        let mut config = any_certificate()?;
        config.alpn_protocols = vec![ALPN.to_vec()];
        let name = ServerName::try_from(host.to_owned()).map_err(|_| {
            Unmet::wrong(Kind::TLS, "The name cannot be used as a server name in TLS.")
        })?;
        let connecting = TlsConnector::from(Arc::new(config)).connect(name, stream);
        let stream =
            step(host, connecting).await.map_err(|unmet| Unmet { kind: Kind::TLS, ..unmet })?;
        let connection = stream.get_ref().1;
        let wrong =
            |detail: &str| Unmet::wrong(Kind::INCORRECT_RESPONSE, format!("{host}: {detail}."));
        // RFC 8737, section 3: otherwise it is an ordinary web server.
        if connection.alpn_protocol() != Some(ALPN) {
            return Err(wrong("the server does not speak acme-tls/1"));
        }
        let shown = connection.peer_certificates().and_then(<[_]>::first);
        let shown = shown.ok_or_else(|| wrong("the server presents no certificate"))?;
        check(shown, host, digest).map_err(wrong)
    }
}

/// RFC 8737, section 3: one name and a critical `acmeIdentifier` with the digest.
fn check(shown: &[u8], host: &str, digest: &[u8; 32]) -> Result<(), &'static str> {
    let parsed =
        Certificate::from_der(shown).map_err(|_| "the server's certificate cannot be read")?;
    let extensions = parsed.tbs_certificate().extensions().map_or(&[][..], Vec::as_slice);
    let only = |oid: ObjectIdentifier| {
        let mut found = extensions.iter().filter(|extension| extension.extn_id == oid);
        found.next().filter(|_| found.next().is_none())
    };
    let names = only(const_oid::db::rfc5280::ID_CE_SUBJECT_ALT_NAME)
        .and_then(|extension| SubjectAltName::from_der(extension.extn_value.as_bytes()).ok())
        .ok_or("the certificate has no subject alternative name")?;
    match names.0.as_slice() {
        [GeneralName::DnsName(name)] if name.as_str().eq_ignore_ascii_case(host) => {}
        _ => return Err("the certificate is not for this name alone"),
    }
    let identifier = only(ACME_IDENTIFIER).ok_or("the certificate has no acmeIdentifier")?;
    if !identifier.critical {
        return Err("the acmeIdentifier is not critical");
    }
    let value = <&OctetStringRef>::from_der(identifier.extn_value.as_bytes())
        .map_err(|_| "the acmeIdentifier cannot be read")?;
    if value.as_bytes() != digest {
        return Err("the acmeIdentifier is not the digest of the expected key authorization");
    }
    Ok(())
}

/// A client that accepts any certificate, but has its holder prove the key.
pub(super) fn any_certificate() -> Result<ClientConfig, Unmet> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = AnyCertificate(provider.signature_verification_algorithms);
    let config = with_provider(provider, verifier)
        .map_err(|error| Unmet::not_yet(Kind::SERVER_INTERNAL, error.to_string()))?;
    Ok(config)
}

fn with_provider(
    provider: Arc<CryptoProvider>,
    verifier: AnyCertificate,
) -> Result<ClientConfig, Error> {
    Ok(ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth())
}

#[derive(Debug)]
struct AnyCertificate(WebPkiSupportedAlgorithms);

impl AnyCertificate {
    /// Verifies the handshake's signature with the certificate's key. webpki refuses certificates with unknown
    /// critical extensions, and `acmeIdentifier` is one.
    fn verify(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let bad = || Error::InvalidCertificate(rustls::CertificateError::BadEncoding);
        let parsed = Certificate::from_der(certificate).map_err(|_| bad())?;
        let key = parsed.tbs_certificate().subject_public_key_info();
        // rustls passes the content of the SEQUENCE, without its header.
        let algorithm = key.algorithm.to_der().map_err(|_| bad())?;
        let algorithm = der::asn1::AnyRef::from_der(&algorithm).map_err(|_| bad())?;
        let bits = key.subject_public_key.as_bytes().ok_or_else(bad)?;
        let scheme = signed.scheme;
        let known = self.0.mapping.iter().find(|(known, _)| *known == scheme);
        let candidates = known.map_or(&[][..], |(_, candidates)| candidates);
        let valid = candidates.iter().any(|candidate| {
            candidate.public_key_alg_id().as_ref() == algorithm.value()
                && candidate.verify_signature(bits, message, signed.signature()).is_ok()
        });
        if valid {
            return Ok(HandshakeSignatureValid::assertion());
        }
        Err(Error::InvalidCertificate(rustls::CertificateError::BadSignature))
    }
}

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}
