//! Engine 3: real stacks in network namespaces over an emulated link.
//!
//! Two namespaces, a TUN device in each, and one thread between them ([`wire`]). File descriptors of this process
//! hold everything, so that nothing is left however it ends; [`guard`] takes care of the rest. The loss of a packet
//! depends only on the seed, the number of its connection and its position in it ([`flows`]), so that two runs meet
//! the same losses.

mod agents;
mod clock;
mod draw;
mod ends;
mod flows;
mod guard;
mod kernel;
mod namespace;
mod netem;
mod openssl;
mod packet;
mod pair;
mod peer;
mod script;
pub mod selftest;
mod tls;
mod wire;

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tun_rs::{DeviceBuilder, SyncDevice};

use self::agents::{Ends, Exec, Line};
use self::clock::{nanos, now_ns};
use self::flows::{Chance, LAST_SPARED};
pub use self::flows::{Flow, Lost};
use self::guard::Guard;
use self::namespace::Namespace;
use self::pair::{Pair, START};
use self::peer::Peer;
use self::script::Script;
pub use self::tls::Foreign;
use self::tls::Named;
use self::wire::{EDGES_NS, Shape, Wire};
use crate::error::LabError;
use crate::link::{Link, Outcome, Transfer};
use crate::run::Settings;
use crate::subject::Subject;
use crate::trace::{Side, Trace};
use outlast_harness::agent::Agent;

/// Figures of the emulation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Proof {
    /// The method: `tun`. The kernel's netem can neither repeat losses nor report its lateness.
    pub emulator: String,
    /// Whether its thread has real-time priority.
    pub real_time: bool,
    /// Median of TCP connect times minus the requested round-trip time, before calibration, in microseconds.
    pub uncalibrated_us: f64,
    /// The same after calibration.
    pub calibrated_us: f64,
    /// What calibration has subtracted from the requested round-trip time, in microseconds: how much earlier than after that time a
    /// packet may return.
    #[serde(default)]
    pub removed_us: f64,
    /// Packets in each direction: client to server, server to client.
    pub packets: [u64; 2],
    /// Packets that were lost on purpose, in each direction.
    pub lost: [u64; 2],
    /// Packets that were dropped because a queue was full, in each direction.
    pub dropped: [u64; 2],
    /// Lateness in microseconds of packets that leave the link, compared with when they were due: upper edges of the
    /// histogram's bins.
    pub late_edges_us: Vec<f64>,
    /// Packets in each bin, and beyond the last.
    pub late_counts: Vec<u64>,
    /// Packets that may have waited more than 50 microseconds before the link read them, because its thread overslept
    /// or did not run. An upper bound: the time since their device was last seen empty, minus the time in which it
    /// was watched and the thread woke on time. What remains unknown is how long the thread takes to wake for a
    /// packet when no other was due.
    #[serde(default)]
    pub read_late: u64,
    /// Congestion control and other pinned settings; the actual niceness of each live process at the ends.
    pub kernel: Vec<(String, String)>,
}

/// An emulated link with a namespace at each end. Removed when dropped; after a kill the kernel removes it.
pub struct Live<'a> {
    // In the order in which they must be stopped.
    pairs: Vec<Pair>,
    wire: Wire,
    places: [Namespace; 2],
    guard: Guard,
    executable: PathBuf,
    stop: &'a AtomicBool,
    seed: u64,
    link: Link,
    deadline: Duration,
    uncalibrated_us: f64,
    calibrated_us: f64,
    removed_us: f64,
    kernel: Vec<(String, String)>,
    next_port: u16,
}

/// A client and a server at the ends of the link.
pub const ENDS_AGENT: Agent = Agent { name: "live-ends", run: agents::ends };
/// Runs any command at an end of the link.
pub const EXEC_AGENT: Agent = Agent { name: "live-exec", run: agents::exec };

/// Whether this machine supports it; the error says what it lacks.
pub fn available() -> Result<(), LabError> {
    Namespace::make(|| Ok(())).map_err(|_| {
        LabError::unavailable(
            "the live engine",
            "it makes network namespaces, which needs root (or the capabilities SYS_ADMIN, NET_ADMIN and SYS_NICE)",
        )
    })?;
    if !kernel::has_congestion() {
        return Err(LabError::unavailable(
            "the live engine",
            "TCP's congestion control cubic is not loaded: `modprobe tcp_cubic`",
        ));
    }
    let tun = Path::new("/dev/net/tun");
    File::options().read(true).write(true).open(tun).map(drop).map_err(|error| {
        LabError::unavailable(
            "the live engine",
            format!(
                "it needs the device /dev/net/tun ({error}): load the kernel module tun, or give the device to the container"
            ),
        )
    })
}

impl<'a> Live<'a> {
    /// Makes namespaces and link, and calibrates. All waits end soon after `stop` is set.
    pub fn open(
        settings: &Settings,
        link: &Link,
        seed: u64,
        stop: &'a AtomicBool,
    ) -> Result<Self, LabError> {
        available()?;
        let mut guard = Guard::take()?;
        let ((client, near), (server, far), kernel) = guard.with_congestion_control(|| {
            let client = Namespace::make(|| device("outlast-lab-c", CLIENT))?;
            let server = Namespace::make(|| device("outlast-lab-s", SERVER))?;
            let kernel = server.0.within(kernel::told)?;
            Ok((client, server, kernel))
        })?;
        let wire = Wire::start([near, far], shape(link, seed, 0))?;
        let mut live = Self {
            pairs: Vec::new(),
            guard,
            wire,
            places: [client, server],
            executable: settings.executable.clone(),
            stop,
            seed,
            link: *link,
            deadline: DEADLINE,
            uncalibrated_us: 0.0,
            calibrated_us: 0.0,
            removed_us: 0.0,
            kernel,
            next_port: 0,
        };
        live.calibrate()?;
        Ok(live)
    }

    /// Uses the same namespaces for another link, calibrated again; the count of packets starts again.
    pub fn set_link(&mut self, link: &Link, seed: u64) -> Result<(), LabError> {
        (self.link, self.seed) = (*link, seed);
        self.calibrate()
    }

    /// Sets how long one connection may take before it counts as failed; the default is a minute or two.
    pub fn set_deadline(&mut self, deadline: Duration) {
        self.deadline = deadline;
    }

    /// Makes connections one after the other, with flows from `first` on: the same seed and flow lose the same
    /// packets.
    pub fn connections(
        &mut self,
        stack: &str,
        subject: &Subject,
        transfer: Transfer,
        first: u64,
        count: u64,
    ) -> Result<Vec<Outcome>, LabError> {
        let mut outcomes = Vec::new();
        self.each_connection(stack, subject, transfer, first, count, &mut |outcome| {
            outcomes.push(outcome);
        })?;
        Ok(outcomes)
    }

    /// The same, reported in batches: what was reported before an error was measured.
    pub fn each_connection(
        &mut self,
        stack: &str,
        subject: &Subject,
        transfer: Transfer,
        first: u64,
        count: u64,
        told: &mut dyn FnMut(Outcome),
    ) -> Result<(), LabError> {
        let index = match stack {
            "rustls" => self.pair(&Script::Rustls(Named::new(subject)))?,
            openssl::NAME => self.openssl(subject, transfer)?,
            _ => {
                return Err(LabError::Plan(format!(
                    "the live engine has no TLS implementation named {stack}: rustls or openssl"
                )));
            }
        };
        self.each(index, transfer, first, count, &mut |outcome, _| told(outcome))
    }

    /// The same with a server that was started at the server's end in another way, by [`Self::at`], and is listening.
    /// With a body of 0 there is only a handshake; otherwise the answer is what the server sends.
    pub fn connections_to(
        &mut self,
        server: &Foreign,
        subject: &Subject,
        transfer: Transfer,
        first: u64,
        count: u64,
    ) -> Result<Vec<Outcome>, LabError> {
        let index = self.pair(&Script::Foreign(Named::new(subject), server.clone()))?;
        let mut outcomes = Vec::new();
        self.each(index, transfer, first, count, &mut |outcome, _| outcomes.push(outcome))?;
        Ok(outcomes)
    }

    /// Waits until something listens at this address of the server's end.
    pub fn wait_for(&self, address: SocketAddr, patience: Duration) -> Result<(), LabError> {
        self.wait_until(address, patience, &mut || Ok(()))
    }

    /// Makes connections whose ends send as many bytes, after as much work, as in a measured handshake: TCP is real,
    /// TLS is not.
    pub fn play(
        &mut self,
        trace: &Trace,
        transfer: Transfer,
        first: u64,
        count: u64,
    ) -> Result<Vec<Outcome>, LabError> {
        let script = Script::Play(trace.clone());
        let mut outcomes = Vec::new();
        let index = self.pair(&script)?;
        self.each(index, transfer, first, count, &mut |outcome, _| outcomes.push(outcome))?;
        Ok(outcomes)
    }

    /// The same, with what the link saw of each connection.
    pub fn play_watched(
        &mut self,
        trace: &Trace,
        transfer: Transfer,
        first: u64,
        count: u64,
    ) -> Result<Vec<(Outcome, Flow)>, LabError> {
        let script = Script::Play(trace.clone());
        let mut outcomes = Vec::new();
        let index = self.pair(&script)?;
        self.each(index, transfer, first, count, &mut |outcome, flow| {
            outcomes.push((outcome, flow));
        })?;
        Ok(outcomes)
    }

    /// The command, to be run at this end of the link: with the same arguments, environment and folder. Its standard
    /// streams are those of a new command; it is killed when the thread that starts it ends.
    pub fn at(&self, side: Side, command: &Command) -> Command {
        let exec = Exec {
            namespace: self.place(side).path(),
            parent: std::process::id(),
            program: command.get_program().to_owned(),
            arguments: command.get_args().map(ToOwned::to_owned).collect(),
        };
        let argument = serde_json::to_string(&exec).unwrap_or_default();
        let mut there = Command::new(&self.executable);
        there.args(["agent", EXEC_AGENT.name]).arg(argument);
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => there.env(name, value),
                None => there.env_remove(name),
            };
        }
        if let Some(folder) = command.get_current_dir() {
            there.current_dir(folder);
        }
        there.env(guard::TOKEN, self.guard.token());
        there
    }

    /// Runs a closure on a thread at this end of the link: its sockets and child processes stay there.
    pub fn within<T: Send>(
        &self,
        side: Side,
        work: impl FnOnce() -> T + Send,
    ) -> Result<T, LabError> {
        self.place(side).within(work)
    }

    /// Address of a server at the server's end with this port.
    pub fn server_address(&self, port: u16) -> SocketAddr {
        SocketAddr::new(IpAddr::V4(SERVER), port)
    }

    /// What the link saw of the connections from number `first` on: see [`Self::number_from`].
    pub fn flows(&self) -> Result<Vec<Flow>, LabError> {
        self.wire.collect()
    }

    /// Numbers the connections over the link from here on, starting with this number.
    pub fn number_from(&self, first: u64) -> Result<(), LabError> {
        self.wire.number(first)
    }

    /// The figures of the emulation so far.
    pub fn proof(&self) -> Result<Proof, LabError> {
        let counters = self.wire.counters()?;
        Ok(Proof {
            emulator: "tun".into(),
            real_time: counters.real_time,
            uncalibrated_us: self.uncalibrated_us,
            calibrated_us: self.calibrated_us,
            removed_us: self.removed_us,
            packets: counters.packets,
            lost: counters.lost,
            dropped: counters.dropped,
            late_edges_us: EDGES_NS.iter().map(|edge| micros(*edge)).collect(),
            late_counts: counters.late,
            read_late: counters.read_late,
            kernel: {
                let mut rows = self.kernel.clone();
                rows.extend(guard::niceness(self.guard.token()));
                rows
            },
        })
    }

    fn wait_until(
        &self,
        address: SocketAddr,
        patience: Duration,
        alive: &mut dyn FnMut() -> Result<(), LabError>,
    ) -> Result<(), LabError> {
        let until = Instant::now() + patience;
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Err(LabError::Interrupted);
            }
            alive()?;
            match self.within(Side::Client, || agents::open_spared(address, patience))? {
                Ok(stream) => return ends::cut(stream),
                Err(error) if Instant::now() > until => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    fn place(&self, side: Side) -> &Namespace {
        &self.places[usize::from(side == Side::Server)]
    }

    /// Makes connections by a script, reported one by one as soon as the link has been asked about them.
    fn each(
        &mut self,
        index: usize,
        transfer: Transfer,
        first: u64,
        count: u64,
        told: &mut dyn FnMut(Outcome, Flow),
    ) -> Result<(), LabError> {
        let (wire, stop, deadline) = (&self.wire, self.stop, self.deadline);
        let Some(pair) = self.pairs.get_mut(index) else {
            return Err(LabError::failed("no peers"));
        };
        let mut done = 0;
        while done < count {
            let now = (count - done).min(BATCH);
            wire.number(first + done)?;
            let outcome = pair.batch(transfer, now, deadline, stop);
            let (times, error) = outcome;
            let flows = wire.collect()?;
            for (index, times) in times.iter().enumerate() {
                let number = first + done + index as u64;
                let flow =
                    flows.iter().find(|flow| flow.number == number).cloned().unwrap_or_default();
                told(times.outcome(&flow), flow);
            }
            if let Some(error) = error {
                // Both may be in an unknown state.
                self.pairs.remove(index);
                return Err(error);
            }
            done += now;
        }
        Ok(())
    }

    /// A client and a server for this script: existing ones, or new ones.
    fn pair(&mut self, script: &Script) -> Result<usize, LabError> {
        if let Some(index) = self.pairs.iter().position(|pair| pair.script == *script) {
            return Ok(index);
        }
        let (server, foreign) = match script {
            Script::Foreign(_, foreign) => (None, Some(foreign.address)),
            _ => (Some(self.server_address(0)), None),
        };
        let ends = Ends {
            places: [self.place(Side::Client).path(), self.place(Side::Server).path()],
            server,
            script: script.clone(),
        };
        let argument = serde_json::to_string(&ends).map_err(LabError::failed)?;
        let mut command = Command::new(&self.executable);
        command.args(["agent", ENDS_AGENT.name, &argument]);
        command.env(guard::TOKEN, self.guard.token());
        let mut ends = Peer::start("the ends of the emulated link", command)?;
        let Line::Ready(address) = ends.hear(START, self.stop, &mut || Ok(()))? else {
            return Err(LabError::failed("the ends of the emulated link are not ready"));
        };
        let address = address.or(foreign).ok_or_else(|| LabError::failed("no server's address"))?;
        if self.pairs.len() >= PAIRS {
            self.pairs.remove(0);
        }
        self.pairs.push(Pair { script: script.clone(), ends, server: None, address });
        Ok(self.pairs.len() - 1)
    }

    /// A client of ours and OpenSSL's server.
    fn openssl(&mut self, subject: &Subject, transfer: Transfer) -> Result<usize, LabError> {
        let named = Named::new(subject);
        let known = self.pairs.iter().position(
            |pair| matches!(&pair.script, Script::Foreign(one, _) if pair.server.is_some() && *one == named),
        );
        if let Some(index) = known {
            if let Some((_, folder)) = &self.pairs[index].server {
                openssl::body(folder.path(), transfer.body)?;
            }
            return Ok(index);
        }
        self.next_port = FIRST_PORT.max(self.next_port + 1);
        let address = self.server_address(self.next_port);
        let folder = crate::temporary::folder()?;
        let (command, foreign) =
            openssl::server(subject, address, folder.path(), &self.executable)?;
        openssl::body(folder.path(), transfer.body)?;
        let mut server = Peer::start("openssl s_server", self.at(Side::Server, &command))?;
        self.wait_until(address, START, &mut || server.ended().map_or(Ok(()), Err))?;
        let index = self.pair(&Script::Foreign(named, foreign))?;
        self.pairs[index].server = Some((server, folder));
        Ok(index)
    }

    /// Measures TCP's connect at the requested round-trip time, and subtracts the error from the delay.
    fn calibrate(&mut self) -> Result<(), LabError> {
        let mut less_ns = 0;
        for round in 0..=ROUNDS {
            let calm = Link { loss: 0.0, jitter_us: 0, rate_bps: None, ..self.link };
            self.wire.shape(shape(&calm, self.seed, less_ns))?;
            let median = self.connect_median()?;
            let asked = nanos(self.link.rtt());
            let error_us = micros(median) - micros(asked);
            if round == 0 {
                self.uncalibrated_us = error_us;
            }
            self.calibrated_us = error_us;
            if error_us.abs() < GOOD_US || round == ROUNDS {
                break;
            }
            less_ns = (less_ns + median).saturating_sub(asked).min(asked);
        }
        self.removed_us = micros(less_ns);
        self.wire.shape(shape(&self.link, self.seed, less_ns))?;
        self.wire.forget();
        Ok(())
    }

    /// Median of the present time of a TCP connect, in nanoseconds.
    fn connect_median(&self) -> Result<u64, LabError> {
        let count = (CALIBRATION.as_nanos() / self.link.rtt().as_nanos().max(1)).clamp(15, 300);
        let times = self.connect_times(usize::try_from(count).unwrap_or(15))?;
        Ok(times.get(times.len() / 2).copied().unwrap_or_default())
    }

    /// Times of so many TCP connects, in nanoseconds, the shortest first.
    fn connect_times(&self, count: usize) -> Result<Vec<u64>, LabError> {
        let address = self.server_address(LAST_SPARED);
        connects([self.place(Side::Client), self.place(Side::Server)], address, count, self.stop)
    }

    /// The kernel's numbers of the two namespaces.
    fn namespaces(&self) -> Vec<u64> {
        self.places.iter().map(Namespace::number).collect()
    }
}

/// Times of so many TCP connects from the client's end to an address at the server's end, in nanoseconds, the
/// shortest first.
fn connects(
    [client, server]: [&Namespace; 2],
    address: SocketAddr,
    count: usize,
    stop: &AtomicBool,
) -> Result<Vec<u64>, LabError> {
    let listener = server.within(|| listen(address))?.map_err(LabError::failed)?;
    client.within(|| {
        agents::prefer();
        let mut times = Vec::with_capacity(count);
        for round in 0..=count {
            if stop.load(Ordering::Relaxed) {
                return Err(LabError::Interrupted);
            }
            let begun = now_ns();
            let near = TcpStream::connect_timeout(&address, CONNECT).map_err(|error| {
                LabError::failed(format!("nothing goes over the emulated link: {error}"))
            })?;
            let took = now_ns() - begun;
            ends::cut(near)?;
            if let Ok((mut far, _)) = listener.accept() {
                // Waits for the reset: if this end closed first, it would send something too, which would be answered
                // later.
                let _ = far.set_read_timeout(Some(CONNECT));
                let _ = far.read(&mut [0]);
            }
            // The first one meets cold caches.
            if round > 0 {
                times.push(took);
            }
        }
        times.sort_unstable();
        Ok(times)
    })?
}

/// Listens where there was a listener a moment ago. A process that another thread is just starting also has the old
/// listener, until it has become its program.
fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let begun = Instant::now();
    loop {
        match TcpListener::bind(address) {
            Err(error) if error.kind() == ErrorKind::AddrInUse && begun.elapsed() < CONNECT => {
                std::thread::sleep(Duration::from_millis(1));
            }
            outcome => return outcome,
        }
    }
}

/// A device in the namespace of this thread.
fn device(name: &str, address: Ipv4Addr) -> Result<SyncDevice, LabError> {
    kernel::pin()?;
    DeviceBuilder::new()
        .name(name)
        .mtu(1500)
        .ipv4(address, 24, None)
        .with(|builder| {
            builder.tx_queue_len(DEVICE_QUEUE);
        })
        .build_sync()
        .map_err(|error| {
            LabError::unavailable("the live engine", format!("it needs a TUN device ({error})"))
        })
}

/// The link's shape, with so much less delay on the round trip.
fn shape(link: &Link, seed: u64, less_ns: u64) -> Shape {
    let rtt = nanos(link.rtt()).saturating_sub(less_ns);
    Shape {
        delay_ns: [rtt / 2, rtt - rtt / 2],
        jitter_ns: link.jitter_us * 1000,
        chance: Chance { seed, loss: link.loss },
        rate_bps: link.rate_bps,
        queue_packets: link.queue_packets as usize,
    }
}

#[expect(clippy::cast_precision_loss, reason = "times are far below 2^53 nanoseconds, 104 days")]
fn micros(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1000.0
}

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
/// Packets that a device buffers for the link's thread: more than any window here.
const DEVICE_QUEUE: u32 = 20_000;
/// Ports of servers that cannot choose one themselves.
const FIRST_PORT: u16 = 4433;
/// Connections between two reports of the link.
const BATCH: u64 = 100;
/// Pairs of a client and a server that are kept running.
const PAIRS: usize = 8;
/// Timeout of a connection.
const DEADLINE: Duration = Duration::from_secs(120);
/// Timeout of a connection that measures the link.
const CONNECT: Duration = Duration::from_secs(30);
/// Rounds of calibration after the first.
const ROUNDS: u32 = 3;
/// An error that needs no further round.
const GOOD_US: f64 = 5.0;
/// Approximate time of a round of calibration.
const CALIBRATION: Duration = Duration::from_millis(400);
