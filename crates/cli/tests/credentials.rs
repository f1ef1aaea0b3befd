//! `outlast credentials`, and the agent with a certificate, against a stub of Roles Anywhere that verifies signatures.

use std::net::TcpStream;
use std::process::Command;
use std::sync::{Arc, Mutex};

use http::request::Parts;
use outlast_crypto::Secret;
use outlast_crypto::encrypted;
use outlast_crypto::keys::Form;
use outlast_net::policy::Policy;
use outlast_net::server::system_clock;
use outlast_pki::object::{Kind, Object};
use outlast_testing::until;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::common::pki::{New, Party, issue};
use crate::common::stub::{Handler, Process, Reply, Stub, exchange};
use crate::common::{fail, outlast, succeed};
use crate::session_verify::verify;

const ANCHOR: &str = "arn:aws:rolesanywhere:eu-central-1:123456789012:trust-anchor/t";
const PROFILE: &str = "arn:aws:rolesanywhere:eu-central-1:123456789012:profile/p";
const ROLE: &str = "arn:aws:iam::123456789012:role/machines";
const SECRET: &str = "a-secret-of-the-tests-0123456789";

/// How the stub answers, and with which algorithm the last request was signed.
#[derive(Default)]
struct State {
    refuse: Option<(u16, &'static str)>,
    seconds: i64,
    algorithms: Vec<String>,
}

type Shared = Arc<Mutex<State>>;

fn refused(status: u16, code: &str) -> Reply {
    (status, vec![("x-amzn-errortype", code.to_owned())], json!({"message": "text"}).to_string())
}

fn service(state: &Shared) -> Handler {
    let state = state.clone();
    Box::new(move |head: &Parts, body: &[u8]| {
        let mut state = state.lock().unwrap();
        if head.uri.path() == "/" {
            // Secrets Manager, with the session's credentials.
            assert_eq!(head.headers["x-amz-security-token"], "session-token");
            let id = head.headers["authorization"].to_str().unwrap();
            assert!(id.contains("Credential=ASIAEXAMPLE"), "{id}");
            let value =
                json!({"ARN": "arn:x", "Name": "a", "VersionId": "v", "SecretString": "one"});
            return Some((200, Vec::new(), value.to_string()));
        }
        assert_eq!((head.method.as_str(), head.uri.path()), ("POST", "/sessions"));
        let query = head.uri.query().unwrap();
        assert!(query.contains("trust-anchor%2Ft") && query.contains("profile%2Fp"), "{query}");
        let verified = verify(head, body).unwrap();
        state.algorithms.push(verified.algorithm);
        if let Some((status, code)) = state.refuse {
            return Some(refused(status, code));
        }
        let end = system_clock().div_euclid(1000) + state.seconds;
        let number = state.algorithms.len();
        let value = json!({"credentialSet": [{"roleArn": ROLE, "credentials": {
            "accessKeyId": format!("ASIAEXAMPLE{number}"), "secretAccessKey": SECRET,
            "sessionToken": "session-token", "expiration": outlast_pki::time::rfc3339(end),
        }}], "subjectArn": "x"});
        Some((201, Vec::new(), value.to_string()))
    })
}

struct World {
    stub: Stub,
    state: Shared,
    root: Party,
}

impl World {
    fn new() -> Self {
        Self::with(&Policy::default())
    }

    fn with(policy: &Policy) -> Self {
        let state = Shared::default();
        state.lock().unwrap().seconds = 3600;
        let stub = Stub::with(policy, service(&state));
        let now = system_clock().div_euclid(1000);
        let root = issue("ECC_NIST_P256", New::of("RootCACertificate", "Machines", now), None);
        Self { stub, state, root }
    }

    /// Writes `machine.pem` and `machine.key`.
    fn machine(&self, spec: &str) -> Party {
        let now = system_clock().div_euclid(1000);
        let new = New::of("EndEntityClientAuthCertificate", "machine", now);
        let party = issue(spec, new, Some(&self.root));
        self.stub.write("machine.pem", party.pem() + &self.root.pem());
        self.stub.write("machine.key", party.key_pem());
        party
    }

    fn command(&self, name: &str) -> Command {
        let mut command = outlast();
        command.args(["credentials", name, "--endpoint-url", &self.stub.url()]);
        command.args(["--region", "eu-central-1", "--ca-bundle"]).arg(self.stub.path("ca.pem"));
        command.arg("--certificate").arg(self.stub.path("machine.pem"));
        command.env("OUTLAST_PRIVATE_KEY", self.stub.path("machine.key"));
        command.args(["--trust-anchor-arn", ANCHOR, "--profile-arn", PROFILE]);
        command.args(["--role-arn", ROLE]).env("HOME", self.stub.folder.path());
        command
    }

    fn process(&self) -> Value {
        serde_json::from_str(&succeed(&mut self.command("process"))).unwrap()
    }

    fn last(&self) -> String {
        self.state.lock().unwrap().algorithms.last().cloned().unwrap_or_default()
    }
}

#[test]
fn every_kind_of_key_gets_credentials() {
    let world = World::new();
    for (spec, algorithm) in [
        ("ML_DSA_44", "AWS4-X509-MLDSA"),
        ("ML_DSA_65", "AWS4-X509-MLDSA"),
        ("ML_DSA_87", "AWS4-X509-MLDSA"),
        ("ECC_NIST_P256", "AWS4-X509-ECDSA-SHA256"),
        ("ECC_NIST_P384", "AWS4-X509-ECDSA-SHA256"),
        ("RSA_2048", "AWS4-X509-RSA-SHA256"),
    ] {
        world.machine(spec);
        let found = world.process();
        assert_eq!(found["Version"], 1, "{spec}");
        assert!(found["AccessKeyId"].as_str().unwrap().starts_with("ASIAEXAMPLE"));
        assert_eq!(
            (&found["SecretAccessKey"], &found["SessionToken"]),
            (&json!(SECRET), &json!("session-token"))
        );
        assert!(found["Expiration"].as_str().unwrap().ends_with('Z'));
        assert_eq!(world.last(), algorithm, "{spec}");
    }
}

fn pem(kind: Kind, der: Vec<u8>) -> String {
    let text = Object { kind, der: Secret::new(der) }.to_pem().unwrap();
    String::from_utf8(text.expose().to_vec()).unwrap()
}

#[test]
fn every_form_of_key_gets_credentials() {
    let world = World::new();
    let party = world.machine("ML_DSA_65");
    for form in [Form::Seed, Form::Expanded, Form::Both] {
        let der = party.spec.to_form(&party.stored, form).unwrap();
        world.stub.write("machine.key", pem(Kind::PrivateKey, der.expose().to_vec()));
        assert!(world.process()["AccessKeyId"].is_string(), "{}", form.name());
    }
    let passphrase = Secret::new(b"correct horse battery".to_vec());
    let sealed = encrypted::encrypt_pbkdf2(&party.pkcs8(), &passphrase).unwrap();
    world.stub.write("machine.key", pem(Kind::EncryptedPrivateKey, sealed));
    let file = world.stub.write("passphrase", "correct horse battery\n");
    let text = fail(&mut world.command("process"), 1);
    assert!(
        text.contains("has a passphrase") && text.contains("hint: give --passphrase-file"),
        "{text}"
    );
    succeed(world.command("process").arg("--passphrase-file").arg(&file));
    world.stub.write("passphrase", "wrong");
    let text = fail(world.command("process").arg("--passphrase-file").arg(&file), 1);
    assert!(text.contains("the passphrase is wrong"), "{text}");
    // SEC 1 and PKCS #1, as OpenSSL writes them.
    for (spec, label) in [("ECC_NIST_P256", "EC PRIVATE KEY"), ("RSA_2048", "RSA PRIVATE KEY")] {
        world.machine(spec);
        let key = world.stub.path("machine.key");
        let old = succeed(Command::new("openssl").args(["pkey", "-traditional", "-in"]).arg(&key));
        assert!(old.contains(label), "{old}");
        world.stub.write("machine.key", old);
        assert!(world.process()["AccessKeyId"].is_string(), "{spec}");
    }
}

/// The private key is in a token, which signs.
#[test]
fn a_key_in_a_token_gets_credentials() {
    let Some(peer) = outlast_testing::peer("softhsm") else { return };
    let world = World::new();
    let module = peer.join("lib/libsofthsm2.so");
    std::fs::create_dir(world.stub.path("tokens")).unwrap();
    let tokens = format!("directories.tokendir = {}\n", world.stub.path("tokens").display());
    let configuration = world.stub.write("softhsm2.conf", tokens);
    let tool = |arguments: &[&str]| {
        let mut command = Command::new(peer.join("bin/softhsm2-util"));
        succeed(command.args(arguments).env("SOFTHSM2_CONF", &configuration))
    };
    tool(&[
        "--init-token",
        "--free",
        "--label",
        "Machines",
        "--pin",
        "123456",
        "--so-pin",
        "12345678",
    ]);
    let pin = world.stub.write("pin", "123456\n");
    let uri = |object: &str, pin: &str| {
        format!(
            "pkcs11:token=Machines;object={object}?module-path={}&pin-source=file:{pin}",
            module.display()
        )
    };
    let process = |uri: &str| {
        let mut command = world.command("process");
        // The option comes before the variable.
        command.args(["--private-key", uri]).env("SOFTHSM2_CONF", &configuration);
        command
    };
    let good = pin.display().to_string();
    for (index, (spec, algorithm)) in
        [("ECC_NIST_P256", "AWS4-X509-ECDSA-SHA256"), ("RSA_2048", "AWS4-X509-RSA-SHA256")]
            .into_iter()
            .enumerate()
    {
        world.machine(spec);
        let (key, id) = (world.stub.path("machine.key"), format!("0{index}"));
        let key = key.to_str().unwrap();
        tool(&[
            "--import", key, "--token", "Machines", "--label", spec, "--id", &id, "--pin", "123456",
        ]);
        let found: Value = serde_json::from_str(&succeed(&mut process(&uri(spec, &good)))).unwrap();
        assert!(found["AccessKeyId"].is_string(), "{spec}");
        assert_eq!(world.last(), algorithm);
    }
    // The certificate in the file is that of the RSA key.
    let text = fail(&mut process(&uri("ECC_NIST_P256", &good)), 1);
    assert!(text.contains("cannot be used"), "{text}");
    let text = fail(&mut process(&uri("nothing", &good)), 1);
    assert!(text.contains("no private key with this label"), "{text}");
    let wrong = world.stub.write("wrong", "98765432").display().to_string();
    let text = fail(&mut process(&uri("RSA_2048", &wrong)), 1);
    assert!(text.contains("cannot be used") && !text.contains("98765432"), "{text}");
    let text = fail(&mut process("pkcs11:object=x"), 1);
    assert!(text.contains("module-path is missing"), "{text}");
    world.machine("ML_DSA_65");
    let text = fail(&mut process(&uri("RSA_2048", &good)), 1);
    assert!(text.contains("RSA and EC keys only") && text.contains("hint:"), "{text}");
}

#[test]
fn refusals_and_mistakes_say_what_to_do() {
    let world = World::new();
    let other = world.machine("ECC_NIST_P256");
    world.machine("ECC_NIST_P256");
    world.stub.write("machine.key", other.key_pem());
    let text = fail(&mut world.command("process"), 1);
    assert!(text.contains("not for this private key") && text.contains("hint:"), "{text}");
    world.machine("ML_DSA_65");
    world.state.lock().unwrap().refuse = Some((403, "AccessDeniedException"));
    let text = fail(&mut world.command("process"), 1);
    assert!(
        text.contains("AccessDeniedException: text")
            && text.contains("hint: check that the trust anchor"),
        "{text}"
    );
    world.state.lock().unwrap().refuse = Some((503, "ServiceUnavailable"));
    let text = fail(&mut world.command("process"), 1);
    assert!(text.contains("cannot be reached"), "{text}");
    world.stub.down(true);
    let text = fail(&mut world.command("process"), 1);
    assert!(text.contains("cannot be reached"), "{text}");
    let mut command = outlast();
    let text =
        fail(command.args(["credentials", "process", "--endpoint-url", "https://localhost"]), 1);
    assert!(text.contains("--trust-anchor-arn is missing"), "{text}");
    let now = system_clock().div_euclid(1000);
    let new = New { days: 1, ..New::of("EndEntityClientAuthCertificate", "old", now - 3 * 86_400) };
    let old = issue("ECC_NIST_P256", new, Some(&world.root));
    world.stub.write("machine.pem", old.pem());
    world.stub.write("machine.key", old.key_pem());
    let text = fail(&mut world.command("process"), 1);
    assert!(text.contains("certificate ended at"), "{text}");
    assert_eq!(
        world.command("process").args(["--session-duration", "5"]).output().unwrap().status.code(),
        Some(2)
    );
}

#[test]
fn a_classical_service_is_refused_unless_it_is_preferred_only() {
    let world = World::with(&Policy::classical());
    world.machine("ML_DSA_65");
    let text = fail(&mut world.command("process"), 1);
    assert!(text.contains("no post-quantum group"), "{text}");
    succeed(world.command("process").args(["--mode", "prefer"]));
}

#[test]
fn a_metadata_service_gives_credentials_to_those_with_a_token() {
    let world = World::new();
    world.machine("ML_DSA_65");
    let mut command = world.command("serve");
    let process = Process::start(command.args(["--port", "0"]), 2, world.stub.folder.path());
    let port = process.port("listening on http://127.0.0.1:");
    assert!(
        process.lines[1].starts_with("export AWS_EC2_METADATA_SERVICE_ENDPOINT=http://127.0.0.1:")
    );
    let send = |method: &str, path: &str, headers: &str| {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\nContent-Length: 0\r\n{headers}\r\n"
        );
        exchange(stream, &request)
    };
    let role = "/latest/meta-data/iam/security-credentials/";
    assert_eq!(send("GET", role, "").0, 401);
    let ttl = "X-aws-ec2-metadata-token-ttl-seconds: 60\r\n";
    let (status, head, token) = send("PUT", "/latest/api/token", ttl);
    assert_eq!(status, 200);
    assert!(head.contains("x-aws-ec2-metadata-token-ttl-seconds: 60"), "{head}");
    let shown = format!("X-aws-ec2-metadata-token: {token}\r\n");
    assert_eq!(send("GET", role, &shown).2, "machines");
    let document = send("GET", &format!("{role}machines"), &shown).2;
    let value: Value = serde_json::from_str(&document).unwrap();
    assert_eq!(
        (&value["Code"], &value["AccessKeyId"]),
        (&json!("Success"), &json!("ASIAEXAMPLE1"))
    );
    // A session that is long enough is used again.
    send("GET", &format!("{role}machines"), &shown);
    assert_eq!(world.state.lock().unwrap().algorithms.len(), 1);
    process.signal(Signal::TERM);
    drop(process);
    world.state.lock().unwrap().refuse = Some((403, "AccessDeniedException"));
    let text = fail(world.command("serve").args(["--port", "0"]), 1);
    assert!(text.contains("AccessDeniedException"), "{text}");
}

/// boto3 finds the service by its variable alone.
#[test]
fn boto3_reads_the_metadata_service() {
    let has = Command::new("python3").args(["-c", "import botocore"]).output();
    if !has.is_ok_and(|output| output.status.success()) {
        return outlast_testing::skip("python3 has no botocore");
    }
    let world = World::new();
    world.machine("ML_DSA_65");
    let mut command = world.command("serve");
    let process = Process::start(command.args(["--port", "0"]), 2, world.stub.folder.path());
    let port = process.port("listening on http://127.0.0.1:");
    let script = "import botocore.session as s; c = s.Session().get_credentials().get_frozen_credentials(); print(c.access_key, c.secret_key, c.token)";
    let mut python = Command::new("python3");
    python.args(["-c", script]).env("HOME", world.stub.folder.path());
    for name in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"] {
        python.env_remove(name);
    }
    python.env("AWS_EC2_METADATA_SERVICE_ENDPOINT", format!("http://127.0.0.1:{port}/"));
    assert_eq!(succeed(&mut python).trim(), format!("ASIAEXAMPLE1 {SECRET} session-token"));
    // The same by a profile with credential_process.
    let line: Vec<String> = std::iter::once(env!("CARGO_BIN_EXE_outlast").to_owned())
        .chain(world.command("process").get_args().map(|word| word.to_string_lossy().into_owned()))
        .collect();
    let key = world.stub.path("machine.key");
    let line = format!("{} --private-key {}", line.join(" "), key.display());
    let config =
        world.stub.write("config", format!("[profile web]\ncredential_process = {line}\n"));
    let mut python = Command::new("python3");
    python.args(["-c", script]).env("AWS_CONFIG_FILE", config).env("AWS_PROFILE", "web");
    assert_eq!(succeed(&mut python).trim(), format!("ASIAEXAMPLE2 {SECRET} session-token"));
}

#[test]
fn the_credentials_file_is_updated_and_the_rest_of_it_stays() {
    let world = World::new();
    world.machine("ML_DSA_65");
    let file = world
        .stub
        .write("credentials", "# mine\n[default]\naws_access_key_id = kept\n[web]\nregion = x\n");
    let mut command = world.command("update");
    command.args(["--profile", "web"]).env("AWS_SHARED_CREDENTIALS_FILE", &file);
    let text = succeed(command.arg("--once"));
    assert_eq!(text.trim(), format!("wrote profile web in {}", file.display()));
    let expected = |number: usize| {
        format!(
            "# mine\n[default]\naws_access_key_id = kept\n[web]\naws_access_key_id = ASIAEXAMPLE{number}\n\
             aws_secret_access_key = {SECRET}\naws_session_token = session-token\nregion = x\n"
        )
    };
    assert_eq!(std::fs::read_to_string(&file).unwrap(), expected(1));
    use std::os::unix::fs::MetadataExt as _;
    assert_eq!(std::fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
    // Without --once it stays; a session that ends soon is renewed at SIGHUP.
    world.state.lock().unwrap().seconds = 100;
    let mut command = world.command("update");
    command.args(["--profile", "web"]).env("AWS_SHARED_CREDENTIALS_FILE", &file);
    let process = Process::start(&mut command, 1, world.stub.folder.path());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), expected(2));
    until("it was renewed", || std::fs::read_to_string(&file).unwrap() == expected(3));
    drop(process);
}

#[test]
fn the_agent_gets_its_credentials_by_a_certificate() {
    let world = World::new();
    world.machine("ML_DSA_65");
    world.state.lock().unwrap().seconds = 200;
    let text = format!(
        "endpoint_url = '{}'\nregion = 'eu-central-1'\nca_bundle = 'ca.pem'\nhttp_port = 0\nttl_seconds = 1\n\
         [roles_anywhere]\ncertificate = 'machine.pem'\nprivate_key = 'machine.key'\n\
         trust_anchor_arn = '{ANCHOR}'\nprofile_arn = '{PROFILE}'\nrole_arn = '{ROLE}'\n",
        world.stub.url()
    );
    let config = world.stub.write("agent.toml", text);
    let mut command = outlast();
    command.args(["agent", "--config"]).arg(config).env("AWS_TOKEN", "t");
    let agent = Process::start(command.env("HOME", "/"), 1, world.stub.folder.path());
    let port = agent.port("listening on http://127.0.0.1:");
    let get = || {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let request =
            "GET /v1/a HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Vault-Token: t\r\n\r\n";
        let (status, _, body) = exchange(stream, request);
        (status, body)
    };
    let (status, body) = get();
    assert!(status == 200 && body.contains("\"one\""), "{status} {body}");
    // The service away: the session, and then the secret, are used for a while.
    world.state.lock().unwrap().refuse = Some((503, "ServiceUnavailable"));
    std::thread::sleep(std::time::Duration::from_millis(1_200));
    assert_eq!(get().0, 200);
    // The certificate revoked: nothing is served any more, though the session has not ended.
    world.state.lock().unwrap().refuse = Some((403, "AccessDeniedException"));
    until("the revocation is noticed", || get().0 == 403);
    assert!(get().1.contains("AccessDeniedException"));
    world.stub.down(true);
    until("nothing is kept", || get().0 == 502);
}
