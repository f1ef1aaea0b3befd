//! HTTP/1.1 for programs on the same machine: over TCP at a loopback address, or over a unix socket, whose callers the
//! kernel names. Without TLS: nothing leaves the machine.
//!
//! Answers may be secrets: their bytes are erased when they have been sent, and are not copied on the way to the socket.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http::request::Parts;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use outlast_crypto::Secret;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};

use crate::limits;
use crate::server::Activity;

/// Where a connection comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// TCP.
    Tcp(SocketAddr),
    /// The unix socket: user, group and process, as the kernel says.
    Unix {
        /// User.
        uid: u32,
        /// Group.
        gid: u32,
        /// Process; 0 if it is not known.
        pid: i32,
    },
}

/// Answers requests.
pub trait Answers: Send + Sync + 'static {
    /// What is known about the caller of a connection.
    type Caller: Send + Sync + 'static;

    /// Finds out about the caller, once for each connection.
    fn connected(&self, origin: Origin) -> Self::Caller;

    /// Answers a request, whose body is ignored. `is_over_limit` says that there are too many connections.
    fn answer(
        &self,
        caller: &Self::Caller,
        head: Parts,
        is_over_limit: bool,
    ) -> impl Future<Output = Response<Secret>> + Send;
}

/// A server for local programs, with any number of listeners.
pub struct Local<A> {
    answers: Arc<A>,
    max_connections: usize,
    open: AtomicUsize,
}

/// A connection that counts.
struct Open<'a>(&'a AtomicUsize);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Bytes of an answer, erased when the connection is done with them.
struct Erased(Secret);

impl AsRef<[u8]> for Erased {
    fn as_ref(&self) -> &[u8] {
        self.0.expose()
    }
}

impl<A: Answers> Local<A> {
    /// A server with this limit on its connections, over all listeners.
    pub fn new(answers: Arc<A>, max_connections: usize) -> Arc<Self> {
        Arc::new(Self { answers, max_connections, open: AtomicUsize::new(0) })
    }

    /// Serves a TCP listener until the task is dropped.
    pub async fn tcp(self: Arc<Self>, listener: TcpListener) {
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    let _ = stream.set_nodelay(true);
                    tokio::spawn(self.clone().connection(stream, Origin::Tcp(peer)));
                }
                Err(error) => refused(&error).await,
            }
        }
    }

    /// Serves a unix socket until the task is dropped.
    pub async fn unix(self: Arc<Self>, listener: UnixListener) {
        loop {
            let accepted = listener.accept().await;
            match accepted.and_then(|(stream, _)| Ok((stream.peer_cred()?, stream))) {
                Ok((peer, stream)) => {
                    let pid = peer.pid().unwrap_or_default();
                    let origin = Origin::Unix { uid: peer.uid(), gid: peer.gid(), pid };
                    tokio::spawn(self.clone().connection(stream, origin));
                }
                Err(error) => refused(&error).await,
            }
        }
    }

    async fn connection(
        self: Arc<Self>,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        origin: Origin,
    ) {
        let open = self.open.fetch_add(1, Ordering::Relaxed) + 1;
        let _open = Open(&self.open);
        // A few more are told why they are refused, and can ask whether the agent lives.
        if open > self.max_connections + limits::LOCAL_REFUSED {
            return;
        }
        let is_over_limit = open > self.max_connections;
        let caller = self.answers.connected(origin);
        let activity = Arc::new(Activity::new());
        let (answers, caller, touched) = (&self.answers, &caller, &activity);
        let service = service_fn(move |request: http::Request<Incoming>| async move {
            touched.touch();
            let (head, _) = request.into_parts();
            let answer = answers.answer(caller, head, is_over_limit).await;
            touched.touch();
            Ok::<_, Infallible>(answer.map(|body| Full::new(Bytes::from_owner(Erased(body)))))
        });
        let serving = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits::REQUEST_HEAD)
            .max_buf_size(limits::MAX_LOCAL_HEAD)
            // Otherwise short bodies are copied behind the head.
            .writev(true)
            .serve_connection(TokioIo::new(stream), service);
        tokio::select! {
            outcome = serving => {
                if let Err(error) = outcome {
                    tracing::debug!(?origin, %error, "a local connection ended with an error");
                }
            }
            () = activity.idle(limits::REQUEST_HEAD) => {}
        }
    }
}

/// Out of file descriptors, or the client left: neither ends the server.
async fn refused(error: &io::Error) {
    tracing::warn!(%error, "a local connection could not be accepted");
    tokio::time::sleep(Duration::from_millis(50)).await;
}
