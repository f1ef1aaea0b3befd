//! An SFTP session with a server outside.

use std::time::{Duration, Instant};

use bytes::{Buf, Bytes};
use outlast_domain::transfer::connector::{Failure, FailureCode};
use outlast_sftp::client::{Client, Failed, Violation};
use outlast_sftp::error::Error;
use outlast_sftp::reply::Reply;
use outlast_sftp::request::Request;
use outlast_ssh::{ChannelId, ClientEvent};

use tokio::time::timeout_at;

use super::link::{Link, Lost};
use crate::limits;

/// Why a request, or the file that it is for, failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Broken {
    /// The session is over.
    Session(Failure),
    /// The server refused. The session goes on.
    Refused(Error),
    /// The file changed while it was read. The session goes on.
    Changed,
}

impl From<Failed> for Broken {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Server(error) => Self::Refused(error),
            Failed::Changed => Self::Changed,
            Failed::Violation(violation) => violation.into(),
        }
    }
}

impl From<Violation> for Broken {
    fn from(violation: Violation) -> Self {
        Self::Session(Failure::new(FailureCode::Connection, violation.to_string()))
    }
}

impl From<Lost> for Broken {
    fn from(lost: Lost) -> Self {
        Self::Session(lost.into())
    }
}

pub(crate) struct Remote {
    link: Link,
    channel: ChannelId,
    /// Numbers requests, and checks replies.
    pub(crate) sftp: Client,
    /// Output that the transport has not taken yet.
    rest: Bytes,
    host_key: String,
    /// Since when a reply is awaited.
    since: Option<Instant>,
    /// Longest wait for a reply.
    pub(crate) patience: Duration,
}

impl Remote {
    /// Begins SFTP in a channel whose subsystem was started.
    pub(super) async fn start(
        link: Link,
        channel: ChannelId,
        host_key: String,
    ) -> Result<Self, Failure> {
        let (sftp, rest) = (Client::default(), Bytes::new());
        let patience = limits::OUTBOUND_IDLE;
        let mut remote = Self { link, channel, sftp, rest, host_key, since: None, patience };
        while !remote.sftp.is_ready() {
            if let Err(broken) = remote.turn().await {
                return Err(match broken {
                    Broken::Session(failure) => failure,
                    Broken::Refused(_) | Broken::Changed => {
                        Failure::new(FailureCode::Connection, "the server does not start SFTP")
                    }
                });
            }
        }
        Ok(remote)
    }

    /// The server's host key, as a line.
    pub(crate) fn host_key(&self) -> &str {
        &self.host_key
    }

    /// The next reply to a request. Nothing is lost if this is not awaited to its end.
    ///
    /// Other traffic of the server, such as messages to be ignored, does not count as an answer.
    pub(crate) async fn reply(&mut self) -> Result<(u32, Reply), Broken> {
        let since = *self.since.get_or_insert_with(Instant::now);
        let deadline = since + self.patience;
        loop {
            if let Some(reply) = self.sftp.next_reply() {
                self.since = None;
                return Ok(reply);
            }
            timeout_at(deadline.into(), self.turn())
                .await
                .map_err(|_| Broken::from(Lost::Silent))??;
        }
    }

    /// Makes a request while no other one is under way, and waits for its reply.
    pub(crate) async fn call(&mut self, request: &Request) -> Result<Reply, Broken> {
        let id = self.sftp.send(request);
        loop {
            let (answered, reply) = self.reply().await?;
            if answered == id {
                return match reply {
                    Reply::Status(error) if error.status != outlast_sftp::error::Status::Ok => {
                        Err(Broken::Refused(error))
                    }
                    reply => Ok(reply),
                };
            }
        }
    }

    /// Sends requests, and takes the next event of the connection.
    async fn turn(&mut self) -> Result<(), Broken> {
        self.pump();
        match self.link.event().await? {
            ClientEvent::Data { channel, bytes, stderr } => {
                self.link.ssh.consumed(channel, bytes.len());
                // A server's messages for people are not read: they may say anything.
                if channel == self.channel && !stderr {
                    self.sftp.receive(&bytes)?;
                }
            }
            ClientEvent::Eof(_) | ClientEvent::Closed(_) => return Err(Lost::Closed.into()),
            _ => {}
        }
        Ok(())
    }

    fn pump(&mut self) {
        loop {
            if self.rest.is_empty() {
                let Some(next) = self.sftp.next_output() else { break };
                self.rest = next;
            }
            let taken = self.link.ssh.write(self.channel, &self.rest);
            if taken == 0 {
                break;
            }
            self.rest.advance(taken);
        }
    }

    /// Ends the session.
    pub(crate) async fn end(self) {
        self.link.end().await;
    }
}
