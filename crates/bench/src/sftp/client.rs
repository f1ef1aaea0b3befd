//! An SSH client on tokio that connects, logs in and starts SFTP, and does nothing more: what a server's work is measured with.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use outlast_ssh::{
    Algorithms, Client, ClientConfig, ClientEvent, Credential, PrivateKey, Reason, Request,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

/// Bytes that are read at a time.
const READ: usize = 8 * 1024;
/// `SSH_FXP_INIT` of version 3, with its length.
const INIT: [u8; 9] = [0, 0, 0, 5, 1, 0, 0, 0, 3];

/// Who logs in where.
pub(super) struct Login {
    pub(super) address: SocketAddr,
    pub(super) user: String,
    pub(super) key: Arc<PrivateKey>,
    /// Address that the connection comes from; the system's choice if there is none.
    pub(super) from: Option<Ipv4Addr>,
}

/// A configuration with one algorithm of each kind.
pub(super) fn config(key_exchange: &'static str) -> Arc<ClientConfig> {
    let algorithms = Algorithms {
        key_exchanges: vec![key_exchange],
        ciphers: vec!["aes256-gcm@openssh.com"],
        macs: vec!["hmac-sha2-256-etm@openssh.com"],
        host_keys: vec!["ssh-ed25519"],
    };
    Arc::new(ClientConfig { algorithms, ..ClientConfig::default() })
}

/// A connection.
pub(super) struct Session {
    client: Client,
    stream: TcpStream,
}

impl Session {
    async fn connect(
        address: SocketAddr,
        from: Option<Ipv4Addr>,
        config: Arc<ClientConfig>,
    ) -> Result<Self, String> {
        let connected = async {
            let socket = TcpSocket::new_v4()?;
            if let Some(from) = from {
                socket.bind((from, 0).into())?;
            }
            let stream = socket.connect(address).await?;
            stream.set_nodelay(true)?;
            std::io::Result::Ok(stream)
        };
        let stream = connected.await.map_err(|error| format!("{address}: {error}"))?;
        Ok(Self { client: Client::new(config, 0), stream })
    }

    /// The next event. Host keys are accepted: what verifying them costs is the client's matter.
    async fn event(&mut self) -> Result<ClientEvent, String> {
        let mut buffer = [0; READ];
        loop {
            match self.client.poll() {
                Some(ClientEvent::HostKey(_)) => self.client.answer(true),
                Some(ClientEvent::Disconnected(end)) => {
                    return Err(format!("the connection ended: {end:?}"));
                }
                Some(event) => return Ok(event),
                None => {
                    self.flush().await?;
                    let read = self.stream.read(&mut buffer).await;
                    let len = read.map_err(|error| error.to_string())?;
                    if len == 0 {
                        return Err("the server closed the connection".into());
                    }
                    self.client.receive(buffer.get(..len).unwrap_or_default(), 0);
                }
            }
        }
    }

    async fn flush(&mut self) -> Result<(), String> {
        while !self.client.outgoing().is_empty() {
            let written = self.stream.write(self.client.outgoing()).await;
            self.client.sent(written.map_err(|error| error.to_string())?);
        }
        Ok(())
    }

    /// Says goodbye and waits until the server has closed the connection.
    pub(super) async fn end(mut self) -> Result<(), String> {
        self.client.disconnect(Reason::ByApplication, "done");
        while self.client.poll().is_some() {}
        self.flush().await?;
        let mut rest = [0; READ];
        while self.stream.read(&mut rest).await.is_ok_and(|len| len > 0) {}
        Ok(())
    }
}

/// Exchanges keys and leaves, before anybody logs in.
pub(super) async fn handshake(
    address: SocketAddr,
    config: Arc<ClientConfig>,
) -> Result<(), String> {
    let mut session = Session::connect(address, None, config).await?;
    while !matches!(session.event().await?, ClientEvent::Ready) {}
    session.end().await
}

/// Logs in and starts SFTP.
pub(super) async fn session(login: &Login, config: Arc<ClientConfig>) -> Result<Session, String> {
    let mut session = Session::connect(login.address, login.from, config).await?;
    let mut version = Vec::new();
    loop {
        match session.event().await? {
            ClientEvent::Ready => {
                let credential = Credential::Key { key: login.key.clone(), certificate: None };
                session.client.authenticate(&login.user, credential);
            }
            ClientEvent::Refused { .. } => return Err(format!("{} is refused", login.user)),
            ClientEvent::Authenticated => {
                session.client.open().ok_or("the client opens no channel")?;
            }
            ClientEvent::OpenFailed { message, .. } => return Err(message),
            ClientEvent::Opened(channel) => {
                session.client.request(channel, &Request::Subsystem("sftp".into()));
            }
            ClientEvent::Answered { accepted: false, .. } => return Err("there is no SFTP".into()),
            ClientEvent::Answered { channel, .. } => {
                session.client.write(channel, &INIT);
            }
            ClientEvent::Data { channel, bytes, .. } => {
                session.client.consumed(channel, bytes.len());
                version.extend_from_slice(&bytes);
                if version.len() >= INIT.len() {
                    // `SSH_FXP_VERSION`
                    return match version.get(4) {
                        Some(2) => Ok(session),
                        other => Err(format!("the answer to INIT is {other:?}")),
                    };
                }
            }
            _ => {}
        }
    }
}
