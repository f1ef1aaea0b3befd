//! Secrets Manager's records: each value belongs to a version of a secret, and is there.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::policy::{Kind, Policy};

/// Values that versions refer to, and values that exist.
#[derive(Default)]
pub(super) struct Values {
    wanted: BTreeSet<String>,
    there: BTreeSet<String>,
}

impl Values {
    /// Remembers a record, if it is one of these; returns what is wrong with it.
    pub(super) fn record(&mut self, record_key: &str, value: &Value) -> Option<Option<String>> {
        if record_key.starts_with("secrets/value/") {
            self.there.insert(record_key.to_owned());
            return Some(None);
        }
        if record_key.starts_with("secrets/policy/") {
            let text = value["text"].as_str().unwrap_or_default();
            let parsed = Policy::parse_stored(text, Kind::Secret);
            return Some(parsed.err().map(|error| format!("its policy is not valid: {error}")));
        }
        let rest = record_key.strip_prefix("secrets/secret/")?;
        let mut parts = rest.splitn(3, '/');
        let (account, region, name) = (parts.next()?, parts.next()?, parts.next()?);
        let suffix = value["suffix"].as_str().unwrap_or_default();
        let versions = value["versions"].as_object().into_iter().flatten();
        let mut current = 0;
        for (_, version) in versions {
            // A version that a rotation has made may have none yet.
            if let Some(number) = version["number"].as_u64() {
                self.wanted
                    .insert(format!("secrets/value/{account}/{region}/{suffix}/{number}/{name}"));
            }
            let labels = version["stages"].as_array().into_iter().flatten();
            current += labels.filter(|label| *label == "AWSCURRENT").count();
        }
        let problem = (current > 1).then(|| "two versions have the label AWSCURRENT".to_owned());
        Some(problem)
    }

    /// What is wrong with the records together.
    pub(super) fn end(&self) -> Vec<(String, String)> {
        let missing = self.wanted.difference(&self.there);
        let missing = missing.map(|key| (key.clone(), "the value of a version is missing".into()));
        let extra = self.there.difference(&self.wanted);
        let extra = extra.map(|key| (key.clone(), "no version of a secret has this value".into()));
        missing.chain(extra).collect()
    }
}
