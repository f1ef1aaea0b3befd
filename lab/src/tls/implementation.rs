//! The interface of TLS implementations for measuring.

use std::path::Path;
use std::process::Command;

use crate::error::LabError;
use crate::subject::{KeyExchange, Subject, key_exchanges};
use crate::trace::Trace;

/// A TLS implementation.
pub trait Stack: Sync {
    /// Name, such as `rustls`.
    fn name(&self) -> &'static str;
    /// Its version; the error says what it needs.
    fn version(&self) -> Result<String, LabError>;
    /// A command that runs the program with this implementation available, for helper processes.
    fn command(&self, executable: &Path) -> Command {
        Command::new(executable)
    }
    /// Whether it supports this subject.
    fn supports(&self, subject: &Subject) -> bool;
    /// Makes keys, certificates and configurations.
    fn prepare(&self, subject: &Subject) -> Result<Box<dyn Handshaker>, LabError>;
}

/// A pair of client and server that is ready for handshakes.
pub trait Handshaker {
    /// Makes one handshake, and checks that it is as the subject says. For resumption, the full handshake before it
    /// is not measured.
    fn handshake(&mut self) -> Result<Trace, LabError>;
}

/// The key exchange for which a client sends a useless share before it is asked for the subject's.
pub fn wrong_group(subject: &Subject) -> Result<&'static KeyExchange, LabError> {
    key_exchanges()
        .iter()
        .filter(|row| !row.strength.is_post_quantum() && !row.legacy)
        .find(|row| row.code_point != subject.key_exchange.code_point)
        .ok_or_else(|| LabError::failed("there is no other group"))
}

/// Version of a crate in the workspace's lock file.
pub(super) fn locked_version(name: &str) -> String {
    const LOCK: &str = include_str!("../../../Cargo.lock");
    let mut lines = LOCK.lines().skip_while(|line| *line != format!("name = \"{name}\"")).skip(1);
    let version = lines.next().and_then(|line| line.strip_prefix("version = "));
    version.unwrap_or_default().trim_matches('"').to_owned()
}

/// Handshakes before any is counted: they fill caches and AWS-LC's jitter entropy, which costs about 0.4 G
/// instructions once per process.
pub const WARM_UP: usize = 20;
