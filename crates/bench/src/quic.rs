//! QUIC connections per second of server CPU: the echo endpoint, hybrid compared with classical. A connection
//! consists of a handshake, one byte on a stream, the byte back, and the close.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use outlast_harness::pinned::{CLIENT_CORE, Pinned, SERVER_CORE, free_address, in_turns, stay_on};
use outlast_net::certificate::KINDS;
use outlast_net::echo;
use outlast_net::policy::Policy;
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Endpoint, VarInt};

use crate::identity::Identity;
use crate::load::client_of_quic;
use crate::process::this_program;
use crate::statistics::ratio;
use crate::{Figure, serve};

/// Concurrent connections, unless they are made one after the other.
const AT_ONCE: usize = 6;

pub(crate) fn measure(quick: bool) -> Result<Vec<Figure>, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let identity = Identity::make(folder.path(), &KINDS[0], "ECC_NIST_P256")?;
    let hybrid = client(&Policy::default())?;
    let classical = client(&Policy::classical())?;
    let address = free_address()?;
    let command = serve::command("quic", address, &identity)?;
    let alive = || connections(address, &hybrid, 1, Duration::ZERO).is_ok();
    let server = Pinned::start_when(&this_program()?, &command, SERVER_CORE, address, alive)?;
    let (rounds, time) = if quick { (3, 200) } else { (20, 600) };
    let load = |config: &ClientConfig, at_once| {
        let config = config.clone();
        move |time| connections(address, &config, at_once, time)
    };
    let [hybrid, classical, hybrids, classicals] = in_turns(
        [
            (&server, &load(&hybrid, 1)),
            (&server, &load(&classical, 1)),
            (&server, &load(&hybrid, AT_ONCE)),
            (&server, &load(&classical, AT_ONCE)),
        ],
        rounds,
        Duration::from_millis(time),
    )?;
    let kept = ratio(classical, hybrid);
    let a_second = |cost: Duration| 1.0 / cost.as_secs_f64();
    Ok(vec![Figure {
        name: "QUIC connections for each server CPU second, hybrid / classical",
        value: format!("{kept:.3}"),
        limit: ">= 0.92",
        met: kept >= 0.92,
        note: format!(
            "{:.0} against {:.0}, one after the other: handshake with ECDSA P-256, a byte there and back, end; {AT_ONCE} at a time {:.3}, {:.0} against {:.0}; median of {rounds} turns",
            a_second(hybrid),
            a_second(classical),
            ratio(classicals, hybrids),
            a_second(hybrids),
            a_second(classicals),
        ),
    }])
}

fn client(policy: &Policy) -> Result<ClientConfig, String> {
    let tls = client_of_quic(policy, echo::PROTOCOL.as_bytes())?;
    let quic = QuicClientConfig::try_from(tls).map_err(|error| error.to_string())?;
    Ok(ClientConfig::new(Arc::new(quic)))
}

/// Makes connections for the given time, at least one by each client; returns their number.
fn connections(
    address: SocketAddr,
    config: &ClientConfig,
    at_once: usize,
    time: Duration,
) -> Result<u64, String> {
    let run = || {
        stay_on(CLIENT_CORE)?;
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?
            .block_on(connect(address, config, at_once, time))
    };
    std::thread::scope(|scope| scope.spawn(run).join().map_err(|_| "a client died".to_owned())?)
}

async fn connect(
    address: SocketAddr,
    config: &ClientConfig,
    at_once: usize,
    time: Duration,
) -> Result<u64, String> {
    let mut endpoint =
        Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).map_err(|error| error.to_string())?;
    endpoint.set_default_client_config(config.clone());
    let until = Instant::now() + time;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..at_once {
        let endpoint = endpoint.clone();
        tasks.spawn(async move {
            let mut count = 0;
            loop {
                connection(&endpoint, address).await.map_err(|error| error.to_string())?;
                count += 1;
                if Instant::now() >= until {
                    return Ok(count);
                }
            }
        });
    }
    let mut all = 0;
    while let Some(ended) = tasks.join_next().await {
        let count: Result<u64, String> = ended.map_err(|error| error.to_string())?;
        all += count?;
    }
    Ok(all)
}

async fn connection(
    endpoint: &Endpoint,
    address: SocketAddr,
) -> Result<(), Box<dyn std::error::Error>> {
    let connection = endpoint.connect(address, "localhost")?.await?;
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(b"x").await?;
    send.finish()?;
    let back = receive.read_to_end(1).await?;
    connection.close(VarInt::from_u32(0), b"");
    if back == b"x" { Ok(()) } else { Err("the byte did not come back".into()) }
}
