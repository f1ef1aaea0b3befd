//! Proof files, and proofs with arbitrary numbers and hashes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outlast_tlog::hash::{self, EMPTY_ROOT};
use outlast_tlog::proof_file::ProofFile;
use outlast_tlog::tile::{self, Resource};
use outlast_tlog::{CompactRange, Hash, proof};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(proof) = ProofFile::parse(bytes) {
        assert_eq!(proof.to_string().as_bytes(), bytes);
        let _ = proof.verify_inclusion(b"entry");
    }
    if let Ok(path) = std::str::from_utf8(bytes)
        && let Ok(resource) = path.parse::<Resource>()
    {
        assert_eq!(resource.to_string(), path);
    }
    if let Some(entries) = tile::unbundle(bytes) {
        assert_eq!(tile::bundle(entries).unwrap(), bytes);
    }
    if let Some((numbers, rest)) = bytes.split_first_chunk::<16>() {
        let number = |at: usize| u64::from_be_bytes(numbers[at..at + 8].try_into().unwrap());
        let (a, b) = (number(0), number(8));
        let hashes: Vec<Hash> =
            rest.chunks_exact(32).map(|hash| hash.try_into().unwrap()).collect();
        let _ = proof::verify_inclusion(&hash::leaf(b"entry"), a, b, &hashes, &EMPTY_ROOT);
        let _ = proof::verify_consistency(a, &EMPTY_ROOT, b, &EMPTY_ROOT, &hashes);
        if let Ok(mut range) = CompactRange::from_parts(a, b, hashes) {
            assert_eq!(range.root().is_some(), a == 0);
            let _ = range.append(&EMPTY_ROOT);
        }
    }
});
