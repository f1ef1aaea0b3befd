//! Results of `outlast verify` in SARIF 2.1.0 (OASIS), which code hosts show next to files.

use serde_json::{Value, json};

/// Kinds of results, with what each means.
const KINDS: &[(&str, &str)] = &[
    ("refused", "The signature of the file was refused."),
    ("failed", "The file or its signature cannot be read."),
];

/// A report about the entries that `verify --output json` prints: one result for each that is not verified.
pub(crate) fn report(entries: &[Value]) -> Value {
    let rules: Vec<_> = KINDS
        .iter()
        .map(|(id, text)| json!({ "id": id, "shortDescription": { "text": text } }))
        .collect();
    let results: Vec<_> = entries
        .iter()
        .filter(|entry| entry["verified"] != true)
        .map(|entry| {
            let uri = entry["file"].as_str().map(uri).unwrap_or_default();
            json!({
                "ruleId": entry["outcome"],
                "level": "error",
                "message": { "text": entry["reason"] },
                "locations": [{ "physicalLocation": { "artifactLocation": { "uri": uri } } }],
            })
        })
        .collect();
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
mod tests {
    #[test]
    fn paths_are_uris() {
        assert_eq!(super::uri("a/b c:ä.bin"), "a/b%20c%3A%C3%A4.bin");
    }
}
