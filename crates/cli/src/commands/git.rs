//! `outlast git`: signs and verifies commits and tags, as the program that git calls for X.509 signatures.

mod setup;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outlast_net::policy::Policy;
use outlast_net::server::system_clock;
use outlast_pki::certificate::Certificate;
use outlast_pki::cms::MAX_MESSAGE_LEN;
use outlast_pki::cms::verify::{Authentic, SignedMessage, VerifyError};
use outlast_pki::pem;
use serde_json::json;

use super::verify::ruling::Ruling;
use super::verify::words::describe;
use crate::artifact_log::without_proof;
use crate::endpoint::Endpoint;
use crate::evidence::{Check, Evidence};
use crate::failure::{Failure, REFUSED, USAGE};
use crate::git::{self, Status};
use crate::output::{self, Output};
use crate::profile::Connection;
use crate::signing::Signers;
use crate::signing::check::before_signing;
use crate::verifying::{Signed, Subject, Verifier};
use crate::{files, signing_policy, trust};

/// Longest object, in bytes: commits and tags are short, but a push certificate lists references.
const MAX_OBJECT: usize = 16 << 20;

/// Arguments of `git`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Configure git: a repository, or all of yours, to sign and verify with this program.
    Setup(setup::Arguments),
    /// Sign a commit or tag on standard input; the signature goes to standard output.
    Sign(Box<Sign>),
    /// Verify the signature of a commit or tag on standard input.
    Verify(Verify),
}

/// Arguments of `git sign`.
#[derive(clap::Args)]
struct Sign {
    /// KMS key: alias/NAME, key id or ARN. Its tag outlast:certificate-arn names the certificate.
    #[arg(long)]
    key: String,
    /// How to check that the certificate is not revoked.
    #[arg(long, value_enum, default_value_t = Check::IfAvailable)]
    revocation: Check,
    /// Stream for git's status lines: 1 or 2.
    #[arg(long, value_name = "FD", value_parser = Status::parse)]
    status_fd: Option<Status>,
    #[command(flatten)]
    connection: Connection,
}

/// Arguments of `git verify`.
#[derive(clap::Args)]
struct Verify {
    /// File with the signature.
    signature: PathBuf,
    /// Trusted roots: a PEM or DER file, or a folder of them.
    #[arg(long, env = "OUTLAST_TRUST")]
    trust: Option<PathBuf>,
    /// Policy that says who may sign what; its rules name git:commit, git:tag/NAME and git:push.
    #[arg(long, value_name = "POLICY", env = "OUTLAST_POLICY")]
    policy: Option<String>,
    /// Whether revoked certificates are refused, by what is in the signature and by --crl.
    #[arg(long, value_enum)]
    revocation: Option<Check>,
    /// File with CRLs; may be repeated.
    #[arg(long, value_name = "FILE")]
    crl: Vec<PathBuf>,
    /// Stream for git's status lines: 1 or 2.
    #[arg(long, value_name = "FD", value_parser = Status::parse)]
    status_fd: Option<Status>,
}

/// Runs a command of `git`.
pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    match &arguments.command {
        Command::Setup(arguments) => setup::run(arguments, output),
        Command::Sign(arguments) => sign(arguments),
        Command::Verify(arguments) => verify(arguments, output),
    }
}

fn object() -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let limit = MAX_OBJECT as u64 + 1;
    std::io::stdin()
        .take(limit)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::new(format!("standard input: {error}")))?;
    if bytes.len() > MAX_OBJECT {
        return Err(Failure::new(format!("standard input: it is longer than {MAX_OBJECT} bytes")));
    }
    Ok(bytes)
}

fn sign(arguments: &Sign) -> Result<(), Failure> {
    // Without user.signingKey git names the committer.
    if arguments.key.contains('<') {
        return Err(Failure::new(format!("\"{}\" is not a KMS key", arguments.key))
            .hint("name the key: git config user.signingKey alias/NAME")
            .code(USAGE));
    }
    let object = object()?;
    let runtime = crate::runtime::small()?;
    let (signature, certificate) = runtime.block_on(async {
        let mut endpoint = Endpoint::new(arguments.connection.settings()?, &Policy::default())?;
        let keys = std::slice::from_ref(&arguments.key);
        let signers = Signers::resolve(&mut endpoint, keys, Vec::new(), None).await?;
        let now = system_clock().div_euclid(1000);
        let mut evidence = Evidence::default();
        for identity in signers.identities() {
            before_signing(identity, arguments.revocation, &mut evidence, now).await?;
        }
        let rows = signers.digests();
        let digests: Vec<_> = rows.iter().map(|row| row.digest(&object)).collect();
        let signature = signers.sign_digests(&mut endpoint, &rows, &digests).await?;
        let first = signers.identities().first().map(|one| one.certificate().clone());
        Ok::<_, Failure>((signature, first))
    })?;
    output::data(pem::signed_message(&signature).as_bytes());
    Failure::of_lost_output()?;
    if let (Some(status), Some(certificate)) = (arguments.status_fd, certificate) {
        let seconds = system_clock().div_euclid(1000);
        status.line("BEGIN_SIGNING");
        // Of the key's algorithm and the digest git wants to know nothing.
        status.line(&format!("SIG_CREATED D 0 0 00 {seconds} {}", git::fingerprint(&certificate)));
    }
    Ok(())
}

/// Verifies as git wants to know it: a good signature by somebody whom nobody trusts is no good signature, because
/// scripts look for GOODSIG alone.
fn verify(arguments: &Verify, output: Output) -> Result<(), Failure> {
    let object = object()?;
    let signature = files::read(&arguments.signature, MAX_MESSAGE_LEN)?;
    let name = PathBuf::from(git::name(&object));
    let tell = |text: &str| {
        if let Some(status) = arguments.status_fd {
            status.line(text);
        }
    };
    tell("NEWSIG");
    let authentic = authenticate(&object, &signature);
    let outcome = verdict(arguments, &name, &object, &signature);
    match (&authentic, &outcome) {
        (Ok(signers), Ok(accepted)) => {
            let who =
                signers.iter().find(|one| one.certificate.der() == accepted.certificate.der());
            if let Some(signer) = who {
                let id = git::fingerprint(&signer.certificate);
                tell(&format!("GOODSIG {id} {}", signer.certificate.subject()));
                let seconds = signer.signing_time.unwrap_or_default();
                tell(&format!("VALIDSIG {id} {seconds} {seconds} 0 4 0 0 0 00 {id}"));
                tell("TRUST_FULLY 0 x509");
            }
        }
        (Err(fault), _) if speaks_against(&fault.error) => {
            let (id, subject) = match &fault.claimed {
                Some(one) => (git::fingerprint(one), one.subject().to_string()),
                None => (UNKNOWN.to_owned(), String::new()),
            };
            tell(&format!("BADSIG {id} {subject}"));
            // Git fails with %GT if it hears of no trust.
            tell("TRUST_NEVER 0 x509");
        }
        (found, _) => {
            let known = found.as_ref().ok().and_then(|signers| signers.first());
            let id = known.map_or(UNKNOWN.to_owned(), |one| git::fingerprint(&one.certificate));
            let seconds = known.and_then(|one| one.signing_time).unwrap_or_default();
            // 9: no certificate that is trusted.
            tell(&format!("ERRSIG {id} 0 0 00 {seconds} 9 {id}"));
            tell("TRUST_NEVER 0 x509");
        }
    }
    let accepted = outcome?;
    if arguments.status_fd.is_some_and(Status::takes_stdout) {
        output::notice(accepted.text.trim_end());
    } else {
        output.result(&accepted.text, &json!({ "object": name, "signers": accepted.signers }));
    }
    Ok(())
}

/// Id of a signer without a certificate.
const UNKNOWN: &str = "0000000000000000";

/// A signature that is not right.
struct Unauthentic {
    error: VerifyError,
    /// The certificate that the first signer claims.
    claimed: Option<Certificate>,
}

/// The signers, if their signatures are right.
fn authenticate(object: &[u8], signature: &[u8]) -> Result<Vec<Authentic>, Box<Unauthentic>> {
    let wrong = |error, claimed| Box::new(Unauthentic { error, claimed });
    let message = SignedMessage::parse(signature).map_err(|error| wrong(error, None))?;
    let outcome = message.digests().and_then(|rows| {
        let values: Vec<_> = rows.iter().map(|row| row.digest(object)).collect();
        message.authenticate(&values, &[])
    });
    outcome.map_err(|error| {
        let claimed = message.claims().into_iter().find_map(|claim| claim.certificate);
        wrong(error, claimed)
    })
}

/// Whether an error means that the object or the signature is not what was made, and not only that it cannot be
/// examined.
fn speaks_against(error: &VerifyError) -> bool {
    matches!(
        error,
        VerifyError::DigestMismatch
            | VerifyError::ContentMismatch
            | VerifyError::Signature
            | VerifyError::SignerMissing { .. }
            | VerifyError::AlgorithmProtection
            | VerifyError::TrailingData
    )
}

/// A signature that counts.
struct Accepted {
    /// Of the signer, or of the first that counts.
    certificate: Certificate,
    text: String,
    signers: serde_json::Value,
}

fn verdict(
    arguments: &Verify,
    name: &Path,
    object: &[u8],
    signature: &[u8],
) -> Result<Accepted, Failure> {
    let policy = arguments.policy.as_deref().map(signing_policy::load).transpose()?;
    if policy.is_none() && arguments.trust.is_none() {
        return Err(Failure::new("nobody is trusted: there is neither --trust nor --policy")
            .hint("configure git: outlast git setup --trust root.pem"));
    }
    if let Some(loaded) = &policy {
        loaded.check_roots(arguments.trust.is_some())?;
    }
    let mut evidence = Evidence::default();
    evidence.read(&arguments.crl)?;
    let roots = arguments.trust.as_deref().map(trust::authorities).transpose()?;
    let roots = roots.unwrap_or_default();
    let mut verifier = Verifier {
        timestamp_roots: roots.clone(),
        roots,
        extra: Vec::new(),
        now: system_clock().div_euclid(1000),
        time: None,
        revocation: arguments.revocation,
        fetch: false,
        evidence,
        seen: Arc::default(),
    };
    let progress = indicatif::ProgressBar::hidden();
    let signed = Signed::Bytes { name, content: object };
    let subject = Subject { signed, signature, record: None };
    let nobody = || Failure::file(name, &"nobody signed it").code(REFUSED);
    let Some(loaded) = &policy else {
        let timed = verifier.file(&subject, &progress)?.signers;
        let signers: Vec<_> = timed.into_iter().map(|one| one.signer).collect();
        let first = signers.first().ok_or_else(nobody)?;
        return Ok(Accepted {
            certificate: first.certificate.clone(),
            text: describe("verified", name, &signers, &verifier),
            signers: signers.iter().map(|one| verifier.signer_json(one)).collect(),
        });
    };
    let rule = loaded.rule_for(name, name)?;
    if loaded.log_of(rule).is_some() {
        return Err(without_proof(name, "commits and tags"));
    }
    let verdict = verifier.judge(rule, verifier.now, &subject, &progress)?.signers;
    let ruling = Ruling { path: name, loaded, rule, verdict: &verdict, verifier: &verifier };
    let text = ruling.text("verified")?;
    let first = verdict.signers.iter().find(|one| one.counts()).ok_or_else(nobody)?;
    Ok(Accepted {
        certificate: first.signer.certificate.clone(),
        text,
        signers: verdict.signers.iter().map(|one| verifier.judged_json(one)).collect(),
    })
}
