//! Entries of the artifact log: everything parsed is written as it was.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outlast_domain::artifacts::LogEntry;
use outlast_pki::cms::verify::SignedMessage;

fuzz_target!(|bytes: &[u8]| {
    match LogEntry::parse(bytes) {
        Ok(entry) => {
            assert_eq!(entry.to_text().unwrap().as_bytes(), bytes);
            assert!(!entry.signers().is_empty());
            let _ = (entry.time(), entry.name());
        }
        Err(error) => assert!(error.to_string().len() < 256),
    }
    // What a caller sends to be entered.
    if let Ok(message) = SignedMessage::parse(bytes) {
        if message.authenticate_alone().is_ok() {
            let reduced = SignedMessage::parse(&message.reduced().unwrap()).unwrap();
            reduced.authenticate_alone().unwrap();
        }
        let _ = LogEntry::new(&[message], None, 0);
    }
});
