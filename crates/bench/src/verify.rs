//! `outlast verify` of many small files, each with a dual signature and the revocation of all its certificates.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use outlast_crypto::digests::DIGESTS;

use crate::Figure;
use crate::process::outlast;
use crate::statistics::quantile;

/// Files of a run.
const FILES: usize = 1000;
/// Longest time for all files.
const LIMIT: Duration = Duration::from_secs(2);
/// How long the CAs may take to publish their first CRLs.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn measure(quick: bool) -> Result<Vec<Figure>, String> {
    let folder = crate::process::folder()?;
    let _server = folder.serve()?;
    let place = folder.path("release");
    std::fs::create_dir(&place).map_err(|error| error.to_string())?;
    let bench = Bench { client: folder.data().join("client"), place };
    bench.run(&["sign", "setup", "--name", "bench", "--algorithm", "dual", "--create-ca"])?;
    let names: Vec<_> = (0..FILES).map(|n| format!("file-{n}")).collect();
    for name in &names {
        std::fs::write(bench.place.join(name), format!("the contents of {name}\n"))
            .map_err(|error| error.to_string())?;
    }
    bench.until_revocation_is_known(&names[0])?;
    bench.run(&[&SIGN[..], &["--force"], &texts(&names)].concat())?;
    let mut times = Vec::new();
    for _ in 0..if quick { 2 } else { 7 } {
        let begun = Instant::now();
        bench.run(&[&VERIFY[..], &texts(&names)].concat())?;
        times.push(begun.elapsed());
    }
    let middle = quantile(&mut times, 0.5);
    let message = std::fs::metadata(bench.place.join("file-0.p7s"));
    let len = message.map_err(|error| error.to_string())?.len();
    Ok(vec![
        Figure {
            name: "outlast verify of 1,000 small files, dual signatures, revocation embedded and required",
            value: format!("{:.2} s", middle.as_secs_f64()),
            limit: "< 2 s",
            met: middle < LIMIT,
            note: format!("median of {} runs; each signature has {len} bytes", times.len()),
        },
        digests(),
    ])
}

const SIGN: [&str; 4] = ["sign", "--key", "alias/bench", "--embed-revocation"];
const VERIFY: [&str; 5] = ["verify", "--trust", "bench-root.pem", "--revocation", "required"];

fn texts(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

/// A folder with files to sign, and the profile of a server.
struct Bench {
    client: PathBuf,
    place: PathBuf,
}

impl Bench {
    fn output(&self, arguments: &[&str]) -> Result<Output, String> {
        let profile = |name: &str| -> PathBuf { Path::join(&self.client, name) };
        let mut command: Command = outlast()?;
        command
            .args(arguments)
            .current_dir(&self.place)
            .env("AWS_CONFIG_FILE", profile("config"))
            .env("AWS_SHARED_CREDENTIALS_FILE", profile("credentials"))
            .env("AWS_PROFILE", "outlast");
        command.output().map_err(|error| error.to_string())
    }

    fn run(&self, arguments: &[&str]) -> Result<(), String> {
        let output = self.output(arguments)?;
        if output.status.success() {
            return Ok(());
        }
        Err(format!("{}: {}", arguments[0], String::from_utf8_lossy(&output.stderr)))
    }

    /// A new CA publishes its first CRL in the background.
    fn until_revocation_is_known(&self, name: &str) -> Result<(), String> {
        let until = Instant::now() + PATIENCE;
        loop {
            let signed = self.output(&[&SIGN[..], &["--force", name]].concat())?;
            let outcome = self.run(&[&VERIFY[..], &[name]].concat());
            if signed.status.success() && outcome.is_ok() {
                return Ok(());
            }
            if Instant::now() > until {
                let text = String::from_utf8_lossy(&signed.stderr).into_owned();
                return Err(outcome.err().unwrap_or(text));
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

/// The speeds of the digests that signatures may have, in turns.
fn digests() -> Figure {
    const ROUNDS: usize = 5;
    let block = vec![7; 128 << 10];
    let mut rates = vec![Vec::new(); DIGESTS.len()];
    for _ in 0..ROUNDS {
        for (row, rates) in DIGESTS.iter().zip(&mut rates) {
            let mut context = row.start();
            let begun = Instant::now();
            for _ in 0..512 {
                context.update(&block);
            }
            context.finish();
            rates.push(64.0 / begun.elapsed().as_secs_f64());
        }
    }
    let mut named: Vec<_> = DIGESTS.iter().zip(rates).collect();
    for (_, rates) in &mut named {
        rates.sort_by(f64::total_cmp);
    }
    let text = |(row, rates): &(&outlast_crypto::digests::Digest, Vec<f64>)| {
        format!("{} {:.0}", row.name, rates[ROUNDS / 2])
    };
    let texts: Vec<_> = named.iter().map(text).collect();
    Figure {
        name: "digests of large files, MiB/s",
        value: texts.first().cloned().unwrap_or_default(),
        limit: "-",
        met: true,
        note: format!("on one core, median of {ROUNDS} in turns: {}", texts.join(", ")),
    }
}
