//! A connection to an SSH agent: one message, one answer.

use std::io;
use std::path::Path;
use std::time::Duration;

use outlast_ssh::agent;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::timeout;

/// How long an agent may take: it may ask its user first.
const PATIENCE: Duration = Duration::from_secs(60);

/// An agent that is listened to.
pub struct Agent(UnixStream);

impl Agent {
    /// Connects to the agent's socket, whose path is in `SSH_AUTH_SOCK`.
    ///
    /// # Errors
    /// If there is no agent.
    pub async fn connect(socket: &Path) -> io::Result<Self> {
        UnixStream::connect(socket).await.map(Self)
    }

    /// Sends a message; returns whether the agent has done what it says.
    ///
    /// # Errors
    /// If the agent does not answer, or with what is no answer.
    pub async fn ask(&mut self, message: &[u8]) -> io::Result<bool> {
        let exchange = async {
            self.0.write_all(message).await?;
            let mut head = [0; 4];
            self.0.read_exact(&mut head).await?;
            let len = agent::answer_len(head)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
            let mut answer = vec![0; len];
            self.0.read_exact(&mut answer).await?;
            Ok(agent::is_success(&answer))
        };
        match timeout(PATIENCE, exchange).await {
            Ok(outcome) => outcome,
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}
