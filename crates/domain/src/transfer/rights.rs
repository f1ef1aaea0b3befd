//! What a user may do with files: S3's actions on `arn:aws:s3:::bucket/path`, decided by the policies of the role and the
//! session policy.
//!
//! Source: Transfer Family User Guide, "Creating a session policy for an Amazon S3 bucket". The variables of session policies
//! (`${transfer:UserName}`, `${transfer:HomeDirectory}`, `${transfer:HomeFolder}`, `${transfer:HomeBucket}`) are condition
//! keys here, so that their values are never taken for wildcards, and policies of roles may use them, too.

use std::net::IpAddr;

use super::home::{Directories, Located};
use crate::identity::{Caller, Denied};
use crate::policy::ConditionKeys;

/// What is done with a file or a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// Read a file: `s3:GetObject`.
    Get,
    /// Write, make or rename to: `s3:PutObject`.
    Put,
    /// Remove, or rename from: `s3:DeleteObject`.
    Delete,
    /// List a directory, or ask whether something exists: `s3:ListBucket`.
    List,
    /// Read the tags of a file: `s3:GetObjectTagging`. Workflows only.
    GetTags,
    /// Set the tags of a file: `s3:PutObjectTagging`. Workflows only.
    PutTags,
}

impl Access {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Get, Self::Put, Self::Delete, Self::List, Self::GetTags, Self::PutTags];

    fn action(self) -> &'static str {
        match self {
            Self::Get => "s3:GetObject",
            Self::Put => "s3:PutObject",
            Self::Delete => "s3:DeleteObject",
            Self::List => "s3:ListBucket",
            Self::GetTags => "s3:GetObjectTagging",
            Self::PutTags => "s3:PutObjectTagging",
        }
    }
}

/// The rights of one login, or of one step of a workflow.
pub struct Rights {
    caller: Caller,
    keys: ConditionKeys,
}

impl Rights {
    /// Those of a session of a user's role.
    pub(super) fn new(
        caller: Caller,
        user: &str,
        region: &str,
        directories: &Directories,
        source_ip: IpAddr,
    ) -> Self {
        let mut keys = ConditionKeys::new();
        keys.set("aws:SourceIp", source_ip.to_string());
        keys.set("aws:SecureTransport", "true");
        keys.set("aws:RequestedRegion", region);
        keys.set_tags("aws:PrincipalTag", &caller.tags);
        keys.set("transfer:UserName", user);
        if let Located::Object { bucket, path, .. } = directories.locate(b"") {
            let folder = String::from_utf8_lossy(&path).into_owned();
            let directory =
                if folder.is_empty() { bucket.clone() } else { format!("{bucket}/{folder}") };
            keys.set("transfer:HomeBucket", bucket);
            keys.set("transfer:HomeFolder", folder);
            keys.set("transfer:HomeDirectory", directory);
        }
        Self { caller, keys }
    }

    /// Those of a session of the role that a workflow runs with.
    pub(super) fn of_workflow(caller: Caller, region: &str) -> Self {
        let mut keys = ConditionKeys::new();
        keys.set("aws:SecureTransport", "true");
        keys.set("aws:RequestedRegion", region);
        keys.set_tags("aws:PrincipalTag", &caller.tags);
        Self { caller, keys }
    }

    /// Whether the policies allow to call a function now.
    pub(super) fn invoke(&self, function: &str, now_ms: i64) -> Result<(), Denied> {
        let mut keys = self.keys.clone();
        keys.set_time(now_ms);
        let account = &self.caller.principal.account;
        self.caller.judge(None, account, false, &keys, "lambda:InvokeFunction", function)
    }

    /// Whether the policies allow this now. `path` has no slash at its begin; that of a directory to be listed or made ends
    /// with one, except for the bucket itself. Bytes that are not UTF-8 count as U+FFFD.
    pub fn decide(
        &self,
        access: Access,
        bucket: &str,
        path: &[u8],
        now_ms: i64,
    ) -> Result<(), Denied> {
        let path = String::from_utf8_lossy(path);
        let mut keys = self.keys.clone();
        keys.set_time(now_ms);
        let resource = if access == Access::List {
            keys.set("s3:prefix", path.as_ref());
            keys.set("s3:delimiter", "/");
            format!("arn:aws:s3:::{bucket}")
        } else {
            format!("arn:aws:s3:::{bucket}/{path}")
        };
        // There are no policies of buckets; a bucket counts as the account's own.
        let account = &self.caller.principal.account;
        self.caller.judge(None, account, false, &keys, access.action(), &resource)
    }

    /// The session, as audit events have it.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }
}
