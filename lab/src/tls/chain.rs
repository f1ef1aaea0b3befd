//! Certificates of subjects: root, intermediates and leaf, with one algorithm and the extensions that a private CA
//! adds.
//!
//! A chain is made once per process, so that everything that is compared shows the same bytes. ECDSA's signatures are
//! sometimes one or two bytes shorter: certificates are signed again until their signature has full length, so that
//! the chains of two processes have the same sizes, too.

use std::collections::HashMap;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use der::asn1::BitString;
use der::{Decode, Document, Encode};
use outlast_pki::certificate::{Extension, key_identifier};
use outlast_pki::extensions::{
    CLIENT_AUTH, SERVER_AUTH, authority_information_access, authority_key_identifier,
    basic_constraints, crl_distribution_points, extended_key_usage, key_usage,
    subject_alternative_names, subject_key_identifier,
};
use outlast_pki::general_name::GeneralName;
use outlast_pki::{PkiError, pem};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::sign::{CertifiedKey, SigningKey};
use spki::{
    AlgorithmIdentifierOwned, DynSignatureAlgorithmIdentifier, EncodePublicKey,
    SubjectPublicKeyInfoOwned, SubjectPublicKeyInfoRef,
};
use x509_cert::builder::profile::BuilderProfile;
use x509_cert::builder::{Builder, CertificateBuilder};
use x509_cert::certificate::TbsCertificate;
use x509_cert::ext::pkix::KeyUsages;
use x509_cert::name::Name;
use x509_cert::serial_number::SerialNumber;
use x509_cert::time::{Time, Validity};

use crate::error::LabError;
use crate::state::at_ms;
use crate::subject::{Authentication, KeyPair};

/// Names in every server certificate.
pub const SERVER_NAMES: [&str; 2] = ["localhost", "server.lab"];
/// Most certificates that one side sends.
pub const MAX_CERTIFICATES: u8 = 5;
/// Name in every client certificate.
const CLIENT_NAME: &str = "client.lab";
const DAY: u64 = 86_400;
/// A signature of ordinary ECDSA has its full length once in four tries.
const TRIES: usize = 100;

/// A chain with its leaf's key.
pub struct Chain {
    /// The certificates that are sent: the leaf first, without the root; DER.
    pub certificates: Vec<Vec<u8>>,
    /// The root that the other side trusts; DER.
    pub root: Vec<u8>,
    /// The leaf's key.
    pub key: Box<dyn KeyPair>,
    /// The same for rustls.
    pub tls_key: Arc<dyn SigningKey>,
}

/// A chain in files, for other programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// The leaf and the intermediates.
    pub chain: PathBuf,
    /// The leaf's private key, PKCS #8.
    pub key: PathBuf,
    /// The root.
    pub root: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum End {
    Server,
    Client,
}

/// The server's chain.
pub fn server(authentication: &Authentication, certificates: u8) -> Result<Arc<Chain>, LabError> {
    cached(End::Server, authentication, certificates)
}

/// The chain of a client that shows one.
pub fn client(authentication: &Authentication, certificates: u8) -> Result<Arc<Chain>, LabError> {
    cached(End::Client, authentication, certificates)
}

type Key = (End, &'static str, u8);

fn cached(end: End, authentication: &Authentication, count: u8) -> Result<Arc<Chain>, LabError> {
    static MADE: LazyLock<Mutex<HashMap<Key, Arc<Chain>>>> = LazyLock::new(Mutex::default);
    let key = (end, authentication.name, count);
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(chain) = made.get(&key) {
        return Ok(chain.clone());
    }
    let chain = Arc::new(make(end, authentication, count)?);
    made.insert(key, chain.clone());
    Ok(chain)
}

impl Chain {
    /// The chain with its key, for rustls.
    pub fn certified(&self) -> CertifiedKey {
        let chain = self.certificates.iter().cloned().map(CertificateDer::from).collect();
        CertifiedKey::new(chain, self.tls_key.clone())
    }

    /// A trust store with the root alone.
    pub fn roots(&self) -> Result<RootCertStore, LabError> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(self.root.clone())).map_err(LabError::failed)?;
        Ok(roots)
    }

    /// The certificates that are sent, in PEM.
    pub fn chain_pem(&self) -> String {
        self.certificates.iter().map(|der| pem::certificate(der)).collect()
    }

    /// The root in PEM.
    pub fn root_pem(&self) -> String {
        pem::certificate(&self.root)
    }

    /// The leaf's private key in PEM; an error if no other program supports the algorithm.
    pub fn key_pem(&self) -> Result<String, LabError> {
        let pkcs8 = self.key.pkcs8().ok_or_else(|| {
            LabError::unavailable("the algorithm in another program", "a program that supports it")
        })?;
        der::pem::encode_string("PRIVATE KEY", der::pem::LineEnding::LF, &pkcs8)
            .map_err(LabError::failed)
    }

    /// Writes `PREFIX-chain.pem`, `PREFIX-key.pem` and `PREFIX-root.pem`.
    pub fn write(&self, folder: &Path, prefix: &str) -> Result<Files, LabError> {
        let place = |what: &str| folder.join(format!("{prefix}-{what}.pem"));
        let files = Files { chain: place("chain"), key: place("key"), root: place("root") };
        let contents = [
            (&files.chain, self.chain_pem()),
            (&files.key, self.key_pem()?),
            (&files.root, self.root_pem()),
        ];
        for (path, content) in contents {
            // Nobody else needs the key, and only this user reads the three files.
            let mut file = std::fs::OpenOptions::new();
            let file = file.write(true).create(true).truncate(true).mode(0o600).open(path);
            file.and_then(|mut file| file.write_all(content.as_bytes()))
                .map_err(|error| LabError::file(path, error))?;
        }
        Ok(files)
    }
}

struct Issuer {
    key: Box<dyn KeyPair>,
    name: Name,
}

fn make(end: End, authentication: &Authentication, count: u8) -> Result<Chain, LabError> {
    if !(1..=MAX_CERTIFICATES).contains(&count) {
        return Err(LabError::Plan(format!(
            "a chain of {count} certificates: 1 to {MAX_CERTIFICATES} can be sent, and the root is not counted"
        )));
    }
    let generate = || authentication.maker.generate();
    let root = Issuer { key: generate()?, name: name("Example Root CA")? };
    let constraints = basic_constraints(true, None, true).map_err(LabError::failed)?;
    let root_der = certificate(authentication, &root, &root, vec![constraints], Usage::Ca)?;
    let mut sent = Vec::new();
    let mut issuer = root;
    for index in 1..count {
        let subject =
            Issuer { key: generate()?, name: name(&format!("Example Issuing CA {index}"))? };
        let below = Some(count - 1 - index);
        let constraints = basic_constraints(true, below, true).map_err(LabError::failed)?;
        sent.push(certificate(authentication, &issuer, &subject, vec![constraints], Usage::Ca)?);
        issuer = subject;
    }
    let names: Vec<_> = match end {
        End::Server => SERVER_NAMES.to_vec(),
        End::Client => vec![CLIENT_NAME],
    };
    let leaf = Issuer { key: generate()?, name: name(names[0])? };
    let names: Vec<_> = names.into_iter().map(|dns| GeneralName::DnsName(dns.to_owned())).collect();
    let special = || -> Result<_, PkiError> {
        Ok(vec![
            basic_constraints(false, None, false)?,
            subject_alternative_names(&names, false)?,
            extended_key_usage(&[SERVER_AUTH, CLIENT_AUTH], false)?,
        ])
    };
    let special = special().map_err(LabError::failed)?;
    sent.push(certificate(authentication, &issuer, &leaf, special, Usage::Leaf)?);
    sent.reverse();
    Ok(Chain { certificates: sent, root: root_der, tls_key: leaf.key.for_tls()?, key: leaf.key })
}

fn name(common: &str) -> Result<Name, LabError> {
    let fields = [("Country", "US"), ("Organization", "Example Corp"), ("CommonName", common)];
    outlast_pki::name::name(&fields, &[]).map_err(LabError::failed)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Usage {
    Ca,
    Leaf,
}

fn certificate(
    authentication: &Authentication,
    issuer: &Issuer,
    subject: &Issuer,
    special: Vec<Extension>,
    usage: Usage,
) -> Result<Vec<u8>, LabError> {
    let root = issuer.name == subject.name;
    let extensions = || -> Result<_, PkiError> {
        let flags: &[_] = match usage {
            Usage::Ca => &[KeyUsages::DigitalSignature, KeyUsages::KeyCertSign, KeyUsages::CRLSign],
            Usage::Leaf => &[KeyUsages::DigitalSignature],
        };
        let mut extensions = special;
        extensions.push(authority_key_identifier(&key_identifier(issuer.key.public_key())?)?);
        extensions.push(subject_key_identifier(&key_identifier(subject.key.public_key())?)?);
        extensions.push(key_usage(flags)?);
        if !root {
            // URLs of usual length, since they are part of a certificate's size.
            extensions.push(crl_distribution_points(&[
                "http://crl.example.com/crl/0123456789abcdef0123456789abcdef.crl",
            ])?);
            extensions.push(authority_information_access(&["http://ocsp.example.com/ocsp"], &[])?);
        }
        Ok(extensions)
    };
    let extensions = extensions().map_err(LabError::failed)?;
    let build = || -> Result<_, Box<dyn std::error::Error>> {
        let signer = Signer {
            algorithm: issuer.key.signature_algorithm()?,
            key: PublicKey(SubjectPublicKeyInfoOwned::from_der(issuer.key.public_key())?),
        };
        let now = at_ms() / 1000;
        let time = |seconds| {
            Time::try_from(std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds))
        };
        let validity = Validity::new(time(now - DAY)?, time(now + 365 * DAY)?);
        let mut serial: [u8; 16] = outlast_crypto::random::bytes()?;
        // Positive, and of constant length (RFC 5280, section 4.1.2.2).
        serial[0] = (serial[0] & 0x7f) | 0x40;
        let profile =
            Profile { issuer: issuer.name.clone(), subject: subject.name.clone(), extensions };
        let key = SubjectPublicKeyInfoOwned::from_der(subject.key.public_key())?;
        let mut builder =
            CertificateBuilder::new(profile, SerialNumber::new(&serial)?, validity, key)?;
        let to_be_signed = builder.finalize(&signer)?;
        let signature = BitString::from_bytes(&longest(authentication, issuer, &to_be_signed)?)?;
        Ok(builder.assemble(signature, &signer)?.to_der()?)
    };
    build().map_err(|error| LabError::Failed(format!("{}: {error}", authentication.name)))
}

/// Signs until the signature has its full length.
fn longest(
    authentication: &Authentication,
    issuer: &Issuer,
    message: &[u8],
) -> Result<Vec<u8>, LabError> {
    let mut best = issuer.key.sign(message)?;
    for _ in 0..TRIES {
        if best.len() >= authentication.signature_len || authentication.legacy {
            break;
        }
        let another = issuer.key.sign(message)?;
        if another.len() > best.len() {
            best = another;
        }
    }
    Ok(best)
}

/// Passes our own extensions to the builder.
struct Profile {
    issuer: Name,
    subject: Name,
    extensions: Vec<Extension>,
}

impl BuilderProfile for Profile {
    fn get_issuer(&self, _: &Name) -> Name {
        self.issuer.clone()
    }

    fn get_subject(&self) -> Name {
        self.subject.clone()
    }

    fn build_extensions(
        &self,
        _: SubjectPublicKeyInfoRef<'_>,
        _: SubjectPublicKeyInfoRef<'_>,
        _: &TbsCertificate,
    ) -> x509_cert::builder::Result<Vec<Extension>> {
        Ok(self.extensions.clone())
    }
}

/// Tells the builder about the signer.
struct Signer {
    algorithm: AlgorithmIdentifierOwned,
    key: PublicKey,
}

#[derive(Clone)]
struct PublicKey(SubjectPublicKeyInfoOwned);

impl signature::Keypair for Signer {
    type VerifyingKey = PublicKey;

    fn verifying_key(&self) -> PublicKey {
        self.key.clone()
    }
}

impl DynSignatureAlgorithmIdentifier for Signer {
    fn signature_algorithm_identifier(&self) -> spki::Result<AlgorithmIdentifierOwned> {
        Ok(self.algorithm.clone())
    }
}

impl EncodePublicKey for PublicKey {
    fn to_public_key_der(&self) -> spki::Result<Document> {
        Ok(Document::try_from(self.0.to_der()?)?)
    }
}
