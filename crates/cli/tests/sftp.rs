//! `outlast server --sftp-listen` with OpenSSH's clients: files, rights, policies, limits and audit events.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may fail and print"
)]

mod promises;
mod renames;
mod s3;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use outlast_api::ops::transfer::{create_server, create_user, import_ssh_public_key, stop_server};
use outlast_api::ops::transfer::{delete_user, update_server};
use serde_json::{Value, json};

use crate::common::peers::peer;
use crate::common::{self, Folder, Server, Session, outlast, run, stderr, stdout, succeed};

const ACCOUNT: &str = "123456789012";

/// A service with a Transfer server, and OpenSSH's programs.
pub struct World {
    pub folder: Folder,
    pub server: Server,
    pub id: String,
    tools: PathBuf,
}

/// Where OpenSSH's programs are, if they are installed.
pub fn openssh() -> Option<PathBuf> {
    Some(peer("openssh")?.join("10.0/bin"))
}

/// A policy that allows these actions of S3 on these resources.
fn allowing(statements: &[(&str, &str)]) -> Value {
    let statement = |(action, resource): &(&str, &str)| json!({ "Effect": "Allow", "Action": action, "Resource": resource });
    json!({ "Version": "2012-10-17", "Statement": statements.iter().map(statement).collect::<Vec<_>>() })
}

impl World {
    pub fn new(tools: &Path, policy: &str, arguments: &[&str]) -> Self {
        let folder = Folder::new();
        let arguments = [&["--sftp-listen", "127.0.0.1:0"], arguments].concat();
        let server = Server::start(&folder.data, &arguments);
        let mut world = Self { folder, server, id: String::new(), tools: tools.to_path_buf() };
        let new = json!({ "Protocols": ["SFTP"], "SecurityPolicyName": policy });
        world.id = world.call(async |session| {
            let made = session.call::<create_server::CreateServer>(new).await;
            made.unwrap().unwrap().server_id
        });
        world.role("all", &allowing(&[("s3:*", "arn:aws:s3:::*")]));
        world
    }

    pub fn call<T>(&self, work: impl AsyncFnOnce(&mut Session) -> T) -> T {
        common::runtime().block_on(async {
            let mut session = self.server.session().await.unwrap();
            work(&mut session).await
        })
    }

    pub fn role(&self, name: &str, policy: &Value) {
        let trust = json!({ "Version": "2012-10-17", "Statement": [{
            "Effect": "Allow", "Principal": { "Service": "transfer.amazonaws.com" }, "Action": "sts:AssumeRole",
        }] });
        let trust = self.folder.write("trust.json", trust.to_string().as_bytes());
        let policy = self.folder.write("policy.json", policy.to_string().as_bytes());
        let mut create = outlast();
        create.args(["principal", "create", "--role", name, "--data"]).arg(&self.folder.data);
        create.arg("--trust-policy-file").arg(trust).arg("--policy-file").arg(policy);
        succeed(&mut create);
    }

    /// A key of OpenSSH's; returns its public line.
    pub fn key(&self, name: &str, kind: &[&str]) -> String {
        let path = self.folder.path(name);
        succeed(
            self.tool("ssh-keygen").args(["-q", "-N", "", "-C", "", "-f"]).arg(&path).args(kind),
        );
        std::fs::read_to_string(path.with_extension("pub")).unwrap().trim().to_owned()
    }

    /// A user with a key of its own.
    pub fn user(&self, name: &str, role: &str, more: Value) {
        let mut new = json!({
            "ServerId": self.id, "UserName": name, "SshPublicKeyBody": self.key(name, &["-t", "ed25519"]),
            "Role": format!("arn:aws:iam::{ACCOUNT}:role/{role}"),
        });
        new.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.call(async |session| {
            session.call::<create_user::CreateUser>(new).await.unwrap().unwrap();
        });
    }

    /// A user whose home is a folder of the bucket `files`.
    pub fn at_home(&self, name: &str, role: &str) {
        self.user(name, role, json!({ "HomeDirectory": format!("/files/{name}") }));
    }

    /// A program of OpenSSH. Those that start `ssh` start the same version.
    pub fn tool(&self, name: &str) -> Command {
        let mut command = Command::new(self.tools.join(name));
        if matches!(name, "sftp" | "scp") {
            command.arg("-S").arg(self.tools.join("ssh"));
        }
        command
    }

    pub fn bucket(&self, path: &str) -> PathBuf {
        self.folder.data.join("buckets").join(path)
    }

    pub fn options(&self, key: &str) -> Vec<String> {
        let known = self.folder.path("known_hosts").display().to_string();
        let key = self.folder.path(key).display().to_string();
        let mut out: Vec<String> = ["-i", &key, "-F", "none"].map(str::to_owned).to_vec();
        for option in [
            "IdentitiesOnly=yes",
            "PasswordAuthentication=no",
            "StrictHostKeyChecking=no",
            &format!("UserKnownHostsFile={known}"),
        ] {
            out.extend(["-o".to_owned(), option.to_owned()]);
        }
        out
    }

    /// `sftp` with a batch of commands.
    pub fn sftp(&self, user: &str, options: &[&str], commands: &[&str]) -> Output {
        let batch = self.folder.write(&format!("{user}.batch"), commands.join("\n").as_bytes());
        let port = self.server.sftp.unwrap().to_string();
        let mut command = self.tool("sftp");
        command.args(self.options(user)).args(["-P", &port, "-b"]).arg(batch).args(options);
        command.arg(format!("{user}@127.0.0.1")).current_dir(self.folder.temporary.path());
        run(&mut command)
    }

    #[track_caller]
    pub fn works(&self, user: &str, commands: &[&str]) -> String {
        let output = self.sftp(user, &[], commands);
        assert!(output.status.success(), "{commands:?}: {}{}", stdout(&output), stderr(&output));
        stdout(&output)
    }

    #[track_caller]
    fn fails(&self, user: &str, commands: &[&str], why: &str) {
        let output = self.sftp(user, &[], commands);
        let text = format!("{}{}", stdout(&output), stderr(&output));
        assert!(!output.status.success(), "{commands:?} worked: {text}");
        assert!(text.contains(why), "{commands:?}: {text}");
    }

    /// Additional data of the audit events of SFTP, the oldest first.
    pub fn events(&self) -> Vec<Value> {
        self.folder.sftp_events()
    }

    /// Waits until there are events of a kind, and returns all.
    pub fn events_until(&self, kind: &str) -> Vec<Value> {
        let mut found = Vec::new();
        outlast_testing::until(kind, || {
            found = self.events();
            found.iter().any(|event| event["activity-type"] == kind)
        });
        found
    }
}

pub fn random(len: usize) -> Vec<u8> {
    let mut out = vec![0; len];
    outlast_crypto::random::fill(&mut out).unwrap();
    out
}

#[test]
fn files_come_and_go_and_every_operation_leaves_its_event() {
    let Some(tools) = openssh() else { return };
    let world = World::new(&tools, "2026-11", &[]);
    world.at_home("alice", "all");
    let content = random(3_000_000);
    world.folder.write("a.bin", &content);
    let said = world.works(
        "alice",
        &[
            "put a.bin",
            "ls -l",
            "get a.bin b.bin",
            "mkdir sub",
            "rename a.bin sub/c.bin",
            "ls sub",
            "chmod 600 sub/c.bin",
            "rm sub/c.bin",
            "rmdir sub",
            "pwd",
        ],
    );
    assert!(said.contains("3000000") && said.contains("sub/c.bin"), "{said}");
    assert!(said.contains("Remote working directory: /files/alice"), "{said}");
    assert_eq!(std::fs::read(world.folder.path("b.bin")).unwrap(), content);
    assert_eq!(std::fs::read_dir(world.bucket("files/alice")).unwrap().count(), 0);
    let events = world.events_until("DISCONNECTED");
    let kinds: Vec<_> =
        events.iter().map(|event| event["activity-type"].as_str().unwrap()).collect();
    let expected = [
        "CONNECTED",
        "OPEN",
        "SETSTAT",
        "CLOSE",
        "OPEN",
        "CLOSE",
        "MKDIR",
        "RENAME",
        "SETSTAT",
        "DELETE",
        "RMDIR",
        "DISCONNECTED",
    ];
    let without = |list: &[&str]| {
        // Whether the client sets times and modes of what it puts depends on its version.
        list.iter()
            .filter(|kind| **kind != "SETSTAT")
            .map(|kind| (*kind).to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(without(&kinds), without(&expected), "{kinds:?}");
    let connected = &events[0];
    assert_eq!(connected["user"], "alice");
    assert!(connected["client"].as_str().unwrap().starts_with("SSH-2.0-OpenSSH"), "{connected}");
    assert!(connected["kex"].is_string() && connected["source-ip"] == "127.0.0.1", "{connected}");
    let fingerprint = connected["ssh-public-key-fingerprint"].as_str().unwrap();
    let listed = succeed(world.tool("ssh-keygen").arg("-lf").arg(world.folder.path("alice.pub")));
    assert!(listed.contains(fingerprint), "{listed} {fingerprint}");
    let close = events.iter().find(|event| event["activity-type"] == "CLOSE").unwrap();
    assert_eq!(
        (&close["path"], &close["bytes-in"]),
        (&json!("/files/alice/a.bin"), &json!("3000000"))
    );
    let open = events.iter().find(|event| event["activity-type"] == "OPEN").unwrap();
    assert_eq!(open["target"], "files/alice/a.bin");
}

#[test]
fn keys_are_exchanged_again_while_data_flows() {
    let Some(tools) = openssh() else { return };
    let world = World::new(&tools, "2026-11", &[]);
    world.at_home("alice", "all");
    let content = random(20_000_000);
    world.folder.write("big", &content);
    let output = world.sftp(
        "alice",
        &["-v", "-o", "RekeyLimit=1M", "-B", "65536"],
        &["put big", "get big back"],
    );
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).matches("SSH2_MSG_NEWKEYS received").count() > 10);
    assert!(
        std::fs::read(world.folder.path("back")).unwrap() == content,
        "the file is another one"
    );
}

/// Changes a file through a handle that is open for reading alone, and by its path.
const FSETSTAT: &str = r#"
import asyncio, asyncssh, sys
async def main():
    port, key = int(sys.argv[1]), sys.argv[2]
    async with asyncssh.connect("127.0.0.1", port, username="reader", client_keys=[key], known_hosts=None) as c:
        async with c.start_sftp_client() as sftp:
            said, new = [], asyncssh.SFTPAttrs(permissions=0o600, atime=1, mtime=1)
            async with sftp.open("/files/shared/x", "rb") as f:
                assert await f.read() == b"content"
                for change in (lambda: f.setstat(new), lambda: sftp.setstat("/files/shared/x", new)):
                    try:
                        await change()
                        said.append("changed")
                    except asyncssh.SFTPPermissionDenied:
                        said.append("denied")
            print(*said)
asyncio.run(main())
"#;

#[test]
fn the_role_decides_about_every_path() {
    let (Some(tools), Some(python)) = (openssh(), peer("python")) else { return };
    let world = World::new(&tools, "2026-11", &[]);
    world.role(
        "reader",
        &allowing(&[
            ("s3:GetObject", "arn:aws:s3:::files/shared/*"),
            ("s3:ListBucket", "arn:aws:s3:::files"),
        ]),
    );
    world.role(
        "dropper",
        &allowing(&[("s3:PutObject", "arn:aws:s3:::files/in/${transfer:UserName}/*")]),
    );
    world.role("nothing", &allowing(&[("s3:GetObject", "arn:aws:s3:::elsewhere/*")]));
    world.at_home("alice", "all");
    let at = |path: &str| json!({ "HomeDirectory": path });
    world.user("reader", "reader", at("/files/shared"));
    world.user("dropper", "dropper", at("/files/in/dropper"));
    world.user("nobody", "nothing", at("/files/nobody"));
    world.folder.write("x", b"content");
    world.works("alice", &["mkdir /files/shared", "put x /files/shared/x", "put x secret"]);
    // A link that an administrator of the machine left in a bucket leads nowhere for users.
    std::fs::write(world.folder.path("canary"), b"canary").unwrap();
    std::os::unix::fs::symlink(world.folder.path("canary"), world.bucket("files/shared/link"))
        .unwrap();
    std::os::unix::fs::symlink("../alice", world.bucket("files/shared/folder")).unwrap();
    std::os::unix::fs::symlink("files", world.bucket("linked")).unwrap();
    world.works("reader", &["get x y", "ls"]);
    for (commands, why) in [
        (&["put x z"][..], "ermission denied"),
        (&["rm x"], "ermission denied"),
        (&["rename x z"], "ermission denied"),
        (&["mkdir z"], "ermission denied"),
        (&["get /files/alice/secret z"], "ermission denied"),
        (&["get ../alice/secret z"], "ermission denied"),
        (&["get folder/secret z"], ""),
        (&["get link z"], ""),
        (&["get /../../../etc/passwd z"], ""),
        (&["get /linked/shared/x z"], ""),
        (&["symlink /etc/passwd p"], ""),
    ] {
        world.fails("reader", commands, why);
        assert!(!world.folder.path("z").exists(), "{commands:?} wrote a file");
    }
    world.works("dropper", &["put x"]);
    assert!(world.bucket("files/in/dropper/x").exists());
    for commands in [&["get x z"][..], &["rm x"], &["put x ../alice/x"], &["put x /files/x"]] {
        world.fails("dropper", commands, "ermission denied");
    }
    let listed = world.sftp("dropper", &[], &["ls"]);
    assert!(stderr(&listed).contains("ermission denied"), "{}", stdout(&listed));
    // A handle for reading is no right to change the file.
    let before = std::fs::metadata(world.bucket("files/shared/x")).unwrap();
    let port = world.server.sftp.unwrap().to_string();
    let key = world.folder.path("reader");
    let mut command = Command::new(python.join("bin/python"));
    command.args(["-c", FSETSTAT, &port]).arg(key);
    assert_eq!(succeed(&mut command).trim(), "denied denied");
    let after = std::fs::metadata(world.bucket("files/shared/x")).unwrap();
    assert_eq!(before.permissions(), after.permissions());
    assert_eq!(before.modified().unwrap(), after.modified().unwrap());
    // Nobody makes a bucket by asking for it.
    world.fails("alice", &["put x /another/x"], "");
    world.fails("nobody", &["get x z"], "");
    assert!(!world.bucket("another").exists());
    let denied = world.events_until("ERROR");
    assert!(denied.iter().any(|event| event["message"] == "Access denied"), "{denied:?}");
}

#[test]
fn logical_directories_hide_where_files_are() {
    let Some(tools) = openssh() else { return };
    let world = World::new(&tools, "2026-11", &[]);
    world.user(
        "alice",
        "all",
        json!({
            "HomeDirectoryType": "LOGICAL",
            "HomeDirectoryMappings": [
                { "Entry": "/in", "Target": "/first/a/${transfer:UserName}" },
                { "Entry": "/deep/out", "Target": "/second" },
                { "Entry": "/notes.txt", "Target": "/first/notes/${transfer:UserName}.txt", "Type": "FILE" },
            ],
        }),
    );
    world.folder.write("x", b"content");
    let said =
        world.works("alice", &["ls", "put x in/x", "put x /deep/out/x", "ls deep", "ls -1 /in"]);
    for name in ["in", "deep", "deep/out", "/in/x"] {
        assert!(said.contains(name), "{name}: {said}");
    }
    assert!(world.bucket("first/a/alice/x").exists() && world.bucket("second/x").exists());
    // A mapping of a file is one, also before it is written; its directory is there.
    let notes = world.bucket("first/notes/alice.txt");
    assert!(notes.parent().unwrap().is_dir() && !notes.exists());
    let said = world.works("alice", &["ls -l /", "put x notes.txt", "get notes.txt y", "ls -l /"]);
    let is_notes = |line: &&str| line.starts_with("-rw") && line.ends_with("notes.txt");
    assert_eq!(said.lines().filter(is_notes).count(), 2, "{said}");
    assert_eq!(std::fs::read(&notes).unwrap(), b"content");
    for commands in [
        &["put x"][..],
        &["get /first/a/alice/x z"],
        &["rmdir in"],
        &["rename in on"],
        &["rename in/x deep/out/y"],
    ] {
        world.fails("alice", commands, "");
    }
    assert!(world.bucket("first/a/alice/x").exists());
}

#[test]
fn strangers_and_stopped_servers_let_nobody_in() {
    let Some(tools) = openssh() else { return };
    let world = World::new(&tools, "2026-11", &[]);
    world.at_home("alice", "all");
    world.at_home("bob", "all");
    world.key("mallory", &["-t", "ed25519"]);
    let login = |user: &str, key: &str| {
        let port = world.server.sftp.unwrap().to_string();
        let mut command = world.tool("sftp");
        command.args(world.options(key)).args(["-P", &port, "-b", "/dev/null"]);
        run(command.arg(format!("{user}@127.0.0.1")))
    };
    assert!(login("alice", "alice").status.success());
    let mut said = Vec::new();
    for (user, key) in
        [("alice", "bob"), ("alice", "mallory"), ("nobody", "mallory"), ("ALICE", "alice")]
    {
        let output = login(user, key);
        assert!(!output.status.success(), "{user} with the key of {key}");
        said.push(stderr(&output).replace(user, "USER"));
    }
    // The same words for a user who does not exist.
    said.dedup();
    assert_eq!(said.len(), 1, "{said:?}");
    outlast_testing::until("the failure of nobody is recorded", || {
        let is_it =
            |event: &Value| event["activity-type"] == "AUTH_FAILURE" && event["user"] == "nobody";
        world.events().iter().any(is_it)
    });
    let tail = ["audit", "tail", "-n", "1000", "--data"];
    let shown = succeed(outlast().args(tail).arg(&world.folder.data));
    let line = shown.lines().find(|line| line.contains("\"nobody\"")).unwrap();
    assert!(line.contains("AUTH_FAILURE") && line.contains(" failed \"nobody\" \""), "{line}");
    // A second key, then none.
    let line = world.key("second", &["-t", "ecdsa", "-b", "384"]);
    let import = json!({ "ServerId": world.id, "UserName": "alice", "SshPublicKeyBody": line });
    world.call(async |session| {
        session.call::<import_ssh_public_key::ImportSshPublicKey>(import).await.unwrap().unwrap();
    });
    assert!(login("alice", "second").status.success());
    let user = json!({ "ServerId": world.id, "UserName": "alice" });
    world.call(async |session| {
        session.call::<delete_user::DeleteUser>(user).await.unwrap().unwrap();
    });
    assert!(!login("alice", "alice").status.success());
    let stop = json!({ "ServerId": world.id });
    world.call(async |session| {
        session.call::<stop_server::StopServer>(stop).await.unwrap().unwrap();
    });
    outlast_testing::until("the server is stopped", || !login("bob", "bob").status.success());
}

#[test]
fn a_session_ends_when_its_user_is_deleted() {
    let Some(tools) = openssh() else { return };
    let world = World::new(&tools, "2026-11", &[]);
    world.at_home("alice", "all");
    world.at_home("bob", "all");
    let change = json!({
        "ServerId": world.id, "PreAuthenticationLoginBanner": "before the login",
        "PostAuthenticationLoginBanner": "after the login",
    });
    world.call(async |session| {
        session.call::<update_server::UpdateServer>(change).await.unwrap().unwrap();
    });
    outlast_testing::until("the banners are shown", || {
        let said = stderr(&world.sftp("bob", &[], &["pwd"]));
        let (before, after) = (said.find("before the login"), said.find("after the login"));
        before.zip(after).is_some_and(|(before, after)| before < after)
    });
    let mut sessions = ["alice", "bob"].map(|user| {
        let port = world.server.sftp.unwrap().to_string();
        let mut command = world.tool("sftp");
        command.args(world.options(user)).args(["-P", &port, "-b", "-"]);
        command.arg(format!("{user}@127.0.0.1")).stdin(Stdio::piped());
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    });
    outlast_testing::until("both have logged in", || {
        let events = world.events();
        let sessions = events.iter().filter(|event| event["activity-type"] == "CONNECTED");
        sessions.filter(|event| event["user"] == "alice").count() == 1
    });
    let user = json!({ "ServerId": world.id, "UserName": "alice" });
    world.call(async |session| {
        session.call::<delete_user::DeleteUser>(user).await.unwrap().unwrap();
    });
    let mut ends = |number: usize| {
        // The client notices at its next request.
        let _ = sessions[number].stdin.as_mut().unwrap().write_all(b"ls\n");
        sessions[number].try_wait().unwrap().is_some()
    };
    outlast_testing::until("the user's session ends", || ends(0));
    assert!(!ends(1), "the other session has ended, too");
    sessions[1].kill().unwrap();
    sessions[1].wait().unwrap();
    // The end of a connection that breaks is recorded, too.
    outlast_testing::until("the ends are recorded", || {
        let events = world.events();
        let count =
            |kind: &str| events.iter().filter(|event| event["activity-type"] == kind).count();
        count("CONNECTED") == count("DISCONNECTED")
    });
}

#[test]
fn a_policy_that_demands_hybrids_refuses_an_old_client() {
    let Some(tools) = openssh() else { return };
    let world = World::new(&tools, "2026-11", &[]);
    world.at_home("alice", "all");
    let output = world.sftp("alice", &["-v"], &["pwd"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let change = json!({ "ServerId": world.id, "SecurityPolicyName": "2026-11-require-pq" });
    world.call(async |session| {
        session.call::<update_server::UpdateServer>(change).await.unwrap().unwrap();
    });
    // OpenSSH before 9.9 has none of RFC 10042.
    let old = ["-o", "KexAlgorithms=curve25519-sha256,ecdh-sha2-nistp256"];
    outlast_testing::until("the policy holds", || {
        let output = world.sftp("alice", &old, &["pwd"]);
        stderr(&output).contains("no matching key exchange method")
    });
}

/// A client of asyncssh's that puts, lists and gets, and prints the key exchange.
const ASYNCSSH: &str = r#"
import asyncio, asyncssh, sys
async def main():
    port, key, user, kex = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
    async with asyncssh.connect("127.0.0.1", port, username=user, client_keys=[key], known_hosts=None, kex_algs=[kex]) as c:
        async with c.start_sftp_client() as sftp:
            async with sftp.open("py", "wb") as f:
                await f.write(b"y" * 1000000)
            assert "py" in await sftp.listdir(".")
            async with sftp.open("py", "rb") as f:
                assert await f.read() == b"y" * 1000000
            await sftp.remove("py")
asyncio.run(main())
"#;

/// The same with paramiko's prefetch, which asks for everything at once.
const PARAMIKO: &str = r#"
import io, paramiko, sys
port, key, user = int(sys.argv[1]), sys.argv[2], sys.argv[3]
t = paramiko.Transport(("127.0.0.1", port))
t.connect(username=user, pkey=paramiko.Ed25519Key.from_private_key_file(key))
sftp = paramiko.SFTPClient.from_transport(t)
data = bytes(range(256)) * 40000
sftp.putfo(io.BytesIO(data), "paramiko")
back = io.BytesIO()
sftp.getfo("paramiko", back)
assert back.getvalue() == data
sftp.remove("paramiko")
t.close()
"#;

#[test]
fn the_ledger_tells_who_of_a_crowd_has_no_hybrid_keys() {
    let (Some(openssh), Some(python)) = (peer("openssh"), peer("python")) else { return };
    let world = World::new(&openssh.join("10.0/bin"), "2026-11", &[]);
    world.at_home("alice", "all");
    let port = world.server.sftp.unwrap().to_string();
    let key = world.folder.path("alice").display().to_string();
    let with = |version: &str, kex: &[&str]| {
        let bin = openssh.join(version).join("bin");
        let mut command = Command::new(bin.join("sftp"));
        command.arg("-S").arg(bin.join("ssh")).arg("-v").args(world.options("alice"));
        command.args(kex).args(["-P", &port, "-b", "/dev/null", "alice@127.0.0.1"]);
        let output = run(&mut command);
        assert!(output.status.success(), "{version} {kex:?}: {}", stderr(&output));
        let text = stderr(&output);
        let chosen = text.lines().find_map(|line| line.split("kex: algorithm: ").nth(1));
        chosen.unwrap().trim().to_owned()
    };
    for version in ["10.0", "10.6"] {
        assert_eq!(with(version, &[]), "mlkem768x25519-sha256", "{version}");
        // The client would rather have a classical method, and gets the hybrid one.
        let reversed = ["-o", "KexAlgorithms=curve25519-sha256,mlkem768x25519-sha256"];
        assert_eq!(with(version, &reversed), "mlkem768x25519-sha256", "{version}");
        let classical = ["-o", "KexAlgorithms=ecdh-sha2-nistp256,curve25519-sha256"];
        assert_eq!(with(version, &classical), "ecdh-sha2-nistp256", "{version}");
    }
    let script = |text: &str, more: &[&str]| {
        let mut command = Command::new(python.join("bin/python"));
        command.args(["-c", text, &port, &key, "alice"]).args(more);
        succeed(&mut command);
    };
    for kex in [
        "mlkem768x25519-sha256",
        "mlkem768nistp256-sha256",
        "mlkem1024nistp384-sha384",
        "curve25519-sha256",
    ] {
        script(ASYNCSSH, &[kex]);
    }
    script(PARAMIKO, &[]);
    // 6 of OpenSSH, 4 of asyncssh, 1 of paramiko.
    let mut summary = Value::Null;
    outlast_testing::until("the ledger is written", || {
        let mut command = outlast();
        command.args(["--output", "json", "ledger", "summary", "--listener", "sftp", "--data"]);
        summary = serde_json::from_str(&succeed(command.arg(&world.folder.data))).unwrap();
        summary["total"]["connections"] == json!(11)
    });
    let text = summary.to_string();
    for software in ["OpenSSH", "AsyncSSH", "paramiko"] {
        assert!(text.contains(software), "{software}: {text}");
    }
    let mut laggards = outlast();
    laggards.args(["ledger", "laggards", "--listener", "sftp", "--data"]).arg(&world.folder.data);
    let text = stdout(&run(&mut laggards));
    assert!(text.contains("OpenSSH"), "{text}");
}

#[test]
fn those_who_do_not_log_in_are_disconnected() {
    let tools = PathBuf::new();
    let world = World::new(&tools, "2026-11", &["--sftp-login-grace", "1"]);
    let mut stream = TcpStream::connect(("127.0.0.1", world.server.sftp.unwrap())).unwrap();
    let mut said = Vec::new();
    // Until the server closes it.
    stream.read_to_end(&mut said).unwrap();
    let text = String::from_utf8_lossy(&said).into_owned();
    assert!(text.starts_with("SSH-2.0-Outlast_"), "{text}");
}

#[test]
fn commands_are_refused_with_a_hint_and_scp_works_over_sftp() {
    let Some(tools) = openssh() else { return };
    let world = World::new(&tools, "2026-11", &[]);
    world.at_home("alice", "all");
    let port = world.server.sftp.unwrap().to_string();
    let mut ssh = world.tool("ssh");
    ssh.args(world.options("alice")).args(["-p", &port, "alice@127.0.0.1", "id"]);
    let output = run(&mut ssh);
    assert!(!output.status.success());
    assert!(stdout(&output).contains("SFTP only"), "{}{}", stdout(&output), stderr(&output));
    let x = world.folder.write("x", b"content");
    let mut scp = world.tool("scp");
    scp.args(world.options("alice")).args(["-s", "-P", &port]).arg(&x).arg("alice@127.0.0.1:y");
    succeed(&mut scp);
    assert_eq!(std::fs::read(world.bucket("files/alice/y")).unwrap(), b"content");
}

/// The names in a folder, once they are as expected.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn no_half_file_is_visible_after_a_kill() {
    let Some(tools) = openssh() else { return };
    let mut world = World::new(&tools, "2026-11", &["--sftp-atomic-uploads", "true"]);
    world.at_home("alice", "all");
    world.folder.write("whole", b"whole");
    world.works("alice", &["put whole"]);
    world.folder.write("big", &random(64_000_000));
    let batch = world.folder.write("kill.batch", b"put big\n");
    let port = world.server.sftp.unwrap().to_string();
    let mut command = world.tool("sftp");
    command.args(world.options("alice")).args(["-l", "8000", "-P", &port, "-b"]).arg(batch);
    command.arg("alice@127.0.0.1").current_dir(world.folder.temporary.path());
    let mut upload = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // Its event is durable when the file is open.
    outlast_testing::until("the upload has begun", || {
        world
            .events()
            .iter()
            .any(|event| event["activity-type"] == "OPEN" && event["path"] == "/files/alice/big")
    });
    world.server.kill();
    assert!(!upload.wait().unwrap().success());
    assert!(!names(&world.bucket("files/alice")).contains(&"big".to_owned()));
    assert_eq!(std::fs::read(world.bucket("files/alice/whole")).unwrap(), b"whole");
    world.server = Server::start(&world.folder.data, &["--sftp-listen", "127.0.0.1:0"]);
    let said = world.works("alice", &["ls -1"]);
    assert!(said.contains("whole") && !said.contains("big"), "{said}");
}
