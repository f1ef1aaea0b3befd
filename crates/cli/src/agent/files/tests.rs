//! What others put where the agent writes: the agent neither waits nor follows.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, FileType, FlockOperation, Mode, flock, mknodat};

use super::*;

const SECRET: &[u8] = b"hunter2";

fn rendered(path: &Path) -> Rendered {
    Rendered::new(FileSettings {
        path: path.to_path_buf(),
        source: Source::Secret("a".into()),
        mode: 0o400,
        uid: None,
        gid: None,
        allow_disk: true,
        keep_when_revoked: false,
        refresh: Duration::from_secs(1),
        keep: Duration::from_secs(1),
        notify: None,
    })
}

fn fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

#[test]
fn only_a_regular_file_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("file"), SECRET).unwrap();
    fifo(&at("fifo"));
    symlink(at("file"), at("link")).unwrap();
    symlink("/dev/zero", at("device")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    assert!(folder::open(&at("file")).is_ok());
    for name in ["fifo", "link", "device", "socket", "none", "."] {
        assert!(folder::open(&at(name)).is_err(), "{name}");
    }
    assert!(folder::open(Path::new("/dev/zero")).is_err());
}

/// All kinds of entries are replaced by the file, and what a link leads to stays.
#[test]
fn whatever_is_at_the_path_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("elsewhere"), b"elsewhere").unwrap();
    fifo(&at("fifo"));
    symlink(at("elsewhere"), at("link")).unwrap();
    for name in ["fifo", "link", "none"] {
        let rendered = rendered(&at(name));
        assert_eq!(rendered.write(SECRET), Ok(true), "{name}");
        assert!(std::fs::symlink_metadata(at(name)).unwrap().is_file(), "{name}");
        assert_eq!(std::fs::read(at(name)).unwrap(), SECRET);
        assert_eq!(rendered.write(SECRET), Ok(false), "{name}");
    }
    assert_eq!(std::fs::read(at("elsewhere")).unwrap(), b"elsewhere");
}

/// A neighbour swaps the file for a FIFO and back, as fast as it can: no comparison of the content may wait for the
/// FIFO's other end.
#[test]
fn a_fifo_that_is_swapped_in_does_not_hang_the_agent() {
    const ROUNDS: usize = 20_000;
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let rendered = rendered(&at("file"));
    rendered.write(SECRET).unwrap();
    fifo(&at("fifo"));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let flags = rustix::fs::RenameFlags::EXCHANGE;
                rustix::fs::renameat_with(CWD, at("file"), CWD, at("fifo"), flags).unwrap();
            }
        });
        let same = (0..ROUNDS).filter(|_| rendered.current(SECRET).is_some()).count();
        is_over.store(true, Ordering::Relaxed);
        assert!(same <= ROUNDS);
    });
}

#[test]
fn leftovers_of_a_killed_agent_go_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let name = |path: &Path| path.file_name().unwrap().to_owned();
    // As a killed agent leaves one.
    let (closed, left) = folder::temporary(folder.path()).unwrap().keep().unwrap();
    drop(closed);
    // Another agent writes this one at the moment.
    let busy = folder::temporary(folder.path()).unwrap();
    for other in
        [".outlast-", ".outlast-short", ".outlast-abcdefghijk.", "x.outlast-abcdefghijkl", "file"]
    {
        std::fs::write(at(other), SECRET).unwrap();
    }
    fifo(&at(".outlast-abcdefghijkl"));
    symlink(at("file"), at(".outlast-abcdefghijkm")).unwrap();
    std::fs::create_dir(at(".outlast-abcdefghijkn")).unwrap();
    let list = || {
        let entries = std::fs::read_dir(folder.path()).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort_unstable_by(|a, b| a.as_bytes().cmp(b.as_bytes()));
        names
    };
    let before = list();
    let files = [rendered(&at("file")).settings, rendered(&at("other")).settings];
    remove_leftovers(&files);
    let gone: Vec<_> = before.into_iter().filter(|name| !list().contains(name)).collect();
    assert_eq!(gone, [name(&left)]);
    assert!(busy.path().exists());
    if !rustix::process::geteuid().is_root() {
        return outlast_testing::skip("only root can make files of another user");
    }
    let (file, strange) = folder::temporary(folder.path()).unwrap().keep().unwrap();
    fchown(&file, Some(65_534), None).unwrap();
    flock(&file, FlockOperation::Unlock).unwrap();
    remove_leftovers(&files);
    assert!(strange.exists());
    // Its owner is that of a file in this folder: the agent had given it away already.
    let mut given = rendered(&at("file")).settings;
    given.uid = Some(65_534);
    remove_leftovers(&[given]);
    assert!(!strange.exists());
}

#[test]
fn a_pid_file_that_is_no_file_does_not_hang_the_agent() {
    let folder = tempfile::tempdir().unwrap();
    let pid_file = folder.path().join("pid");
    fifo(&pid_file);
    let notify = Notify::Signal { signal: Signal::USR1, pid_file };
    assert!(notify.run().unwrap_err().contains("not a regular file"));
}
