//! The lines of the ledger: one event each, as JSON with short keys and code points in hexadecimal
//! (`docs/ledger.md`).
//!
//! The same structures are used for writing and for strict reading, which only ignores unknown keys. Names in IANA's
//! registries are written as code points, and turned back into names when a line is read.

mod error;
mod ssh;
mod text;

use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};
use std::io::{self, Write};
use std::net::SocketAddr;

use outlast_crypto::groups::Group;
use outlast_crypto::schemes::Scheme;
use outlast_crypto::suites::Suite;
use outlast_crypto::versions::Version;
use outlast_negotiate::{Offer, Refusal, Transport};
use serde::{Deserialize, Serialize, Serializer};

pub use self::error::LineError;
use self::ssh::RawSsh;
use self::text::{Text, is_unset};
use crate::event::{End, Handshake, Outcome, Served, SshHandshake};
use crate::limits::{
    MAX_LINE, MAX_NAME, MAX_PROTOCOL, MAX_PROTOCOLS, MAX_SNI, MAX_TEXT, MAX_VALUES,
};

/// Version of the format.
pub const VERSION: u64 = 1;
/// Version of the lines of SSH, which readers of the first version count as newer and pass over.
pub const SSH_VERSION: u64 = 2;

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A process begins a segment, which numbers the connections in the lines below.
    Open {
        /// When, milliseconds since 1970.
        time_ms: i64,
        /// Name of the process.
        process: String,
    },
    /// A handshake ended.
    Handshake(Box<Handshake>),
    /// An SSH handshake ended.
    Ssh(Box<SshHandshake>),
    /// A connection ended.
    End(End),
    /// Events were lost: the queue or the disk was full.
    Dropped {
        /// When the loss was recorded, milliseconds since 1970.
        time_ms: i64,
        /// Number of lost events.
        count: u64,
    },
}

impl Line {
    /// Appends the line with its line end.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Open { time_ms, process } => {
                write(VERSION, "o", RawOpen { t: *time_ms, id: process.into() }, out);
            }
            Self::Handshake(handshake) => encode_handshake(handshake, out),
            Self::Ssh(handshake) => encode_ssh(handshake, out),
            Self::End(end) => encode_end(end, out),
            Self::Dropped { time_ms, count } => {
                write(VERSION, "d", RawDropped { t: *time_ms, n: *count }, out);
            }
        }
    }

    /// Parses a line, with or without its line end.
    pub fn parse(bytes: &[u8]) -> Result<Self, LineError> {
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        if bytes.len() > MAX_LINE {
            return Err(LineError::TooLong);
        }
        let malformed = |error: &dyn Display| LineError::Malformed(error.to_string());
        // A newer version may have other types: the version is read first.
        let head: Head<'_> = serde_json::from_slice(bytes).map_err(|error| malformed(&error))?;
        if head.v == SSH_VERSION && head.k == "s" {
            let raw: RawSsh<'_> =
                serde_json::from_slice(bytes).map_err(|error| malformed(&error))?;
            return raw.read().map(|read| Self::Ssh(Box::new(read)));
        }
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
                let raw: RawEnd<'_> =
                    serde_json::from_slice(bytes).map_err(|error| malformed(&error))?;
                Ok(Self::End(End {
                    connection: raw.c,
                    time_ms: raw.t,
                    principal: raw.w.map(String::from),
                    received: raw.i,
                    sent: raw.o,
                }))
            }
            "o" => {
                let raw: RawOpen<'_> =
                    serde_json::from_slice(bytes).map_err(|error| malformed(&error))?;
                Ok(Self::Open { time_ms: raw.t, process: raw.id.into() })
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
    let (served, refused, failed) = match &handshake.outcome {
        Outcome::Served(served) => (Some(RawServed::of(served)), None, None),
        Outcome::Refused(refusal) => (None, Some(*refusal), None),
        Outcome::Failed(reason) => (None, None, Some(reason.into())),
    };
    let raw = RawHandshake {
        c: handshake.connection,
        t: handshake.time_ms,
        l: (&handshake.listener).into(),
        a: handshake.peer,
        p: (&handshake.policy).into(),
        m: (&handshake.mode).into(),
        o: handshake.offer.as_ref().map(RawOffer::of),
        j: handshake.ja4.as_ref().filter(|ja4| !ja4.is_empty()).map(Into::into),
        s: served,
        r: refused,
        f: failed,
        u: handshake.micros,
    };
    write(VERSION, "h", raw, out);
}

/// Appends the line of an SSH handshake.
pub fn encode_ssh(handshake: &SshHandshake, out: &mut Vec<u8>) {
    write(SSH_VERSION, "s", RawSsh::of(handshake), out);
}

/// Appends the line of a connection's end.
pub fn encode_end(end: &End, out: &mut Vec<u8>) {
    let raw = RawEnd {
        c: end.connection,
        t: end.time_ms,
        w: end.principal.as_ref().map(Into::into),
        i: end.received,
        o: end.sent,
    };
    write(VERSION, "e", raw, out);
}

fn write(version: u64, kind: &str, raw: impl Serialize, out: &mut Vec<u8>) {
    let line = Headed { v: version, k: kind, raw };
    // Writing to memory does not fail, and every key is a string.
    let _ = line.serialize(&mut serde_json::Serializer::with_formatter(&mut *out, Printable));
    out.push(b'\n');
}

/// JSON does not require DEL and the C1 controls to be escaped, but a terminal may obey them.
struct Printable;

impl serde_json::ser::Formatter for Printable {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        // In UTF-8 DEL is 7F, and C1's begin with C2.
        if !fragment.bytes().any(|byte| byte == 0x7f || byte == 0xc2) {
            return writer.write_all(fragment.as_bytes());
        }
        let mut rest = fragment;
        while let Some(at) = rest.find(|c| matches!(c, '\u{7f}'..='\u{9f}')) {
            let (before, from) = rest.split_at(at);
            writer.write_all(before.as_bytes())?;
            let mut chars = from.chars();
            if let Some(c) = chars.next() {
                write!(writer, "\\u{:04x}", u32::from(c))?;
            }
            rest = chars.as_str();
        }
        writer.write_all(rest.as_bytes())
    }
}

#[derive(Serialize)]
struct Headed<'a, T> {
    v: u64,
    k: &'a str,
    #[serde(flatten)]
    raw: T,
}

#[derive(Deserialize)]
struct Head<'a> {
    v: u64,
    #[serde(borrow)]
    k: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
struct RawOpen<'a> {
    t: i64,
    #[serde(borrow)]
    id: Text<'a, MAX_NAME>,
}

#[derive(Serialize, Deserialize)]
struct RawDropped {
    t: i64,
    n: u64,
}

#[derive(Serialize, Deserialize)]
struct RawEnd<'a> {
    c: u64,
    t: i64,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    w: Option<Text<'a, MAX_TEXT>>,
    i: u64,
    o: u64,
}

#[derive(Serialize, Deserialize)]
struct RawHandshake<'a> {
    c: u64,
    t: i64,
    #[serde(borrow)]
    l: Text<'a, MAX_NAME>,
    #[serde(skip_serializing_if = "Option::is_none")]
    a: Option<SocketAddr>,
    #[serde(borrow)]
    p: Text<'a, MAX_NAME>,
    #[serde(borrow)]
    m: Text<'a, MAX_NAME>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    o: Option<RawOffer<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    j: Option<Text<'a, MAX_NAME>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    s: Option<RawServed<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    r: Option<Refusal>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    f: Option<Text<'a, MAX_TEXT>>,
    u: u64,
}

#[derive(Serialize, Deserialize)]
struct RawOffer<'a> {
    v: Codes<'a>,
    s: Codes<'a>,
    g: Codes<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    k: Option<Codes<'a>>,
    a: Codes<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    b: Option<Codes<'a>>,
    x: Codes<'a>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    n: Option<Text<'a, MAX_SNI>>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    p: Vec<Text<'a, MAX_PROTOCOL>>,
    #[serde(default, skip_serializing_if = "is_unset")]
    q: bool,
    #[serde(default, skip_serializing_if = "is_unset")]
    r: bool,
    /// Whether a list was longer than what was written.
    #[serde(default, skip_serializing_if = "is_unset")]
    cut: bool,
}

#[derive(Serialize, Deserialize)]
struct RawServed<'a> {
    #[serde(borrow)]
    v: Code<'a>,
    #[serde(borrow)]
    s: Code<'a>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    g: Option<Code<'a>>,
    #[serde(default, skip_serializing_if = "is_unset")]
    q: bool,
    #[serde(default, skip_serializing_if = "is_unset")]
    h: bool,
    #[serde(default, skip_serializing_if = "is_unset")]
    r: bool,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    a: Option<Code<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    c: Option<Text<'a, MAX_NAME>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    n: Option<Text<'a, MAX_TEXT>>,
}

/// Code points as four hexadecimal digits each; up to [`MAX_VALUES`] are written.
#[derive(Deserialize)]
#[serde(try_from = "Cow<'_, str>")]
struct Codes<'a>(Cow<'a, [u16]>);

impl Codes<'_> {
    fn is_cut(&self) -> bool {
        self.0.len() > MAX_VALUES
    }
}

impl Display for Codes<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        // All digits at once: lists make up most of a line.
        let mut digits = [0; 4 * MAX_VALUES];
        let codes = self.0.iter().take(MAX_VALUES);
        let len = codes
            .zip(digits.as_chunks_mut::<4>().0)
            .map(|(code, place)| *place = hex(*code))
            .count();
        f.write_str(std::str::from_utf8(&digits[..4 * len]).unwrap_or_default())
    }
}

impl Serialize for Codes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl TryFrom<Cow<'_, str>> for Codes<'_> {
    type Error = LineError;

    fn try_from(text: Cow<'_, str>) -> Result<Self, LineError> {
        let malformed =
            || LineError::Malformed("a list of code points has an odd number of digits".into());
        let (codes, rest) = text.as_bytes().as_chunks::<4>();
        if !rest.is_empty() {
            return Err(malformed());
        }
        let codes = codes.iter().map(|code| digits(*code).ok_or_else(malformed));
        Ok(Self(codes.collect::<Result<_, _>>()?))
    }
}

/// The code point of a name that has a row; otherwise the name itself.
#[derive(Deserialize)]
#[serde(transparent)]
struct Code<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> Code<'a> {
    fn of(code: Option<u16>, name: &'a str) -> Self {
        match code {
            Some(code) => Self(String::from_utf8_lossy(&hex(code)).into_owned().into()),
            None => Self(name.into()),
        }
    }

    /// The name of a code point. Without a row, the text is a name itself.
    fn name(&self, row: impl Fn(u16) -> Option<&'static str>) -> String {
        let code = match self.0.as_bytes() {
            [a, b, c, d] => digits([*a, *b, *c, *d]),
            _ => None,
        };
        code.and_then(row).unwrap_or(&self.0).to_owned()
    }
}

impl Serialize for Code<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Text::<MAX_NAME>(Cow::Borrowed(&self.0)).serialize(serializer)
    }
}

impl RawHandshake<'_> {
    fn read(self) -> Result<Handshake, LineError> {
        let outcome = match (self.s, self.r, self.f) {
            (Some(served), None, None) => Outcome::Served(served.read()),
            (None, Some(refusal), None) => Outcome::Refused(refusal),
            (None, None, Some(reason)) => Outcome::Failed(reason.into()),
            _ => return Err(LineError::Malformed("there is not exactly one outcome".into())),
        };
        Ok(Handshake {
            connection: self.c,
            time_ms: self.t,
            listener: self.l.into(),
            peer: self.a,
            policy: self.p.into(),
            mode: self.m.into(),
            offer: self.o.map(RawOffer::read),
            ja4: self.j.map(String::from),
            outcome,
            micros: self.u,
        })
    }
}

impl<'a> RawOffer<'a> {
    fn of(offer: &'a Offer) -> Self {
        let codes = |values: &'a Vec<u16>| Codes(Cow::Borrowed(values));
        let protocols = offer.protocols.iter().take(MAX_PROTOCOLS).map(Into::into);
        let mut raw = Self {
            v: codes(&offer.versions),
            s: codes(&offer.suites),
            g: codes(&offer.groups),
            k: offer.shares.as_ref().map(codes),
            a: codes(&offer.schemes),
            b: offer.certificate_schemes.as_ref().map(codes),
            x: codes(&offer.extensions),
            n: offer.sni.as_ref().map(Into::into),
            p: protocols.collect(),
            q: offer.transport == Transport::Quic,
            r: offer.resumes,
            cut: offer.protocols.len() > MAX_PROTOCOLS,
        };
        let lists = [&raw.v, &raw.s, &raw.g, &raw.a, &raw.x].into_iter();
        raw.cut |= lists.chain(&raw.k).chain(&raw.b).any(Codes::is_cut);
        raw
    }

    fn read(self) -> Offer {
        let values = |codes: Codes<'_>| codes.0.into_owned();
        Offer {
            transport: if self.q { Transport::Quic } else { Transport::Tcp },
            versions: values(self.v),
            suites: values(self.s),
            groups: values(self.g),
            shares: self.k.map(values),
            schemes: values(self.a),
            certificate_schemes: self.b.map(values),
            sni: self.n.map(String::from),
            protocols: self.p.into_iter().map(String::from).collect(),
            extensions: values(self.x),
            resumes: self.r,
        }
    }
}

impl<'a> RawServed<'a> {
    fn of(served: &'a Served) -> Self {
        let group = |name: &'a String| {
            let exact = Group::by_name(name).filter(|row| row.name == *name);
            Code::of(exact.map(|row| row.code_point), name)
        };
        let scheme =
            |name: &'a String| Code::of(Scheme::by_name(name).map(|row| row.code_point), name);
        let version = Version::by_name(&served.version).map(Version::code_point);
        let suite = Suite::by_name(&served.suite).map(|row| row.code_point);
        Self {
            v: Code::of(version, &served.version),
            s: Code::of(suite, &served.suite),
            g: served.group.as_ref().map(group),
            q: served.post_quantum,
            h: served.hello_retry,
            r: served.resumed,
            a: served.scheme.as_ref().map(scheme),
            c: served.certificate.as_ref().map(Into::into),
            n: served.client.as_ref().map(Into::into),
        }
    }

    fn read(self) -> Served {
        let group = |code| Group::by_code_point(code).map(|row| row.name);
        let scheme = |code| Scheme::by_code_point(code).map(|row| row.name);
        let version = |code: u16| {
            Version::ALL.into_iter().find(|row| row.code_point() == code).map(Version::name)
        };
        Served {
            version: self.v.name(version),
            suite: self.s.name(|code| Suite::by_code_point(code).map(|row| row.name)),
            group: self.g.map(|code| code.name(group)),
            post_quantum: self.q,
            hello_retry: self.h,
            resumed: self.r,
            scheme: self.a.map(|code| code.name(scheme)),
            certificate: self.c.map(String::from),
            client: self.n.map(String::from),
        }
    }
}

fn hex(code: u16) -> [u8; 4] {
    let digit = |shift: u16| b"0123456789abcdef"[usize::from(code >> shift & 15)];
    [digit(12), digit(8), digit(4), digit(0)]
}

fn digits(code: [u8; 4]) -> Option<u16> {
    code.into_iter().try_fold(0_u16, |value, digit| {
        let digit = (digit as char).to_digit(16)?;
        Some(value << 4 | u16::try_from(digit).ok()?)
    })
}
