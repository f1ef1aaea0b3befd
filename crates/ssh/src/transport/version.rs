//! The identification strings (RFC 4253, section 4.2).

use super::{Phase, Side, Transport};
use crate::error::{Error, Reason};
use crate::limits::{MAX_GREETING_LEN, MAX_VERSION_LEN};

/// This side's identification string, without its line's end.
pub(super) fn own(software: &str) -> String {
    // Printable US-ASCII without spaces and minus signs; a configuration that breaks this must not break connections.
    let allowed = |c: &char| c.is_ascii_graphic() && *c != '-';
    let software: String = software.chars().filter(allowed).take(128).collect();
    format!("SSH-2.0-{software}")
}

impl Transport {
    /// Reads the peer's identification string; false if it is not complete. Sends `SSH_MSG_KEXINIT` then.
    pub(super) fn read_version(&mut self) -> Result<bool, Error> {
        const LONG: Error =
            Error::protocol("the identification string is missing, or longer than 255 bytes");
        loop {
            let input = self.input.as_slice();
            let line = input.iter().take(MAX_GREETING_LEN).position(|byte| *byte == b'\n');
            let is_version = input.starts_with(b"SSH-");
            // Only a server may send other lines first.
            let may_greet = matches!(self.side, Side::Client(_)) && !is_version;
            let Some(len) = line.map(|at| at + 1) else {
                let most =
                    if may_greet { MAX_GREETING_LEN - self.greeting_len } else { MAX_VERSION_LEN };
                let begins_otherwise =
                    !may_greet && !b"SSH-".starts_with(&input[..input.len().min(4)]);
                return if input.len() >= most || begins_otherwise { Err(LONG) } else { Ok(false) };
            };
            if may_greet {
                self.greeting_len += len;
                if self.greeting_len > MAX_GREETING_LEN {
                    return Err(Error::protocol("the server sends too much before its version"));
                }
                self.input.drop_front(len);
                continue;
            }
            if len > MAX_VERSION_LEN || !is_version {
                return Err(LONG);
            }
            let text = &input[..len - 1];
            let text = text.strip_suffix(b"\r").unwrap_or(text);
            // RFC 4253, section 5.1: 1.99 means 2.0 with a fallback.
            if !text.starts_with(b"SSH-2.0-") && !text.starts_with(b"SSH-1.99-") {
                return Err(Error::new(Reason::VersionNotSupported, "only SSH 2.0 is supported"));
            }
            if text.iter().any(u8::is_ascii_control) {
                return Err(Error::protocol("the identification string has control characters"));
            }
            self.peer_version = text.to_vec();
            self.input.drop_front(len);
            self.phase = Phase::Idle;
            match self.preferred().is_empty() {
                true => self.start_exchange()?,
                false => {
                    self.phase = Phase::Waiting;
                    self.since_ms = self.now_ms;
                }
            }
            return Ok(true);
        }
    }
}
