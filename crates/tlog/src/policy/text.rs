//! Writes the policy that the verifiers of one log need.

use crate::VerifierKey;

/// The policy of the log with this key: `quorum` of the witnesses, each with its URL, must cosign. The witnesses' names
/// in the policy are those of their keys.
pub fn text(log: &VerifierKey, witnesses: &[(VerifierKey, String)], quorum: usize) -> String {
    let mut text = format!("log {log}\n");
    for (key, url) in witnesses {
        text.push_str(&format!("witness {} {key} {url}\n", key.name()));
    }
    if witnesses.is_empty() {
        text.push_str("quorum none\n");
        return text;
    }
    let names: Vec<_> = witnesses.iter().map(|(key, _)| key.name()).collect();
    text.push_str(&format!("group enough {quorum} {}\nquorum enough\n", names.join(" ")));
    text
}
