//! The transport protocol of both sides (RFC 4253): versions, key exchanges, packets.

mod exchanging;
mod version;

use std::ops::Range;
use std::sync::Arc;

use aws_lc_rs::digest;
use bytes::buf::Limit;

use crate::algorithms::Algorithms;
use crate::certificate::Certificate;
use crate::cipher::Keys;
use crate::config::{ClientConfig, HostKey, ServerConfig};
use crate::error::{Disconnected, Error, Reason};
use crate::exchange::Started;
use crate::kexinit::Rows;
use crate::limits::{
    EARLY_READ, EXCHANGES, Limits, MAX_EARLY_PACKET_LEN, MAX_HELD, MAX_IDLE_PACKETS,
    MAX_NAME_LIST_LEN, MAX_PACKETS_BY_KEY,
};
use crate::message;
use crate::negotiation::Negotiation;
use crate::packet::{Buffer, Receiver, Sender};
use crate::public_key::PublicKey;
use crate::wire::{Reader, Writer};

/// A side's configuration.
#[derive(Clone)]
pub(crate) enum Side {
    Server(Arc<ServerConfig>),
    Client(Arc<ClientConfig>),
}

impl Side {
    fn algorithms(&self) -> &Algorithms {
        match self {
            Self::Server(config) => &config.algorithms,
            Self::Client(config) => &config.algorithms,
        }
    }

    pub(crate) fn limits(&self) -> &Limits {
        match self {
            Self::Server(config) => &config.limits,
            Self::Client(config) => &config.limits,
        }
    }

    fn software(&self) -> &str {
        match self {
            Self::Server(config) => &config.software,
            Self::Client(config) => &config.software,
        }
    }
}

/// What a packet of the transport protocol, or the end of the version's line, leads to.
pub(crate) enum Event {
    Negotiated(Box<Negotiation>),
    /// Algorithms could not be agreed upon; the connection ends with the error.
    Refused(Box<Negotiation>, Error),
    /// The server's host key, with a signature that verified; the exchange waits for [`Transport::accept_host_key`].
    HostKey(PublicKey, Option<Box<Certificate>>, &'static str),
    /// The first exchange has ended.
    Ready,
    Disconnected(Disconnected),
}

/// Where the current key exchange is.
enum Phase {
    /// The peer's version is not there yet.
    Version,
    /// A server waits for the client's list before it sends its own.
    Waiting,
    /// No exchange is going on.
    Idle,
    /// This side's `SSH_MSG_KEXINIT` was sent.
    Sent { own: Vec<u8> },
    /// Both are known.
    Chosen(Box<Agreed>),
    /// A client waits for its caller's word about the host key.
    Verifying(Box<NewKeys>),
    /// This side's `SSH_MSG_NEWKEYS` was sent; these keys are for the peer's packets after its own.
    Finishing(Keys),
}

/// An exchange whose algorithms are chosen.
struct Agreed {
    rows: Rows,
    /// The exchange hash so far: versions and both `SSH_MSG_KEXINIT` (RFC 5656, section 4).
    hash: digest::Context,
    /// A client's half.
    started: Option<Started>,
    /// Whether the peer's next packet is a wrong guess.
    skip: bool,
}

/// Keys that an exchange gave.
struct NewKeys {
    sending: Keys,
    receiving: Keys,
    host_key: Vec<u8>,
    session_id: Vec<u8>,
}

/// What was sent or received under the current keys.
#[derive(Default)]
struct Used {
    bytes: u64,
    packets: u64,
}

pub(crate) struct Transport {
    pub(crate) side: Side,
    now_ms: u64,
    input: Buffer,
    /// Where the payload of the packet at the front of the input is that was opened last, and how long the packet is.
    opened: (Range<usize>, usize),
    output: Buffer,
    receiver: Receiver,
    sender: Sender,
    /// The peer's identification string, without its line's end.
    peer_version: Vec<u8>,
    /// Bytes of lines before it.
    greeting_len: usize,
    phase: Phase,
    /// Whether a server's list has only its preferred methods, because the client offers one of them.
    narrowed: bool,
    /// Whether a server did not wait for the client's list to its end.
    blind: bool,
    /// When the current exchange began, or the last one ended.
    since_ms: u64,
    received: Used,
    sent: Used,
    /// Exchanges that the peer may still begin without data in between, and when there was one more of them.
    spare_exchanges: (u32, u64),
    /// The first exchange hash; empty until then.
    session_id: Vec<u8>,
    /// Blob of the host key, or its certificate, of the first exchange.
    host_key: Vec<u8>,
    /// Signature algorithm of the last exchange.
    pub(crate) host_key_algorithm: &'static str,
    strict: bool,
    /// Whether the client takes `SSH_MSG_EXT_INFO`.
    extensions_wanted: bool,
    /// What the server told of itself in `SSH_MSG_EXT_INFO`.
    pub(crate) extensions: Extensions,
    /// Payloads that wait for the end of an exchange.
    held: Vec<Vec<u8>>,
    held_len: usize,
    /// Whether the client has not been authenticated.
    pub(crate) early: bool,
    idle_packets: u32,
    closed: bool,
}

/// A server's extensions (RFC 8308; OpenSSH's PROTOCOL, 1.11).
#[derive(Default)]
pub(crate) struct Extensions {
    /// `server-sig-algs`.
    pub(crate) signatures: Option<String>,
    pub(crate) host_bound: bool,
}

pub(crate) const SIGNATURES: &str = "server-sig-algs";
pub(crate) const HOST_BOUND: &str = "publickey-hostbound@openssh.com";

impl Transport {
    pub(crate) fn new(side: Side, now_ms: u64) -> Self {
        let mut output = Buffer::default();
        output.push(version::own(side.software()).as_bytes());
        output.push(b"\r\n");
        Self {
            side,
            now_ms,
            input: Buffer::default(),
            opened: (0..0, 0),
            output,
            receiver: Receiver::new(),
            sender: Sender::new(),
            peer_version: Vec::new(),
            greeting_len: 0,
            phase: Phase::Version,
            narrowed: false,
            blind: false,
            since_ms: now_ms,
            received: Used::default(),
            sent: Used::default(),
            spare_exchanges: (EXCHANGES, now_ms),
            session_id: Vec::new(),
            host_key: Vec::new(),
            host_key_algorithm: "",
            strict: false,
            extensions_wanted: false,
            extensions: Extensions::default(),
            held: Vec::new(),
            held_len: 0,
            early: true,
            idle_packets: 0,
            closed: false,
        }
    }

    pub(crate) fn limits(&self) -> &Limits {
        self.side.limits()
    }

    pub(crate) fn session_id(&self) -> &[u8] {
        &self.session_id
    }

    /// Blob of the host key, or its certificate, that the first exchange was signed with.
    pub(crate) fn host_key(&self) -> &[u8] {
        &self.host_key
    }

    pub(crate) fn is_server(&self) -> bool {
        matches!(self.side, Side::Server(_))
    }

    pub(crate) fn receive(&mut self, bytes: &[u8], now_ms: u64) {
        self.now_ms = self.now_ms.max(now_ms);
        if !self.closed {
            self.input.push(bytes);
        }
    }

    /// The input, to append at most so many bytes.
    pub(crate) fn input(&mut self, most: usize, now_ms: u64) -> Limit<&mut Vec<u8>> {
        self.now_ms = self.now_ms.max(now_ms);
        self.input.spare(if self.closed { 0 } else { most })
    }

    /// Whether the input is too short for a packet of the largest size.
    pub(crate) fn wants_input(&self) -> bool {
        let most =
            if self.early { MAX_EARLY_PACKET_LEN } else { 2 * crate::limits::MAX_PACKET_LEN };
        !self.closed && self.unread() <= most && !self.is_congested()
    }

    /// How many bytes it should be given at a time: few before authentication, when many connections may wait.
    pub(crate) fn room(&self) -> usize {
        match self.early {
            true => (MAX_EARLY_PACKET_LEN + EARLY_READ).saturating_sub(self.unread()),
            false => usize::MAX,
        }
    }

    /// Whether so much waits to be sent that the peer's packets have to wait, too.
    pub(crate) fn is_congested(&self) -> bool {
        self.output.len() > self.limits().queued
    }

    pub(crate) fn outgoing(&self) -> &[u8] {
        self.output.as_slice()
    }

    pub(crate) fn is_partly_sent(&self) -> bool {
        self.output.is_begun()
    }

    pub(crate) fn sent(&mut self, len: usize) {
        self.output.drop_front(len);
    }

    pub(crate) fn rest(&mut self) {
        self.drop_opened();
        self.input.rest();
        self.output.rest();
    }

    /// Bytes of the buffers.
    pub(crate) fn memory(&self) -> usize {
        let phase = match &self.phase {
            Phase::Sent { own } => own.capacity(),
            Phase::Chosen(_) => size_of::<Agreed>(),
            _ => 0,
        };
        self.input.capacity() + self.output.capacity() + self.held_len + phase
    }

    /// When [`Transport::on_timer`] has something to do.
    pub(crate) fn next_timer(&self) -> Option<u64> {
        let wait_ms = match self.phase {
            _ if self.closed => return None,
            Phase::Idle => self.limits().rekey_ms,
            Phase::Waiting => self.limits().offer_ms,
            _ if self.early => self.limits().exchange_ms,
            _ => self.limits().rekeying_ms,
        };
        Some(self.since_ms.saturating_add(wait_ms))
    }

    pub(crate) fn on_timer(&mut self, now_ms: u64) -> Result<(), Error> {
        self.now_ms = self.now_ms.max(now_ms);
        if self.next_timer().is_none_or(|timer| self.now_ms < timer) {
            return Ok(());
        }
        match self.phase {
            Phase::Idle if !self.early => self.start_exchange(),
            Phase::Waiting => {
                self.blind = true;
                self.start_exchange()
            }
            // Who is not authenticated is timed by the caller.
            Phase::Idle => {
                self.since_ms = self.now_ms;
                Ok(())
            }
            _ => Err(Error::new(Reason::ConnectionLost, "the key exchange took too long")),
        }
    }

    /// Opens the next packet and returns where its payload is. It stays at the front of the input until the next call. Reads the
    /// peer's version first.
    pub(crate) fn next_packet(&mut self) -> Result<Option<Range<usize>>, Error> {
        self.drop_opened();
        if matches!(self.phase, Phase::Version) && !self.read_version()? {
            return Ok(None);
        }
        let Some(opened) = self.receiver.open(self.input.as_mut_slice(), self.early)? else {
            return Ok(None);
        };
        self.received.packets += 1;
        self.received.bytes += opened.packet_len as u64;
        self.opened = (opened.payload.clone(), opened.packet_len);
        Ok(Some(opened.payload))
    }

    /// Lends the input, so that a payload can be read while this is changed.
    pub(crate) fn take_input(&mut self) -> Buffer {
        std::mem::take(&mut self.input)
    }

    /// Returns it.
    pub(crate) fn return_input(&mut self, input: Buffer) {
        self.input = input;
    }

    /// The last bytes of the payload that was opened last; none if it was dropped.
    pub(crate) fn payload_end(&self, len: usize) -> &[u8] {
        let payload = self.input.as_slice().get(self.opened.0.clone()).unwrap_or_default();
        let end = payload.len().checked_sub(len).and_then(|at| payload.get(at..));
        debug_assert!(end.is_some(), "data is read before the next event");
        end.unwrap_or_default()
    }

    /// Drops the packet that was opened last.
    pub(crate) fn drop_opened(&mut self) {
        let (_, len) = std::mem::replace(&mut self.opened, (0..0, 0));
        self.input.drop_front(len);
    }

    /// Bytes of the input that no packet was made of.
    fn unread(&self) -> usize {
        self.input.len().saturating_sub(self.opened.1)
    }

    /// Whether the peer may send messages of the services now.
    pub(crate) fn check_service(&self) -> Result<(), Error> {
        match self.phase {
            Phase::Idle | Phase::Sent { .. } if !self.session_id.is_empty() => Ok(()),
            // RFC 4253, section 7.1: between KEXINIT and NEWKEYS there is nothing else.
            _ => Err(Error::protocol("a message does not belong into a key exchange")),
        }
    }

    /// Handles a message below 50.
    pub(crate) fn handle(&mut self, payload: &[u8]) -> Result<Option<Event>, Error> {
        let mut reader = Reader::new(payload);
        let number = reader.byte()?;
        if let Phase::Chosen(agreed) = &mut self.phase
            && agreed.skip
            && (message::KEX_ECDH_INIT..50).contains(&number)
        {
            // RFC 4253, section 7: the packet of a wrong guess is ignored.
            agreed.skip = false;
            return Ok(None);
        }
        // Strict key exchange (OpenSSH's PROTOCOL, 1.10): nothing but the first exchange's own messages.
        let belongs = match number {
            message::DISCONNECT | message::KEXINIT | message::NEWKEYS => true,
            message::KEX_ECDH_INIT => self.is_server(),
            message::KEX_ECDH_REPLY => !self.is_server(),
            _ => false,
        };
        if self.strict && self.session_id_pending() && !belongs {
            return Err(Error::protocol("strict key exchange allows no other message"));
        }
        match number {
            message::DISCONNECT => {
                let code = reader.u32()?;
                let message = reader.string().unwrap_or_default();
                self.closed = true;
                Ok(Some(Event::Disconnected(Disconnected::by_peer(code, message))))
            }
            message::IGNORE | message::DEBUG | message::UNIMPLEMENTED => {
                self.count_idle().map(|()| None)
            }
            message::EXT_INFO => self.read_extensions(reader).map(|()| None),
            message::KEXINIT => self.on_kexinit(payload),
            message::KEX_ECDH_INIT if self.is_server() => {
                self.on_share(reader)?;
                Ok(None)
            }
            message::KEX_ECDH_REPLY if !self.is_server() => self.on_reply(reader),
            message::NEWKEYS => self.on_new_keys(reader),
            _ => self.unimplemented().map(|()| None),
        }
    }

    /// Whether the first exchange is not over at the peer's side.
    fn session_id_pending(&self) -> bool {
        self.session_id.is_empty()
            || (matches!(self.phase, Phase::Finishing(_))
                && matches!(self.receiver.keys, Keys::None))
    }

    /// Answers a message that this side does not know (RFC 4253, section 11.4).
    pub(crate) fn unimplemented(&mut self) -> Result<(), Error> {
        self.count_idle()?;
        let mut out = vec![message::UNIMPLEMENTED];
        out.put_u32(self.receiver.sequence.wrapping_sub(1));
        self.send(&[&out])
    }

    fn count_idle(&mut self) -> Result<(), Error> {
        self.idle_packets = self.idle_packets.saturating_add(1);
        if self.early && self.idle_packets > MAX_IDLE_PACKETS {
            return Err(Error::protocol("too many messages without effect"));
        }
        Ok(())
    }

    fn read_extensions(&mut self, mut reader: Reader<'_>) -> Result<(), Error> {
        self.count_idle()?;
        self.check_service()?;
        if self.is_server() {
            return Ok(());
        }
        for _ in 0..reader.u32()?.min(64) {
            let name = reader.string()?;
            let value = reader.string()?;
            if name == SIGNATURES.as_bytes() && value.len() <= MAX_NAME_LIST_LEN {
                self.extensions.signatures = std::str::from_utf8(value).ok().map(str::to_owned);
            }
            self.extensions.host_bound |= name == HOST_BOUND.as_bytes() && value == b"0";
        }
        Ok(())
    }

    /// The peer's identification string, once it has come.
    pub(crate) fn peer_version(&self) -> Option<String> {
        let version = &self.peer_version;
        (!version.is_empty()).then(|| crate::kexinit::version_text(version))
    }

    /// Whether keys are being exchanged, within a time limit of its own.
    pub(crate) fn is_exchanging(&self) -> bool {
        !matches!(self.phase, Phase::Idle)
    }

    /// Whether a message of the services would go out at once.
    pub(crate) fn is_open(&self) -> bool {
        !self.closed && matches!(self.phase, Phase::Idle | Phase::Finishing(_))
    }

    /// Whether data would go out at once. Keys that have protected enough are not used for more.
    pub(crate) fn is_open_for_data(&self) -> bool {
        self.is_open() && !self.is_exchange_due()
    }

    /// Sends a message, or holds it until the key exchange ends.
    pub(crate) fn send(&mut self, parts: &[&[u8]]) -> Result<(), Error> {
        if self.closed {
            return Ok(());
        }
        if !self.is_open() {
            let payload = parts.concat();
            // What a vector takes besides its bytes counts, too.
            self.held_len += payload.len() + 64;
            self.held.push(payload);
            if self.held_len > MAX_HELD {
                return Err(Error::protocol("too many requests during a key exchange"));
            }
            return Ok(());
        }
        self.emit(parts)?;
        self.exchange_if_due()
    }

    /// Starts a key exchange if enough was sent or received under the present keys.
    pub(crate) fn exchange_if_due(&mut self) -> Result<(), Error> {
        if self.is_exchange_due() { self.exchange_now() } else { Ok(()) }
    }

    fn is_exchange_due(&self) -> bool {
        let limits = self.side.limits();
        let due =
            |used: &Used| used.bytes >= limits.rekey_bytes || used.packets >= MAX_PACKETS_BY_KEY;
        !self.early && (due(&self.sent) || due(&self.received))
    }

    /// Starts a key exchange if one may begin.
    pub(crate) fn exchange_now(&mut self) -> Result<(), Error> {
        if !self.early && !self.closed && matches!(self.phase, Phase::Idle) {
            self.start_exchange()
        } else {
            Ok(())
        }
    }

    fn emit(&mut self, parts: &[&[u8]]) -> Result<(), Error> {
        let len = self.sender.seal(parts, self.output.vec())?;
        self.sent.packets += 1;
        self.sent.bytes += len as u64;
        Ok(())
    }

    /// Ends the connection, and tells the peer why if it can be told.
    pub(crate) fn close(&mut self, error: &Error) {
        if self.closed {
            return;
        }
        // Who did not say what it speaks cannot read a packet.
        if !matches!(self.phase, Phase::Version) {
            let mut out = vec![message::DISCONNECT];
            out.put_u32(error.reason.code());
            out.put_string(error.message.as_bytes());
            out.put_string(b"");
            // Without entropy there is no packet, but the connection ends all the same.
            let _ = self.emit(&[&out]);
        }
        self.closed = true;
        self.held.clear();
        self.held_len = 0;
    }

    /// Sets the sequence numbers of both directions.
    #[cfg(test)]
    pub(crate) fn set_sequences(&mut self, sequence: u32) {
        self.sender.sequence = sequence;
        self.receiver.sequence = sequence;
    }

    fn server_host_keys(&self) -> &[HostKey] {
        match &self.side {
            Side::Server(config) => &config.host_keys,
            Side::Client(_) => &[],
        }
    }
}
