//! Uploads that are inspected before they appear, and folders of volumes.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use outlast_sftp::arrival::{Inspector, Reception, Signatures, Signer};
use outlast_sftp::attributes::Attributes;
use outlast_sftp::below::Below;
use outlast_sftp::error::Status::{Failure, NoSuchFile, OpUnsupported, PermissionDenied};
use outlast_sftp::error::{Error, Result};
use outlast_sftp::local::FolderOptions;
use outlast_sftp::request::Request;
use outlast_sftp::view::View;
use outlast_sftp::volume::OpenHow;
use tempfile::tempdir;

use crate::support::{NOW, Server, bytes, folder, open, path, write};

/// Refuses what contains `bad`, and counts.
#[derive(Default)]
struct Judge(AtomicUsize);

impl Inspector for Judge {
    fn inspect(&self, _: &[u8], content: OwnedFd) -> Result<()> {
        self.0.fetch_add(1, Ordering::Relaxed);
        let mut file = File::from(content);
        let mut text = Vec::new();
        file.read_to_end(&mut text).unwrap();
        // The descriptor is no way to change the content.
        assert!(std::io::Write::write(&mut file, b"x").is_err());
        match text.windows(3).any(|part| part == b"bad") {
            true => Err(Error::denied("it is bad")),
            false => Ok(()),
        }
    }
}

#[test]
fn what_is_refused_never_appears_and_what_was_inspected_stays() {
    let home = tempdir().unwrap();
    let atomic = FolderOptions { atomic_uploads: true };
    let judge = Arc::new(Judge::default());
    let guarded = inspected(judge.clone()).guard(folder(home.path(), atomic));
    let mut server = Server::new(View::new(|| NOW).mount(path("/"), guarded));
    server.write("/good", b"good");
    let there = || std::fs::read_dir(home.path()).unwrap().count();
    assert_eq!((there(), judge.0.load(Ordering::Relaxed)), (1, 1));
    let bad = |server: &mut Server, name: &str| {
        let handle = server.create(name);
        server.ok(&write(&handle, 0, b"bad"));
        handle
    };
    for name in ["/bad", "/good"] {
        let handle = bad(&mut server, name);
        // Also by fsync@openssh.com, and by trying again.
        server.refused(&Request::FSync { handle: handle.clone() }, PermissionDenied);
        server.refused(&Request::FSync { handle: handle.clone() }, PermissionDenied);
        let text = server.refused(&Request::Close { handle }, PermissionDenied);
        assert_eq!(text, "it is bad");
    }
    let handle = bad(&mut server, "/bad");
    server.refused(&Request::FSync { handle: handle.clone() }, PermissionDenied);
    server.refused(&write(&handle, 0, b"god"), PermissionDenied);
    server.refused(&Request::Close { handle }, Failure);
    assert_eq!(there(), 1);
    assert_eq!(server.read("/good"), b"good");
    // After fsync the file is there, and no write follows.
    let handle = server.create("/synced");
    server.ok(&write(&handle, 0, b"fine"));
    server.ok(&Request::FSync { handle: handle.clone() });
    assert_eq!(server.read("/synced"), b"fine");
    server.refused(&write(&handle, 0, b"bad"), PermissionDenied);
    let size = Attributes { size: Some(1), ..Attributes::default() };
    server
        .refused(&Request::FSetStat { handle: handle.clone(), attributes: size }, PermissionDenied);
    server.ok(&Request::Close { handle });
    server.refused(&Request::SetStat { path: bytes("/good"), attributes: size }, OpUnsupported);
    // What an upload goes on with is inspected as a whole.
    let how = OpenHow { append: true, ..OpenHow::default() };
    server.write("/half", b"ba");
    let handle = server.handle(&open("/half", how));
    server.ok(&write(&handle, 0, b"d"));
    server.refused(&Request::Close { handle }, PermissionDenied);
    assert_eq!(server.read("/half"), b"ba");
}

fn inspected(judge: Arc<Judge>) -> Reception {
    Reception { inspector: Some(judge), signatures: Signatures::None }
}

/// "Signs" with the content itself, until it is told to fail.
#[derive(Default)]
struct Hand(AtomicBool);

impl Signer for Hand {
    fn sign(&self, name: &[u8], content: OwnedFd) -> Result<Vec<u8>> {
        if self.0.load(Ordering::Relaxed) {
            return Err(Error::failure("no ink"));
        }
        let mut text = [name, b" has "].concat();
        File::from(content).read_to_end(&mut text).unwrap();
        Ok(text)
    }
}

#[test]
fn a_signature_goes_with_its_file_and_nobody_else_writes_it() {
    let home = tempdir().unwrap();
    let (judge, hand) = (Arc::new(Judge::default()), Arc::new(Hand::default()));
    let both = Reception { inspector: Some(judge), signatures: Signatures::Made(hand.clone()) };
    let guarded = both.guard(folder(home.path(), FolderOptions { atomic_uploads: true }));
    let mut server = Server::new(View::new(|| NOW).mount(path("/"), guarded));
    let signature = |name: &str| format!("{name}.received.p7s");
    server.write("/a", b"one");
    assert_eq!(server.read(&signature("/a")), b"a has one");
    // Another content has another signature; so has what a client goes on with.
    server.write("/a", b"two");
    assert_eq!(server.read(&signature("/a")), b"a has two");
    let how = OpenHow { append: true, ..OpenHow::default() };
    let handle = server.handle(&open("/a", how));
    server.ok(&write(&handle, 0, b" three"));
    assert_eq!(server.read(&signature("/a")), b"a has two");
    server.ok(&Request::Close { handle });
    assert_eq!(server.read(&signature("/a")), b"a has two three");
    // A client can neither write nor replace one, nor make a file look as if it had one.
    let forged = signature("/a");
    let how = OpenHow { write: true, create: true, truncate: true, ..OpenHow::default() };
    server.refused(&open(&forged, how), PermissionDenied);
    server
        .refused(&open(&forged, OpenHow { append: true, ..OpenHow::default() }), PermissionDenied);
    server.write("/b", b"b");
    let moved = |from: &str, to: &str| Request::Rename { from: bytes(from), to: bytes(to) };
    let replaced = |from: &str, to: &str| Request::PosixRename { from: bytes(from), to: bytes(to) };
    server.refused(&moved("/b", &signature("/c")), PermissionDenied);
    server.refused(&replaced("/b", &forged), PermissionDenied);
    server.refused(&replaced(&forged, "/x"), PermissionDenied);
    server.refused(&Request::Remove { path: bytes(&forged) }, PermissionDenied);
    let link = Request::Symlink { target: bytes("b"), link: bytes(signature("/c")) };
    server.refused(&link, PermissionDenied);
    let link = Request::HardLink { from: bytes("/b"), to: bytes(signature("/c")) };
    server.refused(&link, PermissionDenied);
    let folder = Request::MkDir { path: bytes(signature("/c")), attributes: Attributes::default() };
    server.refused(&folder, PermissionDenied);
    let old = Attributes { times: Some((0, 0)), ..Attributes::default() };
    let touch = Request::SetStat { path: bytes(&forged), attributes: old };
    server.refused(&touch, PermissionDenied);
    assert_eq!(server.read(&forged), b"a has two three");
    // It follows its file, and replaces that of the file that is replaced.
    server.ok(&replaced("/b", "/a"));
    assert_eq!(server.read(&forged), b"b has b");
    server.ok(&moved("/a", "/c"));
    assert_eq!(server.names("/"), ["c", "c.received.p7s"]);
    // A file that was there before has none, and takes the other's away.
    std::fs::write(home.path().join("old"), b"old").unwrap();
    server.ok(&replaced("/old", "/c"));
    assert_eq!(server.names("/"), ["c"]);
    // What cannot be signed does not appear, and what was there stays with its signature.
    server.write("/d", b"d");
    hand.0.store(true, Ordering::Relaxed);
    for name in ["/d", "/e"] {
        let handle = server.create(name);
        server.ok(&write(&handle, 0, b"unsigned"));
        server.refused(&Request::FSync { handle: handle.clone() }, Failure);
        assert_eq!(server.refused(&Request::Close { handle }, Failure), "no ink");
    }
    assert_eq!(server.names("/"), ["c", "d", "d.received.p7s"]);
    assert_eq!(
        (server.read("/d"), server.read("/d.received.p7s")),
        (b"d".into(), b"d has d".into())
    );
    server.ok(&Request::Remove { path: bytes("/d") });
    server.ok(&Request::Remove { path: bytes("/c") });
    assert_eq!(server.names("/"), [] as [&str; 0]);
}

#[test]
fn a_file_that_others_write_has_no_signature_any_more() {
    let home = tempdir().unwrap();
    let kept = Reception { inspector: None, signatures: Signatures::Kept };
    let guarded = kept.guard(folder(home.path(), FolderOptions { atomic_uploads: true }));
    let mut server = Server::new(View::new(|| NOW).mount(path("/"), guarded));
    for name in ["a", "b"] {
        std::fs::write(home.path().join(name), name).unwrap();
        std::fs::write(home.path().join(format!("{name}.received.p7s")), b"signed").unwrap();
    }
    let how = OpenHow { write: true, create: true, ..OpenHow::default() };
    server.refused(&open("/c.received.p7s", how), PermissionDenied);
    server.write("/a", b"new");
    assert_eq!(server.names("/"), ["a", "b", "b.received.p7s"]);
    server.ok(&Request::Remove { path: bytes("/b") });
    assert_eq!(server.names("/"), ["a"]);
}

#[test]
fn a_storage_that_shows_unfinished_files_takes_no_inspected_uploads() {
    let home = tempdir().unwrap();
    let plain = folder(home.path(), FolderOptions::default());
    let guarded = inspected(Arc::new(Judge::default())).guard(plain);
    let mut server = Server::new(View::new(|| NOW).mount(path("/"), guarded));
    let how = OpenHow { write: true, create: true, ..OpenHow::default() };
    server.refused(&open("/x", how), OpUnsupported);
}

#[test]
fn a_folder_of_a_volume_is_all_that_is_seen() {
    let home = tempdir().unwrap();
    std::fs::write(home.path().join("secret"), b"secret").unwrap();
    let below = Below::new(folder(home.path(), FolderOptions::default()), path("/a/b"));
    below.make().unwrap();
    below.make().unwrap();
    let mut server = Server::new(View::new(|| NOW).mount(path("/"), Arc::new(below)));
    server.write("/x", b"1");
    assert!(home.path().join("a/b/x").exists());
    assert_eq!(server.names("/"), ["x"]);
    for name in ["/../secret", "/../../secret", "../../secret", "/a/b/x"] {
        let request = Request::Stat { path: bytes(name) };
        server.refused(&request, NoSuchFile);
    }
    std::os::unix::fs::symlink("../../secret", home.path().join("a/b/link")).unwrap();
    server.refused(&open("/link", OpenHow::reading()), NoSuchFile);
    let link = Request::Symlink { target: bytes("x"), link: bytes("/l") };
    server.refused(&link, OpUnsupported);
    server.refused(&Request::RmDir { path: bytes("/") }, PermissionDenied);
}
