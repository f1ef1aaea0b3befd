//! Certificates of the measured servers: one chain of each kind, which all servers share.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use outlast_crypto::keys::KeySpec;
use outlast_domain::seal::RootKey;
use outlast_domain::work::Work;
use outlast_net::certificate::{Kind, ensure};
use outlast_net::door::ServerCertificate;
use outlast_net::server::system_clock;
use outlast_store::memory::MemoryStore;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

/// A leaf certificate and its key in files.
pub(crate) struct Identity {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl Identity {
    /// Makes a chain for `localhost` in this folder.
    pub(crate) fn make(folder: &Path, kind: &'static Kind, spec: &str) -> Result<Self, String> {
        let failed = |error: &dyn std::fmt::Display| error.to_string();
        let store = MemoryStore::new();
        let root = RootKey::generate().map_err(|error| failed(&error))?;
        let mut work = Work::new(&store, &root, system_clock());
        let chain =
            ensure(&mut work, kind, &["localhost".to_owned()]).map_err(|error| failed(&error))?;
        let stored = work
            .secret(&format!("tls/key/{}/leaf", kind.name))
            .map_err(|error| failed(&error))?
            .ok_or("the leaf has no key")?;
        let spec = KeySpec::by_name(spec).ok_or("no such key type")?;
        let pkcs8 = spec.to_pkcs8(&stored).map_err(|error| failed(&error))?;
        let leaf = chain.certified_key.cert.first().ok_or("no leaf")?;
        let identity = Self {
            certificate: folder.join(format!("{}.pem", kind.name)),
            key: folder.join(format!("{}-key.pem", kind.name)),
        };
        let certificate = outlast_pki::pem::certificate(leaf);
        let key = STANDARD.encode(pkcs8.expose());
        let key =
            format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", lines(&key));
        std::fs::write(&identity.certificate, certificate).map_err(|error| failed(&error))?;
        std::fs::write(&identity.key, key).map_err(|error| failed(&error))?;
        Ok(identity)
    }
}

/// PEM has 64 characters per line; OpenSSL accepts at most 76.
fn lines(text: &str) -> String {
    let mut out = String::new();
    for (index, character) in text.chars().enumerate() {
        if index > 0 && index % 64 == 0 {
            out.push('\n');
        }
        out.push(character);
    }
    out
}

/// Reads an identity for rustls.
pub(crate) fn load(certificate: &str, key: &str) -> Result<ServerCertificate, String> {
    let failed = |error: &dyn std::fmt::Display| error.to_string();
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| failed(&error))?;
    let key = PrivateKeyDer::from_pem_file(key).map_err(|error| failed(&error))?;
    let key = CertifiedKey::from_der(chain, key, &aws_lc_rs::default_provider())
        .map_err(|error| failed(&error))?;
    Ok(ServerCertificate { kind: "measured".into(), key: Arc::new(key) })
}
