//! `outlast sign`: signs files with a KMS key.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::ValueHint;
use indicatif::ProgressBar;
use outlast_crypto::digests::{DIGESTS, Digest};
use outlast_net::policy::Policy;
use outlast_net::server::system_clock;
use outlast_pki::pem;
use serde_json::json;

use crate::endpoint::Endpoint;
use crate::failure::{Failure, PARTIAL};
use crate::files;
use crate::output::{self, Output};
use crate::profile::Connection;
use crate::signing::{SigningIdentity, file_digest, signature_path};

/// Files that are signed at the same time; each takes a few MiB and one connection.
const MAX_PARALLEL: usize = 4;

/// Largest file with certificates, in bytes.
const MAX_CERTIFICATES: usize = 1 << 20;

/// Shown at the end of the help, and in the manual page.
const EXIT_STATUS: &str = "\
Exit status: 0 all files are signed; 1 failed, nothing is signed; 2 wrong usage; 4 some of several files
failed, the others are signed; 130 interrupted.";

/// Arguments of `sign`.
#[derive(clap::Args)]
#[command(after_help = EXIT_STATUS)]
pub(crate) struct Arguments {
    /// Files to sign, of any size.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// KMS key: alias/NAME, key id or ARN.
    #[arg(long)]
    key: String,
    /// PEM file with the signer's certificate and the CAs above it [default: from the key's tag
    /// outlast:certificate-arn].
    #[arg(long)]
    certificate: Option<PathBuf>,
    /// Digest of the file: sha512, shake256 or another that suits the key [default: sha512].
    #[arg(long, value_parser = digest, value_hint = ValueHint::Other)]
    digest: Option<&'static Digest>,
    /// Folder for the signatures, made if it is missing [default: next to the files].
    #[arg(long)]
    output_dir: Option<PathBuf>,
    #[command(flatten)]
    connection: Connection,
}

fn digest(name: &str) -> Result<&'static Digest, String> {
    Digest::by_name(name).ok_or_else(|| {
        let names: Vec<_> = DIGESTS.iter().map(|row| row.name).collect();
        format!("not a digest: use one that suits the key, of {}", names.join(", "))
    })
}

/// Signs all files; a file that cannot be signed does not stop the others.
pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let digest = arguments.digest;
    let certificate = match &arguments.certificate {
        Some(path) => Some(certificates(path)?),
        None => None,
    };
    let runtime = crate::runtime::runtime()?;
    let progress = output::byte_bar(0);
    let outcomes = runtime.block_on(async {
        let mut endpoint = Endpoint::new(arguments.connection.settings()?, &Policy::default())?;
        // The first file is read while the service is asked about the key: its digest is SHA-512 for all but a few
        // keys.
        let likely = digest.or_else(|| Digest::by_name("sha512"));
        let early = arguments.files.first().cloned().zip(likely).map(|(path, row)| {
            let progress = progress.clone();
            let task = tokio::task::spawn_blocking(move || file_digest(&path, row, &progress));
            EarlyDigest { row, task }
        });
        let identity =
            SigningIdentity::resolve(&mut endpoint, &arguments.key, certificate, digest).await?;
        for warning in identity.warnings(system_clock().div_euclid(1000)) {
            output::warning(&warning);
        }
        if let Some(folder) = &arguments.output_dir {
            std::fs::create_dir_all(folder).map_err(|error| files::io_failure(folder, &error))?;
        }
        sign_all(arguments, Arc::new(identity), endpoint, early, &progress).await
    });
    progress.finish_and_clear();
    // A digest that is no longer needed must not keep the program waiting.
    runtime.shutdown_background();
    let outcomes = outcomes?;
    report(&arguments.files, outcomes, output)
}

fn certificates(path: &Path) -> Result<Vec<Vec<u8>>, Failure> {
    let bytes = files::read(path, MAX_CERTIFICATES)?;
    pem::read_certificates(&bytes).map_err(|error| {
        Failure::file(path, &error)
            .hint("--certificate takes the signer's certificate, first, and the CAs above it")
    })
}

type Outcome = Result<PathBuf, Failure>;

/// The first file's digest, started before it is certain that its algorithm is the right one.
struct EarlyDigest {
    row: &'static Digest,
    task: tokio::task::JoinHandle<Result<Vec<u8>, Failure>>,
}

async fn sign_all(
    arguments: &Arguments,
    identity: Arc<SigningIdentity>,
    first: Endpoint,
    early: Option<EarlyDigest>,
    progress: &ProgressBar,
) -> Result<Vec<Outcome>, Failure> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = MAX_PARALLEL.min(cores).min(arguments.files.len()).max(1);
    let jobs: Arc<Vec<(PathBuf, PathBuf)>> = Arc::new(
        arguments
            .files
            .iter()
            .map(|file| (file.clone(), target(file, arguments.output_dir.as_deref())))
            .collect(),
    );
    let mut targets: Vec<_> = jobs.iter().map(|(_, target)| target).collect();
    targets.sort();
    if let Some(pair) = targets.windows(2).find(|pair| pair[0] == pair[1]) {
        let of: Vec<_> = jobs.iter().filter(|(_, target)| target == pair[0]).collect();
        if of.iter().all(|(file, _)| *file == of[0].0) {
            return Err(Failure::file(&of[0].0, &"the file is given more than once")
                .hint("name each file once"));
        }
        return Err(Failure::file(pair[0], &"two files would get this signature")
            .hint("sign them in separate commands with different --output-dir"));
    }
    let next = Arc::new(AtomicUsize::new(0));
    let early = early.filter(|early| early.row.oid == identity.digest().oid);
    let early = Arc::new(tokio::sync::Mutex::new(early));
    let mut endpoints = vec![first];
    while endpoints.len() < workers {
        endpoints.push(Endpoint::new(arguments.connection.settings()?, &Policy::default())?);
    }
    let mut tasks = Vec::new();
    for mut endpoint in endpoints {
        let (jobs, next, identity) = (jobs.clone(), next.clone(), identity.clone());
        let (early, progress) = (early.clone(), progress.clone());
        tasks.push(tokio::spawn(async move {
            let mut done = Vec::new();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some((file, target)) = jobs.get(index) else { break };
                progress.set_message(file.display().to_string());
                let outcome = async {
                    let ready = if index == 0 { early.lock().await.take() } else { None };
                    let signature = match ready {
                        Some(EarlyDigest { task, .. }) => {
                            let digest =
                                task.await.map_err(|error| Failure::new(error.to_string()))??;
                            identity.sign_digest(&mut endpoint, &digest).await?
                        }
                        None => identity.sign_file(&mut endpoint, file, &progress).await?,
                    };
                    files::write(target, &signature, 0o644)?;
                    Ok(target.clone())
                };
                done.push((index, outcome.await));
            }
            done
        }));
    }
    let mut outcomes: Vec<(usize, Outcome)> = Vec::new();
    for task in tasks {
        outcomes.extend(task.await.map_err(|error| Failure::new(error.to_string()))?);
    }
    outcomes.sort_by_key(|(index, _)| *index);
    Ok(outcomes.into_iter().map(|(_, outcome)| outcome).collect())
}

fn target(file: &Path, folder: Option<&Path>) -> PathBuf {
    match folder {
        None => signature_path(file),
        Some(folder) => {
            folder.join(signature_path(Path::new(file.file_name().unwrap_or_default())))
        }
    }
}

fn report(paths: &[PathBuf], outcomes: Vec<Outcome>, output: Output) -> Result<(), Failure> {
    let mut text = String::new();
    let mut list = Vec::new();
    let mut failures = Vec::new();
    for (path, outcome) in paths.iter().zip(outcomes) {
        match outcome {
            Ok(signature) => {
                text.push_str(&format!("signed {}: {}\n", path.display(), signature.display()));
                list.push(json!({
                    "file": path, "outcome": "signed", "signature": signature,
                }));
            }
            Err(failure) => {
                let reason = failure.message();
                list.push(json!({
                    "file": path, "outcome": "failed", "reason": reason, "error": reason,
                }));
                failures.push(failure);
            }
        }
    }
    if !text.is_empty() || output == Output::Json {
        output.result(&text, &list);
    }
    let Some(last) = failures.pop() else { return Ok(()) };
    if paths.len() == 1 {
        return Err(last);
    }
    for failure in failures.iter().chain([&last]) {
        failure.report();
    }
    let failed = failures.len() + 1;
    let all = failed == paths.len();
    Err(Failure::new(format!("{failed} of {} files were not signed", paths.len())).code(if all {
        1
    } else {
        PARTIAL
    }))
}
