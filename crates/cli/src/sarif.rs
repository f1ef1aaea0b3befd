//! Results of `outlast verify` in SARIF 2.1.0 (OASIS), which code hosts show next to files.

use serde_json::{Value, json};

/// Kinds of results, with what each means. Timestamps and evidence records have those of their faults.
const RULES: &[(&str, &str)] = &[
    ("refused", "The signature of the file was refused."),
    ("failed", "The file or its signature cannot be read."),
    (
        "timestamp-missing",
        "A policy asks for timestamps of the signature, and there are not enough that count.",
    ),
    (
        "timestamp-invalid",
        "A timestamp or an evidence record does not count: it cannot be read, is for other data, or breaks a rule of RFC \
         3161 or RFC 4998.",
    ),
    ("timestamp-untrusted", "A timestamp does not count: it is by no authority that is trusted."),
    (
        "timestamp-unsuited",
        "A timestamp does not count: the signing policy does not accept its policy, or the algorithms of its authority.",
    ),
    (
        "timestamp-ended",
        "A timestamp does not count: its certificates have ended, and it was not renewed before.",
    ),
    ("timestamp-revoked", "A timestamp does not count: its time-stamping authority was revoked."),
    (
        "timestamp-revocation-unknown",
        "A timestamp does not count: whether its authority was revoked must be known, and is not.",
    ),
    (
        "timestamp-revoked-later",
        "A time-stamping authority was revoked after it had made a timestamp, which still counts.",
    ),
];

/// A report about the entries that `verify --output json` prints: a result for each that is not verified, and one for each of
/// its timestamps that says something.
pub(crate) fn report(entries: &[Value]) -> Value {
    let rules: Vec<_> = RULES
        .iter()
        .map(|(id, text)| json!({ "id": id, "shortDescription": { "text": text } }))
        .collect();
    let results: Vec<_> = entries.iter().flat_map(results).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "outlast verify",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            } },
            "results": results,
        }],
    })
}

/// The results about one file.
fn results(entry: &Value) -> Vec<Value> {
    let is_verified = entry["verified"] == true;
    // A timestamp that does not count refuses nothing by itself.
    let level = if is_verified { "warning" } else { "error" };
    let mut out = Vec::new();
    if !is_verified {
        let rule = entry["outcome"].as_str().unwrap_or("failed");
        out.push(result(rule, "error", entry["reason"].as_str(), &entry["file"]));
    }
    for signer in list(&entry["signers"]) {
        if let Some(reason) = signer["lacks_timestamps"].as_str() {
            let text = format!("the signature by {}: {reason}", name(&signer["subject"]));
            out.push(result("timestamp-missing", level, Some(&text), &entry["file"]));
        }
        let of = format!("on the signature by {}", name(&signer["subject"]));
        for timestamp in list(&signer["timestamps"]) {
            out.extend(about(timestamp, &of, level, &entry["file"]));
        }
    }
    let record = &entry["evidence"];
    if record["counts"] == false {
        let rule = format!("timestamp-{}", record["fault"].as_str().unwrap_or("invalid"));
        out.push(result(&rule, level, record["reason"].as_str(), &record["file"]));
    }
    for timestamp in list(&record["timestamps"]) {
        out.extend(about(timestamp, "in the evidence record", level, &record["file"]));
    }
    out
}

/// What a timestamp says, if it does not count or its authority was revoked since. `of` is where it is.
fn about(timestamp: &Value, of: &str, level: &str, file: &Value) -> Option<Value> {
    let time = timestamp["time"].as_str().unwrap_or("an unknown time");
    let what = format!("a timestamp of {time} by {} {of}", name(&timestamp["authority"]));
    if timestamp["counts"] == false {
        let rule = format!("timestamp-{}", timestamp["fault"].as_str().unwrap_or("invalid"));
        let reason = timestamp["reason"].as_str().unwrap_or_default();
        return Some(result(&rule, level, Some(&format!("{what} does not count: {reason}")), file));
    }
    let revoked = list(&timestamp["revocation"]["certificates"])
        .find(|certificate| certificate["status"] == "revoked later")?;
    let text = format!(
        "{what} counts; {} was revoked after it, at {}",
        name(&revoked["subject"]),
        revoked["revoked_at"].as_str().unwrap_or("an unknown time")
    );
    Some(result("timestamp-revoked-later", "note", Some(&text), file))
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn name(subject: &Value) -> String {
    subject.as_str().map_or_else(|| "somebody unknown".to_owned(), |name| format!("\"{name}\""))
}

fn result(rule: &str, level: &str, text: Option<&str>, file: &Value) -> Value {
    let uri = file.as_str().map(uri).unwrap_or_default();
    json!({
        "ruleId": rule,
        "level": level,
        "message": { "text": text },
        "locations": [{ "physicalLocation": { "artifactLocation": { "uri": uri } } }],
    })
}

/// A path as a URI reference (RFC 3986, section 4.2): what is not allowed in a path is percent-encoded.
fn uri(path: &str) -> String {
    let keeps = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let mut out = String::new();
    for byte in path.bytes() {
        if keeps(byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail")]
mod tests {
    use outlast_pki::trusted_time::FAULTS;

    use super::*;

    /// Rule, level, file and a part of the message of each result.
    type Expected<'a> = &'a [(&'a str, &'a str, &'a str, &'a str)];

    #[test]
    fn paths_are_uris() {
        assert_eq!(uri("a/b c:ä.bin"), "a/b%20c%3A%C3%A4.bin");
    }

    fn signed(timestamps: &Value) -> Value {
        json!([{ "subject": "CN=Release", "timestamps": timestamps }])
    }

    fn bad(fault: &str) -> Value {
        json!({
            "counts": false, "time": "2026-11-01T00:00:00Z", "authority": "CN=TSA",
            "fault": fault, "reason": "why",
        })
    }

    #[test]
    fn each_fault_of_a_timestamp_is_a_result_of_its_own() {
        let good = json!({
            "counts": true, "time": "2026-11-01T00:00:00Z", "authority": "CN=TSA",
            "revocation": { "status": "good", "certificates": [{ "subject": "CN=TSA", "status": "good" }] },
        });
        let mut later = good.clone();
        later["revocation"]["certificates"][0] = json!({
            "subject": "CN=TSA", "status": "revoked later", "revoked_at": "2026-12-01T00:00:00Z",
        });
        let unreadable = json!({
            "counts": false, "time": null, "authority": null, "fault": "invalid", "reason": "why",
        });
        let lacking = json!([{
            "subject": "CN=Release", "lacks_timestamps": "it has no timestamp, and the rule asks for one",
            "timestamps": [],
        }]);
        let record = |rest: Value| {
            let mut value = json!({ "file": "b.ers" });
            for (key, member) in rest.as_object().unwrap() {
                value[key] = member.clone();
            }
            value
        };
        let verified = |members: Value| (true, members);
        let refused = |members: Value| (false, members);
        let table: &[((bool, Value), Expected<'_>)] = &[
            (verified(json!({})), &[]),
            (verified(json!({ "signers": signed(&json!([good])) })), &[]),
            (refused(json!({})), &[("refused", "error", "b", "the reason")]),
            (
                verified(json!({ "signers": signed(&json!([good, bad("untrusted")])) })),
                &[(
                    "timestamp-untrusted",
                    "warning",
                    "b",
                    "of 2026-11-01T00:00:00Z by \"CN=TSA\" on the \
                    signature by \"CN=Release\" does not count: why",
                )],
            ),
            (
                refused(json!({ "signers": signed(&json!([bad("revoked"), bad("ended")])) })),
                &[
                    ("refused", "error", "b", "the reason"),
                    ("timestamp-revoked", "error", "b", "does not count"),
                    ("timestamp-ended", "error", "b", "does not count"),
                ],
            ),
            (
                verified(json!({ "signers": signed(&json!([unreadable])) })),
                &[("timestamp-invalid", "warning", "b", "of an unknown time by somebody unknown")],
            ),
            (
                refused(json!({ "signers": lacking })),
                &[
                    ("refused", "error", "b", "the reason"),
                    ("timestamp-missing", "error", "b", "by \"CN=Release\": it has no timestamp"),
                ],
            ),
            (
                verified(json!({ "signers": signed(&json!([later])) })),
                &[(
                    "timestamp-revoked-later",
                    "note",
                    "b",
                    "counts; \"CN=TSA\" was revoked after it",
                )],
            ),
            (
                verified(json!({ "evidence": record(
                    json!({ "counts": false, "fault": "ended", "reason": "timestamp 2 of 2 in it: why" }),
                ) })),
                &[("timestamp-ended", "warning", "b.ers", "timestamp 2 of 2")],
            ),
            (
                verified(
                    json!({ "evidence": record(json!({ "counts": true, "timestamps": [later] })) }),
                ),
                &[("timestamp-revoked-later", "note", "b.ers", "in the evidence record counts")],
            ),
        ];
        for ((is_verified, members), expected) in table {
            let mut entry = json!({ "file": "b", "verified": is_verified });
            if !is_verified {
                entry["outcome"] = json!("refused");
                entry["reason"] = json!("the reason");
            }
            for (key, member) in members.as_object().unwrap() {
                entry[key] = member.clone();
            }
            let report = report(&[entry]);
            let results = report["runs"][0]["results"].as_array().unwrap();
            assert_eq!(results.len(), expected.len(), "{members}: {report:#}");
            for (found, (rule, level, file, text)) in results.iter().zip(*expected) {
                assert_eq!((&found["ruleId"], &found["level"]), (&json!(rule), &json!(level)));
                let location = &found["locations"][0]["physicalLocation"]["artifactLocation"];
                assert_eq!(location["uri"], *file, "{found:#}");
                assert!(found["message"]["text"].as_str().unwrap().contains(text), "{found:#}");
            }
        }
    }

    #[test]
    fn every_result_has_a_rule() {
        let known = |id: &str| RULES.iter().filter(|(rule, _)| *rule == id).count();
        for fault in FAULTS {
            let entry = json!({
                "file": "b", "verified": true, "signers": signed(&json!([bad(fault.name())])),
            });
            let report = report(&[entry]);
            let found = report["runs"][0]["results"][0]["ruleId"].as_str().unwrap();
            assert_eq!(known(found), 1, "{found}");
        }
        assert!(RULES.iter().all(|(rule, _)| known(rule) == 1));
    }
}
