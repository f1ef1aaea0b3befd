//! Failures of operations, as clients see them: a status code and a text.

use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};

/// Status codes of SFTP version 3 (draft-ietf-secsh-filexfer-02, section 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// `SSH_FX_OK`
    Ok,
    /// `SSH_FX_EOF`: the end of a file, or of a listing.
    Eof,
    /// `SSH_FX_NO_SUCH_FILE`
    NoSuchFile,
    /// `SSH_FX_PERMISSION_DENIED`
    PermissionDenied,
    /// `SSH_FX_FAILURE`: everything without a code of its own.
    Failure,
    /// `SSH_FX_BAD_MESSAGE`
    BadMessage,
    /// `SSH_FX_OP_UNSUPPORTED`
    OpUnsupported,
}

impl Status {
    const ALL: [Self; 7] = [
        Self::Ok,
        Self::Eof,
        Self::NoSuchFile,
        Self::PermissionDenied,
        Self::Failure,
        Self::BadMessage,
        Self::OpUnsupported,
    ];

    /// The code on the wire.
    #[must_use]
    pub fn code(self) -> u32 {
        match self {
            Self::Ok => 0,
            Self::Eof => 1,
            Self::NoSuchFile => 2,
            Self::PermissionDenied => 3,
            Self::Failure => 4,
            Self::BadMessage => 5,
            Self::OpUnsupported => 8,
        }
    }

    /// The status of a code; a code that this version does not know is a failure.
    #[must_use]
    pub fn of_code(code: u32) -> Self {
        Self::ALL.into_iter().find(|status| status.code() == code).unwrap_or(Self::Failure)
    }

    /// The name in the draft, for logs and audit events.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "SSH_FX_OK",
            Self::Eof => "SSH_FX_EOF",
            Self::NoSuchFile => "SSH_FX_NO_SUCH_FILE",
            Self::PermissionDenied => "SSH_FX_PERMISSION_DENIED",
            Self::Failure => "SSH_FX_FAILURE",
            Self::BadMessage => "SSH_FX_BAD_MESSAGE",
            Self::OpUnsupported => "SSH_FX_OP_UNSUPPORTED",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Ok => "success",
            Self::Eof => "end of file",
            Self::NoSuchFile => "no such file",
            Self::PermissionDenied => "permission denied",
            Self::Failure => "failure",
            Self::BadMessage => "bad message",
            Self::OpUnsupported => "operation unsupported",
        }
    }
}

/// Failure of an operation. The text goes to the client: it names no path outside the client's view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// Code for the client's program.
    pub status: Status,
    /// Explanation for people.
    pub text: Cow<'static, str>,
}

/// Result of an operation.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A failure with an explanation.
    pub fn new(status: Status, text: impl Into<Cow<'static, str>>) -> Self {
        Self { status, text: text.into() }
    }

    /// `SSH_FX_FAILURE` with an explanation.
    pub fn failure(text: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Status::Failure, text)
    }

    /// `SSH_FX_PERMISSION_DENIED` with an explanation.
    pub fn denied(text: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Status::PermissionDenied, text)
    }

    /// `SSH_FX_OP_UNSUPPORTED` with an explanation.
    pub fn unsupported(text: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Status::OpUnsupported, text)
    }

    /// `SSH_FX_NO_SUCH_FILE`.
    #[must_use]
    pub fn not_found() -> Self {
        Status::NoSuchFile.into()
    }

    /// `SSH_FX_EOF`.
    #[must_use]
    pub fn end() -> Self {
        Status::Eof.into()
    }
}

impl From<Status> for Error {
    fn from(status: Status) -> Self {
        Self::new(status, status.text())
    }
}

impl Display for Error {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}
