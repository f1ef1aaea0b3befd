//! `outlast agent` with 1,000 secrets: the CPU time of reads at a steady rate, and the memory.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use outlast_harness::pinned::{Pinned, SERVER_CORE, free_address};
use outlast_harness::server::{Folder, Server, outlast, status_kib};
use rustix::fs::{Advice, fadvise};

use crate::Figure;
use crate::process::{outlast_binary, this_program};
use crate::secrets::fill;

/// Secrets that the agent keeps: its own limit.
const SECRETS: u32 = 1000;
/// Reads a second.
const RATE: u32 = 1000;
/// What clients show.
const TOKEN: &str = "token-of-the-benchmark";
/// Share of a core that the reads may take, in percent.
const CPU_LIMIT: f64 = 10.0;
/// Resident memory, in KiB.
const MEMORY_LIMIT: u64 = 20 << 10;

/// How clients connect.
#[derive(Clone, Copy)]
enum Connections {
    /// One for all reads.
    Kept,
    /// A new one for each read.
    New,
}

pub(crate) fn measure(quick: bool) -> Result<Vec<Figure>, String> {
    let folder = crate::process::folder()?;
    let server = folder.serve()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let names = runtime.block_on(fill(&server, SECRETS))?;
    let agent = start(&folder, &server)?;
    let (rounds, length) = if quick { (2, 2) } else { (6, 5) };
    // Each name once, so that all are kept.
    let clock = Instant::now();
    reads(agent.address, &names, names.len(), Connections::Kept)?;
    let filled = clock.elapsed();
    let mut shares = [Vec::new(), Vec::new()];
    for round in 0..rounds {
        for turn in 0..2 {
            let index = (round + turn) % 2;
            let connections = [Connections::Kept, Connections::New][index];
            let (before, clock) = (agent.cpu()?, Instant::now());
            reads(agent.address, &names, (RATE * length) as usize, connections)?;
            let spent = agent.cpu()?.saturating_sub(before);
            shares[index].push(100.0 * spent.as_secs_f64() / clock.elapsed().as_secs_f64());
        }
    }
    let memory = status_kib(agent.child.id(), "VmRSS")?;
    let own = status_kib(agent.child.id(), "RssAnon")?;
    let share = |name, mut shares: Vec<f64>| {
        shares.sort_by(f64::total_cmp);
        let middle = shares[shares.len() / 2];
        Figure {
            name,
            value: format!("{middle:.1} %"),
            limit: "<= 10 %",
            met: middle <= CPU_LIMIT,
            note: format!(
                "of one core; median of {rounds} blocks of {length} s in turns; {SECRETS} secrets in the cache"
            ),
        }
    };
    let [kept, new] = shares;
    Ok(vec![
        share("agent, 1,000 reads a second over a kept connection", kept),
        share("agent, 1,000 reads a second, each over a new connection", new),
        Figure {
            name: "agent, resident memory with 1,000 secrets",
            value: format!("{:.1} MiB", kib(memory) / 1024.0),
            limit: "<= 20 MiB",
            met: memory <= MEMORY_LIMIT,
            note: format!(
                "VmRSS after the reads; {:.1} MiB of it are its own, the rest are pages of the program, which was \
                 read from the disk; it got the secrets from the server in {:.1} s",
                kib(own) / 1024.0,
                filled.as_secs_f64(),
            ),
        },
    ])
}

#[expect(clippy::cast_precision_loss, reason = "far fewer KiB than a float counts exactly")]
fn kib(number: u64) -> f64 {
    number as f64
}

/// A copy of the program that is read from the disk, as after a start of the machine. A program that was just written lies in
/// the kernel's cache in large pieces, each of which counts as resident as a whole: the same program then has some MiB more.
fn read_again(folder: &Folder) -> Result<PathBuf, String> {
    let (program, copy) = (outlast_binary()?, folder.path("outlast"));
    let failed = |error: std::io::Error| format!("{}: {error}", copy.display());
    std::fs::copy(&program, &copy).map_err(failed)?;
    let file = File::open(&copy).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    fadvise(&file, 0, None, Advice::DontNeed).map_err(|error| failed(error.into()))?;
    Ok(copy)
}

/// An agent on one core, with the administrator's access key.
fn start(folder: &Folder, server: &Server) -> Result<Pinned, String> {
    let address = free_address()?;
    let credentials = server.access().client().credentials;
    let text = format!(
        "endpoint_url = 'https://localhost:{}'\nregion = 'us-east-1'\nca_bundle = '{}'\nhttp_port = {}\n\
         ttl_seconds = 3600\nlock_memory = 'prefer'\nlog_level = 'error'\n",
        server.port,
        folder.data().join("client/ca.pem").display(),
        address.port(),
    );
    let path = folder.path("agent.toml");
    std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    let secret = String::from_utf8_lossy(credentials.secret.expose()).into_owned();
    let mut command = outlast(&read_again(folder)?);
    command.args(["agent", "--config"]).arg(path).env("AWS_TOKEN", TOKEN);
    command.env("AWS_ACCESS_KEY_ID", credentials.access_key_id);
    command.env("AWS_SECRET_ACCESS_KEY", secret);
    Ok(Pinned::start(&this_program()?, &command, SERVER_CORE, address)?)
}

/// Reads this many secrets, one after the other, at the rate.
fn reads(
    address: SocketAddr,
    names: &[String],
    count: usize,
    connections: Connections,
) -> Result<(), String> {
    let mut kept = None;
    let begun = Instant::now();
    for (number, name) in (0_u32..).zip(names.iter().cycle().take(count)) {
        let due = Duration::from_secs(1) * number / RATE;
        // A read that comes too late does not move the later ones.
        std::thread::sleep(due.saturating_sub(begun.elapsed()));
        let stream = match connections {
            Connections::New => None,
            Connections::Kept => kept.take(),
        };
        let mut stream = match stream {
            Some(stream) => stream,
            None => connect(address).map_err(|error| format!("{address}: {error}"))?,
        };
        read(&mut stream, name).map_err(|error| format!("{name}: {error}"))?;
        kept = Some(stream);
    }
    Ok(())
}

fn connect(address: SocketAddr) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    Ok(stream)
}

/// One read, as a client of AWS's agent makes it.
fn read(stream: &mut TcpStream, name: &str) -> std::io::Result<()> {
    let wrong = |what: &str| std::io::Error::other(what.to_owned());
    let request = format!(
        "GET /v1/{name} HTTP/1.1\r\nHost: localhost\r\nX-Aws-Parameters-Secrets-Token: {TOKEN}\r\n\r\n"
    );
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let read = stream.read(&mut piece)?;
        answer.extend_from_slice(
            piece.get(..read).filter(|part| !part.is_empty()).ok_or_else(|| wrong("it hung up"))?,
        );
        let Some(head) = answer.windows(4).position(|part| part == b"\r\n\r\n") else { continue };
        let text =
            String::from_utf8_lossy(answer.get(..head).unwrap_or_default()).to_ascii_lowercase();
        if !text.starts_with("http/1.1 200") {
            return Err(wrong(text.lines().next().unwrap_or_default()));
        }
        let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize =
            length.and_then(|length| length.parse().ok()).ok_or_else(|| wrong("no length"))?;
        if answer.len() >= head + 4 + length {
            return Ok(());
        }
    }
}
