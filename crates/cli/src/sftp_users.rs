//! `sftp.toml`: a listener's users in a file, instead of the Transfer Family API.

mod file;
mod host_keys;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use outlast_negotiate::Mode;
use outlast_net::server::system_clock;
use outlast_net::sftp::roster::{Limit, Roster};
use outlast_sftp::rights::Rights;
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::failure::Failure;
use crate::files::{self, Stamp};
use crate::tables::plural;

/// Interval between checks whether the file, or one that it names, has changed.
const FILES: Duration = Duration::from_secs(5);

/// What tells whether the file, or one that it names, has changed.
pub(crate) type Stamps = Vec<Option<Stamp>>;

/// A file of users, and where the server keeps host keys that it makes.
#[derive(Clone)]
pub(crate) struct Users {
    path: PathBuf,
    /// Folder for host keys that are made.
    keys: PathBuf,
    /// The listener's mode, if it is not the policy's.
    mode: Option<Mode>,
}

impl Users {
    /// The users of a file; host keys that it does not name are kept below the data folder.
    pub(crate) fn new(path: PathBuf, data: &Path, mode: Option<Mode>) -> Self {
        Self { path, keys: data.join("sftp-host-keys"), mode }
    }

    /// Reads the users for the first time. The stamps are for [`Users::follow`].
    pub(crate) fn begin(&self) -> Result<(Roster, Stamps), Failure> {
        // Before the files: a change while they are read, or before they are followed, is noticed.
        let stamps = self.stamps();
        Ok((self.load()?, stamps))
    }

    /// Reads and checks everything; makes the host keys if there are none.
    fn load(&self) -> Result<Roster, Failure> {
        let checked = file::read(&self.path)?;
        if checked.users.iter().any(|user| user.password.is_some()) && is_open(&self.path) {
            tracing::warn!(
                file = %self.path.display(),
                "other users of the machine can read hashes of passwords; to prevent that: chmod 600"
            );
        }
        let host_keys = match checked.host_keys {
            Some(keys) => keys,
            None => host_keys::kept(&self.keys)?,
        };
        let roster = checked.server.roster(host_keys, checked.users);
        outlast_net::sftp::check(&roster.facts, self.mode)
            .map_err(|error| Failure::file(&self.path, &error))?;
        Ok(roster)
    }

    fn stamps(&self) -> Stamps {
        let mut all = vec![files::stamp(&self.path)];
        all.extend(file::names(&self.path).iter().map(|path| files::stamp(path)));
        all
    }

    /// Reads the users again when a file has changed since `taken`, and at SIGHUP. A broken file changes nothing. Never ends.
    pub(crate) async fn follow(self, users: watch::Sender<Arc<Roster>>, mut taken: Stamps) {
        let mut hang_up = signal(SignalKind::hangup()).ok();
        let (mut asked, mut refused) = (false, None);
        loop {
            let stamps = self.stamps();
            if asked || stamps != taken {
                match tokio::task::block_in_place(|| self.load()) {
                    Ok(roster) => {
                        let count = roster.users.len();
                        tracing::info!(users = count, "the users of SFTP were read again");
                        users.send_replace(Arc::new(roster));
                        (taken, refused) = (stamps, None);
                    }
                    Err(failure) => {
                        if asked || refused.as_ref() != Some(&stamps) {
                            tracing::error!(
                                error = failure.message(),
                                hint = failure.advice(),
                                "the users of SFTP cannot be used: the previous ones stay in use"
                            );
                        }
                        refused = Some(stamps);
                    }
                }
            }
            asked = tokio::select! {
                () = tokio::time::sleep(FILES) => false,
                () = async {
                    match &mut hang_up {
                        Some(signal) => { signal.recv().await; }
                        None => std::future::pending().await,
                    }
                } => true,
            };
        }
    }
}

/// Whether others than its owner and group may read a file.
fn is_open(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o004 != 0)
}

/// What the users of a file may do where: for people, and for programs.
pub(crate) fn described(path: &Path) -> Result<(String, Value), Failure> {
    let checked = file::read(path)?;
    let (mut text, mut all) = (String::new(), Vec::new());
    for user in checked.users {
        let tree = &user.tree;
        let mut proofs = vec![plural(user.keys.len() as u64, "key", "keys")];
        proofs.extend(user.password.as_ref().map(|_| "a password".to_owned()));
        if !user.authorities.is_empty() {
            let many = user.authorities.len() as u64;
            proofs.push(plural(many, "certificate authority", "certificate authorities"));
        }
        text.push_str(&format!("{} ({})\n", user.name, proofs.join(", ")));
        let networks =
            |list: &[ipnet::IpNet]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        let (allow, deny) = (networks(&user.allow), networks(&user.deny));
        if !allow.is_empty() {
            text.push_str(&format!("  from {}\n", allow.join(", ")));
        }
        if !deny.is_empty() {
            text.push_str(&format!("  not from {}\n", deny.join(", ")));
        }
        let until = user.until_ms.map(|ms| outlast_pki::time::rfc3339(ms.div_euclid(1000)));
        if let Some(until) = &until {
            let is_over = user.until_ms.is_some_and(|ms| ms <= system_clock());
            let note = if is_over { ": has expired" } else { "" };
            text.push_str(&format!("  until {until}{note}\n"));
        }
        if let Some(most) = user.sessions {
            text.push_str(&format!("  {most} sessions at most\n"));
        }
        let mut places: Vec<_> = tree.mounts.iter().map(|mount| mount.at.clone()).collect();
        places.extend(tree.rules.iter().map(|(at, _)| at.clone()));
        places.sort();
        places.dedup();
        let mut folders = Vec::new();
        for at in places {
            let rights = tree.rights(&at);
            let names = rights_of(rights);
            let mount = tree.mounts.iter().find(|mount| mount.at == at);
            let shown = String::from_utf8_lossy(at.as_bytes()).into_owned();
            let place = mount.map(|mount| mount.place.to_string());
            let quota = mount.and_then(|mount| mount.quota);
            let place_text = place.as_ref().map(|place| format!(" = {place}")).unwrap_or_default();
            let quota_text = quota.map(|quota| format!(", at most {}", quota_of(quota)));
            text.push_str(&format!(
                "  {shown}{place_text}: {}{}\n",
                if names.is_empty() { "nothing".to_owned() } else { names.join(", ") },
                quota_text.unwrap_or_default(),
            ));
            folders.push(json!({
                "path": shown, "place": place, "rights": names,
                "quota": quota.map(|quota| json!({ "bytes": quota.bytes, "files": quota.files })),
            }));
        }
        if !tree.hidden.is_empty() {
            text.push_str(&format!("  hidden: {}\n", tree.hidden.join(", ")));
        }
        all.push(json!({
            "name": user.name, "keys": user.keys.len(), "password": user.password.is_some(),
            "certificateAuthorities": user.authorities.len(), "allow": allow, "deny": deny, "expires": until,
            "sessions": user.sessions, "hidden": tree.hidden, "folders": folders,
        }));
    }
    Ok((text, json!({ "users": all })))
}

fn rights_of(rights: Rights) -> Vec<&'static str> {
    rights.names().collect()
}

fn quota_of(limit: Limit) -> String {
    let bytes = limit.bytes.map(|bytes| format!("{bytes} bytes"));
    let files = limit.files.map(|files| format!("{files} files"));
    [bytes, files].into_iter().flatten().collect::<Vec<_>>().join(" and ")
}

#[cfg(test)]
mod tests {
    use outlast_ssh::{KeyKind, PrivateKey};

    use super::*;

    /// A quota that one user's table gives a folder ends the sessions of others there, which would go on without it.
    #[test]
    fn a_folder_has_one_quota_for_all_its_users() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sftp.toml");
        let key = PrivateKey::generate(KeyKind::Ed25519).unwrap().public_key().to_openssh_line();
        let trees = |quota: &str| {
            let user = |name: &str, more: &str| {
                format!("[[user]]\nname = \"{name}\"\nkeys = [\"{key}\"]\nfolder = \".\"\n{more}\n")
            };
            let users = [user("alice", quota), user("bobby", "")].concat();
            std::fs::write(&file, format!("account = \"123456789012\"\n{users}")).unwrap();
            let (roster, _) = Users::new(file.clone(), folder.path(), None).begin().unwrap();
            ["alice", "bobby"].map(|name| roster.users[name].tree.clone())
        };
        let [_, before] = trees("");
        let [alice, bobby] = trees("quota = { bytes = 1000 }");
        assert!(alice.mounts[0].quota.is_some());
        assert_eq!(bobby.mounts[0].quota, alice.mounts[0].quota);
        assert_ne!(bobby, before, "the session goes on");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_change_between_the_start_and_the_first_check_counts() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sftp.toml");
        let key = PrivateKey::generate(KeyKind::Ed25519).unwrap().public_key().to_openssh_line();
        let write = |names: &[&str]| {
            let user = |name: &&str| {
                format!("[[user]]\nname = \"{name}\"\nkeys = [\"{key}\"]\nfolder = \".\"\n")
            };
            let users: String = names.iter().map(user).collect();
            std::fs::write(&file, format!("account = \"123456789012\"\n{users}")).unwrap();
        };
        write(&["alice"]);
        let users = Users::new(file.clone(), folder.path(), None);
        let (roster, stamps) = users.begin().unwrap();
        write(&["alice", "bobby"]);
        let (sender, mut receiver) = watch::channel(Arc::new(roster));
        let following = tokio::spawn(users.follow(sender, stamps));
        tokio::time::timeout(Duration::from_secs(60), receiver.changed()).await.unwrap().unwrap();
        assert!(receiver.borrow().users.contains_key("bobby"));
        following.abort();
    }
}
