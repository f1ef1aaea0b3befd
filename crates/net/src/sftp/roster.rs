//! Users that a file names: who they are, and what each sees.
//!
//! The file is read and checked by the caller; a new roster takes the place of the old one at once, and sessions of users that it
//! does not have any more end.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use ipnet::IpNet;
use outlast_crypto::hmac;
use outlast_domain::transfer::{Refusal, ServerFacts};
use outlast_sftp::path::RemotePath;
use outlast_sftp::rights::Rights;
use outlast_ssh::PublicKey;

/// Who may log in at a listener, and what the listener shows of itself.
pub struct Roster {
    /// What clients see of the server. It is always online.
    pub facts: Arc<ServerFacts>,
    /// Users by their names.
    pub users: BTreeMap<String, Arc<FileUser>>,
}

/// A user of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileUser {
    /// Name.
    pub name: String,
    /// Public keys, as SSH sends them.
    pub keys: Vec<Vec<u8>>,
    /// Networks that the user may come from; all if there are none.
    pub allow: Vec<IpNet>,
    /// Networks that the user may not come from, whatever `allow` says.
    pub deny: Vec<IpNet>,
    /// When the user's logins end, milliseconds since 1970.
    pub until_ms: Option<i64>,
    /// Sessions at a time, at most; the listener's limit if there is none.
    pub sessions: Option<usize>,
    /// What the user sees.
    pub tree: Tree,
}

/// What a user sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// Folders, and where they are in the tree. The first is the home.
    pub mounts: Vec<Mount>,
    /// Rights in a folder and below it.
    pub rules: Vec<(RemotePath, Rights)>,
    /// Whether the user changes nothing, whatever the rules say.
    pub read_only: bool,
    /// Names that do not exist for the user.
    pub hidden: Vec<String>,
}

/// A folder in a user's tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Where the user sees it.
    pub at: RemotePath,
    /// Where it is.
    pub place: Place,
    /// What it may contain.
    pub quota: Option<Limit>,
}

/// Where files are.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// A folder of the machine, which exists.
    Folder(PathBuf),
    /// A folder of a bucket, which is made.
    Bucket(String, RemotePath),
}

impl Place {
    /// Whether one of the two contains the other, or both are the same.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Folder(one), Self::Folder(other)) => {
                one.starts_with(other) || other.starts_with(one)
            }
            (Self::Bucket(one, path), Self::Bucket(other, second)) => {
                one == other && (path.below(second).is_some() || second.below(path).is_some())
            }
            _ => false,
        }
    }

    /// The path of a file in it, for audit events: `bucket/path`, or the path in the machine.
    fn target(&self, inner: &RemotePath) -> Vec<u8> {
        match self {
            Self::Folder(path) => {
                let path = path.as_os_str().as_encoded_bytes();
                if inner.is_root() { path.to_vec() } else { [path, inner.as_bytes()].concat() }
            }
            Self::Bucket(bucket, folder) => {
                let path = folder.append(inner);
                [bucket.as_bytes(), b"/", path.as_bytes().get(1..).unwrap_or_default()].concat()
            }
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.target(&RemotePath::root())))
    }
}

/// How much a folder may contain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limit {
    /// Bytes.
    pub bytes: Option<u64>,
    /// Files; folders and links count, too.
    pub files: Option<u64>,
}

/// A key that nobody has, compared for users who do not exist.
const DECOY: &[u8] = b"\0\0\0\x0bssh-ed25519\0\0\0\x20ssh-ed25519ssh-ed25519ssh-ed2551";

impl Roster {
    /// The user who has a key, if the user may come from this address now. The order of the checks tells a peer nothing: only the
    /// operator learns the reason.
    pub(super) fn find(
        &self,
        name: &str,
        key: Option<&[u8]>,
        from: IpAddr,
        now_ms: i64,
    ) -> Result<Arc<FileUser>, Refusal> {
        let Some(offered) = key else { return Err(Refusal::Method) };
        let user = self.users.get(name);
        let decoy = [DECOY.to_vec()];
        let keys = user.map_or(&decoy[..], |user| &user.keys[..]);
        let mut is_known = false;
        for key in keys {
            is_known |= hmac::equal(key, offered);
        }
        let user = user.ok_or(Refusal::UnknownUser)?;
        if !is_known {
            return Err(Refusal::WrongKey);
        }
        user.admits(from, now_ms)?;
        Ok(user.clone())
    }

    /// Whether a session that began with an earlier roster may go on: the user exists, has the key, and sees the same.
    pub(super) fn keeps(
        &self,
        user: &FileUser,
        key: &[u8],
        from: IpAddr,
        now_ms: i64,
    ) -> Result<(), Refusal> {
        let found = self.find(&user.name, Some(key), from, now_ms)?;
        if found.tree == user.tree {
            return Ok(());
        }
        Err(Refusal::Unusable("what the user may see and do has changed".to_owned()))
    }

    /// ARN of a user.
    pub(super) fn user_arn(&self, name: &str) -> String {
        let facts = &self.facts;
        facts.scope.arn("transfer", &format!("user/{}/{name}", facts.id))
    }
}

impl FileUser {
    fn admits(&self, from: IpAddr, now_ms: i64) -> Result<(), Refusal> {
        let from = from.to_canonical();
        let is_in = |networks: &[IpNet]| networks.iter().any(|network| network.contains(&from));
        if is_in(&self.deny) || !(self.allow.is_empty() || is_in(&self.allow)) {
            return Err(Refusal::Address);
        }
        if self.until_ms.is_some_and(|until| now_ms >= until) {
            return Err(Refusal::Expired);
        }
        Ok(())
    }

    /// Whether a key is one of the user's, for the event of a login.
    pub(super) fn fingerprint(key: &[u8]) -> Option<(String, &'static str)> {
        PublicKey::parse(key).ok().map(|key| (key.fingerprint(), key.key_type()))
    }
}

impl Tree {
    /// Rights at a path.
    #[must_use]
    pub fn rights(&self, path: &RemotePath) -> Rights {
        let rules = self.rules.iter().filter(|(at, _)| path.below(at).is_some());
        let closest = rules.max_by_key(|(at, _)| at.as_bytes().len());
        let rights = closest.map_or(Rights::ALL, |(_, rights)| *rights);
        if self.read_only { rights.and(Rights::READ_ONLY) } else { rights }
    }

    /// Where the file at a path of the user is, for audit events.
    pub(super) fn target(&self, path: &RemotePath) -> Vec<u8> {
        let closest = self.mounts.iter().filter_map(|mount| Some((mount, path.below(&mount.at)?)));
        let closest = closest.max_by_key(|(mount, _)| mount.at.as_bytes().len());
        closest.map(|(mount, inner)| mount.place.target(&inner)).unwrap_or_default()
    }
}
