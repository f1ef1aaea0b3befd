//! Users that a file names: who they are, and what each sees.
//!
//! The file is read and checked by the caller; a new roster takes the place of the old one at once, and sessions of users that it
//! does not have any more end.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use ipnet::IpNet;
use outlast_crypto::passwords::PasswordHash;
use outlast_crypto::{digests, hmac};
use outlast_domain::transfer::{Refusal, ServerFacts};
use outlast_sftp::path::RemotePath;
use outlast_sftp::rights::Rights;
use outlast_ssh::PublicKey;

use super::certified::Proof;

/// Who may log in at a listener, and what the listener shows of itself.
pub struct Roster {
    /// What clients see of the server. It is always online.
    pub facts: Arc<ServerFacts>,
    /// Users by their names.
    pub users: BTreeMap<String, Arc<FileUser>>,
    /// Hashes of all passwords, in the order of the users.
    hashes: Vec<PasswordHash>,
}

/// A user of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileUser {
    /// Name.
    pub name: String,
    /// Public keys, as SSH sends them.
    pub keys: Vec<Vec<u8>>,
    /// Hash of the password, if the user has one.
    pub password: Option<PasswordHash>,
    /// Authorities whose certificates with the user's name log the user in.
    pub authorities: Vec<PublicKey>,
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
    /// Users of a server.
    #[must_use]
    pub fn new(facts: Arc<ServerFacts>, users: BTreeMap<String, Arc<FileUser>>) -> Self {
        let hashes = users.values().filter_map(|user| user.password.clone()).collect();
        Self { facts, users, hashes }
    }

    /// The user of this name.
    pub(super) fn named(&self, name: &str) -> Result<&Arc<FileUser>, Refusal> {
        self.users.get(name).ok_or(Refusal::UnknownUser)
    }

    /// The user who has a key, if the user may come from this address now. The order of the checks tells a peer nothing: only the
    /// operator learns the reason.
    pub(super) fn with_key(
        &self,
        name: &str,
        offered: &[u8],
        from: IpAddr,
        now_ms: i64,
    ) -> Result<Arc<FileUser>, Refusal> {
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

    /// The hash that a password is compared with: the user's or, if there is no such user or the user has none, that of another
    /// user, the same one each time. `None` if nobody has a password.
    pub(super) fn hash(&self, name: &str) -> Option<PasswordHash> {
        let [first, second, ..] = digests::sha256(name.as_bytes());
        let at = usize::from(u16::from_be_bytes([first, second]));
        let other = self.hashes.get(at.checked_rem(self.hashes.len())?)?;
        let own = self.users.get(name).and_then(|user| user.password.as_ref());
        Some(own.unwrap_or(other).clone())
    }

    /// The user of this name, if [`Roster::hash`] is the user's own and the password was found to be right.
    pub(super) fn with_password(
        &self,
        name: &str,
        is_right: bool,
        from: IpAddr,
        now_ms: i64,
    ) -> Result<Arc<FileUser>, Refusal> {
        let user = self.named(name)?;
        if user.password.is_none() || !is_right {
            return Err(Refusal::WrongPassword);
        }
        user.admits(from, now_ms)?;
        Ok(user.clone())
    }

    /// Whether a session that began with an earlier roster may go on: the user exists, has the key, the same password or the
    /// authority, and sees the same. What else a certificate says is checked elsewhere.
    pub(super) fn keeps(
        &self,
        user: &FileUser,
        proof: &Proof,
        from: IpAddr,
        now_ms: i64,
    ) -> Result<(), Refusal> {
        let found = match proof {
            Proof::Key(key) => self.with_key(&user.name, key, from, now_ms)?,
            Proof::Password if self.named(&user.name)?.password != user.password => {
                return Err(Refusal::WrongPassword);
            }
            Proof::Password => self.named(&user.name)?.clone(),
            // Also while nobody can say what is revoked, and the certificate itself is not checked.
            Proof::Certificate(certificated) => {
                let found = self.named(&user.name)?.clone();
                let authority = certificated.certificate.authority();
                if !found.authorities.contains(authority) {
                    let authority = authority.fingerprint();
                    let text = format!("the authority {authority} is not trusted");
                    return Err(Refusal::Certificate(text));
                }
                found
            }
        };
        found.admits(from, now_ms)?;
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
    pub(super) fn admits(&self, from: IpAddr, now_ms: i64) -> Result<(), Refusal> {
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail")]

    use outlast_crypto::Secret;
    use outlast_domain::arn::Scope;
    use outlast_domain::transfer::{Certified, Methods};
    use outlast_ssh::{Certificate, CertificateFields, CertificateKind, KeyKind, PrivateKey};

    use super::super::certified::Certificated;
    use super::*;

    fn user(name: &str, password: Option<&str>) -> FileUser {
        let hash = |text: &str| {
            let made = PasswordHash::make(&Secret::new(text.as_bytes().to_vec())).unwrap();
            PasswordHash::parse(&made).unwrap()
        };
        FileUser {
            name: name.to_owned(),
            keys: vec![DECOY.to_vec()],
            password: password.map(hash),
            authorities: Vec::new(),
            allow: Vec::new(),
            deny: Vec::new(),
            until_ms: None,
            sessions: None,
            tree: Tree {
                mounts: Vec::new(),
                rules: Vec::new(),
                read_only: false,
                hidden: Vec::new(),
            },
        }
    }

    fn roster(users: Vec<FileUser>) -> Roster {
        let scope = Scope { account: "111111111111".to_owned(), region: "us-east-1".to_owned() };
        let facts = ServerFacts {
            arn: scope.arn("transfer", "server/sftp"),
            scope,
            id: "sftp".to_owned(),
            is_online: true,
            security_policy: "2026-11".to_owned(),
            banner: None,
            welcome: None,
            methods: Methods::Either,
            ignores_set_stat: false,
            host_keys: Vec::new(),
            version: [0; 32],
        };
        let users = users.into_iter().map(|user| (user.name.clone(), Arc::new(user))).collect();
        Roster::new(Arc::new(facts), users)
    }

    const FROM: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    /// The work for a name that has no password is that for another one, the same each time, and no password is right for it.
    #[test]
    fn a_name_without_a_password_costs_what_a_wrong_one_does() {
        let users = [("alice", Some("one")), ("bobby", Some("two")), ("keyed", None)];
        let all = roster(users.map(|(name, password)| user(name, password)).to_vec());
        let own = |name: &str| all.users[name].password.clone();
        assert_eq!((all.hash("alice"), all.hash("bobby")), (own("alice"), own("bobby")));
        let mut seen = Vec::new();
        for number in 0..50 {
            let name = format!("nobody{number}");
            let hash = all.hash(&name).unwrap();
            assert_eq!(Some(&hash), all.hash(&name).as_ref(), "a second try tells nothing");
            seen.push(
                [own("alice"), own("bobby")].iter().position(|one| *one == Some(hash.clone())),
            );
        }
        assert!(seen.contains(&Some(0)) && seen.contains(&Some(1)) && !seen.contains(&None));
        for name in ["keyed", "nobody"] {
            assert!(all.hash(name).is_some());
            // Whatever the comparison with the other hash says.
            assert!(all.with_password(name, true, FROM, 0).is_err(), "{name}");
        }
        assert!(all.with_password("alice", true, FROM, 0).is_ok());
        assert!(all.with_password("alice", false, FROM, 0).is_err());
        assert!(roster(vec![user("keyed", None)]).hash("keyed").is_none());
    }

    #[test]
    fn a_session_is_kept_by_what_began_it() {
        let before = user("alice", Some("one"));
        let changed = FileUser { password: user("alice", Some("one")).password, ..before.clone() };
        let none = FileUser { password: None, ..before.clone() };
        let keyless = FileUser { keys: Vec::new(), ..before.clone() };
        let key = || Proof::Key(DECOY.to_vec());
        for (now, proof, expected) in [
            (&before, Proof::Password, true),
            (&before, key(), true),
            (&changed, Proof::Password, false),
            (&changed, key(), true),
            (&none, Proof::Password, false),
            (&keyless, Proof::Password, true),
            (&keyless, key(), false),
        ] {
            let kept = roster(vec![now.clone()]).keeps(&before, &proof, FROM, 0);
            assert_eq!(kept.is_ok(), expected, "{now:?}");
        }
        let away = FileUser { deny: vec![FROM.into()], ..before.clone() };
        let expired = FileUser { until_ms: Some(0), ..before.clone() };
        for now in [away, expired] {
            for proof in [Proof::Password, key()] {
                assert!(roster(vec![now.clone()]).keeps(&before, &proof, FROM, 0).is_err());
            }
        }
        assert!(roster(Vec::new()).keeps(&before, &Proof::Password, FROM, 0).is_err());
    }

    /// Whatever is known of what is revoked.
    #[test]
    fn a_certificates_session_ends_with_its_authority() {
        let [key, authority, other] =
            [(); 3].map(|()| PrivateKey::generate(KeyKind::Ed25519).unwrap());
        let fields = CertificateFields {
            serial: 1,
            kind: CertificateKind::User,
            key_id: "alice at work".to_owned(),
            principals: vec!["alice".to_owned()],
            valid_after_s: 0,
            valid_before_s: u64::MAX,
            critical_options: Vec::new(),
            extensions: Vec::new(),
        };
        let certificate = Certificate::issue(key.public_key(), &fields, &authority).unwrap();
        let shown = Certified {
            key_id: fields.key_id.clone(),
            serial: fields.serial,
            authority: authority.public_key().fingerprint(),
        };
        let certificated = Certificated { certificate, shown, signatures: &[], at_ms: 0 };
        let proof = Proof::Certificate(Box::new(certificated));
        let with = |authorities: &[&PrivateKey]| {
            let authorities = authorities.iter().map(|key| key.public_key().clone()).collect();
            FileUser { authorities, ..user("alice", None) }
        };
        let before = with(&[&authority]);
        for (now, expected) in [
            (with(&[&authority]), true),
            (with(&[&other, &authority]), true),
            (with(&[&other]), false),
            (with(&[]), false),
        ] {
            let kept = roster(vec![now]).keeps(&before, &proof, FROM, 0);
            assert_eq!(kept.is_ok(), expected, "{kept:?}");
        }
    }
}
