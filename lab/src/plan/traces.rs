//! `[[trace]]` and `[[kernel]]`: handshakes of algorithms that are not built in, and kernels that are not in the table.

use super::Plan;
use super::read::{Field, Node};
use crate::error::LabError;
use crate::model::{Kernel, PROFILES};
use crate::trace::{Contender, MILLION, Side, Step, Trace};

/// Most traces of a plan.
const MAX_TRACES: usize = 64;
/// Most kernels of a plan.
const MAX_KERNELS: usize = 16;
/// Most bytes of a flight: far more than any algorithm's.
const MAX_FLIGHT: u64 = 4 << 20;
/// Most CPU time of a flight, in microseconds: a minute.
const MAX_CPU_US: f64 = 60_000_000.0;
/// Bytes of a client's Finished with TLS_AES_256_GCM_SHA384, if it is not given: handshake header, 48 bytes, record.
const FINISHED: u32 = 74;

/// A trace whose keys are still being read.
#[derive(Default)]
struct Draft {
    name: String,
    hello: Vec<u32>,
    flight: Vec<u32>,
    finished: Option<u32>,
    tickets: u32,
    client_ns: Vec<u64>,
    server_ns: u64,
    flights: Vec<Step>,
    quantiles: Vec<(f64, f64)>,
}

const TRACE: &[Field<Draft>] = &[
    Field {
        name: "name",
        help: "its name in tables and charts",
        read: |draft, node| {
            draft.name = node.text()?.to_owned();
            Ok(())
        },
    },
    Field {
        name: "client_hello",
        help: "bytes of the ClientHello's record; a list for several writes",
        read: |draft, node| {
            draft.hello = writes(node)?;
            Ok(())
        },
    },
    Field {
        name: "server_flight",
        help: "bytes from ServerHello to Finished with the records' overhead; a list for several writes",
        read: |draft, node| {
            draft.flight = writes(node)?;
            Ok(())
        },
    },
    Field {
        name: "client_finished",
        help: "bytes of the client's last flight; 74 if left out",
        read: |draft, node| {
            draft.finished = Some(node.small(1, MAX_FLIGHT)?);
            Ok(())
        },
    },
    Field {
        name: "tickets",
        help: "bytes that the server sends after that; 0 if left out",
        read: |draft, node| {
            draft.tickets = node.small(0, MAX_FLIGHT)?;
            Ok(())
        },
    },
    Field {
        name: "client_cpu_us",
        help: "microseconds of the client's processor: one figure, half of it before the ClientHello, or a list of the two parts",
        read: |draft, node| {
            draft.client_ns = match node.items() {
                Ok(items) if items.len() == 2 => {
                    items.iter().map(nanoseconds).collect::<Result<_, _>>()?
                }
                Ok(_) => return Err(node.problem("must be a number or a list of two")),
                Err(_) => vec![nanoseconds(node)? / 2; 2],
            };
            Ok(())
        },
    },
    Field {
        name: "server_cpu_us",
        help: "microseconds of the server's processor before its flight",
        read: |draft, node| {
            draft.server_ns = nanoseconds(node)?;
            Ok(())
        },
    },
    Field {
        name: "flights",
        help: "a whole trace in place of the sizes: list of tables with from (client or server), bytes and cpu_us, in order; the client's last one \
               is its Finished, what the server sends later are tickets",
        read: |draft, node| {
            for item in node.items()? {
                let mut step = Step { from: Side::Client, bytes: 0, cpu_ns: 0 };
                item.table(FLIGHT, &mut step)?;
                if step.bytes == 0 {
                    return Err(item.problem("a flight needs `bytes`"));
                }
                draft.flights.push(step);
            }
            Ok(())
        },
    },
    Field {
        name: "cpu_us_quantiles",
        help: "distribution of the processor time of both sides together: list of [share, microseconds], both increasing; the CPU times above are \
               those at its median",
        read: |draft, node| {
            for item in node.items()? {
                let pair = item.items()?;
                let [share, us] = pair.as_slice() else {
                    return Err(item.problem("must be [share, microseconds]"));
                };
                let next = (share.number(0.0, 1.0)?, us.number(0.0, MAX_CPU_US)?);
                let before = draft.quantiles.last();
                if before.is_some_and(|before| next.0 <= before.0 || next.1 < before.1) {
                    return Err(item.problem("shares and times must increase"));
                }
                draft.quantiles.push(next);
            }
            Ok(())
        },
    },
];

const FLIGHT: &[Field<Step>] = &[
    Field {
        name: "from",
        help: "client or server",
        read: |step, node| {
            step.from = match node.name("side", &["client", "server"])? {
                "server" => Side::Server,
                _ => Side::Client,
            };
            Ok(())
        },
    },
    Field {
        name: "bytes",
        help: "bytes of TLS records",
        read: |step, node| {
            step.bytes = node.small(1, MAX_FLIGHT)?;
            Ok(())
        },
    },
    Field {
        name: "cpu_us",
        help: "microseconds of the sender's processor before it; 0 if left out",
        read: |step, node| {
            step.cpu_ns = nanoseconds(node)?;
            Ok(())
        },
    },
];

const KERNEL: &[Field<Kernel>] = &[
    Field {
        name: "name",
        help: "its name in profiles",
        read: |kernel, node| {
            kernel.name = node.text()?.to_owned();
            Ok(())
        },
    },
    Field {
        name: "like",
        help: "kernel of the table that it is like, except for the keys below; the newest if left out",
        read: |kernel, node| {
            let known: Vec<&str> = PROFILES.iter().map(|row| row.name).collect();
            let name = node.name("kernel profile", &known)?;
            if let Some(row) = PROFILES.iter().find(|row| row.name == name) {
                *kernel = Kernel::like(&kernel.name, row);
            }
            Ok(())
        },
    },
    Field {
        name: "hz",
        help: "clock ticks per second (CONFIG_HZ), 100 to 1000",
        read: |kernel, node| {
            kernel.tcp.hz = node.small(100, 1000)?;
            Ok(())
        },
    },
    Field {
        name: "first_window",
        help: "first congestion window in packets (initcwnd of a route), 1 to 1000",
        read: |kernel, node| {
            kernel.tcp.first_window = node.small(1, 1000)?;
            Ok(())
        },
    },
    Field {
        name: "linear_syns",
        help: "SYNs retransmitted after one second each before the interval doubles (tcp_syn_linear_timeouts), 0 to 20",
        read: |kernel, node| {
            kernel.tcp.linear_syns = node.small(0, 20)?;
            Ok(())
        },
    },
    Field {
        name: "least_timeout_us",
        help: "added to the timers of probes and reordering (TCP_TIMEOUT_MIN_US); 0 stands for two ticks",
        read: |kernel, node| {
            kernel.tcp.least_timeout_us = node.whole(0, 1_000_000)?;
            Ok(())
        },
    },
    Field {
        name: "reordering_floor_us",
        help: "least time that RACK waits for packets out of order",
        read: |kernel, node| {
            kernel.tcp.reordering_floor_us = node.whole(0, 1_000_000)?;
            Ok(())
        },
    },
    Field {
        name: "replies",
        help: "replies after which acknowledgements are delayed (TCP_PINGPONG_THRESH), 1 to 16",
        read: |kernel, node| {
            kernel.tcp.replies = node.small(1, 16)?;
            Ok(())
        },
    },
    Field {
        name: "undoes_syn",
        help: "whether a connection whose SYN was retransmitted needlessly starts with a full window (since Linux 5.2)",
        read: |kernel, node| {
            kernel.tcp.undoes_syn = node.truth()?;
            Ok(())
        },
    },
    Field {
        name: "pieces",
        help: "whether the emulated link loses whole what TCP hands over in one piece, as netem does",
        read: |kernel, node| {
            kernel.tcp.pieces = node.truth()?;
            Ok(())
        },
    },
    Field {
        name: "client_saves",
        help: "whether the round-trip time that a client's kernel saved of earlier connections gives the first timeout (without tcp_no_metrics_save)",
        read: |kernel, node| {
            kernel.tcp.client_saves = node.truth()?;
            Ok(())
        },
    },
    Field {
        name: "client_reordering",
        help: "selectively acknowledged packets with which a client repairs losses at once (tcp_reordering, or what was saved), 3 to 300",
        read: |kernel, node| {
            kernel.tcp.client_reordering = node.small(3, 300)?;
            Ok(())
        },
    },
    Field {
        name: "source",
        help: "where these values are from; shown with results",
        read: |kernel, node| {
            kernel.source = node.text()?.to_owned();
            Ok(())
        },
    },
];

/// Reads all `[[kernel]]`.
pub(super) fn kernels(plan: &mut Plan, node: &Node<'_>) -> Result<(), LabError> {
    for item in at_most(node, MAX_KERNELS, "kernels")? {
        let mut kernel = Kernel::like_the_default("");
        item.table(KERNEL, &mut kernel)?;
        if kernel.name.is_empty() {
            return Err(item.problem("a kernel needs `name`"));
        }
        let same = |name: &str| name.eq_ignore_ascii_case(&kernel.name);
        if PROFILES.iter().any(|row| same(row.name))
            || plan.own_kernels.iter().any(|row| same(&row.name))
        {
            return Err(item.problem(format!("there is a kernel named {} already", kernel.name)));
        }
        plan.own_kernels.push(kernel);
    }
    Ok(())
}

/// Reads all `[[trace]]`.
pub(super) fn traces(plan: &mut Plan, node: &Node<'_>) -> Result<(), LabError> {
    for item in at_most(node, MAX_TRACES, "traces")? {
        let mut draft = Draft::default();
        item.table(TRACE, &mut draft)?;
        let contender = draft.finish().map_err(|what| item.problem(what))?;
        if plan.traces.iter().any(|other| other.name == contender.name) {
            return Err(item.problem(format!("there is a trace named {} already", contender.name)));
        }
        plan.traces.push(contender);
    }
    Ok(())
}

fn at_most<'a>(node: &Node<'a>, most: usize, what: &str) -> Result<Vec<Node<'a>>, LabError> {
    let items = node.items()?;
    if items.len() > most {
        return Err(node.problem(format!("has more than {most} {what}")));
    }
    Ok(items)
}

impl Draft {
    fn finish(self) -> Result<Contender, String> {
        if self.name.is_empty() {
            return Err("a trace needs `name`".to_owned());
        }
        let sized = !self.hello.is_empty() || !self.flight.is_empty();
        let mut trace = match (sized, self.flights.is_empty()) {
            (true, false) => {
                return Err("has `flights` and also sizes: only one of the two".to_owned());
            }
            (false, true) => {
                return Err("needs `client_hello` and `server_flight`, or `flights`".to_owned());
            }
            (false, false) => self.whole()?,
            (true, true) => self.of_sizes()?,
        };
        trace.cpu_spread = spread(&self.quantiles, &mut trace)?;
        Ok(Contender { name: self.name, trace })
    }

    fn whole(&self) -> Result<Trace, String> {
        let client_done = self.flights.iter().rposition(|step| step.from == Side::Client);
        let server_before =
            |done: usize| self.flights.iter().take(done).any(|step| step.from == Side::Server);
        match client_done {
            Some(done)
                if server_before(done)
                    && self.flights.first().is_some_and(|step| step.from == Side::Client) =>
            {
                Ok(trace(self.flights.clone(), done))
            }
            _ => Err("`flights` must begin with the client's, and have one of the server and then one of the client".to_owned()),
        }
    }

    fn of_sizes(&self) -> Result<Trace, String> {
        if self.hello.is_empty() || self.flight.is_empty() {
            return Err("needs both `client_hello` and `server_flight`".to_owned());
        }
        let client = |part: usize| self.client_ns.get(part).copied().unwrap_or(0);
        let mut steps = Vec::new();
        for (from, writes, cpu_ns) in
            [(Side::Client, &self.hello, client(0)), (Side::Server, &self.flight, self.server_ns)]
        {
            for (index, bytes) in writes.iter().enumerate() {
                let cpu_ns = if index == 0 { cpu_ns } else { 0 };
                steps.push(Step { from, bytes: *bytes, cpu_ns });
            }
        }
        let done = steps.len();
        let bytes = self.finished.unwrap_or(FINISHED);
        steps.push(Step { from: Side::Client, bytes, cpu_ns: client(1) });
        if self.tickets > 0 {
            steps.push(Step { from: Side::Server, bytes: self.tickets, cpu_ns: 0 });
        }
        Ok(trace(steps, done))
    }
}

fn trace(steps: Vec<Step>, client_done: usize) -> Trace {
    Trace {
        steps,
        client_done,
        server_after_ns: 0,
        hello_retry: false,
        resumed: false,
        cpu_spread: Vec::new(),
    }
}

/// The distribution as factors of the trace's CPU time, which is that at the median. A trace without any gets it: it is
/// the server's.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "ranges were checked: shares of 1, and times of a minute at most"
)]
fn spread(quantiles: &[(f64, f64)], trace: &mut Trace) -> Result<Vec<[u32; 2]>, String> {
    let Some(median) = at(quantiles, 0.5) else { return Ok(Vec::new()) };
    if median <= 0.0 {
        return Err("`cpu_us_quantiles`: the median must be above 0".to_owned());
    }
    let total = trace.cpu_ns(Side::Client) + trace.cpu_ns(Side::Server);
    if total == 0 {
        let server = trace.steps.iter_mut().find(|step| step.from == Side::Server);
        if let Some(step) = server {
            step.cpu_ns = (median * 1e3) as u64;
        }
    } else if (total as f64 / (median * 1e3) - 1.0).abs() > 0.01 {
        return Err(format!(
            "`cpu_us_quantiles`: the median is {median} microseconds, but the CPU times are {} together",
            total as f64 / 1e3
        ));
    }
    quantiles
        .iter()
        .map(|(share, us)| {
            let factor = us / median * f64::from(MILLION);
            if factor > f64::from(u32::MAX) {
                return Err("`cpu_us_quantiles`: more than 4000 times the median".to_owned());
            }
            Ok([(share * f64::from(MILLION)) as u32, factor as u32])
        })
        .collect()
}

/// The quantile at a share, between given ones on the line between them.
fn at(quantiles: &[(f64, f64)], share: f64) -> Option<f64> {
    let (first, last) = (quantiles.first()?, quantiles.last()?);
    if share <= first.0 {
        return Some(first.1);
    }
    let pair = quantiles.windows(2).find(|pair| pair[0].0 <= share && share <= pair[1].0);
    Some(pair.map_or(last.1, |pair| {
        pair[0].1 + (pair[1].1 - pair[0].1) * (share - pair[0].0) / (pair[1].0 - pair[0].0)
    }))
}

/// One write, or several.
fn writes(node: &Node<'_>) -> Result<Vec<u32>, LabError> {
    match node.items() {
        Ok(items) if items.len() <= 64 => {
            items.iter().map(|item| item.small(1, MAX_FLIGHT)).collect()
        }
        Ok(_) => Err(node.problem("has more than 64 writes")),
        Err(_) => Ok(vec![node.small(1, MAX_FLIGHT)?]),
    }
}

fn nanoseconds(node: &Node<'_>) -> Result<u64, LabError> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range was checked"
    )]
    let ns = (node.number(0.0, MAX_CPU_US)? * 1e3) as u64;
    Ok(ns)
}

/// The keys with their help.
pub(super) fn help() -> impl Iterator<Item = (String, &'static str)> {
    let named = |table: &'static str, name: &str| format!("{table}.{name}");
    TRACE
        .iter()
        .map(move |field| (named("trace", field.name), field.help))
        .chain(FLIGHT.iter().map(move |field| (named("trace.flights", field.name), field.help)))
        .chain(KERNEL.iter().map(move |field| (named("kernel", field.name), field.help)))
}
