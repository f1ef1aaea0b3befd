//! Certificate authorities of a server, made by a client's calls.

use std::path::{Path, PathBuf};

use outlast_api::ops::acm_pca::{
    create_certificate_authority, get_certificate, get_certificate_authority_csr,
    import_certificate_authority_certificate, issue_certificate, revoke_certificate,
};
use outlast_api::wire::Blob;
use serde_json::{Value, json};

use super::peers::openssl;
use super::{Session, succeed};

/// An active authority.
pub struct Authority {
    pub arn: String,
    /// Its `SigningAlgorithm`.
    pub signing: &'static str,
    /// Its certificate, PEM.
    pub certificate: String,
    /// Its issuers up to the root, PEM; empty for a root.
    pub chain: String,
}

/// Parameters of `issue`.
pub struct Order<'a> {
    pub template: &'a str,
    pub csr: &'a [u8],
    pub passthrough: Option<Value>,
    pub days: i64,
}

/// A certificate that was issued.
pub struct Issued {
    pub arn: String,
    /// PEM.
    pub certificate: String,
    /// Issuer first, PEM.
    pub chain: String,
}

/// An authority without a certificate, and its request. `revocation` is its `RevocationConfiguration`.
pub async fn pending(
    session: &mut Session,
    kind: &str,
    (key, signing): (&str, &'static str),
    name: &str,
    revocation: Option<&Value>,
) -> (Authority, String) {
    let mut new = json!({
        "CertificateAuthorityConfiguration": {
            "KeyAlgorithm": key, "SigningAlgorithm": signing,
            "Subject": { "CommonName": name, "Organization": "Outlast", "Country": "DE" },
        },
        "CertificateAuthorityType": kind,
    });
    if let Some(revocation) = revocation {
        new["RevocationConfiguration"] = revocation.clone();
    }
    type Create = create_certificate_authority::CreateCertificateAuthority;
    let arn = session.call::<Create>(new).await.unwrap().unwrap().certificate_authority_arn;
    type Csr = get_certificate_authority_csr::GetCertificateAuthorityCsr;
    let get = json!({ "CertificateAuthorityArn": arn });
    let csr = session.call::<Csr>(get).await.unwrap().unwrap().csr;
    (Authority { arn, signing, certificate: String::new(), chain: String::new() }, csr)
}

/// An active root.
pub async fn root(
    session: &mut Session,
    algorithms: (&str, &'static str),
    name: &str,
    revocation: Option<&Value>,
) -> Authority {
    root_by(session, algorithms, name, revocation, "RootCACertificate", None).await
}

/// An active root from this template.
pub async fn root_by(
    session: &mut Session,
    algorithms: (&str, &'static str),
    name: &str,
    revocation: Option<&Value>,
    template: &str,
    passthrough: Option<Value>,
) -> Authority {
    let (mut root, csr) = pending(session, "ROOT", algorithms, name, revocation).await;
    let order = Order { template, csr: csr.as_bytes(), passthrough, days: 3650 };
    root.certificate = root.issue(session, order).await.certificate;
    root.install(session).await;
    root
}

/// An active subordinate of `issuer`.
pub async fn subordinate(
    session: &mut Session,
    issuer: &Authority,
    algorithms: (&str, &'static str),
    name: &str,
    revocation: Option<&Value>,
) -> Authority {
    let (mut authority, csr) = pending(session, "SUBORDINATE", algorithms, name, revocation).await;
    let template = "SubordinateCACertificate_PathLen0";
    let order = Order { template, csr: csr.as_bytes(), passthrough: None, days: 1800 };
    let issued = issuer.issue(session, order).await;
    authority.certificate = issued.certificate;
    authority.chain = issued.chain;
    authority.install(session).await;
    authority
}

impl Authority {
    async fn install(&self, session: &mut Session) {
        type Import =
            import_certificate_authority_certificate::ImportCertificateAuthorityCertificate;
        let mut import = json!({
            "CertificateAuthorityArn": self.arn,
            "Certificate": blob(self.certificate.as_bytes()),
        });
        if !self.chain.is_empty() {
            import["CertificateChain"] = blob(self.chain.as_bytes());
        }
        session.call::<Import>(import).await.unwrap().unwrap();
    }

    /// Issues a certificate.
    pub async fn issue(&self, session: &mut Session, order: Order<'_>) -> Issued {
        let mut request = json!({
            "CertificateAuthorityArn": self.arn, "SigningAlgorithm": self.signing,
            "Csr": blob(order.csr),
            "TemplateArn": format!("arn:aws:acm-pca:::template/{}/V1", order.template),
            "Validity": { "Value": order.days, "Type": "DAYS" },
        });
        if let Some(passthrough) = order.passthrough {
            request["ApiPassthrough"] = passthrough;
        }
        let issued = session.call::<issue_certificate::IssueCertificate>(request).await.unwrap();
        let arn = issued.unwrap_or_else(|error| panic!("{}: {error:?}", order.template));
        let arn = arn.certificate_arn;
        let get = json!({ "CertificateAuthorityArn": self.arn, "CertificateArn": arn });
        let found = session.call::<get_certificate::GetCertificate>(get).await.unwrap().unwrap();
        Issued {
            arn,
            certificate: found.certificate,
            chain: found.certificate_chain.unwrap_or_default(),
        }
    }
}

impl Authority {
    /// Revokes the certificate with this serial number, in hexadecimal.
    pub async fn revoke(&self, session: &mut Session, serial: &str, reason: &str) {
        let request = json!({
            "CertificateAuthorityArn": self.arn, "CertificateSerial": serial,
            "RevocationReason": reason,
        });
        session.call::<revoke_certificate::RevokeCertificate>(request).await.unwrap().unwrap();
    }
}

/// A binary member of a request.
pub fn blob(bytes: &[u8]) -> Value {
    serde_json::to_value(Blob(bytes.to_vec())).unwrap()
}

/// Makes a key and a request for it with OpenSSL; returns the request in PEM. The key is in `NAME.key`.
pub fn request(
    peer: &Path,
    folder: &Path,
    name: &str,
    algorithm: &[&str],
    extensions: &[&str],
) -> Vec<u8> {
    let key = folder.join(format!("{name}.key"));
    let out = folder.join(format!("{name}.csr"));
    let mut make = openssl(peer, &["genpkey", "-out"]);
    succeed(make.arg(&key).arg("-algorithm").args(algorithm));
    let mut make = openssl(peer, &["req", "-new", "-subj"]);
    make.arg(format!("/CN={name}/O=Outlast/C=DE")).arg("-key").arg(&key);
    for extension in extensions {
        make.arg("-addext").arg(extension);
    }
    succeed(make.arg("-out").arg(&out));
    std::fs::read(out).unwrap()
}

/// A folder for `tests/interop/pki/STEPS.md`, without CRLs and OCSP responses.
pub fn material(folder: &Path, issued: &Issued) -> PathBuf {
    std::fs::create_dir_all(folder).unwrap();
    let mut chain: Vec<_> = issued.chain.split_inclusive("-----END CERTIFICATE-----").collect();
    while chain.last().is_some_and(|last| last.trim().is_empty()) {
        chain.pop();
    }
    let root = chain.pop().unwrap().trim().to_owned();
    std::fs::write(folder.join("root.pem"), root + "\n").unwrap();
    std::fs::write(folder.join("chain.pem"), chain.concat() + "\n").unwrap();
    std::fs::write(folder.join("leaf.pem"), &issued.certificate).unwrap();
    folder.to_owned()
}
