//! SSH key revocation lists: what is read is written so that it revokes the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outlast_ssh::{Krl, PublicKey, agent};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(list) = Krl::parse(bytes) {
        let written = list.to_bytes();
        let again = Krl::parse(&written).unwrap();
        assert_eq!(again.counts(), list.counts());
        assert_eq!(again.to_bytes(), written);
    }
    if let Ok(key) = PublicKey::from_spki(bytes) {
        assert_eq!(PublicKey::parse(key.blob()).unwrap(), key);
    }
    let _ = agent::is_success(bytes);
    if let Some(head) = bytes.first_chunk() {
        let _ = agent::answer_len(*head);
    }
});
