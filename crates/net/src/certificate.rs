//! The service's own TLS chain: a root for clients to trust, and a leaf that is renewed in time.

use std::sync::Arc;

use outlast_crypto::keys::KeySpec;
use outlast_crypto::signatures::Message;
use outlast_crypto::{Secret, random};
use outlast_domain::Fault;
use outlast_domain::work::Work;
use outlast_pki::certificate::{Certificate, Content, SERIAL_LEN, key_identifier};
use outlast_pki::extension::extension;
use outlast_pki::name::common_name;
use outlast_pki::pem;
use outlast_pki::templates::{Requested, SUBJECT_ALT_NAME, Template};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;
use serde::{Deserialize, Serialize};
use x509_cert::ext::Extension;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

use crate::door::ServerCertificate;

const DAY: i64 = 86_400;
const ROOT_DAYS: i64 = 3650;
const LEAF_DAYS: i64 = 90;
/// Renews a leaf with less than this left.
const RENEW_DAYS: i64 = 30;

/// A kind of TLS certificate.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    /// Name on the command line.
    pub name: &'static str,
    /// KMS `KeySpec` of root and leaf.
    key_spec: &'static str,
}

/// All kinds. The first is the default: most of today's clients cannot verify ML-DSA.
pub static KINDS: &[Kind] = &[
    Kind { name: "ecdsa-p256", key_spec: "ECC_NIST_P256" },
    Kind { name: "ecdsa-p384", key_spec: "ECC_NIST_P384" },
    Kind { name: "ml-dsa-44", key_spec: "ML_DSA_44" },
    Kind { name: "ml-dsa-65", key_spec: "ML_DSA_65" },
    Kind { name: "ml-dsa-87", key_spec: "ML_DSA_87" },
];

/// Several certificates under one name, in order of preference.
#[derive(Debug)]
pub struct Set {
    /// Name on the command line.
    pub name: &'static str,
    kinds: &'static [&'static str],
}

/// All sets. Clients that offer ML-DSA get the ML-DSA certificate.
pub static SETS: &[Set] = &[Set { name: "dual", kinds: &["ml-dsa-65", "ecdsa-p256"] }];

/// Kinds with this name: one, or those of a set.
pub fn kinds_by_name(name: &str) -> Option<Vec<&'static Kind>> {
    match SETS.iter().find(|set| set.name == name) {
        Some(set) => set.kinds.iter().map(|name| Kind::by_name(name)).collect(),
        None => Kind::by_name(name).map(|kind| vec![kind]),
    }
}

/// Ledger's name for certificates with a key of this KMS `KeySpec`.
pub(crate) fn kind_name(key_spec: &str) -> String {
    match KINDS.iter().find(|row| row.key_spec == key_spec) {
        Some(row) => row.name.to_owned(),
        None => key_spec.to_lowercase().replace('_', "-"),
    }
}

impl Kind {
    /// The row with this name.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        KINDS.iter().find(|row| row.name == name)
    }
}

#[derive(Serialize, Deserialize)]
struct Record {
    certificate: String,
    names: Vec<String>,
}

/// A chain, ready for use.
pub struct ServiceCertificate {
    /// For the handshake.
    pub certified_key: Arc<CertifiedKey>,
    /// Root certificate in PEM, which clients must trust.
    pub root_pem: String,
    /// End of the leaf's validity, in seconds since 1970.
    pub not_after: i64,
}

impl ServiceCertificate {
    /// As a certificate of this kind for a door.
    pub fn certificate(&self, kind: &Kind) -> ServerCertificate {
        ServerCertificate { kind: kind.name.to_owned(), key: self.certified_key.clone() }
    }
}

/// Returns the chain of this kind for `names` (DNS names and IP addresses). Makes or renews certificates that are
/// missing, too old or for other names.
pub fn ensure(
    work: &mut Work<'_>,
    kind: &Kind,
    names: &[String],
) -> Result<ServiceCertificate, Fault> {
    let spec = KeySpec::by_name(kind.key_spec)
        .ok_or_else(|| Fault::Encoding(format!("{} has no key type", kind.name)))?;
    let now = work.now();
    let left = |record: &Record| {
        Certificate::parse_one(record.certificate.as_bytes())
            .map_or(0, |certificate| certificate.not_after() - now)
    };
    // A root must outlive the leaves below it. When it is renewed, which takes years, clients need the new one.
    let lasting = |found: &(Record, Secret)| left(&found.0) > 2 * LEAF_DAYS * DAY;
    let root = match stored(work, kind, "root")?.filter(lasting) {
        Some(found) => found,
        None => {
            let key = spec.generate()?;
            let certificate = make(spec, now, Role::Root { name: kind.name }, &key, None)?;
            save(work, kind, "root", &certificate, &[], key)?
        }
    };
    let root_certificate = Certificate::parse_one(root.0.certificate.as_bytes())?;
    let usable = |record: &Record| {
        left(record) > RENEW_DAYS * DAY
            && record.names == names
            && Certificate::parse_one(record.certificate.as_bytes())
                .is_ok_and(|leaf| leaf.signed_by(&root_certificate))
    };
    let leaf = match stored(work, kind, "leaf")?.filter(|(record, _)| usable(record)) {
        Some(found) => found,
        None => {
            let key = spec.generate()?;
            let certificate = make(spec, now, Role::Leaf { names }, &key, Some(&root))?;
            save(work, kind, "leaf", &certificate, names, key)?
        }
    };
    let certificate = Certificate::parse_one(leaf.0.certificate.as_bytes())?;
    let pkcs8 = spec.to_pkcs8(&leaf.1)?;
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(pkcs8.expose().to_vec()));
    let provider: CryptoProvider = aws_lc_rs::default_provider();
    let chain = vec![CertificateDer::from(certificate.der().to_vec())];
    let certified_key = CertifiedKey::from_der(chain, key, &provider)
        .map_err(|error| Fault::Encoding(error.to_string()))?;
    Ok(ServiceCertificate {
        certified_key: Arc::new(certified_key),
        root_pem: root.0.certificate,
        not_after: certificate.not_after(),
    })
}

enum Role<'a> {
    Root { name: &'a str },
    Leaf { names: &'a [String] },
}

fn make(
    spec: &KeySpec,
    now: i64,
    role: Role<'_>,
    stored: &Secret,
    issuer: Option<&(Record, Secret)>,
) -> Result<Vec<u8>, Fault> {
    let key = spec.load(stored)?;
    let no_key = || Fault::Encoding("the key type has no public key".into());
    let public_key = key.public_key().ok_or_else(no_key)?.to_vec();
    let algorithm = *spec.signing.first().ok_or_else(no_key)?;
    let (template, subject, requested, days) = match role {
        Role::Root { name } => {
            let tag: [u8; 4] = random::bytes()?;
            let tag = u32::from_be_bytes(tag);
            let name = format!("Outlast service root {name} {tag:08x}");
            ("RootCACertificate", common_name(&name)?, Vec::new(), ROOT_DAYS)
        }
        Role::Leaf { names } => {
            let name = names.first().map_or("outlast", String::as_str);
            let name = name.chars().take(64).collect::<String>();
            let requested = vec![alternative_names(names)?];
            ("EndEntityServerAuthCertificate", common_name(&name)?, requested, LEAF_DAYS)
        }
    };
    let template = Template::by_arn(&format!("arn:aws:acm-pca:::template/{template}/V1"))
        .ok_or_else(no_key)?;
    let issuer = match issuer {
        Some((record, key)) => {
            Some((Certificate::parse_one(record.certificate.as_bytes())?, spec.load(key)?))
        }
        None => None,
    };
    let issuer_key = match &issuer {
        Some((certificate, _)) => certificate.public_key()?,
        None => public_key.clone(),
    };
    let issuer_key_id = match &issuer {
        Some(_) => Some(key_identifier(&issuer_key)?),
        None => None,
    };
    let issuer_name =
        issuer.as_ref().map_or_else(|| subject.clone(), |(found, _)| found.subject().clone());
    let signer = issuer.as_ref().map_or(&key, |(_, key)| key);
    let unsigned = Content {
        serial: random::bytes::<SERIAL_LEN>()?,
        issuer: issuer_name,
        extensions: template.extensions(&Requested {
            public_key: &public_key,
            issuer_key_id: issuer_key_id.as_deref(),
            csr: &requested,
            ..Requested::default()
        })?,
        subject,
        public_key,
        not_before: now - 3600,
        not_after: now + days * DAY,
    }
    .prepare(algorithm, &issuer_key)?;
    let signature = signer.sign(algorithm, Message::Raw(&unsigned.to_be_signed))?;
    Ok(unsigned.assemble(&signature)?)
}

fn alternative_names(names: &[String]) -> Result<Extension, Fault> {
    let wrong =
        |name: &str| Fault::Encoding(format!("{name} is neither a DNS name nor an address"));
    let list = names
        .iter()
        .map(|name| match name.parse() {
            Ok(address) => Ok(GeneralName::from(std::net::IpAddr::to_canonical(&address))),
            Err(_) => der::asn1::Ia5String::new(name.as_str())
                .map(GeneralName::DnsName)
                .map_err(|_| wrong(name)),
        })
        .collect::<Result<Vec<_>, _>>()?;
    Ok(extension(SUBJECT_ALT_NAME, false, &SubjectAltName(list))?)
}

fn stored(work: &mut Work<'_>, kind: &Kind, role: &str) -> Result<Option<(Record, Secret)>, Fault> {
    let Some(record) = work.get::<Record>(&record_key(kind, role))? else { return Ok(None) };
    let key_record_key = key_record_key(kind, role);
    let key = work.secret(&key_record_key)?.ok_or(Fault::Damaged(key_record_key))?;
    Ok(Some((record, key)))
}

fn save(
    work: &mut Work<'_>,
    kind: &Kind,
    role: &str,
    certificate: &[u8],
    names: &[String],
    key: Secret,
) -> Result<(Record, Secret), Fault> {
    let record = Record { certificate: pem::certificate(certificate), names: names.to_vec() };
    work.put(&record_key(kind, role), &record)?;
    work.put_secret(&key_record_key(kind, role), &key)?;
    Ok((record, key))
}

fn record_key(kind: &Kind, role: &str) -> String {
    format!("tls/certificate/{}/{role}", kind.name)
}

fn key_record_key(kind: &Kind, role: &str) -> String {
    format!("tls/key/{}/{role}", kind.name)
}
