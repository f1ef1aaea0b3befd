//! The decisions of a witness: every answer of the specification, and that no sequence of requests makes it cosign
//! two histories.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use std::sync::LazyLock;

use outlast_tlog::checkpoint::{Checkpoint, SignedCheckpoint};
use outlast_tlog::hash;
use outlast_tlog::key::{ED25519_LOG, ML_DSA_44};
use outlast_tlog::proof;
use outlast_tlog::range::CompactRange;
use outlast_tlog::tile::{Tiles, Tree};
use outlast_tlog::witness::{
    AddCheckpoint, Decision, Head, Known, RequestError, decide, parse_cosignatures, parse_size,
};
use outlast_tlog::{Hash, Signer};
use proptest::prelude::*;

static LOG: LazyLock<Signer> = LazyLock::new(|| {
    Signer::new("example.com/log", &ML_DSA_44, &Signer::generate(&ML_DSA_44).unwrap()).unwrap()
});

/// A history: leaves below 256, in one tile.
#[derive(Clone, Debug)]
struct History(Vec<Hash>);

impl History {
    fn new(len: usize, salt: u8) -> Self {
        Self((0..len).map(|number| hash::leaf(&[salt, u8::try_from(number).unwrap()])).collect())
    }

    fn tree(&self, size: usize) -> Tree<&Self> {
        Tree::new(self, size as u64).unwrap()
    }

    fn request(&self, old: usize, size: usize) -> AddCheckpoint {
        let tree = self.tree(size);
        let head = Checkpoint::new("example.com/log", size as u64, tree.root().unwrap()).unwrap();
        AddCheckpoint {
            old: old as u64,
            proof: tree.consistency(old.min(size) as u64).unwrap(),
            checkpoint: SignedCheckpoint::sign(head, &[&LOG], 1).unwrap(),
        }
    }

    fn head(&self, size: usize) -> Head {
        Head { size: size as u64, root: self.tree(size).root().unwrap() }
    }
}

impl Tiles for History {
    type Error = ();

    fn tile(&self, level: u8, index: u64, width: u16) -> Result<Vec<Hash>, ()> {
        if (level, index) != (0, 0) {
            return Err(());
        }
        self.0.get(..width.into()).map(<[Hash]>::to_vec).ok_or(())
    }
}

fn known(head: Head) -> Known {
    Known { keys: vec![LOG.verifier().clone()], head }
}

#[test]
fn every_answer_of_the_specification() {
    let (ours, theirs) = (History::new(20, 0), History::new(20, 1));
    let knows = |size| known(ours.head(size));
    let status = |request: &AddCheckpoint, known: &Known| decide(request, Some(known)).status();

    assert_eq!(decide(&ours.request(0, 5), None), Decision::UnknownOrigin);
    let first = known(Head::default());
    assert_eq!(decide(&ours.request(0, 5), Some(&first)), Decision::Cosign(ours.head(5)));
    assert_eq!(decide(&ours.request(0, 0), Some(&first)), Decision::Cosign(Head::default()));
    assert_eq!(decide(&ours.request(5, 9), Some(&knows(5))), Decision::Cosign(ours.head(9)));
    // Repeated: only the time is new.
    assert_eq!(decide(&ours.request(5, 5), Some(&knows(5))), Decision::Cosign(ours.head(5)));
    // 400: goes back according to the request itself.
    assert_eq!(status(&ours.request(9, 5), &knows(9)), 400);
    // 403: unsigned; signed by another key; by the right key with another name.
    let stranger =
        Signer::new("example.com/log", &ML_DSA_44, &Signer::generate(&ML_DSA_44).unwrap()).unwrap();
    let head = ours.request(0, 5).checkpoint.checkpoint().clone();
    for signers in [vec![], vec![&stranger]] {
        let checkpoint = SignedCheckpoint::sign(head.clone(), &signers, 1).unwrap();
        assert_eq!(status(&AddCheckpoint { checkpoint, ..ours.request(0, 5) }, &first), 403);
    }
    let renamed = Checkpoint::new("example.com/other", 5, *head.root()).unwrap();
    let checkpoint = SignedCheckpoint::sign(renamed, &[&LOG], 1).unwrap();
    assert_eq!(status(&AddCheckpoint { checkpoint, ..ours.request(0, 5) }, &first), 403);
    // A second key of the log suffices: others' signatures are ignored.
    let both = SignedCheckpoint::sign(head.clone(), &[&stranger, &LOG], 1).unwrap();
    assert_eq!(status(&AddCheckpoint { checkpoint: both, ..ours.request(0, 5) }, &first), 200);
    let ed25519 =
        Signer::new("example.com/log", &ED25519_LOG, &Signer::generate(&ED25519_LOG).unwrap())
            .unwrap();
    let checkpoint = SignedCheckpoint::sign(head, &[&ed25519], 1).unwrap();
    let rotated =
        Known { keys: vec![LOG.verifier().clone(), ed25519.verifier().clone()], ..first.clone() };
    assert_eq!(status(&AddCheckpoint { checkpoint, ..ours.request(0, 5) }, &rotated), 200);
    // 409: another old size, larger or smaller; another root for the same size.
    for old in [0, 4, 6] {
        assert_eq!(
            decide(&ours.request(old, 9), Some(&knows(5))),
            Decision::Conflict(ours.head(5))
        );
    }
    assert_eq!(decide(&theirs.request(5, 5), Some(&knows(5))), Decision::Conflict(ours.head(5)));
    // 422: another history; no proof; too long a proof.
    assert_eq!(status(&theirs.request(5, 9), &knows(5)), 422);
    assert_eq!(status(&AddCheckpoint { proof: vec![], ..ours.request(5, 9) }, &knows(5)), 422);
    for request in [ours.request(5, 9), ours.request(5, 5)] {
        let proof = [request.proof.clone(), vec![[0; 32]]].concat();
        assert_eq!(status(&AddCheckpoint { proof, ..request }, &knows(5)), 422);
    }
    assert_eq!(status(&AddCheckpoint { proof: vec![[0; 32]], ..ours.request(0, 5) }, &first), 422);
}

#[test]
fn requests_read_back_and_malformed_ones_do_not() {
    let request = History::new(20, 0).request(5, 9);
    let text = request.to_string();
    assert_eq!(AddCheckpoint::parse(text.as_bytes()).unwrap(), request);
    let (_, rest) = text.split_once('\n').unwrap();
    for old in [
        "",
        "old",
        "old ",
        "old 05",
        "old -1",
        "old 5 ",
        "Old 5",
        "old  5",
        "old 9223372036854775808",
        "old 5\r",
    ] {
        let text = format!("{old}\n{rest}");
        assert_eq!(AddCheckpoint::parse(text.as_bytes()), Err(RequestError::Old), "{old:?}");
    }
    let hash = text.lines().nth(1).unwrap();
    for bad in ["AAAA", "", " ", &hash[1..], &format!("{hash} "), &vec![hash; 64].join("\n")] {
        assert!(AddCheckpoint::parse(text.replacen(hash, bad, 1).as_bytes()).is_err(), "{bad:?}");
    }
    for (len, fits) in [(63, true), (64, false)] {
        let request = AddCheckpoint { proof: vec![[7; 32]; len], ..request.clone() };
        assert_eq!(AddCheckpoint::parse(request.to_string().as_bytes()).is_ok(), fits);
    }
    assert!(AddCheckpoint::parse(b"").is_err() && AddCheckpoint::parse(b"old 0\n\n").is_err());
    assert_eq!(AddCheckpoint::parse(&vec![b'a'; 2 << 20]), Err(RequestError::TooLong));
}

#[test]
fn answers_are_read_and_verified() {
    assert_eq!(parse_size(b"20852014\n"), Some(20_852_014));
    for body in ["", "\n", "5", "05\n", "5\n\n", "5 \n", "-5\n", "9223372036854775808\n"] {
        assert_eq!(parse_size(body.as_bytes()), None, "{body:?}");
    }
    let new = |name| Signer::new(name, &ML_DSA_44, &Signer::generate(&ML_DSA_44).unwrap()).unwrap();
    let (witness, stranger) = (new("w.example/1"), new("w.example/2"));
    let known = [witness.verifier().clone()];
    let checkpoint = History::new(5, 0).request(0, 5).checkpoint;
    let ours = witness.sign(checkpoint.note().text(), 7).unwrap();
    let theirs = stranger.sign(checkpoint.note().text(), 7).unwrap();
    let parse = |body: String| parse_cosignatures(body.as_bytes(), &checkpoint, &known);
    assert_eq!(parse(format!("{theirs}{ours}")), Ok(vec![ours.clone()]));
    assert!(parse(theirs.to_string()).is_err());
    assert!(parse(String::new()).is_err() && parse("\n".into()).is_err());
    assert!(
        parse(format!("{ours}\n")).is_err() && parse(ours.to_string().trim_end().into()).is_err()
    );
    // From another checkpoint.
    let other = History::new(5, 1).request(0, 5).checkpoint;
    assert!(parse(witness.sign(other.note().text(), 7).unwrap().to_string()).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// A log with two histories, both signed, sends anything; the witness only cosigns one history.
    #[test]
    fn a_witness_never_cosigns_two_histories(
        fork in 0_usize..12,
        requests in prop::collection::vec((any::<bool>(), 0_usize..14, 0_usize..14, any::<bool>()), 1..30),
    ) {
        let ours = History::new(14, 0);
        let mut theirs = History::new(14, 1);
        theirs.0[..fork].copy_from_slice(&ours.0[..fork]);
        let mut record = known(Head::default());
        let mut cosigned: Vec<(bool, Head)> = Vec::new();
        for (forged, old, size, ask) in requests {
            let history = if forged { &theirs } else { &ours };
            let old = if ask { usize::try_from(record.head.size).unwrap() } else { old };
            if let Decision::Cosign(head) = decide(&history.request(old, size), Some(&record)) {
                prop_assert!(head.size >= record.head.size);
                record.head = head;
                cosigned.push((forged, head));
            }
        }
        for pair in cosigned.windows(2) {
            let [(_, before), (forged, after)] = pair else { unreachable!() };
            let history = if *forged { &theirs } else { &ours };
            let tree = history.tree(usize::try_from(after.size).unwrap());
            let proof = tree.consistency(before.size).unwrap();
            proof::verify_consistency(before.size, &before.root, after.size, &after.root, &proof).unwrap();
        }
    }
}

#[test]
fn a_range_and_a_tree_agree_on_what_is_asked_of_witnesses() {
    let history = History::new(20, 0);
    let mut range = CompactRange::default();
    for (number, leaf) in history.0.iter().enumerate() {
        assert_eq!(range.root(), Some(history.head(number).root));
        range.append(leaf).unwrap();
    }
}
