//! OpenSSH's clients against the server: the machine's own, and two newer ones. The expected outcome comes from what
//! the client says it supports (`ssh -Q`).

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use outlast_ssh::*;
use outlast_testing::program;

use crate::served::{Served, config, host_keys};

/// An OpenSSH.
struct Peer {
    name: &'static str,
    bin: PathBuf,
}

/// All that are installed.
fn peers() -> Vec<Peer> {
    let mut peers = Vec::new();
    if Path::new("/usr/bin/ssh").exists() {
        peers.push(Peer { name: "machine", bin: "/usr/bin".into() });
    }
    match outlast_testing::peer("openssh") {
        Some(place) => {
            for name in ["10.0", "10.6"] {
                peers.push(Peer { name, bin: place.join(name).join("bin") });
            }
        }
        None => outlast_testing::skip_for_want_of("openssh", "OpenSSH 10.0 and 10.6"),
    }
    peers
}

impl Peer {
    fn program(&self, name: &str) -> Command {
        let mut command = program::command(self.bin.join(name).to_str().unwrap());
        command.env_remove("SSH_AUTH_SOCK").env_remove("DISPLAY");
        command
    }

    /// Names of this kind that the client has: `kex`, `key`, `cipher`, `mac`, `sig`.
    fn has(&self, kind: &str) -> BTreeSet<String> {
        let text = program::succeed(self.program("ssh").args(["-F", "none", "-Q", kind]));
        text.lines().map(str::to_owned).collect()
    }

    fn ssh(&self, folder: &Path, port: u16) -> Command {
        let mut command = self.program("ssh");
        command.args(["-F", "none", "-T", "-p", &port.to_string(), "-l", "alice"]);
        for option in [
            "BatchMode=yes",
            "IdentitiesOnly=yes",
            "StrictHostKeyChecking=yes",
            "GlobalKnownHostsFile=/dev/null",
            "UpdateHostKeys=no",
            "LogLevel=ERROR",
        ] {
            command.args(["-o", option]);
        }
        let known = folder.join("known_hosts");
        command.arg("-o").arg(format!("UserKnownHostsFile={}", known.display()));
        command
    }
}

/// Runs with this input.
fn run(command: &mut Command, input: &[u8]) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || {
        // A client that refuses the connection reads nothing.
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

/// A folder with known hosts and a user's key.
fn folder(port: u16, user: &PrivateKey) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut known = String::new();
    for host in host_keys() {
        known += &format!("[127.0.0.1]:{port} {}\n", host.key.public_key().to_openssh_line());
    }
    std::fs::write(folder.path().join("known_hosts"), known).unwrap();
    write_key(&folder.path().join("id"), user);
    folder
}

fn write_key(path: &Path, key: &PrivateKey) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::write(path, key.to_openssh_pem("alice").unwrap().expose()).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let line = key.public_key().to_openssh_line() + "\n";
    std::fs::write(path.with_extension("pub"), line).unwrap();
}

const MESSAGE: &[u8] = b"a line that comes back\n";

/// Each key exchange, host key, cipher and MAC that both sides have connects with just that one.
#[test]
fn each_algorithm_connects() {
    let served = Served::start(config());
    let user = PrivateKey::generate(KeyKind::Ed25519).unwrap();
    let folder = folder(served.port, &user);
    let all = Algorithms::all();
    for peer in peers() {
        let kinds = [
            ("KexAlgorithms", "kex", &all.key_exchanges),
            ("HostKeyAlgorithms", "sig", &all.host_keys),
            ("Ciphers", "cipher", &all.ciphers),
            ("MACs", "mac", &all.macs),
        ];
        let mut tried = 0;
        for (option, query, names) in kinds {
            let has = peer.has(query);
            for name in names {
                let mut command = peer.ssh(folder.path(), served.port);
                command.arg("-o").arg(format!("{option}={name}"));
                if option == "MACs" {
                    command.args(["-o", "Ciphers=aes128-ctr"]);
                }
                command.arg("-i").arg(folder.path().join("id")).args(["127.0.0.1", "echo"]);
                let output = run(&mut command, MESSAGE);
                let what = format!("{} {name}: {}", peer.name, program::stderr(&output));
                assert_eq!(output.status.success(), has.contains(*name), "{what}");
                if !output.status.success() {
                    // The client does not even start.
                    continue;
                }
                tried += 1;
                assert_eq!(output.stdout, MESSAGE, "{what}");
                let seen = served.next();
                let negotiation = &seen.negotiations[0];
                let chosen = negotiation.outcome.as_ref().unwrap();
                let used = match option {
                    "KexAlgorithms" => chosen.key_exchange,
                    "HostKeyAlgorithms" => chosen.host_key,
                    "Ciphers" => chosen.to_server.cipher,
                    _ => chosen.to_client.mac.unwrap(),
                };
                assert_eq!(used, *name);
                // OpenSSH has strict key exchange since 9.6; Debian's 9.2 has it, too.
                assert!(negotiation.strict, "{what}");
                assert!(negotiation.peer_version.starts_with("SSH-2.0-OpenSSH_"));
                assert!(seen.accepted[0].contains("Valid"), "{what}");
            }
        }
        println!("{}: {tried} algorithms", peer.name);
        assert!(tried >= 20, "{}", peer.name);
    }
}

/// Each kind of user key, and its certificate, made by this crate and by ssh-keygen.
#[test]
fn each_user_key_connects() {
    let served = Served::start(config());
    let authority = PrivateKey::generate(KeyKind::Ed25519).unwrap();
    for peer in peers() {
        let has = peer.has("key");
        for kind in crate::served::KINDS {
            let user = PrivateKey::generate(kind).unwrap();
            let key_type = user.public_key().key_type();
            if !has.contains(key_type) {
                continue;
            }
            let folder = folder(served.port, &user);
            for certified in [false, true] {
                let id = folder.path().join("id");
                if certified {
                    let fields = CertificateFields {
                        serial: 1,
                        kind: CertificateKind::User,
                        key_id: "alice".to_owned(),
                        principals: vec!["alice".to_owned()],
                        valid_after_s: 0,
                        valid_before_s: u64::MAX,
                        critical_options: Vec::new(),
                        extensions: vec![("permit-pty".to_owned(), option_value(None))],
                    };
                    let issued =
                        Certificate::issue(user.public_key(), &fields, &authority).unwrap();
                    let path = folder.path().join("id-cert.pub");
                    std::fs::write(path, issued.to_openssh_line() + "\n").unwrap();
                }
                let mut command = peer.ssh(folder.path(), served.port);
                // OpenSSH would try the key itself first.
                if certified {
                    command.args(["-o", "PubkeyAcceptedAlgorithms=*-cert*"]);
                }
                command.arg("-i").arg(&id).args(["127.0.0.1", "echo"]);
                let output = run(&mut command, MESSAGE);
                let what =
                    format!("{} {kind:?} {certified}: {}", peer.name, program::stderr(&output));
                assert!(output.status.success() && output.stdout == MESSAGE, "{what}");
                let accepted = served.next().accepted.remove(0);
                assert_eq!(accepted.contains("certificate: Some"), certified, "{what} {accepted}");
            }
        }
    }
}

/// ssh-keygen and this crate read each other's keys, fingerprints and certificates.
#[test]
fn ssh_keygen_agrees() {
    for peer in peers() {
        let has = peer.has("key");
        for kind in crate::served::KINDS {
            let key = PrivateKey::generate(kind).unwrap();
            let key_type = key.public_key().key_type();
            if !has.contains(key_type) {
                continue;
            }
            let folder = tempfile::tempdir().unwrap();
            let ours = folder.path().join("ours");
            write_key(&ours, &key);
            // Our private key, as ssh-keygen reads it.
            let public =
                program::succeed(peer.program("ssh-keygen").arg("-y").arg("-f").arg(&ours));
            let line = key.public_key().to_openssh_line();
            assert!(public.starts_with(&line), "{} {kind:?}: {public}", peer.name);
            let listed =
                program::succeed(peer.program("ssh-keygen").arg("-l").arg("-f").arg(&ours));
            assert!(listed.contains(&key.public_key().fingerprint()), "{listed}");
            if let Some(bits) = key.public_key().bits() {
                assert!(listed.starts_with(&format!("{bits} ")), "{listed}");
            }
            // Its private key, as this crate reads it: in OpenSSH's format, and as PEM where it has one.
            let theirs = folder.path().join("theirs");
            let (name, bits) = match kind {
                KeyKind::MlDsa44Ed25519 => ("mldsa44-ed25519", None),
                KeyKind::Ed25519 => ("ed25519", None),
                KeyKind::EcdsaP256 => ("ecdsa", Some("256")),
                KeyKind::EcdsaP384 => ("ecdsa", Some("384")),
                KeyKind::EcdsaP521 => ("ecdsa", Some("521")),
                _ => ("rsa", Some("2048")),
            };
            let pem = if matches!(name, "ecdsa" | "rsa") {
                &["RFC4716", "PEM", "PKCS8"][..]
            } else {
                &["RFC4716"]
            };
            for format in pem {
                let _ = std::fs::remove_file(&theirs);
                let mut command = peer.program("ssh-keygen");
                command.args(["-q", "-N", "", "-t", name, "-m", format, "-C", "theirs"]);
                command.args(bits.into_iter().flat_map(|bits| ["-b", bits]));
                program::succeed(command.arg("-f").arg(&theirs));
                let text = std::fs::read_to_string(&theirs).unwrap();
                let read = PrivateKey::from_pem(&text).unwrap();
                let public = std::fs::read_to_string(theirs.with_extension("pub")).unwrap();
                let parsed = PublicKey::from_openssh_line(&public).unwrap();
                assert_eq!(read.public_key(), &parsed, "{} {kind:?} {format}", peer.name);
            }
            // An encrypted one is refused with what to do.
            let mut command = peer.program("ssh-keygen");
            command.args(["-q", "-p", "-P", "", "-N", "passphrase", "-f"]);
            program::succeed(command.arg(&theirs));
            let text = std::fs::read_to_string(&theirs).unwrap();
            assert!(matches!(PrivateKey::from_pem(&text), Err(KeyError::Encrypted)));
            // Its certificate, by our key as the authority.
            let mut command = peer.program("ssh-keygen");
            command.args(["-q", "-I", "theirs", "-n", "alice,bob", "-z", "42", "-V", "+1h"]);
            command.args([
                "-O",
                "force-command=internal-sftp",
                "-O",
                "source-address=192.0.2.0/24",
            ]);
            program::succeed(command.arg("-s").arg(&ours).arg(theirs.with_extension("pub")));
            let text = std::fs::read_to_string(folder.path().join("theirs-cert.pub")).unwrap();
            let issued = Certificate::from_openssh_line(&text).unwrap();
            assert_eq!(issued.authority(), key.public_key());
            assert_eq!((issued.fields().serial, issued.fields().principals.len()), (42, 2));
            assert_eq!(issued.forced_command(), Some(&b"internal-sftp"[..]));
            assert!(issued.check_source("192.0.2.1".parse().unwrap()).is_ok());
            // Our certificate, as ssh-keygen reads it.
            let fields =
                CertificateFields { kind: CertificateKind::Host, ..issued.fields().clone() };
            let fields = CertificateFields { critical_options: Vec::new(), ..fields };
            let own = Certificate::issue(issued.key(), &fields, &key).unwrap();
            let path = folder.path().join("own-cert.pub");
            std::fs::write(&path, own.to_openssh_line() + "\n").unwrap();
            let listed =
                program::succeed(peer.program("ssh-keygen").arg("-L").arg("-f").arg(&path));
            for part in ["host certificate", "Serial: 42", "alice", &key.public_key().fingerprint()]
            {
                assert!(listed.contains(part), "{} {kind:?} {part}: {listed}", peer.name);
            }
        }
    }
}

/// Data both ways while keys change every 64 KiB, wanted by the client, the server or both.
#[test]
fn data_flows_while_keys_change() {
    for (server_rekeys, client_rekeys) in [(true, false), (false, true), (true, true)] {
        let mut settings = config();
        if server_rekeys {
            settings.limits.rekey_bytes = 64 * 1024;
        }
        let served = Served::start(settings);
        let user = PrivateKey::generate(KeyKind::Ed25519).unwrap();
        let folder = folder(served.port, &user);
        let message: Vec<u8> = (0..1_500_000_u32).map(|at| (at / 251) as u8).collect();
        for peer in peers() {
            for cipher in ["aes256-gcm@openssh.com", "chacha20-poly1305@openssh.com", "aes128-ctr"]
            {
                let mut command = peer.ssh(folder.path(), served.port);
                command.args(["-o", &format!("Ciphers={cipher}")]);
                if client_rekeys {
                    command.args(["-o", "RekeyLimit=64K"]);
                }
                command.arg("-i").arg(folder.path().join("id")).args(["127.0.0.1", "echo"]);
                let output = run(&mut command, &message);
                let what = format!("{} {cipher}: {}", peer.name, program::stderr(&output));
                assert!(output.status.success(), "{what}");
                assert!(output.stdout == message, "{what}: {} bytes", output.stdout.len());
                let seen = served.next();
                assert!(seen.negotiations.len() > 10, "{what}: {}", seen.negotiations.len());
            }
        }
    }
}

/// A client learns all host keys, proved, and a certified host needs no known key.
#[test]
fn host_keys_are_updated_and_certified() {
    let authority = PrivateKey::generate(KeyKind::Ed25519).unwrap();
    let fields = CertificateFields {
        serial: 1,
        kind: CertificateKind::Host,
        key_id: "localhost".to_owned(),
        principals: vec!["127.0.0.1".to_owned()],
        valid_after_s: 0,
        valid_before_s: u64::MAX,
        critical_options: Vec::new(),
        extensions: Vec::new(),
    };
    let mut settings = config();
    for host in &mut settings.host_keys {
        host.certificate =
            Some(Certificate::issue(host.key.public_key(), &fields, &authority).unwrap());
    }
    let served = Served::start(settings);
    let user = PrivateKey::generate(KeyKind::Ed25519).unwrap();
    for peer in peers() {
        let folder = folder(served.port, &user);
        let known = folder.path().join("known_hosts");
        let line = authority.public_key().to_openssh_line();
        std::fs::write(&known, format!("@cert-authority * {line}\n")).unwrap();
        for row in peer
            .has("key-cert")
            .iter()
            .filter(|name| !name.starts_with("sk-") && !name.contains("dss"))
        {
            // Signatures with RSA keys have other names than their certificates.
            let name = row.replace("ssh-rsa-", "rsa-sha2-512-");
            let mut command = peer.ssh(folder.path(), served.port);
            command.args(["-o", &format!("HostKeyAlgorithms={name}")]);
            command.arg("-i").arg(folder.path().join("id")).args(["127.0.0.1", "echo"]);
            let output = run(&mut command, MESSAGE);
            assert!(output.status.success(), "{} {name}: {}", peer.name, program::stderr(&output));
            let chosen = served.next().negotiations.remove(0).outcome.unwrap();
            assert_eq!(chosen.host_key, name);
        }
        // One known key, and all of them afterwards.
        let known_key = host_keys()[2].key.public_key().to_openssh_line();
        std::fs::write(&known, format!("[127.0.0.1]:{} {known_key}\n", served.port)).unwrap();
        let mut command = peer.ssh(folder.path(), served.port);
        // The first value of an option counts: that of `Peer::ssh` is replaced by a command of its own.
        let arguments: Vec<_> = command.get_args().map(std::ffi::OsStr::to_owned).collect();
        command = peer.program("ssh");
        command.args(["-o", "UpdateHostKeys=yes"]).args(arguments);
        command.args(["-o", "HostKeyAlgorithms=^ecdsa-sha2-nistp256"]);
        command.arg("-i").arg(folder.path().join("id")).args(["127.0.0.1", "echo"]);
        let output = run(&mut command, MESSAGE);
        assert!(output.status.success(), "{}: {}", peer.name, program::stderr(&output));
        served.next();
        let text = std::fs::read_to_string(&known).unwrap();
        let expected = peer.has("key");
        let count = host_keys()
            .iter()
            .filter(|host| expected.contains(host.key.public_key().key_type()))
            .count();
        assert_eq!(
            text.lines().count(),
            count,
            "{}: {text} {}",
            peer.name,
            program::stderr(&output)
        );
    }
}

/// A client without a common algorithm is refused, and the server knows what it offered.
#[test]
fn an_old_client_is_refused_by_a_strict_server() {
    let mut settings = config();
    settings.algorithms.key_exchanges.retain(|name| name.starts_with("mlkem"));
    let served = Served::start(settings);
    let user = PrivateKey::generate(KeyKind::Ed25519).unwrap();
    let folder = folder(served.port, &user);
    for peer in peers() {
        let mut command = peer.ssh(folder.path(), served.port);
        command.arg("-i").arg(folder.path().join("id")).args(["127.0.0.1", "echo"]);
        let output = run(&mut command, MESSAGE);
        let able = peer.has("kex").contains("mlkem768x25519-sha256");
        assert_eq!(output.status.success(), able, "{}: {}", peer.name, program::stderr(&output));
        let seen = served.next();
        let negotiation = &seen.negotiations[0];
        assert!(negotiation.offered.key_exchanges.contains("curve25519-sha256"));
        assert_eq!(negotiation.outcome.is_ok(), able);
        if !able {
            assert_eq!(negotiation.outcome, Err(Disagreement::KeyExchange));
        }
    }
}
