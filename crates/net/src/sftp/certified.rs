//! Certificates of users: which ones stand for a key of the user's own, and what is revoked.

use std::net::IpAddr;
use std::sync::Arc;

use outlast_domain::transfer::{Certified, Refusal};
use outlast_ssh::{Certificate, CertificateKind, Krl, PublicKey};

use super::SftpServer;

/// What the operator says of certificates.
#[derive(Debug, Default)]
pub struct Authorities {
    /// Keys of the authorities whose certificates log users in.
    pub trusted: Vec<PublicKey>,
    /// What is revoked: certificates, and keys of users and authorities.
    pub revoked: Krl,
    /// Certificates that are shown beside the host keys that they are for.
    pub host_certificates: Vec<Certificate>,
}

/// Reads [`Authorities`] as they are now. It is called for each login, and blocks while it reads a file that has changed. The
/// error is for the operator.
pub type ReadAuthorities = Arc<dyn Fn() -> Result<Arc<Authorities>, String> + Send + Sync>;

/// The command of `force-command` that this server carries out, because it has no other.
const ONLY_COMMAND: &[u8] = b"internal-sftp";

impl SftpServer {
    /// Decides whether a key may be tried: it is not revoked, and its certificate, if there is one, counts for this user.
    /// `signatures` are the algorithms that authorities may sign with.
    pub(super) fn certified(
        &self,
        signatures: &[&str],
        key: Option<&[u8]>,
        certificate: Option<&Certificate>,
        from: &Claimant<'_>,
    ) -> Result<Option<Certified>, Refusal> {
        let refused = |text: String| Refusal::Certificate(text);
        let Some(read) = &self.settings.authorities else {
            return match certificate {
                // Users of Transfer Family have keys, not authorities.
                Some(_) => Err(refused("the server trusts no certificate authority".to_owned())),
                None => Ok(None),
            };
        };
        let Some(key) = key else { return Ok(None) };
        // As OpenSSH does with RevokedKeys, keys are refused while nobody knows which ones are revoked.
        let authorities = tokio::task::block_in_place(|| read()).map_err(refused)?;
        match certificate {
            None => match PublicKey::parse(key) {
                Ok(key) if authorities.revoked.revokes_key(&key) => {
                    Err(refused("the key is revoked".to_owned()))
                }
                _ => Ok(None),
            },
            Some(certificate) => {
                let at = At::of(from, signatures);
                authorities.accept(certificate, &at).map(Some).map_err(refused)
            }
        }
    }

    /// Decides whether a certificate counts for a user whom these authorities alone may certify.
    pub(super) fn certified_by(
        &self,
        trusted: &[PublicKey],
        signatures: &[&str],
        certificate: &Certificate,
        from: &Claimant<'_>,
    ) -> Result<Certified, Refusal> {
        let authorities = match &self.settings.authorities {
            Some(read) => tokio::task::block_in_place(|| read()).map_err(Refusal::Certificate)?,
            None => Arc::default(),
        };
        let accepted = authorities.accept_by(trusted, certificate, &At::of(from, signatures));
        accepted.map_err(Refusal::Certificate)
    }
}

/// A certificate that logged a user in.
#[derive(Clone)]
pub(super) struct Certificated {
    pub(super) certificate: Certificate,
    pub(super) shown: Certified,
    pub(super) signatures: &'static [&'static str],
    pub(super) at_ms: i64,
}

/// What logged a user of a file in.
#[derive(Clone)]
pub(super) enum Proof {
    /// A key of the user's.
    Key(Vec<u8>),
    /// The password that the user had then.
    Password,
    /// A certificate of an authority of the user's.
    Certificate(Box<Certificated>),
}

/// Who shows a key or certificate, from where, and when.
#[derive(Clone, Copy)]
pub(super) struct Claimant<'a> {
    pub(super) user: &'a str,
    pub(super) source: IpAddr,
    pub(super) now_ms: i64,
}

/// Who shows a certificate, when, from where, and which signatures of authorities are allowed.
struct At<'a> {
    user: &'a str,
    source: IpAddr,
    now_ms: u64,
    signatures: &'a [&'a str],
}

impl<'a> At<'a> {
    fn of(from: &Claimant<'a>, signatures: &'a [&'a str]) -> Self {
        let now_ms = u64::try_from(from.now_ms).unwrap_or_default();
        Self { user: from.user, source: from.source, now_ms, signatures }
    }
}

impl Authorities {
    /// Checks all that a certificate says; the error is for the operator.
    fn accept(&self, certificate: &Certificate, at: &At<'_>) -> Result<Certified, String> {
        self.accept_by(&self.trusted, certificate, at)
    }

    /// The same where other authorities are trusted.
    fn accept_by(
        &self,
        trusted: &[PublicKey],
        certificate: &Certificate,
        at: &At<'_>,
    ) -> Result<Certified, String> {
        if !trusted.contains(certificate.authority()) {
            let authority = certificate.authority().fingerprint();
            return Err(format!("the authority {authority} is not trusted"));
        }
        if let Some(what) = self.revoked.revokes(certificate) {
            return Err(format!("the certificate is revoked by {}", what.name()));
        }
        let algorithm = certificate.signature_algorithm();
        if !at.signatures.contains(&algorithm) {
            return Err(format!("the security policy does not allow signatures by {algorithm}"));
        }
        let wrong = |error: outlast_ssh::CertificateError| error.to_string();
        certificate.check(CertificateKind::User, at.user, at.now_ms).map_err(wrong)?;
        certificate.check_source(at.source).map_err(wrong)?;
        if certificate.forced_command().is_some_and(|command| command != ONLY_COMMAND) {
            return Err("the certificate is for a command that is not served".to_owned());
        }
        let fields = certificate.fields();
        Ok(Certified {
            key_id: fields.key_id.clone(),
            serial: fields.serial,
            authority: certificate.authority().fingerprint(),
        })
    }
}

#[cfg(test)]
mod tests;
