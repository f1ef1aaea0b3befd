//! A server whose foundations do not answer: a frozen database, a root key that was rotated elsewhere, a token that
//! is away. It says so, stays alive, and recovers by itself.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use common::cluster::Cluster;
use common::{
    ACCESS_KEY, Identity, SECRET, Server, Session, authority, fail, outlast, runtime, succeed,
};
use outlast_api::ops::kms::{create_key, encrypt, list_keys};
use outlast_pki::certificate::Certificate;
use outlast_pki::ocsp::{RESPONSE_MEDIA_TYPE, Request};
use outlast_testing::{PATIENCE, eventually, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

/// The status and text of `/readyz`, over a connection of its own.
fn readyz(server: &Server) -> (u16, String) {
    runtime().block_on(async {
        let mut session = server.session().await.unwrap();
        let (status, body) = session.get("/readyz").await;
        (status, String::from_utf8(body).unwrap())
    })
}

/// Waits until `/readyz` answers 503 with exactly these reasons, one per line.
fn is_unready(server: &Server, reasons: &[&str]) -> String {
    let mut last = String::new();
    eventually(&format!("not ready for {reasons:?}"), || {
        let (status, text) = readyz(server);
        if text != last {
            println!("readyz: {status} {text}");
            last.clone_from(&text);
        }
        let names: Vec<_> = text.lines().map(|line| line.split(':').next().unwrap()).collect();
        (status == 503 && names == reasons).then_some(text.clone())
    })
}

fn is_ready(server: &Server) {
    until("ready again", || readyz(server) == (200, "ok\n".into()));
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// A request over plain HTTP: the status and the body.
fn plain(port: u16, head: &str, body: &[u8]) -> (u16, Vec<u8>) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let length = body.len();
    let head = format!(
        "{head} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
    let status = std::str::from_utf8(&answer[9..12]).unwrap().parse().unwrap();
    (status, answer[end + 4..].to_vec())
}

/// Peers that ask whether the server is ready, and as many strangers whose access key the server must look up.
const PEERS: usize = 350;
/// Consecutive answers of `/healthz`.
const HEALTH: usize = 20;

#[test]
fn frozen_database_holds_up_only_those_who_need_it() {
    let Some(cluster) = Cluster::alone() else { return };
    // All of them come from one address.
    let server = cluster.serve_with(0, &["--connections-per-peer", "4096"]);
    let port = server.revocation.unwrap();
    let runtime = runtime();
    let unknown =
        || Identity { id: "AKIANOBODYKNOWSTHIS".into(), secret: SECRET.into(), token: None };
    let (crl, question, mut askers, mut strangers, mut alive) = runtime.block_on(async {
        let mut session = server.session().await.unwrap();
        let revocation = json!({
            "CrlConfiguration": { "Enabled": true, "ExpirationInDays": 7 },
            "OcspConfiguration": { "Enabled": true },
        });
        let algorithms = ("EC_prime256v1", "SHA256WITHECDSA");
        let root = authority::root(&mut session, algorithms, "Root", Some(&revocation)).await;
        let below = authority::subordinate(&mut session, &root, algorithms, "Below", None).await;
        let parsed = |pem: &str| Certificate::parse_one(pem.as_bytes()).unwrap();
        let question = Request::new(&parsed(&root.certificate), &parsed(&below.certificate), None);
        let crl = format!("GET /crl/{}.crl", root.arn.rsplit('/').next().unwrap());
        let (mut askers, mut strangers) = (Vec::new(), Vec::new());
        for _ in 0..PEERS {
            askers.push(server.session().await.unwrap());
            strangers.push(server.session_as(unknown()).await);
        }
        (crl, question.unwrap().to_der().unwrap(), askers, strangers, session)
    });
    let ask_plain = || {
        let (status, der) = plain(port, "POST /ocsp", &question);
        // tryLater and internalError are responses, too, but short ones (RFC 6960, section 2.3).
        (status, der.len() > 100)
    };
    until("the CRL is there", || plain(port, &crl, &[]).0 == 200);
    until("OCSP is answered", || ask_plain() == (200, true));
    let mut held_up_nobody = false;
    for round in 1..=3 {
        cluster.postgres.freeze();
        let begun = Instant::now();
        let (ended, ready) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let mut tasks = Vec::new();
        for (mut asker, mut stranger) in askers.drain(..).zip(strangers.drain(..)) {
            let (ended, ready) = (ended.clone(), ready.clone());
            tasks.push(runtime.spawn(async move {
                let asked = async {
                    if asker.get("/readyz").await.0 == 200 {
                        ready.fetch_add(1, Ordering::SeqCst);
                    }
                };
                let refused = async {
                    let refused = stranger.call::<list_keys::ListKeys>(json!({})).await.unwrap();
                    ended.fetch_add(1, Ordering::SeqCst);
                    refused.err().unwrap()
                };
                let ((), refused) = tokio::join!(asked, refused);
                (asker, stranger, refused)
            }));
        }
        let through = runtime.block_on(async {
            for _ in 0..HEALTH {
                assert_eq!(alive.get("/healthz").await.0, 200);
            }
            ended.load(Ordering::SeqCst)
        });
        println!(
            "round {round}: healthz {HEALTH} times after {:?}, {through} others through",
            begun.elapsed()
        );
        // By then no request that needs the database has been answered.
        held_up_nobody |= through == 0;
        for task in tasks {
            let (asker, stranger, refused) = runtime.block_on(task).unwrap();
            assert_eq!(refused.status, 500, "{refused:?}");
            assert!(refused.message.contains("Nothing was changed"), "{refused:?}");
            askers.push(asker);
            strangers.push(stranger);
        }
        println!("round {round}: {PEERS} unknown callers told after {:?}", begun.elapsed());
        is_unready(&server, &["store"]);
        // Public resources answer "try later": a revocation on another server would not be seen.
        until("no answer is believed any more", || ask_plain() == (200, false));
        for _ in 0..HEALTH {
            assert_eq!(plain(port, &crl, &[]).0, 503);
            assert_eq!(ask_plain(), (200, false));
        }
        println!(
            "round {round}: answered {HEALTH} CRLs and OCSP questions by {:?}",
            begun.elapsed()
        );
        cluster.postgres.thaw();
        is_ready(&server);
        until("the CRL is there again", || plain(port, &crl, &[]).0 == 200);
        until("OCSP is answered again", || ask_plain() == (200, true));
        runtime.block_on(async {
            until_ok(&mut alive).await;
        });
    }
    assert!(held_up_nobody, "in no round was anybody answered before the database was given up");
    assert_eq!(RESPONSE_MEDIA_TYPE, "application/ocsp-response");
}

/// Makes a key, as soon as the store can be written again.
async fn until_ok(session: &mut Session) {
    let begun = Instant::now();
    while session.call::<create_key::CreateKey>(json!({})).await.unwrap().is_err() {
        assert!(begun.elapsed() < PATIENCE, "commits do not come back");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn on(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = outlast();
    command.args(arguments).arg("--data").arg(folder);
    command
}

#[test]
fn provider_rotation_is_refused_while_servers_run() {
    let Some(cluster) = Cluster::new() else { return };
    let (mut a, b) = (cluster.serve(0), cluster.serve(1));
    let key = runtime().block_on(async {
        let mut session = a.session().await.unwrap();
        let made = session.call::<create_key::CreateKey>(json!({})).await.unwrap().unwrap();
        made.key_metadata.key_id
    });
    let to = format!("file:{}", cluster.temporary.path().join("other.key").display());
    let rotate = || on(&cluster.folders[0], &["root-key", "rotate", "--to", &to]);
    let text = fail(&mut rotate(), 1);
    assert!(text.contains("--servers-are-stopped"), "{text}");
    let sure = || {
        let mut command = rotate();
        command.arg("--servers-are-stopped");
        command
    };
    let status = || {
        // The last line counts records: a server that stops removes its heartbeat.
        let text = succeed(&mut on(&cluster.folders[0], &["root-key", "status"]));
        text.lines().take(2).map(str::to_owned).collect::<Vec<_>>()
    };
    let before = status();
    let text = fail(&mut sure(), 1);
    let named =
        |text: &str, server: &Server| text.contains(&format!("process {},", server.child.id()));
    println!("{text}");
    assert!(named(&text, &a) || named(&text, &b), "{text}");
    assert!(
        text.contains("hint: stop all of them") && text.contains("nothing was changed"),
        "{text}"
    );
    // A server that stops in an orderly way is off the list at once; the other is still named.
    assert_eq!(a.terminate(), Some(0));
    let text = fail(&mut sure(), 1);
    assert!(named(&text, &b) && !named(&text, &a), "{text}");
    assert_eq!(status(), before, "something was changed");
    assert!(!cluster.temporary.path().join("other.key").exists());
    // A frozen server cannot be told from a killed one. What happens when it goes on is seen below.
    signal(&b.child, Signal::STOP);
    let text = succeed(&mut sure());
    assert!(text.contains("records were sealed again"), "{text}");
    signal(&b.child, Signal::CONT);
    // Nor is it an alarm of the audit log, of which it can say nothing.
    let text = is_unready(&b, &["root-key"]);
    assert!(text.contains("secrets cannot be opened"), "{text}");
    runtime().block_on(async {
        // It is alive.
        let mut session = b.session().await.unwrap();
        assert_eq!(session.get("/healthz").await.0, 200);
    });
    // No head would cover what it wrote, so it writes nothing; and commands that change the root key's record do not
    // either.
    eventually("calls are refused", || {
        runtime().block_on(async {
            let mut session = b.session().await.unwrap();
            session.call::<list_keys::ListKeys>(json!({})).await.unwrap().is_err().then_some(())
        })
    });
    assert_eq!(readyz(&b).1.lines().count(), 1, "that is no alarm");
    drop(b);
    // With the new key everything works; the list has no dead server that a command would wait for.
    let mut command = outlast();
    command.env("OUTLAST_ROOT_KEY", &to);
    let c = Server::start_by(command, &cluster.folders[1], &[]);
    is_ready(&c);
    runtime().block_on(async {
        let mut session = c.session().await.unwrap();
        let request = json!({ "KeyId": key, "Plaintext": "eA==" });
        session.call::<encrypt::Encrypt>(request).await.unwrap().unwrap();
    });
}

/// SoftHSM with a token whose folder the server reaches through a link: the token is away when the link is.
struct SoftHsm {
    module: PathBuf,
    folder: PathBuf,
}

impl SoftHsm {
    fn new(folder: &Path) -> Option<Self> {
        let peer = outlast_testing::peer("softhsm")?;
        let hsm = Self { module: peer.join("lib/libsofthsm2.so"), folder: folder.to_owned() };
        std::fs::create_dir(folder.join("tokens")).unwrap();
        hsm.plug_in();
        for (name, tokens) in [("own", "tokens"), ("servers", "link")] {
            let text = format!("directories.tokendir = {}\n", folder.join(tokens).display());
            std::fs::write(hsm.configuration(name), text).unwrap();
        }
        let made = Command::new(peer.join("bin/softhsm2-util"))
            .args(["--init-token", "--free", "--label", "Test token"])
            .args(["--pin", "123456", "--so-pin", "12345678"])
            .env("SOFTHSM2_CONF", hsm.configuration("own"))
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        Some(hsm)
    }

    fn configuration(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.conf"))
    }

    fn plug_in(&self) {
        std::os::unix::fs::symlink(self.folder.join("tokens"), self.folder.join("link")).unwrap();
    }

    fn unplug(&self) {
        std::fs::remove_file(self.folder.join("link")).unwrap();
    }

    fn uri(&self) -> String {
        let module = self.module.display();
        format!("pkcs11:token=Test%20token;object=kek?module-path={module}&pin-value=123456")
    }

    fn with(&self, name: &str, mut command: Command) -> Command {
        command.env("SOFTHSM2_CONF", self.configuration(name)).env("OUTLAST_ROOT_KEY", self.uri());
        command
    }
}

#[test]
fn token_that_was_away_is_found_again() {
    let temporary = tempfile::tempdir().unwrap();
    let Some(token) = SoftHsm::new(temporary.path()) else { return };
    let data = temporary.path().join("data");
    let mut init = token.with("own", on(&data, &["init", "--access-key-id", ACCESS_KEY]));
    succeed(init.env("OUTLAST_SECRET_ACCESS_KEY", SECRET));
    let log = temporary.path().join("log");
    let mut command = token.with("servers", outlast());
    command.stderr(Stdio::from(std::fs::File::create(&log).unwrap()));
    let server = Server::start_by(command, &data, &[]);
    is_ready(&server);
    let encrypts = || {
        runtime().block_on(async {
            let mut session = server.session().await.unwrap();
            let made = session.call::<create_key::CreateKey>(json!({})).await.unwrap();
            let Ok(made) = made else { return false };
            let request = json!({ "KeyId": made.key_metadata.key_id, "Plaintext": "eA==" });
            session.call::<encrypt::Encrypt>(request).await.unwrap().is_ok()
        })
    };
    for round in 1..=2 {
        assert!(encrypts());
        token.unplug();
        // Unwrapped keys stay usable: the token is needed again only after a rotation of the root key.
        assert!(encrypts(), "round {round}");
        succeed(&mut token.with("own", on(&data, &["root-key", "rotate"])));
        let text = is_unready(&server, &["token"]);
        println!("round {round}: {text}");
        assert!(!encrypts());
        token.plug_in();
        is_ready(&server);
        assert!(encrypts());
    }
    let log = std::fs::read_to_string(&log).unwrap();
    println!("{log}");
    assert!(!log.contains("damaged") && !log.contains("123456"), "{log}");
    assert!(log.contains("the token is available again"), "{log}");
}

#[test]
fn every_reason_is_in_the_documentation() {
    let text = include_str!("../../../docs/readiness.md");
    for reason in outlast_api::service::readiness::REASONS {
        let row = format!("| `{}` |", reason.name);
        assert_eq!(text.matches(&row).count(), 1, "{row}");
    }
}
