//! Those who try to log in at the door of SFTP: what is recorded of failures, and what strangers cannot take from others.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use outlast_api::ops::transfer::create_server::CreateServer;
use outlast_crypto::Secret;
use outlast_domain::transfer::Question;
use outlast_net::providers::Ask;
use outlast_net::server::system_clock;
use outlast_net::sftp::{Settings, SftpServer};
use outlast_ssh::{
    Certificate, CertificateFields, CertificateKind, Client, ClientConfig, ClientEvent, Credential,
    KeyKind, PrivateKey,
};
use outlast_store::Store;
use outlast_testing::until;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

use crate::common::{Fixture, NOW};
use crate::sftp_door::{Door, Nowhere, PATIENCE, connect_from, event, signed};

/// Whether a user gets in who shows these, one after the other.
fn shows(address: SocketAddr, user: &str, credentials: Vec<Credential>) -> bool {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    shows_over(stream, user, credentials)
}

fn shows_over(mut stream: TcpStream, user: &str, credentials: Vec<Credential>) -> bool {
    let now_ms = system_clock().unsigned_abs();
    let mut ssh = Client::new(Arc::new(ClientConfig::default()), now_ms);
    let mut credentials = credentials.into_iter();
    loop {
        match event(&mut ssh, &mut stream) {
            ClientEvent::HostKey(_) => ssh.answer(true),
            ClientEvent::Ready | ClientEvent::Refused { .. } => match credentials.next() {
                Some(credential) => ssh.authenticate(user, credential),
                None => return false,
            },
            ClientEvent::Authenticated => return true,
            ClientEvent::Disconnected(end) => panic!("{end:?}"),
            _ => {}
        }
    }
}

/// Method, reason, methods and number of tries.
type Failed = (String, String, String, u64);

/// What the audit trail says of failed logins.
fn failures(store: &dyn Store) -> Vec<Failed> {
    let mut found = Vec::new();
    for event in store.events(0, 1000).unwrap() {
        let event: serde_json::Value = serde_json::from_slice(&event.body).unwrap();
        if event["eventName"] == "AUTH_FAILURE" {
            let told = &event["additionalEventData"];
            let text = |member: &str| told[member].as_str().unwrap().to_owned();
            let methods = told["methods"].as_array().unwrap().iter();
            let methods: Vec<_> = methods.map(|method| method.as_str().unwrap()).collect();
            let tries = told["tries"].as_u64().unwrap();
            found.push((text("method"), text("message"), methods.join(" "), tries));
        }
    }
    found
}

/// A wrong proof is recorded although the right one follows, and the gravest of several; keys that were only offered are not.
#[test]
fn failures_are_recorded_before_a_login_too() {
    let door = Door::open(|settings| settings);
    let other = Arc::new(PrivateKey::generate(KeyKind::Ed25519).unwrap());
    let fields = CertificateFields {
        serial: 1,
        kind: CertificateKind::User,
        key_id: "alice".to_owned(),
        principals: vec!["alice".to_owned()],
        valid_after_s: 0,
        valid_before_s: u64::MAX,
        critical_options: Vec::new(),
        extensions: Vec::new(),
    };
    // For a key that the client does not have.
    let certificate = Certificate::issue(door.key.public_key(), &fields, &other).unwrap();
    let forged = Credential::Key { key: other.clone(), certificate: Some(Box::new(certificate)) };
    let offer = Credential::Offer(other.public_key().clone());
    let (wrong, unserved) =
        ("the key is none of the user's", "the server takes no such proof: keyboard-interactive");
    let mut expected = Vec::new();
    for (shown, gets_in, event) in [
        (vec![offer, signed(&door.key)], true, None),
        (
            vec![signed(&other), signed(&other), signed(&door.key)],
            true,
            Some(("publickey", wrong, "publickey", 2_u64)),
        ),
        (vec![Credential::KeyboardInteractive], false, Some(("other", unserved, "other", 1))),
        // The reason of one method does not hide that others were tried.
        (
            vec![Credential::KeyboardInteractive, forged, signed(&other)],
            false,
            Some(("publickey", "the signature is not valid", "other publickey", 3)),
        ),
    ] {
        assert_eq!(shows(door.address, "alice", shown), gets_in);
        let event = event.map(|(method, why, methods, tries)| {
            (method.to_owned(), why.to_owned(), methods.to_owned(), tries)
        });
        expected.extend(event);
        until("the failure is recorded", || failures(&*door.store).len() >= expected.len());
    }
    assert_eq!(failures(&*door.store), expected);
}

fn fixed() -> i64 {
    NOW * 1000
}

/// Who has proved nothing takes none of a user's sessions, and is refused for what it is.
#[test]
fn strangers_take_no_sessions() {
    let fixture = Fixture::new();
    let new = serde_json::from_value(serde_json::json!({})).unwrap();
    fixture.call::<CreateServer>(&new).unwrap();
    let store: Arc<dyn Store> = fixture.store.clone();
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let settings = Settings::new(Arc::new(Nowhere), Arc::new(Nowhere));
    // As if others had all of them.
    let settings = Settings { sessions_by_user: 0, ..settings };
    let server = Arc::new(SftpServer::new(Arc::new(fixture.service), fixed, settings));
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    runtime.spawn(server.run(listener, std::future::pending::<()>()));
    let key = Arc::new(PrivateKey::generate(KeyKind::Ed25519).unwrap());
    assert!(!shows(address, "mallory", vec![signed(&key)]));
    until("the failure is recorded", || !failures(store.as_ref()).is_empty());
    let [(_, why, _, tries)] = &failures(store.as_ref())[..] else { panic!("one failure") };
    assert_eq!((why.as_str(), *tries), ("the user is unknown", 1));
    runtime.shutdown_background();
}

/// Addresses whose logins an identity provider decides, with the number of its questions.
#[derive(Default)]
struct Asked {
    now: Mutex<BTreeMap<IpAddr, usize>>,
    all: AtomicUsize,
}

/// A server whose identity provider answers when it is told to.
struct Provider {
    runtime: Runtime,
    store: Arc<dyn Store>,
    address: SocketAddr,
    asked: Arc<Asked>,
    answers: watch::Sender<bool>,
}

impl Provider {
    fn open() -> Self {
        let fixture = Fixture::new();
        let new = serde_json::json!({
            "IdentityProviderType": "API_GATEWAY",
            "IdentityProviderDetails": { "Url": "https://idp.example" },
        });
        fixture.call::<CreateServer>(&serde_json::from_value(new).unwrap()).unwrap();
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let asked = Arc::<Asked>::default();
        let (answers, answered) = watch::channel(false);
        let asking = asked.clone();
        let ask: Ask = Arc::new(move |question: Question| {
            let (asked, mut answered) = (asking.clone(), answered.clone());
            Box::pin(async move {
                asked.all.fetch_add(1, Ordering::Relaxed);
                *asked.now.lock().unwrap().entry(question.source_ip).or_default() += 1;
                answered.wait_for(|answered| *answered).await.unwrap();
                Ok(None)
            })
        });
        let settings = Settings { ask, ..Settings::new(Arc::new(Nowhere), Arc::new(Nowhere)) };
        let store: Arc<dyn Store> = fixture.store.clone();
        let server = Arc::new(SftpServer::new(Arc::new(fixture.service), fixed, settings));
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        runtime.spawn(server.run(listener, std::future::pending::<()>()));
        Self { runtime, store, address, asked, answers }
    }

    /// Number of questions about logins of this address.
    fn now(&self, from: [u8; 4]) -> usize {
        self.asked.now.lock().unwrap().get(&from.into()).copied().unwrap_or(0)
    }

    /// Whether somebody with a password gets in.
    fn login(&self, from: [u8; 4]) -> bool {
        let stream = connect_from(&self.runtime, from, self.address);
        shows_over(stream, "alice", vec![password()])
    }

    /// Somebody who shows a password and goes.
    fn begin(&self, from: [u8; 4]) {
        let mut stream = connect_from(&self.runtime, from, self.address);
        let mut ssh = Client::new(Arc::default(), system_clock().unsigned_abs());
        loop {
            match event(&mut ssh, &mut stream) {
                ClientEvent::HostKey(_) => ssh.answer(true),
                ClientEvent::Ready => break,
                _ => {}
            }
        }
        ssh.authenticate("alice", password());
        stream.write_all(ssh.outgoing()).unwrap();
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        // Those who wait are not waited for.
        let runtime = Builder::new_current_thread().build().unwrap();
        std::mem::replace(&mut self.runtime, runtime).shutdown_background();
    }
}

fn password() -> Credential {
    Credential::Password(Secret::new(b"secret".to_vec()))
}

/// A login whose client has gone leaves the queue of its address at once, so that it does not hold up those who come later.
#[test]
fn logins_whose_clients_have_gone_wait_no_longer() {
    const GONE: usize = 4;
    let provider = Provider::open();
    let busy = [127, 0, 0, 2];
    std::thread::scope(|scope| {
        let logins: Vec<_> = (0..8).map(|_| scope.spawn(|| provider.login(busy))).collect();
        until("the first are asked about", || provider.now(busy) == 8);
        for _ in 0..GONE {
            provider.begin(busy);
        }
        let gone =
            || failures(provider.store.as_ref()).iter().map(|(.., tries)| tries).sum::<u64>();
        until("the others have gone", || gone() == GONE as u64);
        assert!(failures(provider.store.as_ref()).iter().all(|(_, why, ..)| why.contains("ended")));
        provider.answers.send(true).unwrap();
        assert!(logins.into_iter().all(|login| !login.join().unwrap()));
    });
    assert_eq!(provider.asked.all.load(Ordering::Relaxed), 8);
}

/// An identity provider that does not answer keeps only some of the questions for one address, so that others are asked about.
#[test]
fn an_address_has_few_questions_to_a_provider_at_a_time() {
    const LOGINS: usize = 12;
    let provider = Provider::open();
    let (busy, quiet) = ([127, 0, 0, 2], [127, 0, 0, 3]);
    std::thread::scope(|scope| {
        let mut logins: Vec<_> =
            (0..LOGINS).map(|_| scope.spawn(|| provider.login(busy))).collect();
        until("the first are asked about", || provider.now(busy) == 8);
        logins.push(scope.spawn(|| provider.login(quiet)));
        until("another address is asked about", || provider.now(quiet) == 1);
        assert_eq!(provider.now(busy), 8);
        provider.answers.send(true).unwrap();
        assert!(logins.into_iter().all(|login| !login.join().unwrap()));
    });
    assert_eq!(provider.asked.all.load(Ordering::Relaxed), LOGINS + 1);
}
