//! Handshakes by s2n-tls. `s2n-peer client` carries out cases from standard input; `s2n-peer server` is the bare
//! server that the benchmark compares with.
//!
//! A case and its answer are lines of JSON (`client.rs`); s2n-tls speaks over blocking sockets (`socket.rs`).

mod client;
mod server;
mod socket;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.first().map(String::as_str) {
        Some("client") => client::run(),
        Some("server") => server::run(&arguments[1..]),
        _ => Err("usage: s2n-peer client < CASES\n       s2n-peer server --listen ADDRESS --cert PEM --key PEM --policy NAME [--tickets]".into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
