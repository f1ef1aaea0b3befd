//! `outlast sign timestamp`: adds timestamps to signatures that exist, by any software.

use std::path::{Path, PathBuf};

use outlast_pki::cms::MAX_MESSAGE_LEN;
use outlast_pki::cms::verify::SignedMessage;
use serde_json::{Value, json};

use crate::failure::{Failure, PARTIAL};
use crate::files;
use crate::output::Output;
use crate::renewing::record_path;
use crate::signing::jobs;
use crate::timestamping::{Client, Options, Taken};

/// Arguments of `sign timestamp`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Signatures (FILE.p7s) in DER, BER or PEM; they are written in DER.
    #[arg(required = true)]
    signatures: Vec<PathBuf>,
    /// Time-stamping authority (RFC 3161), http:// or https://; given several times, each is asked.
    #[arg(long = "url", alias = "timestamp", value_name = "URL", required = true)]
    urls: Vec<String>,
    #[command(flatten)]
    options: Options,
    /// Also if an evidence record covers the signature as it is: the record is then for nothing.
    #[arg(long)]
    force: bool,
    /// Say what would be asked, and ask nothing.
    #[arg(long)]
    dry_run: bool,
}

/// Adds tokens to all signatures; one that fails does not stop the others.
pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let client = Client::new(&arguments.urls, &arguments.options, None)?;
    let runtime = crate::runtime::small()?;
    let (mut text, mut list, mut failures) = (String::new(), Vec::new(), Vec::new());
    for path in &arguments.signatures {
        match one(arguments, path, &client, &runtime) {
            Ok((line, entry)) => {
                text.push_str(&line);
                list.push(entry);
            }
            Err(failure) => {
                let reason = failure.message();
                let path = files::json_path(path);
                list.push(json!({ "signature": path, "outcome": "failed", "reason": reason }));
                failures.push(failure);
            }
        }
    }
    if !text.is_empty() || output == Output::Json {
        output.result(&text, &list);
    }
    if arguments.signatures.len() == 1 {
        return failures.pop().map_or(Ok(()), Err);
    }
    for failure in &failures {
        failure.report();
    }
    match failures.len() {
        0 => Ok(()),
        count => Err(Failure::new(format!(
            "{count} of {} signatures were not timestamped",
            arguments.signatures.len()
        ))
        .code(if count == arguments.signatures.len() { 1 } else { PARTIAL })),
    }
}

fn one(
    arguments: &Arguments,
    path: &Path,
    client: &Client,
    runtime: &tokio::runtime::Runtime,
) -> Result<(String, Value), Failure> {
    jobs::check_name(path)?;
    let name = files::json_path(path);
    let message = files::read(path, MAX_MESSAGE_LEN)?;
    let parsed = SignedMessage::parse(&message).map_err(|error| Failure::file(path, &error))?;
    let record = record_path(path);
    if !arguments.force && files::exists(&record)? {
        return Err(Failure::file(
            path,
            &format!("{} covers the signature as it is, and would be for nothing", record.display()),
        )
        .hint("outlast sign renew adds a timestamp to the record instead; --force changes the signature"));
    }
    if arguments.dry_run {
        let signers = parsed.claims().len();
        let text: String = client
            .urls()
            .iter()
            .map(|url| format!("would ask {url} for {signers} timestamps of {}\n", path.display()))
            .collect();
        let entry = json!({ "signature": name, "outcome": "would-timestamp", "signers": signers });
        return Ok((text, entry));
    }
    let (stamped, taken) = runtime
        .block_on(client.stamp(&message))
        .map_err(|failure| failure.prefixed(&path.display().to_string()))?;
    files::write(path, &stamped, 0o644)?;
    let lines = taken.iter().map(|one| format!("{}: {}\n", path.display(), one.text()));
    let tokens: Vec<_> = taken.iter().map(Taken::json).collect();
    let entry = json!({ "signature": name, "outcome": "timestamped", "timestamps": tokens });
    Ok((lines.collect(), entry))
}
