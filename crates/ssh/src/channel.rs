//! The connection protocol of both sides (RFC 4254): channels, their windows and requests.

use crate::error::{Error, printable};
use crate::limits::MAX_COMMAND_LEN;
use crate::message;
use crate::packet::Buffer;
use crate::transport::Transport;
use crate::wire::{Reader, Writer};

/// A channel of a connection. Numbers are not used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChannelId(pub(crate) u32);

/// What a client asks of a session channel (RFC 4254, section 6).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// To run a command, as bytes.
    Exec(Vec<u8>),
    /// To start a subsystem, such as `sftp`.
    Subsystem(String),
    /// To start the user's shell.
    Shell,
    /// To set an environment variable.
    Env {
        /// Its name.
        name: String,
        /// Its value.
        value: Vec<u8>,
    },
    /// For a terminal of this type (`TERM`).
    Pty(String),
}

/// Most data in a packet of ours, in bytes, whatever the peer allows.
const MOST_DATA: usize = 64 * 1024;
/// Least `maximum packet size` of a peer.
const LEAST_PACKET: u32 = 256;

/// RFC 4254, section 5.1.
const ADMINISTRATIVELY_PROHIBITED: u32 = 1;
const UNKNOWN_CHANNEL_TYPE: u32 = 3;
const RESOURCE_SHORTAGE: u32 = 4;

pub(crate) enum Event {
    /// A question.
    Open(ChannelId),
    /// A question.
    Request(ChannelId, Request),
    /// Data: the last bytes of the payload.
    Data {
        channel: ChannelId,
        len: usize,
        extended: bool,
    },
    Eof(ChannelId),
    Closed(ChannelId),
    Opened(ChannelId),
    OpenFailed {
        channel: ChannelId,
        reason: u32,
        message: String,
    },
    Answered {
        channel: ChannelId,
        accepted: bool,
    },
    ExitStatus {
        channel: ChannelId,
        status: u32,
    },
    ExitSignal {
        channel: ChannelId,
        signal: String,
    },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// A client's channel that the server has not confirmed, or a server's that waits for its caller.
    Opening,
    Open,
}

struct Channel {
    id: ChannelId,
    peer_id: u32,
    state: State,
    /// What may be sent, in bytes.
    send_window: u32,
    peer_packet: u32,
    /// What the peer may send when nothing waits to be consumed, in bytes.
    window: u32,
    /// What the peer may send, in bytes.
    receive_window: u32,
    /// Arrived, but not consumed.
    unconsumed: u32,
    queue: Buffer,
    exit_status: Option<u32>,
    eof: Ending,
    close: Ending,
    received_eof: bool,
    /// Whether a program, subsystem or shell was started.
    started: bool,
    /// Requests that the server has not answered.
    unanswered: u32,
}

/// Something that is sent when the queue is empty.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    No,
    Wanted,
    Sent,
}

/// What the peer waits for an answer to.
enum Question {
    Open(ChannelId),
    Request { channel: ChannelId, want_reply: bool, starts: bool },
}

#[derive(Default)]
pub(crate) struct Connection {
    channels: Vec<Channel>,
    next: u32,
    question: Option<Question>,
    /// Whether the client will open no more sessions (`no-more-sessions@openssh.com`).
    pub(crate) no_more_sessions: bool,
}

impl Connection {
    pub(crate) fn has_question(&self) -> bool {
        self.question.is_some()
    }

    /// Bytes in the channels' queues.
    pub(crate) fn queued(&self) -> usize {
        self.channels.iter().map(|channel| channel.queue.len()).sum()
    }

    pub(crate) fn rest(&mut self) {
        self.channels.iter_mut().for_each(|channel| channel.queue.rest());
    }

    pub(crate) fn memory(&self) -> usize {
        let queues: usize = self.channels.iter().map(|channel| channel.queue.capacity()).sum();
        queues + self.channels.capacity() * size_of::<Channel>()
    }

    fn find(&mut self, id: ChannelId) -> Option<&mut Channel> {
        self.channels.iter_mut().find(|channel| channel.id == id)
    }

    /// The channel that the next field names.
    fn named(&mut self, reader: &mut Reader<'_>) -> Result<&mut Channel, Error> {
        let id = ChannelId(reader.u32()?);
        self.find(id).ok_or(Error::protocol("a message is for a channel that does not exist"))
    }

    fn open_named(&mut self, reader: &mut Reader<'_>) -> Result<&mut Channel, Error> {
        let channel = self.named(reader)?;
        if channel.state == State::Open {
            Ok(channel)
        } else {
            Err(Error::protocol("a message is for a channel that is not open"))
        }
    }

    fn add(
        &mut self,
        transport: &Transport,
        peer_id: u32,
        send_window: u32,
        peer_packet: u32,
    ) -> ChannelId {
        let id = ChannelId(self.next);
        self.next = self.next.wrapping_add(1);
        let window = transport.limits().opening_window();
        self.channels.push(Channel {
            id,
            peer_id,
            state: State::Opening,
            send_window,
            peer_packet,
            window,
            receive_window: window,
            unconsumed: 0,
            queue: Buffer::default(),
            exit_status: None,
            eof: Ending::No,
            close: Ending::No,
            received_eof: false,
            started: false,
            unanswered: 0,
        });
        id
    }

    /// Opens a session channel as a client. `None` if there are too many.
    pub(crate) fn open(&mut self, transport: &mut Transport) -> Result<Option<ChannelId>, Error> {
        if self.channels.len() >= transport.limits().channels {
            return Ok(None);
        }
        let id = self.add(transport, 0, 0, 0);
        let mut out = vec![message::CHANNEL_OPEN];
        out.put_string(b"session");
        out.put_u32(id.0);
        out.put_u32(transport.limits().opening_window());
        out.put_u32(transport.limits().announced_packet());
        transport.send(&[&out])?;
        Ok(Some(id))
    }

    /// Sends a request with a reply as a client. False if the channel is gone.
    pub(crate) fn request(
        &mut self,
        transport: &mut Transport,
        id: ChannelId,
        request: &Request,
    ) -> Result<bool, Error> {
        let Some(channel) = self.find(id).filter(|channel| channel.is_writable()) else {
            return Ok(false);
        };
        channel.unanswered += 1;
        let mut out = vec![message::CHANNEL_REQUEST];
        out.put_u32(channel.peer_id);
        let mut head = |name: &str| {
            out.put_string(name.as_bytes());
            out.put_bool(true);
        };
        match request {
            Request::Exec(command) => {
                head("exec");
                out.put_string(command);
            }
            Request::Subsystem(name) => {
                head("subsystem");
                out.put_string(name.as_bytes());
            }
            Request::Shell => head("shell"),
            Request::Env { name, value } => {
                head("env");
                out.put_string(name.as_bytes());
                out.put_string(value);
            }
            Request::Pty(term) => {
                head("pty-req");
                out.put_string(term.as_bytes());
                for size in [80, 24, 0, 0] {
                    out.put_u32(size);
                }
                // No terminal modes.
                out.put_string(&[0]);
            }
        }
        transport.send(&[&out])?;
        Ok(true)
    }

    /// Answers the open question.
    pub(crate) fn reply(&mut self, transport: &mut Transport, accepted: bool) -> Result<(), Error> {
        let packet = transport.limits().announced_packet();
        match self.question.take() {
            None => Ok(()),
            Some(Question::Open(id)) => {
                let Some(channel) = self.find(id) else { return Ok(()) };
                let (peer_id, window) = (channel.peer_id, channel.window);
                if !accepted {
                    self.channels.retain(|channel| channel.id != id);
                    return refuse(transport, peer_id, ADMINISTRATIVELY_PROHIBITED, "refused");
                }
                channel.state = State::Open;
                let mut out = vec![message::CHANNEL_OPEN_CONFIRMATION];
                for value in [peer_id, id.0, window, packet] {
                    out.put_u32(value);
                }
                transport.send(&[&out])
            }
            Some(Question::Request { channel, want_reply, starts }) => {
                let Some(channel) = self.find(channel) else { return Ok(()) };
                channel.started |= starts && accepted;
                let peer_id = channel.peer_id;
                if want_reply { answer(transport, peer_id, accepted) } else { Ok(()) }
            }
        }
    }

    /// Handles a message from 90 to 100.
    pub(crate) fn handle(
        &mut self,
        transport: &mut Transport,
        payload: &[u8],
    ) -> Result<Option<Event>, Error> {
        let mut reader = Reader::new(payload);
        match reader.byte()? {
            message::CHANNEL_OPEN => self.on_open(transport, reader),
            message::CHANNEL_OPEN_CONFIRMATION => {
                let channel = self.opening(&mut reader)?;
                channel.peer_id = reader.u32()?;
                channel.send_window = reader.u32()?;
                channel.peer_packet = reader.u32()?;
                if channel.peer_packet < LEAST_PACKET {
                    return Err(Error::protocol("a channel's packets are too small"));
                }
                channel.state = State::Open;
                Ok(Some(Event::Opened(channel.id)))
            }
            message::CHANNEL_OPEN_FAILURE => {
                let channel = self.opening(&mut reader)?.id;
                let reason = reader.u32()?;
                let message = printable(reader.string()?);
                self.channels.retain(|other| other.id != channel);
                Ok(Some(Event::OpenFailed { channel, reason, message }))
            }
            message::CHANNEL_WINDOW_ADJUST => {
                let channel = self.open_named(&mut reader)?;
                let more = reader.u32()?;
                // RFC 4254, section 5.2: at most 2^32 - 1.
                channel.send_window = channel
                    .send_window
                    .checked_add(more)
                    .ok_or(Error::protocol("a window is larger than 2^32 - 1"))?;
                channel.flush(transport)?;
                Ok(None)
            }
            message::CHANNEL_DATA => self.on_data(transport, reader, false),
            message::CHANNEL_EXTENDED_DATA => self.on_data(transport, reader, true),
            message::CHANNEL_EOF => {
                let channel = self.open_named(&mut reader)?;
                if std::mem::replace(&mut channel.received_eof, true) {
                    return Err(Error::protocol("a channel ended twice"));
                }
                Ok((channel.close == Ending::No).then_some(Event::Eof(channel.id)))
            }
            message::CHANNEL_CLOSE => {
                let channel = self.open_named(&mut reader)?;
                let id = channel.id;
                if channel.close != Ending::Sent {
                    let mut out = vec![message::CHANNEL_CLOSE];
                    out.put_u32(channel.peer_id);
                    transport.send(&[&out])?;
                }
                self.channels.retain(|other| other.id != id);
                Ok(Some(Event::Closed(id)))
            }
            message::CHANNEL_REQUEST => self.on_request(transport, reader),
            number @ (message::CHANNEL_SUCCESS | message::CHANNEL_FAILURE) => {
                let channel = self.open_named(&mut reader)?;
                channel.unanswered = channel
                    .unanswered
                    .checked_sub(1)
                    .ok_or(Error::protocol("an answer to no request"))?;
                let accepted = number == message::CHANNEL_SUCCESS;
                Ok(Some(Event::Answered { channel: channel.id, accepted }))
            }
            _ => transport.unimplemented().map(|()| None),
        }
    }

    /// A client's channel that waits for the server.
    fn opening(&mut self, reader: &mut Reader<'_>) -> Result<&mut Channel, Error> {
        let channel = self.named(reader)?;
        if channel.state == State::Opening {
            Ok(channel)
        } else {
            Err(Error::protocol("a channel was confirmed or refused twice"))
        }
    }

    fn on_open(
        &mut self,
        transport: &mut Transport,
        mut reader: Reader<'_>,
    ) -> Result<Option<Event>, Error> {
        let kind = reader.string()?;
        let peer_id = reader.u32()?;
        let window = reader.u32()?;
        let packet = reader.u32()?;
        let refused = if !transport.is_server() || (kind == b"session" && self.no_more_sessions) {
            Some((ADMINISTRATIVELY_PROHIBITED, "not allowed"))
        } else if kind == b"direct-tcpip" || kind == b"direct-streamlocal@openssh.com" {
            Some((ADMINISTRATIVELY_PROHIBITED, "forwarding is not allowed"))
        } else if kind != b"session" {
            Some((UNKNOWN_CHANNEL_TYPE, "only sessions are supported"))
        } else if self.channels.len() >= transport.limits().channels || packet < LEAST_PACKET {
            Some((RESOURCE_SHORTAGE, "too many channels, or packets that are too small"))
        } else {
            None
        };
        if let Some((reason, message)) = refused {
            return refuse(transport, peer_id, reason, message).map(|()| None);
        }
        let id = self.add(transport, peer_id, window, packet);
        self.question = Some(Question::Open(id));
        Ok(Some(Event::Open(id)))
    }

    fn on_data(
        &mut self,
        transport: &mut Transport,
        mut reader: Reader<'_>,
        extended: bool,
    ) -> Result<Option<Event>, Error> {
        let most = transport.limits().announced_packet();
        let channel = self.open_named(&mut reader)?;
        if extended {
            reader.u32()?;
        }
        let bytes = reader.string()?;
        reader.end()?;
        let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        if len > most || channel.received_eof {
            return Err(Error::protocol(
                "data is larger than a packet may be, or comes after its end",
            ));
        }
        channel.receive_window = channel
            .receive_window
            .checked_sub(len)
            .ok_or(Error::protocol("data is larger than the window"))?;
        channel.unconsumed += len;
        let id = channel.id;
        // Nobody reads what comes after this side's close, nor what clients send as extended data.
        if channel.close != Ending::No || (extended && transport.is_server()) || len == 0 {
            self.consumed(transport, id, bytes.len())?;
            return Ok(None);
        }
        Ok(Some(Event::Data { channel: id, len: bytes.len(), extended }))
    }

    fn on_request(
        &mut self,
        transport: &mut Transport,
        mut reader: Reader<'_>,
    ) -> Result<Option<Event>, Error> {
        let is_server = transport.is_server();
        let channel = self.open_named(&mut reader)?;
        let kind = reader.string()?;
        let want_reply = reader.bool()?;
        let (id, peer_id, closing) = (channel.id, channel.peer_id, channel.close != Ending::No);
        if closing {
            return Ok(None);
        }
        if !is_server {
            let event = match kind {
                b"exit-status" => Some(Event::ExitStatus { channel: id, status: reader.u32()? }),
                b"exit-signal" => {
                    Some(Event::ExitSignal { channel: id, signal: printable(reader.string()?) })
                }
                _ => None,
            };
            if want_reply {
                answer(transport, peer_id, false)?;
            }
            return Ok(event);
        }
        let text = |bytes: &[u8]| std::str::from_utf8(bytes).ok().map(str::to_owned);
        let request = match kind {
            b"exec" => {
                let command = reader.string()?;
                (command.len() <= MAX_COMMAND_LEN).then(|| Request::Exec(command.to_vec()))
            }
            b"subsystem" => text(reader.string()?).map(Request::Subsystem),
            b"shell" => Some(Request::Shell),
            b"env" => {
                let name = text(reader.string()?);
                let value = reader.string()?.to_vec();
                name.map(|name| Request::Env { name, value })
            }
            b"pty-req" => text(reader.string()?).map(Request::Pty),
            _ => None,
        };
        let starts =
            matches!(request, Some(Request::Exec(_) | Request::Subsystem(_) | Request::Shell));
        // RFC 4254, section 6.5: only one of them for each channel.
        match request.filter(|_| !(starts && channel.started)) {
            Some(request) => {
                self.question = Some(Question::Request { channel: id, want_reply, starts });
                Ok(Some(Event::Request(id, request)))
            }
            None => {
                if want_reply {
                    answer(transport, peer_id, false)?;
                }
                Ok(None)
            }
        }
    }

    /// Takes bytes to send, at most `room` of those that do not go out at once. Returns how many were taken.
    pub(crate) fn write(
        &mut self,
        transport: &mut Transport,
        id: ChannelId,
        bytes: &[u8],
    ) -> Result<usize, Error> {
        let room =
            transport.limits().queued.saturating_sub(self.queued() + transport.outgoing().len());
        let Some(channel) = self.find(id).filter(|channel| channel.is_writable()) else {
            return Ok(0);
        };
        let bytes = &bytes[..bytes.len().min(room)];
        let mut rest = bytes;
        if channel.queue.is_empty() {
            rest = &bytes[channel.send(transport, bytes)?..];
        }
        if !rest.is_empty() {
            channel.queue.push(rest);
        }
        Ok(bytes.len())
    }

    /// Lets the peer send as much more as was consumed.
    pub(crate) fn consumed(
        &mut self,
        transport: &mut Transport,
        id: ChannelId,
        len: usize,
    ) -> Result<(), Error> {
        let Some(channel) = self.find(id) else { return Ok(()) };
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        channel.unconsumed = channel.unconsumed.saturating_sub(len);
        channel.grant(transport)
    }

    /// Lets the peer send as much as [`crate::Limits::window`] says from now on.
    pub(crate) fn widen(&mut self, transport: &mut Transport, id: ChannelId) -> Result<(), Error> {
        let Some(channel) = self.find(id) else { return Ok(()) };
        channel.window = transport.limits().window;
        channel.grant(transport)
    }

    /// Bytes that would go out at once, or `None` if the channel is gone or ending.
    pub(crate) fn writable(&mut self, id: ChannelId) -> Option<usize> {
        let channel = self.find(id).filter(|channel| channel.is_writable())?;
        Some((channel.send_window as usize).saturating_sub(channel.queue.len()))
    }

    pub(crate) fn exit_status(&mut self, id: ChannelId, status: u32) {
        if let Some(channel) = self.find(id) {
            channel.exit_status = Some(status);
        }
    }

    pub(crate) fn eof(&mut self, transport: &mut Transport, id: ChannelId) -> Result<(), Error> {
        let Some(channel) = self.find(id) else { return Ok(()) };
        if channel.eof == Ending::No {
            channel.eof = Ending::Wanted;
        }
        channel.flush(transport)
    }

    pub(crate) fn close(&mut self, transport: &mut Transport, id: ChannelId) -> Result<(), Error> {
        let Some(channel) = self.find(id) else { return Ok(()) };
        if channel.close == Ending::No {
            channel.close = Ending::Wanted;
        }
        channel.flush(transport)
    }

    /// Sends what windows and key exchanges held back.
    pub(crate) fn flush(&mut self, transport: &mut Transport) -> Result<(), Error> {
        if !transport.is_open() {
            return Ok(());
        }
        for channel in &mut self.channels {
            channel.flush(transport)?;
            channel.grant(transport)?;
        }
        Ok(())
    }
}

impl Channel {
    fn is_writable(&self) -> bool {
        self.state == State::Open && self.eof == Ending::No && self.close == Ending::No
    }

    /// Sends what may go out now. Returns how much that was.
    fn send(&mut self, transport: &mut Transport, bytes: &[u8]) -> Result<usize, Error> {
        let mut sent = 0;
        let most = (self.peer_packet as usize).min(MOST_DATA);
        while sent < bytes.len() && self.send_window > 0 && transport.is_open_for_data() {
            let len = (bytes.len() - sent).min(most).min(self.send_window as usize);
            let piece = &bytes[sent..sent + len];
            let len = u32::try_from(len).map_err(|_| Error::library())?;
            let mut head = [message::CHANNEL_DATA, 0, 0, 0, 0, 0, 0, 0, 0];
            head[1..5].copy_from_slice(&self.peer_id.to_be_bytes());
            head[5..].copy_from_slice(&len.to_be_bytes());
            transport.send(&[&head, piece])?;
            self.send_window -= len;
            sent += piece.len();
        }
        Ok(sent)
    }

    fn flush(&mut self, transport: &mut Transport) -> Result<(), Error> {
        if self.state != State::Open {
            return Ok(());
        }
        if !self.queue.is_empty() {
            let mut queue = std::mem::take(&mut self.queue);
            let sent = self.send(transport, queue.as_slice());
            queue.drop_front(*sent.as_ref().unwrap_or(&0));
            self.queue = queue;
            sent?;
        }
        if !self.queue.is_empty() {
            return Ok(());
        }
        let closes = self.close == Ending::Wanted;
        if (self.eof == Ending::Wanted || closes) && self.eof != Ending::Sent {
            self.eof = Ending::Sent;
            self.tell(transport, message::CHANNEL_EOF, &[])?;
        }
        if closes {
            if let Some(status) = self.exit_status.take() {
                let mut out = Vec::new();
                out.put_string(b"exit-status");
                out.put_bool(false);
                out.put_u32(status);
                self.tell(transport, message::CHANNEL_REQUEST, &out)?;
            }
            self.close = Ending::Sent;
            self.tell(transport, message::CHANNEL_CLOSE, &[])?;
        }
        Ok(())
    }

    fn tell(&self, transport: &mut Transport, number: u8, rest: &[u8]) -> Result<(), Error> {
        let mut head = vec![number];
        head.put_u32(self.peer_id);
        transport.send(&[&head, rest])
    }

    /// Grows the peer's window once an eighth of it was consumed.
    fn grant(&mut self, transport: &mut Transport) -> Result<(), Error> {
        let window = self.window;
        let missing = window.saturating_sub(self.receive_window).saturating_sub(self.unconsumed);
        let ended = self.received_eof || self.close != Ending::No || self.state != State::Open;
        if missing == 0 || missing < window / 8 || ended || !transport.is_open() {
            return Ok(());
        }
        self.receive_window += missing;
        self.tell(transport, message::CHANNEL_WINDOW_ADJUST, &missing.to_be_bytes())
    }
}

fn refuse(
    transport: &mut Transport,
    peer_id: u32,
    reason: u32,
    message: &str,
) -> Result<(), Error> {
    let mut out = Vec::new();
    out.put_byte(message::CHANNEL_OPEN_FAILURE);
    out.put_u32(peer_id);
    out.put_u32(reason);
    out.put_string(message.as_bytes());
    out.put_string(b"");
    transport.send(&[&out])
}

fn answer(transport: &mut Transport, peer_id: u32, accepted: bool) -> Result<(), Error> {
    let number = if accepted { message::CHANNEL_SUCCESS } else { message::CHANNEL_FAILURE };
    let mut out = vec![number];
    out.put_u32(peer_id);
    transport.send(&[&out])
}
