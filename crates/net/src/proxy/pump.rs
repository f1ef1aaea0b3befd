//! Copies bytes in both directions between a client and a backend, and passes on how each direction ends.
//!
//! An announced end (close_notify, FIN) becomes an announced end on the other side, and the other direction
//! continues. An abrupt end, such as a broken TLS connection, becomes a reset, because the receiver must not mistake
//! the data so far for all of it (RFC 8446, section 6.1).

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::time::{Instant, sleep_until, timeout};

use super::pieces::{Piece, Transport};
use crate::limits;

/// How the copying ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// Both senders ended their direction.
    Well,
    /// The client broke off.
    Client(io::Error),
    /// The backend broke off.
    Server(io::Error),
    /// Neither side sent anything for too long.
    Idle,
}

enum State {
    Moving,
    Ending,
    Ended,
    /// The receiver accepts no more bytes. It may still send, so the other direction continues.
    Refused,
}

/// One direction.
struct Direction {
    state: State,
    piece: Piece,
    unflushed: bool,
    /// Bytes have arrived.
    begun: bool,
    /// Since when the receiver has not accepted pending bytes.
    stalled: Option<Instant>,
}

impl Direction {
    fn new() -> Self {
        Self {
            state: State::Moving,
            piece: Piece::default(),
            unflushed: false,
            begun: false,
            stalled: None,
        }
    }

    /// Notes the receiver's reaction to bytes for it.
    fn given<T>(&mut self, outcome: Poll<T>) -> Poll<T> {
        if outcome.is_ready() {
            self.stalled = None;
        } else if self.stalled.is_none() {
            self.stalled = Some(Instant::now());
        }
        outcome
    }

    /// Continues until it has to wait or has ended; an error is the sender's. Sets `moved` if bytes moved.
    fn poll(
        &mut self,
        context: &mut Context<'_>,
        from: &mut dyn Transport,
        to: &mut dyn Transport,
        moved: &mut bool,
    ) -> Poll<io::Result<()>> {
        loop {
            let step: io::Result<()> = match self.state {
                State::Moving if self.piece.is_empty() => {
                    match self.piece.poll_fill(context, Pin::new(&mut *from)) {
                        Poll::Ready(Ok(0)) => {
                            self.state = State::Ending;
                            Ok(())
                        }
                        Poll::Ready(Ok(_)) => {
                            self.begun = true;
                            Ok(())
                        }
                        Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                        Poll::Pending if !self.unflushed => return Poll::Pending,
                        Poll::Pending => {
                            let flushed = Pin::new(&mut *to).poll_flush(context);
                            let flushed = ready!(self.given(flushed));
                            self.unflushed = false;
                            if flushed.is_ok() {
                                return Poll::Pending;
                            }
                            flushed
                        }
                    }
                }
                State::Moving => {
                    let bytes = self.piece.waiting();
                    let written = Pin::new(&mut *to).poll_write(context, bytes);
                    match ready!(self.given(written)) {
                        Ok(0) => Err(io::ErrorKind::WriteZero.into()),
                        Ok(written) => {
                            self.piece.take(written);
                            self.unflushed = true;
                            Ok(())
                        }
                        Err(error) => Err(error),
                    }
                }
                State::Ending => {
                    let ended = Pin::new(&mut *to).poll_shutdown(context);
                    let ended = ready!(self.given(ended));
                    self.state = State::Ended;
                    ended
                }
                State::Ended | State::Refused => return Poll::Ready(Ok(())),
            };
            *moved = true;
            if step.is_err() {
                self.state = State::Refused;
                self.piece = Piece::default();
            }
        }
    }
}

/// Copies until both directions have ended, one side has broken off, neither has moved for `idle`, or one side does
/// not accept its bytes. Calls `heard` when the client has sent something.
pub(crate) async fn pump(
    client: &mut dyn Transport,
    server: &mut dyn Transport,
    idle: Duration,
    heard: &mut (dyn FnMut() + Send),
) -> Ended {
    let mut is_heard = false;
    let (mut up, mut down) = (Direction::new(), Direction::new());
    let mut last = Instant::now();
    let stall = limits::PROXY_STALLED;
    let mut timer = Box::pin(sleep_until(last + idle.min(stall)));
    let ended = poll_fn(|context| {
        let mut moved = false;
        let upward = up.poll(context, client, server, &mut moved);
        if up.begun && !is_heard {
            is_heard = true;
            heard();
        }
        if let Poll::Ready(Err(error)) = upward {
            return Poll::Ready(Ended::Client(error));
        }
        let downward = down.poll(context, server, client, &mut moved);
        if let Poll::Ready(Err(error)) = downward {
            return Poll::Ready(Ended::Server(error));
        }
        if upward.is_ready() && downward.is_ready() {
            return Poll::Ready(Ended::Well);
        }
        if moved {
            last = Instant::now();
        }
        // The timer is not reset with each byte: when it fires, it checks whether bytes have moved.
        while timer.as_mut().poll(context).is_ready() {
            let now = Instant::now();
            let stalled =
                [up.stalled, down.stalled].into_iter().flatten().map(|since| since + stall);
            let end = stalled.fold(last + idle, Instant::min);
            if end <= now {
                return Poll::Ready(Ended::Idle);
            }
            // From now on a receiver may stop accepting at any time.
            timer.as_mut().reset(end.min(now + stall));
        }
        Poll::Pending
    })
    .await;
    match (&ended, &up.state, &down.state) {
        // The backend has ended properly and accepts no more. The client's further bytes must be read, because
        // otherwise the system would reset the connection and lose the backend's last bytes.
        (Ended::Well, State::Refused, State::Ended) => {
            let _ = timeout(limits::LAST_WORDS, discard(client)).await;
        }
        (Ended::Well, _, State::Refused) | (Ended::Client(_), ..) => server.reset(),
        (Ended::Well, State::Refused, _) | (Ended::Server(_), ..) => client.reset(),
        (Ended::Well, ..) => {}
        (Ended::Idle, ..) => {
            client.reset();
            server.reset();
        }
    }
    ended
}

async fn discard(client: &mut dyn Transport) {
    let mut buffer = vec![0; 4096];
    while let Ok(1..) = client.read(&mut buffer).await {}
}
