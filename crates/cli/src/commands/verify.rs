//! `outlast verify`: verifies detached signatures without any service.

mod attestation;
mod jws;
mod logged;
mod oci;
pub(super) mod ruling;
pub(super) mod words;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::ValueHint;
use indicatif::ProgressBar;
use outlast_net::server::system_clock;
use outlast_pki::cms::MAX_MESSAGE_LEN;
use outlast_pki::cms::verify::{Signer, Time, TimeSource};
use outlast_pki::signing_policy::rule::Need;
use outlast_pki::signing_policy::words::explain;
use outlast_pki::trusted_time::Timed;
use serde_json::{Map, Value, json};

use self::logged::Logs;
use self::ruling::Ruling;
use self::words::{describe_timed, warn_of, worst};
use crate::evidence::{Check, Evidence};
use crate::failure::{Failure, PARTIAL, REFUSED, USAGE};
use crate::output::{self, Output};
use crate::renewing::record_path;
use crate::signing::{jobs, signature_path};
use crate::signing_policy::{self, Loaded};
use crate::verifying::time::{self, Record};
use crate::verifying::{Refused, Signed, Subject, Verifier, claimed_json};
use crate::{files, sarif, shell, trust, values};

/// Shown at the end of the help, and in the manual page.
const EXIT_STATUS: &str = "\
Exit status: 0 every signature is valid, or --dry-run; 1 failed: a file or the trust store cannot be read; 2 wrong usage;
3 a signature was refused, whatever else happened; 4 some of several files cannot be read, the others are
verified; 130 interrupted.";

/// Arguments of `verify`.
#[derive(clap::Args)]
#[command(after_help = EXIT_STATUS)]
pub(crate) struct Arguments {
    /// Signed files, not their signatures.
    #[arg(required_unless_present_any = ["explain", "recursive", "attestation", "oci"])]
    files: Vec<PathBuf>,
    /// Trusted roots: a PEM or DER file, or a folder of them. With --policy for the rules that name none.
    #[arg(long, env = "OUTLAST_TRUST", required_unless_present = "policy")]
    trust: Option<PathBuf>,
    /// Policy that says who may sign what: a TOML file, builtin:cnsa-2.0 or builtin:nist-ir-8547.
    #[arg(long, value_name = "POLICY")]
    policy: Option<String>,
    /// Say in words what the policy allows; verifies nothing.
    #[arg(long, requires = "policy", conflicts_with_all = ["files", "recursive", "attestation"])]
    explain: bool,
    /// Date by which the policy is read [default: now].
    #[arg(long, requires = "policy", value_name = "DATE", value_parser = date, value_hint = ValueHint::Other)]
    as_of: Option<i64>,
    /// Verify all files below a folder, which policies name from there. Left out are signatures (.p7s), evidence (.ers) and
    /// proofs (.tlog-proof) beside their FILE, and links to folders, with a warning.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["files", "signature"])]
    recursive: Option<PathBuf>,
    /// Say what would be refused, and exit with 0 whatever it is.
    #[arg(long)]
    dry_run: bool,
    /// Write what is not verified into a file in SARIF 2.1.0, for CI; an existing file is replaced.
    #[arg(long, value_name = "FILE")]
    sarif: Option<PathBuf>,
    /// Verify what an attestation says about the --subject files: one DSSE envelope with an in-toto Statement.
    #[arg(long, value_name = "FILE", requires = "subject", conflicts_with_all = ["files", "signature", "recursive"])]
    attestation: Option<PathBuf>,
    /// File that the attestation must be about; may be repeated.
    #[arg(long, value_name = "FILE", requires = "attestation")]
    subject: Vec<PathBuf>,
    /// Verify the image of an OCI image layout: its blobs, and the signatures that refer to it.
    #[arg(long, value_name = "DIR[:TAG]", conflicts_with_all = ["files", "signature", "recursive", "attestation", "explain"])]
    oci: Option<PathBuf>,
    /// Signature, for a single file: CMS, or JWS [default: FILE.p7s].
    #[arg(long)]
    signature: Option<PathBuf>,
    /// Evidence record (RFC 4998), for a single file; a bad one is refused [default: FILE.ers, if it is there].
    #[arg(long, value_name = "FILE", conflicts_with_all = ["recursive", "attestation", "oci"])]
    evidence: Option<PathBuf>,
    /// Trusted roots of time-stamping authorities: a PEM or DER file, or a folder of them [default: those of --trust].
    #[arg(long, value_name = "PEM")]
    timestamp_trust: Option<PathBuf>,
    /// More certificates, if the signature lacks some: a file or a folder.
    #[arg(long)]
    certificates: Option<PathBuf>,
    /// Time at which the certificates must be valid: signing-time (as timestamps prove, or else as the signer claims), now, or
    /// a time such as 2026-11-21T12:00:00Z.
    #[arg(long, default_value = "signing-time", value_parser = At::parse,
          value_hint = ValueHint::Other)]
    at: At,
    /// Log that must have the signature, and the witnesses that must have cosigned it: a file (C2SP tlog-policy), as
    /// outlast log policy prints it. With --policy in addition to what a rule asks for.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["attestation", "oci"])]
    log_policy: Option<PathBuf>,
    /// Proof that the log has the signature, for a single file [default: FILE.tlog-proof].
    #[arg(long, value_name = "FILE", conflicts_with_all = ["recursive", "attestation", "oci"])]
    log_proof: Option<PathBuf>,
    /// Whether revoked certificates are refused, by the CRLs and OCSP responses in the signature and by those that
    /// the next options give; the stricter of this and a rule counts [default: if-available].
    #[arg(long, value_enum)]
    revocation: Option<Check>,
    /// File with CRLs; may be repeated.
    #[arg(long, value_name = "FILE")]
    crl: Vec<PathBuf>,
    /// File with an OCSP response; may be repeated.
    #[arg(long, value_name = "FILE")]
    ocsp: Vec<PathBuf>,
    /// Fetch OCSP responses and CRLs over http, from the URLs in the certificates of signers and of the time-stamping
    /// authorities that are trusted.
    #[arg(long)]
    fetch: bool,
}

/// Verifies all files; prints each result.
pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    if arguments.signature.is_some() && arguments.files.len() > 1 {
        return Err(Failure::new("--signature is for a single file")
            .hint("keep the signature of each FILE in FILE.p7s")
            .code(2));
    }
    if arguments.evidence.is_some() && arguments.files.len() > 1 {
        return Err(Failure::new("--evidence is for a single file")
            .hint("keep the evidence of each FILE in FILE.ers")
            .code(2));
    }
    let policy = arguments.policy.as_deref().map(signing_policy::load).transpose()?;
    if let (true, Some(loaded)) = (arguments.explain, &policy) {
        let text = explain(&loaded.policy);
        output.result(&text, &json!({ "policy": loaded.policy.name, "text": text }));
        return Ok(());
    }
    if let Some(loaded) = &policy {
        loaded.check_roots(arguments.trust.is_some())?;
    }
    let logs = Logs::choose(arguments)?;
    let now = system_clock().div_euclid(1000);
    let mut evidence = Evidence::default();
    evidence.read(arguments.crl.iter().chain(&arguments.ocsp))?;
    let roots = arguments.trust.as_deref().map(trust::authorities).transpose()?;
    let roots = roots.unwrap_or_default();
    let verifier = Verifier {
        timestamp_roots: match &arguments.timestamp_trust {
            Some(path) => trust::authorities(path)?,
            None => roots.clone(),
        },
        roots,
        extra: match &arguments.certificates {
            Some(path) => trust::load(path)?,
            None => Vec::new(),
        },
        now,
        time: arguments.at.resolve(now),
        revocation: arguments.revocation,
        fetch: arguments.fetch,
        evidence,
        seen: Arc::default(),
    };
    let paths = match &arguments.recursive {
        Some(folder) => jobs::found(folder, &[])?,
        None if arguments.oci.is_some() => arguments.oci.iter().cloned().collect(),
        None if arguments.attestation.is_some() => arguments.subject.clone(),
        None => arguments.files.clone(),
    };
    let count = paths.len();
    let as_of = arguments.as_of.unwrap_or(now);
    let policy = policy.as_ref();
    let progress = output::byte_bar(0);
    let run = Run { arguments, policy, logs: &logs, as_of, verifier, progress };
    let mut list = Vec::new();
    let mut text = String::new();
    let mut failures = Vec::new();
    for (path, (entry, outcome)) in paths.iter().zip(run.all(&paths)?) {
        text.push_str(&entry.text);
        let outcome_name = match &outcome {
            Ok(()) => "verified",
            Err(failure) if failure.exit_code() == REFUSED => "refused",
            Err(_) => "failed",
        };
        let mut value = json!({
            "file": files::json_path(path),
            "outcome": outcome_name,
            "verified": outcome.is_ok(),
        });
        if let Value::Object(members) = &mut value {
            if let Err(failure) = &outcome {
                members.insert("reason".into(), json!(failure.message()));
                members.insert("error".into(), json!(failure.message()));
            }
            members.extend(entry.members);
        }
        list.push(value);
        failures.extend(outcome.err());
    }
    if let Some(path) = &arguments.sarif {
        let report = serde_json::to_vec_pretty(&sarif::report(&list))
            .map_err(|error| Failure::file(path, &error))?;
        files::write(path, &report, 0o644)?;
    }
    if arguments.dry_run {
        text.push_str(&foreseen(count, &failures));
    }
    if !text.is_empty() || output == Output::Json {
        output.result(&text, &list);
    }
    if arguments.dry_run {
        return Ok(());
    }
    finish(count, failures)
}

/// What a dry run says about the files that would not be accepted.
fn foreseen(count: usize, failures: &[Failure]) -> String {
    let mut text = String::new();
    for failure in failures {
        let verb = if failure.exit_code() == REFUSED { "refuse" } else { "fail for" };
        text.push_str(&format!("would {verb} {}\n", failure.message()));
    }
    text.push_str(&format!("{} of {count} files would not be accepted\n", failures.len()));
    text
}

/// What is known about a file, for the output.
#[derive(Default)]
struct Entry {
    text: String,
    members: Map<String, Value>,
}

/// What is known about a file, and whether it is accepted.
type Judged = (Entry, Result<(), Failure>);

/// The verification of several files.
#[derive(Clone)]
struct Run<'a> {
    arguments: &'a Arguments,
    policy: Option<&'a Loaded>,
    logs: &'a Logs,
    /// Seconds since 1970.
    as_of: i64,
    verifier: Verifier,
    progress: ProgressBar,
}

/// Files of each thread, at least: a thread takes as long to start as a file to verify.
const FILES_OF_A_THREAD: usize = 4;

impl Run<'_> {
    /// Verifies files on all cores; the results are in the files' order. What is fetched for one file serves the next
    /// ones, so that fetching keeps to one thread.
    fn all(self, paths: &[PathBuf]) -> Result<Vec<Judged>, Failure> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = match self.verifier.fetch {
            true => 1,
            false => cores.min(paths.len().div_ceil(FILES_OF_A_THREAD)).max(1),
        };
        let progress = self.progress.clone();
        let next = AtomicUsize::new(0);
        let one = |mut run: Self| {
            let mut done = Vec::new();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(path) = paths.get(index) else { return done };
                run.progress.set_message(path.display().to_string());
                let mut entry = Entry::default();
                let outcome = run.file(path, &mut entry);
                done.push((index, (entry, outcome)));
            }
        };
        let mut done = Vec::with_capacity(paths.len());
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads)
                .map(|_| self.clone())
                .map(|run| scope.spawn(move || one(run)))
                .collect();
            done.extend(one(self));
            others.into_iter().try_for_each(|other| {
                done.extend(other.join().map_err(|_| Failure::new("a thread ended early"))?);
                Ok::<_, Failure>(())
            })
        })?;
        progress.finish_and_clear();
        done.sort_by_key(|(index, _)| *index);
        Ok(done.into_iter().map(|(_, found)| found).collect())
    }

    /// Verifies a file. `entry` gets what is known about it, refused or not.
    fn file(&mut self, path: &Path, entry: &mut Entry) -> Result<(), Failure> {
        jobs::check_name(path).map_err(|failure| failure.code(REFUSED))?;
        if let Some(attestation) = &self.arguments.attestation {
            return self.attested(path, attestation, entry);
        }
        if self.arguments.oci.is_some() {
            return self.oci(path, entry);
        }
        let named = self.arguments.signature.clone();
        let signature = named.clone().unwrap_or_else(|| signature_path(path));
        if named.is_some() {
            let bytes = read_signature(path, &signature, true)?;
            if jws::is_jws(&bytes) {
                return self.jws(path, &bytes, entry);
            }
        }
        let verb = if self.arguments.dry_run { "would accept" } else { "verified" };
        if let Some(loaded) = self.policy {
            let folder = self.arguments.recursive.as_deref();
            let name = folder.and_then(|folder| path.strip_prefix(folder).ok()).unwrap_or(path);
            entry.members.insert("policy".into(), json!(loaded.policy.name));
            let rule = loaded.rule_for(path, name)?;
            entry.members.insert("rule".into(), json!(rule.name));
            if rule.timestamp == Need::Off && self.arguments.evidence.is_some() {
                let reason = "its rule has timestamp = \"off\", so that --evidence proves nothing";
                return Err(Failure::file(path, &reason).hint("leave one of them out").code(USAGE));
            }
            let bytes = read_signature(path, &signature, named.is_some())?;
            entry.members.insert("signers".into(), json!(claimed_json(&bytes)));
            let record = self.record(&signature)?;
            let subject =
                Subject { signed: Signed::File(path), signature: &bytes, record: record.as_ref() };
            let found = self.verifier.judge(rule, self.as_of, &subject, &self.progress);
            let found = found.map_err(|refused| self.refused(path, refused, entry))?;
            let record = self.about(found.record, entry)?;
            let verdict = &found.signers;
            let ruling = Ruling { path, loaded, rule, verdict, verifier: &self.verifier };
            entry.members.extend(ruling.members());
            entry.text = ruling.text(verb)? + &record;
            let asked = loaded.log_of(rule);
            return self.logs.require(asked, path, &bytes, entry);
        }
        let bytes = read_signature(path, &signature, named.is_some())?;
        entry.members.insert("signers".into(), json!(claimed_json(&bytes)));
        let record = self.record(&signature)?;
        let subject =
            Subject { signed: Signed::File(path), signature: &bytes, record: record.as_ref() };
        let found = self.verifier.file(&subject, &self.progress);
        let found = found.map_err(|refused| self.refused(path, refused, entry))?;
        let record = self.about(found.record, entry)?;
        self.accept(verb, path, &found.signers, entry);
        entry.text.push_str(&record);
        self.logs.require(None, path, &bytes, entry)
    }

    /// What is known of signers that are accepted without a policy.
    fn accept(&self, verb: &str, path: &Path, timed: &[Timed<Signer>], entry: &mut Entry) {
        for one in timed {
            warn_of(path, &one.signer.certificate.subject().to_string(), &one.tokens);
        }
        entry.text = describe_timed(verb, path, timed, &self.verifier);
        let signer = |one: &Timed<Signer>| {
            let mut value = self.verifier.signer_json(&one.signer);
            value["timestamps"] = time::tokens_json(&one.tokens, &self.verifier);
            value
        };
        let signers: Vec<_> = timed.iter().map(signer).collect();
        entry
            .members
            .insert("revocation".into(), json!(worst(timed.iter().map(|one| &one.signer))));
        entry.members.insert("signers".into(), json!(signers));
    }

    /// The evidence record of a signature: the one that is named, or the one beside it, if it is there.
    fn record(&self, signature: &Path) -> Result<Option<Record>, Failure> {
        match &self.arguments.evidence {
            Some(path) => Record::read(path, true),
            None => Record::read(&record_path(signature), false),
        }
    }

    /// Says what an evidence record proves. A bad one proves nothing, and is refused if it was named.
    fn about(&self, outcome: Option<time::Outcome>, entry: &mut Entry) -> Result<String, Failure> {
        let Some(outcome) = outcome else { return Ok(String::new()) };
        entry.members.insert("evidence".into(), outcome.json(&self.verifier));
        outcome.text(self.arguments.evidence.is_some(), &self.verifier)
    }

    /// The refusal of a message. What is known of its time is told beside its signers' claims.
    fn refused(&self, path: &Path, refused: Refused, entry: &mut Entry) -> Failure {
        let signers = entry.members.get_mut("signers").and_then(Value::as_array_mut);
        for (signer, tokens) in signers.into_iter().flatten().zip(&refused.tokens) {
            let subject = signer["subject"].as_str().unwrap_or_default().to_owned();
            warn_of(path, &subject, tokens);
            signer["timestamps"] = time::tokens_json(tokens, &self.verifier);
        }
        if let Some(record) = refused.record {
            entry.members.insert("evidence".into(), record.json(&self.verifier));
            record.warn();
        }
        refused.failure
    }
}

/// The signature of a file that must be there, too.
fn read_signature(path: &Path, signature: &Path, named: bool) -> Result<Vec<u8>, Failure> {
    std::fs::metadata(path).map_err(|error| files::io_failure(path, &error))?;
    if !named && !files::exists(signature)? {
        let failure = Failure::file(signature, &"No such file or directory");
        return Err(if path.extension().is_some_and(|kind| kind == "p7s") {
            failure.hint(format!(
                "name the signed file: outlast verify FILE --signature {}",
                shell::quoted(path)
            ))
        } else {
            failure.hint("sign the file, or name its signature with --signature")
        });
    }
    files::read(signature, MAX_MESSAGE_LEN)
}

fn finish(count: usize, mut failures: Vec<Failure>) -> Result<(), Failure> {
    if count == 1 {
        return failures.pop().map_or(Ok(()), Err);
    }
    if failures.is_empty() {
        return Ok(());
    }
    let refused = failures.iter().any(|failure| failure.exit_code() == REFUSED);
    for failure in &failures {
        failure.report();
    }
    let code = match (refused, failures.len() == count) {
        (true, _) => REFUSED,
        (false, true) => 1,
        (false, false) => PARTIAL,
    };
    Err(Failure::new(format!("{} of {count} files were not verified", failures.len())).code(code))
}

/// The time at which certificates must be valid, as an argument.
#[derive(Debug, Clone, Copy)]
enum At {
    SigningTime,
    Now,
    /// Seconds since 1970.
    Time(i64),
}

impl At {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "signing-time" => Ok(Self::SigningTime),
            "now" => Ok(Self::Now),
            other => values::time(other)
                .map(Self::Time)
                .map_err(|error| format!("neither signing-time nor now, and {error}")),
        }
    }

    /// The trusted time; `None` for the signers' claims.
    fn resolve(self, now: i64) -> Option<Time> {
        let at = match self {
            Self::SigningTime => return None,
            Self::Now => now,
            Self::Time(time) => time,
        };
        Some(Time { at, source: TimeSource::Verifier })
    }
}

/// A date, of which the first second counts, or a time, as an argument.
fn date(text: &str) -> Result<i64, String> {
    let whole = if text.len() == 10 { format!("{text}T00:00:00Z") } else { text.to_owned() };
    values::time(&whole).map_err(|_| "neither a date such as 2030-12-31 nor a time".to_owned())
}
