//! The door of SFTP with a client of this project, which does what no other client does: it begins a key exchange and waits, and it
//! is there when the server stops while an upload is inspected.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use bytes::{Buf, Bytes};
use outlast_api::ops::transfer::create_server::CreateServer;
use outlast_api::service::Sink;
use outlast_domain::arn::Scope;
use outlast_domain::transfer::{Methods, ServedHostKey, ServerFacts};
use outlast_ledger::{End, Handshake, Observe, SshHandshake, SshOutcome};
use outlast_negotiate::ssh::SshRefusal;
use outlast_net::server::system_clock;
use outlast_net::sftp::roster::{FileUser, Mount, Place, Roster, Tree};
use outlast_net::sftp::{Buckets, Settings, SftpServer};
use outlast_sftp::arrival::Inspector;
use outlast_sftp::attributes::Attributes;
use outlast_sftp::client::Client as Sftp;
use outlast_sftp::error::{Error, Result as SftpResult, Status};
use outlast_sftp::path::RemotePath;
use outlast_sftp::reply::Reply;
use outlast_sftp::request::Request as Asks;
use outlast_sftp::volume::{OpenHow, Volume};
use outlast_ssh::{
    ChannelId, Client, ClientConfig, ClientEvent, Credential, Disconnected, KeyKind, PrivateKey,
    Reason, Request,
};
use outlast_store::faulty::FaultyStore;
use outlast_store::memory::MemoryStore;
use outlast_store::{Store, Transaction};
use outlast_testing::until;
use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{oneshot, watch};

use crate::common::{Fixture, NOW, client};

/// Longest wait of a client: a server that does not answer fails the test instead of keeping it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Nowhere;

impl Buckets for Nowhere {
    fn open(&self, _: &str) -> SftpResult<Arc<dyn Volume>> {
        Err(Error::not_found())
    }

    fn make(&self, _: &str) -> SftpResult<()> {
        Err(Error::not_found())
    }
}

impl Sink for Nowhere {
    fn put(&self, _: &str, _: &str, _: &str, _: &[u8]) -> Result<(), String> {
        Err("there are no buckets".to_owned())
    }
}

/// A server with the user alice, who sees `folder`.
pub(crate) struct Door {
    pub(crate) runtime: &'static Runtime,
    pub(crate) address: SocketAddr,
    pub(crate) key: Arc<PrivateKey>,
    folder: tempfile::TempDir,
    pub(crate) store: Arc<FaultyStore<MemoryStore>>,
    stop: Option<oneshot::Sender<()>>,
    /// Says that the server has ended.
    ended: std::sync::mpsc::Receiver<()>,
}

impl Door {
    /// On one thread, so that a connection that goes round without end keeps everybody else waiting.
    pub(crate) fn open(change: impl FnOnce(Settings) -> Settings) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        // It is not dropped: that would wait for the thread, whatever the thread does.
        let runtime: &'static Runtime = Box::leak(Box::new(runtime));
        let [key, host] = [(); 2].map(|()| PrivateKey::generate(KeyKind::Ed25519).unwrap());
        let folder = tempfile::tempdir().unwrap();
        let home = Place::Folder(folder.path().canonicalize().unwrap());
        let user = FileUser {
            name: "alice".to_owned(),
            keys: vec![key.public_key().blob().to_vec()],
            password: None,
            authorities: Vec::new(),
            allow: Vec::new(),
            deny: Vec::new(),
            until_ms: None,
            sessions: None,
            tree: Tree {
                mounts: vec![Mount { at: RemotePath::root(), place: home, quota: None }],
                rules: Vec::new(),
                read_only: false,
                hidden: Vec::new(),
            },
        };
        let host_key = ServedHostKey {
            id: "host".to_owned(),
            kind: host.public_key().key_type().to_owned(),
            fingerprint: host.public_key().fingerprint(),
            private: host.to_openssh_pem("").unwrap(),
        };
        let scope = Scope { account: "111111111111".to_owned(), region: "us-east-1".to_owned() };
        let facts = ServerFacts {
            arn: scope.arn("transfer", "server/sftp"),
            scope,
            id: "sftp".to_owned(),
            is_online: true,
            security_policy: "2026-11".to_owned(),
            banner: None,
            welcome: None,
            methods: Methods::PublicKey,
            ignores_set_stat: false,
            host_keys: vec![host_key],
            version: [0; 32],
        };
        let users = [("alice".to_owned(), Arc::new(user))].into();
        let (_, users) = watch::channel(Arc::new(Roster::new(Arc::new(facts), users)));
        let settings = Settings::new(Arc::new(Nowhere), Arc::new(Nowhere));
        let settings = change(Settings { users: Some(users), ..settings });
        let fixture = Fixture::new();
        let store = fixture.store.clone();
        let service = Arc::new(fixture.service);
        let server = Arc::new(SftpServer::new(service, system_clock, settings));
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let (told, ended) = std::sync::mpsc::channel();
        runtime.spawn(async move {
            server.run(listener, async { drop(stopped.await) }).await;
            let _ = told.send(());
        });
        let (key, stop) = (Arc::new(key), Some(stop));
        Self { runtime, address, key, folder, store, stop, ended }
    }

    pub(crate) fn login(&self) -> Session {
        Session::new(self)
    }
}

/// A session of the user, with SFTP in one channel.
pub(crate) struct Session {
    pub(crate) ssh: Client,
    pub(crate) stream: TcpStream,
    channel: ChannelId,
    pub(crate) sftp: Sftp,
    /// Output that the transport has not taken yet.
    rest: Bytes,
}

/// Sends what is to be sent.
pub(crate) fn send(ssh: &mut Client, stream: &mut TcpStream) {
    while !ssh.outgoing().is_empty() {
        let sent = stream.write(ssh.outgoing()).expect("the server takes no bytes");
        ssh.sent(sent);
    }
}

/// What happens next.
pub(crate) fn event(ssh: &mut Client, stream: &mut TcpStream) -> ClientEvent {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        if let Some(event) = ssh.poll() {
            return event;
        }
        send(ssh, stream);
        let read = stream.read(&mut buffer).expect("the server does not answer");
        assert!(read > 0, "the server has closed the connection");
        ssh.receive(&buffer[..read], system_clock().unsigned_abs());
    }
}

impl Session {
    fn new(door: &Door) -> Self {
        Self::with(door, ClientConfig::default())
    }

    fn with(door: &Door, config: ClientConfig) -> Self {
        let mut stream = TcpStream::connect(door.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut ssh = Client::new(Arc::new(config), system_clock().unsigned_abs());
        let mut opened = None;
        loop {
            match event(&mut ssh, &mut stream) {
                ClientEvent::HostKey(_) => ssh.answer(true),
                ClientEvent::Ready => {
                    let credential = Credential::Key { key: door.key.clone(), certificate: None };
                    ssh.authenticate("alice", credential);
                }
                ClientEvent::Authenticated => opened = ssh.open(),
                ClientEvent::Opened(channel) => {
                    ssh.request(channel, &Request::Subsystem("sftp".to_owned()));
                }
                ClientEvent::Answered { accepted, .. } => {
                    assert!(accepted);
                    break;
                }
                ClientEvent::Refused { .. } | ClientEvent::Disconnected(_) => panic!("no login"),
                _ => {}
            }
        }
        let channel = opened.unwrap();
        let mut session = Self { ssh, stream, channel, sftp: Sftp::default(), rest: Bytes::new() };
        while !session.sftp.is_ready() {
            session.turn();
        }
        session
    }

    /// Gives requests to the transport.
    pub(crate) fn pump(&mut self) {
        loop {
            if self.rest.is_empty() {
                let Some(next) = self.sftp.next_output() else { break };
                self.rest = next;
            }
            let taken = self.ssh.write(self.channel, &self.rest);
            if taken == 0 {
                break;
            }
            self.rest.advance(taken);
        }
    }

    /// Takes the next event. Returns how the session has ended, if that is it.
    fn step(&mut self) -> Option<Disconnected> {
        self.pump();
        match event(&mut self.ssh, &mut self.stream) {
            ClientEvent::Data { channel, bytes, .. } => {
                self.ssh.consumed(channel, bytes.len());
                self.sftp.receive(&bytes).unwrap();
                None
            }
            ClientEvent::Disconnected(end) => Some(end),
            _ => None,
        }
    }

    /// Takes the next event of a session that goes on.
    fn turn(&mut self) {
        if let Some(end) = self.step() {
            panic!("the server has ended: {end:?}");
        }
    }

    /// How the session ends.
    pub(crate) fn end(&mut self) -> Disconnected {
        loop {
            if let Some(end) = self.step() {
                return end;
            }
        }
    }

    pub(crate) fn reply(&mut self) -> (u32, Reply) {
        loop {
            if let Some(reply) = self.sftp.next_reply() {
                return reply;
            }
            self.turn();
        }
    }

    pub(crate) fn call(&mut self, request: &Asks) -> Reply {
        let id = self.sftp.send(request);
        let (answered, reply) = self.reply();
        assert_eq!(answered, id);
        reply
    }

    fn open(&mut self, name: &str, how: OpenHow) -> Bytes {
        let path = Bytes::from(name.to_owned());
        let request = Asks::Open { path, how, attributes: Attributes::default() };
        match self.call(&request) {
            Reply::Handle(handle) => handle,
            other => panic!("{other:?}"),
        }
    }
}

/// More replies than the transport holds back wait for a key exchange that the client does not go on with. The server waits, too,
/// without going round, and sends all of them afterwards.
#[test]
fn replies_wait_for_a_key_exchange_that_the_client_delays() {
    const PIECE: usize = 32 * 1024;
    const PIECES: usize = 60;
    let door = Door::open(|settings| settings);
    let content: Vec<u8> = (0..PIECE * PIECES).map(|at| (at * 31 % 251) as u8).collect();
    std::fs::write(door.folder.path().join("file"), &content).unwrap();
    let mut session = door.login();
    let handle = session.open("file", OpenHow::reading());
    let mut asked: Vec<u32> = Vec::new();
    for piece in 0..PIECES {
        let (handle, offset) = (handle.clone(), (piece * PIECE) as u64);
        asked.push(session.sftp.send(&Asks::Read { handle, offset, length: PIECE as u32 }));
    }
    // Requests and the beginning of the exchange arrive together; the client reads nothing.
    session.pump();
    session.ssh.rekey();
    send(&mut session.ssh, &mut session.stream);
    for _ in 0..3 {
        // On the server's only thread.
        let mut other = door.login();
        let reply = other.call(&Asks::RealPath { path: Bytes::from_static(b".") });
        assert!(matches!(reply, Reply::Names(_)), "{reply:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
    let mut got = vec![0; content.len()];
    for _ in 0..PIECES {
        let (id, reply) = session.reply();
        let at = asked.iter().position(|asked| *asked == id).unwrap() * PIECE;
        let Reply::Data(data) = reply else { panic!("{reply:?}") };
        got[at..at + data.len()].copy_from_slice(&data);
    }
    assert!(got == content, "the replies are those of the requests");
    // The session goes on with the new keys.
    let reply = session.call(&Asks::Close { handle });
    assert!(matches!(&reply, Reply::Status(error) if error.status == Status::Ok), "{reply:?}");
}

/// Says that a connection has ended.
pub(crate) struct Ends(pub(crate) Mutex<std::sync::mpsc::Sender<()>>);

impl Observe for Ends {
    fn handshake(&self, _: &Handshake) {}

    fn ssh_handshake(&self, _: &SshHandshake) {}

    fn end(&self, _: &End) {
        let _ = self.0.lock().unwrap().send(());
    }
}

/// Sends what is reported of handshakes.
struct Handshakes(Mutex<std::sync::mpsc::Sender<SshHandshake>>);

impl Observe for Handshakes {
    fn handshake(&self, _: &Handshake) {}

    fn ssh_handshake(&self, handshake: &SshHandshake) {
        let _ = self.0.lock().unwrap().send(handshake.clone());
    }

    fn end(&self, _: &End) {}
}

/// A client that says what it is and nothing else, a scanner for example, is reported by that.
#[test]
fn a_client_that_only_identifies_itself_is_reported() {
    let (tells, told) = std::sync::mpsc::channel();
    let observer: Arc<dyn Observe> = Arc::new(Handshakes(Mutex::new(tells)));
    let door = Door::open(|settings| Settings { observer: Some(observer), ..settings });
    for (sent, identified) in [(&b"SSH-2.0-Scanner\r\n"[..], true), (b"SSH-2.0-Sc", false)] {
        let mut stream = TcpStream::connect(door.address).unwrap();
        stream.write_all(sent).unwrap();
        drop(stream);
        let handshake = told.recv_timeout(PATIENCE).expect("nothing is reported");
        assert!(matches!(handshake.outcome, SshOutcome::Failed(_)), "{:?}", handshake.outcome);
        let offer = handshake.offer.map(|offer| (offer.identification, offer.key_exchanges));
        let expected = ("SSH-2.0-Scanner".to_owned(), Vec::new());
        assert_eq!(offer, identified.then_some(expected));
    }
}

/// Somebody on the path holds a client's list up, so that the client's order would choose a classical method: the connection ends before
/// there are keys, and the report says why.
#[test]
fn a_client_whose_list_is_held_up_is_refused() {
    const CLASSICAL: &str = "curve25519-sha256";
    const HYBRID: &str = "mlkem768x25519-sha256";
    let (tells, told) = std::sync::mpsc::channel();
    let observer: Arc<dyn Observe> = Arc::new(Handshakes(Mutex::new(tells)));
    let door = Door::open(|settings| Settings { observer: Some(observer), ..settings });
    let mut config = ClientConfig::default();
    config.algorithms.key_exchanges = vec![CLASSICAL, HYBRID];
    let mut client = Client::new(Arc::new(config), system_clock().unsigned_abs());
    let sent = client.outgoing().to_vec();
    let (version, list) = sent.split_at(sent.iter().position(|byte| *byte == b'\n').unwrap() + 1);
    client.sent(sent.len());
    let mut stream = TcpStream::connect(door.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(version).unwrap();
    let mut first = vec![0; 64 * 1024];
    let mut read = 0;
    // The server sends its list when it has waited.
    while !first[..read].windows(HYBRID.len()).any(|name| name == HYBRID.as_bytes()) {
        let more = stream.read(&mut first[read..]).expect("the server does not send its list");
        assert!(more > 0, "the server has closed the connection");
        read += more;
    }
    client.receive(&first[..read], system_clock().unsigned_abs());
    stream.write_all(list).unwrap();
    let end = loop {
        match event(&mut client, &mut stream) {
            ClientEvent::Negotiated(_) => {}
            ClientEvent::Disconnected(end) => break end,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((end.reason, end.by_peer), (Reason::KeyExchangeFailed, true));
    let handshake = told.recv_timeout(PATIENCE).expect("nothing is reported");
    assert!(handshake.blind);
    assert_eq!(handshake.outcome, SshOutcome::Refused(SshRefusal::Order));
}

/// A client that asks for much and reads nothing is let go when its session is over, although it could not be told all.
#[test]
fn a_client_that_reads_nothing_does_not_keep_its_session() {
    const PIECE: u32 = 255 * 1024;
    let (ends, ended) = std::sync::mpsc::channel();
    let observer: Arc<dyn Observe> = Arc::new(Ends(Mutex::new(ends)));
    let door = Door::open(|settings| Settings {
        observer: Some(observer),
        idle: Duration::from_millis(500),
        ..settings
    });
    std::fs::write(door.folder.path().join("file"), vec![1; PIECE as usize]).unwrap();
    // More than the system holds for a client that does not read.
    let wide = || {
        let mut config = ClientConfig::default();
        config.limits.window = 64 << 20;
        config
    };
    let mut sessions: Vec<_> = (0..2).map(|_| Session::with(&door, wide())).collect();
    for session in &mut sessions {
        let handle = session.open("file", OpenHow::reading());
        for _ in 0..40 {
            let handle = handle.clone();
            session.sftp.send(&Asks::Read { handle, offset: 0, length: PIECE });
        }
        session.pump();
        send(&mut session.ssh, &mut session.stream);
    }
    for _ in &sessions {
        ended.recv_timeout(PATIENCE).expect("the session goes on");
    }
}

/// Inspects until it is stopped.
#[derive(Default)]
struct Patient {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    running: usize,
    is_stopped: bool,
}

impl Inspector for Patient {
    fn inspect(&self, _: &[u8], _: OwnedFd) -> SftpResult<()> {
        let mut state = self.state.lock().unwrap();
        state.running += 1;
        while !state.is_stopped {
            state = self.changed.wait(state).unwrap();
        }
        state.running -= 1;
        Err(Error::denied("the server is stopping"))
    }

    fn stop(&self) {
        self.state.lock().unwrap().is_stopped = true;
        self.changed.notify_all();
    }
}

/// The server ends after its grace although an inspection would last, and the upload has not appeared.
#[test]
fn a_server_that_stops_ends_inspections() {
    let inspector = Arc::new(Patient::default());
    let mut door = Door::open(|settings| Settings {
        inspector: Some(inspector.clone()),
        atomic_uploads: true,
        grace: Duration::from_millis(300),
        ..settings
    });
    let mut session = door.login();
    let how = OpenHow { write: true, create: true, truncate: true, ..OpenHow::default() };
    let handle = session.open("upload", how);
    let data = Bytes::from_static(b"content");
    let reply = session.call(&Asks::Write { handle: handle.clone(), offset: 0, data });
    assert!(matches!(&reply, Reply::Status(error) if error.status == Status::Ok), "{reply:?}");
    session.sftp.send(&Asks::Close { handle });
    session.pump();
    send(&mut session.ssh, &mut session.stream);
    until("the upload is inspected", || inspector.state.lock().unwrap().running == 1);
    let _ = door.stop.take().unwrap().send(());
    door.ended.recv_timeout(PATIENCE).expect("the server waits for the inspection");
    until("the inspection ends", || inspector.state.lock().unwrap().running == 0);
    assert!(inspector.state.lock().unwrap().is_stopped);
    assert_eq!(std::fs::read_dir(door.folder.path()).unwrap().count(), 0);
    // Whatever the client is told, it is not that the file is stored.
    let mut buffer = vec![0; 4096];
    while let Ok(read @ 1..) = session.stream.read(&mut buffer) {
        session.ssh.receive(&buffer[..read], system_clock().unsigned_abs());
    }
    while let Some(event) = session.ssh.poll() {
        if let ClientEvent::Data { bytes, .. } = event {
            session.sftp.receive(&bytes).unwrap();
        }
    }
    let stored = |(_, reply): (u32, Reply)| matches!(reply, Reply::Status(error) if error.status == Status::Ok);
    assert!(!std::iter::from_fn(|| session.sftp.next_reply()).any(stored));
}

/// Later with each call, so that nothing that was read of a Transfer server is still used.
fn later() -> i64 {
    static PASSED: AtomicI64 = AtomicI64::new(0);
    NOW * 1000 + PASSED.fetch_add(2000, Ordering::Relaxed)
}

/// A further server, also one of another account, is not chosen, and ends nothing that is served; a listener that begins must be told which
/// one it serves.
#[test]
fn a_listener_goes_on_when_another_server_is_made() {
    let fixture = Fixture::new();
    let new = serde_json::from_value(serde_json::json!({})).unwrap();
    let mine = fixture.call::<CreateServer>(&new).unwrap().server_id;
    let stranger = client("AKIAOTHER", "eu-west-1");
    let theirs = fixture.call_as::<CreateServer>(&stranger, &new).unwrap().server_id;
    assert_ne!(theirs, mine);
    let store = fixture.store.clone();
    let second = fixture.call::<CreateServer>(&new).unwrap().server_id;
    let found = |account: &str, id: &str| {
        let all = store.scan(&format!("transfer/server/{account}/"), "", 10).unwrap();
        all.into_iter().find(|(record_key, _)| record_key.contains(id)).unwrap()
    };
    let (first, _) = found("123456789012", &mine);
    let others = [found("123456789012", &second), found("210987654321", &theirs)];
    let put = |record_key: &str, value: Option<Vec<u8>>| {
        let writes = vec![(record_key.to_owned(), value)];
        store.commit_and_wait(Transaction { writes, ..Transaction::default() }).unwrap();
    };
    others.iter().for_each(|(record_key, _)| put(record_key, None));
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let service = Arc::new(fixture.service);
    let begin = || {
        let settings = Settings::new(Arc::new(Nowhere), Arc::new(Nowhere));
        let server = Arc::new(SftpServer::new(service.clone(), later, settings));
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        runtime.spawn(server.run(listener, std::future::pending::<()>()));
        address
    };
    let is_served = |address: SocketAddr| {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut start = [0; 4];
        stream.read_exact(&mut start).is_ok() && start == *b"SSH-"
    };
    let address = begin();
    assert!(is_served(address));
    for (record_key, record) in &others {
        put(record_key, Some(record.value.clone()));
        assert!(is_served(address));
        assert!(!is_served(begin()));
        put(record_key, None);
        assert!(is_served(begin()));
    }
    // Another one is chosen when it is gone.
    put(&first, None);
    until("nothing is served", || !is_served(address));
    let [(record_key, record), _] = &others;
    put(record_key, Some(record.value.clone()));
    until("the second one is served", || is_served(address));
    runtime.shutdown_background();
}

pub(crate) fn signed(key: &Arc<PrivateKey>) -> Credential {
    Credential::Key { key: key.clone(), certificate: None }
}

/// Connects from an address of this machine.
pub(crate) fn connect_from(runtime: &Runtime, from: [u8; 4], to: SocketAddr) -> TcpStream {
    let connected = runtime.block_on(async {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::from((from, 0)))?;
        socket.connect(to).await?.into_std()
    });
    let stream = connected.unwrap();
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// The server tells a client that has logged in of its host keys, and proves that it has them (`hostkeys-00@openssh.com`).
#[test]
fn host_keys_are_announced_after_login() {
    let door = Door::open(|settings| settings);
    let mut stream = TcpStream::connect(door.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut ssh = Client::new(Arc::new(ClientConfig::default()), system_clock().unsigned_abs());
    let (mut shown, mut is_inside) = (None, false);
    let announced = loop {
        match event(&mut ssh, &mut stream) {
            ClientEvent::HostKey(host) => {
                shown = Some(host.key);
                ssh.answer(true);
            }
            ClientEvent::Ready => ssh.authenticate("alice", signed(&door.key)),
            ClientEvent::Authenticated => is_inside = true,
            ClientEvent::HostKeys(keys) => break keys,
            ClientEvent::Disconnected(end) => panic!("{end:?}"),
            _ => {}
        }
    };
    assert!(is_inside);
    assert_eq!(announced, [shown.unwrap()]);
}
