//! The besieged server, with the resources that the patterns and the good client need.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use outlast_api::client::Client;
use outlast_api::ops::acm::create_acme_endpoint::CreateAcmeEndpoint;
use outlast_api::ops::acm::describe_acme_endpoint::DescribeAcmeEndpoint;
use outlast_api::ops::acm_pca::create_certificate_authority::CreateCertificateAuthority;
use outlast_api::ops::acm_pca::get_certificate::GetCertificate;
use outlast_api::ops::acm_pca::get_certificate_authority_csr::GetCertificateAuthorityCsr;
use outlast_api::ops::acm_pca::import_certificate_authority_certificate::ImportCertificateAuthorityCertificate;
use outlast_api::ops::acm_pca::issue_certificate::IssueCertificate;
use outlast_api::ops::kms::create_key::CreateKey;
use outlast_api::wire::sigv4::Credentials;
use outlast_crypto::Secret;
use outlast_net::policy::Policy;
use outlast_pki::certificate::Certificate;
use outlast_pki::ocsp::Request;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::door::Door;
use super::limits::PREPARATION;
use super::plain::get;
use crate::error::LabError;
use crate::pinned::{free_address, tied};
use crate::server::{Access, Folder, NAME, Server, Session, outlast};
use crate::subject::Authentication;
use crate::tls::chain;
use outlast_harness::agent::Programs;

/// A running server, and a caller who may make keys and authorities in it.
pub struct Given {
    /// Address of its APIs, over TCP and QUIC.
    pub address: SocketAddr,
    /// Address of plain HTTP.
    pub plain: SocketAddr,
    /// Certificates to trust, DER.
    pub roots: Vec<Vec<u8>>,
    /// The caller's access key.
    pub access_key: String,
    /// Secret of the access key.
    pub secret: String,
    /// The server's process, if its memory is to be watched.
    pub pid: Option<u32>,
}

/// Fails unless the address is a loopback address.
pub fn check_loopback(address: SocketAddr) -> Result<(), LabError> {
    if address.ip().is_loopback() {
        return Ok(());
    }
    Err(LabError::Plan(format!(
        "{address} is not a loopback address: a siege is for a server on this machine only"
    )))
}

/// Address of the attackers: not the good client's, so that they do not share the budget that the server gives to one
/// peer.
pub(super) fn attackers_address(target: SocketAddr) -> IpAddr {
    match target.ip() {
        IpAddr::V4(_) => Ipv4Addr::new(127, 66, 6, 6).into(),
        // IPv6 has one loopback address.
        other => other,
    }
}

/// Everything that can be attacked, for the attacking process's standard input.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Field {
    pub access: Access,
    /// Address of plain HTTP.
    pub plain: SocketAddr,
    /// A proxy in front of that, for patterns against a proxy.
    pub proxy: Option<ProxyDoor>,
    pub prepared: Prepared,
}

/// A proxy's listener.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct ProxyDoor {
    pub address: SocketAddr,
    /// The root that its clients trust, DER in hexadecimal digits.
    root: String,
}

impl ProxyDoor {
    pub fn roots(&self) -> Result<Vec<Vec<u8>>, LabError> {
        Ok(vec![hex::decode(&self.root).map_err(LabError::failed)?])
    }
}

/// Resources in the store, whichever server serves it.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Prepared {
    /// The good client's KMS key.
    pub key: String,
    /// Path of the CRL.
    pub crl: String,
    /// The authority's certificate in PEM; OCSP requests are about it.
    pub authority: String,
    /// Path of an ACME endpoint, with a slash at the end.
    pub acme: String,
    /// A user who may use two keys.
    pub tenant: Option<Tenant>,
}

/// A caller with keys of its own.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Tenant {
    id: String,
    secret: String,
    /// A key with the most expensive policy.
    pub judged: String,
    /// A key with an ordinary one.
    pub usual: String,
}

impl Field {
    /// Signs as the tenant.
    pub fn tenant(&self) -> Option<(Client, &Tenant)> {
        let tenant = self.prepared.tenant.as_ref()?;
        let mut client = self.access.client();
        client.credentials = Credentials {
            access_key_id: tenant.id.clone(),
            secret: Secret::new(tenant.secret.clone().into_bytes()),
            token: None,
        };
        Some((client, tenant))
    }

    /// An OCSP request about the authority's own certificate.
    pub fn question(&self, nonce: Option<&[u8]>) -> Result<Vec<u8>, LabError> {
        let pem = self.prepared.authority.as_bytes();
        let authority = Certificate::parse_one(pem).map_err(LabError::failed)?;
        Request::new(&authority, &authority, nonce)
            .and_then(|request| request.to_der())
            .map_err(LabError::failed)
    }
}

/// TLS 1.3 with these ALPN protocols.
pub(super) fn client_config(
    roots: &[Vec<u8>],
    protocols: &[&[u8]],
) -> Result<Arc<ClientConfig>, LabError> {
    let mut store = RootCertStore::empty();
    for der in roots {
        store.add(CertificateDer::from(der.clone())).map_err(LabError::failed)?;
    }
    let mut config = ClientConfig::builder_with_provider(Policy::default().provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(LabError::failed)?
        .with_root_certificates(store)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(Arc::new(config))
}

/// The setting of a siege: one store for all patterns, and a server of its own for each, unless one was given.
pub(super) enum Battlefield {
    Own { programs: Programs, folder: Box<Folder>, prepared: Prepared },
    Given { given: Box<Given>, prepared: Prepared },
}

/// A server that is ready, and what must be kept while it is besieged.
pub(super) struct Besieged {
    pub field: Field,
    /// The process whose memory counts.
    pub pid: Option<u32>,
    _proxy: Option<Ended>,
    _server: Option<Server>,
}

/// A process that is killed when dropped.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Battlefield {
    /// A store in a new folder inside `temporary`.
    pub async fn own(programs: &Programs, temporary: &Path) -> Result<Self, LabError> {
        let folder = Box::new(Folder::new(programs, temporary)?);
        let identity = principal(&folder, "tenant")?;
        let server = folder.serve()?;
        let plain = SocketAddr::new(server.address.ip(), server.revocation);
        let prepared = prepare(&server.access(), plain, Some(identity)).await?;
        Ok(Self::Own { programs: programs.clone(), folder, prepared })
    }

    /// Uses the given server.
    pub async fn given(given: Given) -> Result<Self, LabError> {
        check_loopback(given.address)?;
        check_loopback(given.plain)?;
        let prepared = prepare(&given.access(), given.plain, None).await?;
        Ok(Self::Given { given: Box::new(given), prepared })
    }

    /// Why a pattern cannot be tried here, if so.
    pub fn lacks(&self, needs_own: bool) -> Option<&'static str> {
        match self {
            Self::Given { .. } if needs_own => {
                Some("it needs its own user or proxy, which only the siege's own server has")
            }
            _ => None,
        }
    }

    /// A server that has not been attacked yet, or the given one.
    pub fn begin(&self, door: Door) -> Result<Besieged, LabError> {
        match self {
            Self::Given { given, prepared } => Ok(Besieged {
                field: Field {
                    access: given.access(),
                    plain: given.plain,
                    proxy: None,
                    prepared: prepared.clone(),
                },
                pid: given.pid,
                _proxy: None,
                _server: None,
            }),
            Self::Own { programs, folder, prepared } => {
                let server = folder.serve()?;
                let plain = SocketAddr::new(server.address.ip(), server.revocation);
                let mut field = Field {
                    access: server.access(),
                    plain,
                    proxy: None,
                    prepared: prepared.clone(),
                };
                let mut pid = server.child.id();
                let mut proxy = None;
                if door == Door::Proxy {
                    let (child, door) = start_proxy(programs, folder, plain)?;
                    pid = child.0.id();
                    field.proxy = Some(door);
                    proxy = Some(child);
                }
                Ok(Besieged { field, pid: Some(pid), _proxy: proxy, _server: Some(server) })
            }
        }
    }
}

impl Given {
    fn access(&self) -> Access {
        Access::new(self.address, &self.roots, self.access_key.clone(), self.secret.clone())
    }
}

/// `outlast proxy` in front of plain HTTP.
fn start_proxy(
    programs: &Programs,
    folder: &Folder,
    behind: SocketAddr,
) -> Result<(Ended, ProxyDoor), LabError> {
    let made = chain::server(Authentication::by_name("ECDSA P-256")?, 1)?;
    let files = made.write(&folder.path("."), "proxy")?;
    let address = free_address()?;
    let mut command = outlast(&programs.service);
    command.args(["proxy", "--log", "error", "--listen", &address.to_string()]);
    command.args(["--to", &format!("http://{behind}"), "--tls-cert-file"]);
    command.arg(&files.chain).arg("--tls-key-file").arg(&files.key);
    let child = tied(&programs.agent, &command, None)?
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| LabError::file(&programs.service, error))?;
    let child = Ended(child);
    let begun = Instant::now();
    while std::net::TcpStream::connect(address).is_err() {
        if begun.elapsed() > PREPARATION {
            return Err(peer("outlast proxy", "it does not listen"));
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    Ok((child, ProxyDoor { address, root: hex::encode(&made.root) }))
}

fn peer(who: &str, reason: impl std::fmt::Display) -> LabError {
    LabError::Peer { peer: who.into(), reason: reason.to_string() }
}

/// Makes what patterns and the good client need, and waits until it is available.
async fn prepare(
    access: &Access,
    plain: SocketAddr,
    tenant: Option<(String, String, String)>,
) -> Result<Prepared, LabError> {
    let mut session = Session::open(access, &access.connector(&Policy::default())?).await?;
    let key = session.call::<CreateKey>(json!({})).await?.key_metadata.key_id;
    let (arn, authority) = authority(&mut session).await?;
    let endpoint = json!({
        "AuthorizationBehavior": "CHALLENGE", "Contact": "NOT_REQUIRED",
        "CertificateAuthority": {
            "PrivateCertificateAuthority": { "CertificateAuthorityArn": arn },
        },
    });
    let endpoint = session.call::<CreateAcmeEndpoint>(endpoint).await?.acme_endpoint_arn;
    let describe = json!({ "AcmeEndpointArn": endpoint });
    let directory = session.call::<DescribeAcmeEndpoint>(describe).await?;
    let directory = directory.acme_endpoint.endpoint_url;
    let acme = directory
        .strip_suffix("directory")
        .and_then(|url| Some(format!("/{}", url.strip_prefix("https://")?.split_once('/')?.1)))
        .ok_or_else(|| {
            peer("the Outlast server", format!("{directory} is not an ACME directory"))
        })?;
    let tenant = match tenant {
        None => None,
        Some((id, secret, user)) => {
            let expensive = json!({ "StringLike": { "aws:UserAgent": expensive_patterns() } });
            let mut keys = Vec::new();
            for condition in [expensive, json!({})] {
                let policy = policy(&user, &condition);
                let made = session.call::<CreateKey>(json!({ "Policy": policy })).await?;
                keys.push(made.key_metadata.key_id);
            }
            let [judged, usual] = <[String; 2]>::try_from(keys)
                .map_err(|_| LabError::failed("two keys were expected"))?;
            Some(Tenant { id, secret, judged, usual })
        }
    };
    let id = arn.rsplit('/').next().unwrap_or_default();
    let prepared = Prepared { key, crl: format!("/crl/{id}.crl"), authority, acme, tenant };
    // The CRL is made in the background.
    let begun = Instant::now();
    while let Err(error) = get(plain, &prepared.crl).await {
        if begun.elapsed() > PREPARATION {
            return Err(peer("plain HTTP", error));
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    Ok(prepared)
}

/// A root with CRLs and OCSP: its ARN and certificate.
async fn authority(session: &mut Session) -> Result<(String, String), LabError> {
    let made = json!({
        "CertificateAuthorityConfiguration": {
            "KeyAlgorithm": "ML_DSA_65", "SigningAlgorithm": "ML_DSA_65",
            "Subject": { "CommonName": "Besieged" },
        },
        "RevocationConfiguration": {
            "CrlConfiguration": { "Enabled": true, "ExpirationInDays": 7 },
            "OcspConfiguration": { "Enabled": true },
        },
        "CertificateAuthorityType": "ROOT",
    });
    let arn = session.call::<CreateCertificateAuthority>(made).await?.certificate_authority_arn;
    let named = json!({ "CertificateAuthorityArn": arn });
    let csr = session.call::<GetCertificateAuthorityCsr>(named).await?.csr;
    let issue = json!({
        "CertificateAuthorityArn": arn, "Csr": STANDARD.encode(csr), "SigningAlgorithm": "ML_DSA_65",
        "TemplateArn": "arn:aws:acm-pca:::template/RootCACertificate/V1",
        "Validity": { "Type": "DAYS", "Value": 3650 },
    });
    let issued = session.call::<IssueCertificate>(issue).await?.certificate_arn;
    let get = json!({ "CertificateAuthorityArn": arn, "CertificateArn": issued });
    let certificate = session.call::<GetCertificate>(get).await?.certificate;
    let import = json!({
        "CertificateAuthorityArn": arn, "Certificate": STANDARD.encode(certificate.as_bytes()),
    });
    session.call::<ImportCertificateAuthorityCertificate>(import).await?;
    Ok((arn, certificate))
}

/// Patterns that match every prefix of a long value and never its end.
fn expensive_patterns() -> Vec<String> {
    (0..128).map(|number| format!("{}b{number}", "*aaaaaaaaaaaaaaa".repeat(8))).collect()
}

/// A key policy that allows a user everything on a condition.
fn policy(user: &str, condition: &Value) -> String {
    let account = user.split(':').nth(4).unwrap_or_default();
    let policy = json!({
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow", "Action": "kms:*", "Resource": "*",
                "Principal": { "AWS": format!("arn:aws:iam::{account}:root") },
            },
            {
                "Effect": "Allow", "Action": "kms:*", "Resource": "*",
                "Principal": { "AWS": user }, "Condition": condition,
            },
        ],
    });
    policy.to_string()
}

/// A user with nothing but an access key: its id, its secret, and the user's ARN. No server may be running.
fn principal(folder: &Folder, name: &str) -> Result<(String, String, String), LabError> {
    let output = outlast(folder.program())
        .args(["principal", "create", name, "--output", "json", "--data"])
        .arg(folder.data())
        .stdin(Stdio::null())
        .output()
        .map_err(|error| LabError::file(folder.program(), error))?;
    let made: Value = serde_json::from_slice(&output.stdout).map_err(|_| {
        peer("outlast principal create", String::from_utf8_lossy(&output.stderr).trim())
    })?;
    let text = |name: &str| {
        let found = made.get(name).and_then(Value::as_str).map(str::to_owned);
        found.ok_or_else(|| peer("outlast principal create", format!("its output has no {name}")))
    };
    Ok((text("access_key_id")?, text("secret_access_key")?, text("arn")?))
}

/// The name in the server's certificate.
pub(super) fn server_name() -> Result<rustls::pki_types::ServerName<'static>, LabError> {
    rustls::pki_types::ServerName::try_from(NAME).map_err(LabError::failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_besieged() {
        for (address, allowed) in [
            ("127.0.0.1:1", true),
            ("127.66.6.6:1", true),
            ("[::1]:1", true),
            ("10.0.0.1:1", false),
            ("0.0.0.0:1", false),
            ("192.0.2.1:443", false),
            ("[::]:1", false),
            ("[::ffff:127.0.0.1]:1", false),
        ] {
            assert_eq!(check_loopback(address.parse().unwrap()).is_ok(), allowed, "{address}");
        }
    }

    #[test]
    fn expensive_policy_is_one_that_a_key_takes() {
        let condition = json!({ "StringLike": { "aws:UserAgent": expensive_patterns() } });
        let policy = policy("arn:aws:iam::123456789012:user/tenant", &condition);
        assert!(policy.len() < 32_768, "{}", policy.len());
    }
}
