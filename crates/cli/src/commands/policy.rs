//! `outlast policy`: shows, compares and explains security policies, and what a client gets under one.

mod ssh;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use outlast_crypto::groups::{GROUPS, Group, Strength};
use outlast_crypto::schemes::{SCHEMES, Scheme};
use outlast_crypto::ssh::Algorithm;
use outlast_crypto::suites::{SUITES, Suite};
use outlast_crypto::versions::Version;
use outlast_negotiate::catalogue::POLICIES;
use outlast_negotiate::decide::CertificateFacts;
use outlast_negotiate::diff::{Diff, diff};
use outlast_negotiate::explain::{
    Explanation, Outcome, certificate, every_certificate, explain, outcome,
};
use outlast_negotiate::names::nearest;
use outlast_negotiate::offer::{Collected, MAX_CLIENT_HELLO, collect};
use outlast_negotiate::{Offer, Rules, SecurityPolicy, Transport};
use serde_json::{Map, Value, json};

use crate::failure::{Failure, USAGE};
use crate::output::Output;
use crate::tables::fitted;
use crate::{files, tls, values};

/// Arguments of `policy`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// List the policies that a listener can have.
    List {
        /// Include those for SSH alone, which only SFTP listeners can have.
        #[arg(long)]
        all: bool,
    },
    /// Show the contents of a policy, and its source.
    Show {
        /// Name of the policy.
        name: String,
    },
    /// Show how the second policy differs from the first, and which common clients are affected.
    Diff {
        /// Name of the present policy.
        from: String,
        /// Name of the other policy.
        to: String,
    },
    /// Explain what a policy means and whom it serves; given a client's offer, exactly what it would get and why.
    Explain(Box<Explain>),
    /// Write a policy's part for SSH as a policy file of ssh-audit, for `ssh-audit -P FILE`.
    SshAudit(ssh::Audit),
}

#[derive(clap::Args)]
struct Explain {
    /// Name of the policy.
    name: String,
    /// How to apply its post-quantum groups: require, prefer, allow or off [default: the policy's own].
    #[arg(long, value_parser = values::modes(), hide_possible_values = true)]
    mode: Option<String>,
    /// File with a ClientHello, as TLS records or handshake message, in binary or hexadecimal.
    #[arg(long, conflicts_with_all = ["groups", "shares", "suites", "schemes", "tls"])]
    client: Option<PathBuf>,
    /// Groups that the client offers, in its order: IANA names, or code points such as 0x11ec.
    #[arg(long, value_delimiter = ',')]
    groups: Option<Vec<String>>,
    /// Groups that it sends key shares for [default: the first of --groups].
    #[arg(long, value_delimiter = ',')]
    shares: Option<Vec<String>>,
    /// Cipher suites that it offers [default: all known ones].
    #[arg(long, value_delimiter = ',')]
    suites: Option<Vec<String>>,
    /// Signature schemes that it offers [default: all known ones].
    #[arg(long, value_delimiter = ',')]
    schemes: Option<Vec<String>>,
    /// Versions that it offers: TLSv1.3, TLSv1.2 [default: both].
    #[arg(long, value_delimiter = ',')]
    tls: Option<Vec<String>>,
    /// Explain a handshake over QUIC.
    #[arg(long)]
    quic: bool,
    /// Signature scheme of the server's certificate; may be repeated, the preferred one first [default: a certificate of
    /// each kind].
    #[arg(long = "certificate", value_delimiter = ',')]
    certificates: Vec<String>,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    match &arguments.command {
        Command::List { all } => list(*all, output),
        Command::Show { name } => show(named(name)?, output),
        Command::Diff { from, to } => {
            let found = diff(named(from)?, named(to)?);
            output.result(&fitted(&diff_text(&found)), &found);
        }
        Command::Explain(arguments) => explained(arguments, output)?,
        Command::SshAudit(arguments) => ssh::audit(arguments, output)?,
    }
    Ok(())
}

/// The policy with this name.
fn named(name: &str) -> Result<&'static SecurityPolicy, Failure> {
    tls::policy(name).map_err(|failure| failure.code(USAGE))
}

fn properties(row: &SecurityPolicy) -> Vec<&'static str> {
    let mut out = Vec::new();
    if row.name == POLICIES[0].name {
        out.push("default");
    }
    if row.has_tls() {
        out.push("tls");
    }
    if row.has_ssh() {
        out.push("ssh");
    }
    if row.is_post_quantum_only() {
        out.push("post-quantum only");
    }
    if row.is_fips() {
        out.push("fips");
    }
    out
}

fn list(all: bool, output: Output) {
    let mut text = String::new();
    let listed: Vec<_> = POLICIES.iter().filter(|row| all || row.has_tls()).collect();
    for row in &listed {
        let _ = writeln!(text, "{}\n  {}", row.name, row.summary);
        let _ = writeln!(text, "  {}", properties(row).join(", "));
    }
    if listed.len() < POLICIES.len() {
        let left = POLICIES.len() - listed.len();
        let _ = writeln!(text, "\n{left} more are for SSH alone: --all lists them");
    }
    let rows: Vec<_> = listed.into_iter().map(head).collect();
    output.result(&text, &rows.into_iter().map(Value::Object).collect::<Vec<_>>());
}

fn head(row: &SecurityPolicy) -> Map<String, Value> {
    let mut out = Map::new();
    out.insert("name".into(), row.name.into());
    out.insert("summary".into(), row.summary.into());
    out.insert("mode".into(), row.mode.name().into());
    out.insert("properties".into(), json!(properties(row)));
    out
}

fn show(row: &SecurityPolicy, output: Output) {
    let mut text = format!("{}\n{}\n", row.name, row.summary);
    let _ = writeln!(text, "{}; mode {}", properties(row).join(", "), row.mode);
    let mut value = head(row);
    for list in row.lists() {
        value.insert(list.name.replace(' ', "_"), json!(list.values));
        if list.values.is_empty() {
            continue;
        }
        let _ = writeln!(text, "\n{}", list.name);
        for name in list.values {
            let note = note(name);
            let _ = match note {
                Some(note) => writeln!(text, "  {name:<40} {note}"),
                None => writeln!(text, "  {name}"),
            };
        }
    }
    for (title, lines) in [("differences", row.differences), ("sources", row.sources)] {
        value.insert(title.into(), json!(lines));
        if !lines.is_empty() {
            let _ = writeln!(text, "\n{title}");
            for line in lines {
                let _ = writeln!(text, "  {line}");
            }
        }
    }
    output.result(&text, &value);
}

/// Explains a name that does not explain itself.
fn note(name: &str) -> Option<String> {
    if let Some(row) = Group::by_name(name) {
        let strength = match row.strength {
            Strength::Hybrid => "hybrid",
            Strength::PostQuantum => "post-quantum",
            Strength::Classical => "classical",
        };
        return Some(format!("{:#06x} {strength}", row.code_point));
    }
    let code = Suite::by_name(name).map(|row| row.code_point);
    let code = code.or_else(|| Scheme::by_name(name).map(|row| row.code_point));
    code.map(|code| format!("{code:#06x}"))
        .or_else(|| Algorithm::by_name(name).map(|row| row.source.to_owned()))
}

fn diff_text(found: &Diff) -> String {
    if found.is_empty() {
        return format!("{} and {} are the same", found.from, found.to);
    }
    let mut text = format!("from {} to {}\n", found.from, found.to);
    if let Some((before, after)) = found.mode {
        let _ = writeln!(text, "\nmode\n  - {before}\n  + {after}");
    }
    for list in &found.lists {
        let _ = writeln!(text, "\n{}", list.list);
        for name in &list.removed {
            let _ = writeln!(text, "  - {name}");
        }
        for name in &list.added {
            let _ = writeln!(text, "  + {name}");
        }
        if let Some(names) = &list.reordered {
            let _ = writeln!(text, "  in another order: {}", names.join(", "));
        }
    }
    if !found.clients.is_empty() {
        let _ = writeln!(text, "\ncommon clients");
        for change in &found.clients {
            let lost = if change.lost { " (no longer served)" } else { "" };
            let _ = writeln!(text, "  {}{lost}", change.client);
            let _ = writeln!(text, "    - {}\n    + {}", change.before, change.after);
        }
    }
    text
}

fn explained(arguments: &Explain, output: Output) -> Result<(), Failure> {
    let policy = named(&arguments.name)?;
    let Some(offer) = offer(arguments)? else {
        let mode = arguments.mode.as_deref().map(str::parse).transpose();
        let mode = mode.map_err(|error: String| Failure::new(error))?;
        let rules = Rules { policy, mode: mode.unwrap_or(policy.mode) };
        let found = explain(&rules);
        output.result(&fitted(&explanation_text(&found)), &found);
        return Ok(());
    };
    let rules = tls::rules(Some(policy.name), arguments.mode.as_deref())?;
    let found = outcome(&rules, &offer, &certificates(&arguments.certificates)?);
    let mut value = json!({ "policy": policy.name, "mode": rules.mode.name(), "offer": offer });
    if let (Value::Object(value), Ok(Value::Object(found))) =
        (&mut value, serde_json::to_value(&found))
    {
        value.extend(found);
    }
    output.result(&fitted(&outcome_text(&rules, &found)), &value);
    Ok(())
}

fn explanation_text(found: &Explanation) -> String {
    let mut text = format!("{} in the mode {}\n{}\n", found.policy, found.mode, found.summary);
    for sentence in &found.meaning {
        let _ = writeln!(text, "{sentence}");
    }
    if !found.groups.is_empty() {
        let _ = writeln!(text, "\ngroups, in order of preference");
        for reason in &found.groups {
            let _ = writeln!(text, "  {}: {}", reason.group, reason.why);
        }
    }
    let titles = [
        ("served, if the server has a suitable certificate", true),
        ("refused, whatever the certificate", false),
    ];
    for (title, served) in titles {
        let clients: Vec<_> = found.clients.iter().filter(|fare| fare.served == served).collect();
        if !clients.is_empty() {
            let _ = writeln!(text, "\n{title}");
            for fare in clients {
                let _ = writeln!(text, "  {}: {}", fare.client, fare.outcome);
            }
        }
    }
    if let Some(found) = &found.ssh {
        ssh::explanation_text(found, &mut text);
    }
    for (title, lines) in [("differences", found.differences), ("sources", found.sources)] {
        if !lines.is_empty() {
            let _ = writeln!(text, "\n{title}");
            for line in lines {
                let _ = writeln!(text, "  {line}");
            }
        }
    }
    text
}

fn outcome_text(rules: &Rules, found: &Outcome) -> String {
    let verdict = match (found.served, found.post_quantum) {
        (true, true) => "served, post-quantum",
        (true, false) => "served, classical",
        (false, _) => "refused",
    };
    let mut text = format!("{} in the mode {}: {verdict}\n", rules.policy.name, rules.mode);
    for step in &found.steps {
        let _ = writeln!(text, "  {step}");
    }
    text
}

/// The client's offer, if the options describe one.
fn offer(arguments: &Explain) -> Result<Option<Offer>, Failure> {
    let transport = if arguments.quic { Transport::Quic } else { Transport::Tcp };
    if let Some(path) = &arguments.client {
        return read_offer(path, transport).map(Some);
    }
    let given = [&arguments.shares, &arguments.suites, &arguments.schemes, &arguments.tls];
    let Some(groups) = &arguments.groups else {
        let certificates = !arguments.certificates.is_empty();
        if given.iter().any(|list| list.is_some()) || arguments.quic || certificates {
            return Err(Failure::new(
                "an offer without groups does not determine the key exchange",
            )
            .hint("give --groups or --client")
            .code(2));
        }
        return Ok(None);
    };
    let groups = codes("--groups", &GROUP, groups)?;
    let shares = match &arguments.shares {
        Some(names) => codes("--shares", &GROUP, names)?,
        None => groups.iter().take(1).copied().collect(),
    };
    if let Some(stray) = shares.iter().find(|code| !groups.contains(code)) {
        let message =
            format!("--shares: there is a share of {stray:#06x}, which is not in --groups");
        return Err(Failure::new(message)
            .hint("clients send shares only of groups that they offer (RFC 8446, section 4.2.8)")
            .code(2));
    }
    let given_or_all = |option: &str, known: &Known, names: &Option<Vec<String>>| match names {
        Some(names) => codes(option, known, names),
        None => Ok((known.all)().into_iter().map(|(_, code)| code).collect()),
    };
    let suites = given_or_all("--suites", &SUITE, &arguments.suites)?;
    let schemes = given_or_all("--schemes", &SCHEME, &arguments.schemes)?;
    let versions = given_or_all("--tls", &VERSION, &arguments.tls)?;
    let is_13 = versions.contains(&Version::Tls13.code_point());
    let extensions: &[u16] = if is_13 { &[10, 13, 43, 51] } else { &[10, 13] };
    Ok(Some(Offer {
        transport,
        versions,
        suites,
        groups,
        shares: is_13.then_some(shares),
        schemes,
        certificate_schemes: None,
        sni: None,
        protocols: Vec::new(),
        extensions: extensions.to_vec(),
        resumes: false,
    }))
}

fn read_offer(path: &Path, transport: Transport) -> Result<Offer, Failure> {
    // Room for hexadecimal with line breaks, and for the headers of records.
    let bytes = files::read(path, 4 * MAX_CLIENT_HELLO)?;
    let wrong = |error: &str| {
        Failure::file(path, &error)
            .hint("give the TLS records or the handshake message, in binary or hexadecimal")
    };
    let digits: Vec<u8> =
        bytes.iter().filter(|byte| !byte.is_ascii_whitespace()).copied().collect();
    let bytes = hex::decode(&digits).unwrap_or(bytes);
    let message = match bytes.first() {
        // A handshake message begins with its type, a record with another.
        Some(1) => bytes,
        _ => match collect(&bytes) {
            Collected::Complete(message) => message,
            Collected::Incomplete => return Err(wrong("the ClientHello is cut off")),
            Collected::Malformed(error) => return Err(wrong(&error.to_string())),
        },
    };
    Offer::parse(&message, transport).map_err(|error| wrong(&error.to_string()))
}

fn certificates(names: &[String]) -> Result<Vec<CertificateFacts>, Failure> {
    if names.is_empty() {
        return Ok(every_certificate());
    }
    let row = |name: &String| {
        let found = Scheme::by_name(name).map(|row| certificate(&[row]));
        found.ok_or_else(|| unknown("--certificate", &SCHEME, name))
    };
    names.iter().map(row).collect()
}

/// A kind of name on the command line, and the code points.
struct Known {
    what: &'static str,
    all: fn() -> Vec<(&'static str, u16)>,
}

const GROUP: Known =
    Known { what: "group", all: || GROUPS.iter().map(|row| (row.name, row.code_point)).collect() };
const SUITE: Known = Known {
    what: "cipher suite",
    all: || SUITES.iter().map(|row| (row.name, row.code_point)).collect(),
};
const SCHEME: Known = Known {
    what: "signature scheme",
    all: || SCHEMES.iter().map(|row| (row.name, row.code_point)).collect(),
};
const VERSION: Known = Known {
    what: "version of TLS",
    all: || Version::ALL.iter().map(|version| (version.name(), version.code_point())).collect(),
};

/// Names or code points in this option. An unknown name is an error.
fn codes(option: &str, known: &Known, names: &[String]) -> Result<Vec<u16>, Failure> {
    let all = (known.all)();
    let mut codes = Vec::new();
    // Lists for `openssl -groups` have colons.
    for name in names.iter().flat_map(|name| name.split(':')) {
        // OpenSSL writes X25519, IANA x25519.
        let by_name = all.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        let by_code = || u16::from_str_radix(name.strip_prefix("0x")?, 16).ok();
        let code = by_name.map(|(_, code)| *code).or_else(by_code);
        let code = code.ok_or_else(|| unknown(option, known, name))?;
        if codes.contains(&code) {
            let message = format!("{option}: the {} {name} is given twice", known.what);
            return Err(Failure::new(message).code(USAGE));
        }
        codes.push(code);
    }
    Ok(codes)
}

fn unknown(option: &str, known: &Known, name: &str) -> Failure {
    let names: Vec<_> = (known.all)().into_iter().map(|(name, _)| name).collect();
    let hint = match nearest(name, names.iter().copied()) {
        Some(nearest) => format!("did you mean {nearest}? code points are written like 0x11ec"),
        None => format!(
            "choose one of {}; write others as code points, such as 0x11ec",
            names.join(", ")
        ),
    };
    Failure::new(format!("{option}: there is no {} {name:?}", known.what)).hint(hint).code(USAGE)
}
