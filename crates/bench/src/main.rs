//! Measures what post-quantum costs in Outlast, and prints a table: `cargo xtask bench`.
//!
//! Every figure is a ratio or difference of two things that ran interleaved in one run, because machines are noisy.
//! CPU time is measured on one thread without sockets; whole programs are measured as processes.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line of its own")]

mod against;
mod agent;
mod authority;
mod doors;
mod files;
mod handshake;
mod identity;
mod keys;
mod load;
mod observers;
mod process;
mod proxy;
mod quic;
mod requests;
mod revocation;
mod secrets;
mod serve;
mod sftp;
mod statistics;
mod timestamps;
mod trail;
mod verify;

use std::path::PathBuf;
use std::process::ExitCode;

use outlast_harness::pinned;

/// One line of the table.
struct Figure {
    name: &'static str,
    value: String,
    limit: &'static str,
    met: bool,
    note: String,
}

/// Measures a case; the flag asks for a quick run.
type Case = fn(bool) -> Result<Vec<Figure>, String>;

const CASES: &[(&str, Case)] = &[
    ("handshake", handshake::measure),
    ("doors", doors::measure),
    ("observers", observers::measure),
    ("quic", quic::measure),
    ("proxy", proxy::measure),
    ("requests", requests::measure),
    ("revocation", revocation::measure),
    ("timestamps", timestamps::measure),
    ("keys", keys::measure),
    ("secrets", secrets::measure),
    ("agent", agent::measure),
    ("sftp", sftp::measure),
    ("authority", authority::measure),
    ("trail", trail::measure),
    ("files", files::measure),
    ("verify", verify::measure),
    ("process", process::measure),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.as_slice() {
        [first, rest @ ..] if first == "serve" => serve::run(rest).map(|()| true),
        [first, name, argument] if first == "agent" && *name == pinned::AGENT.name => {
            (pinned::AGENT.run)(argument).map(|()| true).map_err(String::from)
        }
        _ => Plan::parse(arguments).and_then(|plan| plan.run()),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(5),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Command line: `[--quick] [--against PROGRAM] [CASE...]`.
#[derive(Default)]
struct Plan {
    quick: bool,
    /// Program of another build; if present, nothing else is measured.
    against: Option<PathBuf>,
    /// Cases; empty means all.
    cases: Vec<String>,
}

impl Plan {
    fn parse(arguments: Vec<String>) -> Result<Self, String> {
        let mut plan = Self::default();
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--quick" => plan.quick = true,
                "--against" => {
                    let program =
                        arguments.next().ok_or("--against needs the path of an outlast")?;
                    plan.against = Some(program.into());
                }
                name if CASES.iter().any(|(known, _)| *known == name) => plan.cases.push(argument),
                other => {
                    let names: Vec<_> = CASES.iter().map(|(name, _)| *name).collect();
                    return Err(format!(
                        "there is no case {other}; there are {}",
                        names.join(", ")
                    ));
                }
            }
        }
        Ok(plan)
    }

    /// Prints the table; returns whether all limits were met.
    fn run(&self) -> Result<bool, String> {
        println!("| figure | measured | limit | met | how |");
        println!("|---|---|---|---|---|");
        if let Some(program) = &self.against {
            return Ok(print(against::measure(program, self.quick)?));
        }
        let mut all_met = true;
        for (name, case) in CASES {
            if self.cases.is_empty() || self.cases.iter().any(|wanted| wanted == name) {
                let figures = case(self.quick).map_err(|error| format!("{name}: {error}"))?;
                all_met &= print(figures);
            }
        }
        Ok(all_met)
    }
}

fn print(figures: Vec<Figure>) -> bool {
    let mut all_met = true;
    for Figure { name, value, limit, met, note } in figures {
        all_met &= met;
        println!("| {name} | {value} | {limit} | {} | {note} |", if met { "yes" } else { "NO" });
    }
    all_met
}
