//! What `outlast verify` knows of timestamps and evidence records.

use std::path::{Path, PathBuf};

use indicatif::ProgressBar;
use outlast_pki::certificate::Certificate;
use outlast_pki::cms::verify::Authentic;
use outlast_pki::evidence_record::{self, EvidenceRecord};
use outlast_pki::time::rfc3339;
use outlast_pki::trusted_time::{self, Evidence, Refusal, Stamp, Trust};
use outlast_pki::validate::Revocation;
use serde_json::{Value, json};

use super::{Holder, Signed, Subject, Verifier};
use crate::failure::{Failure, REFUSED};
use crate::timestamping::accuracy;
use crate::{files, output, renewing};

/// An evidence record in a file.
pub(crate) struct Record {
    path: PathBuf,
    record: Result<EvidenceRecord, String>,
}

impl Record {
    /// Reads a record. One that need not be there may be missing.
    pub(crate) fn read(path: &Path, must_exist: bool) -> Result<Option<Self>, Failure> {
        if !must_exist && !files::exists(path)? {
            return Ok(None);
        }
        let bytes = files::read(path, evidence_record::MAX_LEN)?;
        let record = EvidenceRecord::parse(&bytes).map_err(|error| error.to_string());
        Ok(Some(Self { path: path.to_path_buf(), record }))
    }
}

/// A record with the digests of the file and its signature.
pub(crate) struct Prepared<'a> {
    path: &'a Path,
    record: Result<Hashed<'a>, &'a str>,
}

struct Hashed<'a> {
    record: &'a EvidenceRecord,
    objects: Vec<Vec<Vec<u8>>>,
}

/// What a record proves, or why nothing.
pub(crate) struct Outcome {
    path: PathBuf,
    result: Result<Evidence, Refusal>,
}

/// Reads the file for the record of its signature, if there is one.
pub(crate) fn prepare<'a>(
    subject: &Subject<'a>,
    progress: &ProgressBar,
) -> Result<Option<Prepared<'a>>, Failure> {
    let (Some(Record { path, record }), Signed::File(file)) = (subject.record, subject.signed)
    else {
        return Ok(None);
    };
    let record = match record {
        Ok(record) => {
            let objects = renewing::objects(record, file, subject.signature, progress)?;
            Ok(Hashed { record, objects })
        }
        Err(reason) => Err(reason.as_str()),
    };
    Ok(Some(Prepared { path, record }))
}

impl Prepared<'_> {
    /// Verifies the record.
    pub(crate) fn judge(&self, trust: &Trust<'_>) -> Outcome {
        let result = match &self.record {
            Ok(Hashed { record, objects }) => trust.evidence(record, objects),
            Err(reason) => Err(Refusal::invalid(*reason)),
        };
        Outcome { path: self.path.to_path_buf(), result }
    }
}

/// The timestamps that hold but for revocation: those of each signer, and at the end those of the record.
pub(crate) fn stamps(
    signers: &[Authentic],
    record: Option<&Prepared<'_>>,
    trust: &Trust<'_>,
) -> Vec<Vec<Stamp>> {
    let trust = Trust { revocation: Revocation::Off, ..*trust };
    let evidence = record.and_then(|record| record.judge(&trust).result.ok());
    let of_signer = |signer| {
        let tokens = trust.tokens(signer, evidence.as_ref());
        tokens.into_iter().filter_map(|token| token.result.ok()).collect()
    };
    let mut stamps: Vec<_> = signers.iter().map(of_signer).collect();
    stamps.push(evidence.map(|evidence| evidence.stamps).unwrap_or_default());
    stamps
}

/// The chains of the authorities of these timestamps, from the authority's certificate to the root, each once. So only the
/// URLs of authorities that are trusted are ever fetched.
pub(crate) fn chains(stamps: Vec<Vec<Stamp>>) -> Vec<Vec<Certificate>> {
    let mut chains: Vec<Vec<Certificate>> = Vec::new();
    for stamp in stamps.into_iter().flatten() {
        let leaf = stamp.chain.first().map(Certificate::der);
        let is_new = chains.iter().all(|known| known.first().map(Certificate::der) != leaf);
        if is_new {
            chains.push(stamp.chain);
        }
    }
    chains
}

impl Outcome {
    /// What it proves.
    pub(crate) fn evidence(&self) -> Option<&Evidence> {
        self.result.as_ref().ok()
    }

    /// Lines about a record that holds. A bad one is a warning, or a refusal with exit code 3 if it was named.
    pub(crate) fn text(&self, was_named: bool, verifier: &Verifier) -> Result<String, Failure> {
        let path = &self.path;
        match &self.result {
            Ok(evidence) => Ok(format!(
                "evidence {}: it existed at {}, by {}{}\n{}",
                path.display(),
                rfc3339(evidence.at()),
                match evidence.stamps.len() {
                    1 => "1 timestamp".to_owned(),
                    count => format!("{count} timestamps in a row"),
                },
                evidence
                    .stamps
                    .last()
                    .map(|last| format!(", the last of which holds until {}", rfc3339(last.ends())))
                    .unwrap_or_default(),
                stamps_text(path, &evidence.stamps, verifier),
            )),
            Err(refusal) if was_named => Err(Failure::file(path, refusal).code(REFUSED)),
            Err(_) => {
                self.warn();
                Ok(String::new())
            }
        }
    }

    /// Warns of a record that proves nothing.
    pub(crate) fn warn(&self) {
        if let Err(refusal) = &self.result {
            output::warning(&format!("{}: it proves nothing: {refusal}", self.path.display()));
        }
    }

    /// For programs.
    pub(crate) fn json(&self, verifier: &Verifier) -> Value {
        let stamp = |stamp: &Stamp| stamp_json(stamp, verifier);
        match &self.result {
            Ok(evidence) => json!({
                "file": files::json_path(&self.path),
                "counts": true,
                "time": rfc3339(evidence.at()),
                "timestamps": evidence.stamps.iter().map(stamp).collect::<Vec<_>>(),
            }),
            Err(Refusal { fault, reason }) => json!({
                "file": files::json_path(&self.path), "counts": false, "fault": fault.name(), "reason": reason,
            }),
        }
    }
}

/// One line about each timestamp of a signature that counts.
pub(crate) fn tokens_text(
    path: &Path,
    tokens: &[trusted_time::Outcome],
    verifier: &Verifier,
) -> String {
    stamps_text(path, tokens.iter().filter_map(|token| token.result.as_ref().ok()), verifier)
}

fn stamps_text<'a>(
    path: &Path,
    stamps: impl IntoIterator<Item = &'a Stamp>,
    verifier: &Verifier,
) -> String {
    let mut text = String::new();
    for stamp in stamps {
        text.push_str(&format!(
            "timestamp {}: {} by \"{}\"; {}\n",
            path.display(),
            rfc3339(stamp.at),
            stamp.authority(),
            verifier.revocation_text(&stamp.statuses, Holder::Timestamp),
        ));
    }
    text
}

/// The timestamps of a signature.
pub(crate) fn tokens_json(tokens: &[trusted_time::Outcome], verifier: &Verifier) -> Value {
    let one = |token: &trusted_time::Outcome| match &token.result {
        Ok(stamp) => stamp_json(stamp, verifier),
        Err(Refusal { fault, reason }) => json!({
            "counts": false,
            "time": token.states.map(rfc3339),
            "authority": token.authority,
            "fault": fault.name(),
            "reason": reason,
        }),
    };
    tokens.iter().map(one).collect()
}

fn stamp_json(stamp: &Stamp, verifier: &Verifier) -> Value {
    json!({
        "counts": true,
        "time": rfc3339(stamp.at),
        "authority": stamp.authority(),
        "accuracy": accuracy(stamp.accuracy),
        "serial": hex::encode(&stamp.serial),
        "policy": stamp.policy.to_string(),
        "algorithm": format!("{:?}", stamp.algorithm),
        "ends": rfc3339(stamp.ends()),
        "revocation": verifier.revocation_json(&stamp.statuses, Holder::Timestamp),
    })
}
