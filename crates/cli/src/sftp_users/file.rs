//! The file, and what is wrong with it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ipnet::IpNet;
use outlast_crypto::digests;
use outlast_crypto::passwords::PasswordHash;
use outlast_domain::arn::Scope;
use outlast_domain::limits::MAX_HOME_MAPPINGS;
use outlast_domain::transfer::{Home, Located, Mapping, Methods, ServedHostKey, ServerFacts};
use outlast_negotiate::ssh::{SshRules, served};
use outlast_net::sftp::roster::{FileUser, Limit, Mount, Place, Roster, Tree};
use outlast_pki::time::from_rfc3339;
use outlast_sftp::path::RemotePath;
use outlast_sftp::rights::Rights;
use outlast_ssh::PublicKey;
use serde::Deserialize;

use super::host_keys;
use crate::failure::Failure;
use crate::{files, tls, values};

/// Largest file of users, in bytes.
const MAX_FILE: usize = 16 << 20;
/// Largest file of public keys, in bytes.
const MAX_KEYS: usize = 1 << 20;
/// Public keys of a user, at most.
const MAX_USER_KEYS: usize = 100;

/// What a file says, checked.
pub(super) struct Checked {
    pub(super) server: ServerSaid,
    /// `None` if the server makes them.
    pub(super) host_keys: Option<Vec<ServedHostKey>>,
    pub(super) users: Vec<FileUser>,
}

/// What clients see of the server.
pub(super) struct ServerSaid {
    scope: Scope,
    name: String,
    policy: String,
    banner: Option<String>,
    welcome: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Said {
    account: String,
    #[serde(default = "region")]
    region: String,
    #[serde(default = "name")]
    name: String,
    #[serde(default = "policy")]
    policy: String,
    host_keys: Option<Vec<PathBuf>>,
    banner: Option<String>,
    welcome: Option<String>,
    #[serde(default)]
    user: Vec<UserSaid>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UserSaid {
    name: String,
    #[serde(default)]
    keys: Vec<String>,
    #[serde(default)]
    key_files: Vec<PathBuf>,
    password: Option<String>,
    #[serde(default)]
    certificate_authorities: Vec<String>,
    #[serde(default)]
    certificate_authority_files: Vec<PathBuf>,
    folder: Option<PathBuf>,
    bucket: Option<String>,
    #[serde(default)]
    read_only: bool,
    rights: Option<Vec<String>>,
    quota: Option<QuotaSaid>,
    #[serde(default)]
    hidden: Vec<String>,
    #[serde(default)]
    allow: Vec<String>,
    #[serde(default)]
    deny: Vec<String>,
    expires: Option<TimeSaid>,
    sessions: Option<usize>,
    /// `[[user.folder]]` cannot have the name of the user's own folder.
    #[serde(default, rename = "folders")]
    more: Vec<FolderSaid>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FolderSaid {
    path: String,
    folder: Option<PathBuf>,
    bucket: Option<String>,
    rights: Option<Vec<String>>,
    quota: Option<QuotaSaid>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QuotaSaid {
    bytes: Option<u64>,
    files: Option<u64>,
}

fn region() -> String {
    "us-east-1".to_owned()
}

fn name() -> String {
    "sftp".to_owned()
}

/// A time, as text or as TOML's own.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a time such as 2027-01-31T00:00:00Z")]
enum TimeSaid {
    Text(String),
    Time(toml::value::Datetime),
}

fn policy() -> String {
    "2026-11".to_owned()
}

fn parse(path: &Path) -> Result<Said, Failure> {
    let bytes = files::read(path, MAX_FILE)?;
    let text = String::from_utf8(bytes).map_err(|error| Failure::file(path, &error))?;
    toml::from_str(&text).map_err(|error| {
        // The error has the line and its text, which may be a password.
        let shown = error.to_string();
        let shown = if shown.contains("password") {
            let before = error.span().and_then(|span| text.get(..span.start));
            let line = before.map_or(1, |before| before.lines().count().max(1));
            format!("line {line}: {}", error.message())
        } else {
            shown
        };
        Failure::file(path, &shown.trim_end())
            .hint("the keys of the file are described in docs/guide/sftp.md")
    })
}

/// The files that a file of users names, as far as it can be read.
pub(super) fn names(path: &Path) -> Vec<PathBuf> {
    let Ok(said) = parse(path) else { return Vec::new() };
    let beside = beside(path);
    let keys = said
        .user
        .iter()
        .flat_map(|user| user.key_files.iter().chain(&user.certificate_authority_files));
    keys.chain(said.host_keys.iter().flatten()).map(|path| beside.join(path)).collect()
}

fn beside(path: &Path) -> PathBuf {
    path.parent().unwrap_or(Path::new(".")).to_path_buf()
}

/// Reads and checks a file.
pub(super) fn read(path: &Path) -> Result<Checked, Failure> {
    let said = parse(path)?;
    let beside = beside(path);
    let wrong = |failure: Failure| failure.prefixed(&path.display().to_string());
    let host_keys = said.host_keys.map(|keys| -> Result<Vec<ServedHostKey>, Failure> {
        if keys.is_empty() {
            return Err(Failure::new("host_keys is empty")
                .hint("name a private key file, or leave host_keys out to have them made"));
        }
        keys.iter().map(|key| host_keys::read(&beside.join(key))).collect()
    });
    let server = ServerSaid {
        scope: Scope {
            account: values::account(&said.account)
                .map_err(|error| wrong(Failure::new(format!("account: {error}"))))?,
            region: values::region(&said.region)
                .map_err(|error| wrong(Failure::new(format!("region: {error}"))))?,
        },
        name: said.name,
        policy: policy_for_ssh(&said.policy).map_err(wrong)?,
        banner: said.banner,
        welcome: said.welcome,
    };
    if !is_name(&server.name) {
        return Err(wrong(
            Failure::new(format!("name: {} is not a name", short(&server.name)))
                .hint("1 to 100 letters, digits, - and _"),
        ));
    }
    let mut users: Vec<FileUser> = Vec::new();
    for user in said.user {
        let name = user.name.clone();
        let about = |failure: Failure| wrong(failure.prefixed(&format!("user {}", short(&name))));
        let user = user.checked(&beside).map_err(about)?;
        if users.iter().any(|other| other.name == user.name) {
            return Err(about(Failure::new("there are two of this name")));
        }
        users.push(user);
    }
    share_quotas(&mut users).map_err(wrong)?;
    Ok(Checked { server, host_keys: host_keys.transpose().map_err(wrong)?, users })
}

/// Checks that a security policy can be used for SSH; returns its name.
fn policy_for_ssh(name: &str) -> Result<String, Failure> {
    let policy = tls::policy(name).map_err(|failure| failure.prefixed("policy"))?;
    SshRules::new(policy, None, served).map_err(|error| {
        Failure::new(format!("policy: {error}")).hint(
            "name one that covers SSH, such as 2026-11; outlast policy explain NAME says what clients would get",
        )
    })?;
    Ok(policy.name.to_owned())
}

/// A folder has one quota for all its users, also if only one of their tables says it; and none is within another one, which would then not see what
/// is stored.
fn share_quotas(users: &mut [FileUser]) -> Result<(), Failure> {
    let all: Vec<_> = users
        .iter()
        .flat_map(|user| user.tree.mounts.iter().map(move |mount| (&user.name, mount)))
        .collect();
    let mut limits: BTreeMap<&Place, (&String, Limit)> = BTreeMap::new();
    for (user, mount) in &all {
        let Some(limit) = mount.quota else { continue };
        let (first, known) = limits.entry(&mount.place).or_insert((user, limit));
        if *known != limit {
            return Err(Failure::new(format!(
                "the folder {} has two quotas, of {first} and of {user}",
                mount.place
            ))
            .hint("a quota is one of a folder: give both the same"));
        }
    }
    for (place, (owner, _)) in &limits {
        let other =
            all.iter().find(|(_, mount)| mount.place != **place && place.overlaps(&mount.place));
        if let Some((user, mount)) = other {
            return Err(Failure::new(format!(
                "the folder {place} of {owner} has a quota, and {} of {user} overlaps it",
                mount.place
            ))
            .hint("what is stored through the other folder would not be counted: use separate folders"));
        }
    }
    let limits: BTreeMap<Place, Limit> =
        limits.into_iter().map(|(place, (_, limit))| (place.clone(), limit)).collect();
    // A session ends when what its user may do has changed: that of another user, too, if the folder gets a quota.
    for mount in users.iter_mut().flat_map(|user| &mut user.tree.mounts) {
        mount.quota = limits.get(&mount.place).copied();
    }
    Ok(())
}

fn is_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    (1..=100).contains(&text.len()) && text.chars().all(fits)
}

/// AWS's rule for names of users.
fn is_user_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@');
    (3..=100).contains(&text.len()) && text.chars().all(fits) && !text.starts_with(['-', '.', '@'])
}

fn short(text: &str) -> String {
    text.chars().take(100).collect()
}

fn rights(names: &[String]) -> Result<Rights, Failure> {
    let mut all = Rights::NONE;
    for name in names {
        let right = Rights::named(name).ok_or_else(|| {
            Failure::new(format!("rights: there is no right {}", short(name))).hint(
                "the rights are list, read, write, delete, rename, mkdir, setstat, symlink and all",
            )
        })?;
        all = all.or(right);
    }
    Ok(all)
}

fn networks(key: &str, list: &[String]) -> Result<Vec<IpNet>, Failure> {
    let read = |text: &String| {
        let network =
            text.parse::<IpNet>().or_else(|_| text.parse().map(|ip: std::net::IpAddr| ip.into()));
        network.map_err(|_| {
            Failure::new(format!("{key}: {} is no network", short(text)))
                .hint("write 192.0.2.0/24, 2001:db8::/32 or one address")
        })
    };
    list.iter().map(read).collect()
}

fn quota(said: Option<QuotaSaid>) -> Result<Option<Limit>, Failure> {
    let Some(QuotaSaid { bytes, files }) = said else { return Ok(None) };
    if bytes.is_none() && files.is_none() {
        return Err(Failure::new("quota: it limits nothing").hint("give bytes, files or both"));
    }
    Ok(Some(Limit { bytes, files }))
}

/// Where files are: exactly one of a folder and a bucket.
fn place(
    folder: Option<PathBuf>,
    bucket: Option<String>,
    user: &str,
    beside: &Path,
) -> Result<Option<Place>, Failure> {
    match (folder, bucket) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err(Failure::new("it has a folder and a bucket: leave one out")),
        (Some(folder), None) => {
            let path = beside.join(folder);
            // One spelling, so that folders can be compared.
            let path = path.canonicalize().map_err(|error| {
                Failure::file(&path, &error).hint("make the folder before the server starts")
            })?;
            if !path.is_dir() {
                return Err(Failure::file(&path, &"it is no folder"));
            }
            Ok(Some(Place::Folder(path)))
        }
        (None, Some(bucket)) => {
            let target = format!("/{}", bucket.trim_start_matches('/'));
            let mapping = Mapping { entry: "/".to_owned(), target, kind: None };
            let home = Home { directory: None, mappings: Some(vec![mapping]) };
            let wrong = |why: String| {
                Failure::new(format!("bucket: {why}")).hint(
                    "write NAME or NAME/PATH; NAME is 3 to 63 lower-case letters, digits, - and .",
                )
            };
            match home.resolve(user).map_err(wrong)?.locate(b"/") {
                Located::Object { bucket, path, .. } => {
                    let path = RemotePath::parse(&path, &RemotePath::root())
                        .map_err(|error| wrong(error.to_string()))?;
                    Ok(Some(Place::Bucket(bucket, path)))
                }
                Located::Virtual(_) | Located::Missing => Err(wrong("it is none".to_owned())),
            }
        }
    }
}

impl UserSaid {
    fn checked(self, beside: &Path) -> Result<FileUser, Failure> {
        if !is_user_name(&self.name) {
            return Err(Failure::new("name: it is not the name of a user")
                .hint("3 to 100 letters, digits, and - _ . @ after the first character"));
        }
        let keys = public_keys("keys", &self.keys, &self.key_files, beside)?;
        let (lines, files) = (&self.certificate_authorities, &self.certificate_authority_files);
        let authorities = public_keys("certificate_authorities", lines, files, beside)?;
        let password = self.password.as_deref().map(PasswordHash::parse).transpose();
        let password = password.map_err(|error| {
            Failure::new(format!("password: {error}"))
                .hint("make a hash with outlast sftp password, and put it in quotation marks")
        })?;
        if keys.is_empty() && authorities.is_empty() && password.is_none() {
            return Err(Failure::new("it has no way to log in")
                .hint("give it keys, key_files, password or certificate_authorities"));
        }
        let Some(home) = place(self.folder, self.bucket, &self.name, beside)? else {
            return Err(Failure::new("there is neither a folder nor a bucket")
                .hint("folder = \"/srv/files/NAME\" or bucket = \"NAME/PATH\""));
        };
        let mut tree = Tree {
            mounts: vec![Mount { at: RemotePath::root(), place: home, quota: quota(self.quota)? }],
            rules: Vec::new(),
            read_only: self.read_only,
            hidden: self.hidden,
        };
        if let Some(names) = &self.rights {
            tree.rules.push((RemotePath::root(), rights(names)?));
        }
        if self.more.len() > MAX_HOME_MAPPINGS {
            return Err(Failure::new(format!("folders: {MAX_HOME_MAPPINGS} at most")));
        }
        let mut seen = BTreeSet::new();
        for folder in self.more {
            let shown = short(&folder.path);
            let at = folder.add(&mut tree, &self.name, beside);
            let at = at.map_err(|failure| failure.prefixed(&format!("folders {shown}")))?;
            if !seen.insert(at) {
                return Err(Failure::new(format!("folders {shown}: there are two of this path")));
            }
        }
        if tree.hidden.iter().any(|name| name.is_empty() || name.contains('/')) {
            return Err(Failure::new("hidden: names have no slash and are not empty"));
        }
        let until_ms = self.expires.map(|said| {
            let text = match said {
                TimeSaid::Text(text) => text,
                TimeSaid::Time(time) => time.to_string(),
            };
            from_rfc3339(&text).map(|seconds| seconds * 1000).ok_or_else(|| {
                Failure::new(format!("expires: {} is no time", short(&text)))
                    .hint("write it as 2027-01-31T00:00:00Z")
            })
        });
        if self.sessions == Some(0) {
            return Err(Failure::new("sessions: at least 1").hint("to keep a user out, remove it"));
        }
        Ok(FileUser {
            name: self.name,
            keys: keys.iter().map(|key| key.blob().to_vec()).collect(),
            password,
            authorities,
            allow: networks("allow", &self.allow)?,
            deny: networks("deny", &self.deny)?,
            until_ms: until_ms.transpose()?,
            sessions: self.sessions,
            tree,
        })
    }
}

/// The public keys of a member, and of files with a key in each line.
fn public_keys(
    name: &str,
    lines: &[String],
    paths: &[PathBuf],
    beside: &Path,
) -> Result<Vec<PublicKey>, Failure> {
    let mut keys: Vec<PublicKey> = Vec::new();
    let mut add = |line: &str, from: &str| {
        let key = PublicKey::from_openssh_line(line.trim()).map_err(|error| {
            Failure::new(format!("{from}: {error}"))
                .hint("write public keys as ssh-keygen does: ssh-ed25519 AAAA... (without options)")
        })?;
        if !keys.contains(&key) {
            keys.push(key);
        }
        Ok::<(), Failure>(())
    };
    for (number, line) in lines.iter().enumerate() {
        add(line, &format!("{name}, number {}", number + 1))?;
    }
    for path in paths {
        let path = beside.join(path);
        let bytes = files::read(&path, MAX_KEYS)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        for (number, line) in text.lines().enumerate() {
            if !line.trim().is_empty() && !line.trim_start().starts_with('#') {
                add(line, &format!("{}, line {}", path.display(), number + 1))?;
            }
        }
    }
    if keys.len() > MAX_USER_KEYS {
        let many = keys.len();
        return Err(Failure::new(format!("{name}: {many} keys; {MAX_USER_KEYS} at most")));
    }
    Ok(keys)
}

impl FolderSaid {
    fn add(self, tree: &mut Tree, user: &str, beside: &Path) -> Result<RemotePath, Failure> {
        let is_plain = |part: &str| !matches!(part, "" | "." | "..");
        let parts = self.path.strip_prefix('/').map(|path| path.split('/'));
        if !parts.is_some_and(|mut parts| parts.all(is_plain)) {
            return Err(Failure::new("path: it is not an absolute path below the home").hint(
                "write it as /in or /in/new: without . and .., and without a slash at the end",
            ));
        }
        let at = RemotePath::parse(self.path.as_bytes(), &RemotePath::root())
            .map_err(|error| Failure::new(format!("path: {error}")))?;
        let quota = quota(self.quota)?;
        let place = place(self.folder, self.bucket, user, beside)?;
        if place.is_none() && quota.is_some() {
            return Err(Failure::new("quota: only a folder or bucket of its own can have one")
                .hint("give it folder or bucket, or put the quota at the user"));
        }
        if place.is_none() && self.rights.is_none() {
            return Err(Failure::new("it says nothing").hint("give it rights, folder or bucket"));
        }
        if let Some(names) = &self.rights {
            tree.rules.push((at.clone(), rights(names)?));
        }
        if let Some(place) = place {
            tree.mounts.push(Mount { at: at.clone(), place, quota });
        }
        Ok(at)
    }
}

impl ServerSaid {
    /// The listener's users, with these host keys.
    pub(super) fn roster(self, host_keys: Vec<ServedHostKey>, users: Vec<FileUser>) -> Roster {
        let Self { scope, name, policy, banner, welcome } = self;
        let prints: Vec<_> = host_keys.iter().map(|key| key.fingerprint.as_str()).collect();
        let has_password = users.iter().any(|user| user.password.is_some());
        let methods = if has_password { Methods::Either } else { Methods::PublicKey };
        let told =
            format!("{scope:?} {name:?} {policy:?} {banner:?} {welcome:?} {methods:?} {prints:?}");
        let facts = ServerFacts {
            arn: scope.arn("transfer", &format!("server/{name}")),
            scope,
            id: name,
            is_online: true,
            security_policy: policy,
            banner,
            welcome,
            methods,
            ignores_set_stat: false,
            host_keys,
            version: digests::sha256(told.as_bytes()),
        };
        let users = users.into_iter().map(|user| (user.name.clone(), Arc::new(user))).collect();
        Roster::new(Arc::new(facts), users)
    }
}
