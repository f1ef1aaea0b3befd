//! `outlast attest`: signed statements about files, such as how they were built, in DSSE envelopes.

mod provenance;

use std::path::{Path, PathBuf};

use clap::ValueHint;
use outlast_net::policy::Policy;
use outlast_net::server::system_clock;
use outlast_pki::dsse::MAX_PAYLOAD_LEN;
use outlast_pki::in_toto::{self, Artifact, MAX_SUBJECTS, SLSA_PROVENANCE};
use outlast_pki::pem;
use serde_json::{Value, json};

use self::provenance::Provenance;
use crate::attesting;
use crate::endpoint::Endpoint;
use crate::evidence::{Check, Evidence};
use crate::failure::{Failure, USAGE};
use crate::output::{self, Output};
use crate::profile::Connection;
use crate::signing::Signers;
use crate::signing::check::before_signing;
use crate::{files, shell};

/// Largest file with certificates, in bytes.
const MAX_CERTIFICATES: usize = 1 << 20;

/// Arguments of `attest`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// File that the statement is about; may be repeated.
    #[arg(long, required = true, value_name = "FILE")]
    subject: Vec<PathBuf>,
    /// Type of the predicate: slsa-provenance, spdx, cyclonedx or a URI.
    #[arg(long = "type", value_name = "TYPE", value_parser = in_toto::predicate_type, value_hint = ValueHint::Other)]
    predicate_type: String,
    /// File in JSON with the predicate, such as the bill of materials; of slsa-provenance the next options can make it.
    #[arg(long, value_name = "FILE")]
    predicate: Option<PathBuf>,
    #[command(flatten)]
    provenance: Provenance,
    /// KMS key: alias/NAME, key id or ARN. Given twice, both sign.
    #[arg(long, required = true)]
    key: Vec<String>,
    /// PEM file with the signer's certificate and the CAs above it; one for each --key [default: from the key's
    /// tag outlast:certificate-arn].
    #[arg(long)]
    certificate: Vec<PathBuf>,
    /// Attestation; - is standard output [default: the first subject, with .intoto.jsonl added].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace an attestation that exists already.
    #[arg(long)]
    force: bool,
    /// How to check that the certificate is not revoked.
    #[arg(long, value_enum, default_value_t = Check::IfAvailable)]
    revocation: Check,
    #[command(flatten)]
    connection: Connection,
}

/// Makes one attestation.
pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    if arguments.subject.len() > MAX_SUBJECTS {
        return Err(Failure::new(format!("there are more than {MAX_SUBJECTS} subjects"))
            .hint("make several attestations")
            .code(USAGE));
    }
    let predicate = predicate(arguments)?;
    let target = arguments.out.clone().unwrap_or_else(|| beside(arguments.subject.first()));
    let is_stdout = target == Path::new("-");
    if is_stdout && output == Output::Json {
        return Err(Failure::new("standard output cannot hold an attestation and a report")
            .hint("write the attestation to a file: --out FILE")
            .code(USAGE));
    }
    if !is_stdout && !arguments.force && files::exists(&target)? {
        return Err(files::exists_already(&target));
    }
    let read = |path: &PathBuf| {
        let bytes = files::read(path, MAX_CERTIFICATES)?;
        pem::read_certificates(&bytes).map_err(|error| Failure::file(path, &error))
    };
    let given = arguments.certificate.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let progress = output::byte_bar(0);
    let subjects = attesting::subjects(&arguments.subject, &progress);
    progress.finish_and_clear();
    let subjects = subjects?;
    let runtime = crate::runtime::small()?;
    let envelope = runtime.block_on(async {
        let mut endpoint = Endpoint::new(arguments.connection.settings()?, &Policy::default())?;
        let signers = Signers::resolve(&mut endpoint, &arguments.key, given, None).await?;
        let mut evidence = Evidence::default();
        let now = system_clock().div_euclid(1000);
        for identity in signers.identities() {
            before_signing(identity, arguments.revocation, &mut evidence, now).await?;
        }
        let predicate_type = &arguments.predicate_type;
        attesting::envelope(&signers, &mut endpoint, &subjects, predicate_type, &predicate).await
    })?;
    let line = format!("{}\n", envelope.to_json());
    if is_stdout {
        output::data(line.as_bytes());
        return Ok(());
    }
    match arguments.force {
        true => files::write(&target, line.as_bytes(), 0o644)?,
        false => files::write_absent(&target, line.as_bytes(), 0o644)?,
    }
    let first = arguments.subject.first().map(|path| shell::quoted(path)).unwrap_or_default();
    let text = format!(
        "attested {} ({}): {}\nverify: outlast verify --subject {first} --attestation {} --trust ROOT\n",
        names(&subjects),
        arguments.predicate_type,
        target.display(),
        shell::quoted(&target)
    );
    let list: Vec<_> = subjects.iter().map(|artifact| &artifact.name).collect();
    let value = json!({
        "attestation": files::json_path(&target),
        "predicate_type": arguments.predicate_type,
        "subjects": list,
        "signatures": envelope.signatures.len(),
    });
    output.result(&text, &value);
    Ok(())
}

fn names(subjects: &[Artifact]) -> String {
    match subjects {
        [only] => only.name.clone(),
        several => format!("{} files", several.len()),
    }
}

/// The subject's path, with `.intoto.jsonl` added.
fn beside(subject: Option<&PathBuf>) -> PathBuf {
    let mut name = subject.map(|path| path.as_os_str().to_owned()).unwrap_or_default();
    name.push(".intoto.jsonl");
    PathBuf::from(name)
}

fn predicate(arguments: &Arguments) -> Result<Value, Failure> {
    let made = arguments.provenance.predicate()?;
    let is_provenance = arguments.predicate_type == SLSA_PROVENANCE;
    match (&arguments.predicate, made) {
        (Some(_), Some(_)) => {
            Err(Failure::new("the predicate is in a file, and options say it, too")
                .hint("give --predicate, or --builder and the others, but not both")
                .code(USAGE))
        }
        (None, Some(_)) if !is_provenance => Err(Failure::new("only provenance has a builder")
            .hint("use --type slsa-provenance")
            .code(USAGE)),
        (None, Some(made)) => Ok(made),
        (Some(path), None) => {
            let bytes = files::read(path, MAX_PAYLOAD_LEN)?;
            let value: Value =
                serde_json::from_slice(&bytes).map_err(|error| Failure::file(path, &error))?;
            match value {
                Value::Object(_) => Ok(value),
                _ => Err(Failure::file(path, &"a predicate is a JSON object")),
            }
        }
        (None, None) => Err(Failure::new("the predicate is missing")
            .hint(if is_provenance {
                "give --builder URI and --build-type URI, or --predicate FILE"
            } else {
                "give it with --predicate FILE"
            })
            .code(USAGE)),
    }
}
