//! A walk through mutual TLS: an ML-DSA hierarchy from the service protects an OpenSSL server and Outlast's own
//! endpoint; clients in Rust, Go 1.27 and OpenSSL 3.5 are let in, and those who should not be are kept out.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::common;

use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::peers::{openssl, peer};
use common::pki::{New, issue, new_key, request};
use common::{Folder, Log, Server, Session, fail, outlast, runtime, stderr, stdout, succeed};
use outlast_api::ops::{acm_pca, kms};
use outlast_api::wire::Blob;
use outlast_net::client::{ClientIdentity, Connector};
use outlast_net::policy::Policy;
use outlast_net::server::system_clock;
use outlast_pki::key_forms::PrivateKey;
use outlast_pki::{crl, object, pem};
use outlast_testing::{PATIENCE, free_port};
use serde_json::{Value, json};

type Create = acm_pca::create_certificate_authority::CreateCertificateAuthority;
type Csr = acm_pca::get_certificate_authority_csr::GetCertificateAuthorityCsr;
type Issue = acm_pca::issue_certificate::IssueCertificate;
type Get = acm_pca::get_certificate::GetCertificate;
type Import =
    acm_pca::import_certificate_authority_certificate::ImportCertificateAuthorityCertificate;
type Revoke = acm_pca::revoke_certificate::RevokeCertificate;

const SPEC: &str = "ML_DSA_65";
const STRANGER: &str = "a client of another CA";
const REVOKED: &str = "a client whose certificate is revoked";

fn blob(bytes: impl Into<Vec<u8>>) -> Value {
    serde_json::to_value(Blob(bytes.into())).unwrap()
}

/// The service's side: two CAs, and the certificates that they issue.
struct Authorities<'a> {
    session: &'a mut Session,
    sub: String,
}

impl<'a> Authorities<'a> {
    /// A root, and a subordinate CA with CRLs.
    async fn make(session: &'a mut Session) -> Self {
        let mut arns = Vec::new();
        for (kind, name, revocation) in [
            ("ROOT", "Walk Root", json!({})),
            ("SUBORDINATE", "Walk CA", json!({ "CrlConfiguration": { "Enabled": true } })),
        ] {
            let new = json!({
                "CertificateAuthorityConfiguration": {
                    "KeyAlgorithm": SPEC, "SigningAlgorithm": SPEC, "Subject": { "CommonName": name },
                },
                "CertificateAuthorityType": kind,
                "RevocationConfiguration": revocation,
            });
            let made = session.call::<Create>(new).await.unwrap().unwrap();
            arns.push(made.certificate_authority_arn);
        }
        let sub = arns.pop().unwrap();
        let root = arns.pop().unwrap();
        let mut made = Self { session, sub: sub.clone() };
        for (of, template, chained) in
            [(&root, "RootCACertificate", false), (&sub, "SubordinateCACertificate_PathLen0", true)]
        {
            let get = json!({ "CertificateAuthorityArn": of });
            let csr = made.session.call::<Csr>(get).await.unwrap().unwrap().csr;
            let days = if chained { 365 } else { 3650 };
            let (certificate, chain) = made.issue(&root, &csr, template, days).await;
            let mut import =
                json!({ "CertificateAuthorityArn": of, "Certificate": blob(certificate) });
            if chained {
                import["CertificateChain"] = blob(chain);
            }
            made.session.call::<Import>(import).await.unwrap().unwrap();
        }
        made
    }

    /// Certificate and chain in PEM.
    async fn issue(&mut self, by: &str, csr: &str, template: &str, days: i64) -> (String, String) {
        let input = json!({
            "CertificateAuthorityArn": by,
            "Csr": blob(csr),
            "SigningAlgorithm": SPEC,
            "TemplateArn": format!("arn:aws:acm-pca:::template/{template}/V1"),
            "Validity": { "Type": "DAYS", "Value": days },
        });
        let arn = self.session.call::<Issue>(input).await.unwrap().unwrap().certificate_arn;
        let get = json!({ "CertificateAuthorityArn": by, "CertificateArn": arn });
        let found = self.session.call::<Get>(get).await.unwrap().unwrap();
        (found.certificate, found.certificate_chain.unwrap_or_default())
    }

    async fn revoke(&mut self, certificate: &str) {
        let der = pem::read_certificates(certificate.as_bytes()).unwrap().remove(0);
        let serial = outlast_pki::certificate::Certificate::parse(&der).unwrap();
        let input = json!({
            "CertificateAuthorityArn": self.sub,
            "CertificateSerial": hex_of(serial.serial()),
            "RevocationReason": "KEY_COMPROMISE",
        });
        self.session.call::<Revoke>(input).await.unwrap().unwrap();
    }
}

fn hex_of(bytes: &[u8]) -> String {
    let pairs: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    pairs.join(":")
}

/// The files of the walk.
struct Walk {
    folder: Folder,
    revocation_port: u16,
}

impl Walk {
    /// Makes the hierarchy with the service's own API, and puts keys and certificates into files. Then revokes
    /// `robot-2`.
    fn prepare() -> Self {
        let walk = Self { folder: Folder::new(), revocation_port: free_port() };
        let mut server = walk.serve(&[]);
        let runtime = runtime();
        let mut session = runtime.block_on(server.session()).unwrap();
        let mut authorities = runtime.block_on(Authorities::make(&mut session));
        let sub = authorities.sub.clone();
        let mut last = String::new();
        for (name, template, dns) in [
            ("server", "EndEntityServerAuthCertificate", &["localhost"][..]),
            ("robot-1", "EndEntityClientAuthCertificate", &[]),
            ("robot-2", "EndEntityClientAuthCertificate", &[]),
        ] {
            let (spec, stored, key) = new_key(SPEC);
            let csr = request(spec, key.as_ref(), name, dns);
            let (certificate, chain) =
                runtime.block_on(authorities.issue(&sub, &csr, template, 30));
            let pkcs8 = spec.to_pkcs8(&stored).unwrap();
            walk.folder.write(&format!("{name}.der"), pkcs8.expose());
            walk.folder.write(&format!("{name}.pem"), format!("{certificate}\n{chain}").as_bytes());
            let (issuer, root) = chain.split_at(chain.rfind("-----BEGIN").unwrap());
            walk.folder.write("sub.pem", issuer.as_bytes());
            walk.folder.write("root.pem", root.as_bytes());
            last = certificate;
        }
        walk.fetch_crl("before.crl", false);
        runtime.block_on(authorities.revoke(&last));
        for name in ["server", "robot-1", "robot-2", "stranger"] {
            if name == "stranger" {
                walk.write_stranger();
            }
            // OpenSSL reads each form, Go only the seed.
            let (der, key) = (walk.path(&format!("{name}.der")), walk.path(&format!("{name}.key")));
            let mut convert = outlast();
            convert.args(["cert", "convert", &der, "--to", "seed", "--out", &key]);
            succeed(&mut convert);
        }
        walk.fetch_crl("clients.crl", true);
        server.terminate();
        walk
    }

    fn serve(&self, more: &[&str]) -> Server {
        self.serve_logged(more).0
    }

    fn serve_logged(&self, more: &[&str]) -> (Server, Log) {
        let at = format!("127.0.0.1:{}", self.revocation_port);
        Server::start_logged(&self.folder.data, &[&["--revocation-listen", &at][..], more].concat())
    }

    fn path(&self, name: &str) -> String {
        self.folder.path(name).display().to_string()
    }

    /// A client with a certificate of another CA with the same name.
    fn write_stranger(&self) {
        let now = system_clock().div_euclid(1000);
        let root = issue(SPEC, New::of("RootCACertificate", "Walk CA", now), None);
        let new = New::of("EndEntityClientAuthCertificate", "stranger", now);
        let stranger = issue(SPEC, new, Some(&root));
        self.folder.write("stranger.pem", (stranger.pem() + &root.pem()).as_bytes());
        self.folder.write("stranger.der", stranger.pkcs8().expose());
    }

    /// An ECDSA certificate for the same name, and both roots in a file.
    fn write_classical(&self) {
        let now = system_clock().div_euclid(1000);
        let root = issue("ECC_NIST_P256", New::of("RootCACertificate", "Old", now), None);
        let new = New::of("EndEntityServerAuthCertificate", "localhost", now);
        let leaf = issue("ECC_NIST_P256", New { dns: &["localhost"], ..new }, Some(&root));
        self.folder.write("classical.pem", leaf.pem().as_bytes());
        self.folder.write("classical.key", leaf.key_pem().as_bytes());
        let first = std::fs::read_to_string(self.folder.path("root.pem")).unwrap();
        self.folder.write("roots.pem", format!("{first}\n{}", root.pem()).as_bytes());
    }

    /// The service publishes a CRL with the revoked certificate: `cert verify` fetches it, and for the servers it is
    /// put into a file.
    fn fetch_crl(&self, file: &str, revoked: bool) {
        let verify = |name: &str| {
            let mut command = outlast();
            command.args(["cert", "verify", &self.path(name), "--trust", &self.path("root.pem")]);
            command.args(["--purpose", "client", "--fetch", "--output", "json"]);
            command
        };
        let begun = Instant::now();
        let url = loop {
            let output = verify("robot-2.pem").output().unwrap();
            let value: Value = serde_json::from_str(&stdout(&output)).unwrap();
            let source = value["checked"]["sources"][0].as_str().map(str::to_owned);
            if let (Some(source), Some(3)) = (source.clone(), output.status.code()) {
                assert!(revoked && stderr(&output).contains("revoked"), "{}", stderr(&output));
                break source;
            }
            if let (Some(source), false) = (source, revoked) {
                break source;
            }
            assert!(begun.elapsed() < PATIENCE, "{}", stderr(&output));
            std::thread::sleep(Duration::from_millis(200));
        };
        println!("{file} was published after {:?}", begun.elapsed());
        succeed(&mut verify("robot-1.pem"));
        let der = runtime().block_on(outlast_net::fetch::get(&url)).unwrap();
        self.folder.write(file, crl::pem(&der).as_bytes());
    }

    /// Who tries, with which certificate, and whether that suffices.
    fn tries(&self) -> [(&'static str, Option<(String, String)>, bool); 4] {
        let files = |name: &str| {
            Some((self.path(&format!("{name}.pem")), self.path(&format!("{name}.key"))))
        };
        [
            ("a client with a certificate", files("robot-1"), true),
            ("a client without one", None, false),
            (STRANGER, files("stranger"), false),
            (REVOKED, files("robot-2"), false),
        ]
    }
}

/// A client: port, roots, certificate and key; returns whether it was answered.
type Client<'a> = (
    &'static str,
    Box<dyn Fn(u16, &str, Option<&(String, String)>) -> Result<String, String> + 'a>,
);

/// Every client that is installed; Rust's always is.
fn clients() -> Vec<Client<'static>> {
    let mut all: Vec<Client<'static>> = vec![("rustls", Box::new(rust_client))];
    if let Some(peer) = peer("openssl") {
        all.push((
            "OpenSSL",
            Box::new(move |port, roots, identity| {
                let mut command =
                    openssl(&peer, &["s_client", "-connect", &format!("127.0.0.1:{port}")]);
                command.args([
                    "-servername",
                    "localhost",
                    "-CAfile",
                    roots,
                    "-verify_return_error",
                    "-ign_eof",
                ]);
                if let Some((certificate, key)) = identity {
                    command.args(["-cert", certificate, "-cert_chain", certificate, "-key", key]);
                }
                ask(command)
            }),
        ));
    }
    if let Some(peer) = peer("go127") {
        all.push((
            "Go",
            Box::new(move |port, roots, identity| {
                let mut command = Command::new(peer.join("bin/pki-check"));
                command.args(["tls", "--root", roots]);
                if let Some((certificate, key)) = identity {
                    command.args(["--cert", certificate, "--key", key]);
                }
                command.arg(format!("https://localhost:{port}/healthz"));
                ask(command)
            }),
        ));
    }
    all
}

/// Runs a client with a request on its stdin; returns its output, if it was answered.
fn ask(mut command: Command) -> Result<String, String> {
    use std::io::Write;
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    // A refused client may be gone before it has read this.
    let _ = child.stdin.take().unwrap().write_all(request);
    let output = child.wait_with_output().unwrap();
    let text = stdout(&output) + &stderr(&output);
    let answered = text.contains("HTTP/1.1 200")
        || text.contains("HTTP/1.0 200")
        || text.contains("status 200");
    if answered { Ok(text) } else { Err(text) }
}

fn identity(files: &(String, String)) -> ClientIdentity {
    let chain = pem::read_certificates(&std::fs::read(&files.0).unwrap()).unwrap();
    let key = object::read(&std::fs::read(&files.1).unwrap()).unwrap();
    ClientIdentity { chain, key: PrivateKey::read(&key[0]).unwrap().to_pkcs8().unwrap() }
}

fn rust_client(port: u16, roots: &str, files: Option<&(String, String)>) -> Result<String, String> {
    let roots = pem::read_certificates(&std::fs::read(roots).unwrap()).unwrap();
    let identity = files.map(identity);
    runtime().block_on(async {
        let connector =
            Connector::with_identity(&Policy::default(), &roots, identity.as_ref()).unwrap();
        let failed = |error: outlast_net::client::ClientError| error.to_string();
        let mut connection = connector.connect("localhost", port).await.map_err(failed)?;
        let mut request = http::Request::new(Vec::new());
        *request.uri_mut() = "/healthz".parse().unwrap();
        request.headers_mut().insert("host", "localhost".parse().unwrap());
        let (status, _) = connection.send(request).await.map_err(failed)?;
        assert_eq!(status, 200);
        Ok(format!("{:?}", connection.negotiated))
    })
}

/// Every client tries everything.
fn try_all(walk: &Walk, port: u16, roots: &str, label: &str) {
    for (client, connect) in clients() {
        for (who, files, welcome) in walk.tries() {
            match (connect(port, roots, files.as_ref()), welcome) {
                (Ok(text), true) => {
                    println!("{label}, {client}: {who} was answered");
                    assert!(text.contains("MLKEM768"), "{client}: {text}");
                }
                (Err(text), false) => {
                    println!("{label}, {client}: {who} was refused: {}", text.trim());
                    let text = text.to_lowercase();
                    // Go sends no certificate if the server names other CAs.
                    let reasons = match who {
                        REVOKED => &["revoked"][..],
                        STRANGER => &["unknown ca", "unknownca", "required"],
                        _ => &["required"],
                    };
                    // s_server closes at once: a request on its way then resets the connection, and the alert may be
                    // lost.
                    let lost = label == "s_server" && client == "rustls";
                    let told = lost || reasons.iter().any(|reason| text.contains(reason));
                    assert!(told, "{label}, {client}: {who}: {text}");
                }
                (Ok(_), false) => panic!("{label}, {client}: {who} was answered"),
                (Err(text), true) => panic!("{label}, {client}: {who} was refused: {text}"),
            }
        }
    }
}

/// A process that is killed with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts `s_server`, at another port if the free one was taken in the meantime.
fn listening(command: &Command) -> (u16, Running) {
    let begun = Instant::now();
    loop {
        let port = free_port();
        let mut server = Command::new(command.get_program());
        server.args(command.get_args()).args(["-accept", &port.to_string()]);
        server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut running = Running(server.spawn().unwrap());
        while running.0.try_wait().unwrap().is_none() {
            let answers = TcpStream::connect(("127.0.0.1", port)).is_ok();
            // It may be another server's port, and then this one exits.
            std::thread::sleep(Duration::from_millis(100));
            if answers && running.0.try_wait().unwrap().is_none() {
                return (port, running);
            }
            assert!(begun.elapsed() < PATIENCE, "s_server does not listen");
        }
        assert!(begun.elapsed() < PATIENCE, "s_server ends by itself");
    }
}

#[test]
fn one_hierarchy_protects_two_services_from_every_client() {
    let walk = Walk::prepare();
    let path = |name: &str| walk.path(name);
    // OpenSSL's server.
    if let Some(peer) = peer("openssl") {
        let mut command = openssl(&peer, &["s_server", "-www", "-tls1_3"]);
        command.args(["-cert", &path("server.pem"), "-cert_chain", &path("sub.pem")]);
        command.args(["-key", &path("server.key"), "-Verify", "3", "-verify_return_error"]);
        command.args(["-CAfile", &path("root.pem"), "-CRL", &path("clients.crl"), "-crl_check"]);
        // Go 1.27 offers ML-DSA for handshakes and, because of middleboxes, not for certificates
        // (signature_algorithms_cert, go.dev/issue/82536). OpenSSL takes that literally, so for Go its server needs a
        // second, classical certificate. All clients' certificates are ML-DSA.
        walk.write_classical();
        command.args(["-dcert", &path("classical.pem"), "-dkey", &path("classical.key")]);
        let (port, _running) = listening(&command);
        try_all(&walk, port, &path("roots.pem"), "s_server");
    }
    // Outlast's own endpoint, with an ML-DSA certificate of its own.
    let settings = ["--tls-cert", "ml-dsa-65", "--client-ca", &path("root.pem")];
    let server = walk.serve(&[&settings[..], &["--client-crl", &path("clients.crl")]].concat());
    let roots = walk.folder.data.join("client/ca.pem").display().to_string();
    try_all(&walk, server.port, &roots, "Outlast");
}

#[test]
fn policies_and_records_know_the_client_certificate() {
    let walk = Walk::prepare();
    let path = |name: &str| walk.path(name);
    let server = walk.serve(&["--client-ca", &path("root.pem"), "--client-auth", "request"]);
    let port = server.port;
    let robot = (path("robot-1.pem"), path("robot-1.key"));
    let mut key = String::new();
    runtime().block_on(async {
        let connector =
            Connector::with_identity(&Policy::default(), &server.roots(), Some(&identity(&robot)));
        let mut session = server.session().await.unwrap();
        session.connection = connector.unwrap().connect("localhost", port).await.unwrap();
        let policy = json!({
            "Version": "2012-10-17",
            "Statement": [
                { "Effect": "Allow", "Principal": { "AWS": "arn:aws:iam::123456789012:root" },
                  "Action": "kms:*", "Resource": "*" },
                { "Effect": "Deny", "Principal": "*", "Action": "kms:Sign", "Resource": "*",
                  "Condition": {
                      "StringNotEquals": { "outlast:ClientCertificateSubject": "CN=robot-1" } } },
            ],
        });
        let new = json!({
            "KeySpec": "ML_DSA_44", "KeyUsage": "SIGN_VERIFY", "Policy": policy.to_string(),
        });
        let made = session.call::<kms::create_key::CreateKey>(new).await.unwrap().unwrap();
        key = made.key_metadata.arn;
        let sign = json!({
            "KeyId": key, "Message": blob("hello"), "SigningAlgorithm": "ML_DSA_SHAKE_256",
        });
        session.call::<kms::sign::Sign>(sign.clone()).await.unwrap().unwrap();
        // The same caller without the certificate.
        let mut bare = server.session().await.unwrap();
        let refused = bare.call::<kms::sign::Sign>(sign).await.unwrap().unwrap_err();
        assert_eq!(refused.code, "AccessDeniedException");
    });
    // Our own commands can show a certificate, too, by options and by the profile.
    let file = walk.folder.write("file", b"content");
    let command = |more: &[&str]| {
        let mut command = walk.folder.client(&["sign", "--key", &key, "--certificate"]);
        command.arg(path("robot-1.pem")).arg(&file);
        command.args(["--endpoint-url", &format!("https://localhost:{port}")]).args(more);
        command
    };
    // Denied before the service reads the certificate, or refused afterwards because it is not the key's.
    assert!(fail(&mut command(&[]), 1).contains("is not for the key"));
    assert!(fail(&mut command(&["--client-cert", &robot.0]), 1).contains("must be given together"));
    drop(server);
    let server = walk.serve(&["--client-ca", &path("root.pem")]);
    let endpoint = format!("https://localhost:{}", server.port);
    let list = |more: &[&str]| {
        let mut command = walk.folder.client(&["sign", "--key", "alias/none"]);
        command.arg(&file).args(["--endpoint-url", &endpoint]).args(more);
        command
    };
    let text = fail(&mut list(&["--client-cert", &robot.0, "--client-key", &robot.1]), 1);
    assert!(text.contains("is not found"), "{text}");
    let text = fail(&mut list(&[]), 1);
    assert!(text.contains("hint: the server asks for a client certificate"), "{text}");
    let config = walk.folder.data.join("client/config");
    let profile = std::fs::read_to_string(&config).unwrap();
    let more = format!("\noutlast_client_cert = {}\noutlast_client_key = {}\n", robot.0, robot.1);
    std::fs::write(&config, profile.replacen('\n', &more, 1)).unwrap();
    assert!(fail(&mut list(&[]), 1).contains("is not found"));
    drop(server);

    let data = walk.folder.data.display().to_string();
    let tail = ["audit", "tail", "-n", "100000", "--output", "json", "--data", &data];
    let events = succeed(outlast().args(tail));
    let of = |needle: &str| events.lines().filter(|line| line.contains(needle)).count();
    assert!(of("clientCertificate") >= 3, "{events}");
    let signed = events.lines().find(|line| line.contains("\"Sign\"")).unwrap();
    for expected in ["CN=robot-1", "CN=Walk CA", "serialNumber"] {
        assert!(signed.contains(expected), "{signed}");
    }
}

#[test]
fn a_newer_crl_is_taken_over_and_a_broken_one_is_not() {
    let walk = Walk::prepare();
    let settings = PathBuf::from(walk.path("data")).join("outlast.toml");
    let text = std::fs::read_to_string(&settings).unwrap();
    let live = walk.folder.path("live.crl");
    let more = format!(
        "client_ca = {:?}\nclient_auth = \"require\"\nclient_crls = [{:?}]\n",
        walk.path("root.pem"),
        live
    );
    std::fs::copy(walk.folder.path("before.crl"), &live).unwrap();
    std::fs::write(&settings, more + &text).unwrap();
    let (server, log) = walk.serve_logged(&[]);
    let roots = walk.folder.data.join("client/ca.pem").display().to_string();
    let files = |name: &str| (walk.path(&format!("{name}.pem")), walk.path(&format!("{name}.key")));
    for name in ["robot-1", "robot-2"] {
        rust_client(server.port, &roots, Some(&files(name))).unwrap();
    }
    std::fs::copy(walk.folder.path("clients.crl"), &live).unwrap();
    let begun = Instant::now();
    while rust_client(server.port, &roots, Some(&files("robot-2"))).is_ok() {
        assert!(begun.elapsed() < PATIENCE, "the newer CRL is not taken over");
        std::thread::sleep(Duration::from_millis(200));
    }
    println!("the newer CRL was taken over after {:?}", begun.elapsed());
    rust_client(server.port, &roots, Some(&files("robot-1"))).unwrap();
    // A file without any CRL cannot be used, and the previous one stays.
    std::fs::write(&live, b"nothing").unwrap();
    log.until("the client CAs and CRLs cannot be used: the previous ones stay in use", 0);
    rust_client(server.port, &roots, Some(&files("robot-1"))).unwrap();
    rust_client(server.port, &roots, Some(&files("robot-2"))).unwrap_err();
    drop(server);
    // At the start there is no previous one.
    let data = walk.folder.data.display().to_string();
    let text = fail(outlast().args(["server", "--listen", "127.0.0.1:0", "--data", &data]), 1);
    assert!(text.contains("live.crl"), "{text}");
    let bad = ["--client-ca", &walk.path("robot-1.der"), "--client-crl", &walk.path("clients.crl")];
    fail(outlast().args(["server", "--listen", "127.0.0.1:0", "--data", &data]).args(bad), 1);
    let bad = ["--client-auth", "perhaps", "--client-ca", &walk.path("root.pem")];
    let text =
        fail(outlast().args(["server", "--listen", "127.0.0.1:0", "--data", &data]).args(bad), 2);
    assert!(text.contains("use require or request"), "{text}");
}
