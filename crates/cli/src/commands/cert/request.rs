//! `outlast cert request`: makes a certificate request that a KMS key signs. The key stays in the service.

use std::path::PathBuf;

use outlast_net::policy::Policy;
use outlast_pki::name::{self, Name};
use outlast_pki::pem;
use serde_json::json;

use super::may_write;
use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::profile::Connection;
use crate::{files, signing};

/// Arguments of `cert request`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// KMS key that can sign: alias/NAME, key id or ARN.
    #[arg(long)]
    key: String,
    /// Subject in the notation of RFC 4514, such as "CN=Release,O=Example".
    #[arg(long, value_parser = subject)]
    subject: Name,
    /// Write the request to this file [default: stdout].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace an existing --out file.
    #[arg(long, requires = "out")]
    force: bool,
    #[command(flatten)]
    connection: Connection,
}

fn subject(text: &str) -> Result<Name, String> {
    name::parse(text).map_err(|error| error.to_string())
}

/// Asks the service and writes PEM.
pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    if let Some(out) = &arguments.out {
        may_write(out, arguments.force)?;
    }
    let runtime = crate::runtime::runtime()?;
    let der = runtime.block_on(async {
        let mut endpoint = Endpoint::new(arguments.connection.settings()?, &Policy::default())?;
        let subject = arguments.subject.clone();
        signing::certificate_request(&mut endpoint, &arguments.key, subject).await
    })?;
    let text = pem::certificate_request(&der);
    let Some(path) = &arguments.out else {
        output::line(text.trim_end());
        return Ok(());
    };
    files::write(path, text.as_bytes(), 0o644)?;
    let said = format!("wrote a request for {} to {}", arguments.subject, path.display());
    output.result(&said, &json!({ "file": path, "subject": arguments.subject.to_string() }));
    Ok(())
}
