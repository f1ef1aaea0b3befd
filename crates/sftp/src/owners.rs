//! Names of users and groups, for listings and for `users-groups-by-id@openssh.com`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;

use crate::limits::MAX_OWNERS;

/// Names by number. A number without a name is shown as a number.
#[derive(Debug, Clone, Default)]
pub struct Owners {
    /// Users.
    pub users: BTreeMap<u32, String>,
    /// Groups.
    pub groups: BTreeMap<u32, String>,
}

impl Owners {
    /// Those of `/etc/passwd` and `/etc/group`. Other sources of names, such as LDAP, are not asked: they may block.
    #[must_use]
    pub fn of_system() -> Self {
        Self { users: table("/etc/passwd"), groups: table("/etc/group") }
    }

    /// Name of a user, or the number.
    #[must_use]
    pub fn user(&self, id: u32) -> String {
        self.users.get(&id).cloned().unwrap_or_else(|| id.to_string())
    }

    /// Name of a group, or the number.
    #[must_use]
    pub fn group(&self, id: u32) -> String {
        self.groups.get(&id).cloned().unwrap_or_else(|| id.to_string())
    }
}

/// Both files have the name in the first field and the number in the third; the first line of a number counts.
fn table(path: &str) -> BTreeMap<u32, String> {
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_OWNERS).read_to_end(&mut text));
    let mut names = BTreeMap::new();
    if read.is_err() {
        return names;
    }
    for line in String::from_utf8_lossy(&text).lines() {
        let mut fields = line.split(':');
        if let (Some(name), Some(Ok(id))) = (fields.next(), fields.nth(1).map(str::parse)) {
            names.entry(id).or_insert_with(|| name.to_owned());
        }
    }
    names
}
