//! Sizes of real keys, shares, ciphertexts, signatures and certificates.

use outlast_crypto::keys::{KEY_SPECS, Key, KeySpec};
use outlast_crypto::signatures::{Family, Message, SignatureAlgorithm};
use outlast_pki::whatif;
use serde::{Deserialize, Serialize};
use spki::SubjectPublicKeyInfoRef;
use spki::der::Decode;

use crate::error::LabError;
use crate::state::at_ms;
use crate::subject::{Authentication, KeyExchange, Subject, key_exchanges};
use crate::tls::{chain, stack};
use crate::trace::Side;

/// Signatures of random length are made so often that the longest is among them.
const TRIES: usize = 64;

/// A key exchange.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Group {
    /// Name.
    pub name: String,
    /// Code point.
    pub code_point: u16,
    /// Hybrid, post-quantum or classical.
    pub kind: String,
    /// Whether it is from the literature.
    pub legacy: bool,
    /// Bytes of the client's share.
    pub client_share: usize,
    /// Bytes of the server's.
    pub server_share: usize,
    /// Bytes of the first flight, which is ClientHello, as records.
    pub client_hello: u64,
    /// Bytes of the server's flight with one ECDSA certificate.
    pub server_flight: u64,
}

/// A mechanism on its own.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Mechanism {
    /// Name.
    pub name: String,
    /// Source of the implementation.
    pub source: String,
    /// Bytes of a public key.
    pub public_key: usize,
    /// Bytes of a secret key: as PKCS #8 for Outlast's own.
    pub secret_key: usize,
    /// Bytes of a ciphertext.
    pub ciphertext: usize,
    /// Whether it is from the literature.
    pub legacy: bool,
}

/// A signature algorithm.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Signing {
    /// Name.
    pub name: String,
    /// Source of the implementation.
    pub source: String,
    /// Bytes of the public key itself.
    pub public_key: usize,
    /// Bytes of a secret key: as PKCS #8 for Outlast's own.
    pub secret_key: usize,
    /// Bytes of a signature, at most.
    pub signature: usize,
    /// Bytes of a leaf certificate.
    pub leaf: usize,
    /// Bytes of its root certificate.
    pub root: usize,
    /// Whether TLS 1.3 has a scheme for it.
    pub tls: bool,
    /// Whether it is from the literature.
    pub legacy: bool,
}

/// All key exchanges, each with a handshake.
pub fn groups() -> Result<Vec<Group>, LabError> {
    key_exchanges().iter().map(group).collect()
}

fn group(row: &'static KeyExchange) -> Result<Group, LabError> {
    let client = row.group.start().map_err(LabError::failed)?;
    let server = row.group.start_and_complete(client.pub_key()).map_err(LabError::failed)?;
    let subject = Subject::new(row.name, "ECDSA P-256", 1)?;
    let trace = stack("rustls")?.prepare(&subject)?.handshake()?;
    let first = |side| {
        let mut sent = trace.steps.iter().filter(|step| step.from == side);
        sent.next().map_or(0, |step| u64::from(step.bytes))
    };
    Ok(Group {
        name: row.name.to_owned(),
        code_point: row.code_point,
        kind: format!("{:?}", row.strength),
        legacy: row.legacy,
        client_share: client.pub_key().len(),
        server_share: server.pub_key.len(),
        client_hello: first(Side::Client),
        server_flight: first(Side::Server),
    })
}

/// All mechanisms: those of `crypto`'s keys, then the literature's.
pub fn mechanisms() -> Result<Vec<Mechanism>, LabError> {
    let mut rows = Vec::new();
    for spec in KEY_SPECS.iter().filter(|spec| !spec.encapsulation.is_empty()) {
        let made = Made::new(spec)?;
        let (_, ciphertext) = made.key.encapsulate().map_err(LabError::failed)?;
        rows.push(Mechanism {
            name: name(spec),
            source: OUTLAST.to_owned(),
            public_key: made.public_key()?,
            secret_key: made.pkcs8,
            ciphertext: ciphertext.len(),
            legacy: false,
        });
    }
    #[cfg(feature = "legacy")]
    for kem in crate::legacy::kems() {
        let (public_key, secret_key) = kem.mechanism.generate()?;
        let (ciphertext, _) = kem.mechanism.encapsulate(&public_key)?;
        rows.push(Mechanism {
            name: kem.name.to_owned(),
            source: kem.source.to_owned(),
            public_key: public_key.len(),
            secret_key: secret_key.len(),
            ciphertext: ciphertext.len(),
            legacy: true,
        });
    }
    Ok(rows)
}

/// Source of the service's own implementations.
pub const OUTLAST: &str = "Outlast";

/// All signature algorithms for certificates.
pub fn signing_names() -> Vec<String> {
    let names = specs().map(|(spec, _)| name(spec));
    #[cfg(feature = "legacy")]
    let names = names.chain(
        crate::legacy::certificate::schemes().iter().map(|row| row.signature().name.to_owned()),
    );
    names.collect()
}

/// The algorithm with this name.
pub fn signing(wanted: &str) -> Result<Signing, LabError> {
    #[cfg(feature = "legacy")]
    if let Some(scheme) =
        crate::legacy::certificate::schemes().iter().find(|row| row.signature().name == wanted)
    {
        return legacy(scheme.signature());
    }
    let found = specs().find(|(spec, _)| name(spec) == wanted);
    let (spec, algorithm) =
        found.ok_or_else(|| LabError::Failed(format!("no key type is named {wanted}")))?;
    let made = Made::new(spec)?;
    let tries = match algorithm.family {
        Family::Ec => TRIES,
        // A composite has an ECDSA signature inside.
        _ if !algorithm.slow && spec.name.contains("ECDSA") => TRIES,
        _ => 1,
    };
    let mut signature = 0;
    for _ in 0..tries {
        let made = made.key.sign(algorithm, Message::Raw(b"length")).map_err(LabError::failed)?;
        signature = signature.max(made.len());
    }
    let in_tls = Authentication::by_name(wanted).ok();
    let (leaf, root) = match in_tls {
        Some(row) => {
            let chain = chain::server(row, 1)?;
            (chain.certificates.first().map_or(0, Vec::len), chain.root.len())
        }
        None => {
            let now = i64::try_from(at_ms() / 1000).unwrap_or_default();
            let names = chain::SERVER_NAMES.map(str::to_owned);
            let made = whatif::build(&[spec, spec], &names, now).map_err(LabError::failed)?;
            let lens: Vec<usize> = made.certificates.iter().map(Vec::len).collect();
            (lens.first().copied().unwrap_or_default(), lens.last().copied().unwrap_or_default())
        }
    };
    Ok(Signing {
        name: wanted.to_owned(),
        source: OUTLAST.to_owned(),
        public_key: made.public_key()?,
        secret_key: made.pkcs8,
        signature,
        leaf,
        root,
        tls: in_tls.is_some(),
        legacy: false,
    })
}

#[cfg(feature = "legacy")]
fn legacy(row: &'static crate::legacy::signature::Signature) -> Result<Signing, LabError> {
    let (public_key, _) = row.algorithm.generate()?;
    let chain = chain::server(Authentication::by_name(row.name)?, 1)?;
    Ok(Signing {
        name: row.name.to_owned(),
        source: row.source.to_owned(),
        public_key: public_key.len(),
        secret_key: row.secret_key_len,
        signature: row.signature_len,
        leaf: chain.certificates.first().map_or(0, Vec::len),
        root: chain.root.len(),
        tls: true,
        legacy: true,
    })
}

/// Key types that sign certificates, with the algorithm.
pub fn specs() -> impl Iterator<Item = (&'static KeySpec, &'static SignatureAlgorithm)> {
    KEY_SPECS.iter().filter_map(|spec| Some((spec, whatif::signing(spec)?)))
}

/// The field's name of a key type.
pub fn name(spec: &KeySpec) -> String {
    match spec.name {
        "ECC_NIST_EDWARDS25519" => "Ed25519".to_owned(),
        "ECC_SECG_P256K1" => "ECDSA secp256k1".to_owned(),
        other => match other.strip_prefix("ECC_NIST_P") {
            Some(bits) => format!("ECDSA P-{bits}"),
            None if other.starts_with("RSA") => other.replace('_', " "),
            None => other.replace('_', "-"),
        },
    }
}

/// A new key.
pub struct Made {
    /// The key.
    pub key: Box<dyn Key>,
    /// Bytes of its private key as PKCS #8.
    pub pkcs8: usize,
}

impl Made {
    /// Makes a key.
    pub fn new(spec: &'static KeySpec) -> Result<Self, LabError> {
        let stored = spec.generate().map_err(LabError::failed)?;
        let pkcs8 = spec.to_pkcs8(&stored).map_err(LabError::failed)?.expose().len();
        Ok(Self { key: spec.load(&stored).map_err(LabError::failed)?, pkcs8 })
    }

    /// DER `SubjectPublicKeyInfo`.
    pub fn spki(&self) -> Result<&[u8], LabError> {
        self.key.public_key().ok_or_else(|| LabError::failed("a key without a public one"))
    }

    /// Bytes of the public key in it.
    pub fn public_key(&self) -> Result<usize, LabError> {
        let spki = SubjectPublicKeyInfoRef::from_der(self.spki()?).map_err(LabError::failed)?;
        Ok(spki.subject_public_key.raw_bytes().len())
    }
}
