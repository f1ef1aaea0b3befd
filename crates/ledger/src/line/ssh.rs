//! The line of an SSH handshake. Names of algorithms are written as on the wire, because SSH has no code points.

use std::borrow::Cow;
use std::net::SocketAddr;

use outlast_negotiate::ssh::{MAX_IDENTIFICATION, MAX_NAMES, SshOffer, SshRefusal, is_name};
use serde::{Deserialize, Serialize};

use super::error::LineError;
use super::text::{Text, is_unset};
use crate::event::{Outgoing, SshHandshake, SshOutcome, SshServed};
use crate::limits::{MAX_DESTINATION, MAX_NAME, MAX_SSH_LIST, MAX_TEXT};

#[derive(Serialize, Deserialize)]
pub(super) struct RawSsh<'a> {
    c: u64,
    t: i64,
    #[serde(borrow)]
    l: Text<'a, MAX_NAME>,
    #[serde(skip_serializing_if = "Option::is_none")]
    a: Option<SocketAddr>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    d: Option<Text<'a, MAX_DESTINATION>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    w: Option<Text<'a, MAX_TEXT>>,
    #[serde(borrow)]
    p: Text<'a, MAX_NAME>,
    #[serde(borrow)]
    m: Text<'a, MAX_NAME>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    o: Option<RawOffer<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    g: Option<bool>,
    #[serde(default, skip_serializing_if = "is_unset")]
    b: bool,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    s: Option<RawServed<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    r: Option<SshRefusal>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    f: Option<Text<'a, MAX_TEXT>>,
    u: u64,
}

/// Lists to the client are left out if they are the same as those to the server.
#[derive(Serialize, Deserialize)]
struct RawOffer<'a> {
    #[serde(borrow)]
    i: Text<'a, MAX_IDENTIFICATION>,
    #[serde(borrow)]
    k: Cow<'a, str>,
    #[serde(borrow)]
    h: Cow<'a, str>,
    #[serde(borrow)]
    c: Cow<'a, str>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    d: Option<Cow<'a, str>>,
    #[serde(borrow)]
    m: Cow<'a, str>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    n: Option<Cow<'a, str>>,
    #[serde(borrow)]
    z: Cow<'a, str>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    y: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "is_unset")]
    cut: bool,
}

#[derive(Serialize, Deserialize)]
struct RawServed<'a> {
    #[serde(borrow)]
    k: Text<'a, MAX_NAME>,
    #[serde(default, skip_serializing_if = "is_unset")]
    q: bool,
    #[serde(borrow)]
    h: Text<'a, MAX_NAME>,
    #[serde(borrow)]
    c: Text<'a, MAX_NAME>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    d: Option<Text<'a, MAX_NAME>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    m: Option<Text<'a, MAX_NAME>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    n: Option<Text<'a, MAX_NAME>>,
    #[serde(default, skip_serializing_if = "is_unset")]
    x: bool,
}

impl<'a> RawSsh<'a> {
    pub(super) fn of(handshake: &'a SshHandshake) -> Self {
        let (served, refused, failed) = match &handshake.outcome {
            SshOutcome::Served(served) => (Some(RawServed::of(served)), None, None),
            SshOutcome::Refused(refusal) => (None, Some(*refusal), None),
            SshOutcome::Failed(reason) => (None, None, Some(reason.into())),
        };
        let outgoing = handshake.outgoing.as_ref();
        Self {
            c: handshake.connection,
            t: handshake.time_ms,
            l: (&handshake.listener).into(),
            a: handshake.peer,
            d: outgoing.map(|outgoing| (&outgoing.destination).into()),
            w: outgoing.map(|outgoing| (&outgoing.principal).into()),
            p: (&handshake.policy).into(),
            m: (&handshake.mode).into(),
            o: handshake.offer.as_ref().map(RawOffer::of),
            g: handshake.first_guess,
            b: handshake.blind,
            s: served,
            r: refused,
            f: failed,
            u: handshake.micros,
        }
    }

    pub(super) fn read(self) -> Result<SshHandshake, LineError> {
        let outcome = match (self.s, self.r, self.f) {
            (Some(served), None, None) => SshOutcome::Served(served.read()),
            (None, Some(refusal), None) => SshOutcome::Refused(refusal),
            (None, None, Some(reason)) => SshOutcome::Failed(reason.into()),
            _ => return Err(LineError::Malformed("there is not exactly one outcome".into())),
        };
        let outgoing = match (self.d, self.w) {
            (Some(destination), Some(principal)) => {
                Some(Outgoing { destination: destination.into(), principal: principal.into() })
            }
            (None, None) => None,
            _ => return Err(LineError::Malformed("half a destination".into())),
        };
        Ok(SshHandshake {
            connection: self.c,
            time_ms: self.t,
            listener: self.l.into(),
            peer: self.a,
            outgoing,
            policy: self.p.into(),
            mode: self.m.into(),
            offer: self.o.map(RawOffer::read),
            first_guess: self.g,
            blind: self.b,
            outcome,
            micros: self.u,
        })
    }
}

impl<'a> RawOffer<'a> {
    fn of(offer: &'a SshOffer) -> Self {
        let mut cut = offer.cut;
        let mut text = |list: &[String]| Cow::Owned(joined(list, &mut cut));
        let mut other = |list: &[String], same: &[String]| (list != same).then(|| text(list));
        let to_client = [
            other(&offer.ciphers_to_client, &offer.ciphers_to_server),
            other(&offer.macs_to_client, &offer.macs_to_server),
            other(&offer.compressions_to_client, &offer.compressions_to_server),
        ];
        let [d, n, y] = to_client;
        Self {
            i: (&offer.identification).into(),
            k: text(&offer.key_exchanges),
            h: text(&offer.host_keys),
            c: text(&offer.ciphers_to_server),
            d,
            m: text(&offer.macs_to_server),
            n,
            z: text(&offer.compressions_to_server),
            y,
            cut,
        }
    }

    /// Reads with the limits that the transport's lists are read with: a line may be somebody else's.
    fn read(self) -> SshOffer {
        let ciphers_to_client = self.d.as_ref().unwrap_or(&self.c);
        let macs_to_client = self.n.as_ref().unwrap_or(&self.m);
        let compressions_to_client = self.y.as_ref().unwrap_or(&self.z);
        let lists = [
            &self.k,
            &self.h,
            &self.c,
            ciphers_to_client,
            &self.m,
            macs_to_client,
            &self.z,
            compressions_to_client,
        ];
        let mut offer = SshOffer::new(&self.i.0, lists.map(AsRef::as_ref));
        offer.cut |= self.cut;
        offer
    }
}

/// The names with commas, within [`MAX_SSH_LIST`] bytes.
fn joined(list: &[String], cut: &mut bool) -> String {
    let mut out = String::new();
    for (index, name) in list.iter().enumerate() {
        if index >= MAX_NAMES || !is_name(name) || out.len() + name.len() + 1 > MAX_SSH_LIST {
            *cut = true;
            continue;
        }
        if !out.is_empty() {
            out.push(',');
        }
        out.push_str(name);
    }
    out
}

impl<'a> RawServed<'a> {
    fn of(served: &'a SshServed) -> Self {
        Self {
            k: (&served.key_exchange).into(),
            q: served.post_quantum,
            h: (&served.host_key).into(),
            c: (&served.cipher_to_server).into(),
            d: (served.cipher_to_client != served.cipher_to_server)
                .then(|| (&served.cipher_to_client).into()),
            m: served.mac_to_server.as_ref().map(Into::into),
            n: served.mac_to_client.as_ref().map(Into::into),
            x: served.strict,
        }
    }

    fn read(self) -> SshServed {
        let cipher_to_server = String::from(self.c);
        SshServed {
            key_exchange: self.k.into(),
            post_quantum: self.q,
            host_key: self.h.into(),
            cipher_to_client: self.d.map_or_else(|| cipher_to_server.clone(), String::from),
            cipher_to_server,
            mac_to_server: self.m.map(String::from),
            mac_to_client: self.n.map(String::from),
            strict: self.x,
        }
    }
}
