//! SSH certificates with OpenSSH: those that are issued here, those that the SFTP door takes, and revocation lists.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may fail and print"
)]

mod krl;

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use base64::Engine as _;
use outlast_api::ops::kms::{create_alias, create_key};
use outlast_api::ops::transfer::{create_server, create_user};
use serde_json::{Value, json};

use crate::common::peers::peer;
use crate::common::{
    self, Folder, Identity, Server, Session, fail, outlast, run, stderr, stdout, succeed,
};

const ACCOUNT: &str = "123456789012";

/// A service, and OpenSSH's programs.
struct Scene {
    folder: Folder,
    server: Server,
    openssh: PathBuf,
}

/// An agent; ended when dropped.
struct Agent {
    child: Child,
    socket: PathBuf,
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Scene {
    /// `None` if there is no OpenSSH.
    fn new() -> Option<Self> {
        let openssh = peer("openssh")?;
        let folder = Folder::new();
        let server = folder.serve();
        Some(Self { folder, server, openssh })
    }

    /// The same with SFTP for the users `alice` and `bob` without keys, and with a file of trusted authorities and a list of
    /// revoked keys. The authority `local` is trusted.
    fn with_sftp() -> Option<Self> {
        let openssh = peer("openssh")?;
        let folder = Folder::new();
        for (name, content) in [("trusted", ""), ("revoked", ""), ("host-cert.pub", "")] {
            folder.write(name, content.as_bytes());
        }
        let keygen = |name: &str| {
            let mut make = Command::new(openssh.join("10.0/bin/ssh-keygen"));
            make.args(["-q", "-t", "ed25519", "-N", "", "-C", "", "-f"]).arg(folder.path(name));
            succeed(&mut make);
        };
        keygen("local");
        keygen("host");
        std::fs::copy(folder.path("local.pub"), folder.path("trusted")).unwrap();
        let mut certify = Command::new(openssh.join("10.0/bin/ssh-keygen"));
        certify.args(["-q", "-s"]).arg(folder.path("local")).args([
            "-h",
            "-I",
            "sftp",
            "-n",
            "sftp.example",
        ]);
        succeed(certify.arg(folder.path("host.pub")));
        let path = |name: &str| folder.path(name).display().to_string();
        let server = Server::start(
            &folder.data,
            &[
                "--sftp-listen",
                "127.0.0.1:0",
                "--sftp-trusted-user-ca-keys",
                &path("trusted"),
                "--sftp-revoked-keys",
                &path("revoked"),
                "--sftp-host-certificate",
                &path("host-cert.pub"),
            ],
        );
        let scene = Self { folder, server, openssh };
        let trust = json!({ "Version": "2012-10-17", "Statement": [{
            "Effect": "Allow", "Principal": { "Service": "transfer.amazonaws.com" }, "Action": "sts:AssumeRole",
        }] });
        let policy = json!({ "Version": "2012-10-17", "Statement": [{
            "Effect": "Allow", "Action": "s3:*", "Resource": "*",
        }] });
        scene.role("files", &trust, &policy);
        let host = std::fs::read_to_string(scene.folder.path("host")).unwrap();
        scene.call(async |session| {
            let new = json!({
                "Protocols": ["SFTP"], "SecurityPolicyName": "2026-11", "HostKey": host,
            });
            let made = session.call::<create_server::CreateServer>(new).await.unwrap().unwrap();
            for name in ["alice", "bob"] {
                let new = json!({
                    "ServerId": made.server_id, "UserName": name, "HomeDirectory": "/files/home",
                    "Role": format!("arn:aws:iam::{ACCOUNT}:role/files"),
                });
                session.call::<create_user::CreateUser>(new).await.unwrap().unwrap();
            }
        });
        Some(scene)
    }

    fn call<T>(&self, work: impl AsyncFnOnce(&mut Session) -> T) -> T {
        common::runtime().block_on(async {
            let mut session = self.server.session().await.unwrap();
            work(&mut session).await
        })
    }

    /// A KMS key with these tags and an alias; returns its ARN.
    fn authority(&self, name: &str, spec: &str, tags: &[(&str, &str)]) -> String {
        let tag = |(key, value): &(&str, &str)| json!({ "TagKey": key, "TagValue": value });
        let tags: Vec<_> = tags.iter().map(tag).collect();
        let new = json!({ "KeySpec": spec, "KeyUsage": "SIGN_VERIFY", "Tags": tags });
        self.call(async |session| {
            let made = session.call::<create_key::CreateKey>(new).await.unwrap().unwrap();
            let arn = made.key_metadata.arn;
            let alias = json!({ "AliasName": format!("alias/{name}"), "TargetKeyId": arn });
            session.call::<create_alias::CreateAlias>(alias).await.unwrap().unwrap();
            arn
        })
    }

    /// `outlast ssh` as the administrator.
    fn ssh(&self, arguments: &[&str]) -> Command {
        self.folder.client_at(&self.server, &[&["ssh"], arguments].concat())
    }

    /// A user with this policy; returns the variables of its access key.
    fn user(&self, name: &str, policy: &Value) -> [(&'static str, String); 2] {
        let policy = self.folder.write("user.json", policy.to_string().as_bytes());
        let mut create = outlast();
        create
            .args(["principal", "create", name, "--output", "json", "--data"])
            .arg(&self.folder.data);
        let made = succeed(create.arg("--policy-file").arg(policy));
        let key = Identity::printed(&serde_json::from_str(&made).unwrap());
        [("AWS_ACCESS_KEY_ID", key.id), ("AWS_SECRET_ACCESS_KEY", key.secret)]
    }

    /// A role with these policies.
    fn role(&self, name: &str, trust: &Value, policy: &Value) {
        let trust = self.folder.write("trust.json", trust.to_string().as_bytes());
        let policy = self.folder.write("policy.json", policy.to_string().as_bytes());
        let mut create = outlast();
        create.args(["principal", "create", "--role", name, "--data"]).arg(&self.folder.data);
        succeed(create.arg("--trust-policy-file").arg(trust).arg("--policy-file").arg(policy));
    }

    /// An authority in KMS, `alias/ca`, whose certificates log users in.
    fn trusted_authority(&self) {
        self.authority("ca", "ECC_NIST_P256", &[("outlast:ssh-ca", "user")]);
        let line = succeed(&mut self.ssh(&["ca-key", "--key", "alias/ca"]));
        let trusted = std::fs::read_to_string(self.folder.path("trusted")).unwrap();
        self.folder.write("trusted", format!("{trusted}{line}").as_bytes());
    }

    /// A program of an OpenSSH, in the folder of the scene.
    fn tool(&self, version: &str, name: &str) -> Command {
        let bin = self.openssh.join(version).join("bin");
        let mut command = Command::new(bin.join(name));
        command.env_remove("SSH_AUTH_SOCK").current_dir(self.folder.temporary.path());
        if name == "sftp" {
            command.arg("-S").arg(bin.join("ssh"));
        }
        command
    }

    fn keygen(&self, arguments: &[&str]) -> String {
        succeed(self.tool("10.6", "ssh-keygen").args(arguments))
    }

    /// A new key pair of OpenSSH's.
    fn key(&self, name: &str, kind: &str) {
        self.keygen(&["-q", "-t", kind, "-N", "", "-C", "", "-f", name]);
    }

    /// A certificate `user-cert.pub` for the key `user` by the authority in a file.
    fn certify(&self, authority: &str, arguments: &[&str]) {
        self.keygen(&[&["-q", "-s", authority], arguments, &["user.pub"]].concat());
    }

    fn agent(&self, version: &str) -> Agent {
        let socket = self.folder.path(&format!("agent-{version}"));
        let mut start = self.tool(version, "ssh-agent");
        start.args(["-D", "-a"]).arg(&socket).stdout(Stdio::null());
        let child = start.spawn().unwrap();
        let agent = Agent { child, socket };
        outlast_testing::until("the agent", || agent.socket.exists());
        agent
    }

    /// Lists the root of `alice`, whose key is in the agent or in the file `user`.
    fn sftp(&self, version: &str, user: &str, agent: Option<&Agent>, options: &[&str]) -> Output {
        let batch = self.folder.write("batch", b"pwd\n");
        let port = self.server.sftp.unwrap().to_string();
        let mut command = self.tool(version, "sftp");
        command.args(["-F", "none", "-P", &port, "-b"]).arg(batch);
        for option in ["PasswordAuthentication=no", "BatchMode=yes", "LogLevel=ERROR"] {
            command.args(["-o", option]);
        }
        if !options.iter().any(|option| option.starts_with("StrictHostKeyChecking")) {
            command.args(["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"]);
        }
        for option in options {
            command.args(["-o", option]);
        }
        match agent {
            Some(agent) => command.env("SSH_AUTH_SOCK", &agent.socket),
            None => command.args(["-o", "IdentitiesOnly=yes", "-i", "user"]),
        };
        run(command.arg(format!("{user}@127.0.0.1")))
    }

    /// Additional data of the audit events of SFTP.
    fn events(&self, kind: &str) -> Vec<Value> {
        let told = self.folder.sftp_events().into_iter();
        told.filter(|told| told["activity-type"] == kind).collect()
    }
}

#[track_caller]
fn contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
}

fn json_of(command: &mut Command) -> Value {
    serde_json::from_str(&succeed(command.args(["--output", "json"]))).unwrap()
}

/// `ssh-keygen -L` reads certificates of each kind of authority, and sees in them what was asked for.
#[test]
fn certificates_are_those_of_ssh_keygen() {
    let Some(scene) = Scene::new() else { return };
    let both = ("outlast:ssh-ca", "user host");
    let second = scene.authority("second", "ECC_NIST_EDWARDS25519", &[both]);
    for (name, spec, key_type) in [
        ("p256", "ECC_NIST_P256", "ecdsa-sha2-nistp256"),
        ("p384", "ECC_NIST_P384", "ecdsa-sha2-nistp384"),
        ("p521", "ECC_NIST_P521", "ecdsa-sha2-nistp521"),
        ("ed25519", "ECC_NIST_EDWARDS25519", "ssh-ed25519"),
        ("rsa", "RSA_3072", "ssh-rsa"),
        ("composite", "ML_DSA_44", "ssh-mldsa44-ed25519"),
    ] {
        let tags: &[_] = match name {
            "composite" => &[both, ("outlast:second-key-arn", &second)],
            _ => &[both],
        };
        scene.authority(name, spec, tags);
        let alias = format!("alias/{name}");
        let line = succeed(&mut scene.ssh(&["ca-key", "--key", &alias]));
        assert!(line.starts_with(&format!("{key_type} ")), "{line}");
        let ca = format!("{name}-ca.pub");
        scene.folder.write(&ca, line.as_bytes());
        let fingerprint = scene.keygen(&["-l", "-f", &ca]);
        let fingerprint = fingerprint.split_whitespace().nth(1).unwrap().to_owned();
        let (user, host) = (format!("{name}-user"), format!("{name}-host"));
        scene.key(&user, if name == "composite" { "mldsa44-ed25519" } else { "ed25519" });
        scene.key(&host, "ecdsa");
        let mut sign = scene.ssh(&["sign", &format!("{user}.pub"), "--key", &alias]);
        sign.args(["-n", "alice,ops", "-I", "alice@work", "-V", "-1m:+1h", "-z", "77"]);
        sign.args([
            "-O",
            "no-x11-forwarding",
            "-O",
            "source-address=127.0.0.0/8",
            "-O",
            "force-command=true",
        ]);
        let made = json_of(&mut sign);
        assert_eq!(made[0]["serial"], "77");
        assert_eq!(made[0]["authorityFingerprint"], fingerprint);
        let shown = scene.keygen(&["-L", "-f", &format!("{user}-cert.pub")]);
        contains(
            &shown,
            &[
                "user certificate",
                &fingerprint,
                "Key ID: \"alice@work\"",
                "Serial: 77",
                "        alice\n",
                "        ops\n",
                "force-command true",
                "source-address 127.0.0.0/8",
                "permit-pty",
                "permit-port-forwarding",
            ],
        );
        assert!(!shown.contains("permit-X11-forwarding"), "{shown}");
        let mut sign = scene.ssh(&["sign", "--host", &format!("{host}.pub"), "--key", &alias]);
        succeed(sign.args(["-n", "a.example.com"]));
        let shown = scene.keygen(&["-L", "-f", &format!("{host}-cert.pub")]);
        contains(&shown, &["host certificate", "        a.example.com\n", "Extensions: (none)"]);
    }
    let line = succeed(&mut scene.ssh(&[
        "ca-key",
        "--key",
        "alias/p256",
        "--known-hosts",
        "*.example.com",
    ]));
    assert!(line.starts_with("@cert-authority *.example.com ecdsa-sha2-nistp256 "), "{line}");
    // Trusting the key of something else would not help anybody.
    scene.authority("other", "ECC_NIST_P256", &[]);
    let refused = fail(&mut scene.ssh(&["ca-key", "--key", "alias/other"]), 1);
    contains(&refused, &["is not an SSH certificate authority", "hint: ", "outlast:ssh-ca"]);
}

/// A certificate of the same key is replaced, anything else is not.
#[test]
fn files_are_not_overwritten_unasked() {
    let Some(scene) = Scene::new() else { return };
    scene.authority("ca", "ECC_NIST_P256", &[("outlast:ssh-ca", "user")]);
    scene.key("one", "ed25519");
    scene.key("two", "ed25519");
    let sign = |more: &[&str]| {
        let mut command =
            scene.ssh(&["sign", "one.pub", "two.pub", "--key", "alias/ca", "-n", "a"]);
        run(command.args(more))
    };
    let read = |name: &str| std::fs::read_to_string(scene.folder.path(name)).unwrap();
    assert!(sign(&[]).status.success());
    let first = read("one-cert.pub");
    assert!(sign(&[]).status.success());
    assert_ne!(read("one-cert.pub"), first);
    std::fs::copy(scene.folder.path("one-cert.pub"), scene.folder.path("two-cert.pub")).unwrap();
    let before = read("one-cert.pub");
    let refused = sign(&[]);
    contains(&stderr(&refused), &["two-cert.pub", "exists already", "--force"]);
    assert_eq!(read("one-cert.pub"), before, "nothing is issued unless all can be written");
    assert!(sign(&["--force", "-z", "9"]).status.success());
    contains(&scene.keygen(&["-L", "-f", "two-cert.pub"]), &["Serial: 10"]);
    for (more, code) in
        [(&["-V", "always:forever"][..], 2), (&["-z", "9223372036854775807"], 2), (&["-O", "x"], 2)]
    {
        assert_eq!(sign(more).status.code(), Some(code), "{more:?}");
    }
}

/// A user who may do nothing but ask for certificates logs in with one, by an agent.
#[test]
fn a_login_puts_a_certificate_into_the_agent() {
    let Some(scene) = Scene::with_sftp() else { return };
    scene.trusted_authority();
    let policy = json!({ "Version": "2012-10-17", "Statement": [{
        "Effect": "Allow", "Action": "outlast:SignSshCertificate", "Resource": "*",
        "Condition": {
            "ForAllValues:StringEquals": { "outlast:SshPrincipals": "${aws:username}" },
            "NumericLessThanEquals": { "outlast:SshValiditySeconds": "3600" },
        },
    }] });
    let alice = scene.user("alice", &policy);
    let login = |agent: &Agent, more: &[&str]| {
        let mut command = scene.ssh(&["login", "--key", "alias/ca"]);
        command.args(more).env("SSH_AUTH_SOCK", &agent.socket).envs(alice.clone());
        command
    };
    for (version, algorithms) in
        [("10.0", &["ssh-ed25519"][..]), ("10.6", &["ssh-ed25519", "ssh-mldsa44-ed25519"])]
    {
        let agent = scene.agent(version);
        for algorithm in algorithms {
            let files = std::fs::read_dir(scene.folder.temporary.path()).unwrap().count();
            let made = json_of(&mut login(&agent, &["-V", "+1h", "--algorithm", algorithm]));
            let now = std::fs::read_dir(scene.folder.temporary.path()).unwrap().count();
            assert_eq!(files, now, "a login writes no file");
            assert_eq!(made["principals"], json!(["alice"]));
            let add = |argument: &str| {
                let mut add = scene.tool(version, "ssh-add");
                add.arg(argument).env("SSH_AUTH_SOCK", &agent.socket);
                succeed(&mut add)
            };
            contains(&add("-L"), &[&format!("{algorithm}-cert")]);
            let output = scene.sftp(version, "alice", Some(&agent), &[]);
            assert!(output.status.success(), "{}", stderr(&output));
            contains(&stdout(&output), &["/files/home"]);
            let last = scene.events("CONNECTED").pop().unwrap();
            assert_eq!(last["ssh-certificate-serial"], made["serial"]);
            assert_eq!(
                last["ssh-certificate-key-id"],
                format!("arn:aws:iam::{ACCOUNT}:user/alice")
            );
            assert_eq!(last["ssh-certificate-authority-fingerprint"], made["authorityFingerprint"]);
            let other = scene.sftp(version, "bob", Some(&agent), &[]);
            assert!(!other.status.success(), "alice is not bob");
            add("-D");
        }
        // The server decides, and the agent is asked first.
        for more in [&["-V", "+1h", "-n", "root"][..], &["-V", "+2h"], &[]] {
            let refused = run(&mut login(&agent, more));
            contains(&stderr(&refused), &["AccessDenied"]);
        }
        // The agent forgets the key when the certificate ends.
        succeed(&mut login(&agent, &["-V", "+2s"]));
        let list = || {
            let mut add = scene.tool(version, "ssh-add");
            stdout(&run(add.arg("-L").env("SSH_AUTH_SOCK", &agent.socket)))
        };
        outlast_testing::until("the agent forgets", || !list().contains("-cert"));
    }
    let mut lost = scene.ssh(&["login", "--key", "alias/ca", "--agent", "nobody"]);
    let lost = run(lost.envs(alice.clone()));
    contains(&stderr(&lost), &["nobody", "ssh-agent"]);
}

/// A session of a role logs in as its source identity, which the role's trust policy holds to the user's own name.
#[test]
fn a_session_of_a_role_logs_in_as_its_source_identity() {
    let Some(scene) = Scene::with_sftp() else { return };
    scene.trusted_authority();
    let role = format!("arn:aws:iam::{ACCOUNT}:role/ops");
    let actions = json!(["sts:AssumeRole", "sts:SetSourceIdentity"]);
    let trust = json!({ "Version": "2012-10-17", "Statement": [{
        "Effect": "Allow", "Action": actions,
        "Principal": { "AWS": format!("arn:aws:iam::{ACCOUNT}:root") },
        "Condition": { "StringEquals": { "sts:SourceIdentity": "${aws:username}" } },
    }] });
    let rights = json!({ "Version": "2012-10-17", "Statement": [{
        "Effect": "Allow", "Action": "outlast:SignSshCertificate", "Resource": "*",
        "Condition": {
            "ForAllValues:StringEquals": { "outlast:SshPrincipals": "${aws:SourceIdentity}" },
        },
    }] });
    scene.role("ops", &trust, &rights);
    let may_assume = json!({ "Version": "2012-10-17", "Statement": [{
        "Effect": "Allow", "Action": actions, "Resource": role,
    }] });
    let [(_, id), (_, secret)] = scene.user("bob", &may_assume);
    let bob = Identity { id, secret, token: None };
    let issued = common::runtime().block_on(async {
        let mut bob = scene.server.session_as(bob).await;
        // The name goes into the form as it is, so that a field may follow it.
        for wrong in ["alice", "night&SourceIdentity=alice"] {
            let refused = bob.assume(&role, wrong).await.err().unwrap();
            contains(&refused, &["AccessDenied"]);
        }
        bob.assume(&role, "alice&SourceIdentity=bob").await.unwrap()
    });
    let login = |agent: &Agent, more: &[&str]| {
        let mut command = scene.ssh(&["login", "--key", "alias/ca"]);
        command.args(more).env("SSH_AUTH_SOCK", &agent.socket);
        command.env("AWS_ACCESS_KEY_ID", &issued.id).env("AWS_SECRET_ACCESS_KEY", &issued.secret);
        command.env("AWS_SESSION_TOKEN", issued.token.as_ref().unwrap());
        command
    };
    let agent = scene.agent("10.0");
    // The name of the session is the caller's choice, and nobody's name.
    let refused = run(&mut login(&agent, &["-n", "alice"]));
    contains(&stderr(&refused), &["AccessDenied"]);
    let made = json_of(&mut login(&agent, &["-V", "+10m"]));
    assert_eq!(made["principals"], json!(["bob"]));
    let output = scene.sftp("10.0", "bob", Some(&agent), &[]);
    assert!(output.status.success(), "{}", stderr(&output));
    let last = scene.events("CONNECTED").pop().unwrap();
    assert_eq!(last["ssh-certificate-serial"], made["serial"]);
    let session = format!("arn:aws:sts::{ACCOUNT}:assumed-role/ops/alice");
    assert_eq!(last["ssh-certificate-key-id"], session);
    let other = scene.sftp("10.0", "alice", Some(&agent), &[]);
    assert!(!other.status.success(), "the session's name logs nobody in");
}

/// What a certificate must be like, tried by OpenSSH's client with certificates of `ssh-keygen -s`.
#[test]
fn the_door_takes_certificates_that_are_meant_for_it() {
    let Some(scene) = Scene::with_sftp() else { return };
    scene.key("user", "ed25519");
    scene.key("other", "ed25519");
    let write = |name: &str, bytes: &[u8]| drop(scene.folder.write(name, bytes));
    let log_in = || scene.sftp("10.6", "alice", None, &[]);
    let accepted = |what: &str| {
        let output = log_in();
        assert!(output.status.success(), "{what}: {}", stderr(&output));
    };
    let mut reasons = Vec::new();
    let mut refused = |what: &str, why: &str| {
        let before = scene.events("AUTH_FAILURE").len();
        let output = log_in();
        assert!(!output.status.success(), "{what} was let in");
        contains(&stderr(&output), &["Permission denied (publickey)"]);
        let mut told = Vec::new();
        outlast_testing::until("the event of the failure", || {
            told = scene.events("AUTH_FAILURE");
            told.len() > before
        });
        let last = told.pop().unwrap().to_string();
        contains(&last, &[why]);
        reasons.push(why.to_owned());
    };
    scene.certify("local", &["-I", "id", "-n", "alice", "-z", "5"]);
    accepted("a certificate");
    for (what, arguments) in [
        ("from here", &["-I", "id", "-n", "bob,alice", "-O", "source-address=127.0.0.1"][..]),
        ("for SFTP", &["-I", "id", "-n", "alice", "-O", "force-command=internal-sftp"]),
        ("for a while", &["-I", "id", "-n", "alice", "-V", "-1m:+1m"]),
        ("with an extension", &["-I", "id", "-n", "alice", "-O", "extension:a@example.com"]),
    ] {
        scene.certify("local", arguments);
        accepted(what);
    }
    for (what, authority, arguments, why) in [
        ("another authority", "other", &["-I", "id", "-n", "alice"][..], "is not trusted"),
        ("its own authority", "user", &["-I", "id", "-n", "alice"], "is not trusted"),
        ("expired", "local", &["-I", "id", "-n", "alice", "-V", "-2h:-1h"], "expired"),
        ("not yet valid", "local", &["-I", "id", "-n", "alice", "-V", "+1h:+2h"], "not valid yet"),
        ("another principal", "local", &["-I", "alice", "-n", "bob"], "other principals"),
        ("no principal", "local", &["-I", "alice"], "other principals"),
        (
            "from elsewhere",
            "local",
            &["-I", "id", "-n", "alice", "-O", "source-address=192.0.2.0/24"],
            "source addresses",
        ),
        ("a command", "local", &["-I", "id", "-n", "alice", "-O", "force-command=sh"], "command"),
        (
            "an option",
            "local",
            &["-I", "id", "-n", "alice", "-O", "critical:a@example.com"],
            "not supported",
        ),
    ] {
        scene.certify(authority, arguments);
        refused(what, why);
    }
    // OpenSSH's client shows no certificate of a host: as a row of crates/net/src/sftp/certified/tests.rs.
    scene.certify("local", &["-I", "id", "-n", "alice", "-z", "5"]);
    let good = std::fs::read(scene.folder.path("user-cert.pub")).unwrap();
    // Revoked, each way that ssh-keygen has.
    for (what, specification, why) in [
        ("serial", "serial: 5\n", "serial number"),
        ("serials", "serial: 4-6\n", "serial number"),
        ("key id", "id: id\n", "key id"),
    ] {
        scene.folder.write("specification", specification.as_bytes());
        scene.keygen(&["-q", "-k", "-f", "krl", "-s", "local.pub", "specification"]);
        write("revoked", &std::fs::read(scene.folder.path("krl")).unwrap());
        refused(what, &format!("revoked by its {why}"));
    }
    // The client shows the key itself, too.
    for (what, key, why) in [
        ("key", "user.pub", "the key is revoked"),
        ("authority", "local.pub", "revoked by its authority's key"),
    ] {
        scene.keygen(&["-q", "-k", "-f", "krl", key]);
        write("revoked", &std::fs::read(scene.folder.path("krl")).unwrap());
        refused(what, why);
        write("revoked", &std::fs::read(scene.folder.path(key)).unwrap());
        refused(what, why);
    }
    // A list that cannot be read revokes everything.
    write("revoked", b"nonsense");
    refused("a broken list", "revoked");
    write("revoked", b"");
    accepted("after all");
    // An authority that is taken out, while the server runs.
    std::fs::copy(scene.folder.path("other.pub"), scene.folder.path("trusted")).unwrap();
    refused("a former authority", "is not trusted");
    std::fs::copy(scene.folder.path("local.pub"), scene.folder.path("trusted")).unwrap();
    accepted("a new one");
    assert_eq!(std::fs::read(scene.folder.path("user-cert.pub")).unwrap(), good);
    println!("{} refusals", reasons.len());
}

/// The door's host certificate is what OpenSSH's client trusts, by the authority and the name: one of `ssh-keygen -s`, and
/// those that are issued here.
#[test]
fn a_host_certificate_stands_for_the_host() {
    let Some(scene) = Scene::with_sftp() else { return };
    scene.key("user", "ed25519");
    scene.certify("local", &["-I", "id", "-n", "alice"]);
    let log_in = |version: &str, alias: &str| {
        let known = format!("UserKnownHostsFile={}", scene.folder.path("known_hosts").display());
        let alias = format!("HostKeyAlias={alias}");
        // OpenSSH 10.6 has the algorithm, and allows it to authorities only if it is told to.
        let composite = "CASignatureAlgorithms=+ssh-mldsa44-ed25519";
        let options = ["StrictHostKeyChecking=yes", &known, &alias, composite];
        let most = if version == "10.6" { 4 } else { 3 };
        scene.sftp(version, "alice", None, &options[..most])
    };
    let tried = |version: &str, what: &str| {
        let output = log_in(version, "sftp.example");
        assert!(output.status.success(), "{version} {what}: {}", stderr(&output));
        assert!(!log_in(version, "other.example").status.success(), "{version} {what}");
    };
    let authority = std::fs::read_to_string(scene.folder.path("local.pub")).unwrap();
    scene.folder.write("known_hosts", format!("@cert-authority *.example {authority}").as_bytes());
    tried("10.0", "ssh-keygen");
    tried("10.6", "ssh-keygen");
    let both = ("outlast:ssh-ca", "user host");
    let second = scene.authority("second", "ECC_NIST_EDWARDS25519", &[both]);
    scene.authority("p256", "ECC_NIST_P256", &[both]);
    scene.authority("rsa", "RSA_2048", &[both]);
    scene.authority("composite", "ML_DSA_44", &[both, ("outlast:second-key-arn", &second)]);
    for (version, name) in [
        ("10.0", "p256"),
        ("10.0", "rsa"),
        ("10.0", "second"),
        ("10.6", "p256"),
        ("10.6", "composite"),
    ] {
        let alias = format!("alias/{name}");
        let known = scene.ssh(&["ca-key", "--key", &alias, "--known-hosts", "*.example"]);
        scene.folder.write("known_hosts", succeed(&mut { known }).as_bytes());
        // The certificate that is there is one of the same key, and the server reads the new one.
        let mut sign = scene.ssh(&["sign", "--host", "host.pub", "--key", &alias]);
        succeed(sign.args(["-n", "sftp.example"]));
        tried(version, name);
    }
}

/// A certificate whose signature was changed is refused before anything in it counts.
#[test]
fn an_altered_certificate_is_refused() {
    let Some(scene) = Scene::with_sftp() else { return };
    scene.key("user", "ed25519");
    scene.certify("local", &["-I", "id", "-n", "bob", "-V", "-1m:+1m"]);
    let path = scene.folder.path("user-cert.pub");
    let line = std::fs::read_to_string(&path).unwrap();
    let blob = line.split(' ').nth(1).unwrap();
    let engine = base64::engine::general_purpose::STANDARD;
    let mut bytes = engine.decode(blob).unwrap();
    // A name of as many letters, so that only the signature does not fit. With its length, so that it is in no key by chance.
    let [name, other] = [b"\0\0\0\x03bob", b"\0\0\0\x03eve"];
    let at = bytes.windows(name.len()).position(|window| window == name).unwrap();
    bytes[at..at + name.len()].copy_from_slice(other);
    let forged = line.replace(blob, &engine.encode(&bytes));
    std::fs::write(&path, forged).unwrap();
    let output = scene.sftp("10.6", "eve", None, &[]);
    assert!(!output.status.success());
    std::fs::write(&path, &line).unwrap();
    assert!(scene.sftp("10.6", "bob", None, &[]).status.success());
}
