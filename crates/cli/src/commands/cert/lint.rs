//! `outlast cert lint`: checks certificates against the profile rules that the service applies before it signs.

use std::path::PathBuf;

use outlast_pki::certificate::Certificate;
use outlast_pki::lint::{self, Finding, RULES, Severity};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::files;
use crate::objects;
use crate::output::Output;
use crate::tables::{plural, table};

/// Lowest severity of the findings to report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Least {
    /// Breaks a MUST.
    Error,
    /// Also breaks a SHOULD.
    Warning,
    /// All findings.
    Notice,
}

impl Least {
    fn severity(self) -> Severity {
        match self {
            Self::Error => Severity::Error,
            Self::Warning => Severity::Warning,
            Self::Notice => Severity::Notice,
        }
    }
}

/// Arguments of `cert lint`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Files with certificates, PEM or DER.
    #[arg(required_unless_present = "rules")]
    files: Vec<PathBuf>,
    /// Lowest severity of the findings to report.
    #[arg(long, value_enum, default_value_t = Least::Notice)]
    severity: Least,
    /// List the rules.
    #[arg(long, conflicts_with = "files")]
    rules: bool,
}

/// Prints the findings; fails if there are any.
pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    if arguments.rules {
        list_rules(output);
        return Ok(());
    }
    let least = arguments.severity.severity();
    let (mut text, mut list) = (String::new(), Vec::new());
    let (mut count, mut certificates) = (0_u64, 0_u64);
    for path in &arguments.files {
        for der in objects::certificates(path)? {
            let findings = lint::certificate(&der).map_err(|error| Failure::file(path, &error))?;
            let findings: Vec<_> =
                findings.into_iter().filter(|found| found.rule.severity >= least).collect();
            let subject = Certificate::parse(&der)
                .map_or_else(|_| "unreadable".to_owned(), |found| found.subject().to_string());
            certificates += 1;
            count += findings.len() as u64;
            let result = if findings.is_empty() { "no findings" } else { "findings:" };
            text.push_str(&format!("{}: \"{subject}\": {result}\n", path.display()));
            for found in &findings {
                let severity = found.rule.severity.name();
                text.push_str(&format!("  {severity}: {found}\n"));
            }
            let findings: Vec<_> = findings.iter().map(finding_json).collect();
            list.push(
                json!({ "file": files::json_path(path), "subject": subject, "findings": findings }),
            );
        }
    }
    output.result(&text, &list);
    match count {
        0 => Ok(()),
        count => Err(Failure::finding(format!(
            "{} in {}",
            plural(count, "finding", "findings"),
            plural(certificates, "certificate", "certificates")
        ))),
    }
}

fn finding_json(found: &Finding) -> Value {
    json!({
        "rule": found.rule.name,
        "severity": found.rule.severity.name(),
        "source": found.rule.source,
        "detail": found.detail,
    })
}

fn list_rules(output: Output) {
    let rows: Vec<_> = RULES
        .iter()
        .map(|rule| {
            vec![rule.name.to_owned(), rule.severity.name().to_owned(), rule.source.to_owned()]
        })
        .collect();
    let value: Vec<_> = RULES
        .iter()
        .map(|rule| {
            json!({ "rule": rule.name, "severity": rule.severity.name(), "source": rule.source })
        })
        .collect();
    output.result(&table(&["rule", "severity", "source"], rows), &value);
}
