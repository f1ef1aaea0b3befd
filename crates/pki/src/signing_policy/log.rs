//! The log that a rule asks for, and the witnesses of the log: a policy of logs (C2SP tlog-policy) in a file of its own, or
//! the keys in the rule itself.

use outlast_tlog::policy::{KeysError, Part, Policy, Problem};
use toml::Value;

use super::reader::{FileError, Reader};

const LOG: &str = "log";
const LOG_KEYS: &str = "keys";
const WITNESS_KEYS: &str = "witness_keys";
const WITNESSES: &str = "witnesses";

/// Keys of the table.
const KEYS: &[&str] = &[LOG_KEYS, WITNESS_KEYS, WITNESSES];

/// A log that must have a signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Log {
    /// The file with the policy of logs, as the signing policy names it. The caller reads it.
    File(String),
    /// The rule says it.
    Inline {
        /// The logs and the witnesses.
        policy: Policy,
        /// How many of the witnesses must have cosigned.
        witnesses: usize,
    },
}

/// `log` of a rule: the name of a file, or a table.
pub(super) fn read(rule: &Reader<'_>) -> Result<Option<Log>, FileError> {
    let table = match rule.table.get(LOG) {
        None => return Ok(None),
        Some(Value::String(name)) if !name.is_empty() => return Ok(Some(Log::File(name.clone()))),
        Some(Value::Table(table)) => table,
        Some(_) => {
            return Err(rule
                .wrong(LOG, "it is the name of a file, or a table with the keys of the log")
                .hint(
                    "log = \"log.policy\", or log = { keys = \"...\", witness_keys = [\"...\"], witnesses = 1 }",
                ));
        }
    };
    let reader = rule.below(LOG, table);
    reader.known(KEYS)?;
    let logs = reader.texts(LOG_KEYS)?;
    if logs.is_empty() {
        return Err(reader
            .wrong(LOG_KEYS, "it is missing")
            .hint("name the key of the log: outlast log policy prints it after the word log"));
    }
    let keys = reader.texts(WITNESS_KEYS)?;
    let count = keys.len();
    if count == 0 && table.contains_key(WITNESSES) {
        return Err(reader
            .wrong(WITNESSES, "no witness is named")
            .hint("name their keys with witness_keys, or leave witnesses out"));
    }
    let witnesses = match reader.number(WITNESSES, count)? {
        None if count > 0 => {
            return Err(reader.wrong(WITNESSES, "it is missing").hint(format!(
                "say how many of the {count} must have cosigned: witnesses = {count}"
            )));
        }
        number => number.unwrap_or(0),
    };
    let policy = Policy::of_keys(&logs, &keys, witnesses);
    let policy = policy.map_err(|error| explain(&reader, &error))?;
    Ok(Some(Log::Inline { policy, witnesses }))
}

/// What is wrong with a key, and what to do about it.
fn explain(reader: &Reader<'_>, error: &KeysError) -> FileError {
    let reason = match error.problem {
        Problem::DuplicateKey => "the same public key is named before".to_owned(),
        Problem::Name => "a key with the same name is named before".to_owned(),
        _ => error.problem.to_string(),
    };
    let wrong = match error.part {
        Part::Log(index) => reader.wrong_element(LOG_KEYS, index, &reason),
        Part::Witness(index) => reader.wrong_element(WITNESS_KEYS, index, &reason),
        Part::Quorum => reader.wrong(WITNESSES, &reason),
    };
    wrong.hint(match error.problem {
        Problem::DuplicateKey | Problem::Name => {
            "a witness counts once, whatever its keys are called, and a log is no witness of itself"
        }
        Problem::Kind(..) => {
            "keys of logs are of kind 0x01 or 0x06, those of witnesses of kind 0x04 or 0x06"
        }
        _ => {
            "a key is NAME+ID+BASE64: outlast log policy prints those of the log and its witnesses"
        }
    })
}
