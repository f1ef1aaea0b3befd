//! What `outlast verify` knows of timestamps and evidence records.

use std::path::{Path, PathBuf};

use indicatif::ProgressBar;
use outlast_pki::evidence_record::{self, EvidenceRecord};
use outlast_pki::time::rfc3339;
use outlast_pki::trusted_time::{self, Evidence, Stamp, Trust};
use serde_json::{Value, json};

use super::{Signed, Subject};
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

/// What a record proves, or why nothing.
pub(crate) struct Outcome {
    path: PathBuf,
    result: Result<Evidence, String>,
}

/// Verifies the record of a signature, if there is one.
pub(crate) fn judge(
    subject: &Subject<'_>,
    trust: &Trust<'_>,
    progress: &ProgressBar,
) -> Result<Option<Outcome>, Failure> {
    let (Some(Record { path, record }), Signed::File(file)) = (subject.record, subject.signed)
    else {
        return Ok(None);
    };
    let result = match record {
        Ok(record) => {
            let objects = renewing::objects(record, file, subject.signature, progress)?;
            trust.evidence(record, &objects)
        }
        Err(reason) => Err(reason.clone()),
    };
    Ok(Some(Outcome { path: path.clone(), result }))
}

impl Outcome {
    /// What it proves.
    pub(crate) fn evidence(&self) -> Option<&Evidence> {
        self.result.as_ref().ok()
    }

    /// One line about a record that holds. A bad one is a warning, or a refusal with exit code 3 if it was named.
    pub(crate) fn text(&self, was_named: bool) -> Result<String, Failure> {
        let path = &self.path;
        match &self.result {
            Ok(evidence) => Ok(format!(
                "evidence {}: it existed at {}, by {}{}\n",
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
                    .unwrap_or_default()
            )),
            Err(reason) if was_named => Err(Failure::file(path, reason).code(REFUSED)),
            Err(reason) => {
                output::warning(&format!("{}: it proves nothing: {reason}", path.display()));
                Ok(String::new())
            }
        }
    }

    /// For programs.
    pub(crate) fn json(&self) -> Value {
        match &self.result {
            Ok(evidence) => json!({
                "file": files::json_path(&self.path),
                "counts": true,
                "time": rfc3339(evidence.at()),
                "timestamps": evidence.stamps.iter().map(stamp_json).collect::<Vec<_>>(),
            }),
            Err(reason) => {
                json!({ "file": files::json_path(&self.path), "counts": false, "reason": reason })
            }
        }
    }
}

/// The timestamps of a signature.
pub(crate) fn tokens_json(tokens: &[trusted_time::Outcome]) -> Value {
    let one = |token: &trusted_time::Outcome| match &token.result {
        Ok(stamp) => stamp_json(stamp),
        Err(reason) => json!({
            "counts": false,
            "time": token.states.map(rfc3339),
            "authority": token.authority,
            "reason": reason,
        }),
    };
    tokens.iter().map(one).collect()
}

fn stamp_json(stamp: &Stamp) -> Value {
    json!({
        "counts": true,
        "time": rfc3339(stamp.at),
        "authority": stamp.authority(),
        "accuracy": accuracy(stamp.accuracy),
        "serial": hex::encode(&stamp.serial),
        "policy": stamp.policy.to_string(),
        "algorithm": format!("{:?}", stamp.algorithm),
        "ends": rfc3339(stamp.ends()),
    })
}
