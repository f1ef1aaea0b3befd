//! Signing a large file: time compared with `openssl dgst`, and memory.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use outlast_harness::pinned::peer;
use outlast_harness::server::status_kib;

use crate::Figure;
use crate::process::outlast;
use crate::statistics::{quantile, ratio};

pub(crate) fn measure(quick: bool) -> Result<Vec<Figure>, String> {
    let size: u64 = if quick { 256 << 20 } else { 2 << 30 };
    let rounds = if quick { 2 } else { 5 };
    let folder = crate::process::folder()?;
    let quickstart = folder.path("quickstart");
    let file = folder.path("large");
    // Random bytes in the page cache, because the disk is not measured.
    {
        use std::io::Write;
        let failed = |error: std::io::Error| error.to_string();
        let mut out = std::fs::File::create(&file).map_err(failed)?;
        let chunk: Vec<u8> = (0..1_u32 << 20).map(|n| (n % 251) as u8).collect();
        for _ in 0..size >> 20 {
            out.write_all(&chunk).map_err(failed)?;
        }
    }
    let small = folder.path("small");
    std::fs::write(&small, "small").map_err(|error| error.to_string())?;
    run(outlast()?.arg("quickstart").arg(&small).arg("--out").arg(&quickstart))?;
    let mut server = outlast()?
        .args(["server", "--listen", "127.0.0.1:0", "--log", "warn", "--data"])
        .arg(quickstart.join("data"))
        .stdout(std::process::Stdio::null())
        .spawn()
        .map_err(|error| error.to_string())?;
    // The server writes its port into the profile before it starts to listen.
    std::thread::sleep(Duration::from_secs(2));
    let outcome = compare(&file, &quickstart, rounds);
    let _ = server.kill();
    let _ = server.wait();
    let (mut ours, mut theirs, peak_kib) = outcome?;
    let (ours, theirs) = (quantile(&mut ours, 0.5), quantile(&mut theirs, 0.5));
    let speed = ratio(theirs, ours);
    let peak = peak_kib / 1024;
    let mib = size >> 20;
    let rate = |time: Duration| {
        #[expect(clippy::cast_precision_loss, reason = "MiB of a file")]
        let mib = mib as f64;
        mib / time.as_secs_f64()
    };
    Ok(vec![
        Figure {
            name: "outlast sign of a large file, speed / openssl dgst -sha512",
            value: format!("{speed:.3}"),
            limit: ">= 0.8",
            met: speed >= 0.8,
            note: format!(
                "{mib} MiB: {:.0} against {:.0} MiB/s, median of {rounds} in turns, page cache warm; \
                 AWS-LC's bare SHA-512 reaches {:.0} MiB/s here",
                rate(ours),
                rate(theirs),
                bare_sha512()?
            ),
        },
        Figure {
            name: "outlast sign of a large file, peak memory",
            value: format!("{peak} MiB"),
            limit: "< 64 MiB",
            met: peak < 64,
            note: "VmHWM".into(),
        },
    ])
}

/// MiB/s of the digest alone, over cached memory.
fn bare_sha512() -> Result<f64, String> {
    let row = outlast_crypto::digests::Digest::by_name("sha512").ok_or("no sha512")?;
    let block = vec![7; 128 << 10];
    let mut context = row.start();
    let begun = Instant::now();
    for _ in 0..4096 {
        context.update(&block);
    }
    context.finish();
    Ok(512.0 / begun.elapsed().as_secs_f64())
}

type Outcome = (Vec<Duration>, Vec<Duration>, u64);

fn compare(file: &Path, quickstart: &Path, rounds: usize) -> Result<Outcome, String> {
    let client = quickstart.join("data/client");
    let (mut ours, mut theirs, mut peak) = (Vec::new(), Vec::new(), 0);
    for _ in 0..rounds {
        let begun = Instant::now();
        let mut child = outlast()?
            .args(["sign", "--force", "--key", "alias/outlast-quickstart"])
            .arg(file)
            .env("AWS_CONFIG_FILE", client.join("config"))
            .env("AWS_SHARED_CREDENTIALS_FILE", client.join("credentials"))
            .env("AWS_PROFILE", "outlast")
            .stdout(std::process::Stdio::null())
            .spawn()
            .map_err(|error| error.to_string())?;
        let status = loop {
            if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
                break status;
            }
            if let Ok(kib) = status_kib(child.id(), "VmHWM") {
                peak = peak.max(kib);
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        ours.push(begun.elapsed());
        if !status.success() {
            return Err(format!("outlast sign failed: {status}"));
        }
        let begun = Instant::now();
        run(Command::new(openssl()).args(["dgst", "-sha512"]).arg(file))?;
        theirs.push(begun.elapsed());
    }
    Ok((ours, theirs, peak))
}

/// OpenSSL 3.5 if the peers are installed, the system's otherwise.
fn openssl() -> PathBuf {
    peer("openssl/bin/openssl").unwrap_or_else(|_| PathBuf::from("openssl"))
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}
