//! How unsuccessful commands end: an `error:` or `found:` line, perhaps a `hint:` line, and an exit code.

use std::fmt::Display;
use std::path::Path;
use std::process::ExitCode;

use outlast_domain::Fault;
use outlast_domain::change::Contended;
use outlast_store::StoreError;

use crate::shell;

/// Why a command failed.
#[derive(Debug)]
pub struct Failure {
    message: String,
    hint: Option<String>,
    code: u8,
    is_finding: bool,
    conflict: bool,
    setting: Option<&'static str>,
}

/// Exit code: the signature of a file was refused.
pub const REFUSED: u8 = 3;
/// Exit code: some of several files failed; the others are done.
pub const PARTIAL: u8 = 4;
/// Exit code: the command found what it looks for, such as clients without post-quantum groups or certificates that
/// break rules.
pub const FOUND: u8 = 5;
/// Exit code: the command line, or a variable that stands for an option, is wrong.
pub const USAGE: u8 = 2;

impl Failure {
    /// A failure with exit code 1.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: None,
            code: 1,
            is_finding: false,
            conflict: false,
            setting: None,
        }
    }

    /// The command did its work and found what it looks for: printed as `found:`, with exit code [`FOUND`].
    pub fn finding(message: impl Into<String>) -> Self {
        Self { is_finding: true, code: FOUND, ..Self::new(message) }
    }

    /// Failure to read or write a file.
    pub fn file(path: &Path, error: &dyn Display) -> Self {
        Self::new(format!("{}: {error}", path.display()))
    }

    /// Adds advice on what to do.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the data folder, quoted for a shell, to the commands in the hint.
    pub fn in_folder(mut self, data: &Path) -> Self {
        let folder = format!("--data {}", shell::quoted(data));
        self.hint = self.hint.map(|hint| hint.replace("--data DIR", &folder));
        self
    }

    /// Puts `what` before the message.
    pub fn prefixed(mut self, what: &str) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }

    /// Names the setting whose value is refused (`listen`, or `acme.dns` in a section).
    pub fn about(mut self, setting: &'static str) -> Self {
        self.setting = Some(setting);
        self
    }

    /// The setting whose value is refused.
    pub fn setting(&self) -> Option<&'static str> {
        self.setting
    }

    /// Sets another exit code.
    pub fn code(mut self, code: u8) -> Self {
        self.code = code;
        self
    }

    /// Text of the line, without its label.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Advice on what to do, if there is any.
    pub fn advice(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The exit code.
    pub fn exit_code(&self) -> u8 {
        self.code
    }

    /// Fails if data that was printed did not arrive; asked once, when the command has ended.
    ///
    /// # Errors
    ///
    /// Standard output could not be written, for instance to a full disk.
    pub fn of_lost_output() -> Result<(), Self> {
        let Some(reason) = crate::output::lost() else { return Ok(()) };
        Err(Self::new(format!("stdout: {reason}"))
            .hint("the output is not complete; what the command did otherwise is done"))
    }

    /// Prints the message and returns the exit code.
    pub fn report(&self) -> ExitCode {
        let label = if self.is_finding { "found" } else { "error" };
        crate::output::ended(label, &self.message, self.hint.as_deref());
        ExitCode::from(self.code)
    }
}

impl Contended for Failure {
    fn is_conflict(&self) -> bool {
        self.conflict
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Store(error) => {
                let conflict = error == StoreError::Conflict;
                Self { conflict, ..store_failure(error) }
            }
            Fault::Forged(_) => Self::new(fault.to_string())
                .hint("to see what else was changed, run: outlast store check --data DIR"),
            fault => Self::new(fault.to_string()),
        }
    }
}

impl From<outlast_pki::PkiError> for Failure {
    fn from(error: outlast_pki::PkiError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<outlast_crypto::CryptoError> for Failure {
    fn from(error: outlast_crypto::CryptoError) -> Self {
        Self::new(error.to_string())
    }
}

/// An error of the store, with advice on what to do.
pub fn store_failure(error: StoreError) -> Failure {
    let hint = match &error {
        StoreError::TooNew { .. } => {
            Some("use the version of outlast that wrote it, or a newer one")
        }
        StoreError::InUse(_) => Some("stop the other process, or use another data folder"),
        StoreError::Full => Some("make room on the disk and try again"),
        StoreError::Foreign(_) => Some("check the data folder; the file was left as it is"),
        StoreError::NotEmpty => Some("choose an empty folder or database"),
        StoreError::Uncertain(_) => Some("check whether it was done before you try again"),
        _ => None,
    };
    let failure = Failure::new(error.to_string());
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
