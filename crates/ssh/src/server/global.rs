//! Global requests (RFC 4254, section 4): host keys that are announced and proved, signs of life.

use super::{Server, ServerEvent};
use crate::error::Error;
use crate::limits::MAX_ANNOUNCED_KEYS;
use crate::message;
use crate::private_key::PrivateKey;
use crate::public_key::RSA;
use crate::wire::{Reader, Writer};

/// OpenSSH's PROTOCOL, 2.5.
pub(crate) const HOST_KEYS: &[u8] = b"hostkeys-00@openssh.com";
pub(crate) const PROVE: &[u8] = b"hostkeys-prove-00@openssh.com";
pub(crate) const KEEPALIVE: &[u8] = b"keepalive@openssh.com";
/// OpenSSH's PROTOCOL, 2.2.
pub(crate) const NO_MORE_SESSIONS: &[u8] = b"no-more-sessions@openssh.com";

/// Requests for proofs in a connection, because each takes signatures.
const MAX_PROOFS: u32 = 4;
/// Keepalives that wait for their answers. A client that goes on and answers none is asked no more.
const MAX_KEEPALIVES: u32 = 64;

impl Server {
    pub(super) fn send_host_keys(&mut self) -> Result<(), Error> {
        if !self.authentication.is_done() {
            return Ok(());
        }
        let mut out = vec![message::GLOBAL_REQUEST];
        out.put_string(HOST_KEYS);
        out.put_bool(false);
        for key in self.announced().take(MAX_ANNOUNCED_KEYS) {
            out.put_string(key.public_key().blob());
        }
        self.transport.send(&[&out])
    }

    pub(super) fn send_keepalive(&mut self) -> Result<(), Error> {
        if !self.authentication.is_done() || self.keepalives >= MAX_KEEPALIVES {
            return Ok(());
        }
        self.keepalives += 1;
        let mut out = vec![message::GLOBAL_REQUEST];
        out.put_string(KEEPALIVE);
        out.put_bool(true);
        self.transport.send(&[&out])
    }

    /// Handles a message from 80 to 89.
    pub(super) fn on_global(&mut self, payload: &[u8]) -> Result<Option<ServerEvent>, Error> {
        let mut reader = Reader::new(payload);
        match reader.byte()? {
            message::GLOBAL_REQUEST => {
                let name = reader.string()?;
                let want_reply = reader.bool()?;
                let proof = if name == PROVE { self.prove(reader)? } else { None };
                // Sessions that exist already go on.
                self.connection.no_more_sessions |= name == NO_MORE_SESSIONS;
                match proof {
                    _ if !want_reply => {}
                    Some(proof) => self.transport.send(&[&[message::REQUEST_SUCCESS], &proof])?,
                    None if name == NO_MORE_SESSIONS => {
                        self.transport.send(&[&[message::REQUEST_SUCCESS]])?;
                    }
                    // Also the answer to a sign of life, as OpenSSH gives it.
                    None => self.transport.send(&[&[message::REQUEST_FAILURE]])?,
                }
                Ok(None)
            }
            message::REQUEST_SUCCESS | message::REQUEST_FAILURE => {
                self.keepalives = self
                    .keepalives
                    .checked_sub(1)
                    .ok_or(Error::protocol("an answer to no request"))?;
                Ok(Some(ServerEvent::Alive))
            }
            _ => self.transport.unimplemented().map(|()| None),
        }
    }

    fn announced(&self) -> impl Iterator<Item = &PrivateKey> {
        let present = self.config.host_keys.iter().map(|host| &*host.key);
        present.chain(self.config.next_host_keys.iter().map(|key| &**key))
    }

    /// Signatures with all of the named host keys; `None` if there are others among them.
    fn prove(&mut self, mut reader: Reader<'_>) -> Result<Option<Vec<u8>>, Error> {
        self.proofs += 1;
        if self.proofs > MAX_PROOFS {
            return Ok(None);
        }
        let mut proof = Vec::new();
        for _ in 0..MAX_ANNOUNCED_KEYS {
            if reader.is_empty() {
                return Ok(Some(proof));
            }
            let blob = reader.string()?;
            let Some(key) = self.announced().find(|key| key.public_key().blob() == blob) else {
                return Ok(None);
            };
            let algorithm = match self.transport.host_key_algorithm {
                // OpenSSH wants the signature algorithm of the key exchange, if that had an RSA key, too.
                negotiated
                    if key.public_key().key_type() == RSA && negotiated.starts_with("rsa-") =>
                {
                    negotiated
                }
                _ => key.algorithm(),
            };
            let signed = proof_message(self.transport.session_id(), blob);
            proof.put_string(&key.sign(algorithm, &signed).ok_or(Error::library())?);
        }
        Ok(if reader.is_empty() { Some(proof) } else { None })
    }
}

/// What a host key signs to prove that the server has it.
pub(crate) fn proof_message(session_id: &[u8], blob: &[u8]) -> Vec<u8> {
    let mut signed = Vec::new();
    signed.put_string(PROVE);
    signed.put_string(session_id);
    signed.put_string(blob);
    signed
}
