//! Users and groups by name, from the system's own files. Directories such as LDAP are not asked: the agent must start
//! before the network is there.

use std::path::Path;

use crate::failure::Failure;
use crate::files;

const MAX_FILE: usize = 8 << 20;

/// Number of a user.
pub(super) fn user(name: &str) -> Result<u32, Failure> {
    number(Path::new("/etc/passwd"), name, "user")
}

/// Number of a group.
pub(super) fn group(name: &str) -> Result<u32, Failure> {
    number(Path::new("/etc/group"), name, "group")
}

/// Both files have the name first and the number third.
fn number(path: &Path, name: &str, what: &str) -> Result<u32, Failure> {
    let bytes = files::read(path, MAX_FILE)?;
    let text = String::from_utf8_lossy(&bytes);
    let found = text.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(name)).then(|| fields.nth(1)?.parse().ok()).flatten()
    });
    found.ok_or_else(|| {
        Failure::new(format!("there is no {what} {name:?} in {}", path.display()))
            .hint("give its number instead")
    })
}
