//! Cases from standard input, one line of JSON each, answered on standard output in their order:
//!
//! `{"id":1,"address":"127.0.0.1:4433","name":"localhost","ca":"/ca.pem","policy":"default_pq","repeat":2}` is
//! answered by `{"id":1,"ok":true,"version":"TLSv1.3","group":"X25519MLKEM768","hello_retry":false,"suite":"...",
//! "resumed":true,"signature":null}` or `{"id":1,"ok":false,"error":"...","alert":"handshake_failure"}`.
//!
//! - `repeat`: so many connections, each with the ticket of the one before; the answer tells of the last one.
//! - `echo`: each connection sends a byte and waits for it to come back. So it is with `repeat`, since tickets come
//!   with what is read, and so it should be where the server may refuse after the client's last message.
//! - `cert`, `key`: paths of a client certificate and its key. `alpn`: a list of names.

use std::io::{BufRead, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use s2n_tls::callbacks::{SessionTicket, SessionTicketCallback, VerifyHostNameCallback};
use s2n_tls::config::{Builder, Config};
use s2n_tls::connection::Connection;
use s2n_tls::enums::{ClientAuthType, Mode, Version};
use s2n_tls::security::Policy;
use serde_json::{Value, json};

use crate::socket::Socket;

const PATIENCE: Duration = Duration::from_secs(120);

/// What went wrong, and the alert that the server sent.
struct Failure {
    error: String,
    alert: Option<u8>,
}

impl<E: std::fmt::Display> From<E> for Failure {
    fn from(error: E) -> Self {
        Self { error: error.to_string(), alert: None }
    }
}

pub fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        let case: Value = serde_json::from_str(&line)?;
        let mut answer = match carry_out(&case) {
            Ok(answer) => answer,
            Err(Failure { error, alert }) => {
                json!({ "ok": false, "error": error, "alert": alert.map(alert_name) })
            }
        };
        answer["id"] = case["id"].clone();
        writeln!(output, "{answer}")?;
        output.flush()?;
    }
    Ok(())
}

fn carry_out(case: &Value) -> Result<Value, Failure> {
    let ticket = Ticket::default();
    let config = config(case, &ticket)?;
    let repeat = case["repeat"].as_u64().unwrap_or(1);
    let echo = case["echo"].as_bool().unwrap_or(repeat > 1);
    let mut answer = Value::Null;
    for _ in 0..repeat.max(1) {
        answer = connect(case, config.clone(), &ticket, echo)?;
    }
    Ok(answer)
}

fn connect(case: &Value, config: Config, ticket: &Ticket, echo: bool) -> Result<Value, Failure> {
    let address: SocketAddr = text(case, "address")?.parse()?;
    let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut socket = Socket::new(Mode::Client, config, stream)?;
    socket.connection.set_server_name(text(case, "name")?)?;
    if let Some(ticket) = ticket.take() {
        socket.connection.set_session_ticket(&ticket)?;
    }
    let outcome = converse(&mut socket, echo);
    outcome.map_err(|error| Failure { error, alert: socket.connection.alert() })?;
    let answer = told(&socket.connection);
    socket.close();
    Ok(answer)
}

fn converse(socket: &mut Socket, echo: bool) -> Result<(), String> {
    let failed = |error: s2n_tls::error::Error| error.to_string();
    socket.handshake().map_err(failed)?;
    if !echo {
        return Ok(());
    }
    let mut back = [0];
    socket.send(b"x").map_err(failed)?;
    match socket.receive(&mut back).map_err(failed)? {
        1 if back == *b"x" => Ok(()),
        _ => Err("the byte did not come back".into()),
    }
}

fn told(connection: &Connection) -> Value {
    let handshake = connection.handshake_type().unwrap_or_default();
    json!({
        "ok": true,
        "version": connection.actual_protocol_version().map(version_name).ok(),
        "group": connection.kem_group_name().or_else(|| connection.selected_key_exchange_group()),
        "hello_retry": handshake.contains("HELLO_RETRY_REQUEST"),
        "suite": connection.cipher_suite().ok(),
        "resumed": connection.resumed(),
        "signature": connection.signature_scheme(),
        "alpn": connection.application_protocol().map(String::from_utf8_lossy),
    })
}

fn config(case: &Value, ticket: &Ticket) -> Result<Config, Failure> {
    let mut config = Builder::new();
    config.set_security_policy(&Policy::from_version(text(case, "policy")?)?)?;
    config.with_system_certs(false)?;
    config.trust_pem(&std::fs::read(text(case, "ca")?)?)?;
    config.set_verify_host_callback(Names(text(case, "name")?.to_owned()))?;
    config.set_session_ticket_callback(ticket.clone())?;
    if let (Some(certificate), Some(key)) = (case["cert"].as_str(), case["key"].as_str()) {
        config.load_pem(&std::fs::read(certificate)?, &std::fs::read(key)?)?;
        config.set_client_auth_type(ClientAuthType::Optional)?;
    }
    if let Some(names) = case["alpn"].as_array() {
        config.set_application_protocol_preference(names.iter().filter_map(Value::as_str))?;
    }
    Ok(config.build()?)
}

fn text<'a>(case: &'a Value, name: &str) -> Result<&'a str, Failure> {
    case[name].as_str().ok_or_else(|| Failure::from(format!("the case has no {name}")))
}

struct Names(String);

impl VerifyHostNameCallback for Names {
    /// Asked for each name in the certificate; a wildcard stands for one label (RFC 9525, section 6.3).
    fn verify_host_name(&self, name: &str) -> bool {
        let below = |parent: &str| {
            self.0.split_once('.').is_some_and(|(_, rest)| rest.eq_ignore_ascii_case(parent))
        };
        name.eq_ignore_ascii_case(&self.0) || name.strip_prefix("*.").is_some_and(below)
    }
}

/// The ticket that came last.
#[derive(Clone, Default)]
struct Ticket(Arc<Mutex<Option<Vec<u8>>>>);

impl Ticket {
    fn take(&self) -> Option<Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl SessionTicketCallback for Ticket {
    fn on_session_ticket(&self, _: &mut Connection, ticket: &SessionTicket) {
        let mut bytes = vec![0; ticket.len().unwrap_or_default()];
        if ticket.data(&mut bytes).is_ok() {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(bytes);
        }
    }
}

fn version_name(version: Version) -> &'static str {
    match version {
        Version::TLS13 => "TLSv1.3",
        Version::TLS12 => "TLSv1.2",
        _ => "older",
    }
}

/// RFC 8446, section 6, and what later RFCs added.
fn alert_name(code: u8) -> String {
    let name = match code {
        10 => "unexpected_message",
        20 => "bad_record_mac",
        22 => "record_overflow",
        40 => "handshake_failure",
        42 => "bad_certificate",
        43 => "unsupported_certificate",
        44 => "certificate_revoked",
        45 => "certificate_expired",
        46 => "certificate_unknown",
        47 => "illegal_parameter",
        48 => "unknown_ca",
        49 => "access_denied",
        50 => "decode_error",
        51 => "decrypt_error",
        70 => "protocol_version",
        71 => "insufficient_security",
        80 => "internal_error",
        90 => "user_canceled",
        109 => "missing_extension",
        110 => "unsupported_extension",
        112 => "unrecognized_name",
        116 => "certificate_required",
        120 => "no_application_protocol",
        _ => return code.to_string(),
    };
    name.into()
}
