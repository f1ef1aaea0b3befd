//! What a connector is to do, and its result.

use crate::arn::Scope;

/// A job that was taken under a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Account and Region.
    pub scope: Scope,
    /// Id of the connector.
    pub connector_id: String,
    /// ARN of the connector.
    pub connector_arn: String,
    /// `TransferId`, `ListingId`, `DeleteId` or `MoveId`.
    pub id: String,
    /// What is to be done.
    pub task: Task,
    /// Connections that it may have at a time: its share of `MaxConcurrentConnections`.
    pub(super) connections: u32,
    /// Id of the lease.
    pub(super) lease: String,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Task {
    /// Send files of buckets.
    Send {
        /// `SendFilePaths`, each `/bucket/key`.
        files: Vec<FileTask>,
        /// `RemoteDirectoryPath`; `None` is the directory in which the server's sessions begin.
        to: Option<String>,
    },
    /// Retrieve files of the remote server.
    Retrieve {
        /// `RetrieveFilePaths`, as the remote server knows them.
        files: Vec<FileTask>,
        /// `LocalDirectoryPath`: `/bucket` or `/bucket/prefix`.
        to: String,
    },
    /// List a directory of the remote server.
    List {
        /// `RemoteDirectoryPath`
        from: String,
        /// `MaxItems`
        max_items: u32,
        /// The file for the list: `/bucket/prefix/FILE.json`.
        output: String,
    },
    /// Delete a file or an empty directory of the remote server.
    Delete {
        /// `DeletePath`
        path: String,
    },
    /// Move or rename on the remote server.
    Move {
        /// `SourcePath`
        from: String,
        /// `TargetPath`
        to: String,
    },
}

/// One of the files of a transfer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileTask {
    /// Its path, as the request has it.
    pub path: String,
    /// Whether an earlier lease has recorded its result: it must not be transferred again.
    pub is_done: bool,
}

/// What came of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileOutcome {
    /// Index in the list of files.
    pub index: usize,
    /// When its transfer began, milliseconds since 1970.
    pub began_ms: i64,
    /// Bytes that were transferred.
    pub result: Result<u64, Failure>,
}

/// How a job ended that did not fail as a whole. What came of files is recorded before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// It is done.
    Done,
    /// The list is in its file.
    Listed {
        /// Files and directories in it.
        items: u64,
        /// Whether the remote directory has more.
        is_truncated: bool,
    },
}

/// Why something failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", code.name())]
pub struct Failure {
    /// AWS's code.
    pub code: FailureCode,
    /// For people. It says nothing that is secret; what a remote server said is shortened when it is stored.
    pub message: String,
}

impl Failure {
    /// A failure.
    pub fn new(code: FailureCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $name:ident: $text:literal;)+) => {
        /// AWS's codes of failures. Source: Transfer Family User Guide, "SFTP connector events", `failure-code`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum FailureCode {
            $($(#[doc = $doc])+ $name),+
        }

        impl FailureCode {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// AWS's name.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text),+
                }
            }
        }
    };
}

codes! {
    /// The access role cannot be assumed, or may not read the secret.
    AssumeRole: "ASSUME_ROLE_ERROR";
    /// The remote server does not know the request.
    UnsupportedOperation: "UNSUPPORTED_OPERATION_ERROR";
    /// There is no connection: the host, its key, or the login.
    Connection: "CONNECTION_ERROR";
    /// A file cannot be read.
    ReadFile: "READ_FILE_ERROR";
    /// A file cannot be written.
    WriteFile: "WRITE_FILE_ERROR";
    /// It took too long.
    Timeout: "TIMEOUT_ERROR";
    /// A directory cannot be listed.
    ListDirectory: "LIST_DIRECTORY_ERROR";
    /// There is no such file in the bucket.
    SendFileNotFound: "SEND_FILE_NOT_FOUND";
    /// There is no such file on the remote server.
    RetrieveFileNotFound: "RETRIEVE_FILE_NOT_FOUND";
    /// There is no such directory on the remote server.
    DirectoryNotFound: "DIRECTORY_NOT_FOUND";
    /// There is no such file to delete or move.
    FileNotFound: "FILE_NOT_FOUND";
    /// There is no such path to move to.
    PathNotFound: "PATH_NOT_FOUND";
    /// A file or directory cannot be moved.
    Rename: "RENAME_ERROR";
    /// A file or directory cannot be deleted.
    Delete: "DELETE_ERROR";
    /// This service has failed.
    Internal: "INTERNAL_ERROR";
    /// Anything else.
    Unknown: "UNKNOWN_ERROR";
}
