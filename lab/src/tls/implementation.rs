//! What a TLS implementation must do to be measured.

use std::path::Path;
use std::process::Command;

use crate::error::LabError;
use crate::subject::{KeyExchange, Subject, key_exchanges};
use crate::trace::Trace;

/// A TLS implementation.
pub trait Stack: Sync {
    /// Name, such as `rustls`.
    fn name(&self) -> &'static str;
    /// Its version; an error says what it needs.
    fn version(&self) -> Result<String, LabError>;
    /// The program as a command in which this implementation is there, for helper processes.
    fn command(&self, executable: &Path) -> Command {
        Command::new(executable)
    }
    /// Whether it can do this.
    fn supports(&self, subject: &Subject) -> bool;
    /// Makes keys, certificates and configurations, once.
    fn prepare(&self, subject: &Subject) -> Result<Box<dyn Handshaker>, LabError>;
}

/// A pair of client and server that is ready to shake hands.
pub trait Handshaker {
    /// One handshake, checked to be what the subject says. Resumption has its full handshake before, unmeasured.
    fn handshake(&mut self) -> Result<Trace, LabError>;
}

/// The key exchange whose share a client sends in vain before it is asked for the subject's: a usual one.
pub fn wrong_group(subject: &Subject) -> Result<&'static KeyExchange, LabError> {
    key_exchanges()
        .iter()
        .filter(|row| !row.strength.is_post_quantum() && !row.legacy)
        .find(|row| row.code_point != subject.key_exchange.code_point)
        .ok_or_else(|| LabError::failed("there is no other group"))
}

/// The version of a crate in the workspace's lock file: what was compiled in.
pub(super) fn locked_version(name: &str) -> String {
    const LOCK: &str = include_str!("../../../Cargo.lock");
    let mut lines = LOCK.lines().skip_while(|line| *line != format!("name = \"{name}\"")).skip(1);
    let version = lines.next().and_then(|line| line.strip_prefix("version = "));
    version.unwrap_or_default().trim_matches('"').to_owned()
}

/// Handshakes before any is counted: caches, and AWS-LC's jitter entropy, which costs about 0.4 G instructions once a process.
pub const WARM_UP: usize = 20;
