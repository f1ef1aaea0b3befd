//! SSH: the transport, authentication and connection protocols (RFC 4251 to 4254), for servers and clients.
//!
//! Nothing here opens a socket or a file, reads a clock or prints: the caller moves the bytes and says what time it is.
//! What a subsystem such as SFTP says inside a channel is the caller's matter, too. All primitives are AWS-LC's, except
//! ML-DSA with a context, which `outlast-crypto` takes from the `ml-dsa` crate.
//!
//! ```text
//! loop {
//!     connection.receive(&bytes_from_the_socket, now_ms);       // whenever wants_input()
//!     while let Some(event) = connection.poll() { ... }         // answers, reads and writes; nothing happens outside poll
//!     write connection.outgoing() to the socket; connection.sent(how_much);
//!     wait for: the socket, next_timer() (then on_timer(now_ms)), or something of your own to write
//! }
//! ```
//!
//! [`Server`] and [`Client`] do all their work in `poll`, one packet at a time, and so hold back a peer that sends faster
//! than its events are consumed: unread input stays in the buffer, and `wants_input` says when to leave the rest in the
//! socket. While a question ([`ServerEvent::Authenticate`], [`ServerEvent::ChannelOpen`], [`ServerEvent::ChannelRequest`],
//! [`ClientEvent::HostKey`]) is open, `poll` returns `None`: answer it with `answer` or `reply` and poll again.
//!
//! Writing never blocks either: `write` takes bytes into the channel's queue until the connection holds
//! [`Limits::queued`] of them, whatever the window and a key exchange allow at the moment; look at `queued` before more
//! is produced. Windows grow by `consumed`, never by arrival.

pub mod agent;
mod algorithms;
mod certificate;
mod channel;
mod cipher;
mod client;
mod config;
mod error;
mod exchange;
mod fingerprint;
mod issuing;
mod kexinit;
mod key_file;
mod krl;
mod limits;
mod message;
mod negotiation;
mod packet;
mod private_key;
mod public_key;
mod server;
mod signature;
mod spki;
mod transport;
mod wire;

pub use algorithms::{Algorithms, USER_KEYS, supported};
pub use certificate::{
    Certificate, CertificateError, CertificateFields, CertificateKind, is_source_list,
    option_value, to_be_signed,
};
pub use channel::{ChannelId, Request};
pub use client::{Client, ClientEvent, Credential, HostKeyShown};
pub use config::{ClientConfig, HostKey, ServerConfig};
pub use error::{Disconnected, Error, Reason};
pub use issuing::{ToSign, Unsigned};
pub use krl::{Krl, KrlCounts, KrlError, Revoked};
pub use limits::{Limits, MAX_KRL_LEN};
pub use negotiation::{Chosen, Direction, Disagreement, Lists, Negotiation};
pub use private_key::{KeyKind, PrivateKey};
pub use public_key::{KeyError, PublicKey};
pub use server::{Attempt, AuthDecision, KeyOffer, Method, Prompt, Server, ServerEvent, Signed};

#[cfg(test)]
mod tests;
