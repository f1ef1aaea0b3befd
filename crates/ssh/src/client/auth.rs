//! Authentication as a client (RFC 4252, RFC 4256, RFC 8332).

use std::sync::Arc;

use outlast_crypto::Secret;
use zeroize::Zeroizing;

use super::{ClientEvent, Credential};
use crate::certificate::Certificate;
use crate::error::{Error, printable};
use crate::limits::MAX_PROMPTS;
use crate::message;
use crate::private_key::PrivateKey;
use crate::public_key::RSA;
use crate::signature::Algorithm;
use crate::transport::Transport;
use crate::wire::{Reader, Writer};

const USERAUTH: &[u8] = b"ssh-userauth";
const CONNECTION: &[u8] = b"ssh-connection";
const HOST_BOUND_METHOD: &[u8] = b"publickey-hostbound-v00@openssh.com";

/// What message 60 means, which depends on the method.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Waiting {
    #[default]
    Nothing,
    Outcome,
    Offer,
    Interactive,
}

#[derive(Default)]
pub(super) struct Authentication {
    ready: bool,
    done: bool,
    waiting: Waiting,
    asked: Option<usize>,
}

impl Authentication {
    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    pub(super) fn request_service(&self, transport: &mut Transport) -> Result<(), Error> {
        let mut out = vec![message::SERVICE_REQUEST];
        out.put_string(USERAUTH);
        transport.send(&[&out])
    }

    pub(super) fn on_service(&mut self) -> Result<(), Error> {
        if std::mem::replace(&mut self.ready, true) {
            return Err(Error::protocol("the service was accepted twice"));
        }
        Ok(())
    }

    pub(super) fn start(
        &mut self,
        transport: &mut Transport,
        user: &str,
        credential: Credential,
    ) -> Result<(), Error> {
        if !self.ready || self.done || self.waiting != Waiting::Nothing {
            return Ok(());
        }
        let mut out = Zeroizing::new(Vec::with_capacity(2048));
        out.put_byte(message::USERAUTH_REQUEST);
        out.put_string(user.as_bytes());
        out.put_string(CONNECTION);
        self.waiting = Waiting::Outcome;
        match credential {
            Credential::None => out.put_string(b"none"),
            Credential::Password(password) => {
                out.put_string(b"password");
                out.put_bool(false);
                out.put_string(password.expose());
            }
            Credential::Key { key, certificate } => {
                sign(transport, &mut out, &key, certificate.as_deref())?;
            }
            Credential::Offer(key) => {
                self.waiting = Waiting::Offer;
                let algorithm = if key.key_type() == RSA { rsa(transport) } else { key.key_type() };
                out.put_string(b"publickey");
                out.put_bool(false);
                out.put_string(algorithm.as_bytes());
                out.put_string(key.blob());
            }
            Credential::KeyboardInteractive => {
                self.waiting = Waiting::Interactive;
                out.put_string(b"keyboard-interactive");
                out.put_string(b"");
                out.put_string(b"");
            }
        }
        transport.send(&[&out])
    }

    pub(super) fn respond(
        &mut self,
        transport: &mut Transport,
        responses: &[Secret],
    ) -> Result<(), Error> {
        if self.asked.take() != Some(responses.len()) {
            return Ok(());
        }
        let mut out = Zeroizing::new(Vec::with_capacity(1024));
        out.put_byte(message::USERAUTH_INFO_RESPONSE);
        out.put_u32(u32::try_from(responses.len()).unwrap_or_default());
        for response in responses {
            out.put_string(response.expose());
        }
        transport.send(&[&out])
    }

    /// Handles a message from 50 to 79.
    pub(super) fn handle(
        &mut self,
        transport: &mut Transport,
        payload: &[u8],
    ) -> Result<Option<ClientEvent>, Error> {
        let mut reader = Reader::new(payload);
        let number = reader.byte()?;
        if number == message::USERAUTH_BANNER {
            return Ok(Some(ClientEvent::Banner(printable(reader.string()?))));
        }
        if self.waiting == Waiting::Nothing {
            return Err(Error::protocol("an answer without a try to authenticate"));
        }
        match number {
            message::USERAUTH_SUCCESS if self.waiting != Waiting::Offer => {
                self.done = true;
                self.waiting = Waiting::Nothing;
                transport.early = false;
                Ok(Some(ClientEvent::Authenticated))
            }
            message::USERAUTH_FAILURE => {
                self.waiting = Waiting::Nothing;
                let methods = reader.names()?.split(',').map(str::to_owned).collect();
                Ok(Some(ClientEvent::Refused { methods, partial: reader.bool()? }))
            }
            message::USERAUTH_PK_OK if self.waiting == Waiting::Offer => {
                self.waiting = Waiting::Nothing;
                Ok(Some(ClientEvent::KeyAcceptable))
            }
            message::USERAUTH_INFO_REQUEST if self.waiting == Waiting::Interactive => {
                for _ in 0..3 {
                    reader.string()?;
                }
                let count = reader.u32()? as usize;
                if count > MAX_PROMPTS {
                    return Err(Error::protocol("too many questions"));
                }
                let mut questions = Vec::new();
                for _ in 0..count {
                    questions.push((printable(reader.string()?), reader.bool()?));
                }
                self.asked = Some(count);
                Ok(Some(ClientEvent::Prompt(questions)))
            }
            _ => Err(Error::protocol("a message does not belong into authentication")),
        }
    }
}

/// `rsa-sha2-512`, unless the server takes only `rsa-sha2-256` (RFC 8332, section 3.3).
fn rsa(transport: &Transport) -> &'static str {
    let has = |name| {
        let list = transport.extensions.signatures.as_deref();
        list.is_none_or(|list| list.split(',').any(|other| other == name))
    };
    if has("rsa-sha2-512") { "rsa-sha2-512" } else { "rsa-sha2-256" }
}

/// Appends a signed request (RFC 4252, section 7), bound to the host's key if the server knows how.
fn sign(
    transport: &Transport,
    out: &mut Zeroizing<Vec<u8>>,
    key: &Arc<PrivateKey>,
    certificate: Option<&Certificate>,
) -> Result<(), Error> {
    const UNUSABLE: Error = Error::protocol("the key cannot sign");
    let name = if key.public_key().key_type() == RSA { rsa(transport) } else { key.algorithm() };
    let (row, _) = Algorithm::by_name(name).ok_or(UNUSABLE)?;
    let bound = transport.extensions.host_bound;
    out.put_string(if bound { HOST_BOUND_METHOD } else { b"publickey" });
    out.put_bool(true);
    match certificate {
        Some(certificate) => {
            out.put_string(row.with_certificate.as_bytes());
            out.put_string(certificate.blob());
        }
        None => {
            out.put_string(row.name.as_bytes());
            out.put_string(key.public_key().blob());
        }
    }
    if bound {
        out.put_string(transport.host_key());
    }
    let mut signed = Vec::with_capacity(out.len() + 80);
    signed.put_string(transport.session_id());
    signed.put(out);
    out.put_string(&key.sign(row.name, &signed).ok_or(UNUSABLE)?);
    Ok(())
}
