//! The kinds of events, one row each. To add one: its row here, and [`super::tell`] where its cause is committed.
//!
//! Sources of AWS's rows: "Amazon EventBridge support for ACM" (ACM user guide), "Monitor KMS keys with Amazon EventBridge" (KMS
//! developer guide), "Monitor AWS Private CA with CloudWatch Events" (Private CA user guide), "Match AWS Secrets Manager events
//! with Amazon EventBridge" (Secrets Manager user guide), "Monitoring IAM Roles Anywhere events in Amazon EventBridge" (Roles
//! Anywhere user guide), "Transfer Family events detail reference" (Transfer Family user guide).

use serde::{Deserialize, Serialize};

/// A kind of event.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its name in the store, which never changes.
    pub name: &'static str,
    /// Its cause, line by line.
    pub lines: &'static [&'static str],
    /// `source`
    pub source: &'static str,
    /// `detail-type`
    pub detail_type: &'static str,
    /// `detail`
    pub detail: Detail,
    /// Who defines it.
    pub by: By,
}

/// Who defines a kind of event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// AWS documents it.
    Aws,
    /// AWS has no such event.
    Outlast,
}

/// What the `detail` of a kind consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// These members, as far as the event has the fact.
    Facts(&'static [(&'static str, Fact)]),
    /// A CloudTrail record with this `eventName`.
    Trail(&'static str),
}

/// Something that an event says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Fact {
    /// When something began.
    Begun,
    /// Bytes of a file that were transferred.
    Bytes,
    /// Address of a client.
    ClientIp,
    /// Id of a connector.
    Connector,
    /// Id of a request to delete on a remote server.
    DeleteId,
    /// Path of a directory.
    Directory,
    /// When something was over.
    Ended,
    /// Path of a file, with its bucket.
    File,
    /// Id of a file of a transfer.
    FileTransfer,
    /// Whether a list lacks something.
    IsTruncated,
    /// Files and directories in a list.
    Items,
    /// Id of a list.
    Listing,
    /// Path of a directory of a bucket.
    LocalDirectory,
    /// A file of a bucket.
    LocalFile,
    /// The most files and directories in a list.
    MaxItems,
    /// Id of a request to move on a remote server.
    MoveId,
    /// `SEND` or `RETRIEVE`
    Operation,
    /// Path of the directory for a list.
    OutputDirectory,
    /// The file with a list.
    OutputFile,
    /// Path of a directory of a remote server.
    RemoteDirectory,
    /// Id of a transfer.
    Transfer,
    /// URL of a remote server.
    Url,
    /// Its new path.
    NewFile,
    /// Its old path.
    OldFile,
    /// AWS's category of a failure.
    FailureCode,
    /// Why a transfer failed.
    FailureMessage,
    /// Protocol of a transfer: `SFTP`.
    Protocol,
    /// Id of a Transfer server.
    Server,
    /// Id of a connection.
    Session,
    /// `COMPLETED` or `FAILED`
    Status,
    /// Name of a user of a Transfer server.
    User,
    /// What made a certificate available: `ISSUANCE`, `RENEWAL`, `IMPORT` or `REIMPORT`.
    Action,
    /// `Type` of a certificate.
    CertificateType,
    /// Common name, or the first name.
    CommonName,
    /// When it was requested or imported.
    Created,
    /// Days until the end, rounded down; negative after it.
    DaysLeft,
    /// The end.
    Ends,
    /// Why something failed, without anything that a function has said.
    Error,
    /// Whether the key may be exported.
    Exportable,
    /// Whether the key has been exported.
    Exported,
    /// Whether an AWS service uses it.
    InUse,
    /// Issuer (RFC 4514).
    Issuer,
    /// Id of a key.
    KeyId,
    /// AWS's word for why something failed.
    Reason,
    /// `success` or `failure`
    Result,
    /// ARN of a secret.
    Secret,
    /// Serial number in upper-case hexadecimal.
    SerialNumber,
    /// How names were validated.
    ValidationMethod,
}

macro_rules! kinds {
    ($($(#[doc = $line:literal])+ $name:ident: $by:ident, $source:literal, $detail_type:expr, $detail:expr;)+) => {
        $(
            $(#[doc = $line])+
            pub static $name: Kind = Kind {
                name: stringify!($name),
                lines: &[$($line),+],
                source: $source,
                detail_type: $detail_type,
                detail: $detail,
                by: By::$by,
            };
        )+

        /// All kinds.
        pub static KINDS: &[&Kind] = &[$(&$name),+];
    };
}

/// `detail-type` of what CloudTrail passes on.
const TRAIL: &str = "AWS Service Event via CloudTrail";
const RESULT: Detail = Detail::Facts(&[("result", Fact::Result)]);
const RESULT_AND_REASON: Detail =
    Detail::Facts(&[("result", Fact::Result), ("reason", Fact::Reason)]);
/// `detail-type` of Roles Anywhere.
const EXPIRATION: &str = "Roles Anywhere Certificate Expiration State Change";
const ENDING: Detail = Detail::Facts(&[
    ("certificate-serial-number", Fact::SerialNumber),
    ("days-to-expiry", Fact::DaysLeft),
    ("issuer", Fact::Issuer),
]);
/// Members of Transfer Family's server events, with those of one kind of event. There is no `etag`: files are not objects of S3.
macro_rules! transfer {
    ($($name:literal: $fact:ident),*) => {
        Detail::Facts(&[
            ("status-code", Fact::Status),
            ("protocol", Fact::Protocol),
            ("client-ip", Fact::ClientIp),
            ("end-timestamp", Fact::Ended),
            ("server-id", Fact::Server),
            ("username", Fact::User),
            ("session-id", Fact::Session),
            ("start-timestamp", Fact::Begun),
            $(($name, Fact::$fact)),*
        ])
    };
    (failed $($name:literal: $fact:ident),*) => {
        transfer!("failure-code": FailureCode, "failure-message": FailureMessage, $($name: $fact),*)
    };
}
/// Members of Transfer Family's connector events, with those of one kind of event.
macro_rules! connector {
    ($($name:literal: $fact:ident),*) => {
        Detail::Facts(&[
            ("connector-id", Fact::Connector),
            ("url", Fact::Url),
            ("status-code", Fact::Status),
            ("start-timestamp", Fact::Begun),
            ("end-timestamp", Fact::Ended),
            $(($name, Fact::$fact)),*
        ])
    };
    (failed $($name:literal: $fact:ident),*) => {
        connector!("failure-code": FailureCode, "failure-message": FailureMessage, $($name: $fact),*)
    };
}
const KEY: Detail = Detail::Facts(&[("key-id", Fact::KeyId)]);

kinds! {
    /// A certificate is in force, and ends within `DaysBeforeExpiry` of PutAccountConfiguration (45 days by default). Daily.
    CERTIFICATE_EXPIRING: Aws, "aws.acm", "ACM Certificate Approaching Expiration", Detail::Facts(&[
        ("DaysToExpiry", Fact::DaysLeft),
        ("CommonName", Fact::CommonName),
    ]);
    /// A certificate that was not imported has ended.
    CERTIFICATE_EXPIRED: Aws, "aws.acm", "ACM Certificate Expired", Detail::Facts(&[
        ("CertificateType", Fact::CertificateType),
        ("CommonName", Fact::CommonName),
        ("DomainValidationMethod", Fact::ValidationMethod),
        ("CertificateCreatedDate", Fact::Created),
        ("CertificateExpirationDate", Fact::Ends),
        ("InUse", Fact::InUse),
        ("Exported", Fact::Exported),
    ]);
    /// A certificate was issued, renewed, imported or imported again.
    CERTIFICATE_AVAILABLE: Aws, "aws.acm", "ACM Certificate Available", Detail::Facts(&[
        ("Action", Fact::Action),
        ("CertificateType", Fact::CertificateType),
        ("CommonName", Fact::CommonName),
        ("DomainValidationMethod", Fact::ValidationMethod),
        ("CertificateCreatedDate", Fact::Created),
        ("CertificateExpirationDate", Fact::Ends),
        ("DaysToExpiry", Fact::DaysLeft),
        ("InUse", Fact::InUse),
        ("Exported", Fact::Exported),
    ]);
    /// A renewal has failed or waits for proofs in DNS, with at most 45, 30, 15, 3 and 1 days left: once for each.
    RENEWAL_ACTION_REQUIRED: Aws, "aws.acm", "ACM Certificate Renewal Action Required", Detail::Facts(&[
        ("CertificateType", Fact::CertificateType),
        ("CommonName", Fact::CommonName),
        ("DomainValidationMethod", Fact::ValidationMethod),
        ("RenewalStatusReason", Fact::Reason),
        ("DaysToExpiry", Fact::DaysLeft),
        ("CertificateExpirationDate", Fact::Ends),
        ("InUse", Fact::InUse),
        ("Exported", Fact::Exported),
    ]);
    /// A certificate was revoked.
    CERTIFICATE_REVOKED: Aws, "aws.acm", "ACM Certificate Revoked", Detail::Facts(&[
        ("CertificateType", Fact::CertificateType),
        ("CommonName", Fact::CommonName),
        ("CertificateExpirationDate", Fact::Ends),
        ("Exportable", Fact::Exportable),
    ]);

    /// Key material was rotated.
    KEY_ROTATED: Aws, "aws.kms", "KMS CMK Rotation", KEY;
    /// Imported key material has ended and was erased.
    MATERIAL_EXPIRED: Aws, "aws.kms", "KMS Imported Key Material Expiration", KEY;
    /// A key was erased after its waiting period.
    KEY_DELETED: Aws, "aws.kms", "KMS CMK Deletion", KEY;
    /// A key is going to be erased: when that is scheduled, and daily until it happens or is cancelled.
    KEY_PENDING_DELETION: Outlast, "aws.kms", "KMS CMK Pending Deletion", Detail::Facts(&[
        ("key-id", Fact::KeyId),
        ("deletion-date", Fact::Ends),
        ("days-to-deletion", Fact::DaysLeft),
    ]);

    /// A CA was made.
    AUTHORITY_CREATED: Aws, "aws.acm-pca", "ACM Private CA Creation", RESULT;
    /// A CA has issued a certificate.
    CERTIFICATE_ISSUED: Aws, "aws.acm-pca", "ACM Private CA Certificate Issuance", RESULT;
    /// A CA has revoked a certificate.
    CERTIFICATE_REVOCATION: Aws, "aws.acm-pca", "ACM Private CA Certificate Revocation", RESULT;
    /// A CRL was made; or it could not be written to its bucket at the first attempt, which is repeated.
    CRL_GENERATED: Aws, "aws.acm-pca", "ACM Private CA CRL Generation", RESULT_AND_REASON;
    /// An audit report was written, or could not be.
    REPORT_GENERATED: Aws, "aws.acm-pca", "ACM Private CA Audit Report Generation", RESULT;
    /// The certificate of a CA that is not deleted ends within `authority_days` of `[events]` (90 by default). Daily.
    AUTHORITY_EXPIRING: Outlast, "aws.acm-pca", "ACM Private CA Approaching Expiration", Detail::Facts(&[
        ("DaysToExpiry", Fact::DaysLeft),
        ("CommonName", Fact::CommonName),
        ("CertificateExpirationDate", Fact::Ends),
    ]);
    /// The certificate of a CA that is not deleted has ended.
    AUTHORITY_EXPIRED: Outlast, "aws.acm-pca", "ACM Private CA Expired", Detail::Facts(&[
        ("CommonName", Fact::CommonName),
        ("CertificateExpirationDate", Fact::Ends),
    ]);

    /// A secret's rotation has begun.
    ROTATION_STARTED: Aws, "aws.secretsmanager", TRAIL, Detail::Trail("RotationStarted");
    /// A secret's rotation has succeeded.
    ROTATION_SUCCEEDED: Aws, "aws.secretsmanager", TRAIL, Detail::Trail("RotationSucceeded");
    /// A secret's rotation has failed: one of its steps, five times.
    ROTATION_FAILED: Aws, "aws.secretsmanager", TRAIL, Detail::Trail("RotationFailed");
    /// The test of a rotation function has begun.
    ROTATION_TEST_STARTED: Aws, "aws.secretsmanager", TRAIL, Detail::Trail("TestRotationStarted");
    /// The test of a rotation function has succeeded.
    ROTATION_TEST_SUCCEEDED: Aws, "aws.secretsmanager", TRAIL, Detail::Trail("TestRotationSucceeded");
    /// The test of a rotation function has failed.
    ROTATION_TEST_FAILED: Aws, "aws.secretsmanager", TRAIL, Detail::Trail("TestRotationFailed");
    /// A secret was erased after its recovery window.
    SECRET_DELETED: Aws, "aws.secretsmanager", TRAIL, Detail::Trail("EndSecretVersionDelete");

    /// A certificate of an enabled trust anchor ends within the threshold of its notification settings (45 days by default), or has
    /// ended within the last 14 days. Daily.
    ANCHOR_EXPIRING: Aws, "aws.rolesanywhere", EXPIRATION, ENDING;
    /// A certificate that begins a session ends within the threshold of its trust anchor's notification settings. Once a day; no
    /// resources.
    WORKLOAD_EXPIRING: Aws, "aws.rolesanywhere", EXPIRATION, ENDING;

    /// A file was uploaded over SFTP: it is closed, and on disk if uploads are atomic.
    UPLOAD_COMPLETED: Aws, "aws.transfer", "SFTP Server File Upload Completed",
        transfer!("bytes": Bytes, "file-path": File);
    /// A file was not uploaded: it could not be opened, the connection was lost, part of it could not be written, or it was refused
    /// when it was scanned.
    UPLOAD_FAILED: Aws, "aws.transfer", "SFTP Server File Upload Failed",
        transfer!(failed "bytes": Bytes, "file-path": File);
    /// A file that was opened for reading over SFTP was closed.
    DOWNLOAD_COMPLETED: Aws, "aws.transfer", "SFTP Server File Download Completed",
        transfer!("bytes": Bytes, "file-path": File);
    /// The connection was lost while a file was open for reading, or it may not be read.
    DOWNLOAD_FAILED: Aws, "aws.transfer", "SFTP Server File Download Failed",
        transfer!(failed "bytes": Bytes, "file-path": File);
    /// A file was removed over SFTP.
    FILE_DELETE_COMPLETED: Aws, "aws.transfer", "SFTP Server File Delete Completed",
        transfer!("file-path": File);
    /// A file was not removed: the user may not, or it failed.
    FILE_DELETE_FAILED: Aws, "aws.transfer", "SFTP Server File Delete Failed",
        transfer!(failed "file-path": File);
    /// A file or directory was renamed over SFTP.
    FILE_RENAME_COMPLETED: Aws, "aws.transfer", "SFTP Server File Rename Completed",
        transfer!("original-file-path": OldFile, "renamed-file-path": NewFile);
    /// A file or directory was not renamed: the user may not, or it failed.
    FILE_RENAME_FAILED: Aws, "aws.transfer", "SFTP Server File Rename Failed",
        transfer!(failed "original-file-path": OldFile, "renamed-file-path": NewFile);
    /// A directory was made over SFTP.
    DIRECTORY_CREATE_COMPLETED: Aws, "aws.transfer", "SFTP Server Directory Create Completed",
        transfer!("directory-path": Directory);
    /// A directory was not made: the user may not, or it failed.
    DIRECTORY_CREATE_FAILED: Aws, "aws.transfer", "SFTP Server Directory Create Failed",
        transfer!(failed "directory-path": Directory);
    /// A directory was removed over SFTP.
    DIRECTORY_DELETE_COMPLETED: Aws, "aws.transfer", "SFTP Server Directory Delete Completed",
        transfer!("directory-path": Directory);
    /// A directory was not removed: the user may not, or it failed.
    DIRECTORY_DELETE_FAILED: Aws, "aws.transfer", "SFTP Server Directory Delete Failed",
        transfer!(failed "directory-path": Directory);

    /// A connector has sent a file.
    SEND_COMPLETED: Aws, "aws.transfer", "SFTP Connector File Send Completed",
        connector!("operation": Operation, "transfer-id": Transfer, "file-transfer-id": FileTransfer, "file-path": File,
            "remote-directory-path": RemoteDirectory, "bytes": Bytes, "local-file-location": LocalFile);
    /// A connector has not sent a file.
    SEND_FAILED: Aws, "aws.transfer", "SFTP Connector File Send Failed",
        connector!(failed "operation": Operation, "transfer-id": Transfer, "file-transfer-id": FileTransfer,
            "file-path": File, "remote-directory-path": RemoteDirectory, "bytes": Bytes, "local-file-location": LocalFile);
    /// A connector has retrieved a file.
    RETRIEVE_COMPLETED: Aws, "aws.transfer", "SFTP Connector File Retrieve Completed",
        connector!("operation": Operation, "transfer-id": Transfer, "file-transfer-id": FileTransfer, "file-path": File,
            "local-directory-path": LocalDirectory, "bytes": Bytes, "local-file-location": LocalFile);
    /// A connector has not retrieved a file.
    RETRIEVE_FAILED: Aws, "aws.transfer", "SFTP Connector File Retrieve Failed",
        connector!(failed "operation": Operation, "transfer-id": Transfer, "file-transfer-id": FileTransfer,
            "file-path": File, "local-directory-path": LocalDirectory, "bytes": Bytes, "local-file-location": LocalFile);
    /// A connector has listed a directory; the list is in its file.
    LISTING_COMPLETED: Aws, "aws.transfer", "SFTP Connector Directory Listing Completed",
        connector!("listing-id": Listing, "max-items": MaxItems, "output-directory-path": OutputDirectory,
            "remote-directory-path": RemoteDirectory, "item-count": Items, "truncated": IsTruncated,
            "output-file-location": OutputFile);
    /// A connector has not listed a directory.
    LISTING_FAILED: Aws, "aws.transfer", "SFTP Connector Directory Listing Failed",
        connector!(failed "listing-id": Listing, "max-items": MaxItems, "output-directory-path": OutputDirectory,
            "remote-directory-path": RemoteDirectory);
    /// A connector has moved or renamed something on a remote server.
    REMOTE_MOVE_COMPLETED: Aws, "aws.transfer", "SFTP Connector Remote Move Completed", connector!("move-id": MoveId);
    /// A connector has not moved it.
    REMOTE_MOVE_FAILED: Aws, "aws.transfer", "SFTP Connector Remote Move Failed", connector!(failed "move-id": MoveId);
    /// A connector has deleted something on a remote server.
    REMOTE_DELETE_COMPLETED: Aws, "aws.transfer", "SFTP Connector Remote Delete Completed",
        connector!("delete-id": DeleteId);
    /// A connector has not deleted it.
    REMOTE_DELETE_FAILED: Aws, "aws.transfer", "SFTP Connector Remote Delete Failed",
        connector!(failed "delete-id": DeleteId);
}

impl Kind {
    /// The kind with this name.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        KINDS.iter().copied().find(|kind| kind.name == name)
    }

    /// `eventName` of its CloudTrail record; empty if it has none.
    pub fn trail(&self) -> &'static str {
        match self.detail {
            Detail::Trail(name) => name,
            Detail::Facts(_) => "",
        }
    }

    /// Its cause in one line.
    pub fn cause(&self) -> String {
        self.lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for kind in KINDS {
            assert_eq!(Kind::by_name(kind.name), Some(*kind));
            assert_eq!(KINDS.iter().filter(|other| other.name == kind.name).count(), 1);
            assert!(!matches!(kind.detail, Detail::Trail(_)) || kind.detail_type == TRAIL);
        }
        assert_eq!(Kind::by_name("x"), None);
    }
}
