//! `outlast siege`: hostile patterns against a server on this machine, beside a client that behaves.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use indicatif::ProgressBar;
use outlast_lab::error::LabError;
use outlast_lab::siege::{
    Compared, GROWTH_KIB, Given, Measured, Memory, PATTERNS, PEAK_KIB, Pattern, RATIO, Settings,
    Stage, check_loopback, run as besiege,
};
use outlast_pki::pem;
use serde_json::{Value, json};

use outlast_terminal::failure::Failure;
use outlast_terminal::output::{self, Output};
use outlast_terminal::{files, profile};

/// Exit code for a missed limit.
const MISSED: u8 = 5;
/// Windows of each kind.
const ROUNDS: u32 = 3;
/// The same in the short form: two, so that memory that is not freed is noticed.
const SHORT_ROUNDS: u32 = 2;

/// Arguments of `siege`.
///
/// Exit codes: 0 all limits are met; 5 one is missed; 1 it could not be measured; 2 wrong usage.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// List the patterns, and the defence against each.
    #[arg(long)]
    list: bool,
    /// Run this pattern only; may be repeated.
    #[arg(long, value_name = "PATTERN")]
    only: Vec<String>,
    /// Seconds of each quiet and each attacked window [default: 5, or 1 with --short].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: Option<u64>,
    /// Quiet windows, and as many attacked ones [default: 3, or 2 with --short]. With 6 and more, the memory after
    /// the last attack is compared with that after the middle one: it must have reached a plateau.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=100))]
    rounds: Option<u32>,
    /// Use an eighth of the connections and short windows; times are reported without limits.
    #[arg(long)]
    short: bool,
    /// A running server at a loopback address, instead of one that is started for each pattern. The siege makes a KMS
    /// key, a CA and an ACME endpoint in it and leaves them.
    #[arg(long, value_name = "ADDRESS:PORT", requires = "data")]
    target: Option<SocketAddr>,
    /// Address of its plain HTTP [default: the next port].
    #[arg(long, value_name = "ADDRESS:PORT", requires = "target")]
    plain: Option<SocketAddr>,
    /// Its data folder, for the administrator's access key and the trusted certificates.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Its process id, for watching its memory.
    #[arg(long, requires = "target")]
    pid: Option<u32>,
}

pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    if arguments.list {
        list(output);
        return Ok(());
    }
    let patterns = chosen(&arguments.only)?;
    let given = arguments.target.map(|target| given(arguments, target)).transpose()?;
    let program = std::env::current_exe()
        .map_err(|error| Failure::new(format!("the program does not know where it is: {error}")))?;
    let seconds = arguments.seconds.unwrap_or(if arguments.short { 1 } else { 5 });
    let settings = Settings {
        program,
        temporary: std::env::temp_dir(),
        given,
        window: Duration::from_secs(seconds),
        rounds: arguments.rounds.unwrap_or(if arguments.short { SHORT_ROUNDS } else { ROUNDS }),
        short: arguments.short,
    };
    let shown = output::spinner("");
    let rows = besiege(settings, &patterns, &mut |stage| tell(&shown, stage));
    shown.finish_and_clear();
    let rows = rows.map_err(|error| failure(&error))?;
    let timed = !arguments.short;
    let missed: Vec<Vec<String>> = rows.iter().map(|row| row.missed(timed)).collect();
    output.result(&table(&rows, &missed, timed), &document(&rows, &missed, timed));
    let count = missed.iter().filter(|missed| !missed.is_empty()).count();
    if count == 0 {
        return Ok(());
    }
    Err(Failure::new(format!("{count} of {} patterns miss a limit", rows.len()))
        .hint("docs/siege.md says which limit of the server stops each pattern")
        .code(MISSED))
}

fn tell(shown: &ProgressBar, stage: Stage<'_>) {
    match stage {
        Stage::Preparing => shown.set_message("filling a store"),
        Stage::Trying(pattern) => shown.set_message(format!("{}: {}", pattern.name, pattern.what)),
        Stage::Skipped(pattern, reason) => {
            shown.suspend(|| output::warning(&format!("{} is left out: {reason}", pattern.name)));
        }
    }
}

/// The rows with these names, or all.
fn chosen(only: &[String]) -> Result<Vec<&'static Pattern>, Failure> {
    for name in only {
        if !PATTERNS.iter().any(|row| row.name == name) {
            return Err(Failure::new(format!("no pattern is named {name}"))
                .hint("see them with: outlast siege --list")
                .code(2));
        }
    }
    let wanted = |row: &&Pattern| only.is_empty() || only.iter().any(|name| name == row.name);
    Ok(PATTERNS.iter().filter(wanted).collect())
}

fn given(arguments: &Arguments, address: SocketAddr) -> Result<Given, Failure> {
    let plain = match arguments.plain {
        Some(plain) => plain,
        None => SocketAddr::new(address.ip(), address.port().saturating_add(1)),
    };
    for address in [address, plain] {
        check_loopback(address).map_err(|error| failure(&error).code(2))?;
    }
    let Some(folder) = &arguments.data else {
        return Err(Failure::new("--target needs --data").code(2));
    };
    let settings =
        profile::Connection::of_folder(folder, format!("https://{address}")).settings()?;
    let roots = pem::read_certificates(&files::read(&settings.ca_bundle, 4 << 20)?)
        .map_err(|error| Failure::file(&settings.ca_bundle, &error))?;
    let secret = String::from_utf8_lossy(settings.secret.expose()).into_owned();
    let access_key = settings.access_key_id;
    Ok(Given { address, plain, roots, access_key, secret, pid: arguments.pid })
}

fn failure(error: &LabError) -> Failure {
    let failure = Failure::new(error.to_string());
    match error {
        LabError::Plan(_) => failure.hint("see what it takes with: outlast siege --help"),
        LabError::Peer { .. } => failure.hint("see the server's log"),
        _ => failure,
    }
}

fn list(output: Output) {
    let mut text = String::new();
    for row in PATTERNS {
        text.push_str(&format!(
            "{} ({}, {} connections)\n  {}\n  stopped by: {}\n",
            row.name,
            row.door.name(),
            row.connections,
            row.what,
            row.stopped_by
        ));
    }
    let rows: Vec<Value> = PATTERNS
        .iter()
        .map(|row| {
            json!({
                "pattern": row.name, "door": row.door.name(), "what": row.what,
                "stopped_by": row.stopped_by, "connections": row.connections,
            })
        })
        .collect();
    output.result(&text, &rows);
}

/// The table in Markdown, as in the benchmark, with missed limits below.
fn table(rows: &[Measured], missed: &[Vec<String>], timed: bool) -> String {
    let mut text = String::from(
        "| pattern | good client's p50/p99, quiet | attacked | ratio | failures | memory before, peak, after | attack | CPU of attacker, server | met |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    for (row, missed) in rows.iter().zip(missed) {
        text.push_str(&format!(
            "| {} | {} | {} | {} | {} |\n",
            row.pattern,
            row.worst().map_or_else(|| "- | - | -".to_owned(), times),
            row.failures,
            [memory(row.memory.as_ref()), volume(row), cpu(row)].join(" | "),
            if missed.is_empty() { "yes" } else { "NO" },
        ));
    }
    for (row, missed) in rows.iter().zip(missed) {
        for reason in missed {
            text.push_str(&format!("\n{}: {reason}", row.pattern));
        }
    }
    text.push_str(&format!(
        "\nlimits: ratio {}, failures 0, peak {} MiB above the start, {} MiB more after the last attack than after the first (with many attacks: than after the middle one)\n",
        if timed { format!("{RATIO:.0}") } else { "none in the short form".to_owned() },
        PEAK_KIB / 1024,
        GROWTH_KIB / 1024,
    ));
    text.push_str("times are those of the kind of call that suffers most; the attacker runs on the same machine\n");
    text
}

fn times(worst: &Compared) -> String {
    format!(
        "{}: {:.1}/{:.1} ms | {:.1}/{:.1} ms | {:.1}",
        worst.name,
        worst.quiet.p50_ms,
        worst.quiet.p99_ms,
        worst.attacked.p50_ms,
        worst.attacked.p99_ms,
        worst.ratio
    )
}

fn memory(memory: Option<&Memory>) -> String {
    let Some(memory) = memory else { return "not watched".to_owned() };
    let last = memory.after_kib.last().copied().unwrap_or_default();
    format!("{}, {}, {} MiB", memory.before_kib / 1024, memory.peak_kib / 1024, last / 1024)
}

fn volume(row: &Measured) -> String {
    let volume = &row.volume;
    format!("{} connections, {} requests", volume.connections, volume.requests)
}

fn cpu(row: &Measured) -> String {
    let seconds = |ms: u64| format!("{}.{} s", ms / 1000, ms % 1000 / 100);
    let server = row.server_cpu_ms.map_or_else(|| "not known".to_owned(), seconds);
    format!("{}, {server}", seconds(row.volume.cpu_ms))
}

fn document(rows: &[Measured], missed: &[Vec<String>], timed: bool) -> Value {
    let rows: Vec<Value> = rows
        .iter()
        .zip(missed)
        .map(|(row, missed)| {
            let mut value = serde_json::to_value(row).unwrap_or_default();
            value["ratio"] = row.worst().map_or(Value::Null, |worst| worst.ratio.into());
            value["memory_is_flat"] = row.memory.as_ref().map(Memory::is_flat).into();
            value["missed"] = missed.as_slice().into();
            value
        })
        .collect();
    json!({
        "patterns": rows,
        "limits": {
            "ratio": timed.then_some(RATIO), "failures": 0, "peak_kib": PEAK_KIB, "growth_kib": GROWTH_KIB,
        },
    })
}
