//! Passwords and certificates of users of `sftp.toml`, with OpenSSH's client: who gets in, who does not, and whose session ends.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use outlast_testing::until;
use serde_json::Value;

use crate::common::peers::peer;
use crate::common::{self, Folder, Server, outlast, run, stderr, stdout, succeed};

const PASSWORD: &str = "correct horse battery";

/// What a client shows.
#[derive(Clone, Copy)]
enum Shows<'a> {
    Password(&'a str),
    /// A key of this name, with its certificate if there is one.
    Key(&'a str),
}

/// A server whose users are in a file, and OpenSSH's programs.
struct World {
    folder: Folder,
    server: Server,
    tools: PathBuf,
}

/// The hash of a password, as the command makes it.
fn hash(password: &str) -> String {
    let mut child = outlast()
        .args(["sftp", "password"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(format!("{password}\n").as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    stdout(&output).trim().to_owned()
}

fn write(folder: &Folder, users: &[(&str, String)]) -> PathBuf {
    let home = folder.path("files");
    std::fs::create_dir_all(&home).unwrap();
    let mut text = "account = \"123456789012\"\n".to_owned();
    for (name, said) in users {
        let home = home.display();
        text.push_str(&format!("[[user]]\nname = \"{name}\"\nfolder = \"{home}\"\n{said}\n"));
    }
    let file = folder.write("sftp.toml", text.as_bytes());
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    file
}

pub fn keygen(tools: &Path, folder: &Folder, arguments: &[&str]) {
    let mut keygen = Command::new(tools.join("ssh-keygen"));
    succeed(keygen.arg("-q").args(arguments).current_dir(folder.temporary.path()));
}

impl World {
    fn new(
        users: impl FnOnce(&Path, &Folder) -> Vec<(&'static str, String)>,
        arguments: &[&str],
    ) -> Option<Self> {
        let tools = peer("openssh")?.join("10.0/bin");
        let folder = Folder::new();
        let users = users(&tools, &folder);
        let file = write(&folder, &users).display().to_string();
        let own = ["--sftp-listen", "127.0.0.1:0", "--sftp-users", &file];
        let server = Server::start(&folder.data, &[&own[..], arguments].concat());
        Some(Self { folder, server, tools })
    }

    fn command(&self, user: &str, shows: Shows<'_>) -> Command {
        let port = self.server.sftp.unwrap().to_string();
        let mut command = Command::new(self.tools.join("sftp"));
        command.arg("-S").arg(self.tools.join("ssh")).args(["-F", "none", "-P", &port]);
        for option in [
            "BatchMode=no",
            "NumberOfPasswordPrompts=1",
            "StrictHostKeyChecking=no",
            "UserKnownHostsFile=/dev/null",
            "IdentitiesOnly=yes",
        ] {
            command.args(["-o", option]);
        }
        match shows {
            Shows::Password(password) => {
                let ask = self.folder.path("ask.sh");
                if !ask.exists() {
                    self.folder.write("ask.sh", b"#!/bin/sh\nprintf '%s\\n' \"$SHOWN\"\n");
                    let mode = std::fs::Permissions::from_mode(0o700);
                    std::fs::set_permissions(&ask, mode).unwrap();
                }
                command.args(["-o", "PreferredAuthentications=password"]);
                command.env("SSH_ASKPASS", ask).env("SSH_ASKPASS_REQUIRE", "force");
                command.env("SHOWN", password);
            }
            Shows::Key(key) => {
                command.args(["-o", "PreferredAuthentications=publickey", "-i"]);
                command.arg(self.folder.path(key));
            }
        }
        command.args(["-b", "-"]).arg(format!("{user}@127.0.0.1"));
        command.current_dir(self.folder.temporary.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn login(&self, user: &str, shows: Shows<'_>) -> Output {
        let mut child = self.command(user, shows).spawn().unwrap();
        // A client that is refused does not read.
        let _ = child.stdin.take().unwrap().write_all(b"pwd\n");
        child.wait_with_output().unwrap()
    }

    #[track_caller]
    fn enters(&self, user: &str, shows: Shows<'_>) {
        let output = self.login(user, shows);
        assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    }

    /// What the client is told.
    #[track_caller]
    fn is_refused(&self, user: &str, shows: Shows<'_>) -> String {
        let output = self.login(user, shows);
        assert!(!output.status.success(), "{user} is let in: {}", stdout(&output));
        let said = stderr(&output);
        assert!(said.contains("Permission denied"), "{said}");
        said.replace(user, "USER")
    }

    /// A session that stays, after its first reply.
    fn stays(&self, user: &str, shows: Shows<'_>) -> Child {
        common::stays(self.command(user, shows))
    }

    /// Additional data of the audit events of this activity.
    fn events(&self, activity: &str) -> Vec<Value> {
        let told = self.folder.sftp_events().into_iter();
        told.filter(|told| told["activity-type"] == activity).collect()
    }

    #[track_caller]
    fn ends(&self, session: &mut Child, why: &str) {
        until(why, || {
            // The client notices at its next request.
            let _ = session.stdin.as_mut().unwrap().write_all(b"ls\n");
            session.try_wait().unwrap().is_some()
        });
    }
}

/// `password = "..."`
fn password(text: &str) -> String {
    format!("password = '{}'\n", hash(text))
}

#[test]
fn passwords_of_a_file_log_in_who_has_one() {
    let users = |tools: &Path, folder: &Folder| {
        keygen(tools, folder, &["-N", "", "-C", "", "-t", "ed25519", "-f", "key"]);
        let blocked = format!("{}deny = [\"127.0.0.1\"]\n", password(PASSWORD));
        let expired = format!("{}expires = \"2020-01-01T00:00:00Z\"\n", password(PASSWORD));
        let both = format!("{}key_files = [\"key.pub\"]\n", password("another password"));
        vec![
            ("alice", password(PASSWORD)),
            ("both", both),
            ("keyed", "key_files = [\"key.pub\"]\n".to_owned()),
            ("blocked", blocked),
            ("expired", expired),
        ]
    };
    let Some(world) = World::new(users, &[]) else { return };
    world.enters("alice", Shows::Password(PASSWORD));
    world.enters("both", Shows::Password("another password"));
    world.enters("both", Shows::Key("key"));
    let mut said: Vec<_> = [
        ("alice", "correct horse batterx"),
        ("alice", "another password"),
        ("alice", ""),
        // Passwords of others, among them the one whose hash stands in for those who have none.
        ("both", PASSWORD),
        ("keyed", PASSWORD),
        ("keyed", "another password"),
        ("nobody", PASSWORD),
        ("nobody", "another password"),
        ("blocked", PASSWORD),
        ("expired", PASSWORD),
    ]
    .into_iter()
    .map(|(user, shown)| world.is_refused(user, Shows::Password(shown)))
    .collect();
    said.dedup();
    assert_eq!(said.len(), 1, "the same words, whatever the reason: {said:?}");
    world.is_refused("alice", Shows::Key("key"));
    for reason in ["password is not", "is unknown", "from this address", "logins have ended"] {
        until(reason, || {
            let failures = world.events("AUTH_FAILURE");
            failures.iter().any(|event| event["message"].as_str().unwrap().contains(reason))
        });
    }
    let connected = world.events("CONNECTED");
    let of = |event: &&Value| event["ssh-public-key-fingerprint"].is_null();
    assert_eq!((connected.len(), connected.iter().filter(of).count()), (3, 2), "{connected:?}");
    let whole = std::fs::read_to_string(world.folder.path("sftp.toml")).unwrap();
    assert!(!whole.contains(PASSWORD) && whole.matches("$argon2id$").count() == 4);
}

#[test]
fn a_session_ends_when_its_password_changes() {
    let (alice, other) = (password(PASSWORD), password(PASSWORD));
    let kept = alice.clone();
    let users = move |_: &Path, _: &Folder| vec![("alice", alice), ("bobby", kept)];
    let Some(world) = World::new(users, &[]) else { return };
    let shows = Shows::Password(PASSWORD);
    let (mut leaves, mut stays) = (world.stays("alice", shows), world.stays("bobby", shows));
    // The same password under another salt is another one: the operator has changed it.
    let file = world.folder.path("sftp.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let changed = text.replacen(text.lines().nth(4).unwrap(), other.trim(), 1);
    assert_ne!(text, changed);
    std::fs::write(&file, changed).unwrap();
    world.server.hang_up();
    world.ends(&mut leaves, "the session of the user whose password has changed ends");
    world.enters("alice", shows);
    assert!(stays.try_wait().unwrap().is_none());
    // Without any password nobody is asked for one.
    keygen(&world.tools, &world.folder, &["-N", "", "-C", "", "-t", "ed25519", "-f", "key"]);
    write(&world.folder, &[("alice", "key_files = [\"key.pub\"]\n".to_owned())]);
    world.server.hang_up();
    world.ends(&mut stays, "the session of the user who is gone ends");
    until("the new users are known", || world.login("alice", Shows::Key("key")).status.success());
    let said = world.is_refused("alice", shows);
    assert!(said.contains("(publickey)"), "{said}");
}

#[test]
fn certificates_of_an_authority_of_the_user_log_in() {
    let users = |tools: &Path, folder: &Folder| {
        for name in ["ca", "other-ca", "key", "revoked"] {
            keygen(tools, folder, &["-N", "", "-C", "", "-t", "ed25519", "-f", name]);
        }
        let line = std::fs::read_to_string(folder.path("ca.pub")).unwrap();
        let one = format!("certificate_authorities = [\"{}\"]\n", line.trim());
        folder.write("list", &std::fs::read(folder.path("revoked.pub")).unwrap());
        vec![
            ("alice", one.clone()),
            ("bobby", "certificate_authority_files = [\"other-ca.pub\"]\n".to_owned()),
            ("denied", format!("{one}deny = [\"127.0.0.1\"]\n")),
            ("keyed", "key_files = [\"key.pub\"]\n".to_owned()),
        ]
    };
    let tools = peer("openssh").map(|openssh| openssh.join("10.0/bin"));
    let Some(tools) = tools else { return };
    // The list must be there when the server starts.
    let folder = Folder::new();
    let users = users(&tools, &folder);
    let file = write(&folder, &users).display().to_string();
    let list = folder.path("list").display().to_string();
    let own = ["--sftp-listen", "127.0.0.1:0", "--sftp-users", &file, "--sftp-revoked-keys", &list];
    let server = Server::start(&folder.data, &own);
    let world = World { folder, server, tools };
    let key = Shows::Key("key");
    let certify = |authority: &str, key: &str, arguments: &[&str]| {
        let _ = std::fs::remove_file(world.folder.path(&format!("{key}-cert.pub")));
        let public = format!("{key}.pub");
        let first = ["-s", authority, "-I", "id of it"];
        let all = [&first[..], arguments, &[public.as_str()]].concat();
        keygen(&world.tools, &world.folder, &all);
    };
    // The key alone is no proof for a user with an authority.
    world.is_refused("alice", key);
    world.enters("keyed", key);
    certify("ca", "key", &["-n", "alice,denied,keyed,nobody", "-z", "7"]);
    world.enters("alice", key);
    let connected = world.events("CONNECTED");
    let last = connected.iter().find(|event| event["user"] == "alice").unwrap();
    assert_eq!(last["ssh-certificate-key-id"], "id of it");
    assert_eq!(last["ssh-certificate-serial"], "7");
    assert!(last["ssh-public-key-fingerprint"].is_string());
    // OpenSSH shows the certificate, and then the key without it.
    world.enters("keyed", key);
    for user in ["denied", "nobody", "bobby"] {
        world.is_refused(user, key);
    }
    for (authority, arguments) in [
        ("other-ca", &["-n", "alice"][..]),
        ("ca", &["-n", "bobby"]),
        // A user's certificate without principals is for nobody.
        ("ca", &[]),
        ("ca", &["-n", "alice", "-V", "20200101:20210101"]),
        ("ca", &["-n", "alice", "-V", "20990101:21000101"]),
        ("ca", &["-n", "alice", "-h"]),
        ("ca", &["-n", "alice", "-O", "source-address=192.0.2.0/24"]),
        ("ca", &["-n", "alice", "-O", "force-command=/bin/sh"]),
    ] {
        certify(authority, "key", arguments);
        world.is_refused("alice", key);
    }
    certify("ca", "revoked", &["-n", "alice"]);
    world.is_refused("alice", Shows::Key("revoked"));
    certify("other-ca", "key", &["-n", "bobby"]);
    world.enters("bobby", key);
    // A session ends when its authority is not the user's any more.
    certify("ca", "key", &["-n", "alice"]);
    let mut session = world.stays("alice", key);
    write(&world.folder, &[("alice", "certificate_authority_files = [\"other-ca.pub\"]\n".into())]);
    world.server.hang_up();
    world.ends(&mut session, "the session of the user with another authority ends");
    world.is_refused("alice", key);
}

#[test]
fn wrong_passwords_and_authorities_in_a_file_are_refused_with_advice() {
    let folder = Folder::new();
    let check = |said: &str| {
        let home = folder.path("files");
        std::fs::create_dir_all(&home).unwrap();
        let text = format!(
            "account = '123456789012'\n[[user]]\nname = 'alice'\nfolder = '{}'\n{said}\n",
            home.display()
        );
        let file = folder.write("check.toml", text.as_bytes());
        run(outlast().args(["sftp", "check"]).arg(file))
    };
    for (said, why) in [
        ("", "no way to log in"),
        ("password = 'hunter2hunter2'", "no hash in the PHC string format"),
        ("password = '$6$saltsalt$hunter2'", "none of argon2id, scrypt"),
        ("password = '$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ$hunter2hunter2hunter2g'", "too low"),
        ("password = 5", "expected a string"),
        ("password = \"hunter2", "line"),
        ("certificate_authorities = ['ssh-ed25519 AAAA']", "certificate_authorities, number 1"),
        ("certificate_authority_files = ['none.pub']", "none.pub"),
    ] {
        let output = check(said);
        let shown = stderr(&output);
        assert!(!output.status.success() && shown.contains(why), "{said}: {shown}");
        assert!(!shown.contains("hunter2"), "{shown}");
    }
    let output = check(&password(PASSWORD));
    assert!(output.status.success(), "{}", stderr(&output));
    let shown = stdout(&output);
    assert!(shown.contains("alice (0 keys, a password)") && !shown.contains('$'), "{shown}");
    for (input, why) in [("short\n", "too short"), ("", "too short"), ("\n\n", "too short")] {
        let mut child = outlast()
            .args(["sftp", "password"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(!output.status.success() && stderr(&output).contains(why), "{input:?}");
    }
}
