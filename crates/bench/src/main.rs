//! Measures what post-quantum costs in Outlast, and prints a table: `cargo xtask bench`.
//!
//! Every figure is a ratio or a difference of two things that ran interleaved in one run, because machines are
//! noisy. CPU is measured on one thread without sockets; whole programs are measured as processes.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line of its own")]

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
mod serve;
mod statistics;

use std::process::ExitCode;

/// One line of the table.
struct Figure {
    name: &'static str,
    value: String,
    limit: &'static str,
    met: bool,
    note: String,
}

/// Measures; quickly if asked to.
type Case = fn(bool) -> Result<Vec<Figure>, String>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [first, rest @ ..] = arguments.as_slice()
        && first == "serve"
    {
        return match serve::run(rest) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("error: {error}");
                ExitCode::FAILURE
            }
        };
    }
    let quick = std::env::args().any(|argument| argument == "--quick");
    let only: Vec<String> =
        std::env::args().skip(1).filter(|text| !text.starts_with("--")).collect();
    let cases: [(&str, Case); 11] = [
        ("handshake", handshake::measure),
        ("doors", doors::measure),
        ("observers", observers::measure),
        ("quic", quic::measure),
        ("proxy", proxy::measure),
        ("requests", requests::measure),
        ("revocation", revocation::measure),
        ("keys", keys::measure),
        ("authority", authority::measure),
        ("files", files::measure),
        ("process", process::measure),
    ];
    println!("| figure | measured | limit | met | how |");
    println!("|---|---|---|---|---|");
    let mut all_met = true;
    for (name, case) in cases {
        if !only.is_empty() && !only.iter().any(|wanted| wanted == name) {
            continue;
        }
        match case(quick) {
            Ok(figures) => {
                for figure in figures {
                    all_met &= figure.met;
                    println!(
                        "| {} | {} | {} | {} | {} |",
                        figure.name,
                        figure.value,
                        figure.limit,
                        if figure.met { "yes" } else { "NO" },
                        figure.note
                    );
                }
            }
            Err(error) => {
                eprintln!("error: {name}: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    if all_met { ExitCode::SUCCESS } else { ExitCode::from(5) }
}
