//! A handshake in memory: client and server take turns on one thread, and each turn's bytes and CPU time are
//! recorded.

use super::turns::{clock, server_turn};
use crate::error::LabError;
use crate::trace::{Side, Step, Trace};

/// More turns than any handshake takes.
const MAX_TURNS: usize = 16;

/// One side of a connection.
pub(super) trait Peer {
    /// Takes what the other side has sent (nothing at the client's first turn) and returns the answer.
    fn turn(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<(), LabError>;
    /// Whether its handshake is complete.
    fn done(&self) -> bool;
}

/// A handshake between the two sides, which are created within it so that their creation is measured. Work after it,
/// such as storing a ticket, is not counted for the client.
pub(super) fn shake<C: Peer, S: Peer>(
    client: impl FnOnce() -> Result<C, LabError>,
    server: impl FnOnce() -> Result<S, LabError>,
) -> Result<(Trace, C, S), LabError> {
    let mut steps: Vec<Step> = Vec::with_capacity(6);
    let mut to_server = Vec::new();
    let mut to_client = Vec::new();
    let begun = clock();
    let mut client = client()?;
    client.turn(&[], &mut to_server)?;
    note(&mut steps, Side::Client, &to_server, clock() - begun)?;
    let begun = clock();
    server_turn(true);
    let mut server = server()?;
    server_turn(false);
    let mut making = clock() - begun;
    let mut client_done = None;
    for _ in 0..MAX_TURNS {
        let begun = clock();
        to_client.clear();
        server_turn(true);
        server_half(&mut server, &to_server, &mut to_client)?;
        server_turn(false);
        let spent = clock() - begun + std::mem::take(&mut making);
        if let Some(client_done) = client_done {
            let server_after_ns = nanos(spent);
            if !to_client.is_empty() {
                // Its time is `server_after_ns`.
                note(&mut steps, Side::Server, &to_client, std::time::Duration::ZERO)?;
                client.turn(&to_client, &mut Vec::new())?;
            }
            if !server.done() {
                return Err(LabError::failed("the client is done, the server is not"));
            }
            let trace = Trace {
                steps,
                client_done,
                server_after_ns,
                hello_retry: false,
                resumed: false,
                cpu_spread: Vec::new(),
            };
            return Ok((trace, client, server));
        }
        note(&mut steps, Side::Server, &to_client, spent)?;
        let begun = clock();
        to_server.clear();
        client.turn(&to_client, &mut to_server)?;
        let spent = clock() - begun;
        if to_server.is_empty() {
            return Err(LabError::failed("the handshake stopped in the middle"));
        }
        note(&mut steps, Side::Client, &to_server, spent)?;
        if client.done() {
            client_done = Some(steps.len() - 1);
        }
    }
    Err(LabError::failed("the handshake does not end"))
}

/// The server's turn, in a function of its own for profiles.
#[inline(never)]
fn server_half<S: Peer>(
    server: &mut S,
    input: &[u8],
    output: &mut Vec<u8>,
) -> Result<(), LabError> {
    let outcome = server.turn(input, output);
    std::hint::black_box(outcome)
}

fn note(
    steps: &mut Vec<Step>,
    from: Side,
    bytes: &[u8],
    spent: std::time::Duration,
) -> Result<(), LabError> {
    let bytes = u32::try_from(bytes.len()).map_err(LabError::failed)?;
    steps.push(Step { from, bytes, cpu_ns: nanos(spent) });
    Ok(())
}

fn nanos(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
