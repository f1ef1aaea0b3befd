//! Uploads that are inspected before they appear, and folders of volumes.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use outlast_sftp::arrival::{Inspector, Reception, Signer};
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
    Reception { inspector: Some(judge), signer: None }
}

/// Keeps what it signs, until it is told to fail.
#[derive(Default)]
struct Hand {
    signed: Mutex<Vec<Vec<u8>>>,
    is_tired: AtomicBool,
}

impl Signer for Hand {
    fn sign(&self, name: &[u8], content: OwnedFd) -> Result<()> {
        if self.is_tired.load(Ordering::Relaxed) {
            return Err(Error::failure("no ink"));
        }
        let mut text = [name, b" has "].concat();
        File::from(content).read_to_end(&mut text).unwrap();
        self.signed.lock().unwrap().push(text);
        Ok(())
    }
}

#[test]
fn nothing_appears_that_was_not_signed() {
    let home = tempdir().unwrap();
    let (judge, hand) = (Arc::new(Judge::default()), Arc::new(Hand::default()));
    let both = Reception { inspector: Some(judge), signer: Some(hand.clone()) };
    let guarded = both.guard(folder(home.path(), FolderOptions { atomic_uploads: true }));
    let mut server = Server::new(View::new(|| NOW).mount(path("/"), guarded));
    let signed = |what: &[&str]| {
        let all = std::mem::take(&mut *hand.signed.lock().unwrap());
        assert_eq!(all, what.iter().map(|text| text.as_bytes().to_vec()).collect::<Vec<_>>());
    };
    server.write("/a", b"one");
    signed(&["a has one"]);
    // What a client goes on with is signed as a whole, and nothing follows what was signed.
    let how = OpenHow { append: true, ..OpenHow::default() };
    let handle = server.handle(&open("/a", how));
    server.ok(&write(&handle, 0, b" two"));
    server.ok(&Request::FSync { handle: handle.clone() });
    server.refused(&write(&handle, 0, b" three"), PermissionDenied);
    server.ok(&Request::Close { handle });
    signed(&["a has one two"]);
    assert_eq!(server.read("/a"), b"one two");
    // What is refused is not signed.
    let handle = server.create("/b");
    server.ok(&write(&handle, 0, b"bad"));
    server.refused(&Request::Close { handle }, PermissionDenied);
    signed(&[]);
    // What cannot be signed does not appear, and what was there stays.
    hand.is_tired.store(true, Ordering::Relaxed);
    for name in ["/a", "/c"] {
        let handle = server.create(name);
        server.ok(&write(&handle, 0, b"unsigned"));
        server.refused(&Request::FSync { handle: handle.clone() }, Failure);
        assert_eq!(server.refused(&Request::Close { handle }, Failure), "no ink");
    }
    assert_eq!(server.names("/"), ["a"]);
    assert_eq!(server.read("/a"), b"one two");
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
