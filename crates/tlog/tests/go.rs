//! Our logs read by Go's `sumdb/tlog`, `sumdb/note`, `transparency-dev/formats` and `crypto/mldsa`, and theirs by us: see
//! `tests/interop/tlog/go`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail and print")]

use std::path::{Path, PathBuf};
use std::process::Command;

use outlast_tlog::checkpoint::{Checkpoint, SignedCheckpoint};
use outlast_tlog::key::{Algorithm, ED25519_COSIGNATURE, ED25519_LOG, ML_DSA_44};
use outlast_tlog::policy::{Policy, verify_proof};
use outlast_tlog::proof::verify_consistency;
use outlast_tlog::proof_file::ProofFile;
use outlast_tlog::tile::{self, Resource, TileId, Tiles, Tree};
use outlast_tlog::{CompactRange, Hash, Signer, VerifierKey, hash};

const ORIGIN: &str = "log.example/audit";

fn peer() -> Option<PathBuf> {
    Some(outlast_testing::peer("go127")?.join("bin/tlog-check"))
}

/// Whether the program succeeds, and its output.
fn check(program: &Path, arguments: &[&Path]) -> (bool, String) {
    let output = Command::new(program).args(arguments).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(said).unwrap())
}

fn signer(name: &str, algorithm: &'static Algorithm) -> Signer {
    Signer::new(name, algorithm, &Signer::generate(algorithm).unwrap()).unwrap()
}

fn entry(number: usize) -> Vec<u8> {
    // Of many lengths; the first one has none.
    format!("event {number} ").into_bytes().repeat(number % 7)
}

/// A log in a folder, as a static file server has it.
struct Folder(PathBuf);

impl Folder {
    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// Writes the tiles and bundles that a tree of `leaves` has.
    fn write_tiles(&self, leaves: &[Hash]) {
        for tile in tile::new_tiles(0, leaves.len() as u64) {
            let span = 256_usize.pow(tile.level().into());
            let first = usize::try_from(tile.index()).unwrap() * 256;
            let numbers = first..first + usize::from(tile.width());
            let hashes: Vec<Hash> = numbers
                .clone()
                .map(|number| hash::root(&leaves[number * span..(number + 1) * span]).unwrap())
                .collect();
            self.write(&tile.to_string(), &hashes.concat());
            if tile.level() == 0 {
                let entries: Vec<Vec<u8>> = numbers.map(entry).collect();
                let bundle = tile::bundle(entries.iter().map(Vec::as_slice)).unwrap();
                self.write(&Resource::Entries(tile).to_string(), &bundle);
            }
        }
    }
}

impl Tiles for Folder {
    type Error = std::io::Error;

    fn tile(&self, level: u8, index: u64, width: u16) -> std::io::Result<Vec<Hash>> {
        let name = TileId::new(level, index, width).unwrap().to_string();
        let bytes = std::fs::read(self.0.join(name))?;
        Ok(bytes.chunks_exact(32).map(|hash| hash.try_into().unwrap()).collect())
    }
}

#[test]
fn go_reads_our_logs() {
    let Some(go) = peer() else { return };
    let logs = [signer(ORIGIN, &ML_DSA_44), signer(ORIGIN, &ED25519_LOG)];
    let witnesses =
        [signer("one.example", &ED25519_COSIGNATURE), signer("two.example", &ML_DSA_44)];
    let [first, second] = &witnesses;
    let all: Vec<&Signer> = logs.iter().chain(&witnesses).collect();
    let keys: String = all.iter().map(|by| format!("{}\n", by.verifier())).collect();
    let policy = format!(
        "log {}\nlog {}\nwitness one {} http://localhost/1\nwitness two {} http://localhost/2\n\
         group both all one two\nquorum both\n",
        logs[0].verifier(),
        logs[1].verifier(),
        first.verifier(),
        second.verifier()
    );
    let scratch = tempfile::tempdir().unwrap();
    let mut leaves: Vec<Hash> = Vec::new();
    let mut range = CompactRange::default();
    let mut earlier: Option<PathBuf> = None;
    for size in [1, 2, 255, 256, 257, 700, 66_000] {
        for number in leaves.len()..size {
            let leaf = hash::leaf(&entry(number));
            range.append(&leaf).unwrap();
            leaves.push(leaf);
        }
        let folder = Folder(scratch.path().join(size.to_string()));
        folder.write_tiles(&leaves);
        let keys = folder.write("keys", keys.as_bytes());
        let policy = folder.write("policy", policy.as_bytes());
        let head = Checkpoint::new(ORIGIN, size as u64, range.root().unwrap()).unwrap();
        let signed = SignedCheckpoint::sign(head, &all, 1_780_000_000).unwrap();
        let checkpoint = folder.write("checkpoint", signed.to_string().as_bytes());
        let arguments = [Path::new("log"), &folder.0, &keys];
        let earlier = earlier.replace(checkpoint);
        let arguments: Vec<&Path> = arguments.into_iter().chain(earlier.as_deref()).collect();
        let (content, said) = check(&go, &arguments);
        assert!(content && said.contains(&format!("ok {size} entries")), "{size}: {said}");

        let tree = Tree::new(&folder, size as u64).unwrap();
        assert_eq!(tree.root().unwrap(), range.root().unwrap());
        for index in [0, size / 2, size - 1] {
            let proof = ProofFile {
                extra: Some(entry(index)).filter(|entry| !entry.is_empty()),
                index: index as u64,
                hashes: tree.inclusion(index as u64).unwrap(),
                checkpoint: signed.clone(),
            };
            let proof = folder.write("proof", proof.to_string().as_bytes());
            let shown = folder.write("entry", &entry(index));
            let (content, said) = check(&go, &["proof".as_ref(), &proof, &policy, &shown, &keys]);
            assert!(content && said.contains(&format!("ok entry {index} of {size}")), "{said}");
            let other = folder.write("entry", b"another");
            assert!(!check(&go, &["proof".as_ref(), &proof, &policy, &other, &keys]).0);
        }
    }
    // Go detects the faults, so it has checked what is right.
    let folder = Folder(scratch.path().join("700"));
    let arguments = [Path::new("log"), &folder.0, &folder.0.join("keys")];
    assert!(check(&go, &arguments).0);
    for name in
        ["tile/0/001", "tile/0/002.p/188", "tile/1/000.p/2", "tile/entries/000", "checkpoint"]
    {
        let path = folder.0.join(name);
        let good = std::fs::read(&path).unwrap();
        let mut bad = good.clone();
        let last = bad.len() - 20;
        bad[last] ^= 1;
        std::fs::write(&path, bad).unwrap();
        assert!(!check(&go, &arguments).0, "{name}");
        std::fs::write(&path, good).unwrap();
    }
}

#[test]
fn we_read_gos_logs() {
    let Some(go) = peer() else { return };
    let scratch = tempfile::tempdir().unwrap();
    for size in [1_u64, 3, 256, 700, 66_000] {
        let folder = Folder(scratch.path().join(size.to_string()));
        let (content, said) = check(&go, &["make".as_ref(), &folder.0, size.to_string().as_ref()]);
        assert!(content, "{said}");
        let read = |name: &str| std::fs::read(folder.0.join(name)).unwrap();
        let keys: Vec<VerifierKey> = String::from_utf8(read("keys"))
            .unwrap()
            .lines()
            .map(|line| line.parse().unwrap())
            .collect();
        let signed = SignedCheckpoint::parse(&read("checkpoint")).unwrap();
        assert_eq!(signed.note().verify(&keys).unwrap().len(), 4);
        let root = *signed.checkpoint().root();
        assert_eq!(signed.checkpoint().size(), size);
        assert_eq!(Tree::new(&folder, size).unwrap().root().unwrap(), root);

        let policy = Policy::parse(&read("policy")).unwrap();
        for index in [0, size / 3, size - 1] {
            let proof = ProofFile::parse(&read(&format!("{index}.tlog-proof"))).unwrap();
            let entry = format!("entry {index}").into_bytes();
            assert_eq!(proof.extra.as_ref(), Some(&entry));
            let verified = verify_proof(&policy, &proof, &entry).unwrap();
            assert_eq!((verified.index, verified.size), (index, size));
            let by = verified.accepted.cosigned_by;
            assert_eq!(by.iter().map(|by| by.witness.as_str()).collect::<Vec<_>>(), ["one", "two"]);
            assert!(verify_proof(&policy, &proof, b"entry").is_err());
        }
        for old in [1, size / 2, size - 1, size].into_iter().filter(|old| *old > 0) {
            let text = String::from_utf8(read(&format!("consistency-{old}"))).unwrap();
            let hashes: Vec<Hash> = text.lines().map(decode).collect();
            let (old_root, proof) = hashes.split_first().unwrap();
            verify_consistency(old, old_root, size, &root, proof).unwrap();
            assert_eq!(Tree::new(&folder, size).unwrap().consistency(old).unwrap(), proof);
        }
    }
}

fn decode(line: &str) -> Hash {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.decode(line).unwrap().try_into().unwrap()
}
