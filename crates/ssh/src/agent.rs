//! The one request to an SSH agent that this project makes: take this identity, for so long
//! (draft-ietf-sshm-ssh-agent).

use zeroize::Zeroizing;

use crate::certificate::Certificate;
use crate::limits::MAX_AGENT_MESSAGE;
use crate::private_key::{Inner, PrivateKey};
use crate::public_key::KeyError;
use crate::wire::{Reader, Writer};

const ADD_IDENTITY: u8 = 17;
const ADD_ID_CONSTRAINED: u8 = 25;
const CONSTRAIN_LIFETIME: u8 = 1;
const CONSTRAIN_CONFIRM: u8 = 2;
const SUCCESS: u8 = 6;

/// What an agent is to do with an identity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Constraints {
    /// Seconds after which it forgets the key.
    pub lifetime_s: Option<u32>,
    /// Whether it asks the user before each signature.
    pub confirm: bool,
}

/// The message that gives a private key to an agent, with a certificate for it; its length comes first. Only for Ed25519
/// and `ssh-mldsa44-ed25519`.
///
/// # Errors
/// If the key is of another type, or the certificate is for another key.
pub fn add_identity(
    key: &PrivateKey,
    certificate: Option<&Certificate>,
    comment: &str,
    constraints: Constraints,
) -> Result<Zeroizing<Vec<u8>>, KeyError> {
    // Other types have other fields beside a certificate.
    if !matches!(key.inner(), Inner::Ed25519(_) | Inner::Composite { .. }) {
        return Err(KeyError::UnsupportedType(key.public_key().key_type().to_owned()));
    }
    let is_constrained = constraints != Constraints::default();
    let mut body = Zeroizing::new(Vec::with_capacity(16 * 1024));
    body.put_byte(if is_constrained { ADD_ID_CONSTRAINED } else { ADD_IDENTITY });
    match certificate {
        None => body.put_string(key.public_key().key_type().as_bytes()),
        Some(certificate) if certificate.key() == key.public_key() => {
            body.put_string(certificate.type_name().as_bytes());
            body.put_string(certificate.blob());
        }
        Some(_) => return Err(KeyError::Invalid),
    }
    let mut private = Zeroizing::new(Vec::with_capacity(8 * 1024));
    key.write_private(&mut private)?;
    let mut fields = Reader::new(&private);
    if certificate.is_some() && matches!(key.inner(), Inner::Composite { .. }) {
        // OpenSSH takes the public key from the certificate, but for Ed25519.
        fields.string()?;
    }
    body.put(fields.rest());
    body.put_string(comment.as_bytes());
    if let Some(seconds) = constraints.lifetime_s {
        body.put_byte(CONSTRAIN_LIFETIME);
        body.put_u32(seconds);
    }
    if constraints.confirm {
        body.put_byte(CONSTRAIN_CONFIRM);
    }
    let mut message = Zeroizing::new(Vec::with_capacity(body.len() + 4));
    message.put_string(&body);
    Ok(message)
}

/// Length of an agent's answer, from its first four bytes.
///
/// # Errors
/// If it is longer than an agent's messages are.
pub fn answer_len(head: [u8; 4]) -> Result<usize, KeyError> {
    let len = Reader::new(&head).u32()? as usize;
    if len == 0 || len > MAX_AGENT_MESSAGE {
        return Err(KeyError::Malformed("the agent's answer has an impossible length"));
    }
    Ok(len)
}

/// Whether an agent's answer, without its length, says that it has done what it was asked.
pub fn is_success(answer: &[u8]) -> bool {
    answer.first() == Some(&SUCCESS)
}
