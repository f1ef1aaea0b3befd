//! Signing policies of `outlast verify`: read from files, with the roots that they name.

use std::collections::BTreeMap;
use std::path::Path;

use outlast_negotiate::names::nearest;
use outlast_pki::signing_policy::builtin;
use outlast_pki::signing_policy::file::{self, FileError, MAX_LEN};
use outlast_pki::signing_policy::log::Log;
use outlast_pki::signing_policy::names::FileName;
use outlast_pki::signing_policy::rule::{Policy, Rule};
use outlast_pki::trusted_time::Authority;
use outlast_tlog::policy::Policy as LogPolicy;

use crate::failure::{Failure, REFUSED, USAGE};
use crate::{artifact_log, files, shell, trust};

/// A policy with its roots, and how users name it.
pub(crate) struct Loaded {
    pub(crate) policy: Policy,
    /// The logs and witnesses that rules ask for in files, by the name of the file.
    logs: BTreeMap<String, LogPolicy>,
    argument: String,
}

/// Reads the policy that `--policy` names: a file, beside which are the roots that it names, or a built-in one.
pub(crate) fn load(argument: &str) -> Result<Loaded, Failure> {
    if let Some(name) = argument.strip_prefix(builtin::PREFIX) {
        let policy = builtin::find(name).ok_or_else(|| {
            let names: Vec<_> = builtin::names().collect();
            let meant = nearest(name, names.iter().copied());
            let meant = meant.map(|name| format!("did you mean {}{name}? ", builtin::PREFIX));
            Failure::new(format!("there is no built-in policy {name}"))
                .hint(format!("{}there are: {}", meant.unwrap_or_default(), names.join(", ")))
                .code(USAGE)
        })?;
        return Ok(Loaded { policy, logs: BTreeMap::new(), argument: argument.to_owned() });
    }
    let path = Path::new(argument);
    let bytes = files::read(path, MAX_LEN)?;
    let text = String::from_utf8(bytes).map_err(|_| Failure::file(path, &"it is not UTF-8"))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut policy = file::parse(&name, &text).map_err(|error| explain(path, &error))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut logs = BTreeMap::new();
    for rule in &mut policy.rules {
        for root in &rule.trust {
            let found = trust::authorities(&folder.join(root)).map_err(|failure| {
                failure.prefixed(&format!("{argument}: rule \"{}\"", rule.name))
            })?;
            rule.roots.extend(found);
        }
        for root in &rule.timestamps.trust {
            let found = trust::authorities(&folder.join(root))
                .map_err(|failure| failure.prefixed(&format!("{argument}: [timestamp]")))?;
            rule.timestamps.authorities.push(Authority::Roots(found));
        }
        if let Some(Log::File(name)) = &rule.log {
            let log = artifact_log::read_policy(&folder.join(name)).map_err(|failure| {
                failure.prefixed(&format!("{argument}: rule \"{}\"", rule.name))
            })?;
            logs.insert(name.clone(), log);
        }
    }
    Ok(Loaded { policy, logs, argument: argument.to_owned() })
}

fn explain(path: &Path, error: &FileError) -> Failure {
    let failure = Failure::file(path, error);
    match (&error.unknown, &error.hint) {
        (Some(word), _) => {
            let meant = nearest(word, error.possible.iter().copied());
            let meant = meant.map(|name| format!("did you mean {name}? ")).unwrap_or_default();
            failure.hint(format!("{meant}there are: {}", error.possible.join(", ")))
        }
        (None, Some(hint)) => failure.hint(hint),
        (None, None) => failure,
    }
}

impl Loaded {
    /// Refuses a policy with a rule that trusts the roots of `--trust`, if there are none.
    pub(crate) fn check_roots(&self, are_given: bool) -> Result<(), Failure> {
        match self.policy.rules.iter().find(|rule| rule.needs_roots()) {
            Some(rule) if !are_given => Err(Failure::new(format!(
                "{}: rule \"{}\" names no root, no certificate and no key",
                self.argument, rule.name
            ))
            .hint("give the roots with --trust, or name them in the rule: trust = \"root.pem\"")),
            _ => Ok(()),
        }
    }

    /// The rule for a file. A refusal has exit code 3.
    pub(crate) fn rule_for(&self, file: &Path, name: &Path) -> Result<&Rule, Failure> {
        let name = file_name(file, name)?;
        self.policy.rule_for(&name).ok_or_else(|| {
            let reason = format!("no rule of {} is for this file", self.policy.name);
            Failure::file(file, &reason).code(REFUSED).hint(self.advice())
        })
    }

    /// The rule for an attestation of this type about a file. A refusal has exit code 3.
    pub(crate) fn rule_about(
        &self,
        file: &Path,
        name: &Path,
        predicate_type: &str,
    ) -> Result<&Rule, Failure> {
        let name = file_name(file, name)?;
        self.policy.attestation_rule_for(&name, predicate_type).ok_or_else(|| {
            let reason = format!(
                "no rule of {} is for attestations of type {} about this file",
                self.policy.name,
                predicate_type.chars().take(200).collect::<String>()
            );
            Failure::file(file, &reason).code(REFUSED).hint(self.advice())
        })
    }

    /// The log and the witnesses that a rule asks for.
    pub(crate) fn log_of<'a>(&'a self, rule: &'a Rule) -> Option<&'a LogPolicy> {
        match rule.log.as_ref()? {
            Log::File(name) => self.logs.get(name),
            Log::Inline { policy, .. } => Some(policy),
        }
    }

    /// What to do about a refusal.
    pub(crate) fn advice(&self) -> String {
        let argument = shell::quoted(Path::new(&self.argument));
        format!("outlast verify --explain --policy {argument} says who may sign what")
    }
}

/// The name of a file as rules compare it.
fn file_name(file: &Path, name: &Path) -> Result<FileName, Failure> {
    let refused = |reason: &str| Failure::file(file, &reason).code(REFUSED);
    let text = name.to_str().ok_or_else(|| {
        refused("its name is not UTF-8, so that no rule can be for it").hint("rename the file")
    })?;
    FileName::parse(text).map_err(|reason| {
        refused(&reason).hint("change to the folder of the file, and name it from there")
    })
}
