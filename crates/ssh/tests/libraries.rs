//! SSH libraries of other languages: their clients against the server, and this crate's client against a server of
//! theirs.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use outlast_crypto::Secret;
use outlast_ssh::*;
use outlast_testing::{checkout, peer, program};

use crate::served::{KINDS, PASSWORD, Served, config};

fn key_file(path: &Path, key: &PrivateKey) {
    std::fs::write(path, key.to_openssh_pem("test").unwrap().expose()).unwrap();
}

/// Every algorithm of this crate, one at a time, as each library knows it. What a library is expected to lack is listed:
/// so that nothing is missing unnoticed.
fn clients(mut command: Command, lacking: &BTreeMap<&str, &[&str]>) {
    let mut settings = config();
    settings.limits.rekey_bytes = 100_000;
    let served = Served::start(settings);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("id");
    key_file(&path, &PrivateKey::generate(KeyKind::Ed25519).unwrap());
    let all = Algorithms::all();
    let cases = [
        ("kex", &all.key_exchanges),
        ("key", &all.host_keys),
        ("cipher", &all.ciphers),
        ("mac", &all.macs),
    ];
    command.arg(served.port.to_string()).arg(path);
    let names = cases.iter().flat_map(|(kind, names)| names.iter().map(move |name| (kind, name)));
    command.args(names.map(|(kind, name)| format!("{kind}={name}")));
    let text = program::succeed(&mut command);
    let mut connected = 0;
    let mut lacks: BTreeMap<&str, Vec<&str>> = lacking.keys().map(|name| (*name, vec![])).collect();
    for line in text.lines() {
        let mut words = line.splitn(4, ' ');
        let mut word = || words.next().unwrap();
        let (library, kind, name, outcome) = (word(), word(), word(), word());
        if outcome == "unsupported" {
            lacks.get_mut(library).unwrap().push(name);
            continue;
        }
        assert_eq!(outcome, "ok", "{line}");
        connected += 1;
        let seen = served.next();
        let negotiation = &seen.negotiations[0];
        let chosen = negotiation.outcome.as_ref().unwrap();
        let used = match kind {
            "kex" => chosen.key_exchange,
            "key" => chosen.host_key,
            "cipher" => chosen.to_client.cipher,
            _ => chosen.to_server.mac.unwrap(),
        };
        assert_eq!(used, name, "{line}");
        assert!(negotiation.strict && seen.negotiations.len() >= 2, "{line}");
    }
    println!("{connected} connections");
    for (library, names) in lacking {
        assert_eq!(lacks[library], *names, "{library}");
    }
}

#[test]
fn python_clients_connect() {
    let Some(place) = peer("python") else { return };
    let mut command = program::command(place.join("bin/python").to_str().unwrap());
    command.arg(checkout().join("tests/interop/ssh/python/clients.py"));
    let paramiko: &[&str] = &[
        "mlkem768nistp256-sha256",
        "mlkem1024nistp384-sha384",
        "curve25519-sha256",
        "ssh-mldsa44-ed25519",
        "chacha20-poly1305@openssh.com",
    ];
    let asyncssh: &[&str] = &["ssh-mldsa44-ed25519"];
    clients(command, &BTreeMap::from([("asyncssh", asyncssh), ("paramiko", paramiko)]));
}

#[test]
fn go_clients_connect() {
    let Some(place) = peer("go127") else { return };
    let command = program::command(place.join("bin/ssh-clients").to_str().unwrap());
    let go: &[&str] = &[
        "mlkem768nistp256-sha256",
        "mlkem1024nistp384-sha384",
        "curve25519-sha256@libssh.org",
        "ssh-mldsa44-ed25519",
    ];
    clients(command, &BTreeMap::from([("go", go)]));
}

/// This crate's client, each algorithm and each way to authenticate, at asyncssh's server.
#[test]
fn a_python_server_is_reached() {
    let Some(place) = peer("python") else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut command = program::command(place.join("bin/python").to_str().unwrap());
    command.arg(checkout().join("tests/interop/ssh/python/server.py"));
    let mut known = Vec::new();
    for kind in KINDS.into_iter().filter(|kind| *kind != KeyKind::MlDsa44Ed25519) {
        let key = PrivateKey::generate(kind).unwrap();
        let path = folder.path().join(format!("{kind:?}"));
        key_file(&path, &key);
        command.arg(path);
        known.push(key.public_key().clone());
    }
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let port: u16 = line.trim().parse().unwrap();
    let all = Algorithms::all();
    let mut cases = Vec::new();
    for name in &all.key_exchanges {
        cases.push(Algorithms { key_exchanges: vec![name], ..all.clone() });
    }
    for name in all.host_keys.iter().filter(|name| !name.contains("mldsa")) {
        cases.push(Algorithms { host_keys: vec![name], ..all.clone() });
    }
    for name in &all.ciphers {
        cases.push(Algorithms { ciphers: vec![name], ..all.clone() });
    }
    for name in &all.macs {
        cases.push(Algorithms { ciphers: vec!["aes192-ctr"], macs: vec![name], ..all.clone() });
    }
    let users: Vec<_> =
        KINDS[1..].iter().map(|kind| PrivateKey::generate(*kind).unwrap().into()).collect();
    for (at, algorithms) in cases.into_iter().enumerate() {
        let what = format!("{algorithms:?}");
        let credential = match users.get(at % (users.len() + 1)) {
            Some(key) => Credential::Key { key: Arc::clone(key), certificate: None },
            None => Credential::Password(Secret::new(PASSWORD.as_bytes().to_vec())),
        };
        let settings = ClientConfig { algorithms, ..ClientConfig::default() };
        let (negotiations, shown) = echo(port, settings, credential, &what);
        assert!(negotiations >= 2, "{what}: the server exchanges keys after 200 kB");
        assert!(known.contains(&shown), "{what}");
    }
    drop(child.stdin.take());
    child.wait().unwrap();
}

/// Sends a message to a server that echoes it. Returns how many key exchanges there were, and the host key.
fn echo(
    port: u16,
    settings: ClientConfig,
    credential: Credential,
    what: &str,
) -> (usize, PublicKey) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(outlast_testing::PATIENCE)).unwrap();
    let mut client = Client::new(Arc::new(settings), 0);
    let message: Vec<u8> = (0..300_000_u32).map(|at| (at / 3) as u8).collect();
    let (mut credential, mut echoed, mut status) = (Some(credential), Vec::new(), None);
    let (mut negotiations, mut host_key) = (0, None);
    let mut sent = 0;
    let mut buffer = vec![0; 16 * 1024];
    loop {
        while let Some(event) = client.poll() {
            match event {
                ClientEvent::Negotiated(_) => negotiations += 1,
                ClientEvent::HostKey(shown) => {
                    host_key = Some(shown.key);
                    client.answer(true);
                }
                ClientEvent::Ready => client.authenticate("alice", credential.take().unwrap()),
                ClientEvent::Refused { .. } => panic!("{what}: refused"),
                ClientEvent::Authenticated => {
                    client.open().unwrap();
                }
                ClientEvent::Opened(channel) => {
                    client.request(channel, &Request::Exec(b"echo".to_vec()));
                }
                ClientEvent::Answered { channel, accepted } => {
                    assert!(accepted, "{what}");
                    // A little at a time: this loop either reads or writes.
                    sent = client.write(channel, &message[..10_000]);
                }
                ClientEvent::Data { channel, bytes, .. } => {
                    echoed.extend_from_slice(&bytes);
                    client.consumed(channel, bytes.len());
                    if echoed.len() == sent {
                        let end = message.len().min(sent + 10_000);
                        sent += client.write(channel, &message[sent..end]);
                        if sent == message.len() {
                            client.eof(channel);
                        }
                    }
                }
                ClientEvent::ExitStatus { status: code, .. } => status = Some(code),
                ClientEvent::Closed(_) => client.disconnect(Reason::ByApplication, "done"),
                ClientEvent::Disconnected(end) => {
                    assert_eq!(end.reason, Reason::ByApplication, "{what}: {end:?}");
                    assert!(echoed == message && status == Some(7), "{what}: {end:?}");
                    return (negotiations, host_key.unwrap());
                }
                _ => {}
            }
        }
        while !client.outgoing().is_empty() {
            let len = stream.write(client.outgoing()).unwrap();
            client.sent(len);
        }
        if client.wants_input() {
            let len = stream.read(&mut buffer).unwrap();
            assert!(len > 0, "{what}: the server left");
            client.receive(&buffer[..len], 0);
        }
    }
}
