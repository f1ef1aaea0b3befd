//! Signed notes, checkpoints and verifier keys: everything parsed is written as it was.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outlast_tlog::{Checkpoint, SignedNote, VerifierKey};

fuzz_target!(|bytes: &[u8]| {
    let known = ["PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"]
        .map(|key| key.parse::<VerifierKey>().unwrap());
    if let Ok(note) = SignedNote::parse(bytes) {
        assert_eq!(note.to_string().as_bytes(), bytes);
        let _ = note.verify(&known);
        if let Ok(checkpoint) = Checkpoint::parse(note.text()) {
            assert_eq!(checkpoint.to_string(), note.text());
        }
    }
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(key) = text.parse::<VerifierKey>()
    {
        assert_eq!(key.to_string(), text);
    }
});
