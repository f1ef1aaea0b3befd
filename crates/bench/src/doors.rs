//! Full handshakes per second of server CPU: the door compared with `openssl s_server`, a plain s2n-tls server and
//! plain rustls, and hybrid compared with classical. All servers are processes on one core and take turns; the
//! clients are on the other core.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use outlast_harness::pinned::{Pinned, SERVER_CORE, free_address, has_two_cores, in_turns, peer};
use outlast_net::certificate::{KINDS, Kind};
use outlast_net::policy::Policy;
use rustls::ClientConfig;

use crate::identity::Identity;
use crate::load::{client, handshakes};
use crate::process::this_program;
use crate::statistics::ratio;
use crate::{Figure, serve};

/// A kind of certificate, its key type and the names of its figures.
struct Case {
    kind: &'static Kind,
    key_spec: &'static str,
    openssl: &'static str,
    s2n: &'static str,
    hybrid: &'static str,
}

const CASES: [Case; 2] = [
    Case {
        kind: &KINDS[0],
        key_spec: "ECC_NIST_P256",
        openssl: "full hybrid handshakes for each server CPU second, ECDSA P-256, door / openssl s_server 3.5",
        s2n: "the same, door / bare s2n-tls server",
        hybrid: "server CPU of a full handshake over TCP, ECDSA P-256, hybrid / classical",
    },
    Case {
        kind: &KINDS[1],
        key_spec: "ML_DSA_65",
        openssl: "full hybrid handshakes for each server CPU second, ML-DSA-65, door / openssl s_server 3.5",
        s2n: "the same, door / bare s2n-tls server (ML-DSA-65)",
        hybrid: "server CPU of a full handshake over TCP, ML-DSA-65, hybrid / classical",
    },
];

pub(crate) fn measure(quick: bool) -> Result<Vec<Figure>, String> {
    if !has_two_cores() {
        return Err("two cores are needed: one for the servers, one for the clients".into());
    }
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut figures = Vec::new();
    for case in CASES {
        figures.extend(compare(&case, folder.path(), quick)?);
    }
    Ok(figures)
}

fn compare(case: &Case, folder: &Path, quick: bool) -> Result<Vec<Figure>, String> {
    let identity = Identity::make(folder, case.kind, case.key_spec)?;
    let start = |command: &dyn Fn(SocketAddr) -> Result<Command, String>| {
        let address = free_address()?;
        let started = Pinned::start(&this_program()?, &command(address)?, SERVER_CORE, address);
        started.map_err(String::from)
    };
    let door = start(&|address| serve::command("door", address, &identity))?;
    let rustls = start(&|address| serve::command("rustls", address, &identity))?;
    let openssl = start(&|address| openssl(address, &identity))?;
    let s2n = start(&|address| s2n(address, &identity))?;
    let hybrid = client(&Policy::default())?;
    let classical = client(&Policy::classical())?;
    let with = |server: &Pinned, config: &Arc<ClientConfig>| {
        let (address, config) = (server.address, config.clone());
        move |time| handshakes(address, &config, time)
    };
    let (rounds, time) = if quick { (3, 150) } else { (15, 600) };
    let [door, openssl, s2n, rustls, classical] = in_turns(
        [
            (&door, &with(&door, &hybrid)),
            (&openssl, &with(&openssl, &hybrid)),
            (&s2n, &with(&s2n, &hybrid)),
            (&rustls, &with(&rustls, &hybrid)),
            (&door, &with(&door, &classical)),
        ],
        rounds,
        Duration::from_millis(time),
    )?;
    let against_openssl = ratio(openssl, door);
    let against_s2n = ratio(s2n, door);
    let upgrade = ratio(door, classical);
    let a_second = |cost: Duration| 1.0 / cost.as_secs_f64();
    Ok(vec![
        Figure {
            name: case.openssl,
            value: format!("{against_openssl:.2}"),
            limit: ">= 1.5",
            met: against_openssl >= 1.5,
            note: format!(
                "{:.0} against {:.0}; X25519MLKEM768, TLS_AES_256_GCM_SHA384, two tickets each; median of {rounds} turns",
                a_second(door),
                a_second(openssl),
            ),
        },
        Figure {
            name: case.s2n,
            value: format!("{against_s2n:.2}"),
            limit: ">= 0.9",
            met: against_s2n >= 0.9,
            note: format!(
                "s2n-tls {:.0} with one ticket, bare rustls {:.0} (door / rustls {:.2})",
                a_second(s2n),
                a_second(rustls),
                ratio(rustls, door),
            ),
        },
        Figure {
            name: case.hybrid,
            value: format!("{upgrade:.3}"),
            limit: "< 1.25",
            met: upgrade < 1.25,
            note: format!(
                "{} / {} µs with the kernel's part",
                door.as_micros(),
                classical.as_micros()
            ),
        },
    ])
}

/// `-www` waits for a request and ends when the client does, without printing what was negotiated.
fn openssl(address: SocketAddr, identity: &Identity) -> Result<Command, String> {
    let mut command = Command::new(peer("openssl/bin/openssl")?);
    command.args(["s_server", "-www", "-quiet", "-tls1_3", "-accept", &address.to_string()]);
    command.args(["-groups", "X25519MLKEM768", "-ciphersuites", "TLS_AES_256_GCM_SHA384"]);
    command.arg("-cert").arg(&identity.certificate).arg("-key").arg(&identity.key);
    Ok(command)
}

fn s2n(address: SocketAddr, identity: &Identity) -> Result<Command, String> {
    let mut command = Command::new(peer("s2n/bin/s2n-peer")?);
    command.args(["server", "--policy", "default_pq", "--tickets"]);
    command.args(["--listen", &address.to_string()]);
    command.arg("--cert").arg(&identity.certificate).arg("--key").arg(&identity.key);
    Ok(command)
}
