//! The artifact log: what may be entered, by whom, in which order, and what is left after failures.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use crate::common::{ACCOUNT, Answer, Fixture, NOW, Who, allow, b64, text, unb64};

use outlast_crypto::digests::{Digest, sha256};
use outlast_crypto::keys::KeySpec;
use outlast_crypto::signatures::Message;
use outlast_domain::artifacts::LogEntry;
use outlast_pki::certificate::{Certificate, Content};
use outlast_pki::cms::sign::{Request, Unsigned};
use outlast_pki::name;
use outlast_store::Store;
use outlast_tlog::policy::{Policy, verify_proof};
use outlast_tlog::proof_file::ProofFile;
use serde_json::{Value, json};

impl Fixture {
    fn log_as(&self, who: &Who, operation: &str, body: Value) -> Answer {
        self.outlast_as(who, operation, &body)
    }

    fn log(&self, operation: &str, body: Value) -> Answer {
        self.log_as(&Who::admin(), operation, body)
    }
}

/// A signer with a KMS key, whose certificate nobody else has signed.
pub struct Signer {
    key: String,
    certificate: Certificate,
}

impl Signer {
    pub fn new(fixture: &Fixture) -> Self {
        let key = fixture.key_of("ML_DSA_44", "SIGN_VERIFY");
        let found = fixture.kms("GetPublicKey", json!({ "KeyId": key })).unwrap();
        let public_key = unb64(&found["PublicKey"]);
        let spec = KeySpec::by_name("ML_DSA_44").unwrap();
        let subject = name::name(&[("CommonName", "Signer")], &[]).unwrap();
        let unsigned = Content {
            serial: [7; 16],
            issuer: subject.clone(),
            subject,
            public_key: public_key.clone(),
            not_before: NOW - 3600,
            not_after: NOW + 86_400,
            extensions: Vec::new(),
        }
        .prepare(spec.signing[0], &public_key)
        .unwrap();
        // The log asks nobody to trust a certificate, so any signature does.
        let other = spec.load(&spec.generate().unwrap()).unwrap();
        let signature = other.sign(spec.signing[0], Message::Raw(&unsigned.to_be_signed)).unwrap();
        let certificate = Certificate::parse(&unsigned.assemble(&signature).unwrap()).unwrap();
        Self { key, certificate }
    }

    /// A message about this content.
    pub fn sign(&self, fixture: &Fixture, content: &[u8]) -> Vec<u8> {
        let spec = KeySpec::by_name("ML_DSA_44").unwrap();
        let digest = Digest::by_name("sha512").unwrap();
        let request = Request {
            message_digest: &digest.digest(content),
            digest,
            algorithm: spec.signing[0],
            signing_time: NOW,
            signer: &self.certificate,
            chain: &[],
        };
        let unsigned = Unsigned::new(&[request]).unwrap();
        let asked = json!({
            "KeyId": self.key, "SigningAlgorithm": "ML_DSA_SHAKE_256",
            "Message": b64(&unsigned.to_be_signed[0]),
        });
        let signed = fixture.kms("Sign", asked).unwrap();
        unsigned.assemble(&[unb64(&signed["Signature"])]).unwrap()
    }
}

pub fn new_entry(message: &[u8]) -> Value {
    json!({ "Messages": [b64(message)] })
}

fn proof(entry: &Value) -> ProofFile {
    ProofFile::parse(text(&entry["Proof"]).as_bytes()).unwrap()
}

fn policy(fixture: &Fixture) -> Policy {
    let found = fixture.log("GetLogCheckpoint", json!({})).unwrap();
    Policy::parse(text(&found["Policy"]).as_bytes()).unwrap()
}

#[test]
fn entries_are_proved_at_once_and_later() {
    let fixture = Fixture::new();
    assert_eq!(fixture.log("GetLogCheckpoint", json!({})).unwrap_err().code, "NotFoundException");
    let none = fixture.log("GetLogEntries", json!({})).unwrap();
    assert_eq!((&none["Entries"], &none["LogSize"]), (&json!([]), &json!(0)));
    let signer = Signer::new(&fixture);
    let mut proofs = Vec::new();
    // More than a tile of 256, in calls of 16.
    let message = signer.sign(&fixture, b"file");
    for round in 0..17 {
        let entries: Vec<_> = (0..16).map(|_| new_entry(&message)).collect();
        let before = fixture.events().len();
        let added = fixture.log("AddLogEntries", json!({ "Entries": entries })).unwrap();
        assert_eq!(added["IsCosigned"], true, "no witness is asked for");
        assert_eq!(fixture.events().len(), before + 1, "one event for each call");
        for (number, entry) in (0..).zip(added["Entries"].as_array().unwrap()) {
            assert_eq!(entry["Index"], round * 16 + number);
            proofs.push(proof(entry));
        }
    }
    let policy = policy(&fixture);
    for (index, found) in (0_u64..).zip(&proofs) {
        let entry = found.extra.as_deref().unwrap();
        let verified = verify_proof(&policy, found, entry).unwrap();
        assert_eq!(
            (verified.index, verified.origin.as_str()),
            (index, "log.example/api-tests/artifacts")
        );
    }
    for index in [0, 255, 256, 271] {
        let again = fixture.log("GetLogProof", json!({ "Index": index })).unwrap();
        let again = proof(&again);
        assert_eq!(again.checkpoint.checkpoint().size(), 272);
        verify_proof(&policy, &again, again.extra.as_deref().unwrap()).unwrap();
    }
    let beyond = fixture.log("GetLogProof", json!({ "Index": 272 })).unwrap_err();
    assert_eq!(beyond.code, "NotFoundException");
    // Pages, up to the end.
    let page = fixture.log("GetLogEntries", json!({ "StartIndex": 100 })).unwrap();
    assert_eq!(page["Entries"].as_array().unwrap().len(), 172);
    let page = fixture.log("GetLogEntries", json!({ "StartIndex": 3, "MaxResults": 2 })).unwrap();
    assert_eq!(page["Entries"].as_array().unwrap().len(), 2);
    let entry = LogEntry::parse(text(&page["Entries"][0]).as_bytes()).unwrap();
    assert_eq!(
        entry.signers()[0].digest,
        hex::encode(Digest::by_name("sha512").unwrap().digest(b"file"))
    );
    let beyond = fixture.log("GetLogEntries", json!({ "StartIndex": 272 })).unwrap();
    assert_eq!(beyond["Entries"], json!([]));
}

#[test]
fn nothing_is_entered_that_nobody_has_signed() {
    let fixture = Fixture::new();
    let signer = Signer::new(&fixture);
    let good = signer.sign(&fixture, b"file");
    let other = signer.sign(&fixture, b"another file");
    let mut forged = good.clone();
    let at = forged.len() - 100;
    forged[at] ^= 1;
    let refused = |body: Value, reason: &str| {
        let error = fixture.log("AddLogEntries", json!({ "Entries": [body] })).unwrap_err();
        assert_eq!(error.code, "InvalidLogEntryException");
        assert!(error.message.contains(reason), "{}", error.message);
    };
    refused(new_entry(b"no message"), "not a CMS signature");
    refused(new_entry(&forged), "the signature is not valid");
    refused(json!({ "Messages": [b64(&good), b64(&other)] }), "over different files");
    for name in ["a/b", "a\nb"] {
        refused(json!({ "Messages": [b64(&good)], "FileName": name }), "file name");
    }
    // One that is refused takes the others of its call with it.
    let both = json!({ "Entries": [new_entry(&good), new_entry(&forged)] });
    assert_eq!(fixture.log("AddLogEntries", both).unwrap_err().code, "InvalidLogEntryException");
    assert_eq!(fixture.log("GetLogEntries", json!({})).unwrap()["LogSize"], 0);
    let named = json!({ "Entries": [{ "Messages": [b64(&good)], "FileName": "app.tar.gz" }] });
    fixture.log("AddLogEntries", named).unwrap();
    let page = fixture.log("GetLogEntries", json!({})).unwrap();
    let entry = LogEntry::parse(text(&page["Entries"][0]).as_bytes()).unwrap();
    assert_eq!(entry.name(), Some("app.tar.gz"));
}

#[test]
fn each_operation_needs_its_permission() {
    let fixture = Fixture::new();
    let signer = Signer::new(&fixture);
    let message = signer.sign(&fixture, b"file");
    let add = json!({ "Entries": [new_entry(&message)] });
    fixture.log("AddLogEntries", add.clone()).unwrap();
    let calls = [
        ("AddLogEntries", add),
        ("GetLogCheckpoint", json!({})),
        ("GetLogEntries", json!({})),
        ("GetLogProof", json!({ "Index": 0 })),
        ("ListKeySignatures", json!({ "KeyId": signer.key })),
    ];
    let nobody = fixture.user(ACCOUNT, "nobody", &[]);
    for (operation, body) in &calls {
        let error = fixture.log_as(&nobody, operation, body.clone()).unwrap_err();
        assert_eq!(error.code, "AccessDeniedException", "{operation}");
        let one = fixture.user(
            ACCOUNT,
            &operation.to_lowercase(),
            &[allow(&[&format!("outlast:{operation}"), "kms:DescribeKey"])],
        );
        for (other, body) in &calls {
            let outcome = fixture.log_as(&one, other, body.clone());
            assert_eq!(outcome.is_ok(), other == operation, "{operation} {other} {outcome:?}");
        }
    }
    // The signatures of another account's key are nobody else's business.
    let arn = format!("arn:aws:kms:eu-west-1:{ACCOUNT}:key/{}", signer.key);
    let asked = json!({ "KeyId": arn });
    let error = fixture.log_as(&Who::stranger(), "ListKeySignatures", asked).unwrap_err();
    assert_eq!(error.code, "AccessDeniedException");
}

#[test]
fn the_audit_trail_tells_of_each_signature_of_a_key() {
    let fixture = Fixture::new();
    let signer = Signer::new(&fixture);
    let other = Signer::new(&fixture);
    let list = |from: i64, most: i64| {
        let body = json!({ "KeyId": signer.key, "StartIndex": from, "MaxResults": most });
        fixture.log("ListKeySignatures", body).unwrap()
    };
    assert_eq!(list(0, 10)["Signatures"], json!([]));
    let mut digests = Vec::new();
    for content in [b"a", b"b", b"c"] {
        other.sign(&fixture, content);
        let signature = json!({
            "KeyId": signer.key, "SigningAlgorithm": "ML_DSA_SHAKE_256", "Message": b64(content),
        });
        // A dry run and a refused call make no signature.
        let mut dry = signature.clone();
        dry["DryRun"] = json!(true);
        fixture.kms("Sign", dry).unwrap_err();
        let mut wrong = signature.clone();
        wrong["SigningAlgorithm"] = json!("ECDSA_SHA_256");
        fixture.kms("Sign", wrong).unwrap_err();
        let made = fixture.kms("Sign", signature).unwrap();
        digests.push(hex::encode(sha256(&unb64(&made["Signature"]))));
    }
    let all = list(0, 1000);
    let found: Vec<_> = all["Signatures"].as_array().unwrap().iter().collect();
    let shown: Vec<_> = found.iter().map(|one| text(&one["SignatureSha256"])).collect();
    assert_eq!(shown, digests);
    assert_eq!(found[0]["PrincipalArn"], format!("arn:aws:iam::{ACCOUNT}:user/admin"));
    // In pages that meet.
    let first = list(0, 2);
    assert_eq!(first["Signatures"].as_array().unwrap().len(), 2);
    let rest = list(first["NextIndex"].as_i64().unwrap(), 1000);
    assert_eq!(text(&rest["Signatures"][0]["SignatureSha256"]), digests[2]);
    assert_eq!(rest["Signatures"].as_array().unwrap().len(), 1);
    // Aliases and ARNs name the same key.
    fixture
        .kms("CreateAlias", json!({ "AliasName": "alias/r", "TargetKeyId": signer.key }))
        .unwrap();
    let by_alias = fixture.log("ListKeySignatures", json!({ "KeyId": "alias/r" })).unwrap();
    assert_eq!(by_alias["Signatures"].as_array().unwrap().len(), 3);
    let odd = fixture.log("ListKeySignatures", json!({ "KeyId": "ALIAS/r" }));
    assert_eq!(odd.unwrap_err().code, "NotFoundException");
}

#[test]
fn appending_is_all_or_nothing() {
    let fixture = Fixture::new();
    let signer = Signer::new(&fixture);
    let message = signer.sign(&fixture, b"file");
    let add = json!({ "Entries": [new_entry(&message), new_entry(&message)] });
    fixture.log("AddLogEntries", add.clone()).unwrap();
    // Others were first: the entries are appended after theirs.
    fixture.store.conflict_next(5);
    fixture.log("AddLogEntries", add.clone()).unwrap();
    fixture.store.fail_writes(true);
    assert_eq!(fixture.log("AddLogEntries", add.clone()).unwrap_err().code, "KMSInternalException");
    fixture.store.fail_writes(false);
    let added = fixture.log("AddLogEntries", add).unwrap();
    assert_eq!(added["Entries"][1]["Index"], 5);
    let policy = policy(&fixture);
    let last = proof(&added["Entries"][1]);
    verify_proof(&policy, &last, last.extra.as_deref().unwrap()).unwrap();
}

#[test]
fn many_at_a_time_take_turns() {
    let fixture = Fixture::new();
    let signer = Signer::new(&fixture);
    let message = signer.sign(&fixture, b"file");
    let body = json!({ "Entries": [new_entry(&message), new_entry(&message)] }).to_string();
    let signed = fixture.raw("outlast", "Outlast_20261124.AddLogEntries", body.as_bytes());
    let request = fixture.received(&signed);
    let service = &fixture.service;
    let threads = 8;
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| assert_eq!(service.call(&request).status, 200));
        }
    });
    let size = fixture.log("GetLogEntries", json!({})).unwrap();
    assert_eq!(size["LogSize"], threads * 2);
}

#[test]
fn what_a_database_writer_changes_is_noticed() {
    let fixture = Fixture::new();
    let signer = Signer::new(&fixture);
    let message = signer.sign(&fixture, b"file");
    let add = json!({ "Entries": [new_entry(&message), new_entry(&message)] });
    fixture.log("AddLogEntries", add.clone()).unwrap();
    let old = fixture.store.read("artifacts/head").unwrap().unwrap().value;
    fixture.log("AddLogEntries", add.clone()).unwrap();
    let value = |key: &str| fixture.store.read(key).unwrap().map(|record| record.value);
    let put = |key: &str, value: Option<Vec<u8>>| {
        let writes = vec![(key.to_owned(), value)];
        let transaction = outlast_store::Transaction { writes, ..Default::default() };
        fixture.store.commit_and_wait(transaction).unwrap();
    };
    let entry = "artifacts/entry/0000000000000001";
    let tile = "artifacts/tile/00/0000000000000000";
    let second = value("artifacts/entry/0000000000000000");
    for (key, changed, call, problem) in [
        (entry, None, "GetLogProof", "the entry is missing"),
        (entry, second, "GetLogProof", "is not as the service wrote it"),
        ("artifacts/head", Some(old), "AddLogEntries", ""),
        ("artifacts/head", None, "AddLogEntries", "it is missing"),
        ("artifacts/key", None, "AddLogEntries", "it is missing"),
        (tile, None, "AddLogEntries", "not the tile of the entries"),
    ] {
        let before = value(key);
        put(key, changed);
        let body = if call == "AddLogEntries" { add.clone() } else { json!({ "Index": 1 }) };
        let error = fixture.log(call, body).unwrap_err();
        assert_eq!(error.code, "KMSInternalException", "{key} {call}");
        let report = outlast_domain::check::check(
            fixture.store.as_ref(),
            fixture.service.root(),
            &mut |_| {},
        )
        .unwrap();
        let said = format!("{:?}", report.problems);
        assert!(report.problem_count > 0 && said.contains(problem), "{key}: {said}");
        put(key, before);
        fixture.log("GetLogProof", json!({ "Index": 1 })).unwrap();
    }
    let report =
        outlast_domain::check::check(fixture.store.as_ref(), fixture.service.root(), &mut |_| {})
            .unwrap();
    assert_eq!(report.problems, []);
}
