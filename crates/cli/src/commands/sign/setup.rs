//! `outlast sign setup`: makes a signing key with its certificate, or renews the certificate.

use std::path::PathBuf;

use clap::ValueHint;
use clap::builder::PossibleValuesParser;
use outlast_net::policy::Policy;
use outlast_pki::name::{self, Name};
use serde_json::json;

use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::output::Output;
use crate::profile::Connection;
use crate::signing::setup::{ALGORITHMS, Algorithm, Setup};
use crate::{files, shell};

/// Most days for which a certificate is valid: ten years.
const MAX_DAYS: i64 = 3650;

/// Arguments of `sign setup`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Name of the key: its alias is alias/NAME.
    #[arg(long)]
    name: String,
    /// What signs; dual is ML-DSA-65 together with ECDSA P-384.
    #[arg(long, default_value = "ml-dsa-65",
          value_parser = PossibleValuesParser::new(ALGORITHMS.iter().map(|row| row.name)))]
    algorithm: String,
    /// ARN of the CA that issues the certificate; for dual, of both [default: the only active CA that suits].
    #[arg(long, value_name = "ARN", value_hint = ValueHint::Other)]
    ca: Vec<String>,
    /// Make a root and a CA below it if no CA suits.
    #[arg(long, conflicts_with = "ca")]
    create_ca: bool,
    /// Subject of the certificate in the notation of RFC 4514 [default: CN=NAME].
    #[arg(long, value_parser = subject)]
    subject: Option<Name>,
    /// Days for which the certificate is valid.
    #[arg(long, default_value_t = 365, value_parser = clap::value_parser!(i64).range(1..=MAX_DAYS))]
    days: i64,
    /// Write the root's certificate, for verify --trust, to this file [default: NAME-root.pem].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace an --out file with another root.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    connection: Connection,
}

fn subject(text: &str) -> Result<Name, String> {
    name::parse(text).map_err(|error| error.to_string())
}

/// Makes everything and prints the commands to use.
pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let subject = match &arguments.subject {
        Some(subject) => subject.clone(),
        None => name::common_name(&arguments.name)?,
    };
    let mut rows = ALGORITHMS.iter();
    let algorithm: &'static Algorithm = rows
        .find(|row| row.name == arguments.algorithm)
        .ok_or_else(|| Failure::new(format!("{} is not an algorithm", arguments.algorithm)))?;
    let setup = Setup {
        name: &arguments.name,
        algorithm,
        subject,
        authorities: &arguments.ca,
        create_authority: arguments.create_ca,
        days: arguments.days,
    };
    let runtime = crate::runtime::runtime()?;
    let done = runtime.block_on(async {
        let mut endpoint = Endpoint::new(arguments.connection.settings()?, &Policy::default())?;
        setup.run(&mut endpoint).await
    })?;
    let default = || PathBuf::from(format!("{}-root.pem", arguments.name.replace('/', "-")));
    let out = arguments.out.clone().unwrap_or_else(default);
    let same = files::exists(&out)? && files::read(&out, 1 << 20)? == done.roots.as_bytes();
    if !same {
        let write = if arguments.force { files::write } else { files::write_absent };
        write(&out, done.roots.as_bytes(), 0o644)?;
    }
    let alias = format!("alias/{}", arguments.name);
    let copy = if algorithm.name == "dual" { " --classical-copy" } else { "" };
    let sign = format!("outlast sign FILE --key {alias}{copy}");
    let verify = format!("outlast verify FILE --trust {}", shell::quoted(&out));
    let mut text: String = done.steps.iter().map(|step| format!("{step}\n")).collect();
    text.push_str(&format!("sign:   {sign}\nverify: {verify}\n"));
    let value = json!({
        "key": alias,
        "algorithm": algorithm.name,
        "certificates": done.certificates,
        "trust": out,
        "steps": done.steps,
        "sign": sign,
        "verify": verify,
    });
    output.result(&text, &value);
    Ok(())
}
