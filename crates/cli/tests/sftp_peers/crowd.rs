//! A crowd of real clients as they are: what the ledger, its forecast and the audit trail say of each must be right.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use outlast_api::ops::transfer::update_server::UpdateServer;
use outlast_testing::program;
use outlast_testing::s3::S3;
use serde_json::{Value, json};

use super::{Putty, libraries, openssh};
use crate::common::peers::peer;
use crate::common::{outlast, run, stderr, stdout};
use crate::sftp::{World, random};

/// A client, and what must be said of it.
struct Member {
    /// Its user, too.
    name: &'static str,
    /// Verdict in the ledger.
    verdict: &'static str,
    /// What it gets from a server that prefers hybrids; nothing if it is refused.
    key_exchange: Option<&'static str>,
    /// How its identification string begins.
    version: &'static str,
    command: Command,
}

impl Member {
    fn is_hybrid(&self) -> bool {
        self.verdict == "hybrid"
    }
}

const HYBRID: Option<&str> = Some("mlkem768x25519-sha256");

/// All whose peers are installed, each with a user of its own.
fn crowd(world: &World, putty: Option<&Putty>) -> Vec<Member> {
    let mut members = Vec::new();
    let port = world.server.sftp.unwrap().to_string();
    let mut add = |name, verdict, key_exchange, version, command| {
        members.push(Member { name, verdict, key_exchange, version, command });
    };
    for client in openssh() {
        world.at_home(client.name, "all");
        let command = client.sftp(world, client.name, client.name, &[]);
        match client.name {
            // Its only hybrid is that of Streamlined NTRU Prime.
            "openssh-of-the-machine" => {
                add(
                    client.name,
                    "unserved",
                    Some("curve25519-sha256"),
                    "SSH-2.0-OpenSSH_9.",
                    command,
                );
            }
            "openssh-10-0" => {
                add(client.name, "hybrid", HYBRID, "SSH-2.0-OpenSSH_10.0", command);
                let name = "openssh-configured";
                world.at_home(name, "all");
                let old = ["-o", "KexAlgorithms=ecdh-sha2-nistp256"].map(str::to_owned);
                let command = client.sftp(world, name, name, &old);
                let kex = Some("ecdh-sha2-nistp256");
                add(name, "never-offers", kex, "SSH-2.0-OpenSSH_10.0", command);
            }
            _ => add(client.name, "hybrid", HYBRID, "SSH-2.0-OpenSSH_10.6", command),
        }
    }
    for mut library in libraries() {
        let name = library.name;
        world.at_home(name, "all");
        library.command.args([&port, name]).arg(world.folder.path(name)).arg("default=-");
        let version = match name {
            "asyncssh" => "SSH-2.0-AsyncSSH_",
            "paramiko" => "SSH-2.0-paramiko_",
            "mina" => "SSH-2.0-APACHE-SSHD-",
            "jsch" => "SSH-2.0-JSCH_",
            _ => "SSH-2.0-Go",
        };
        add(name, "hybrid", HYBRID, version, library.command);
    }
    if let Some(putty) = putty {
        world.at_home("psftp", "all");
        let key = putty.key(&world.folder.path("psftp"));
        let command = putty.psftp(world, "psftp", &key, "");
        add("psftp", "hybrid", HYBRID, "SSH-2.0-PuTTY_Release_", command);
    }
    if let Some(place) = peer("rclone") {
        world.at_home("rclone", "all");
        let mut command = program::command(place.join("bin/rclone").to_str().unwrap());
        let key = world.folder.path("rclone").display().to_string();
        command.args(["--config", "/dev/null", "--retries", "1", "--low-level-retries", "1"]);
        command.args(["--sftp-host", "127.0.0.1", "--sftp-port", &port, "--sftp-user", "rclone"]);
        command.args(["--sftp-key-file", &key, "--sftp-shell-type", "none"]);
        command.args(["--sftp-disable-hashcheck", "copyto"]);
        command.arg(world.folder.path("x")).arg(":sftp:/files/rclone/x");
        // Debian's is older than the hybrids of Go's library.
        let kex = Some("curve25519-sha256");
        add("rclone", "never-offers", kex, "SSH-2.0-rclone/", command);
    }
    if PathBuf::from("/usr/bin/curl").exists() {
        world.at_home("curl", "all");
        let mut command = program::command("curl");
        command.args(["-sS", "-k", "-u", "curl:", "--key"]).arg(world.folder.path("curl"));
        command.arg("--pubkey").arg(world.folder.path("curl.pub"));
        command.arg(format!("sftp://127.0.0.1:{port}/files/curl/"));
        // libssh2 1.10 has neither AES-GCM nor MACs after encryption.
        add("curl", "refused", None, "SSH-2.0-libssh2_", command);
    }
    members
}

/// All at once; what each said, and whether it did its work.
fn come(members: &mut [Member]) -> Vec<(&'static str, bool, String)> {
    let outcome = |output: Output, name| {
        let text = stdout(&output) + &stderr(&output);
        (name, output.status.success() && !text.contains("failed"), text)
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = members
            .iter_mut()
            .map(|member| (member.name, scope.spawn(|| run(&mut member.command))))
            .collect();
        running.into_iter().map(|(name, thread)| outcome(thread.join().unwrap(), name)).collect()
    })
}

fn ledger(world: &World, arguments: &[&str]) -> Value {
    let mut command = outlast();
    command.arg("ledger").args(arguments).args(["--listener", "sftp", "--output", "json"]);
    let output = run(command.arg("--data").arg(&world.folder.data));
    serde_json::from_str(&stdout(&output)).unwrap_or_else(|error| {
        panic!("{arguments:?}: {error}: {}{}", stdout(&output), stderr(&output))
    })
}

/// The rows of a member: those of its user, and of a refused client those with its software.
fn rows<'a>(world: &World, member: &Member, clients: &'a Value) -> Vec<&'a Value> {
    let user = format!("arn:aws:transfer:us-east-1:123456789012:user/{}/{}", world.id, member.name);
    let is_it = |row: &&Value| match member.key_exchange {
        Some(_) => row["principal"] == user,
        None => {
            row["fingerprint"]["software"].as_str().is_some_and(|name| name.starts_with("libssh2"))
        }
    };
    clients.as_array().unwrap().iter().filter(is_it).collect()
}

#[test]
fn ledger_forecast_and_audit_trail_are_right_about_each_of_the_crowd() {
    let world = World::new(&PathBuf::from("/usr/bin"), "2026-11", &[]);
    world.folder.write("x", &random(300_000));
    let putty = Putty::find();
    let mut members = crowd(&world, putty.as_ref());
    for (at, (name, worked, text)) in come(&mut members).into_iter().enumerate() {
        assert_eq!(worked, members[at].key_exchange.is_some(), "{name}: {text}");
    }

    // What happened is in the ledger once the connections have ended.
    let mut summary = Value::Null;
    outlast_testing::until("the ledger is written", || {
        summary = ledger(&world, &["summary"]);
        members.iter().all(|member| !rows(&world, member, &summary["clients"]).is_empty())
    });
    assert_eq!(summary["missed"], 0, "{summary}");
    let laggards = ledger(&world, &["laggards"]);
    let forecast = ledger(&world, &["dry-run", "--policy", "2026-11-require-pq"]);
    let events = world.events();
    println!("{:<24} {:<14} {:<28} software", "client", "verdict", "key exchange");
    for member in &members {
        let found = rows(&world, member, &summary["clients"]);
        assert_eq!(found.len(), 1, "{}: {summary}", member.name);
        let (row, kex) = (found[0], member.key_exchange.unwrap_or("-"));
        let software = row["fingerprint"]["software"].as_str().unwrap_or("-");
        println!("{:<24} {:<14} {kex:<28} {software}", member.name, member.verdict);
        assert_eq!(row["verdict"], member.verdict, "{}: {row}", member.name);
        let methods: Vec<_> = row["groups"].as_object().unwrap().keys().collect();
        assert_eq!(methods, member.key_exchange.iter().collect::<Vec<_>>(), "{}", member.name);
        // Those who cannot have a hybrid are told what to do.
        let lagging = rows(&world, member, &laggards);
        assert_eq!(lagging.is_empty(), member.is_hybrid(), "{}: {laggards}", member.name);
        assert!(lagging.iter().all(|row| !row["hint"].as_str().unwrap().is_empty()));
        // Nobody breaks who was refused before.
        let breaks = rows(&world, member, &forecast["clients"]);
        let breaks = breaks.iter().any(|row| row["breaks"].as_u64().unwrap() > 0);
        assert_eq!(breaks, !member.is_hybrid() && member.key_exchange.is_some(), "{}", member.name);
        audited(member, &events);
    }
    let served = members.iter().filter(|member| member.key_exchange.is_some()).count();
    println!("{} clients, {served} served", members.len());

    // The forecast comes true.
    let change = json!({ "ServerId": world.id, "SecurityPolicyName": "2026-11-require-pq" });
    world.call(async |session| {
        session.call::<UpdateServer>(change).await.unwrap().unwrap();
    });
    let probe = members.iter_mut().find(|member| member.name == "openssh-of-the-machine").unwrap();
    outlast_testing::until("the policy holds", || !run(&mut probe.command).status.success());
    for (at, (name, worked, text)) in come(&mut members).into_iter().enumerate() {
        assert_eq!(worked, members[at].is_hybrid(), "{name}: {text}");
    }
}

/// The same clients with buckets of S3, where nothing can be written into what is there.
#[test]
fn each_of_the_crowd_uses_buckets_of_s3() {
    let Some(moto) = S3::moto(0) else { return };
    let (world, ..) = World::behind(&moto, Path::new("/usr/bin"));
    // As AWS advises for clients that set the times of what they send: rclone does.
    let change =
        json!({ "ServerId": world.id, "ProtocolDetails": { "SetStatOption": "ENABLE_NO_OP" } });
    world.call(async |session| {
        session.call::<UpdateServer>(change).await.unwrap().unwrap();
    });
    let content = random(9_000_000);
    world.folder.write("x", &content);
    let putty = Putty::find();
    let mut members = crowd(&world, putty.as_ref());
    for (at, (name, worked, text)) in come(&mut members).into_iter().enumerate() {
        assert_eq!(worked, members[at].key_exchange.is_some(), "{name}: {text}");
    }
    if members.iter().any(|member| member.name == "rclone") {
        assert!(moto.curl(&[], "/files/rclone/x") == content, "another content");
    }
    let left = moto.keys("files");
    let is_expected = |key: &String| key.ends_with('/') || key == "rclone/x";
    assert!(left.iter().all(is_expected), "{left:?}");
    assert!(moto.uploads("files").is_empty());
}

/// Whether the audit trail has the member's login and file.
fn audited(member: &Member, events: &[Value]) {
    let of_kind = |kind: &str| {
        let is_it = |event: &&Value| event["user"] == member.name && event["activity-type"] == kind;
        events.iter().filter(is_it).collect::<Vec<_>>()
    };
    let connected = of_kind("CONNECTED");
    let Some(kex) = member.key_exchange else {
        assert!(connected.is_empty(), "{}: {connected:?}", member.name);
        return;
    };
    assert!(!connected.is_empty(), "{}", member.name);
    for event in connected {
        assert_eq!(event["kex"], kex, "{}: {event}", member.name);
        assert_eq!(event["post-quantum"], member.is_hybrid(), "{}", member.name);
        let client = event["client"].as_str().unwrap();
        assert!(client.starts_with(member.version), "{}: {client}", member.name);
        assert!(event["ssh-public-key-fingerprint"].as_str().unwrap().starts_with("SHA256:"));
    }
    let written = of_kind("CLOSE").iter().any(|event| event["bytes-in"] != "0");
    assert!(written, "{}: {events:?}", member.name);
}
