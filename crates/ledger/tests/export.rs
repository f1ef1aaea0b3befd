//! Records for other programs.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use crate::common;

use common::{begun, end, handshake, offer, open, served};
use outlast_ledger::export::{Exporter, FIELDS, csv};
use outlast_ledger::tally::Filter;
use outlast_ledger::{Line, Outcome};
use serde_json::{Value, json};

#[test]
fn a_record_has_the_handshake_with_names_and_its_end() {
    let mut exporter = Exporter::new(Filter::default());
    let mut hello = offer(&[0x0a0a, 0x11ec, 0x001d], &[0x11ec]);
    hello.sni = Some("=1+1,\"x\"".into());
    let mut records = exporter.add(open("p1"));
    records.extend(exporter.add(begun(handshake(1, Some(hello), served("X25519MLKEM768", false)))));
    records.extend(exporter.add(begun(handshake(
        2,
        None,
        Outcome::Failed("no, it was not".into()),
    ))));
    records.extend(exporter.add(Line::End(end(1, Some("arn:aws:iam::1:user/a")))));
    records.extend(exporter.finish());
    assert_eq!(records.len(), 2);
    let (failed, whole) = (&records[0], &records[1]);
    assert_eq!(whole["offeredGroups"], json!(["GREASE", "X25519MLKEM768", "x25519"]));
    assert_eq!(whole["principal"], "arn:aws:iam::1:user/a");
    assert_eq!(whole["time"], "2026-11-21T12:00:00Z");
    assert_eq!((&whole["verdict"], &whole["sent"]), (&json!("hybrid"), &json!(5000)));
    assert_eq!((&failed["outcome"], &failed["group"]), (&json!("failed"), &Value::Null));
    assert_eq!(whole.keys().collect::<Vec<_>>(), FIELDS);
    // No field is a name only.
    for (field, value) in whole {
        let absent = ["reason", "clientCertificate", "software", "offeredCertificateSchemes"];
        assert_eq!(value.is_null(), absent.contains(&field.as_str()), "{field}");
    }
    let line = csv(whole);
    assert!(line.contains("GREASE:X25519MLKEM768:x25519"), "{line}");
    assert!(line.contains("\"'=1+1,\"\"x\"\"\""), "{line}");
}
