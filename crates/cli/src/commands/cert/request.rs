//! `outlast cert request`: makes a certificate request that a KMS key signs. The key stays in the service.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::ValueHint;
use outlast_net::policy::Policy;
use outlast_pki::extensions::subject_alternative_names;
use outlast_pki::general_name::GeneralName;
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
    /// Subject alternative name: dns:NAME, email:ADDRESS, uri:URI or ip:ADDRESS; may be repeated. Private CA takes them over.
    #[arg(long, value_name = "KIND:NAME", value_parser = alternative_name, value_hint = ValueHint::Other)]
    san: Vec<GeneralName>,
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

/// A name with its kind, whose case does not matter: openssl writes DNS, email, URI and IP.
fn alternative_name(text: &str) -> Result<GeneralName, String> {
    let (kind, value) = text.split_once(':').unwrap_or_default();
    let name = match &*kind.to_ascii_lowercase() {
        "dns" => GeneralName::DnsName(value.to_owned()),
        "email" => GeneralName::Rfc822Name(value.to_owned()),
        "uri" => GeneralName::UniformResourceIdentifier(value.to_owned()),
        "ip" => match value.parse::<IpAddr>() {
            Ok(address) => GeneralName::IpAddress(address),
            Err(_) => return Err(format!("{value} is not an IPv4 or IPv6 address")),
        },
        _ => return Err("it begins with dns:, email:, uri: or ip:, as in dns:example.com".into()),
    };
    name.check().map_err(|error| error.to_string())?;
    Ok(name)
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
        let names = &arguments.san;
        // Not critical, because there is a subject (RFC 5280, section 4.2.1.6).
        let extensions = match names.is_empty() {
            true => Vec::new(),
            false => vec![subject_alternative_names(names, false)?],
        };
        signing::certificate_request(&mut endpoint, &arguments.key, subject, extensions).await
    })?;
    let text = pem::certificate_request(&der);
    let Some(path) = &arguments.out else {
        output::line(text.trim_end());
        return Ok(());
    };
    files::write(path, text.as_bytes(), 0o644)?;
    let said = format!("wrote a request for {} to {}", arguments.subject, path.display());
    let names: Vec<_> = arguments.san.iter().map(ToString::to_string).collect();
    let value = json!({
        "file": files::json_path(path),
        "subject": arguments.subject.to_string(),
        "alternative_names": names,
    });
    output.result(&said, &value);
    Ok(())
}
