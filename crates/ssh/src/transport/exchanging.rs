//! Key exchanges (RFC 4253, sections 7 to 9).

use aws_lc_rs::digest;

use super::{
    Agreed, Event, Extensions, HOST_BOUND, NewKeys, Phase, SIGNATURES, Side, Transport, Used,
    version,
};
use crate::certificate::Certificate;
use crate::cipher::{Keys, TO_CLIENT, TO_SERVER};
use crate::config::HostKey;
use crate::error::Error;
use crate::exchange::{KeySource, SharedSecret};
use crate::kexinit::{self, EXT_INFO_CLIENT, KexInit, Rows, STRICT_CLIENT, STRICT_SERVER};
use crate::limits::{EXCHANGE_BYTES, EXCHANGE_MS, EXCHANGES};
use crate::message;
use crate::negotiation::{Disagreement, Lists, Negotiation};
use crate::public_key::PublicKey;
use crate::signature::{self, ALGORITHMS};
use crate::wire::{Reader, Writer};

impl Transport {
    /// Starts an exchange, the first or another one.
    pub(super) fn start_exchange(&mut self) -> Result<(), Error> {
        let host_keys = self.host_key_names();
        // Markers are only in the first exchange.
        let markers: &[&str] = match self.side {
            _ if !self.session_id.is_empty() => &[],
            Side::Server(_) => &[STRICT_SERVER],
            Side::Client(_) => &[EXT_INFO_CLIENT, STRICT_CLIENT],
        };
        let mut algorithms = self.side.algorithms().clone();
        if self.narrowed {
            algorithms.key_exchanges = self.preferred().to_vec();
        }
        let own = kexinit::write(&algorithms, &host_keys, markers)?;
        self.emit(&[&own])?;
        self.phase = Phase::Sent { own };
        self.since_ms = self.now_ms;
        Ok(())
    }

    /// Methods that a client gets if it offers one of them.
    pub(super) fn preferred(&self) -> &[&'static str] {
        match &self.side {
            Side::Server(config) => &config.preferred,
            Side::Client(_) => &[],
        }
    }

    /// Whether a client that has waited for the server's list, or whose own was held up, would get less than it offers. Somebody in
    /// between can hold a list up, and must not choose by that what the client gets.
    fn loses_preferred(&self, client: &Lists, chosen: &str) -> bool {
        let preferred = self.preferred();
        let mut offered = client.key_exchanges.split(',');
        !preferred.contains(&chosen) && offered.any(|name| preferred.contains(&name))
    }

    /// Host key algorithms of this side, certificates before keys: a server has a key for each.
    fn host_key_names(&self) -> Vec<&'static str> {
        let allowed = &self.side.algorithms().host_keys;
        let row = |name: &&str| ALGORITHMS.iter().find(|row| row.name == *name);
        let rows = allowed.iter().filter_map(row);
        let mut names = Vec::new();
        match &self.side {
            Side::Server(config) => {
                for row in rows {
                    let keys = config.host_keys.iter();
                    let mut keys = keys
                        .filter(|host| host.key.public_key().key_type() == row.key_type)
                        .peekable();
                    let has_key = keys.peek().is_some();
                    if keys.any(|host| host.certificate.is_some()) {
                        names.push(row.with_certificate);
                    }
                    if has_key {
                        names.push(row.name);
                    }
                }
            }
            Side::Client(config) => {
                if config.host_certificates {
                    names.extend(rows.clone().map(|row| row.with_certificate));
                }
                names.extend(rows.map(|row| row.name));
            }
        }
        names
    }

    pub(super) fn on_kexinit(&mut self, payload: &[u8]) -> Result<Option<Event>, Error> {
        let first = self.session_id.is_empty();
        match self.phase {
            Phase::Idle if !first && !self.early => {
                self.count_exchange()?;
                self.start_exchange()?;
            }
            Phase::Waiting => {
                let offered = KexInit::read(payload)?.lists.key_exchanges;
                self.narrowed = offered.split(',').any(|name| self.preferred().contains(&name));
                self.start_exchange()?;
            }
            Phase::Sent { .. } => {}
            _ => return Err(Error::protocol("a key exchange began at the wrong time")),
        }
        let peer = KexInit::read(payload)?;
        let Phase::Sent { own } = std::mem::replace(&mut self.phase, Phase::Idle) else {
            return Err(Error::library());
        };
        let own_lists = KexInit::read(&own)?;
        let (client, server) =
            if self.is_server() { (&peer, &own_lists) } else { (&own_lists, &peer) };
        if first {
            // The peer's own marker only: this side always has the other one.
            let marker = if self.is_server() { STRICT_CLIENT } else { STRICT_SERVER };
            self.strict = peer.has_marker(marker);
            self.extensions_wanted = self.is_server() && peer.has_marker(EXT_INFO_CLIENT);
            // OpenSSH's PROTOCOL, 1.10: SSH_MSG_KEXINIT must be the first packet.
            if self.strict && self.receiver.sequence != 1 {
                return Err(Error::protocol("strict key exchange begins with SSH_MSG_KEXINIT"));
            }
        }
        let rows = kexinit::choose(&client.lists, &server.lists);
        let guessed = peer.guess_follows.then(|| peer.guessed(&own_lists));
        let rows = rows.and_then(|rows| match first && self.blind {
            true if self.loses_preferred(&peer.lists, rows.exchange.name) => {
                Err(Disagreement::Order)
            }
            _ => Ok(rows),
        });
        let negotiation = Box::new(Negotiation {
            peer_version: kexinit::version_text(&self.peer_version),
            outcome: rows.as_ref().map(|rows| rows.chosen.clone()).map_err(|none| *none),
            strict: self.strict,
            first_guess: guessed,
            rekey: !first,
            blind: self.blind,
            offered: peer.lists.clone(),
        });
        let rows = match rows {
            Ok(rows) => rows,
            Err(why) => return Ok(Some(Event::Refused(negotiation, disagreed(why)))),
        };
        self.host_key_algorithm = rows.host_key.name;
        let own_version = version::own(self.side.software());
        let own = (own_version.as_bytes(), own.as_slice());
        let peer = (self.peer_version.as_slice(), payload);
        let (client, server) = if self.is_server() { (peer, own) } else { (own, peer) };
        // H = HASH(V_C, V_S, I_C, I_S, K_S, Q_C, Q_S, K) (RFC 5656, section 4), as strings.
        let mut hash = digest::Context::new(rows.exchange.hash);
        for part in [client.0, server.0, client.1, server.1] {
            hash_string(&mut hash, part);
        }
        let mut agreed = Agreed { rows, hash, started: None, skip: guessed == Some(false) };
        if !self.is_server() {
            let started = agreed.rows.exchange.start()?;
            let mut out = vec![message::KEX_ECDH_INIT];
            out.put_string(started.share());
            self.emit(&[&out])?;
            agreed.started = Some(started);
        }
        self.phase = Phase::Chosen(Box::new(agreed));
        Ok(Some(Event::Negotiated(negotiation)))
    }

    /// Counts an exchange that the peer begins. Each costs a signature and some multiplications, which a peer must not have for
    /// nothing: it moves data in between, or waits.
    fn count_exchange(&mut self) -> Result<(), Error> {
        let (spare, since_ms) = self.spare_exchanges;
        let waited = self.now_ms.saturating_sub(since_ms) / EXCHANGE_MS;
        let moved = (self.sent.bytes + self.received.bytes) / EXCHANGE_BYTES;
        let more = u32::try_from(waited.saturating_add(moved)).unwrap_or(EXCHANGES);
        let spare = spare.saturating_add(more).min(EXCHANGES);
        let left = spare.checked_sub(1).ok_or(Error::protocol("too many key exchanges"))?;
        self.spare_exchanges = (left, since_ms + waited * EXCHANGE_MS);
        Ok(())
    }

    fn agreed(&mut self) -> Result<Agreed, Error> {
        match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Chosen(agreed) => Ok(*agreed),
            _ => Err(Error::protocol("a share of a key exchange came at the wrong time")),
        }
    }

    /// A server gets the client's share, and answers (RFC 5656, section 4).
    pub(super) fn on_share(&mut self, mut reader: Reader<'_>) -> Result<(), Error> {
        let share = reader.string()?;
        reader.end()?;
        let Agreed { rows, mut hash, .. } = self.agreed()?;
        let row = rows.host_key;
        let host = self
            .server_host_keys()
            .iter()
            .find(|host| {
                host.key.public_key().key_type() == row.key_type
                    && (!rows.certificate || host.certificate.is_some())
            })
            .ok_or(Error::exchange("the host key is gone"))?;
        let host_key = host_key_blob(host, rows.certificate).to_vec();
        let key = host.key.clone();
        let (answer, secret) = rows.exchange.answer(share)?;
        for part in [host_key.as_slice(), share, &answer] {
            hash_string(&mut hash, part);
        }
        hash.update(secret.encoded());
        let hash = hash.finish();
        let signature = key.sign(row.name, hash.as_ref()).ok_or(Error::library())?;
        let keys = self.derive(&rows, &secret, hash.as_ref(), host_key)?;
        let mut out = vec![message::KEX_ECDH_REPLY];
        out.put_string(&keys.host_key);
        out.put_string(&answer);
        out.put_string(&signature);
        self.emit(&[&out])?;
        self.send_new_keys(keys)
    }

    /// A client gets the server's answer, and checks its signature.
    pub(super) fn on_reply(&mut self, mut reader: Reader<'_>) -> Result<Option<Event>, Error> {
        let (blob, answer) = (reader.string()?, reader.string()?);
        let signature = reader.string()?;
        reader.end()?;
        let Agreed { rows, mut hash, started, .. } = self.agreed()?;
        let started = started.ok_or(Error::library())?;
        for part in [blob, started.share(), answer] {
            hash_string(&mut hash, part);
        }
        let secret = started.finish(answer)?;
        hash.update(secret.encoded());
        let hash = hash.finish();
        let bad = |_| Error::exchange("the server's host key is malformed or of another type");
        let (key, certificate) = if rows.certificate {
            let certificate = Certificate::parse(blob).map_err(bad)?;
            (certificate.key().clone(), Some(Box::new(certificate)))
        } else {
            (PublicKey::parse(blob).map_err(bad)?, None)
        };
        if signature::verify(&key, rows.host_key, hash.as_ref(), signature).is_none() {
            return Err(Error::exchange("the server's signature does not verify"));
        }
        let keys = self.derive(&rows, &secret, hash.as_ref(), blob.to_vec())?;
        let first = self.session_id.is_empty();
        if !first && keys.host_key != self.host_key {
            return Err(Error::exchange("the server's host key has changed"));
        }
        self.phase = Phase::Verifying(Box::new(keys));
        if first {
            return Ok(Some(Event::HostKey(key, certificate, rows.chosen.host_key)));
        }
        self.accept_host_key()?;
        Ok(None)
    }

    /// A client's caller accepts the host key.
    pub(crate) fn accept_host_key(&mut self) -> Result<(), Error> {
        match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Verifying(keys) => self.send_new_keys(*keys),
            other => {
                self.phase = other;
                Ok(())
            }
        }
    }

    fn derive(
        &self,
        rows: &Rows,
        secret: &SharedSecret,
        exchange_hash: &[u8],
        host_key: Vec<u8>,
    ) -> Result<NewKeys, Error> {
        // RFC 4253, section 7.2: the first exchange hash stays the session's identifier.
        let session_id =
            if self.session_id.is_empty() { exchange_hash } else { &self.session_id }.to_vec();
        let source =
            KeySource { hash: rows.exchange.hash, secret, exchange_hash, session_id: &session_id };
        let keys = |(cipher, mac), letters| Keys::new(cipher, mac, &source, letters);
        let to_server = keys(rows.to_server, TO_SERVER)?;
        let to_client = keys(rows.to_client, TO_CLIENT)?;
        let (sending, receiving) =
            if self.is_server() { (to_client, to_server) } else { (to_server, to_client) };
        Ok(NewKeys { sending, receiving, host_key, session_id })
    }

    fn send_new_keys(&mut self, keys: NewKeys) -> Result<(), Error> {
        self.emit(&[&[message::NEWKEYS]])?;
        self.sender.keys = keys.sending;
        self.sent = Used::default();
        if self.strict {
            self.sender.sequence = 0;
        }
        let first = self.session_id.is_empty();
        if first {
            self.session_id = keys.session_id;
            self.host_key = keys.host_key;
        }
        self.phase = Phase::Finishing(keys.receiving);
        if first && self.extensions_wanted {
            self.send_extensions()?;
        }
        self.held_len = 0;
        for payload in std::mem::take(&mut self.held) {
            self.emit(&[&payload])?;
        }
        Ok(())
    }

    /// RFC 8308, section 2.4: the first message after `SSH_MSG_NEWKEYS`.
    fn send_extensions(&mut self) -> Result<(), Error> {
        let Side::Server(config) = &self.side else { return Ok(()) };
        let mut out = vec![message::EXT_INFO];
        out.put_u32(2);
        out.put_string(SIGNATURES.as_bytes());
        out.put_string(config.user_keys.join(",").as_bytes());
        out.put_string(HOST_BOUND.as_bytes());
        out.put_string(b"0");
        self.emit(&[&out])
    }

    pub(super) fn on_new_keys(&mut self, reader: Reader<'_>) -> Result<Option<Event>, Error> {
        reader.end()?;
        let Phase::Finishing(keys) = std::mem::replace(&mut self.phase, Phase::Idle) else {
            return Err(Error::protocol("SSH_MSG_NEWKEYS came at the wrong time"));
        };
        let first = matches!(self.receiver.keys, Keys::None);
        self.receiver.keys = keys;
        self.received = Used::default();
        if self.strict {
            self.receiver.sequence = 0;
        }
        self.since_ms = self.now_ms;
        if first {
            self.extensions = Extensions::default();
        }
        Ok(first.then_some(Event::Ready))
    }
}

fn hash_string(hash: &mut digest::Context, bytes: &[u8]) {
    hash.update(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes());
    hash.update(bytes);
}

fn host_key_blob(host: &HostKey, certificate: bool) -> &[u8] {
    match &host.certificate {
        Some(issued) if certificate => issued.blob(),
        _ => host.key.public_key().blob(),
    }
}

fn disagreed(why: Disagreement) -> Error {
    Error::exchange(match why {
        Disagreement::KeyExchange => "no common key exchange method",
        Disagreement::HostKey => "no common host key algorithm",
        Disagreement::Cipher => "no common cipher",
        Disagreement::Mac => "no common MAC",
        Disagreement::Compression => "no common compression",
        Disagreement::Order => {
            "your list of algorithms came late, and its order is not the server's: put the post-quantum methods first, or try again"
        }
    })
}
