//! What a listener presents to clients: certificates from files, and tickets that survive a change of settings.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use outlast_crypto::Secret;
use outlast_pki::certificate::Certificate;
use outlast_pki::public_key;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::ProducesTickets;
use rustls::sign::CertifiedKey;

use crate::door::ServerCertificate;

/// A certificate with its intermediates (DER, its own first) and its private key (PKCS #8). The error says what is
/// wrong.
pub fn server_certificate(chain: &[Vec<u8>], key: &Secret) -> Result<ServerCertificate, String> {
    let own = chain.first().ok_or("there is no certificate in it")?;
    let own = Certificate::parse(own).map_err(|error| error.to_string())?;
    let public_key = own.public_key().map_err(|error| error.to_string())?;
    let kind = public_key::Kind::of(&public_key).map_err(|error| error.to_string())?;
    let chain = chain.iter().cloned().map(CertificateDer::from).collect();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.expose().to_vec()));
    let key =
        CertifiedKey::from_der(chain, key, &aws_lc_rs::default_provider()).map_err(|error| {
            match error {
                rustls::Error::InconsistentKeys(_) => {
                    "the private key is not that of the first certificate".to_owned()
                }
                error => error.to_string(),
            }
        })?;
    Ok(ServerCertificate { kind: kind_name(kind.name), key: Arc::new(key) })
}

/// Named like the kinds of the service's own certificates: `ecdsa-p256`, `ml-dsa-65`.
fn kind_name(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    match name.strip_prefix("ec ") {
        Some(curve) => format!("ecdsa-{}", curve.replace('-', "")),
        None => name,
    }
}

/// Ticket makers of listeners by name, so that sessions survive a reload of the settings.
#[derive(Default)]
pub struct Tickets(Mutex<HashMap<String, Arc<dyn ProducesTickets>>>);

impl Tickets {
    /// Ticket maker of a listener.
    pub fn of(&self, listener: &str) -> Result<Arc<dyn ProducesTickets>, String> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tickets) = known.get(listener) {
            return Ok(tickets.clone());
        }
        let made = aws_lc_rs::Ticketer::new().map_err(|error| error.to_string())?;
        known.insert(listener.to_owned(), made.clone());
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_called_as_elsewhere() {
        for (name, expected) in [
            ("EC P-256", "ecdsa-p256"),
            ("ML-DSA-65", "ml-dsa-65"),
            ("RSA", "rsa"),
            ("Ed25519", "ed25519"),
        ] {
            assert_eq!(kind_name(name), expected);
        }
        for kind in crate::certificate::KINDS {
            let known = public_key::KINDS.iter().map(|row| kind_name(row.name));
            assert!(known.into_iter().any(|name| name == kind.name), "{}", kind.name);
        }
    }
}
