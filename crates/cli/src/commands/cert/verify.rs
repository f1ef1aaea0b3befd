//! `outlast cert verify`: validates a certificate by RFC 5280, and prints the path and what was checked.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::ValueHint;
use outlast_net::server::system_clock;
use outlast_pki::ObjectIdentifier;
use outlast_pki::certificate::Certificate;
use outlast_pki::describe;
use outlast_pki::path::{PathError, check_code_signing};
use outlast_pki::templates::{CLIENT_AUTH, CODE_SIGNING, OCSP_SIGNING, SERVER_AUTH};
use outlast_pki::time::rfc3339;
use outlast_pki::validate::{
    Identity, MAX_INTERMEDIATES, Material, Options, Refusal, Revocation, Rule, Validated, validate,
};
use serde_json::json;

use crate::evidence::{Check, Evidence};
use crate::failure::{Failure, REFUSED};
use crate::output::Output;
use crate::{files, objects, trust, values};

/// id-kp-emailProtection
const EMAIL: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.4");
/// id-kp-timeStamping
const TIME: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.8");

/// Purpose that a certificate must allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Purpose {
    /// TLS server.
    Server,
    /// TLS client.
    Client,
    /// Code signing.
    Code,
    /// E-mail.
    Email,
    /// Timestamps.
    Time,
    /// OCSP responses.
    Ocsp,
    /// Anything.
    Any,
}

impl Purpose {
    fn oids(self) -> &'static [ObjectIdentifier] {
        match self {
            Self::Server => &[SERVER_AUTH],
            Self::Client => &[CLIENT_AUTH],
            Self::Code => &[CODE_SIGNING],
            Self::Email => &[EMAIL],
            Self::Time => &[TIME],
            Self::Ocsp => &[OCSP_SIGNING],
            Self::Any => &[],
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Server => "TLS server",
            Self::Client => "TLS client",
            Self::Code => "code signing",
            Self::Email => "e-mail",
            Self::Time => "timestamps",
            Self::Ocsp => "OCSP responses",
            Self::Any => "any purpose",
        }
    }
}

/// Arguments of `cert verify`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The certificate; other certificates in the file are its chain.
    file: PathBuf,
    /// Trusted roots: a PEM or DER file, or a folder of them.
    #[arg(long, env = "OUTLAST_TRUST")]
    trust: PathBuf,
    /// More certificates between it and a root: a file or a folder; may be repeated.
    #[arg(long, value_name = "PATH")]
    chain: Vec<PathBuf>,
    /// File with CRLs; may be repeated.
    #[arg(long, value_name = "FILE")]
    crl: Vec<PathBuf>,
    /// File with an OCSP response; may be repeated.
    #[arg(long, value_name = "FILE")]
    ocsp: Vec<PathBuf>,
    /// Purpose that it must allow.
    #[arg(long, value_enum, default_value_t = Purpose::Any)]
    purpose: Purpose,
    /// Identity that it must name: a DNS name, an IP address or an e-mail address.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Time of the check, such as 2026-11-21T12:00:00Z [default: now].
    #[arg(long, value_name = "TIME", value_parser = values::time,
          value_hint = ValueHint::Other)]
    at: Option<i64>,
    /// Maximum number of CAs between the certificate and the root, from 0 to 10.
    #[arg(long, value_name = "N", default_value_t = MAX_INTERMEDIATES as u64,
          value_parser = clap::value_parser!(u64).range(..=MAX_INTERMEDIATES as u64))]
    depth: u64,
    /// How to check revocation [default: if-available with --crl, --ocsp or --fetch, else off].
    #[arg(long, value_enum)]
    revocation: Option<Check>,
    /// Fetch OCSP responses and CRLs over http, from the URLs in the certificates of a valid path to a trusted root.
    #[arg(long)]
    fetch: bool,
}

/// Validates; prints the path and what was checked.
pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let now = system_clock().div_euclid(1000);
    let at = arguments.at.unwrap_or(now);
    let ders = objects::certificates(&arguments.file)?;
    let parse = |der: &Vec<u8>| Certificate::parse(der);
    let mut offered = ders.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
    let leaf = offered.remove(0);
    for path in &arguments.chain {
        for der in trust::load(path)? {
            offered.push(Certificate::parse(&der)?);
        }
    }
    let roots = trust::load(&arguments.trust)?.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
    let mut evidence = Evidence::default();
    evidence.read(arguments.crl.iter().chain(&arguments.ocsp))?;
    let given = arguments.fetch || !arguments.crl.is_empty() || !arguments.ocsp.is_empty();
    let check = arguments.revocation.unwrap_or(if given { Check::IfAvailable } else { Check::Off });
    let options = Options {
        purposes: arguments.purpose.oids(),
        name: arguments.name.as_deref().map(identity),
        revocation: check.rule(),
        max_intermediates: usize::try_from(arguments.depth).unwrap_or(MAX_INTERMEDIATES),
        ..Options::at(at)
    };
    let certificates = Material { roots: &roots, intermediates: &offered, ..Material::default() };
    // What `outlast verify` refuses is not valid for code signing here, either.
    if arguments.purpose == Purpose::Code {
        match check_code_signing(&leaf, &roots) {
            Ok(()) => {}
            Err(PathError::TrustStore(_)) => return Err(trust::no_authority(&arguments.trust)),
            Err(error) => {
                let subject = leaf.subject().to_string();
                let text = format!("\"{subject}\": {error}");
                let checked = Checked { arguments, at, check, evidence: &evidence };
                return Err(checked.refused(
                    &subject,
                    leaf.serial(),
                    &error.to_string(),
                    &text,
                    output,
                ));
            }
        }
    }
    let path = match arguments.fetch {
        true => fetch(&mut evidence, &leaf, &certificates, &options)?,
        false => Ok(()),
    };
    let material = Material { crls: &evidence.crls, ocsp: &evidence.ocsp, ..certificates };
    let checked = Checked { arguments, at, check, evidence: &evidence };
    match path.and_then(|()| validate(&leaf, &material, &options)) {
        Ok(validated) => {
            checked.print(&validated, output);
            Ok(())
        }
        Err(refusal) => {
            let (reason, text) = (refusal.rule.to_string(), refusal.to_string());
            let failure =
                checked.refused(&refusal.subject, &refusal.serial, &reason, &text, output);
            Err(match hint(&refusal.rule) {
                Some(hint) => failure.hint(hint),
                None => failure,
            })
        }
    }
}

/// Fetches what the certificates of a path name that is valid, apart from revocation: whom no root vouches for does not decide
/// which servers are asked. Without a path nothing is fetched, and the refusal is that of the path.
fn fetch(
    evidence: &mut Evidence,
    leaf: &Certificate,
    certificates: &Material<'_>,
    options: &Options<'_>,
) -> Result<Result<(), Refusal>, Failure> {
    let options = Options { revocation: Revocation::Off, ..options.clone() };
    let path: Vec<_> = match validate(leaf, certificates, &options) {
        Ok(found) => found.path.into_iter().cloned().collect(),
        Err(refusal) => return Ok(Err(refusal)),
    };
    let runtime = crate::runtime::small()?;
    runtime.block_on(evidence.fetch_chain(&path, certificates.intermediates, options.at));
    // A name that is still being resolved must not keep the caller waiting.
    runtime.shutdown_background();
    Ok(Ok(()))
}

fn hint(rule: &Rule) -> Option<&'static str> {
    match rule {
        Rule::UnknownIssuer(_) => {
            Some("give the certificates in between with --chain, the roots with --trust")
        }
        Rule::TooLong(_) => Some("--depth sets how many CAs may be between it and a root"),
        Rule::RevocationUnknown(_) => {
            Some("give CRLs with --crl or OCSP responses with --ocsp, or fetch them with --fetch")
        }
        _ => None,
    }
}

struct Checked<'a> {
    arguments: &'a Arguments,
    at: i64,
    check: Check,
    evidence: &'a Evidence,
}

impl Checked<'_> {
    fn json(&self) -> serde_json::Value {
        json!({
            "at": rfc3339(self.at),
            "purpose": self.arguments.purpose.name(),
            "name": self.arguments.name,
            "revocation": self.check.name(),
            "crls": self.evidence.crls.len(),
            "ocsp_responses": self.evidence.ocsp.len(),
            "sources": self.evidence.sources,
        })
    }

    /// Prints the refusal as JSON, if that is asked for, and makes it a failure.
    fn refused(
        &self,
        subject: &str,
        serial: &[u8],
        reason: &str,
        text: &str,
        output: Output,
    ) -> Failure {
        if output == Output::Json {
            let value = json!({
                "file": files::json_path(&self.arguments.file),
                "valid": false,
                "certificate": subject,
                "serial": hex::encode(serial),
                "reason": reason,
                "checked": self.json(),
            });
            output.result("", &value);
        }
        Failure::file(&self.arguments.file, &text).code(REFUSED)
    }

    fn print(&self, validated: &Validated<'_>, output: Output) {
        let mut text = format!("{}: valid\n", self.arguments.file.display());
        let mut path = Vec::new();
        for (index, certificate) in validated.path.iter().enumerate() {
            let signature = describe::algorithm_name(certificate.signature_algorithm());
            let role = match index {
                0 => "certificate",
                index if index + 1 == validated.path.len() => "trusted root",
                _ => "issued by",
            };
            text.push_str(&format!(
                "  {role}: \"{}\", until {}, signed with {signature}\n",
                certificate.subject(),
                rfc3339(certificate.not_after()),
            ));
            path.push(json!({
                "subject": certificate.subject().to_string(),
                "serial": hex::encode(certificate.serial()),
                "not_after": rfc3339(certificate.not_after()),
                "signature": signature,
            }));
        }
        let mut what = vec![
            format!("at {}", rfc3339(self.at)),
            format!("for {}", self.arguments.purpose.name()),
        ];
        what.extend(self.arguments.name.as_ref().map(|name| format!("name {name}")));
        let unknown = &validated.undetermined;
        what.push(match self.check {
            Check::Off => "revocation not checked".to_owned(),
            _ => format!(
                "revocation by {} CRLs and {} OCSP responses, {}",
                self.evidence.crls.len(),
                self.evidence.ocsp.len(),
                match unknown.len() {
                    0 => "every status known".to_owned(),
                    count => format!("{count} of {} not known", validated.path.len() - 1),
                }
            ),
        });
        text.push_str(&format!("checked: {}\n", what.join("; ")));
        for (certificate, why) in unknown {
            let subject = certificate.subject();
            text.push_str(&format!("  whether \"{subject}\" is revoked is not known: {why}\n"));
        }
        let mut checked = self.json();
        checked["undetermined"] = unknown
            .iter()
            .map(|(one, why)| json!({ "subject": one.subject().to_string(), "reason": why }))
            .collect();
        let value = json!({
            "file": files::json_path(&self.arguments.file),
            "valid": true,
            "path": path,
            "policies": validated.policies.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "checked": checked,
        });
        output.result(&text, &value);
    }
}

fn identity(text: &str) -> Identity<'_> {
    match text.parse::<IpAddr>() {
        Ok(address) => Identity::Ip(address),
        Err(_) if text.contains('@') => Identity::Email(text),
        Err(_) => Identity::Dns(text),
    }
}
