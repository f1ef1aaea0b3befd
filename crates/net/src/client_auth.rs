//! Client certificates: which ones the door accepts.
//!
//! rustls-webpki verifies path, purpose and revocation; then `outlast_pki::validate` applies all of RFC 5280, because
//! webpki accepts any root and ignores key usage. Both must accept the certificate.

use std::sync::Arc;

use outlast_api::audit::ClientCertificate;
use outlast_crypto::schemes::Kind;
use outlast_crypto::versions::Version;
use outlast_negotiate::Rules;
use outlast_pki::certificate::Certificate;
use outlast_pki::crl::Crl;
use outlast_pki::templates::CLIENT_AUTH;
use outlast_pki::validate::{Material, Options, Revocation, Rule, validate};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, PeerMisbehaved,
    RootCertStore, SignatureScheme,
};
use x509_cert::ext::pkix::KeyUsages;

use crate::chain::chain_schemes;
use crate::limits;

/// Whether a client must present a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Connections without one are refused.
    Require,
    /// A presented certificate must be valid; policies can refer to its subject.
    Request,
}

/// All modes and their names.
pub const MODES: &[(&str, Mode)] = &[("require", Mode::Require), ("request", Mode::Request)];

/// Why a configuration of client certificates is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientAuthError {
    /// None of the certificates is a CA certificate.
    #[error("there is no CA certificate in it")]
    NoCa,
    /// More certificates or CRLs than the limit.
    #[error("there are more than {max} of them", max = limits::MAX_CLIENT_CAS)]
    TooMany,
    /// A certificate or CRL is unusable.
    #[error("{0}")]
    Unusable(String),
}

/// Trusted client CAs, as configured. If there are CRLs, they must cover every client certificate, and must not have
/// expired.
#[derive(Debug, Clone)]
pub struct ClientAuth {
    mode: Mode,
    roots: Vec<Certificate>,
    crls: Vec<CertificateRevocationListDer<'static>>,
}

impl ClientAuth {
    /// Accepts clients with a certificate below one of `roots`, checked against `crls`; all DER.
    pub fn new(mode: Mode, roots: &[Vec<u8>], crls: Vec<Vec<u8>>) -> Result<Self, ClientAuthError> {
        if roots.len() > limits::MAX_CLIENT_CAS || crls.len() > limits::MAX_CLIENT_CAS {
            return Err(ClientAuthError::TooMany);
        }
        let unusable = |error: &dyn std::fmt::Display| ClientAuthError::Unusable(error.to_string());
        let mut usable = Vec::new();
        for der in roots {
            let root = Certificate::parse(der).map_err(|error| unusable(&error))?;
            if root.may_issue() {
                usable.push(root);
            }
        }
        if usable.is_empty() {
            return Err(ClientAuthError::NoCa);
        }
        let crls = crls.into_iter().map(CertificateRevocationListDer::from).collect();
        let made = Self { mode, roots: usable, crls };
        // Reports certificates that webpki cannot parse now, and not at the first connection.
        made.verifier(&Rules::default(), Version::Tls13).map_err(|error| unusable(&error))?;
        Ok(made)
    }

    /// Verifier for a server configuration in which clients and their CAs may only use signatures that the policy
    /// allows.
    pub(crate) fn verifier(
        &self,
        rules: &Rules,
        version: Version,
    ) -> Result<Arc<dyn ClientCertVerifier>, Error> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut store = RootCertStore::empty();
        for root in &self.roots {
            store.add(CertificateDer::from(root.der().to_vec()))?;
        }
        let store = Arc::new(store);
        let failed =
            |error: rustls::server::VerifierBuilderError| Error::General(error.to_string());
        let builder = || {
            let builder =
                WebPkiClientVerifier::builder_with_provider(store.clone(), provider.clone())
                    .with_crls(self.crls.iter().cloned())
                    .enforce_revocation_expiration();
            match self.mode {
                Mode::Require => builder,
                Mode::Request => builder.allow_unauthenticated(),
            }
        };
        // A CRL must cover the client's own certificate. The CAs above it need not be covered, because a root's CRL
        // is rarely available; but a revoked one invalidates the path.
        let leaf = builder().only_check_end_entity_revocation().build().map_err(failed)?;
        let chain = match self.crls.is_empty() {
            true => None,
            false => Some(builder().allow_unknown_revocation_status().build().map_err(failed)?),
        };
        let parse = |der: &CertificateRevocationListDer<'_>| {
            Crl::parse(der.as_ref()).map_err(|error| Error::General(error.to_string()))
        };
        let crls = self.crls.iter().map(parse).collect::<Result<_, _>>()?;
        let allowed = Allowed::new(rules, version);
        Ok(Arc::new(Verifier { allowed, leaf, chain, roots: self.roots.clone(), crls }))
    }
}

/// Describes a client's certificate for the audit record.
pub(crate) fn described(chain: &[CertificateDer<'_>]) -> Option<ClientCertificate> {
    let certificate = Certificate::parse(chain.first()?).ok()?;
    Some(ClientCertificate {
        subject: certificate.subject().to_string(),
        serial_number: hex_text(certificate.serial()),
        issuer: certificate.issuer().to_string(),
    })
}

fn hex_text(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Code points of the schemes that a policy allows.
#[derive(Debug)]
struct Allowed {
    handshake: Vec<u16>,
    certificates: Vec<u16>,
}

impl Allowed {
    fn new(rules: &Rules, version: Version) -> Self {
        // RFC 8446, section 4.2.3: in TLS 1.3 PKCS #1 v1.5 only signs certificates. ML-DSA is only for TLS 1.3.
        let unfit = if version == Version::Tls13 { Kind::RsaPkcs1 } else { Kind::MlDsa };
        let handshake = rules.handshake_schemes().filter(|row| row.kind != unfit);
        Self {
            handshake: handshake.map(|row| row.code_point).collect(),
            certificates: rules
                .certificate_schemes()
                .filter(|row| version == Version::Tls13 || row.kind != unfit)
                .map(|row| row.code_point)
                .collect(),
        }
    }

    fn check_signed(&self, signed: &DigitallySignedStruct) -> Result<(), Error> {
        if self.handshake.contains(&u16::from(signed.scheme)) {
            return Ok(());
        }
        Err(Error::PeerMisbehaved(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme))
    }

    /// Checks the signature algorithms of the chain. Skips a root in it, which is trusted by configuration.
    fn check_chain(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
    ) -> Result<(), Error> {
        let chain = std::iter::once(end_entity).chain(intermediates).map(AsRef::as_ref);
        if chain_schemes(chain).iter().all(|code| self.certificates.contains(code)) {
            return Ok(());
        }
        tracing::debug!(
            "a client's chain is signed with an algorithm that the policy does not allow"
        );
        // RFC 8446, section 6.2: bad_certificate, or unsupported_certificate as here.
        Err(Error::InvalidCertificate(CertificateError::InvalidPurpose))
    }
}

#[derive(Debug)]
struct Verifier {
    allowed: Allowed,
    leaf: Arc<dyn ClientCertVerifier>,
    chain: Option<Arc<dyn ClientCertVerifier>>,
    roots: Vec<Certificate>,
    crls: Vec<Crl>,
}

impl Verifier {
    /// Applies the rules of RFC 5280 that webpki omits.
    fn check_path(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        let parse = |der: &CertificateDer<'_>| {
            Certificate::parse(der)
                .map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))
        };
        let leaf = parse(end_entity)?;
        let intermediates = intermediates.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
        let material = Material {
            roots: &self.roots,
            intermediates: &intermediates,
            crls: &self.crls,
            ..Material::default()
        };
        let options = Options {
            purposes: &[CLIENT_AUTH],
            key_usage: Some(KeyUsages::DigitalSignature),
            revocation: Revocation::IfPresent,
            ..Options::at(i64::try_from(now.as_secs()).unwrap_or(i64::MAX))
        };
        validate(&leaf, &material, &options).map(|_| ()).map_err(|refusal| {
            tracing::debug!(%refusal, "a client certificate was refused");
            Error::InvalidCertificate(match refusal.rule {
                Rule::Expired(_) => CertificateError::Expired,
                Rule::NotYetValid(_) => CertificateError::NotValidYet,
                Rule::Revoked { .. } => CertificateError::Revoked,
                Rule::Purpose(_) | Rule::KeyUsage(_) => CertificateError::InvalidPurpose,
                Rule::UnknownIssuer(_) => CertificateError::UnknownIssuer,
                _ => CertificateError::ApplicationVerificationFailure,
            })
        })
    }
}

impl ClientCertVerifier for Verifier {
    fn offer_client_auth(&self) -> bool {
        true
    }

    fn client_auth_mandatory(&self) -> bool {
        self.leaf.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.leaf.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.allowed.check_chain(end_entity, intermediates)?;
        if let Some(chain) = &self.chain {
            chain.verify_client_cert(end_entity, intermediates, now)?;
        }
        let verified = self.leaf.verify_client_cert(end_entity, intermediates, now)?;
        self.check_path(end_entity, intermediates, now)?;
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.allowed.check_signed(signed)?;
        self.leaf.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.allowed.check_signed(signed)?;
        self.leaf.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        // One list for both uses (RFC 8446, section 4.2.3), because rustls sends no signature_algorithms_cert.
        let Allowed { handshake, certificates } = &self.allowed;
        let mut schemes = self.leaf.supported_verify_schemes();
        schemes.retain(|scheme| {
            let code = u16::from(*scheme);
            handshake.contains(&code) || certificates.contains(&code)
        });
        schemes
    }
}
