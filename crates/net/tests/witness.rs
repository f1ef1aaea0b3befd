//! A witness over HTTP and a client of it: every response, concurrent requests, failing disks, restarts, and logs
//! with two histories.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use outlast_crypto::Secret;
use outlast_domain::seal::{RootKey, SoftwareKek};
use outlast_domain::witness;
use outlast_domain::work::Work;
use outlast_net::server::system_clock;
use outlast_net::witness::{Witness, WitnessError, WitnessServer, cosign};
use outlast_store::Store;
use outlast_store::faulty::FaultyStore;
use outlast_store::memory::MemoryStore;
use outlast_tlog::checkpoint::{Checkpoint, SignedCheckpoint};
use outlast_tlog::key::{ED25519_LOG, ML_DSA_44};
use outlast_tlog::tile::{Tiles, Tree};
use outlast_tlog::witness::{AddCheckpoint, parse_cosignatures};
use outlast_tlog::{Hash, NoteSignature, SignedNote, Signer, VerifierKey, hash};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

/// Leaves of one tile.
#[derive(Clone)]
struct History(Vec<Hash>);

impl History {
    /// The first `fork` of 200 leaves are the same in all histories.
    fn new(fork: usize, salt: u8) -> Self {
        let leaf = |number: usize| {
            let salt = if number < fork { 0 } else { salt };
            hash::leaf(&[salt, u8::try_from(number).unwrap()])
        };
        Self((0..200).map(leaf).collect())
    }

    fn tree(&self, size: usize) -> Tree<&Self> {
        Tree::new(self, size as u64).unwrap()
    }

    fn checkpoint(&self, log: &Signer, size: usize) -> SignedCheckpoint {
        let root = self.tree(size).root().unwrap();
        let head = Checkpoint::new(log.verifier().name(), size as u64, root).unwrap();
        SignedCheckpoint::sign(head, &[log], 1).unwrap()
    }

    fn request(&self, log: &Signer, old: usize, size: usize) -> AddCheckpoint {
        let proof = self.tree(size).consistency(old.min(size) as u64).unwrap();
        AddCheckpoint { old: old as u64, proof, checkpoint: self.checkpoint(log, size) }
    }

    async fn cosign(
        &self,
        witness: &Witness,
        log: &Signer,
        size: usize,
    ) -> Result<Vec<NoteSignature>, WitnessError> {
        let tree = |old| self.tree(size).consistency(old).map_err(|_| "no proof");
        cosign(witness, &self.checkpoint(log, size), tree).await
    }
}

impl Tiles for History {
    type Error = ();

    fn tile(&self, _: u8, _: u64, width: u16) -> Result<Vec<Hash>, ()> {
        self.0.get(..width.into()).map(<[Hash]>::to_vec).ok_or(())
    }
}

fn log() -> Signer {
    let stored = Signer::generate(&ML_DSA_44).unwrap();
    Signer::new("example.com/log", &ML_DSA_44, &stored).unwrap()
}

fn root() -> RootKey {
    RootKey::new(Box::new(SoftwareKek::from_key(Secret::new(vec![7; 32])).unwrap()))
}

/// A witness that watches one log, and its server.
struct Running {
    address: SocketAddr,
    key: VerifierKey,
    stop: Option<oneshot::Sender<()>>,
    task: tokio::task::JoinHandle<()>,
}

/// Fills a new witness's store.
fn fill(store: &dyn Store, log: &Signer) {
    let root = root();
    let mut work = Work::new(store, &root, 0);
    root.establish(&mut work, Default::default()).unwrap();
    store.commit_and_wait(work.into_transaction(vec![])).unwrap();
    let mut work = Work::new(store, &root, 0);
    witness::create(&mut work, "w.example/1").unwrap();
    witness::add_log(&mut work, log.verifier()).unwrap();
    store.commit_and_wait(work.into_transaction(vec![])).unwrap();
}

async fn serve(store: Arc<dyn Store>, prefix: &str) -> Running {
    let root = root();
    let signer = witness::signer(&mut Work::new(store.as_ref(), &root, 0)).unwrap();
    let key = signer.verifier().clone();
    let server = WitnessServer::new(store, root, signer, prefix, system_clock);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(Arc::new(server).run(listener, async {
        let _ = stopped.await;
    }));
    Running { address, key, stop: Some(stop), task }
}

impl Running {
    async fn start(log: &Signer) -> Self {
        let store = MemoryStore::new();
        fill(&store, log);
        serve(Arc::new(store), "").await
    }

    fn client(&self) -> Witness {
        Witness::new(self.key.clone(), &format!("http://{}", self.address), None).unwrap()
    }

    async fn stop(mut self) {
        self.stop.take().unwrap().send(()).unwrap();
        self.task.await.unwrap();
    }

    async fn ask(&self, request: &AddCheckpoint) -> Answer {
        raw(self.address, "POST", "/add-checkpoint", request.to_string().as_bytes()).await
    }
}

#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

/// Sends one request as bytes.
async fn raw(address: SocketAddr, method: &str, path: &str, body: &[u8]) -> Answer {
    announced(address, method, path, body, body.len()).await
}

/// Like `raw`, with another length in the head.
async fn announced(
    address: SocketAddr,
    method: &str,
    path: &str,
    body: &[u8],
    len: usize,
) -> Answer {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: w\r\nconnection: close\r\ncontent-length: {len}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer:?}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
}

#[tokio::test]
async fn every_status_of_the_specification() {
    let log = log();
    let (ours, theirs) = (History::new(0, 0), History::new(0, 1));
    let witness = Running::start(&log).await;
    let known = [witness.key.clone()];

    let request = ours.request(&log, 0, 5);
    let answer = witness.ask(&request).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let signatures =
        parse_cosignatures(answer.body.as_bytes(), &request.checkpoint, &known).unwrap();
    assert_eq!(signatures.len(), 1);
    let time = witness.key.verify(request.checkpoint.note().text(), &signatures[0]).unwrap();
    assert!(time.unwrap().abs_diff(system_clock().unsigned_abs() / 1000) < 3600);

    // 409: another old size; the same size with another root.
    for request in [ours.request(&log, 0, 9), ours.request(&log, 4, 9), theirs.request(&log, 5, 5)]
    {
        let answer = witness.ask(&request).await;
        assert_eq!((answer.status, answer.body.as_str()), (409, "5\n"));
        assert!(answer.head.contains("content-type: text/x.tlog.size"), "{}", answer.head);
    }
    // 422
    assert_eq!(witness.ask(&theirs.request(&log, 5, 9)).await.status, 422);
    let without = AddCheckpoint { proof: vec![], ..ours.request(&log, 5, 9) };
    assert_eq!(witness.ask(&without).await.status, 422);
    // 400: a smaller tree than before, malformed requests.
    assert_eq!(witness.ask(&ours.request(&log, 9, 5)).await.status, 400);
    for body in ["", "old 5\n\n", "old five\n\n\n", "\0"] {
        let answer = raw(witness.address, "POST", "/add-checkpoint", body.as_bytes()).await;
        assert_eq!(answer.status, 400, "{body:?}");
    }
    // 403 and 404
    let stranger = self::log();
    assert_eq!(witness.ask(&ours.request(&stranger, 5, 9)).await.status, 403);
    let stored = Signer::generate(&ML_DSA_44).unwrap();
    let other = Signer::new("example.com/other", &ML_DSA_44, &stored).unwrap();
    assert_eq!(witness.ask(&ours.request(&other, 0, 9)).await.status, 404);
    let good = ours.request(&log, 5, 9).to_string();
    for path in ["/", "/add-checkpoint/", "/x/add-checkpoint", "/add-checkpoints"] {
        let answer = raw(witness.address, "POST", path, good.as_bytes()).await;
        assert_eq!(answer.status, 404, "{path}");
    }
    // Not a POST; too long.
    assert_eq!(raw(witness.address, "GET", "/add-checkpoint", b"").await.status, 405);
    let long = announced(witness.address, "POST", "/add-checkpoint", b"", 300_000).await;
    assert_eq!(long.status, 413);
    // After all this its state is unchanged.
    assert_eq!(witness.ask(&ours.request(&log, 5, 9)).await.status, 200);
    assert_eq!(witness.ask(&ours.request(&log, 9, 9)).await.status, 200);
    witness.stop().await;
}

#[tokio::test]
async fn extension_lines_are_not_cosigned_and_not_recorded() {
    let stored = Signer::generate(&ED25519_LOG).unwrap();
    let log = Signer::new("example.com/log", &ED25519_LOG, &stored).unwrap();
    let witness = Running::start(&log).await;
    let ours = History::new(0, 0);
    let text = format!("{}more\n", ours.checkpoint(&log, 5).checkpoint());
    let mut note = SignedNote::new(&text).unwrap();
    note.add(log.sign(&text, 0).unwrap()).unwrap();
    let checkpoint = SignedCheckpoint::try_from(note).unwrap();
    assert_eq!(witness.ask(&AddCheckpoint { old: 0, proof: vec![], checkpoint }).await.status, 400);
    assert_eq!(witness.ask(&ours.request(&log, 0, 4)).await.status, 200);
}

#[tokio::test]
async fn a_prefix_is_part_of_the_path() {
    let log = log();
    let store = MemoryStore::new();
    fill(&store, &log);
    let witness = serve(Arc::new(store), "/of/us/").await;
    let body = History::new(0, 0).request(&log, 0, 5).to_string();
    assert_eq!(raw(witness.address, "POST", "/add-checkpoint", body.as_bytes()).await.status, 404);
    let url = format!("http://{}/of/us/", witness.address);
    let client = Witness::new(witness.key.clone(), &url, None).unwrap();
    History::new(0, 0).cosign(&client, &log, 5).await.unwrap();
}

/// A log shows two histories on many connections at once, from every size that the witness may know. Everything that
/// it has cosigned in the end is one history.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn requests_at_once_get_one_history_cosigned() {
    let log = Arc::new(log());
    for round in 0..8_usize {
        let fork = round * 3;
        let histories = [History::new(fork, 1), History::new(fork, 2)].map(Arc::new);
        let witness = Arc::new(Running::start(&log).await);
        if fork > 0 {
            histories[0].cosign(&witness.client(), &log, fork).await.unwrap();
        }
        let mut tasks = Vec::new();
        for number in 0..12_usize {
            let (log, history, witness) =
                (log.clone(), histories[number % 2].clone(), witness.clone());
            tasks.push(tokio::spawn(async move {
                let mut cosigned = Vec::new();
                let mut old = fork;
                for step in 0..6 {
                    let size = (fork + 1 + step * 2 + number / 2 % 3).max(old);
                    let answer = witness.ask(&history.request(&log, old, size)).await;
                    match answer.status {
                        200 => {
                            cosigned.push((size, history.tree(size).root().unwrap(), number % 2));
                            old = size;
                        }
                        409 => old = answer.body.trim().parse().unwrap(),
                        422 => {}
                        other => panic!("{other}"),
                    }
                }
                cosigned
            }));
        }
        let mut roots: BTreeMap<usize, Hash> = BTreeMap::new();
        let mut who = std::collections::BTreeSet::new();
        for task in tasks {
            for (size, root, history) in task.await.unwrap() {
                assert_eq!(*roots.entry(size).or_insert(root), root, "two roots of {size}");
                who.insert(history);
            }
        }
        // After the fork the histories have nothing in common.
        assert_eq!(who.len(), 1, "both histories were cosigned");
    }
}

#[tokio::test]
async fn a_restarted_witness_knows_what_it_has_cosigned() {
    let log = log();
    let store = Arc::new(MemoryStore::new());
    fill(store.as_ref(), &log);
    let (ours, theirs) = (History::new(3, 0), History::new(3, 1));
    let first = serve(store.clone(), "").await;
    ours.cosign(&first.client(), &log, 7).await.unwrap();
    first.stop().await;
    let second = serve(store, "").await;
    let client = second.client();
    assert_eq!(theirs.cosign(&client, &log, 7).await, Err(WitnessError::Forked(7)));
    assert_eq!(theirs.cosign(&client, &log, 9).await, Err(WitnessError::Inconsistent(7)));
    assert_eq!(
        ours.cosign(&client, &log, 5).await,
        Err(WitnessError::Ahead { witnessed: 7, size: 5 })
    );
    ours.cosign(&client, &log, 9).await.unwrap();
}

#[tokio::test]
async fn nothing_is_cosigned_that_is_not_on_disk() {
    let log = log();
    let store = FaultyStore::new(MemoryStore::new());
    fill(&store, &log);
    let store = Arc::new(store);
    let witness = serve(store.clone(), "").await;
    let ours = History::new(0, 0);
    store.fail_writes(true);
    for _ in 0..2 {
        let answer = witness.ask(&ours.request(&log, 0, 5)).await;
        assert_eq!(answer.status, 500);
        assert!(!answer.body.contains('\u{2014}'), "{}", answer.body);
    }
    store.fail_writes(false);
    store.fail_reads(true);
    assert_eq!(witness.ask(&ours.request(&log, 0, 5)).await.status, 500);
    store.fail_reads(false);
    // A conflict is retried, but not without end.
    store.conflict_next(3);
    assert_eq!(witness.ask(&ours.request(&log, 0, 5)).await.status, 200);
    store.conflict_next(1000);
    assert_eq!(witness.ask(&ours.request(&log, 5, 6)).await.status, 503);
    store.conflict_next(0);
    assert_eq!(witness.ask(&ours.request(&log, 5, 6)).await.status, 200);
}

/// Somebody with write access to the database replaces the cosigned head by another, or by another log's.
#[tokio::test]
async fn records_that_were_changed_do_not_open() {
    let log = log();
    let store = Arc::new(MemoryStore::new());
    fill(store.as_ref(), &log);
    let witness = serve(store.clone(), "").await;
    let ours = History::new(0, 0);
    let before = store.scan("witness/log/", "", 10).unwrap();
    let [(slot, _)] = before.as_slice() else { panic!("one log") };
    assert_eq!(witness.ask(&ours.request(&log, 0, 5)).await.status, 200);
    let sealed = store.read(slot).unwrap().unwrap().value;
    let put = |slot: &str, value: Vec<u8>| {
        let transaction = outlast_store::Transaction {
            writes: vec![(slot.to_owned(), Some(value))],
            ..Default::default()
        };
        store.commit_and_wait(transaction).unwrap();
    };
    let mut changed = sealed.clone();
    *changed.last_mut().unwrap() ^= 1;
    put(slot, changed);
    assert_eq!(witness.ask(&ours.request(&log, 5, 6)).await.status, 500);
    // The record of another log.
    put(slot, store.read("witness/name").unwrap().unwrap().value);
    assert_eq!(witness.ask(&ours.request(&log, 5, 6)).await.status, 500);
    put(slot, sealed);
    assert_eq!(witness.ask(&ours.request(&log, 5, 6)).await.status, 200);
}

#[tokio::test]
async fn connections_that_say_nothing_lock_nobody_out() {
    let log = log();
    let witness = Running::start(&log).await;
    let mut idle = Vec::new();
    for _ in 0..outlast_net::limits::MAX_WITNESS_CONNECTIONS + 20 {
        idle.push(TcpStream::connect(witness.address).await.unwrap());
    }
    assert_eq!(witness.ask(&History::new(0, 0).request(&log, 0, 5)).await.status, 200);
    drop(idle);
}

#[tokio::test]
async fn the_client_finds_out_what_the_witness_knows() {
    let log = log();
    let witness = Running::start(&log).await;
    let ours = History::new(0, 0);
    let client = witness.client();
    assert_eq!((client.name(), client.url()), ("w.example/1", client.url()));
    for size in [0, 3, 4, 4, 17, 130] {
        let signatures = ours.cosign(&client, &log, size).await.unwrap();
        let [signature] = signatures.as_slice() else { panic!("one signature") };
        let checkpoint = ours.checkpoint(&log, size);
        assert!(witness.key.verify(checkpoint.note().text(), signature).unwrap().is_some());
    }
    // A client that knows nothing, and clients that are wrong.
    for assumed in [0, 5, 500] {
        let client = witness.client();
        client.assume(assumed);
        ours.cosign(&client, &log, 140).await.unwrap();
    }
    // The log is restored from a backup and continues from there.
    assert_eq!(
        ours.cosign(&client, &log, 100).await,
        Err(WitnessError::Ahead { witnessed: 140, size: 100 })
    );
    let rolled_back = History::new(100, 1);
    for (size, expected) in [
        (120, WitnessError::Ahead { witnessed: 140, size: 120 }),
        (140, WitnessError::Forked(140)),
        (150, WitnessError::Inconsistent(140)),
    ] {
        let error = rolled_back.cosign(&client, &log, size).await.unwrap_err();
        assert!(error.is_alarm() && !error.is_transient());
        assert_eq!(error, expected);
    }
    let unable = |_| Err::<Vec<Hash>, _>("the tiles are gone");
    let error = cosign(&client, &ours.checkpoint(&log, 150), unable).await.unwrap_err();
    assert_eq!(error, WitnessError::NoProof { old: 140, reason: "the tiles are gone".into() });
    ours.cosign(&client, &log, 150).await.unwrap();
    // Unknown logs, and other logs' keys.
    let stranger = self::log();
    assert_eq!(ours.cosign(&client, &stranger, 160).await, Err(WitnessError::NotAccepted));
    let stored = Signer::generate(&ML_DSA_44).unwrap();
    let other = Signer::new("example.com/other", &ML_DSA_44, &stored).unwrap();
    assert_eq!(ours.cosign(&client, &other, 5).await, Err(WitnessError::UnknownLog));
}

/// Answers each connection with the next of these, and then always with the last one.
async fn canned(answers: Vec<String>) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let number = count.fetch_add(1, Ordering::SeqCst);
            let answer = answers[number.min(answers.len() - 1)].clone();
            tokio::spawn(async move {
                let mut request = Vec::new();
                let mut buffer = [0; 4096];
                // Reads to the end of the last signature line.
                while !request.ends_with(b"=\n") {
                    match stream.read(&mut buffer).await {
                        Ok(0) | Err(_) => return,
                        Ok(len) => request.extend_from_slice(&buffer[..len]),
                    }
                }
                let _ = stream.write_all(answer.as_bytes()).await;
            });
        }
    });
    (address, asked)
}

fn http(status: u16, body: &str) -> String {
    format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

#[tokio::test]
async fn the_client_believes_only_its_witness() {
    let log = log();
    let ours = History::new(0, 0);
    let stored = Signer::generate(&ML_DSA_44).unwrap();
    let signer = Signer::new("w.example/1", &ML_DSA_44, &stored).unwrap();
    let impostor = {
        let stored = Signer::generate(&ML_DSA_44).unwrap();
        Signer::new("w.example/1", &ML_DSA_44, &stored).unwrap()
    };
    let text = ours.checkpoint(&log, 5).note().text().to_owned();
    let good = signer.sign(&text, 7).unwrap();
    let of_another = signer.sign(ours.checkpoint(&log, 6).note().text(), 7).unwrap();
    let by_another = impostor.sign(&text, 7).unwrap();
    let lines = |all: &[&NoteSignature]| {
        http(200, &all.iter().map(ToString::to_string).collect::<String>())
    };
    let ask = async |answers: Vec<String>| {
        let (address, asked) = canned(answers).await;
        let url = format!("http://{address}");
        let client = Witness::new(signer.verifier().clone(), &url, None).unwrap();
        (ours.cosign(&client, &log, 5).await, asked.load(Ordering::SeqCst))
    };
    assert_eq!(ask(vec![lines(&[&by_another, &good])]).await, (Ok(vec![good.clone()]), 1));
    for answer in [
        lines(&[&by_another]),
        lines(&[&of_another]),
        lines(&[&good, &of_another]),
        lines(&[]),
        http(200, "cosigned"),
        http(409, "five\n"),
        http(409, "0\n"),
    ] {
        let (outcome, asked) = ask(vec![answer.clone()]).await;
        assert!(matches!(outcome, Err(WitnessError::Answer(_))), "{answer}: {outcome:?}");
        assert_eq!(asked, 1);
    }
    // It names another size each time.
    let sizes = ["1\n", "2\n", "1\n", "2\n", "1\n"].map(|size| http(409, size)).to_vec();
    assert!(matches!(ask(sizes).await, (Err(WitnessError::Answer(_)), 4)));
    for (status, expected) in [
        (400, WitnessError::Refused(400)),
        (302, WitnessError::Refused(302)),
        (403, WitnessError::NotAccepted),
        (404, WitnessError::UnknownLog),
    ] {
        assert_eq!(ask(vec![http(status, "")]).await, (Err(expected), 1));
    }
    // Temporary failures are retried, with pauses, but not for ever.
    assert_eq!(ask(vec![http(503, ""), lines(&[&good])]).await, (Ok(vec![good.clone()]), 2));
    assert_eq!(ask(vec![String::new(), lines(&[&good])]).await, (Ok(vec![good]), 2));
    assert_eq!(ask(vec![http(500, "")]).await, (Err(WitnessError::Unavailable(500)), 3));
}

#[test]
fn urls_that_cannot_be_asked_are_refused() {
    let key = log().verifier().clone();
    let ed25519 = Signer::generate(&ED25519_LOG).unwrap();
    let ed25519 = Signer::new("w", &ED25519_LOG, &ed25519).unwrap().verifier().clone();
    for url in [
        "",
        "w.example",
        "ftp://w.example",
        "https://w.example",
        "http://",
        "http:///x",
        "http://w w",
    ] {
        assert!(Witness::new(key.clone(), url, None).is_err(), "{url}");
    }
    assert!(Witness::new(key, "http://w.example/x/", None).is_ok());
    // A key that cannot cosign.
    assert!(Witness::new(ed25519, "http://w.example", None).is_err());
}
