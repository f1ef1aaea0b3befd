//! What `outlast policy` says of the SSH part of a policy.

use std::fmt::Write as _;

use outlast_negotiate::Mode;
use outlast_negotiate::ssh::audit::policy_file;
use outlast_negotiate::ssh::{SshExplanation, SshRules, served};
use serde_json::json;

use crate::failure::{Failure, USAGE};
use crate::output::Output;
use crate::values;

/// Arguments of `policy ssh-audit`.
#[derive(clap::Args)]
pub(super) struct Audit {
    /// Name of the policy.
    name: String,
    /// How to apply its post-quantum key exchange: require, prefer, allow or off [default: the policy's own].
    #[arg(long, value_parser = values::modes(), hide_possible_values = true)]
    mode: Option<String>,
}

/// Writes the policy file.
pub(super) fn audit(arguments: &Audit, output: Output) -> Result<(), Failure> {
    let policy = super::named(&arguments.name)?;
    let mode: Option<Mode> = arguments
        .mode
        .as_deref()
        .map(str::parse)
        .transpose()
        .map_err(|error: String| Failure::new(error))?;
    let rules = SshRules::new(policy, mode, served).map_err(|error| {
        Failure::new(error.to_string())
            .hint(format!("to see what it contains, run: outlast policy show {}", policy.name))
            .code(USAGE)
    })?;
    let file = policy_file(&rules);
    let value = json!({
        "policy": policy.name,
        "mode": rules.mode.name(),
        "lists": rules.lists(),
        "file": file,
    });
    output.result(&file, &value);
    Ok(())
}

/// Appends the explanation of the SSH part.
pub(super) fn explanation_text(found: &SshExplanation, text: &mut String) {
    let _ = writeln!(text, "\nSSH");
    for sentence in &found.meaning {
        let _ = writeln!(text, "  {sentence}");
    }
    if !found.not_served.is_empty() {
        let _ = writeln!(text, "  Not served here: {}.", found.not_served.join(", "));
    }
    if !found.key_exchanges.is_empty() {
        let _ = writeln!(text, "\nkey exchange methods of SSH, in order of preference");
        for reason in &found.key_exchanges {
            let _ = writeln!(text, "  {}: {}", reason.key_exchange, reason.why);
        }
    }
    let titles = [
        ("SSH clients that are served, if the server has a suitable host key", true),
        ("SSH clients that are refused", false),
    ];
    for (title, served) in titles {
        let clients: Vec<_> = found.clients.iter().filter(|fare| fare.served == served).collect();
        if !clients.is_empty() {
            let _ = writeln!(text, "\n{title}");
            for fare in clients {
                let _ = writeln!(text, "  {}: {}", fare.client, fare.outcome);
            }
        }
    }
}
