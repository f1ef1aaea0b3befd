//! `outlast sign setup`: makes a signing key with its certificate, or renews the certificate.

use clap::builder::PossibleValuesParser;
use serde_json::json;

use crate::failure::Failure;
use crate::files;
use crate::output::Output;
use crate::shell;
use crate::signing::setup::{ALGORITHMS, Algorithm, CODE_SIGNING, Options};

/// Arguments of `sign setup`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// What signs; dual is ML-DSA-65 together with ECDSA P-384.
    #[arg(long, default_value = "ml-dsa-65",
          value_parser = PossibleValuesParser::new(ALGORITHMS.iter().map(|row| row.name)))]
    algorithm: String,
    #[command(flatten)]
    options: Options,
}

/// Makes everything and prints the commands to use.
pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let algorithm = Algorithm::by_name(&arguments.algorithm)?;
    let (done, out) = arguments.options.run(algorithm, &CODE_SIGNING)?;
    let alias = format!("alias/{}", arguments.options.name);
    let copy = if algorithm.name == "dual" { " --classical-copy" } else { "" };
    let sign = format!("outlast sign FILE --key {alias}{copy}");
    let verify = format!("outlast verify FILE --trust {}", shell::quoted(&out));
    let mut text: String = done.steps.iter().map(|step| format!("{step}\n")).collect();
    text.push_str(&format!("sign:   {sign}\nverify: {verify}\n"));
    let value = json!({
        "key": alias,
        "algorithm": algorithm.name,
        "certificates": done.certificates,
        "trust": files::json_path(&out),
        "steps": done.steps,
        "sign": sign,
        "verify": verify,
    });
    output.result(&text, &value);
    Ok(())
}
