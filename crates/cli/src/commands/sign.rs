//! `outlast sign`: signs files with a KMS key. `outlast sign setup` makes the key and its certificate, `sign timestamp` and
//! `sign renew` add evidence of the time. Its other subcommands are for keys that sign only what was approved.

mod additions;
mod approve;
mod finish;
mod jws;
mod oci;
mod renew;
mod request;
mod rule;
mod setup;
mod timestamp;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::ValueHint;
use indicatif::ProgressBar;
use outlast_crypto::digests::{DIGESTS, Digest};
use outlast_net::policy::Policy;
use outlast_net::server::system_clock;
use outlast_pki::pattern::Pattern;
use outlast_pki::pem;
use serde_json::json;

use self::additions::Additions;
use crate::artifact_log::{self, Waiting};
use crate::digest;
use crate::endpoint::Endpoint;
use crate::evidence::{Check, Evidence};
use crate::failure::{Failure, PARTIAL, USAGE};
use crate::files;
use crate::output::{self, Output};
use crate::profile::Connection;
use crate::signing::Signers;
use crate::signing::check::before_signing;
use crate::signing::jobs::{self, Job, Wanted};
use crate::timestamping::{Client, Taken};

/// Files that are signed at the same time; each takes a few MiB and one connection.
const MAX_PARALLEL: usize = 4;

/// Largest file with certificates, in bytes.
const MAX_CERTIFICATES: usize = 1 << 20;

/// Shown at the end of the help, and in the manual page.
const EXIT_STATUS: &str = "\
Exit status: 0 all files are signed; 1 failed, nothing is signed; 2 wrong usage; 3 the certificate was
refused, nothing is signed; 4 some of several files failed, the others are signed; 130 interrupted.";

/// Arguments of `sign`.
#[derive(clap::Args)]
#[command(after_help = EXIT_STATUS, args_conflicts_with_subcommands = true,
          subcommand_negates_reqs = true, disable_help_subcommand = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Files to sign, of any size; - is standard input.
    #[arg(required_unless_present_any = ["recursive", "oci"])]
    files: Vec<PathBuf>,
    /// Sign the image of an OCI image layout; the signature is added to the layout, as an artifact that refers to the image.
    #[arg(long, value_name = "DIR[:TAG]", conflicts_with_all = ["files", "recursive", "format", "signature", "output_dir", "classical_copy", "force", "log", "log_name", "timestamp", "timestamp_trust", "timestamp_ca"])]
    oci: Option<String>,
    /// Sign the files below this folder.
    #[arg(long, value_name = "DIR")]
    recursive: Option<PathBuf>,
    /// Of the files below --recursive, those that match a pattern such as '*.tar.gz' or 'linux/**'; may be
    /// repeated [default: all but .p7s, and .ers and .tlog-proof beside their FILE].
    #[arg(long, value_name = "GLOB", requires = "recursive", value_parser = Pattern::parse,
          value_hint = ValueHint::Other)]
    include: Vec<Pattern>,
    /// KMS key: alias/NAME, key id or ARN. Given twice, both sign, in one message: name a classical and a
    /// post-quantum key.
    #[arg(long, required = true)]
    key: Vec<String>,
    /// PEM file with the signer's certificate and the CAs above it; one for each --key [default: from the key's
    /// tag outlast:certificate-arn].
    #[arg(long)]
    certificate: Vec<PathBuf>,
    /// Digest of the file: sha512, shake256 or another that suits the key [default: sha512].
    #[arg(long, value_parser = digest_row, value_hint = ValueHint::Other)]
    digest: Option<&'static Digest>,
    /// Form of the signature: CMS, or a detached JWS in FILE.jws.
    #[arg(long, value_enum, default_value_t = Format::Cms)]
    format: Format,
    /// Signature of a single file; - is standard output [default: FILE.p7s].
    #[arg(long, value_name = "FILE", conflicts_with = "output_dir")]
    signature: Option<PathBuf>,
    /// Folder for the signatures, made if it is missing [default: next to the files].
    #[arg(long)]
    output_dir: Option<PathBuf>,
    /// Also write FILE.classical.p7s, by the classical keys alone, for verifiers that refuse a message with an
    /// algorithm that they do not know.
    #[arg(long)]
    classical_copy: bool,
    /// Put the CRLs and OCSP responses into the signature, so that it can be verified later without the CA.
    #[arg(long)]
    embed_revocation: bool,
    #[command(flatten)]
    additions: Additions,
    /// Replace signatures that exist already.
    #[arg(long)]
    force: bool,
    /// Check everything, and sign nothing.
    #[arg(long)]
    dry_run: bool,
    /// How to check that the certificate is not revoked, by the CRLs and the OCSP responders that it and its CAs
    /// name.
    #[arg(long, value_enum, default_value_t = Check::IfAvailable)]
    revocation: Check,
    #[command(flatten)]
    connection: Connection,
}

/// Form of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Cryptographic Message Syntax (RFC 5652).
    Cms,
    /// JSON Web Signature (RFC 7515, RFC 7797).
    Jws,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Make a signing key with its certificate, or renew the certificate.
    Setup(Box<setup::Arguments>),
    /// Add timestamps to signatures that exist, by any software.
    Timestamp(timestamp::Arguments),
    /// Renew the evidence of signatures before a certificate or an algorithm ends.
    Renew(renew::Arguments),
    /// Ask for approval of signatures.
    Request(Box<request::RequestArguments>),
    /// List the requests for approval.
    Requests(request::RequestsArguments),
    /// Show a request, with the files and their digests.
    Show(approve::ShowArguments),
    /// Approve a request.
    Approve(approve::ApproveArguments),
    /// Deny a request, or withdraw your own.
    Deny(approve::DenyArguments),
    /// Make the signatures of an approved request.
    Finish(Box<finish::FinishArguments>),
    /// Say who must approve what a key signs.
    Rule(rule::Arguments),
}

impl Command {
    fn run(&self, output: Output) -> Result<(), Failure> {
        match self {
            Self::Setup(arguments) => setup::run(arguments, output),
            Self::Timestamp(arguments) => timestamp::run(arguments, output),
            Self::Renew(arguments) => renew::run(arguments, output),
            Self::Request(arguments) => request::request(arguments, output),
            Self::Requests(arguments) => request::requests(arguments, output),
            Self::Show(arguments) => approve::show(arguments, output),
            Self::Approve(arguments) => approve::approve(arguments, output),
            Self::Deny(arguments) => approve::deny(arguments, output),
            Self::Finish(arguments) => finish::finish(arguments, output),
            Self::Rule(arguments) => rule::run(arguments, output),
        }
    }
}

fn digest_row(name: &str) -> Result<&'static Digest, String> {
    Digest::by_name(name).ok_or_else(|| {
        let names: Vec<_> = DIGESTS.iter().map(|row| row.name).collect();
        format!("not a digest: use one that suits the key, of {}", names.join(", "))
    })
}

/// Signs all files; a file that cannot be signed does not stop the others.
pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    if let Some(command) = &arguments.command {
        return command.run(output);
    }
    if let Some(reference) = &arguments.oci {
        return oci::run(reference, arguments, output);
    }
    if arguments.format == Format::Jws {
        return jws::run(arguments, output);
    }
    let wanted = arguments.digest;
    let given = arguments.certificate.iter().map(|path| certificates(path));
    let given = given.collect::<Result<Vec<_>, _>>()?;
    let jobs = Wanted {
        files: &arguments.files,
        recursive: arguments.recursive.as_deref(),
        include: &arguments.include,
        signature: arguments.signature.as_deref(),
        output_dir: arguments.output_dir.as_deref(),
        classical_copy: arguments.classical_copy,
        log: arguments.additions.log,
        force: arguments.force,
    }
    .jobs()?;
    let to_stdout = jobs.iter().any(Job::is_stdout);
    if to_stdout && output == Output::Json {
        return Err(Failure::new("standard output cannot hold a signature and a report")
            .hint("write the signature to a file: --signature FILE")
            .code(USAGE));
    }
    let jobs = Arc::new(jobs);
    let runtime = crate::runtime::runtime()?;
    let progress = output::byte_bar(0);
    let outcomes = runtime.block_on(async {
        let mut endpoint = Endpoint::new(arguments.connection.settings()?, &Policy::default())?;
        // The first file is read while the service is asked about the key: its digest is SHA-512 for all but a few
        // keys. Standard input can be read only once, and waits.
        let likely = wanted.or_else(|| Digest::by_name("sha512"));
        let first = jobs.first().filter(|job| !job.is_stdin() && !arguments.dry_run).cloned();
        let early = first.zip(likely).map(|(job, row)| {
            let progress = progress.clone();
            let task =
                tokio::task::spawn_blocking(move || digest::file(&job.file, &[row], &progress));
            EarlyDigest { row, task }
        });
        let mut signers = Signers::resolve(&mut endpoint, &arguments.key, given, wanted).await?;
        let classical = arguments.classical_copy.then(|| signers.classical()).transpose()?;
        let now = system_clock().div_euclid(1000);
        let mut evidence =
            Evidence { keeps_all: arguments.embed_revocation, ..Evidence::default() };
        for identity in signers.identities() {
            before_signing(identity, arguments.revocation, &mut evidence, now).await?;
        }
        if arguments.embed_revocation {
            signers.embed(evidence)?;
        }
        let stamper = arguments.additions.stamper(&arguments.connection)?;
        if arguments.dry_run {
            signers.may_sign(&mut endpoint).await?;
            return Ok(jobs.iter().map(|job| readable(&job.file)).collect());
        }
        if arguments.output_dir.is_some() {
            for folder in jobs.iter().filter_map(|job| job.target.parent()) {
                std::fs::create_dir_all(folder)
                    .map_err(|error| files::io_failure(folder, &error))?;
            }
        }
        let makers = Arc::new(Makers { all: signers, classical, stamper });
        let waiting = Arc::new(Waiting::default());
        let outcomes =
            sign_all(arguments, &jobs, makers, endpoint, early, &waiting, &progress).await?;
        if let Some(waiting) = Arc::into_inner(waiting) {
            arguments.additions.cosigned(&arguments.connection, waiting).await;
        }
        Ok::<_, Failure>(outcomes)
    });
    progress.finish_and_clear();
    // A digest that is no longer needed must not keep the program waiting.
    runtime.shutdown_background();
    let outcomes = outcomes?;
    report(arguments, &jobs, outcomes, output)
}

fn certificates(path: &Path) -> Result<Vec<Vec<u8>>, Failure> {
    let bytes = files::read(path, MAX_CERTIFICATES)?;
    pem::read_certificates(&bytes).map_err(|error| {
        Failure::file(path, &error)
            .hint("--certificate takes the signer's certificate, first, and the CAs above it")
    })
}

/// Whether a file could be signed.
fn readable(path: &Path) -> Outcome {
    if path.as_os_str() == jobs::DASH {
        return Ok(Vec::new());
    }
    jobs::check_name(path)?;
    let opened = std::fs::File::open(path).and_then(|file| file.metadata());
    let found = opened.map_err(|error| files::io_failure(path, &error))?;
    if found.is_dir() {
        return Err(
            Failure::file(path, &"it is a folder").hint("sign what is in it: --recursive DIR")
        );
    }
    Ok(Vec::new())
}

/// The timestamps of a signature that was made.
type Outcome = Result<Vec<Taken>, Failure>;

/// Who makes signatures.
struct Makers {
    all: Signers,
    /// The classical keys alone, for the copy.
    classical: Option<Signers>,
    stamper: Option<Client>,
}

impl Makers {
    /// The message, with its timestamps if they are wanted.
    async fn stamped(&self, message: Vec<u8>) -> Result<(Vec<u8>, Vec<Taken>), Failure> {
        match &self.stamper {
            Some(client) => client.stamp(&message).await,
            None => Ok((message, Vec::new())),
        }
    }
}

/// The first file's digest, started before it is certain that its algorithm is the right one.
struct EarlyDigest {
    row: &'static Digest,
    task: tokio::task::JoinHandle<Result<Vec<Vec<u8>>, Failure>>,
}

async fn sign_all(
    arguments: &Arguments,
    jobs: &Arc<Vec<Job>>,
    makers: Arc<Makers>,
    first: Endpoint,
    early: Option<EarlyDigest>,
    waiting: &Arc<Waiting>,
    progress: &ProgressBar,
) -> Result<Vec<Outcome>, Failure> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = MAX_PARALLEL.min(cores).min(jobs.len()).max(1);
    let next = Arc::new(AtomicUsize::new(0));
    let rows = Arc::new(makers.all.digests());
    let is_all = |early: &EarlyDigest| matches!(&rows[..], [only] if only.oid == early.row.oid);
    let early = early.filter(is_all);
    let early = Arc::new(tokio::sync::Mutex::new(early));
    let mut endpoints = vec![first];
    while endpoints.len() < workers {
        endpoints.push(Endpoint::new(arguments.connection.settings()?, &Policy::default())?);
    }
    let force = arguments.force;
    let mut tasks = Vec::new();
    for mut endpoint in endpoints {
        let (jobs, next, makers, rows) = (jobs.clone(), next.clone(), makers.clone(), rows.clone());
        let (early, progress) = (early.clone(), progress.clone());
        let (waiting, with_name) = (waiting.clone(), arguments.additions.log_name);
        tasks.push(tokio::spawn(async move {
            let mut done = Vec::new();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(job) = jobs.get(index) else { break };
                let name = job.file.display();
                progress.set_message(match jobs.len() {
                    1 => name.to_string(),
                    count => format!("{} of {count}: {name}", index + 1),
                });
                let outcome = async {
                    jobs::check_name(&job.file)?;
                    let ready = if index == 0 { early.lock().await.take() } else { None };
                    let digests = match ready {
                        Some(EarlyDigest { task, .. }) => {
                            task.await.map_err(|error| Failure::new(error.to_string()))??
                        }
                        None => digests_of(job, &rows, &progress)?,
                    };
                    // Both signatures and all timestamps are made, and are in the log, before anything is written.
                    let signature = makers.all.sign_digests(&mut endpoint, &rows, &digests).await?;
                    let (signature, mut taken) = makers.stamped(signature).await?;
                    let mut copy = None;
                    if let (Some(classical), Some(path)) = (&makers.classical, &job.classical) {
                        let made = classical.sign_digests(&mut endpoint, &rows, &digests).await?;
                        let (made, of_copy) = makers.stamped(made).await?;
                        taken.extend(of_copy);
                        copy = Some((path, made));
                    }
                    if let Some(proof) = &job.proof {
                        let copy = copy.as_ref().map(|(_, copy)| copy);
                        let made = std::iter::once(&signature).chain(copy).map(Vec::as_slice);
                        let made: Vec<_> = made.collect();
                        let name = with_name.then(|| file_name(job)).flatten();
                        let entered = artifact_log::enter(&mut endpoint, &made, name).await;
                        let entered = entered
                            .map_err(|failure| failure.prefixed("the signature is not written"))?;
                        write(proof, entered.proof.as_bytes(), force)?;
                        if !entered.is_cosigned {
                            waiting.add(proof, entered.index);
                        }
                    }
                    if let Some((path, copy)) = copy {
                        write(path, &copy, force)?;
                    }
                    if job.is_stdout() {
                        output::data(&signature);
                    } else {
                        write(&job.target, &signature, force)?;
                    }
                    Ok(taken)
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

/// Name of a job's file; standard input has none.
fn file_name(job: &Job) -> Option<String> {
    let name = job.file.file_name().filter(|_| !job.is_stdin())?;
    Some(name.to_string_lossy().into_owned())
}

fn digests_of(
    job: &Job,
    rows: &[&'static Digest],
    progress: &ProgressBar,
) -> Result<Vec<Vec<u8>>, Failure> {
    tokio::task::block_in_place(|| match job.is_stdin() {
        // Not the locked handle: another thread reads it.
        true => digest::reader(std::io::stdin(), rows, progress)
            .map_err(|error| Failure::new(format!("standard input: {error}"))),
        false => digest::file(&job.file, rows, progress),
    })
}

fn write(path: &Path, signature: &[u8], force: bool) -> Result<(), Failure> {
    match force {
        true => files::write(path, signature, 0o644),
        // Something may have been written there since all targets were checked.
        false => files::write_absent(path, signature, 0o644),
    }
}

fn report(
    arguments: &Arguments,
    jobs: &[Job],
    outcomes: Vec<Outcome>,
    output: Output,
) -> Result<(), Failure> {
    let is_dry = arguments.dry_run;
    let (word, done) = if is_dry { ("would sign", "would-sign") } else { ("signed", "signed") };
    let mut text = String::new();
    let mut list = Vec::new();
    let mut failures = Vec::new();
    for (Job { file, target, classical, proof }, outcome) in jobs.iter().zip(outcomes) {
        match outcome {
            Ok(taken) => {
                text.push_str(&format!("{word} {}: {}\n", file.display(), target.display()));
                let (name, signature) = (files::json_path(file), files::json_path(target));
                let mut value = json!({ "file": name, "outcome": done, "signature": signature });
                if let Some(path) = classical {
                    text.push_str(&format!("{word} {}: {}\n", file.display(), path.display()));
                    value["classical_signature"] = json!(files::json_path(path));
                }
                for url in arguments.additions.timestamp.iter().filter(|_| is_dry) {
                    text.push_str(&format!("would ask {url} for a timestamp of each signer\n"));
                }
                for one in &taken {
                    text.push_str(&format!("{}: {}\n", file.display(), one.text()));
                }
                if !taken.is_empty() {
                    value["timestamps"] = taken.iter().map(Taken::json).collect();
                }
                if let Some(path) = proof {
                    value["log_proof"] = json!(files::json_path(path));
                }
                list.push(value);
            }
            Err(failure) => {
                let reason = failure.message();
                list.push(json!({
                    "file": files::json_path(file), "outcome": "failed", "reason": reason, "error": reason,
                }));
                failures.push(failure);
            }
        }
    }
    let is_data = !is_dry && jobs.iter().any(Job::is_stdout);
    if (!text.is_empty() || output == Output::Json) && !is_data {
        output.result(&text, &list);
    }
    let Some(last) = failures.pop() else { return Ok(()) };
    if jobs.len() == 1 {
        return Err(last);
    }
    for failure in failures.iter().chain([&last]) {
        failure.report();
    }
    let failed = failures.len() + 1;
    let all = failed == jobs.len();
    let verb = if is_dry { "could not be" } else { "were not" };
    Err(Failure::new(format!("{failed} of {} files {verb} signed", jobs.len())).code(if all {
        1
    } else {
        PARTIAL
    }))
}
