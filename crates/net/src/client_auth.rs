//! Client certificates: whom the door believes.
//!
//! rustls-webpki verifies path, purpose and revocation, and then `outlast_pki::validate` the whole of RFC 5280: webpki
//! believes roots blindly and looks at no key usage. Both must agree.

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

/// Whether a client must have a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// There is no connection without one.
    Require,
    /// One that is shown must be valid; policies can ask for its subject.
    Request,
}

/// Every mode with its name.
pub const MODES: &[(&str, Mode)] = &[("require", Mode::Require), ("request", Mode::Request)];

/// Why client certificates cannot be asked for as configured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientAuthError {
    /// None of the certificates is a CA's.
    #[error("there is no CA certificate in it")]
    NoCa,
    /// More than a server takes.
    #[error("there are more than {max} of them", max = limits::MAX_CLIENT_CAS)]
    TooMany,
    /// A certificate or CRL that cannot be used.
    #[error("{0}")]
    Unusable(String),
}

/// Whom to believe, as configured. CRLs, once there are any, must say of every client's certificate that it is not
/// revoked, and must themselves not have expired.
#[derive(Debug, Clone)]
pub struct ClientAuth {
    mode: Mode,
    roots: Vec<Certificate>,
    crls: Vec<CertificateRevocationListDer<'static>>,
}

impl ClientAuth {
    /// Clients with a certificate below one of `roots`, looked up in `crls`; all DER.
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
        // Says now, and not at the first connection, what webpki cannot read.
        made.verifier(&Rules::default(), Version::Tls13).map_err(|error| unusable(&error))?;
        Ok(made)
    }

    /// For a server's configuration, in which clients sign with what the policy allows, and so do their CAs.
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
        // The client's own certificate must be known to some CRL. Of the CAs above it that is not asked, since a root's
        // CRL is rarely at hand; but one that is revoked ends the path.
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

/// A client's certificate for the audit record.
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
        // RFC 8446, section 4.2.3: in TLS 1.3 PKCS #1 v1.5 signs certificates only. ML-DSA is for TLS 1.3 only.
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

    /// What signs the chain. A root in it is passed over: it counts because it is configured.
    fn check_chain(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
    ) -> Result<(), Error> {
        let chain = std::iter::once(end_entity).chain(intermediates).map(AsRef::as_ref);
        if chain_schemes(chain).iter().all(|code| self.certificates.contains(code)) {
            return Ok(());
        }
        tracing::debug!("a client's chain is signed with what the policy does not allow");
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
    /// The rules of RFC 5280 that webpki leaves out.
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
            ocsp: &[],
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
        // One list for both uses (RFC 8446, section 4.2.3): rustls sends no signature_algorithms_cert.
        let Allowed { handshake, certificates } = &self.allowed;
        let mut schemes = self.leaf.supported_verify_schemes();
        schemes.retain(|scheme| {
            let code = u16::from(*scheme);
            handshake.contains(&code) || certificates.contains(&code)
        });
        schemes
    }
}
