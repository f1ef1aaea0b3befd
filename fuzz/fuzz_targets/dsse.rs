//! Envelopes, their Statements and signatures; the same bytes as a JWS.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outlast_pki::dsse::Envelope;
use outlast_pki::in_toto::{PAYLOAD_TYPE, Statement};
use outlast_pki::jws::Jws;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(envelope) = Envelope::parse(bytes) {
        assert_eq!(Envelope::parse(envelope.to_json().as_bytes()).as_ref(), Ok(&envelope));
        let _ = envelope.authenticate(&[]);
        statement(&envelope.payload);
    }
    statement(bytes);
    if let Ok(jws) = Jws::parse(bytes) {
        assert!(jws.authenticate(b"file").is_err());
    }
});

fn statement(payload: &[u8]) {
    let Ok(statement) = Statement::parse(PAYLOAD_TYPE, payload) else { return };
    let values: Vec<_> = statement.digests().iter().map(|row| row.digest(b"file")).collect();
    assert!(!values.is_empty());
    let _ = statement.about(&values);
    let _ = (statement.builder(), statement.source(), statement.build_type());
}
