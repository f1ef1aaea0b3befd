//! `outlast proxy` compared with Debian's nginx: bulk transfer, and the memory of idle connections.
//!
//! Both terminate TLS 1.3 and forward to the same server, as one process on one core. The clients only do the
//! handshake: afterwards they count the bytes that arrive and do not decrypt them, so that the proxy is the
//! bottleneck.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use outlast_harness::pinned::{CLIENT_CORE, Pinned, SERVER_CORE, free_address, peer, stay_on};
use outlast_harness::server::status_kib;
use outlast_net::certificate::KINDS;
use outlast_net::policy::Policy;
use rustix::process::{Resource, getrlimit};
use rustls::ClientConfig;

use crate::identity::Identity;
use crate::load::{client, connect};
use crate::process::this_program;
use crate::statistics::quantile;
use crate::{Figure, serve};

/// Connections that carry bytes at the same time.
const STREAMS: usize = 4;
/// Idle connections to which the limit applies.
const IDLE: u64 = 10_000;

pub(crate) fn measure(quick: bool) -> Result<Vec<Figure>, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let identity = Identity::make(folder.path(), &KINDS[0], "ECC_NIST_P256")?;
    let behind = free_address()?;
    let _backend = Pinned::start(
        &this_program()?,
        &serve::command("backend", behind, &identity)?,
        CLIENT_CORE,
        behind,
    )?;
    let start = |command: &dyn Fn(SocketAddr) -> Result<Command, String>| {
        let address = free_address()?;
        let started = Pinned::start(&this_program()?, &command(address)?, SERVER_CORE, address);
        started.map_err(String::from)
    };
    // nginx's default is slower in bulk and uses less memory when idle: each test compares with the better setting.
    let with_buffer =
        |buffer| start(&|address| nginx(folder.path(), address, behind, &identity, buffer));
    let (large, usual) = (with_buffer("128k")?, with_buffer("16k")?);
    let ours = start(&|address| ours(address, behind, &identity))?;
    let config = client(&Policy::default())?;
    let mut figures = bulk(&ours, [&large, &usual], &config, quick)?;
    figures.push(idle(&ours, &usual, &config, quick)?);
    Ok(figures)
}

fn bulk(
    ours: &Pinned,
    [large, usual]: [&Pinned; 2],
    config: &Arc<ClientConfig>,
    quick: bool,
) -> Result<Vec<Figure>, String> {
    let (rounds, time) = if quick { (3, 300) } else { (15, 1000) };
    let time = Duration::from_millis(time);
    let servers = [ours, large, usual];
    // Per gibibyte: elapsed time, and CPU time of the proxy.
    let mut taken: [Vec<Duration>; 3] = Default::default();
    let mut spent: [Vec<Duration>; 3] = Default::default();
    for round in 0..=rounds {
        for offset in 0..servers.len() {
            let index = (round + offset) % servers.len();
            let before = servers[index].cpu()?;
            let (bytes, wall) = receive(servers[index].address, config, time)?;
            let cpu = servers[index].cpu()?.saturating_sub(before);
            // The first round warms up.
            if round > 0 {
                taken[index].push(for_a_gibibyte(wall, bytes));
                spent[index].push(for_a_gibibyte(cpu, bytes));
            }
        }
    }
    let median = |mut samples: Vec<Duration>| quantile(&mut samples, 0.5).as_secs_f64();
    let [our_time, large_time, usual_time] = taken.map(median);
    let [our_cpu, large_cpu, usual_cpu] = spent.map(median);
    let (their_time, their_cpu) = (large_time.min(usual_time), large_cpu.min(usual_cpu));
    let rate = |seconds: f64| format!("{:.0}", 1024.0 / seconds);
    let (throughput, work) = (their_time / our_time, their_cpu / our_cpu);
    Ok(vec![
        Figure {
            name: "bulk throughput through the proxy / through Debian's nginx",
            value: format!("{throughput:.2}"),
            limit: ">= 0.9",
            met: throughput >= 0.9,
            note: format!(
                "{} against {} MiB/s; TLS 1.3, TLS_AES_256_GCM_SHA384, {STREAMS} connections, each proxy on one core, clients and the server behind on the other; median of {rounds} turns; nginx with buffers of 128 KiB {}, with its own of 16 KiB {}",
                rate(our_time),
                rate(their_time),
                rate(large_time),
                rate(usual_time),
            ),
        },
        Figure {
            name: "the same for each CPU second of the proxy",
            value: format!("{work:.2}"),
            limit: ">= 0.9",
            met: work >= 0.9,
            note: format!(
                "{} against {} MiB; nginx with large buffers {}, with its own {}",
                rate(our_cpu),
                rate(their_cpu),
                rate(large_cpu),
                rate(usual_cpu),
            ),
        },
    ])
}

fn for_a_gibibyte(time: Duration, bytes: u64) -> Duration {
    #[expect(clippy::cast_precision_loss, reason = "a ratio")]
    time.mul_f64((1u64 << 30) as f64 / bytes.max(1) as f64)
}

/// Receives for the given time over several connections; returns the number of bytes and the elapsed time.
fn receive(
    address: SocketAddr,
    config: &Arc<ClientConfig>,
    time: Duration,
) -> Result<(u64, Duration), String> {
    let begin = std::sync::Barrier::new(STREAMS);
    let one = || -> Result<(u64, Duration), String> {
        stay_on(CLIENT_CORE)?;
        let opened = open(address, config, b"+").map_err(|error| error.to_string());
        begin.wait();
        let mut socket = opened?;
        let begun = Instant::now();
        let mut piece = vec![0; 256 * 1024];
        let mut bytes = 0;
        while begun.elapsed() < time {
            match socket.read(&mut piece).map_err(|error| error.to_string())? {
                0 => return Err("the proxy closed the connection".into()),
                read => bytes += read as u64,
            }
        }
        Ok((bytes, begun.elapsed()))
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..STREAMS).map(|_| scope.spawn(one)).collect();
        let mut all = (0, Duration::ZERO);
        for thread in threads {
            let (bytes, time) = thread.join().map_err(|_| "a client died")??;
            all = (all.0 + bytes, all.1.max(time));
        }
        Ok(all)
    })
}

/// Connects and sends a request to the server behind the proxy.
fn open(address: SocketAddr, config: &Arc<ClientConfig>, wanted: &[u8]) -> io::Result<TcpStream> {
    let (mut socket, mut connection) = connect(address, config)?;
    connection.writer().write_all(wanted)?;
    while connection.wants_write() {
        connection.write_tls(&mut socket)?;
    }
    Ok(socket)
}

fn idle(
    ours: &Pinned,
    nginx: &Pinned,
    config: &Arc<ClientConfig>,
    quick: bool,
) -> Result<Figure, String> {
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    // The proxy needs two descriptors per connection.
    let count = IDLE.min(descriptors.saturating_sub(100) / 2).min(if quick { 500 } else { IDLE });
    let held = |server: &Pinned| -> Result<(u64, u64), String> {
        let before = status_kib(server.child.id(), "VmRSS")?;
        let open = hold(server.address, config, count)?;
        std::thread::sleep(Duration::from_millis(500));
        let after = status_kib(server.child.id(), "VmRSS")?;
        drop(open);
        Ok((before, after))
    };
    let (before, after) = held(ours)?;
    let (_, theirs) = held(nginx)?;
    // With fewer descriptors the result is extrapolated.
    let all = before + after.saturating_sub(before) * IDLE / count;
    Ok(Figure {
        name: "resident memory of the proxy with 10,000 idle connections",
        value: format!("{} MiB", all / 1024),
        limit: "< 600 MiB",
        met: all / 1024 < 600,
        note: format!(
            "{} MiB with {count} connections that have carried a byte both ways and their {count} to the server behind, {} MiB before; nginx {} MiB",
            after / 1024,
            before / 1024,
            theirs / 1024,
        ),
    })
}

/// Opens connections, each of which echoes one byte and is then idle.
fn hold(
    address: SocketAddr,
    config: &Arc<ClientConfig>,
    count: u64,
) -> Result<Vec<TcpStream>, String> {
    let some = |count: u64| -> Result<Vec<TcpStream>, String> {
        stay_on(CLIENT_CORE)?;
        (0..count).map(|_| held_open(address, config).map_err(|error| error.to_string())).collect()
    };
    let some = &some;
    let shares = (0..8).map(|index| count / 8 + u64::from(index < count % 8));
    std::thread::scope(|scope| {
        let threads: Vec<_> = shares.map(|share| scope.spawn(move || some(share))).collect();
        let mut all = Vec::new();
        for thread in threads {
            all.extend(thread.join().map_err(|_| "a client died")??);
        }
        Ok(all)
    })
}

fn held_open(address: SocketAddr, config: &Arc<ClientConfig>) -> io::Result<TcpStream> {
    let (mut socket, mut connection) = connect(address, config)?;
    let mut stream = rustls::Stream::new(&mut connection, &mut socket);
    let mut back = [0];
    stream.write_all(b"x")?;
    stream.read_exact(&mut back)?;
    Ok(socket)
}

/// One process without a master, so that its CPU time is complete.
fn nginx(
    folder: &Path,
    address: SocketAddr,
    behind: SocketAddr,
    identity: &Identity,
    buffer: &str,
) -> Result<Command, String> {
    let binary = peer("nginx/bin/nginx")?;
    let modules = peer("nginx/modules/ngx_stream_module.so")?;
    let modules = std::fs::canonicalize(modules).map_err(|error| error.to_string())?;
    let text = format!(
        "load_module {modules};
daemon off;
master_process off;
pid {folder}/nginx-{buffer}.pid;
error_log stderr error;
events {{ worker_connections 30000; }}
stream {{
    server {{
        listen {address} ssl backlog=4096;
        ssl_certificate {certificate};
        ssl_certificate_key {key};
        ssl_protocols TLSv1.3;
        ssl_conf_command Ciphersuites TLS_AES_256_GCM_SHA384;
        proxy_pass {behind};
        proxy_timeout 1h;
        proxy_buffer_size {buffer};
        tcp_nodelay on;
    }}
}}
",
        modules = modules.display(),
        folder = folder.display(),
        certificate = identity.certificate.display(),
        key = identity.key.display(),
    );
    let place = folder.join(format!("nginx-{buffer}.conf"));
    std::fs::write(&place, text).map_err(|error| error.to_string())?;
    let mut command = Command::new(binary);
    command.arg("-p").arg(folder).arg("-c").arg(place).args(["-e", "stderr"]);
    Ok(command)
}

fn ours(address: SocketAddr, behind: SocketAddr, identity: &Identity) -> Result<Command, String> {
    let mut command = serve::command("proxy", address, identity)?;
    command.arg(behind.to_string());
    Ok(command)
}
