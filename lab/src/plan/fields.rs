//! The keys of a plan, as rows.

use std::path::PathBuf;

use super::read::{Field, Node};
use super::{Endpoint, Plan, PlanEngine, Target, names, traces};
use crate::error::LabError;
use crate::link::ClockStart;
use crate::subject::Kind;

/// Keys of the document.
pub(super) const PLAN: &[Field<Plan>] = &[
    Field {
        name: "title",
        help: "heading of the report",
        read: |plan, node| {
            plan.title = node.text()?.to_owned();
            Ok(())
        },
    },
    Field {
        name: "seed",
        help: "seed of all randomness; the run's own if left out",
        read: |plan, node| {
            plan.seed = Some(node.whole(0, u64::MAX)?);
            Ok(())
        },
    },
    Field {
        name: "rtt_ms",
        help: "list of round-trip times in milliseconds, 0.05 to 10000; required, except for an endpoint with an address",
        read: |plan, node| {
            plan.rtt_us = node.list(|item| microseconds(item, 0.05, 10_000.0))?;
            Ok(())
        },
    },
    Field {
        name: "loss",
        help: "list of shares of packets lost in each direction, 0 to 0.5 (0.01 is one in a hundred); [0] if left out",
        read: |plan, node| {
            plan.loss = node.list(|item| item.number(0.0, 0.5))?;
            Ok(())
        },
    },
    Field {
        name: "rate_mbps",
        help: "megabits a second in each direction, 0.05 to 100000; no limit if left out",
        read: |plan, node| {
            plan.rate_bps = Some(rounded(node.number(0.05, 100_000.0)? * 1e6));
            Ok(())
        },
    },
    Field {
        name: "queue_packets",
        help: "packets that wait at the bottleneck before it drops; 1000 if left out; only with rate_mbps",
        read: |plan, node| {
            plan.queue_packets = node.small(1, 1_000_000)?;
            Ok(())
        },
    },
    Field {
        name: "jitter_ms",
        help: "standard deviation of the one-way delay in milliseconds; at most a sixth of the smallest RTT",
        read: |plan, node| {
            plan.jitter_us = microseconds(node, 0.0, 10_000.0)?;
            Ok(())
        },
    },
    Field {
        name: "groups",
        help: "list of key exchanges by IANA's names; x25519 and X25519MLKEM768 if left out",
        read: |plan, node| {
            plan.groups = owned(node, "key exchange", &names::groups())?;
            Ok(())
        },
    },
    Field {
        name: "signatures",
        help: "list of signature algorithms of the certificates; ECDSA P-256 if left out",
        read: |plan, node| {
            plan.signatures = owned(node, "signature algorithm", &names::signatures())?;
            Ok(())
        },
    },
    Field {
        name: "certificates",
        help: "list of chain lengths, 1 to 5, the root not counted; [2] if left out",
        read: |plan, node| {
            plan.certificates = node.list(|item| item.small(1, 5))?;
            Ok(())
        },
    },
    Field {
        name: "kinds",
        help: "list of full, hello-retry, resumed, mutual; [\"full\"] if left out",
        read: |plan, node| {
            plan.kinds = node.list(kind)?;
            Ok(())
        },
    },
    Field {
        name: "kernel",
        help: "tables ([[kernel]]): kernels of your own, for profiles",
        read: traces::kernels,
    },
    Field {
        name: "profiles",
        help: "list of kernels that the model behaves like; the newest if left out",
        read: |plan, node| {
            let own = plan.own_kernels.iter().map(|kernel| kernel.profile().name);
            let known: Vec<&'static str> = names::profiles().into_iter().chain(own).collect();
            plan.profiles = owned(node, "kernel profile", &known)?;
            Ok(())
        },
    },
    Field {
        name: "trace",
        help: "tables ([[trace]]): handshakes of algorithms that are not built in, which the model plays",
        read: traces::traces,
    },
    Field {
        name: "bodies",
        help: "list of the answer's bytes, 1 to 16777216; [1000] if left out",
        read: |plan, node| {
            plan.bodies = node.list(|item| item.small(1, 16 << 20))?;
            Ok(())
        },
    },
    Field {
        name: "clock",
        help: "when a handshake's clock starts: syn (if left out) or connected",
        read: |plan, node| {
            plan.clock = match node.name("clock start", &["syn", "connected"])? {
                "connected" => ClockStart::Connected,
                _ => ClockStart::Syn,
            };
            Ok(())
        },
    },
    Field {
        name: "engines",
        help: "list of model and live; [\"model\"] if left out; live needs root",
        read: |plan, node| {
            plan.engines = node.list(|item| {
                Ok(match item.name("engine", &["model", "live"])? {
                    "live" => PlanEngine::Live,
                    _ => PlanEngine::Model,
                })
            })?;
            Ok(())
        },
    },
    Field {
        name: "count",
        help: "connections at each point of the model, 100 to 1000000; 6000 if left out",
        read: |plan, node| {
            plan.count = node.whole(100, 1_000_000)?;
            Ok(())
        },
    },
    Field {
        name: "live_count",
        help: "connections at each live point, and to an endpoint for each group and kind, 20 to 100000; 200 if left out",
        read: |plan, node| {
            plan.live_count = node.whole(20, 100_000)?;
            Ok(())
        },
    },
    Field {
        name: "baseline",
        help: "table with group and signature, or trace, that the others are compared with; the first of each list if left out",
        read: |plan, node| {
            node.table(BASELINE, plan)?;
            let (group, signature) = &plan.baseline;
            if plan.baseline_trace.is_some() && !(group.is_empty() && signature.is_empty()) {
                return Err(node
                    .problem("has `trace` and also `group` or `signature`: only one of the two"));
            }
            Ok(())
        },
    },
    Field { name: "endpoint", help: "table: your own server", read: endpoint },
    Field {
        name: "request",
        help: "table: what to request",
        read: |plan, node| node.table(REQUEST, plan),
    },
];

const BASELINE: &[Field<Plan>] = &[
    Field {
        name: "trace",
        help: "a trace of the plan",
        read: |plan, node| {
            let name = node.text()?;
            if !plan.traces.iter().any(|one| one.name == name) {
                return Err(node.problem(format!("no [[trace]] is named {name}")));
            }
            plan.baseline_trace = Some(name.to_owned());
            Ok(())
        },
    },
    Field {
        name: "group",
        help: "a key exchange of the plan",
        read: |plan, node| {
            node.name("key exchange", &names::groups())?.clone_into(&mut plan.baseline.0);
            Ok(())
        },
    },
    Field {
        name: "signature",
        help: "a signature algorithm of the plan",
        read: |plan, node| {
            node.name("signature algorithm", &names::signatures())?
                .clone_into(&mut plan.baseline.1);
            Ok(())
        },
    },
];

const REQUEST: &[Field<Plan>] = &[
    Field {
        name: "bytes",
        help: "bytes of the request in the grid, 1 to 1048576; 200 if left out",
        read: |plan, node| {
            plan.request = node.small(1, 1 << 20)?;
            Ok(())
        },
    },
    Field {
        name: "path",
        help: "path to request from the endpoint with GET; / if left out",
        read: |plan, node| {
            let path = node.text()?;
            if !path.starts_with('/') || path.contains(|one: char| !one.is_ascii_graphic()) {
                return Err(node.problem("must begin with / and have no spaces, as in a URL"));
            }
            plan.path = path.to_owned();
            Ok(())
        },
    },
];

/// An endpoint whose keys are still being read.
#[derive(Default)]
struct Draft {
    address: Option<String>,
    command: Option<Vec<String>>,
    port: Option<u16>,
    server_name: Option<String>,
    ca_file: Option<String>,
}

const ENDPOINT: &[Field<Draft>] = &[
    Field {
        name: "address",
        help: "host:port of a server that runs: measured from here over your network",
        read: |draft, node| {
            let address = node.text()?;
            let port = address.rsplit_once(':').filter(|(host, _)| !host.is_empty());
            if port.is_none_or(|(_, port)| !port.parse::<u16>().is_ok_and(|port| port > 0)) {
                return Err(node.problem("must be host:port, such as \"kms.example.org:443\""));
            }
            draft.address = Some(address.to_owned());
            Ok(())
        },
    },
    Field {
        name: "command",
        help: "list of program and arguments: a server that is started at the far end of each emulated link",
        read: |draft, node| {
            let items = node.items()?;
            let words: Result<Vec<String>, LabError> =
                items.iter().map(|item| item.text().map(str::to_owned)).collect();
            draft.command = Some(words?);
            Ok(())
        },
    },
    Field {
        name: "port",
        help: "port on which that program listens, on all addresses",
        read: |draft, node| {
            draft.port = Some(node.small(1, 65_535)?);
            Ok(())
        },
    },
    Field {
        name: "server_name",
        help: "name that its certificate must have",
        read: |draft, node| {
            let name = node.text()?;
            if rustls::pki_types::ServerName::try_from(name).is_err() {
                return Err(node.problem("is not a host name or an address"));
            }
            draft.server_name = Some(name.to_owned());
            Ok(())
        },
    },
    Field {
        name: "ca_file",
        help: "PEM file with the CA certificates that must have issued it, relative to the plan's folder",
        read: |draft, node| {
            draft.ca_file = Some(node.text()?.to_owned());
            Ok(())
        },
    },
];

fn endpoint(plan: &mut Plan, node: &Node<'_>) -> Result<(), LabError> {
    let mut draft = Draft::default();
    node.table(ENDPOINT, &mut draft)?;
    let missing = |key: &str| node.problem(format!("[endpoint] needs `{key}`"));
    let at = match (draft.address, draft.command, draft.port) {
        (Some(address), None, None) => Target::Address(address),
        (None, Some(command), Some(port)) => Target::Command { command, port },
        (None, Some(_), None) => return Err(missing("port")),
        (None, None, _) => return Err(missing("address` or `command` with `port")),
        (Some(_), _, _) => {
            return Err(
                node.problem("has `address` and also `command` or `port`: only one of the two")
            );
        }
    };
    plan.endpoint = Some(Endpoint {
        at,
        server_name: draft.server_name.ok_or_else(|| missing("server_name"))?,
        ca_file: PathBuf::from(draft.ca_file.ok_or_else(|| missing("ca_file"))?),
    });
    Ok(())
}

/// All keys with their help.
pub(super) fn help() -> Vec<(String, &'static str)> {
    let mut rows: Vec<(String, &'static str)> =
        PLAN.iter().map(|field| (field.name.to_owned(), field.help)).collect();
    rows.extend(BASELINE.iter().map(|field| (format!("baseline.{}", field.name), field.help)));
    rows.extend(ENDPOINT.iter().map(|field| (format!("endpoint.{}", field.name), field.help)));
    rows.extend(traces::help());
    rows.extend(REQUEST.iter().map(|field| (format!("request.{}", field.name), field.help)));
    rows
}

fn owned(node: &Node<'_>, what: &str, known: &[&'static str]) -> Result<Vec<String>, LabError> {
    node.list(|item| item.name(what, known).map(str::to_owned))
}

fn kind(node: &Node<'_>) -> Result<Kind, LabError> {
    let known: Vec<&str> = names::KINDS.iter().map(|(name, _)| *name).collect();
    let name = node.name("kind of handshake", &known)?;
    let found = names::KINDS.iter().find(|(row, _)| *row == name);
    Ok(found.map_or(Kind::Full, |(_, kind)| *kind))
}

fn microseconds(node: &Node<'_>, low: f64, high: f64) -> Result<u64, LabError> {
    Ok(rounded(node.number(low, high)? * 1e3))
}

fn rounded(number: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "ranges were checked"
    )]
    let whole = number.round() as u64;
    whole
}
