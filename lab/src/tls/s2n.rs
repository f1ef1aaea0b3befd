//! s2n-tls: the implementation behind AWS's own endpoints. It is compiled in and uses AWS-LC, like rustls.
//!
//! Groups and signatures can only be chosen by named policies, and its client sends a share for the policy's first
//! hybrid *and* for its first curve; so a hybrid differs from a classical policy by a curve's share more than
//! elsewhere.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use outlast_crypto::random;
use outlast_native::s2n::MemoryConnection;
use s2n_tls::callbacks::SessionTicket;
use s2n_tls::callbacks::SessionTicketCallback;
use s2n_tls::config::{Builder, Config};
use s2n_tls::connection::Connection;
use s2n_tls::enums::{ClientAuthType, Mode};
use s2n_tls::security::Policy;

use super::chain::{self, SERVER_NAMES};
use super::exchange::{Peer, shake};
use super::implementation::{Handshaker, Stack, locked_version};
use crate::error::LabError;
use crate::subject::{Kind, Subject};
use crate::trace::Trace;

/// The stack's row.
#[derive(Debug)]
pub struct S2n;

/// A policy whose client offers this group first.
struct Row {
    code_point: u16,
    policy: &'static str,
    /// Code points of the signature schemes that it accepts in certificates and handshakes.
    schemes: &'static [u16],
}

const CLASSICAL: &[u16] = &[0x0403, 0x0503, 0x0603, 0x0806];
const POLICIES: &[Row] = &[
    Row {
        code_point: 0x11ec,
        policy: "default_pq",
        schemes: &[0x0403, 0x0503, 0x0603, 0x0806, 0x0904, 0x0905, 0x0906],
    },
    Row { code_point: 0x001d, policy: "20240603", schemes: CLASSICAL },
    Row { code_point: 0x0017, policy: "default_tls13", schemes: CLASSICAL },
    Row { code_point: 0x0018, policy: "20250211", schemes: &[0x0503] },
    // CNSA 2.0: ML-KEM-1024 with ML-DSA-87.
    Row { code_point: 0x0202, policy: "20260219", schemes: &[0x0906] },
];

fn row(subject: &Subject) -> Option<&'static Row> {
    let code_point = subject.key_exchange.code_point;
    let row = POLICIES.iter().find(|row| row.code_point == code_point)?;
    let takes =
        row.schemes.contains(&subject.authentication.code_point) && !subject.authentication.legacy;
    // Another first share would need another policy.
    (takes && subject.kind != Kind::HelloRetry).then_some(row)
}

impl Stack for S2n {
    fn name(&self) -> &'static str {
        "s2n-tls"
    }

    fn version(&self) -> Result<String, LabError> {
        Ok(locked_version("s2n-tls"))
    }

    fn supports(&self, subject: &Subject) -> bool {
        row(subject).is_some()
    }

    fn prepare(&self, subject: &Subject) -> Result<Box<dyn Handshaker>, LabError> {
        let Some(row) = row(subject) else {
            return Err(LabError::Plan(format!("s2n-tls has no policy for {}", subject.name())));
        };
        let ticket = Ticket::default();
        let client = configuration(subject, Mode::Client, row.policy, Some(ticket.clone()));
        let server = configuration(subject, Mode::Server, row.policy, None);
        let mut ready = Ready {
            subject: *subject,
            client: client.map_err(LabError::failed)?,
            server: server.map_err(LabError::failed)?,
            ticket,
            resumes: false,
        };
        if subject.kind == Kind::Resumed {
            ready.shake()?;
            ready.resumes = true;
        }
        Ok(Box::new(ready))
    }
}

type Error = Box<dyn std::error::Error + Send + Sync>;

fn configuration(
    subject: &Subject,
    mode: Mode,
    policy: &str,
    ticket: Option<Ticket>,
) -> Result<Config, Error> {
    let mut builder = Builder::new();
    builder.with_system_certs(false)?;
    builder.set_security_policy(&Policy::from_version(policy)?)?;
    let server_chain = chain::server(subject.authentication, subject.certificates)?;
    let client_chain = match subject.kind {
        Kind::Mutual => Some(chain::client(subject.authentication, subject.certificates)?),
        _ => None,
    };
    let (own, other) = match mode {
        Mode::Client => (client_chain, Some(server_chain)),
        _ => (Some(server_chain), client_chain),
    };
    if let Some(own) = own {
        builder.load_pem(own.chain_pem().as_bytes(), own.key_pem()?.as_bytes())?;
    }
    if let Some(other) = &other {
        builder.trust_pem(other.root_pem().as_bytes())?;
    }
    if subject.kind == Kind::Mutual {
        builder.set_client_auth_type(ClientAuthType::Required)?;
    }
    // A server ignores the names of a client.
    if mode == Mode::Server {
        builder.set_verify_host_callback(AnyName)?;
        let key: [u8; 32] = random::bytes()?;
        // A second ago: a key from the future is refused.
        let since = SystemTime::now() - Duration::from_secs(1);
        builder.add_session_ticket_key(b"lab", &key, since)?;
    }
    builder.enable_session_tickets(true)?;
    if let Some(ticket) = ticket {
        builder.set_session_ticket_callback(ticket)?;
    }
    Ok(builder.build()?)
}

struct AnyName;

impl s2n_tls::callbacks::VerifyHostNameCallback for AnyName {
    fn verify_host_name(&self, _: &str) -> bool {
        true
    }
}

/// The last ticket that the client received.
#[derive(Clone, Default)]
struct Ticket(Arc<Mutex<Option<Vec<u8>>>>);

impl SessionTicketCallback for Ticket {
    fn on_session_ticket(&self, _: &mut Connection, ticket: &SessionTicket) {
        let mut data = vec![0; ticket.len().unwrap_or_default()];
        if ticket.data(&mut data).is_ok() {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(data);
        }
    }
}

impl Ticket {
    fn take(&self) -> Option<Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

struct Ready {
    subject: Subject,
    client: Config,
    server: Config,
    ticket: Ticket,
    resumes: bool,
}

impl Handshaker for Ready {
    fn handshake(&mut self) -> Result<Trace, LabError> {
        self.shake()
    }
}

impl Ready {
    fn shake(&mut self) -> Result<Trace, LabError> {
        let session = if self.resumes { self.ticket.take() } else { None };
        let connect = |mode, config: &Config, session: Option<&[u8]>| {
            MemoryConnection::new(mode, config.clone(), SERVER_NAMES[0], session)
                .map(|connection| Half { connection, done: false })
                .map_err(LabError::failed)
        };
        let (mut trace, client, server) = shake(
            || connect(Mode::Client, &self.client, session.as_deref()),
            || connect(Mode::Server, &self.server, None),
        )?;
        let expected = self.subject.key_exchange.name;
        for half in [&client, &server] {
            let connection = half.connection.connection();
            let group = connection.and_then(Connection::selected_key_exchange_group);
            if !group.is_some_and(|group| group.eq_ignore_ascii_case(expected)) {
                return Err(LabError::failed(format!("{group:?} instead of {expected}")));
            }
        }
        trace.resumed = client.connection.connection().is_some_and(Connection::resumed);
        if trace.resumed != self.resumes || trace.client_done != 2 {
            return Err(LabError::failed(format!("not {}", self.subject.name())));
        }
        let server = server.connection.connection();
        let shown = server.is_some_and(Connection::client_cert_used);
        if shown != (self.subject.kind == Kind::Mutual) {
            return Err(LabError::failed("the client's certificate was not used as requested"));
        }
        Ok(trace)
    }
}

struct Half {
    connection: MemoryConnection,
    done: bool,
}

impl Peer for Half {
    fn turn(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<(), LabError> {
        self.connection.feed(input);
        if self.done {
            self.connection.settle().map_err(LabError::failed)?;
        } else {
            self.done = self.connection.handshake().map_err(LabError::failed)?;
        }
        self.connection.drain(output);
        Ok(())
    }

    fn done(&self) -> bool {
        self.done
    }
}
