//! The ledger's lines: one event each, as JSON with short keys and code points in hexadecimal (`docs/ledger.md`).
//!
//! Written by hand, since it is done for each connection; read by serde, strictly, except that unknown keys are passed over.
//! Names that IANA has are not written: code points are, and get their names back when a line is read.

use std::borrow::Cow;
use std::io::Write;
use std::net::SocketAddr;

use outlast_crypto::groups::Group;
use outlast_crypto::schemes::Scheme;
use outlast_crypto::suites::Suite;
use outlast_crypto::versions::Version;
use outlast_negotiate::{Offer, Refusal, Transport};
use serde::Deserialize;
use serde::de::IntoDeserializer;

use crate::event::{End, Handshake, Outcome, Served};
use crate::limits::{
    MAX_LINE, MAX_NAME, MAX_PROTOCOL, MAX_PROTOCOLS, MAX_SNI, MAX_TEXT, MAX_VALUES,
};

/// Version of the format.
pub const VERSION: u64 = 1;

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A process began a segment; the connections below are numbered by it.
    Open {
        /// When, milliseconds since 1970.
        time_ms: i64,
        /// Names the process.
        process: String,
    },
    /// A handshake ended.
    Handshake(Box<Handshake>),
    /// A connection ended.
    End(End),
    /// Events were lost: the queue or the disk was full.
    Dropped {
        /// When that was noted, milliseconds since 1970.
        time_ms: i64,
        /// How many.
        count: u64,
    },
}

/// Why a line cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// Longer than [`MAX_LINE`].
    #[error("the line is longer than {MAX_LINE} bytes")]
    TooLong,
    /// Written by a newer version of the format.
    #[error("the line is of version {0} of the format")]
    Newer(u64),
    /// Not what it should be.
    #[error("the line is malformed: {0}")]
    Malformed(String),
}

impl Line {
    /// Appends the line with its end.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Open { time_ms, process } => {
                begin(out, "o");
                number(out, "t", *time_ms);
                text(out, "id", process, MAX_NAME);
                out.extend_from_slice(b"}\n");
            }
            Self::Handshake(handshake) => encode_handshake(handshake, out),
            Self::End(end) => encode_end(end, out),
            Self::Dropped { time_ms, count } => {
                begin(out, "d");
                number(out, "t", *time_ms);
                number(out, "n", *count);
                out.extend_from_slice(b"}\n");
            }
        }
    }

    /// Reads a line, with or without its end.
    pub fn parse(bytes: &[u8]) -> Result<Self, LineError> {
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        if bytes.len() > MAX_LINE {
            return Err(LineError::TooLong);
        }
        let malformed = |error: &dyn std::fmt::Display| LineError::Malformed(error.to_string());
        // A newer version may have other types: its lines are told apart before they are read.
        let head: Head<'_> = serde_json::from_slice(bytes).map_err(|error| malformed(&error))?;
        if head.v != VERSION {
            return Err(LineError::Newer(head.v));
        }
        match head.k.as_ref() {
            "h" => {
                let raw: RawHandshake<'_> =
                    serde_json::from_slice(bytes).map_err(|error| malformed(&error))?;
                raw.read().map(|read| Self::Handshake(Box::new(read)))
            }
            "e" => {
                let raw: RawEnd =
                    serde_json::from_slice(bytes).map_err(|error| malformed(&error))?;
                Ok(Self::End(End {
                    connection: raw.c,
                    time_ms: raw.t,
                    principal: raw.w,
                    received: raw.i,
                    sent: raw.o,
                }))
            }
            "o" => {
                let raw: RawOpen =
                    serde_json::from_slice(bytes).map_err(|error| malformed(&error))?;
                Ok(Self::Open { time_ms: raw.t, process: raw.id })
            }
            "d" => {
                let raw: RawDropped =
                    serde_json::from_slice(bytes).map_err(|error| malformed(&error))?;
                Ok(Self::Dropped { time_ms: raw.t, count: raw.n })
            }
            other => Err(LineError::Malformed(format!("there is no kind {other:?}"))),
        }
    }
}

/// Appends the line of a handshake.
pub fn encode_handshake(handshake: &Handshake, out: &mut Vec<u8>) {
    begin(out, "h");
    number(out, "c", handshake.connection);
    number(out, "t", handshake.time_ms);
    text(out, "l", &handshake.listener, MAX_NAME);
    if let Some(peer) = &handshake.peer {
        // An address has no character that JSON escapes, but a scope of IPv6 may be long.
        let _ = write!(out, ",\"a\":\"{peer}\"");
    }
    text(out, "p", &handshake.policy, MAX_NAME);
    text(out, "m", &handshake.mode, MAX_NAME);
    if let Some(offer) = &handshake.offer {
        encode_offer(offer, out);
    }
    if let Some(ja4) = handshake.ja4.as_deref().filter(|ja4| !ja4.is_empty()) {
        text(out, "j", ja4, MAX_NAME);
    }
    match &handshake.outcome {
        Outcome::Served(served) => encode_served(served, out),
        Outcome::Refused(refusal) => {
            if let Ok(name) = serde_json::to_vec(refusal) {
                out.extend_from_slice(b",\"r\":");
                out.extend_from_slice(&name);
            }
        }
        Outcome::Failed(reason) => text(out, "f", reason, MAX_TEXT),
    }
    number(out, "u", handshake.micros);
    out.extend_from_slice(b"}\n");
}

/// Appends the line of a connection's end.
pub fn encode_end(end: &End, out: &mut Vec<u8>) {
    begin(out, "e");
    number(out, "c", end.connection);
    number(out, "t", end.time_ms);
    if let Some(principal) = &end.principal {
        text(out, "w", principal, MAX_TEXT);
    }
    number(out, "i", end.received);
    number(out, "o", end.sent);
    out.extend_from_slice(b"}\n");
}

fn encode_offer(offer: &Offer, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"o\":{");
    let begun = out.len();
    let mut cut = false;
    cut |= list(out, "v", &offer.versions);
    cut |= list(out, "s", &offer.suites);
    cut |= list(out, "g", &offer.groups);
    if let Some(shares) = &offer.shares {
        cut |= list(out, "k", shares);
    }
    cut |= list(out, "a", &offer.schemes);
    if let Some(schemes) = &offer.certificate_schemes {
        cut |= list(out, "b", schemes);
    }
    cut |= list(out, "x", &offer.extensions);
    if let Some(sni) = &offer.sni {
        text(out, "n", sni, MAX_SNI);
    }
    if !offer.protocols.is_empty() {
        out.extend_from_slice(b",\"p\":[");
        for (index, name) in offer.protocols.iter().take(MAX_PROTOCOLS).enumerate() {
            if index > 0 {
                out.push(b',');
            }
            string(out, name, MAX_PROTOCOL);
        }
        out.push(b']');
        cut |= offer.protocols.len() > MAX_PROTOCOLS;
    }
    flag(out, "q", offer.transport == Transport::Quic);
    flag(out, "r", offer.resumes);
    flag(out, "cut", cut);
    // Each key begins with a comma; the first has nothing before it.
    if out.get(begun) == Some(&b',') {
        out.remove(begun);
    }
    out.push(b'}');
}

fn encode_served(served: &Served, out: &mut Vec<u8>) {
    let version = Version::by_name(&served.version).map(Version::code_point);
    let suite = Suite::by_name(&served.suite).map(|row| row.code_point);
    // The version comes first and has no comma before it.
    out.extend_from_slice(b",\"s\":{\"v\":");
    code_or_name(out, version, &served.version);
    out.extend_from_slice(b",\"s\":");
    code_or_name(out, suite, &served.suite);
    if let Some(name) = &served.group {
        out.extend_from_slice(b",\"g\":");
        let exact = Group::by_name(name).filter(|row| row.name == name);
        code_or_name(out, exact.map(|row| row.code_point), name);
    }
    flag(out, "q", served.post_quantum);
    flag(out, "h", served.hello_retry);
    flag(out, "r", served.resumed);
    if let Some(name) = &served.scheme {
        out.extend_from_slice(b",\"a\":");
        code_or_name(out, Scheme::by_name(name).map(|row| row.code_point), name);
    }
    if let Some(kind) = &served.certificate {
        text(out, "c", kind, MAX_NAME);
    }
    if let Some(client) = &served.client {
        text(out, "n", client, MAX_TEXT);
    }
    out.push(b'}');
}

fn begin(out: &mut Vec<u8>, kind: &str) {
    out.extend_from_slice(b"{\"v\":1,\"k\":\"");
    out.extend_from_slice(kind.as_bytes());
    out.push(b'"');
}

fn key(out: &mut Vec<u8>, key: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(key.as_bytes());
    out.extend_from_slice(b"\":");
}

fn number(out: &mut Vec<u8>, name: &str, value: impl std::fmt::Display) {
    key(out, name);
    let _ = write!(out, "{value}");
}

fn flag(out: &mut Vec<u8>, name: &str, value: bool) {
    if value {
        key(out, name);
        out.extend_from_slice(b"true");
    }
}

fn text(out: &mut Vec<u8>, name: &str, value: &str, max: usize) {
    key(out, name);
    string(out, value, max);
}

/// A string of at most `max` bytes, cut between characters.
fn string(out: &mut Vec<u8>, value: &str, max: usize) {
    let value = value.get(..value.floor_char_boundary(max)).unwrap_or_default();
    // JSON need not escape DEL and the controls of C1, but a terminal may obey them.
    let is_high = |c: char| matches!(c, '\u{7f}'..='\u{9f}');
    // Writing to memory does not fail.
    if !value.contains(is_high) {
        let _ = serde_json::to_writer(&mut *out, value);
        return;
    }
    for c in serde_json::to_string(value).unwrap_or_else(|_| "\"\"".into()).chars() {
        if is_high(c) {
            out.extend_from_slice(b"\\u");
            code_point(out, c as u16);
        } else {
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
}

const HEX: &[u8; 16] = b"0123456789abcdef";

fn code_point(out: &mut Vec<u8>, code: u16) {
    let digit = |shift: u16| HEX[usize::from(code >> shift & 15)];
    out.extend_from_slice(&[digit(12), digit(8), digit(4), digit(0)]);
}

/// A list of code points, four digits each; whether it was cut.
fn list(out: &mut Vec<u8>, name: &str, values: &[u16]) -> bool {
    key(out, name);
    out.push(b'"');
    for value in values.iter().take(MAX_VALUES) {
        code_point(out, *value);
    }
    out.push(b'"');
    values.len() > MAX_VALUES
}

/// The code point of a name that has a row; of another the name itself.
fn code_or_name(out: &mut Vec<u8>, code: Option<u16>, name: &str) {
    match code {
        Some(code) => {
            out.push(b'"');
            code_point(out, code);
            out.push(b'"');
        }
        None => string(out, name, MAX_NAME),
    }
}

#[derive(Deserialize)]
struct Head<'a> {
    v: u64,
    #[serde(borrow)]
    k: Cow<'a, str>,
}

#[derive(Deserialize)]
struct RawOpen {
    t: i64,
    id: String,
}

#[derive(Deserialize)]
struct RawDropped {
    t: i64,
    n: u64,
}

#[derive(Deserialize)]
struct RawEnd {
    c: u64,
    t: i64,
    w: Option<String>,
    i: u64,
    o: u64,
}

#[derive(Deserialize)]
struct RawHandshake<'a> {
    c: u64,
    t: i64,
    l: String,
    a: Option<SocketAddr>,
    p: String,
    m: String,
    #[serde(borrow)]
    o: Option<RawOffer<'a>>,
    j: Option<String>,
    #[serde(borrow)]
    s: Option<RawServed<'a>>,
    #[serde(borrow)]
    r: Option<Cow<'a, str>>,
    f: Option<String>,
    u: u64,
}

#[derive(Deserialize)]
struct RawOffer<'a> {
    #[serde(borrow)]
    v: Cow<'a, str>,
    #[serde(borrow)]
    s: Cow<'a, str>,
    #[serde(borrow)]
    g: Cow<'a, str>,
    #[serde(borrow)]
    k: Option<Cow<'a, str>>,
    #[serde(borrow)]
    a: Cow<'a, str>,
    #[serde(borrow)]
    b: Option<Cow<'a, str>>,
    #[serde(borrow)]
    x: Cow<'a, str>,
    n: Option<String>,
    #[serde(default)]
    p: Vec<String>,
    #[serde(default)]
    q: bool,
    #[serde(default)]
    r: bool,
}

#[derive(Deserialize)]
struct RawServed<'a> {
    #[serde(borrow)]
    v: Cow<'a, str>,
    #[serde(borrow)]
    s: Cow<'a, str>,
    #[serde(borrow)]
    g: Option<Cow<'a, str>>,
    #[serde(default)]
    q: bool,
    #[serde(default)]
    h: bool,
    #[serde(default)]
    r: bool,
    #[serde(borrow)]
    a: Option<Cow<'a, str>>,
    c: Option<String>,
    n: Option<String>,
}

impl RawHandshake<'_> {
    fn read(self) -> Result<Handshake, LineError> {
        let outcome = match (self.s, self.r, self.f) {
            (Some(served), None, None) => Outcome::Served(served.read()),
            (None, Some(name), None) => {
                let name: serde::de::value::StrDeserializer<'_, serde::de::value::Error> =
                    name.as_ref().into_deserializer();
                let refusal = Refusal::deserialize(name)
                    .map_err(|error| LineError::Malformed(error.to_string()))?;
                Outcome::Refused(refusal)
            }
            (None, None, Some(reason)) => Outcome::Failed(reason),
            _ => return Err(LineError::Malformed("there is not one outcome".into())),
        };
        Ok(Handshake {
            connection: self.c,
            time_ms: self.t,
            listener: self.l,
            peer: self.a,
            policy: self.p,
            mode: self.m,
            offer: self.o.map(RawOffer::read).transpose()?,
            ja4: self.j,
            outcome,
            micros: self.u,
        })
    }
}

impl RawOffer<'_> {
    fn read(self) -> Result<Offer, LineError> {
        Ok(Offer {
            transport: if self.q { Transport::Quic } else { Transport::Tcp },
            versions: values(&self.v)?,
            suites: values(&self.s)?,
            groups: values(&self.g)?,
            shares: self.k.as_deref().map(values).transpose()?,
            schemes: values(&self.a)?,
            certificate_schemes: self.b.as_deref().map(values).transpose()?,
            sni: self.n,
            protocols: self.p,
            extensions: values(&self.x)?,
            resumes: self.r,
        })
    }
}

impl RawServed<'_> {
    fn read(self) -> Served {
        let group = |code| Group::by_code_point(code).map(|row| row.name);
        let scheme = |code| Scheme::by_code_point(code).map(|row| row.name);
        let version = |code: u16| {
            Version::ALL.into_iter().find(|row| row.code_point() == code).map(Version::name)
        };
        Served {
            version: name_of(&self.v, version),
            suite: name_of(&self.s, |code| Suite::by_code_point(code).map(|row| row.name)),
            group: self.g.as_deref().map(|text| name_of(text, group)),
            post_quantum: self.q,
            hello_retry: self.h,
            resumed: self.r,
            scheme: self.a.as_deref().map(|text| name_of(text, scheme)),
            certificate: self.c,
            client: self.n,
        }
    }
}

/// The name of a code point that has a row; anything else is a name itself.
fn name_of(text: &str, row: impl Fn(u16) -> Option<&'static str>) -> String {
    let code = match text.as_bytes() {
        [a, b, c, d] => digits([*a, *b, *c, *d]),
        _ => None,
    };
    code.and_then(row).unwrap_or(text).to_owned()
}

fn values(text: &str) -> Result<Vec<u16>, LineError> {
    let malformed = || LineError::Malformed("a list of code points has odd digits".into());
    let (codes, rest) = text.as_bytes().as_chunks::<4>();
    if !rest.is_empty() {
        return Err(malformed());
    }
    codes.iter().map(|code| digits(*code).ok_or_else(malformed)).collect()
}

fn digits(code: [u8; 4]) -> Option<u16> {
    code.into_iter().try_fold(0_u16, |value, digit| {
        let digit = (digit as char).to_digit(16)?;
        Some(value << 4 | u16::try_from(digit).ok()?)
    })
}
