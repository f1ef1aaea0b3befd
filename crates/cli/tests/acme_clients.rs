//! Real ACME clients get, renew and revoke certificates: lego, certbot and Caddy. The authority signs with ML-DSA-65.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::common;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use common::acme::{Challenge, Got, Site};
use common::authority::{Authority, root, subordinate};
use common::dns::Dns;
use common::peers::{Verdict, Verifier, peer, verifiers};
use common::{Folder, Server, Session, outlast, run, stderr, stdout, succeed};
use outlast_api::ops::acm;
use outlast_testing::{PATIENCE, free_port};
use serde_json::json;

/// A server with an endpoint, and the settings for its clients.
struct World {
    site: Site,
    /// The endpoint's ARN.
    endpoint: String,
    root: PathBuf,
    openssl: PathBuf,
    /// Go: it starts at once.
    verifier: Verifier,
    server: Server,
    _folder: Folder,
}

const ALGORITHMS: (&str, &str) = ("ML_DSA_65", "ML_DSA_65");
const ROLE: &str = "arn:aws:iam::123456789012:role/acme";

impl World {
    /// An endpoint whose clients must solve challenges.
    fn new() -> Option<Self> {
        Self::with("CHALLENGE")
    }

    fn with(behavior: &str) -> Option<Self> {
        let openssl = peer("openssl")?;
        let verifier = verifiers()?.remove(1);
        let folder = Folder::new();
        role(&folder);
        let dns = Dns::start(folder.path("dns"));
        let (http_port, tls_port) = (free_port(), free_port());
        let server = Server::start(
            &folder.data,
            &[
                "--acme-dns",
                &dns.address.to_string(),
                "--acme-http-port",
                &http_port.to_string(),
                "--acme-tls-port",
                &tls_port.to_string(),
                "--acme-network",
                "127.0.0.0/8",
            ],
        );
        let (root, endpoint, directory, binding) = common::runtime().block_on(async {
            let mut session = server.session().await.unwrap();
            let revocation = json!({
                "CrlConfiguration": { "Enabled": true, "ExpirationInDays": 7 },
                "OcspConfiguration": { "Enabled": true },
            });
            let root = root(&mut session, ALGORITHMS, "Root", Some(&revocation)).await;
            let sub = subordinate(&mut session, &root, ALGORITHMS, "Sub", Some(&revocation)).await;
            let (endpoint, directory, binding) = endpoint(&mut session, &sub, behavior).await;
            (root.certificate, endpoint, directory, binding)
        });
        let clients = folder.path("clients");
        std::fs::create_dir(&clients).unwrap();
        let site = Site {
            directory,
            ca: folder.data.join("client/ca.pem"),
            binding,
            http_port,
            tls_port,
            dns,
            folder: clients,
        };
        let root = folder.write("root.pem", root.as_bytes());
        Some(Self { site, endpoint, root, openssl, verifier, server, _folder: folder })
    }

    /// Checks that the certificate is revoked, and that everybody can see it soon.
    fn revoked(&self, got: &Got) {
        let folder = self.site.folder.join("verified");
        got.material(&self.root, &folder);
        let begin = Instant::now();
        loop {
            let verdicts = self.verifier.verdicts(&folder, &["chain", "fetch-crl", "fetch-ocsp"]);
            if verdicts == [Verdict::Accepted, Verdict::Revoked, Verdict::Revoked] {
                return;
            }
            assert!(begin.elapsed() < PATIENCE, "{verdicts:?}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// lego gets, renews and revokes.
    fn lego(&self, lego: &Path, domain: &str, challenge: Challenge) {
        let call = |verb: &[&str]| {
            let mut command = self.site.lego(lego, domain, challenge);
            let output = run(command.args(verb));
            let text = stdout(&output) + &stderr(&output);
            assert!(output.status.success(), "{domain}, {challenge:?}, {verb:?}: {text}");
        };
        let got = self.site.lego_got(domain);
        let name = domain.replace('*', "any");
        call(&["run"]);
        got.check(&self.openssl, &self.root, &name);
        let first = got.serial(&self.openssl);
        call(&["renew", "--days", "9999", "--no-random-sleep"]);
        got.check(&self.openssl, &self.root, &name);
        assert_ne!(first, got.serial(&self.openssl), "not renewed");
        call(&["revoke", "--keep", "--reason", "1"]);
        self.revoked(&got);
    }

    /// certbot gets, renews and revokes.
    fn certbot(&self, certbot: &Path, domain: &str, challenge: Challenge) {
        let got = self.site.certbot_got(domain);
        succeed(&mut self.site.certbot_new(certbot, domain, challenge));
        got.check(&self.openssl, &self.root, domain);
        let first = got.serial(&self.openssl);
        let mut renew = self.site.certbot(certbot, "renew");
        renew.args(["--cert-name", domain, "--force-renewal", "--no-random-sleep-on-renew"]);
        succeed(&mut renew);
        got.check(&self.openssl, &self.root, domain);
        assert_ne!(first, got.serial(&self.openssl), "not renewed");
        let mut revoke = self.site.certbot(certbot, "revoke");
        revoke.args(["--cert-name", domain, "--reason", "superseded", "--no-delete-after-revoke"]);
        succeed(&mut revoke);
        self.revoked(&got);
    }
}

/// The role of ACME accounts.
pub fn role(folder: &Folder) {
    let trust = json!({
        "Version": "2012-10-17",
        "Statement": [{
            "Effect": "Allow",
            "Principal": { "Service": "acm-acme.amazonaws.com" },
            "Action": ["sts:AssumeRole", "sts:TagSession", "sts:SetSourceIdentity"],
        }],
    });
    let trust = folder.write("trust.json", trust.to_string().as_bytes());
    let mut create = outlast();
    create.args(["principal", "create", "acme", "--role", "--admin", "--data"]);
    succeed(create.arg(&folder.data).arg("--trust").arg(trust));
}

/// Makes an endpoint; returns its ARN, the URL of its directory, and a new binding.
pub async fn endpoint(
    session: &mut Session,
    authority: &Authority,
    behavior: &str,
) -> (String, String, (String, String)) {
    let new = json!({
        "AuthorizationBehavior": behavior, "Contact": "NOT_REQUIRED",
        "CertificateAuthority": {
            "PrivateCertificateAuthority": { "CertificateAuthorityArn": authority.arn },
        },
    });
    let made = session.call::<acm::create_acme_endpoint::CreateAcmeEndpoint>(new).await.unwrap();
    let arn = made.unwrap().acme_endpoint_arn;
    type Describe = acm::describe_acme_endpoint::DescribeAcmeEndpoint;
    let described = session.call::<Describe>(json!({ "AcmeEndpointArn": arn })).await.unwrap();
    let directory = described.unwrap().acme_endpoint.endpoint_url;
    type Bind = acm::create_acme_external_account_binding::CreateAcmeExternalAccountBinding;
    let new = json!({ "AcmeEndpointArn": arn, "RoleArn": ROLE });
    let bound = session.call::<Bind>(new).await.unwrap().unwrap().external_account_binding;
    type Credentials = acm::get_acme_external_account_binding_credentials::GetAcmeExternalAccountBindingCredentials;
    let get = json!({ "AcmeExternalAccountBindingArn": bound.acme_external_account_binding_arn });
    let found = session.call::<Credentials>(get).await.unwrap().unwrap();
    (arn, directory, (found.key_id, found.mac_key))
}

#[test]
fn lego() {
    let (Some(lego), Some(mut world)) = (peer("lego"), World::new()) else { return };
    world.lego(&lego, "http.example", Challenge::Http);
    world.lego(&lego, "tls.example", Challenge::TlsAlpn);
    world.lego(&lego, "*.dns.example", Challenge::Dns);
    // A client with another MAC key does not get an account.
    world.site.folder = world.site.folder.join("stranger");
    world.site.binding.1 = "c3RyYW5nZXItc3RyYW5nZXItc3RyYW5nZXItMTI".into();
    let mut stranger = world.site.lego(&lego, "http.example", Challenge::Http);
    let output = run(stranger.arg("run"));
    assert!(!output.status.success(), "{}", stdout(&output));
    assert!(!world.site.lego_got("http.example").chain.exists());
    assert_eq!(world.server.terminate(), Some(0));
}

#[test]
fn certbot() {
    let (Some(certbot), Some(world)) = (peer("certbot"), World::new()) else { return };
    world.certbot(&certbot, "http.example", Challenge::Http);
    world.certbot(&certbot, "dns.example", Challenge::Dns);
}

#[test]
fn caddy() {
    let (Some(caddy), Some(world)) = (peer("caddy"), World::new()) else { return };
    let running = world.site.caddy(&caddy, "caddy.example");
    running.wait(&world.openssl, &world.root);
    // The client asks when to renew (RFC 9773).
    let log = std::fs::read_to_string(&running.log).unwrap();
    assert!(log.contains("got renewal info"), "{log}");
}

/// For pre-approved names the owner of a zone proves it once, by a CNAME record.
#[test]
fn lego_without_a_challenge() {
    let (Some(lego), Some(world)) = (peer("lego"), World::with("PRE_APPROVED")) else { return };
    common::runtime().block_on(async {
        let mut session = world.server.session().await.unwrap();
        let new = json!({
            "AcmeEndpointArn": world.endpoint, "DomainName": "approved.example",
            "PrevalidationOptions": { "DnsPrevalidation": {
                "DomainScope": { "ExactDomain": "ENABLED", "Subdomains": "ENABLED" },
            } },
        });
        type Create = acm::create_acme_domain_validation::CreateAcmeDomainValidation;
        let made = session.call::<Create>(new).await.unwrap().unwrap();
        let get = json!({ "AcmeDomainValidationArn": made.acme_domain_validation_arn });
        type Describe = acm::describe_acme_domain_validation::DescribeAcmeDomainValidation;
        let begin = Instant::now();
        loop {
            let found = session.call::<Describe>(get.clone()).await.unwrap().unwrap();
            let found = found.acme_domain_validation;
            if found.status == "VALID" {
                break;
            }
            let record = found.prevalidation_details.dns_prevalidation.resource_record;
            let name = record.name.trim_end_matches('.').to_ascii_lowercase();
            world.site.dns.set(&record.kind, &name, &record.value);
            assert!(begin.elapsed() < PATIENCE, "{}", found.status);
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    });
    // The client offers challenges at a port where nothing listens, and is not asked to solve one.
    let call = |domain: &str| {
        let mut command = world.site.lego(&lego, domain, Challenge::Http);
        run(command.args(["--http.port", "127.0.0.1:0", "run"]))
    };
    let output = call("host.approved.example");
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    let got = world.site.lego_got("host.approved.example");
    got.check(&world.openssl, &world.root, "host.approved.example");
    assert!(!call("host.another.example").status.success());
    assert!(!world.site.lego_got("host.another.example").chain.exists());
}
