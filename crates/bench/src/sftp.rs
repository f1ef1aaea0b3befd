//! The SFTP door next to OpenSSH's sshd and sftp-server, and to a server of the libraries that SFTPGo is made of: CPU time of
//! handshakes and logins, throughput, and many sessions.
//!
//! The servers run as processes on one core, in turns; clients are on the other core.

mod client;
mod servers;

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use outlast_harness::pinned::{CLIENT_CORE, has_two_cores, stay_on};
use outlast_harness::server::status_kib;
use outlast_ssh::ClientConfig;
use tokio::task::JoinSet;

use crate::Figure;
use crate::statistics::{quantile, ratio};
use client::{Login, Session, config};
use servers::{FILE, Target, World};

/// Connections that are made at a time.
const IN_FLIGHT: usize = 6;
/// Sessions whose memory is limited.
const IDLE: u64 = 5000;
/// Limit on it, in MiB.
const IDLE_LIMIT: u64 = 400;
/// Sessions that begin at once: fewer than one address and one user may have.
const AT_ONCE: usize = 1000;
/// The method that clients prefer, and what it is compared with.
const HYBRID: &str = "mlkem768x25519-sha256";
const CLASSICAL: &str = "curve25519-sha256";
/// What the server built on Go's libraries is.
const GO: &str = "golang.org/x/crypto/ssh and github.com/pkg/sftp, of which SFTPGo is made";

/// The way that a file goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Get,
    Put,
}

/// A cipher and the names of its figures.
struct Cipher {
    name: &'static str,
    get: Names,
    put: Names,
}

/// Names of a transfer's figures.
struct Names {
    throughput: &'static str,
    cpu: &'static str,
    go_throughput: &'static str,
    go_cpu: &'static str,
}

macro_rules! names {
    ($transfer:literal) => {
        Names {
            throughput: concat!($transfer, ", throughput / OpenSSH's sftp-server"),
            cpu: concat!($transfer, ", server CPU / OpenSSH's sftp-server"),
            go_throughput: concat!($transfer, ", throughput / a server built on Go's libraries"),
            go_cpu: concat!($transfer, ", server CPU / a server built on Go's libraries"),
        }
    };
}

const CIPHERS: [Cipher; 2] = [
    Cipher {
        name: "aes256-gcm@openssh.com",
        get: names!("SFTP get, AES-256-GCM"),
        put: names!("SFTP put, AES-256-GCM"),
    },
    Cipher {
        name: "chacha20-poly1305@openssh.com",
        get: names!("SFTP get, ChaCha20-Poly1305"),
        put: names!("SFTP put, ChaCha20-Poly1305"),
    },
];

pub(crate) fn measure(quick: bool) -> Result<Vec<Figure>, String> {
    if !has_two_cores() {
        return Err("two cores are needed: one for the servers, one for the clients".into());
    }
    let size: u64 = if quick { 256 << 20 } else { 1 << 30 };
    let world = World::new(size)?;
    let mut figures = Vec::new();
    for way in [Way::Get, Way::Put] {
        let servers = world.servers(way)?;
        if way == Way::Get {
            figures.extend(handshakes(&world, &servers, quick)?);
        }
        for cipher in &CIPHERS {
            figures.extend(transfers(&world, &servers, cipher, way, quick)?);
        }
    }
    figures.push(at_once(&world)?);
    figures.push(idle(&world, quick)?);
    Ok(figures)
}

/// What clients do again and again.
#[derive(Clone)]
enum Work {
    Handshake(&'static str),
    Session(Arc<Login>),
}

/// CPU time of servers for each connection.
fn handshakes(world: &World, servers: &[Target; 3], quick: bool) -> Result<Vec<Figure>, String> {
    let [ours, openssh, go] = servers;
    let (rounds, time) = if quick { (3, 700) } else { (11, 2000) };
    let time = Duration::from_millis(time);
    let login = |target| Work::Session(Arc::new(world.login(target, 0)));
    let runs = [
        (ours, Work::Handshake(HYBRID)),
        (ours, Work::Handshake(CLASSICAL)),
        (openssh, Work::Handshake(HYBRID)),
        (ours, login(ours)),
        (openssh, login(openssh)),
        (go, Work::Handshake(HYBRID)),
        (go, login(go)),
    ];
    let mut samples = [const { Vec::new() }; 7];
    for round in 0..=rounds {
        for offset in 0..runs.len() {
            let index = (round + offset) % runs.len();
            let (target, work) = &runs[index];
            let before = target.cpu()?;
            let count = again_and_again(target, work, time)?;
            let spent = target.cpu()?.saturating_sub(before);
            // The first round warms up.
            if round > 0 {
                samples[index].push(spent / u32::try_from(count).unwrap_or(u32::MAX).max(1));
            }
        }
    }
    let [hybrid, classical, theirs, session, their_session, go, go_session] =
        samples.map(|mut samples| quantile(&mut samples, 0.5));
    let (upgrade, against) = (ratio(hybrid, classical), ratio(theirs, hybrid));
    let micros = |time: Duration| time.as_micros();
    Ok(vec![
        Figure {
            name: "server CPU of an SSH handshake, mlkem768x25519-sha256",
            value: format!("{} µs", micros(hybrid)),
            limit: "<= 200 µs",
            met: hybrid <= Duration::from_micros(200),
            note: format!(
                "from accept to the end of the key exchange and of the connection, with the kernel's part, an Ed25519 host \
                 key; {IN_FLIGHT} at a time, median of {rounds} turns"
            ),
        },
        Figure {
            name: "server CPU of an SSH handshake, hybrid / classical (curve25519-sha256)",
            value: format!("{upgrade:.3}"),
            limit: "<= 1.2",
            met: upgrade <= 1.2,
            note: format!("{} / {} µs", micros(hybrid), micros(classical)),
        },
        Figure {
            name: "hybrid SSH handshakes for each server CPU second / OpenSSH 10.0's sshd",
            value: format!("{against:.1}"),
            limit: ">= 20",
            met: against >= 20.0,
            note: format!(
                "{} against {} µs; sshd starts processes",
                micros(hybrid),
                micros(theirs)
            ),
        },
        Figure {
            name: "SFTP sessions (login with a key, INIT, end) for each server CPU second / OpenSSH 10.0's",
            value: format!("{:.1}", ratio(their_session, session)),
            limit: "-",
            met: true,
            note: format!(
                "{} against {} µs; begin and end are events of the audit trail, on disk, here only",
                micros(session),
                micros(their_session)
            ),
        },
        Figure {
            name: "hybrid SSH handshakes for each server CPU second / a server built on Go's libraries",
            value: format!("{:.2}", ratio(go, hybrid)),
            limit: "-",
            met: true,
            note: format!("{} against {} µs; {GO}", micros(hybrid), micros(go)),
        },
        Figure {
            name: "SFTP sessions for each server CPU second / a server built on Go's libraries",
            value: format!("{:.2}", ratio(go_session, session)),
            limit: "-",
            met: true,
            note: format!(
                "{} against {} µs; it confines nobody and records nothing",
                micros(session),
                micros(go_session)
            ),
        },
    ])
}

fn runtime() -> Result<tokio::runtime::Runtime, String> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())
}

/// Runs a program of clients on their core.
fn on_client_core<T: Send>(
    work: impl AsyncFnOnce() -> Result<T, String> + Send,
) -> Result<T, String> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            stay_on(CLIENT_CORE)?;
            runtime()?.block_on(work())
        });
        thread.join().map_err(|_| "a client died".to_owned())?
    })
}

/// Connects again and again for the given time; returns how often.
fn again_and_again(target: &Target, work: &Work, time: Duration) -> Result<u64, String> {
    let address = target.address;
    on_client_core(async || {
        let over = Arc::new(AtomicBool::new(false));
        let count = Arc::new(AtomicU64::new(0));
        let mut tasks = JoinSet::new();
        for _ in 0..IN_FLIGHT {
            let (work, over, count) = (work.clone(), over.clone(), count.clone());
            tasks.spawn(async move {
                while !over.load(Ordering::Relaxed) {
                    match &work {
                        Work::Handshake(method) => {
                            client::handshake(address, config(method)).await?;
                        }
                        Work::Session(login) => {
                            client::session(login, config(HYBRID)).await?.end().await?;
                        }
                    }
                    count.fetch_add(1, Ordering::Relaxed);
                }
                Ok::<_, String>(())
            });
        }
        tokio::time::sleep(time).await;
        over.store(true, Ordering::Relaxed);
        while let Some(ended) = tasks.join_next().await {
            ended
                .map_err(|error| error.to_string())?
                .map_err(|e| format!("{}: {e}", target.name))?;
        }
        Ok(count.load(Ordering::Relaxed))
    })
}

/// What a transfer takes.
#[derive(Default)]
struct Spent {
    time: Vec<Duration>,
    cpu: Vec<Duration>,
}

impl Spent {
    fn median(mut self) -> (Duration, Duration) {
        (quantile(&mut self.time, 0.5), quantile(&mut self.cpu, 0.5))
    }
}

/// Get or put of a large file with OpenSSH's client. What a session without files takes is measured in the same turns and
/// left out.
fn transfers(
    world: &World,
    servers: &[Target; 3],
    cipher: &Cipher,
    way: Way,
    quick: bool,
) -> Result<Vec<Figure>, String> {
    let rounds = if quick { 2 } else { 7 };
    let mut spent: [[Spent; 2]; 3] = Default::default();
    for round in 0..=rounds {
        for turn in 0..servers.len() {
            let server = (round + turn) % servers.len();
            let target = &servers[server];
            let job = match way {
                Way::Get => format!("get {} {}", target.remote(FILE), world.local().display()),
                Way::Put => {
                    format!("put {} {}", world.local().display(), target.remote("uploaded"))
                }
            };
            for (job, spent) in [job, "pwd".to_owned()].into_iter().zip(&mut spent[server]) {
                let (before, begun) = (target.cpu()?, Instant::now());
                world.sftp(target, cipher.name, &[job])?;
                let time = begun.elapsed();
                let cpu = target.cpu()?.saturating_sub(before);
                // The first round warms up.
                if round > 0 {
                    spent.time.push(time);
                    spent.cpu.push(cpu);
                }
            }
        }
    }
    let [ours, theirs, go] = spent.map(|jobs| {
        let [all, none] = jobs.map(Spent::median);
        (all.0.saturating_sub(none.0), all.1.saturating_sub(none.1))
    });
    let ((time, cpu), (their_time, their_cpu), (go_time, go_cpu)) = (ours, theirs, go);
    let rates = |other| {
        format!("{:.0} against {:.0} MiB/s", rate(world.size, time), rate(world.size, other))
    };
    let work = |other: Duration| format!("{} against {} ms", cpu.as_millis(), other.as_millis());
    let (faster, less) = (ratio(their_time, time), ratio(cpu, their_cpu));
    let (names, place) = match way {
        Way::Get => (&cipher.get, "of a disk, in the page cache"),
        Way::Put => (&cipher.put, "in memory"),
    };
    Ok(vec![
        Figure {
            name: names.throughput,
            value: format!("{faster:.2}"),
            limit: ">= 0.9",
            met: faster >= 0.9,
            note: format!(
                "{}; {} MiB {place}, OpenSSH 10.0's client, median of {rounds} turns",
                rates(their_time),
                world.size >> 20,
            ),
        },
        Figure {
            name: names.cpu,
            value: format!("{less:.2}"),
            limit: "<= 0.7",
            met: less <= 0.7,
            note: work(their_cpu),
        },
        Figure {
            name: names.go_throughput,
            value: format!("{:.2}", ratio(go_time, time)),
            limit: "-",
            met: true,
            note: rates(go_time),
        },
        Figure {
            name: names.go_cpu,
            value: format!("{:.2}", ratio(cpu, go_cpu)),
            limit: "-",
            met: true,
            note: work(go_cpu),
        },
    ])
}

/// MiB a second.
fn rate(size: u64, time: Duration) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a number of mebibytes")]
    let size = (size >> 20) as f64;
    size / time.as_secs_f64()
}

/// Sessions that begin at the same moment, from one address and of one user.
fn at_once(world: &World) -> Result<Figure, String> {
    let ours = world.ours(Way::Put)?;
    let begun = Instant::now();
    let (sessions, refused) = on_client_core(async || {
        let mut tasks = JoinSet::new();
        let login = Arc::new(world.login(&ours, 0));
        for _ in 0..AT_ONCE {
            let login = login.clone();
            tasks.spawn(async move { client::session(&login, config(HYBRID)).await });
        }
        let mut sessions = Vec::new();
        let mut refused = Vec::new();
        while let Some(ended) = tasks.join_next().await {
            match ended.map_err(|error| error.to_string())? {
                Ok(session) => sessions.push(session),
                Err(error) => refused.push(error),
            }
        }
        // They were open together until here.
        Ok((sessions.len(), refused))
    })?;
    let first = refused.first().map(|error| format!("; the first error: {error}"));
    Ok(Figure {
        name: "SFTP sessions that begin at once, refused ones of 1,000",
        value: refused.len().to_string(),
        limit: "0",
        met: refused.is_empty() && sessions == AT_ONCE,
        note: format!(
            "one user, one address; all open after {:.1} s{}",
            begun.elapsed().as_secs_f64(),
            first.unwrap_or_default()
        ),
    })
}

/// Memory of sessions that do nothing.
fn idle(world: &World, quick: bool) -> Result<Figure, String> {
    let ours = world.ours(Way::Put)?;
    let count = if quick { IDLE / 10 } else { IDLE };
    let before = status_kib(ours.pid, "VmRSS")?;
    let after = on_client_core(async || {
        let held = hold(world, &ours, usize::try_from(count).unwrap_or(usize::MAX)).await?;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let after = status_kib(ours.pid, "VmRSS")?;
        drop(held);
        Ok(after)
    })?;
    // With fewer sessions the result is extrapolated.
    let all = (before + after.saturating_sub(before) * IDLE / count) / 1024;
    Ok(Figure {
        name: "resident memory with 5,000 idle SFTP sessions",
        value: format!("{all} MiB"),
        limit: "< 400 MiB",
        met: all < IDLE_LIMIT,
        note: format!(
            "{} MiB with {count} sessions that have logged in and started SFTP, {} MiB before",
            after / 1024,
            before / 1024
        ),
    })
}

/// Opens sessions, a few at a time, of all users and from as many addresses.
async fn hold(world: &World, target: &Target, count: usize) -> Result<Vec<Session>, String> {
    let configuration: Arc<ClientConfig> = config(HYBRID);
    let mut held = Vec::new();
    let mut tasks = JoinSet::new();
    for number in 0..count {
        let host = u8::try_from(1 + number % servers::USERS).unwrap_or(1);
        let login =
            Login { from: Some(Ipv4Addr::new(127, 0, 0, host)), ..world.login(target, number) };
        let configuration = configuration.clone();
        tasks.spawn(async move { client::session(&login, configuration).await });
        if tasks.len() >= 32 {
            let ended = tasks.join_next().await.ok_or("no session")?;
            held.push(ended.map_err(|error| error.to_string())??);
        }
    }
    while let Some(ended) = tasks.join_next().await {
        held.push(ended.map_err(|error| error.to_string())??);
    }
    Ok(held)
}
