//! `outlast ssh krl`: key revocation lists, which OpenSSH reads with `RevokedKeys`.

use std::fs::{File, Permissions, TryLockError};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use outlast_net::server::system_clock;
use outlast_pki::time::rfc3339;
use outlast_ssh::{Krl, KrlError, MAX_KRL_LEN, PublicKey, Revoked};
use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use serde_json::json;

use super::certificate::{Line, read_line, read_lines};
use crate::failure::{FOUND, Failure, USAGE};
use crate::files;
use crate::output::Output;

/// Shown at the end of the help, and in the manual page.
const EXIT_STATUS: &str = "\
Exit status: 0 done, or none of the tested keys is revoked; 1 failed; 2 wrong usage; 5 a tested key or certificate is revoked.";

/// Arguments of `ssh krl`.
#[derive(clap::Args)]
#[command(after_help = EXIT_STATUS)]
pub(super) struct Arguments {
    /// The list.
    #[arg(short = 'f', long, value_name = "FILE")]
    file: PathBuf,
    /// Make a new list; nothing is replaced.
    #[arg(long, conflicts_with = "test")]
    create: bool,
    /// Revoke certificates by serial number, or by a range such as 1-5; may be repeated.
    #[arg(long, value_name = "N[-M]", value_parser = range, requires = "ca")]
    serial: Vec<(u64, u64)>,
    /// Revoke certificates by key id; may be repeated.
    #[arg(long, value_name = "ID", requires = "ca")]
    key_id: Vec<String>,
    /// Public key of the authority whose serial numbers and key ids these are; any stands for all authorities.
    #[arg(long, value_name = "FILE|any")]
    ca: Option<PathBuf>,
    /// Revoke this certificate, or this public key of a user, host or authority; may be repeated.
    #[arg(long, value_name = "FILE")]
    revoke: Vec<PathBuf>,
    /// Comment in the list.
    #[arg(long, conflicts_with = "test")]
    comment: Option<String>,
    /// Say which of these public keys and certificates are revoked; changes nothing.
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["serial", "key_id", "ca", "revoke"])]
    test: Vec<PathBuf>,
}

fn range(text: &str) -> Result<(u64, u64), String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.parse::<u64>(), last.parse::<u64>()) {
        (Ok(first), Ok(last)) if first > 0 && first <= last => Ok((first, last)),
        _ => Err("not a serial number from 1 on, or a range such as 1-5".to_owned()),
    }
}

/// Runs the command.
pub(super) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let path = &arguments.file;
    let is_there = files::exists(path)?;
    if arguments.create && is_there {
        return Err(Failure::file(path, &"the file exists already")
            .hint("choose another name, or leave --create out to add to it"));
    }
    if !arguments.create && !is_there {
        return Err(Failure::file(path, &"there is no list")
            .hint("make one with --create")
            .code(USAGE));
    }
    if !arguments.test.is_empty() {
        return test(&read(path)?, &arguments.test, output);
    }
    let _held = lock(path, LOCK_WAIT)?;
    let mut list = match arguments.create {
        true => Krl::default(),
        false => read(path)?,
    };
    let before = list.clone();
    change(&mut list, arguments)?;
    if list != before || arguments.create {
        list.version = list.version.saturating_add(1);
        list.generated_s = u64::try_from(system_clock().div_euclid(1000)).unwrap_or_default();
        let bytes = list.to_bytes();
        if bytes.len() > MAX_KRL_LEN {
            // Nobody could read it again.
            return Err(Failure::file(path, &KrlError::TooLong));
        }
        match arguments.create {
            true => files::write_absent(path, &bytes, 0o644)?,
            false => files::write(path, &bytes, 0o644)?,
        }
    }
    show(path, &list, output);
    Ok(())
}

/// Longest wait for somebody else who changes the list.
const LOCK_WAIT: Duration = Duration::from_secs(30);

/// Keeps others from changing the list: everybody who revokes must see what others have revoked. The lock is on a file beside the list,
/// which stays. It has the folder's owner if the administrator makes it, and the folder's group if that may write there: who may
/// replace the list can take the lock, and nobody else can hold it.
fn lock(path: &Path, wait: Duration) -> Result<File, Failure> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let mut beside = path.as_os_str().to_owned();
    beside.push(".lock");
    let beside = PathBuf::from(beside);
    let failed = |error: &dyn std::fmt::Display| Failure::file(&beside, error);
    // One folder, whatever somebody puts in its place meanwhile.
    let opened = File::open(folder).map_err(|error| Failure::file(folder, &error))?;
    let around = opened.metadata().map_err(|error| Failure::file(folder, &error))?;
    let name = beside.file_name().unwrap_or(beside.as_os_str());
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    let file = match openat(&opened, name, flags | OFlags::CREATE | OFlags::EXCL, mode) {
        Ok(file) => {
            let file = File::from(file);
            let owner = rustix::process::geteuid().is_root().then_some(around.uid());
            let group = (around.mode() & 0o020 != 0).then_some(around.gid());
            fchown(&file, owner, None).map_err(|error| failed(&error))?;
            // Only an administrator or a member can give a file to a group.
            let is_shared = group.is_some() && fchown(&file, None, group).is_ok();
            let mode = if is_shared { 0o660 } else { 0o600 };
            file.set_permissions(Permissions::from_mode(mode)).map_err(|error| failed(&error))?;
            file
        }
        Err(Errno::EXIST) => {
            let file = openat(&opened, name, flags, Mode::empty());
            File::from(file.map_err(|error| failed(&error))?)
        }
        Err(error) => return Err(failed(&error)),
    };
    let until = Instant::now() + wait;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(TryLockError::WouldBlock) => {
                return Err(failed(&"somebody else is changing the list").hint("try again"));
            }
            Err(TryLockError::Error(error)) => return Err(failed(&error)),
        }
    }
}

fn read(path: &Path) -> Result<Krl, Failure> {
    Krl::parse(&files::read(path, MAX_KRL_LEN)?).map_err(|error| Failure::file(path, &error))
}

fn change(list: &mut Krl, arguments: &Arguments) -> Result<(), Failure> {
    let authority = match &arguments.ca {
        Some(path) if path.as_os_str() != "any" => match read_line(path)? {
            Line::Key(key) => Some(key),
            Line::Certificate(_) => {
                return Err(Failure::file(
                    path,
                    &"it is a certificate, not the key of an authority",
                )
                .hint("name the public key of the CA: outlast ssh ca-key prints it"));
            }
        },
        _ => None,
    };
    let authority: Option<&PublicKey> = authority.as_ref();
    let failed = |error: KrlError| Failure::file(&arguments.file, &error);
    for (first, last) in &arguments.serial {
        list.revoke_serials(authority, *first, *last).map_err(failed)?;
    }
    for key_id in &arguments.key_id {
        list.revoke_key_id(authority, key_id).map_err(failed)?;
    }
    for path in &arguments.revoke {
        for line in read_lines(path)? {
            match line {
                Line::Key(key) => list.revoke_key(&key),
                Line::Certificate(certificate) => list.revoke_certificate(&certificate),
            }
            .map_err(failed)?;
        }
    }
    if let Some(comment) = &arguments.comment {
        list.comment.clone_from(comment);
    }
    Ok(())
}

fn show(path: &Path, list: &Krl, output: Output) {
    let counts = list.counts();
    let at = rfc3339(i64::try_from(list.generated_s).unwrap_or(i64::MAX));
    let text = format!(
        "{}: version {} of {at}: {} ranges of serial numbers, {} key ids, {} keys",
        path.display(),
        list.version,
        counts.serial_ranges,
        counts.key_ids,
        counts.keys
    );
    let value = json!({
        "file": files::json_path(path), "version": list.version, "generated": at, "comment": list.comment,
        "serialRanges": counts.serial_ranges, "keyIds": counts.key_ids, "keys": counts.keys,
    });
    output.result(&text, &value);
}

fn test(list: &Krl, paths: &[PathBuf], output: Output) -> Result<(), Failure> {
    let (mut text, mut values, mut found) = (String::new(), Vec::new(), 0);
    for path in paths {
        // One revoked key in a file is enough.
        let by = read_lines(path)?.iter().find_map(|line| match line {
            Line::Key(key) => list.revokes_key(key).then_some("its key"),
            Line::Certificate(certificate) => list.revokes(certificate).map(Revoked::name),
        });
        found += usize::from(by.is_some());
        let said = by.map_or_else(|| "ok".to_owned(), |by| format!("REVOKED by {by}"));
        text.push_str(&format!("{}: {said}\n", path.display()));
        values.push(json!({ "file": files::json_path(path), "revoked": by.is_some(), "by": by }));
    }
    output.result(text.trim_end(), &values);
    match found {
        0 => Ok(()),
        _ => Err(Failure::finding(format!("{found} of {} are revoked", paths.len())).code(FOUND)),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail")]
mod tests {
    use super::*;

    /// A user who may only read the folder and the list cannot keep others from revoking; one who revokes keeps others waiting for a while.
    #[test]
    fn only_who_may_change_the_list_can_lock_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list");
        std::fs::write(&path, "").unwrap();
        let (held, read) = (File::open(folder.path()).unwrap(), File::open(&path).unwrap());
        held.lock().unwrap();
        read.lock().unwrap();
        let first = lock(&path, Duration::ZERO).unwrap();
        let beside = folder.path().join("list.lock");
        assert_eq!(beside.metadata().unwrap().mode() & 0o777, 0o600);
        let refused = lock(&path, Duration::from_millis(50)).unwrap_err();
        assert!(format!("{refused:?}").contains("somebody else"), "{refused:?}");
        drop(first);
        drop(lock(&path, Duration::ZERO).unwrap());
        // An administrator makes it for those who own the folder, or may write there.
        if rustix::process::geteuid().is_root() {
            for (mode, shared, owners) in
                [(0o755, 0o600, (1, 0)), (0o775, 0o660, (1, 2)), (0o757, 0o600, (1, 0))]
            {
                std::fs::remove_file(&beside).unwrap();
                std::os::unix::fs::chown(folder.path(), Some(1), Some(2)).unwrap();
                std::fs::set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
                drop(lock(&path, Duration::ZERO).unwrap());
                let made = beside.metadata().unwrap();
                assert_eq!(made.mode() & 0o777, shared, "{mode:o}");
                assert_eq!((made.uid(), made.gid()), owners, "{mode:o}");
            }
        }
        // Nobody is led to another file.
        std::fs::remove_file(&beside).unwrap();
        std::os::unix::fs::symlink("list", &beside).unwrap();
        assert!(lock(&path, Duration::ZERO).is_err());
    }
}
