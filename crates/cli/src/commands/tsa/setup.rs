//! `outlast tsa setup`: makes the key of a time-stamping authority with its certificate, or renews the certificate.

use clap::builder::PossibleValuesParser;
use serde_json::json;

use crate::failure::Failure;
use crate::files;
use crate::output::Output;
use crate::signing::setup::{ALGORITHMS, Algorithm, Options, TIME_STAMPING};

/// Arguments of `tsa setup`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// What signs. `openssl ts` verifies the classical ones only.
    #[arg(long, default_value = "ml-dsa-65", value_parser = PossibleValuesParser::new(names()))]
    algorithm: String,
    #[command(flatten)]
    options: Options,
}

/// A token has one signer.
fn names() -> Vec<&'static str> {
    ALGORITHMS.iter().filter(|row| row.is_single()).map(|row| row.name).collect()
}

/// Makes everything and prints what to write into the settings.
pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let algorithm = Algorithm::by_name(&arguments.algorithm)?;
    let (done, out) = arguments.options.run(algorithm, &TIME_STAMPING)?;
    let name = arguments.options.name.replace('/', "-");
    let key = done.keys.first().cloned().unwrap_or_default();
    // The alias, so that another key can take its place.
    let key = match key.rsplit_once(":key/") {
        Some((start, _)) => format!("{start}:alias/{}", arguments.options.name),
        None => key,
    };
    let settings = format!("[tsa]\nauthorities = {{ {name} = {{ key = \"{key}\" }} }}");
    let mut text: String = done.steps.iter().map(|step| format!("{step}\n")).collect();
    text.push_str(&format!(
        "write this into outlast.toml, and start the server again:\n\n{settings}\n\n\
         root for --trust: {}\n",
        out.display()
    ));
    let value = json!({
        "key": key,
        "algorithm": algorithm.name,
        "certificates": done.certificates,
        "trust": files::json_path(&out),
        "steps": done.steps,
        "settings": settings,
    });
    output.result(&text, &value);
    Ok(())
}
