//! `outlast log monitor`: tells the owner of a key of each signature that it made, from the log and from the audit
//! trail of the service.
//!
//! Both sides name a signature by the SHA-256 of its value, so that they can be compared one by one. A signature that
//! was made a moment ago may not be in the log yet; it is judged in the next run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use outlast_api::aws::outlast::KeySignature;
use outlast_api::ops::kms::{describe_key, get_public_key};
use outlast_api::ops::outlast::list_key_signatures;
use outlast_crypto::digests::sha256;
use outlast_domain::artifacts::LogEntry;
use outlast_net::policy::Policy;
use outlast_net::server::system_clock;
use outlast_pki::time::rfc3339;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::follow::{Indexed, Seen, entries};
use crate::artifact_log::{explained, read_policy};
use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::profile::Connection;
use crate::{files, values};

/// Longest state file, in bytes.
const MAX_STATE: usize = 256 << 20;
/// Longest file of known digests, in bytes.
const MAX_KNOWN: usize = 64 << 20;

/// Shown at the end of the help, and in the manual page.
const EXIT_STATUS: &str = "\
Exit status: 0 every signature is explained; 1 failed; 2 wrong usage; 3 the log is not the one that was seen before; 5
a signature is not explained; 130 interrupted.";

/// Arguments of `log monitor`.
#[derive(clap::Args)]
#[command(after_help = EXIT_STATUS)]
pub(super) struct Arguments {
    /// KMS key: alias/NAME, key id or ARN.
    #[arg(long)]
    key: String,
    /// File that remembers what was seen; made if it is missing [default: everything is read, nothing remembered].
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// File with the log to trust (C2SP tlog-policy), as outlast log policy prints it [default: the log that is seen
    /// first].
    #[arg(long, value_name = "FILE")]
    log_policy: Option<PathBuf>,
    /// File of digests that you know of, one a line, as sha512sum and its like write them: digests of files, or of
    /// signatures, or event ids of signatures without a digest. With it, entries about anything else are not explained.
    #[arg(long, value_name = "FILE")]
    known: Option<PathBuf>,
    /// Show only signatures since a time such as 2026-11-21T12:00:00Z.
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    since: Option<i64>,
    /// Seconds that a signature may be in the audit trail before it is in the log.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(i64).range(0..=86_400))]
    grace: i64,
    #[command(flatten)]
    connection: Connection,
}

/// What a monitor remembers.
#[derive(Default, Serialize, Deserialize)]
struct State {
    /// ARN of the key.
    key: String,
    log: Seen,
    /// Index of the next event of the audit trail.
    trail: i64,
    /// Signatures in the trail that are not in the log, by the SHA-256 of their value.
    unlogged: BTreeMap<String, Signature>,
    /// Signatures in the log that are not in the trail.
    unproven: BTreeMap<String, Entry>,
    /// Signatures that are in both.
    matched: BTreeSet<String>,
    /// Entries that nobody knew of.
    #[serde(default)]
    strange: BTreeMap<String, Entry>,
    /// Whether the trail has named a signature by its digest. An event without a digest is old up to here, and later
    /// one that cannot be compared with the log.
    #[serde(default)]
    is_named: bool,
    /// Such later signatures, by the id of their event.
    #[serde(default)]
    unnamed: BTreeMap<String, Signature>,
}

/// A signature, as the audit trail tells of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Signature {
    /// Seconds since 1970.
    time: i64,
    event: i64,
    event_id: String,
    by: String,
    address: String,
    algorithm: Option<String>,
}

/// A signature, as the log tells of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    /// Seconds since 1970.
    time: i64,
    index: u64,
    digest: String,
    digest_algorithm: String,
    name: Option<String>,
}

/// What is old enough to be judged.
struct Limits {
    /// Size of the log before the trail was read.
    size: u64,
    /// Signatures up to this time, in seconds since 1970, must be in the log.
    before: i64,
}

/// Runs the command.
pub(super) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let mut state = match &arguments.state {
        Some(path) if files::exists(path)? => read(path)?,
        _ => State::default(),
    };
    let keys: Vec<_> = match &arguments.log_policy {
        Some(path) => read_policy(path)?.logs().iter().map(|log| log.key.clone()).collect(),
        None => Vec::new(),
    };
    let known = arguments.known.as_deref().map(known).transpose()?;
    let mut endpoint = Endpoint::new(arguments.connection.settings()?, &Policy::default())?;
    let is_first = state.log.origin.is_empty();
    let report = crate::runtime::small()?.block_on(async {
        let key = Key::resolve(&mut endpoint, &arguments.key).await?;
        state.is_of(&key.arn)?;
        // Signing comes before logging: what is in the log before the trail is read is in the trail.
        let (_, size) = entries(&mut endpoint, 0, 1).await?;
        let read_at = system_clock().div_euclid(1000);
        let limits = Limits { size, before: read_at.saturating_sub(arguments.grace) };
        let signatures = trail(&mut endpoint, &key.arn, &mut state.trail).await?;
        let appended = state.log.advance(&mut endpoint, &keys).await?;
        let new = of_key(&appended, &key.public_key_sha256)?;
        Ok::<_, Failure>(state.judge(signatures, new, known.as_ref(), &limits))
    })?;
    if is_first && keys.is_empty() && arguments.state.is_some() {
        output::warning(&format!(
            "the log {} is trusted because it was seen first; give its policy with --log-policy",
            state.log.origin
        ));
    }
    if let Some(path) = &arguments.state {
        let bytes =
            serde_json::to_vec_pretty(&state).map_err(|error| Failure::file(path, &error))?;
        files::write(path, &bytes, 0o600)?;
    }
    report.tell(&state, arguments.since.unwrap_or(i64::MIN), output)
}

fn read(path: &Path) -> Result<State, Failure> {
    let bytes = files::read(path, MAX_STATE)?;
    serde_json::from_slice(&bytes).map_err(|error| {
        Failure::file(path, &format!("it is not a state file of outlast log monitor: {error}"))
            .hint("name another file, or begin with a new one")
    })
}

/// The digests in a file: the first word of each line, in lower case.
fn known(path: &Path) -> Result<BTreeSet<String>, Failure> {
    let text = String::from_utf8(files::read(path, MAX_KNOWN)?)
        .map_err(|_| Failure::file(path, &"it is not text"))?;
    let mut found = BTreeSet::new();
    for (number, line) in text.lines().enumerate() {
        let Some(word) = line.split_whitespace().next().filter(|word| !word.starts_with('#'))
        else {
            continue;
        };
        // The id of an event is a UUID.
        let word = word.replace('-', "");
        if word.len() < 32 || !word.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(Failure::file(path, &format!("line {} begins with no digest", number + 1))
                .hint("write one digest a line in hexadecimal, as sha512sum does"));
        }
        found.insert(word.to_ascii_lowercase());
    }
    Ok(found)
}

/// The key, by what each side calls it.
struct Key {
    arn: String,
    public_key_sha256: String,
}

impl Key {
    async fn resolve(endpoint: &mut Endpoint, name: &str) -> Result<Self, Failure> {
        let described = endpoint
            .call::<describe_key::DescribeKey>(&describe_key::Input {
                key_id: name.to_owned(),
                grant_tokens: None,
            })
            .await?
            .key_metadata;
        let found = endpoint
            .call::<get_public_key::GetPublicKey>(&get_public_key::Input {
                key_id: described.arn.clone(),
                grant_tokens: None,
            })
            .await?;
        let public_key_sha256 = hex::encode(sha256(&found.public_key.0));
        Ok(Self { arn: described.arn, public_key_sha256 })
    }
}

/// The key's signatures from the event `next` on, which moves to the end of the trail.
async fn trail(
    endpoint: &mut Endpoint,
    key: &str,
    next: &mut i64,
) -> Result<Vec<KeySignature>, Failure> {
    let mut found = Vec::new();
    loop {
        let input = list_key_signatures::Input {
            key_id: key.to_owned(),
            start_index: Some(*next),
            max_results: None,
        };
        let outcome = endpoint.call::<list_key_signatures::ListKeySignatures>(&input).await;
        let page = outcome.map_err(|error| explained(error, "outlast:ListKeySignatures"))?;
        if page.first_index > *next {
            output::warning(&format!(
                "the audit events {} to {} were pruned, so signatures in them are not known",
                *next + 1,
                page.first_index
            ));
        }
        found.extend(page.signatures);
        // Each question is an event, too: the trail grows while it is read.
        let is_end = page.next_index >= page.end_index || page.next_index <= *next;
        *next = page.next_index.max(*next);
        if is_end {
            return Ok(found);
        }
    }
}

/// The signatures of a key in entries, by the SHA-256 of their value.
fn of_key(entries: &[Indexed], public_key: &str) -> Result<Vec<(String, Entry)>, Failure> {
    let mut found = Vec::new();
    for (index, text) in entries {
        let entry = LogEntry::parse(text.as_bytes()).map_err(|error| {
            Failure::new(format!("entry {index} of the log: {error}"))
                .hint("use a version of outlast that is as new as the service's")
        })?;
        let of_it = entry.signers().iter().filter(|signer| signer.public_key_sha256 == public_key);
        for signer in of_it {
            let kept = Entry {
                time: entry.time(),
                index: *index,
                digest: signer.digest.clone(),
                digest_algorithm: signer.digest_algorithm.clone(),
                name: entry.name().map(str::to_owned),
            };
            found.push((signer.signature_sha256.clone(), kept));
        }
    }
    Ok(found)
}

impl State {
    /// Refuses a state file of another key.
    fn is_of(&mut self, arn: &str) -> Result<(), Failure> {
        if self.key.is_empty() {
            arn.clone_into(&mut self.key);
        }
        if self.key == arn {
            return Ok(());
        }
        Err(Failure::new(format!("the state file is about {}", self.key))
            .hint("use one state file for each key"))
    }

    /// Compares what is new, and what was open, on both sides.
    fn judge(
        &mut self,
        signatures: Vec<KeySignature>,
        entries: Vec<(String, Entry)>,
        known: Option<&BTreeSet<String>>,
        limits: &Limits,
    ) -> Report {
        let mut report = Report::default();
        // What an earlier version has remembered had a digest.
        self.is_named |= !self.matched.is_empty() || !self.unlogged.is_empty();
        for signature in signatures {
            let digest = signature.signature_sha256;
            let kept = Signature {
                time: signature.event_time.ms.div_euclid(1000),
                event: signature.event_index,
                event_id: signature.event_id,
                by: signature.principal_arn,
                address: signature.source_ip_address,
                algorithm: signature.signing_algorithm,
            };
            match digest {
                Some(digest) => {
                    self.is_named = true;
                    self.unlogged.insert(digest, kept);
                }
                None if self.is_named => {
                    self.unnamed.insert(kept.event_id.clone(), kept);
                }
                None => report.without_digest += 1,
            }
        }
        self.unnamed.retain(|id, _| {
            let id = id.replace('-', "").to_ascii_lowercase();
            !known.is_some_and(|known| known.contains(&id))
        });
        report.unnamed = self.unnamed.values().cloned().collect();
        let is_known = |signature: &String, entry: Option<&Entry>| {
            known.is_some_and(|known| {
                known.contains(signature)
                    || entry.is_some_and(|entry| known.contains(&entry.digest))
            })
        };
        for (digest, entry) in entries {
            if self.matched.contains(&digest) {
                // The same signature was entered twice.
                continue;
            }
            if let Some(signature) = self.unlogged.remove(&digest) {
                if known.is_some() {
                    self.strange.insert(digest.clone(), entry.clone());
                }
                self.matched.insert(digest.clone());
                report.matched.push((digest, entry, signature));
            } else {
                self.unproven.insert(digest, entry);
            }
        }
        // What was open in an earlier run may be there now.
        let found: Vec<_> = self
            .unproven
            .keys()
            .filter(|digest| self.unlogged.contains_key(*digest))
            .cloned()
            .collect();
        for digest in found {
            if let (Some(entry), Some(signature)) =
                (self.unproven.remove(&digest), self.unlogged.remove(&digest))
            {
                if known.is_some() {
                    self.strange.insert(digest.clone(), entry.clone());
                }
                self.matched.insert(digest.clone());
                report.matched.push((digest, entry, signature));
            }
        }
        self.strange.retain(|digest, entry| !is_known(digest, Some(entry)));
        // Only who names the signature itself knows of one that one side lacks.
        let open = self.unlogged.keys().chain(self.unproven.keys());
        let named: Vec<_> = open.filter(|digest| is_known(digest, None)).cloned().collect();
        for digest in named {
            self.unlogged.remove(&digest);
            self.unproven.remove(&digest);
            self.matched.insert(digest);
        }
        let due = self.unlogged.iter().filter(|(_, signature)| signature.time <= limits.before);
        report.unlogged = due.map(|(digest, found)| (digest.clone(), found.clone())).collect();
        let unproven = self.unproven.iter().filter(|(_, entry)| entry.index < limits.size);
        report.unproven = unproven.map(|(digest, found)| (digest.clone(), found.clone())).collect();
        let strange = self.strange.iter();
        report.strange = strange.map(|(digest, found)| (digest.clone(), found.clone())).collect();
        report.pending = (self.unlogged.len() - report.unlogged.len())
            + (self.unproven.len() - report.unproven.len());
        report
    }
}

/// What a run has found.
#[derive(Debug, Default)]
struct Report {
    /// New signatures that are in log and trail.
    matched: Vec<(String, Entry, Signature)>,
    unlogged: Vec<(String, Signature)>,
    unproven: Vec<(String, Entry)>,
    strange: Vec<(String, Entry)>,
    /// Signatures that the trail does not name by their digests, although it did so before.
    unnamed: Vec<Signature>,
    /// Signatures that the next run will judge.
    pending: usize,
    /// Signatures from before the trail named signatures by their digests.
    without_digest: usize,
}

impl Report {
    fn tell(mut self, state: &State, since: i64, output: Output) -> Result<(), Failure> {
        self.matched.retain(|(_, entry, _)| entry.time >= since);
        self.unlogged.retain(|(_, signature)| signature.time >= since);
        self.unproven.retain(|(_, entry)| entry.time >= since);
        self.strange.retain(|(_, entry)| entry.time >= since);
        self.unnamed.retain(|signature| signature.time >= since);
        let mut text = String::new();
        for (digest, entry, signature) in &self.matched {
            text.push_str(&format!("logged: {}, {}\n", about(digest, entry), made(signature)));
        }
        for (digest, signature) in &self.unlogged {
            text.push_str(&format!(
                "made without the log: signature {digest} at {}, {}\n",
                rfc3339(signature.time),
                made(signature)
            ));
        }
        for (digest, entry) in &self.unproven {
            text.push_str(&format!(
                "in the log, but not in the audit trail: {}\n",
                about(digest, entry)
            ));
        }
        for (digest, entry) in &self.strange {
            text.push_str(&format!("not known to you: {}\n", about(digest, entry)));
        }
        for signature in &self.unnamed {
            text.push_str(&format!(
                "made without a digest: event id {} at {}, {}\n",
                signature.event_id,
                rfc3339(signature.time),
                made(signature)
            ));
        }
        let open =
            self.unlogged.len() + self.unproven.len() + self.strange.len() + self.unnamed.len();
        text.push_str(&format!(
            "{}: {} new signatures in the log of {} entries; {open} not explained, {} too new to judge",
            state.key,
            self.matched.len(),
            state.log.size(),
            self.pending
        ));
        let entry = |digest: &String, entry: &Entry| {
            json!({
                "signature_sha256": digest, "index": entry.index, "entered_at": rfc3339(entry.time),
                "digest_algorithm": entry.digest_algorithm, "digest": entry.digest, "name": entry.name,
            })
        };
        let signature = |digest: Option<&String>, found: &Signature| {
            json!({
                "signature_sha256": digest, "made_at": rfc3339(found.time), "event": found.event + 1,
                "event_id": found.event_id, "by": found.by, "address": found.address,
                "algorithm": found.algorithm,
            })
        };
        let matched = |(digest, logged, made): &(String, Entry, Signature)| json!({ "entry": entry(digest, logged), "signature": signature(Some(digest), made) });
        let entries = |list: &[(String, Entry)]| {
            list.iter().map(|(digest, found)| entry(digest, found)).collect::<Vec<_>>()
        };
        let unlogged: Vec<_> =
            self.unlogged.iter().map(|(digest, found)| signature(Some(digest), found)).collect();
        let unnamed: Vec<_> = self.unnamed.iter().map(|found| signature(None, found)).collect();
        output.result(
            &text,
            &json!({
                "key": state.key,
                "origin": state.log.origin,
                "log_size": state.log.size(),
                "logged": self.matched.iter().map(matched).collect::<Vec<_>>(),
                "made_without_the_log": unlogged,
                "not_in_the_audit_trail": entries(&self.unproven),
                "not_known": entries(&self.strange),
                "made_without_a_digest": unnamed,
                "pending": self.pending,
                "without_digest": self.without_digest,
            }),
        );
        if self.without_digest > 0 {
            output::warning(&format!(
                "{} signatures are from before the audit trail named signatures by their digests, and are not compared",
                self.without_digest
            ));
        }
        if open == 0 {
            return Ok(());
        }
        Err(Failure::finding(format!("{open} signatures of {} are not explained", state.key)).hint(
            "find out who made them: outlast audit tail, by the number of the event; add those that you know of to --known",
        ))
    }
}

/// An entry in words.
fn about(signature: &str, entry: &Entry) -> String {
    format!(
        "entry {} at {}: {} {}:{}, signature {signature}",
        entry.index,
        rfc3339(entry.time),
        entry.name.as_deref().unwrap_or("a file without a name"),
        entry.digest_algorithm,
        entry.digest
    )
}

/// Who made a signature.
fn made(signature: &Signature) -> String {
    format!("made by {} from {}, event {}", signature.by, signature.address, signature.event + 1)
}

#[cfg(test)]
mod tests {
    use outlast_api::wire::Timestamp;

    use super::*;

    fn made(digest: Option<&str>, seconds: i64) -> KeySignature {
        KeySignature {
            event_index: 7,
            event_id: "1-D".into(),
            event_time: Timestamp::from_seconds(seconds),
            signature_sha256: digest.map(str::to_owned),
            signing_algorithm: None,
            principal_arn: "arn".into(),
            source_ip_address: "::1".into(),
        }
    }

    fn logged(digest: &str, index: u64) -> (String, Entry) {
        let entry = Entry {
            time: 5,
            index,
            digest: format!("file of {digest}"),
            digest_algorithm: "sha512".into(),
            name: None,
        };
        (digest.to_owned(), entry)
    }

    fn shown(report: &Report) -> [Vec<&str>; 4] {
        fn names<T>(list: &[(String, T)]) -> Vec<&str> {
            list.iter().map(|(digest, _)| digest.as_str()).collect()
        }
        let matched = report.matched.iter().map(|(digest, _, _)| digest.as_str()).collect();
        [matched, names(&report.unlogged), names(&report.unproven), names(&report.strange)]
    }

    #[test]
    fn each_side_may_be_ahead_for_a_while() {
        let mut state = State::default();
        let early = Limits { size: 1, before: 100 };
        let signatures = vec![made(None, 1), made(Some("a"), 10), made(Some("b"), 101)];
        let entries = vec![logged("a", 0), logged("c", 1)];
        let report = state.judge(signatures, entries, None, &early);
        assert_eq!(shown(&report), [vec!["a"], vec![], vec![], vec![]]);
        assert_eq!((report.pending, report.without_digest), (2, 1));
        // Later neither is excused, and both are told until somebody knows them.
        let later = Limits { size: 9, before: 200 };
        for _ in 0..2 {
            let report = state.judge(Vec::new(), vec![logged("a", 5)], None, &later);
            assert_eq!(shown(&report), [vec![], vec!["b"], vec!["c"], vec![]]);
            assert_eq!(report.pending, 0);
        }
        let known = BTreeSet::from(["b".to_owned()]);
        let report = state.judge(Vec::new(), Vec::new(), Some(&known), &later);
        assert_eq!(shown(&report), [vec![], vec![], vec!["c"], vec![]]);
        // The other side catches up.
        let report = state.judge(vec![made(Some("c"), 150)], Vec::new(), None, &later);
        assert_eq!(shown(&report), [vec!["c"], vec![], vec![], vec![]]);
        let report = state.judge(Vec::new(), vec![logged("b", 8)], None, &later);
        assert_eq!(shown(&report), [Vec::<&str>::new(), vec![], vec![], vec![]]);
    }

    #[test]
    fn a_signature_without_a_digest_is_old_or_not_explained() {
        let limits = Limits { size: 9, before: 200 };
        let mut state = State::default();
        let report = state.judge(vec![made(None, 1), made(None, 2)], Vec::new(), None, &limits);
        assert_eq!((report.without_digest, report.unnamed.len()), (2, 0));
        // Once signatures are named, one that is not is told of in each run.
        let signatures = vec![made(None, 3), made(Some("a"), 10), made(None, 11)];
        let report = state.judge(signatures, vec![logged("a", 0)], None, &limits);
        assert_eq!((report.without_digest, report.unnamed.len()), (1, 1));
        assert_eq!(report.unnamed[0].time, 11);
        let kept = serde_json::to_vec(&state).unwrap();
        let mut state: State = serde_json::from_slice(&kept).unwrap();
        let report = state.judge(Vec::new(), Vec::new(), None, &limits);
        assert_eq!(report.unnamed.len(), 1);
        assert!(report.tell(&state, i64::MIN, Output::Text).is_err());
        let known = BTreeSet::from(["a".to_owned(), "1d".to_owned()]);
        let report = state.judge(Vec::new(), Vec::new(), Some(&known), &limits);
        assert_eq!(report.unnamed.len(), 0);
        // The state file of an earlier version says nothing about it.
        let mut old = State { matched: BTreeSet::from(["a".to_owned()]), ..State::default() };
        let report = old.judge(vec![made(None, 12)], Vec::new(), None, &limits);
        assert_eq!((report.without_digest, report.unnamed.len()), (0, 1));
    }

    #[test]
    fn what_the_owner_does_not_know_is_told_until_it_is_known() {
        let mut state = State::default();
        let limits = Limits { size: 9, before: 200 };
        let file = BTreeSet::from(["file of a".to_owned()]);
        let signatures = vec![made(Some("a"), 10), made(Some("b"), 10)];
        let entries = vec![logged("a", 0), logged("b", 1)];
        let report = state.judge(signatures, entries, Some(&file), &limits);
        assert_eq!(shown(&report), [vec!["a", "b"], vec![], vec![], vec!["b"]]);
        let report = state.judge(Vec::new(), Vec::new(), Some(&file), &limits);
        assert_eq!(shown(&report), [vec![], vec![], vec![], vec!["b"]]);
        let both = BTreeSet::from(["file of a".to_owned(), "b".to_owned()]);
        let report = state.judge(Vec::new(), Vec::new(), Some(&both), &limits);
        assert_eq!(shown(&report), [Vec::<&str>::new(), vec![], vec![], vec![]]);
    }
}
