//! Uploads that become visible whole or not at all.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;

use outlast_sftp::attributes::Attributes;
use outlast_sftp::error::Status;
use outlast_sftp::local::FolderOptions;
use outlast_sftp::quota::{Quota, Usage};
use outlast_sftp::request::Request;
use outlast_sftp::view::View;
use outlast_sftp::volume::{Follow, OpenHow, Tags, Volume};
use tempfile::tempdir;

use crate::support::{NOW, Server, UPLOAD, bytes, folder, open, path, write};

fn server(at: &Path) -> Server {
    let options = FolderOptions { atomic_uploads: true };
    Server::new(View::new(|| NOW).mount(path("/"), folder(at, options)))
}

/// Names of a folder, as other programs see them.
fn names(at: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(at)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

const RESUME: OpenHow = OpenHow { truncate: false, create: false, ..UPLOAD };

#[test]
fn a_new_file_appears_when_it_is_closed() {
    let home = tempdir().unwrap();
    let mut server = server(home.path());
    let handle = server.handle(&open("/new", OpenHow { mode: Some(0o604), ..UPLOAD }));
    server.ok(&write(&handle, 0, b"half"));
    assert!(names(home.path()).is_empty() && server.names("/").is_empty());
    server.refused(&Request::Stat { path: bytes("/new") }, Status::NoSuchFile);
    assert_eq!(server.attributes(&Request::FStat { handle: handle.clone() }).size, Some(4));
    server.ok(&write(&handle, 4, b"whole"));
    let times = Attributes { times: Some((1_000_000_000, 1_000_000_001)), ..Attributes::default() };
    server.ok(&Request::FSetStat { handle: handle.clone(), attributes: times });
    server.ok(&Request::Close { handle });
    assert_eq!(std::fs::read(home.path().join("new")).unwrap(), b"halfwhole");
    let there = home.path().join("new").metadata().unwrap();
    assert_eq!((there.mode() & 0o7777, there.mtime(), there.nlink()), (0o604, 1_000_000_001, 1));
}

#[test]
fn an_existing_file_stays_until_the_new_one_is_closed() {
    let home = tempdir().unwrap();
    let file = home.path().join("file");
    std::fs::write(&file, b"old").unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).unwrap();
    let mut server = server(home.path());
    let handle = server.create("/file");
    server.ok(&write(&handle, 0, b"new content"));
    assert_eq!(std::fs::read(&file).unwrap(), b"old");
    assert_eq!(server.read("/file"), b"old");
    server.ok(&Request::Close { handle });
    assert_eq!(std::fs::read(&file).unwrap(), b"new content");
    // Its permissions are those of the file that it replaces.
    assert_eq!(file.metadata().unwrap().mode() & 0o7777, 0o640);
    assert_eq!(names(home.path()), ["file"]);
}

#[test]
fn a_session_that_is_lost_leaves_nothing() {
    let home = tempdir().unwrap();
    std::fs::write(home.path().join("file"), b"old").unwrap();
    let mut server = server(home.path());
    for target in ["/file", "/new"] {
        let handle = server.create(target);
        server.ok(&write(&handle, 0, b"half"));
    }
    server.session.end();
    drop(server);
    assert_eq!(names(home.path()), ["file"]);
    assert_eq!(std::fs::read(home.path().join("file")).unwrap(), b"old");
}

#[test]
fn an_upload_is_resumed_on_a_copy() {
    let home = tempdir().unwrap();
    let file = home.path().join("file");
    std::fs::write(&file, b"12345").unwrap();
    let mut server = server(home.path());
    server.refused(&open("/new", RESUME), Status::NoSuchFile);
    let handle = server.handle(&open("/file", RESUME));
    assert_eq!(server.attributes(&Request::FStat { handle: handle.clone() }).size, Some(5));
    server.ok(&write(&handle, 5, b"678"));
    assert_eq!(std::fs::read(&file).unwrap(), b"12345");
    server.ok(&Request::Close { handle });
    assert_eq!(std::fs::read(&file).unwrap(), b"12345678");
    let handle = server.handle(&open("/file", OpenHow { append: true, ..OpenHow::default() }));
    server.ok(&write(&handle, 0, b"9"));
    server.ok(&write(&handle, 0, b"0"));
    server.ok(&Request::Close { handle });
    assert_eq!(std::fs::read(&file).unwrap(), b"1234567890");
}

#[test]
fn fsync_shows_the_file() {
    let home = tempdir().unwrap();
    let mut server = server(home.path());
    let handle = server.create("/new");
    server.ok(&write(&handle, 0, b"synced"));
    server.ok(&Request::FSync { handle: handle.clone() });
    assert_eq!(std::fs::read(home.path().join("new")).unwrap(), b"synced");
    server.ok(&write(&handle, 6, b" and more"));
    server.ok(&Request::FSync { handle: handle.clone() });
    server.session.end();
    assert_eq!(std::fs::read(home.path().join("new")).unwrap(), b"synced and more");
    assert_eq!(names(home.path()), ["new"]);
}

/// Clients sync and close what they could not write: OpenSSH's `put -f` does both after a write that failed.
#[test]
fn an_upload_that_is_broken_replaces_nothing() {
    let home = tempdir().unwrap();
    std::fs::write(home.path().join("f"), b"whole").unwrap();
    let quota = Arc::new(Quota::new(Some(8), None, Usage { bytes: 5, files: 1 }));
    let options = FolderOptions { atomic_uploads: true };
    let view = View::new(|| NOW).mount(path("/"), folder(home.path(), options));
    let mut server = Server::new(view.quota(&quota));
    let handle = server.create("/f");
    server.ok(&write(&handle, 0, b"123"));
    server.refused(&write(&handle, 3, b"456"), Status::Failure);
    let sync = Request::FSync { handle: handle.clone() };
    for request in [sync.clone(), sync, Request::Close { handle }] {
        let text = server.refused(&request, Status::Failure);
        assert!(text.contains("it was not stored"), "{text}");
    }
    assert_eq!(std::fs::read(home.path().join("f")).unwrap(), b"whole");
    assert_eq!(quota.used(), Usage { bytes: 5, files: 1 });
}

/// A disk tells once that it has lost something. What has failed stays failed.
#[test]
fn an_upload_that_could_not_be_synced_is_not_stored_later() {
    let home = tempdir().unwrap();
    let mut server = server(home.path());
    let handle = server.handle(&open("/f", OpenHow { exclusive: true, ..UPLOAD }));
    server.ok(&write(&handle, 0, b"mine"));
    let file = home.path().join("f");
    std::fs::write(&file, b"another").unwrap();
    server.refused(&Request::FSync { handle: handle.clone() }, Status::Failure);
    std::fs::remove_file(&file).unwrap();
    let text = server.refused(&Request::Close { handle }, Status::Failure);
    assert!(text.contains("exists"), "{text}");
    assert!(!file.exists());
}

#[test]
fn of_two_exclusive_uploads_one_wins() {
    let home = tempdir().unwrap();
    let mut server = server(home.path());
    let exclusive = OpenHow { exclusive: true, ..UPLOAD };
    let (one, other) =
        (server.handle(&open("/f", exclusive)), server.handle(&open("/f", exclusive)));
    server.ok(&write(&one, 0, b"one"));
    server.ok(&write(&other, 0, b"other"));
    server.ok(&Request::Close { handle: other });
    let text = server.refused(&Request::Close { handle: one }, Status::Failure);
    assert!(text.contains("exists"), "{text}");
    assert_eq!(server.read("/f"), b"other");
    server.refused(&open("/f", exclusive), Status::Failure);
    // Others: the last to close.
    let (one, other) = (server.create("/g"), server.create("/g"));
    server.ok(&write(&one, 0, b"one"));
    server.ok(&write(&other, 0, b"other"));
    server.ok(&Request::Close { handle: other });
    server.ok(&Request::Close { handle: one });
    assert_eq!(server.read("/g"), b"one");
}

#[test]
fn what_cannot_be_written_is_refused_at_the_open() {
    let home = tempdir().unwrap();
    std::fs::create_dir(home.path().join("d")).unwrap();
    let fifo = home.path().join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, fifo, 0o600.into()).unwrap();
    let mut server = server(home.path());
    server.refused(&open("/d", UPLOAD), Status::Failure);
    server.refused(&open("/", UPLOAD), Status::Failure);
    server.refused(&open("/fifo", UPLOAD), Status::Failure);
    let text = server.refused(&open("/gone/f", UPLOAD), Status::NoSuchFile);
    assert!(text.contains("make it first"), "{text}");
    if !rustix::process::geteuid().is_root() {
        let file = home.path().join("read-only");
        std::fs::write(&file, b"").unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o400)).unwrap();
        server.refused(&open("/read-only", UPLOAD), Status::PermissionDenied);
    }
}

#[test]
fn an_upload_takes_the_place_of_a_link() {
    let home = tempdir().unwrap();
    std::fs::write(home.path().join("target"), b"old").unwrap();
    symlink("target", home.path().join("link")).unwrap();
    symlink("/etc/outlast-nothing", home.path().join("dangling")).unwrap();
    let mut server = server(home.path());
    server.write("/link", b"new");
    server.write("/dangling", b"new");
    assert_eq!(std::fs::read(home.path().join("target")).unwrap(), b"old");
    for name in ["link", "dangling"] {
        assert!(home.path().join(name).symlink_metadata().unwrap().is_file());
    }
}

#[test]
fn temporary_names_are_neither_seen_nor_reached() {
    let home = tempdir().unwrap();
    let name = ".outlast-upload-1-1";
    std::fs::write(home.path().join(name), b"left by a killed process").unwrap();
    let mut server = server(home.path());
    assert!(server.names("/").is_empty());
    let at = || bytes(name);
    for request in [
        open(name, OpenHow::reading()),
        open(name, UPLOAD),
        Request::Stat { path: at() },
        Request::Remove { path: at() },
        Request::Rename { from: at(), to: bytes("/mine") },
        Request::MkDir { path: bytes(".outlast-upload-x/d"), attributes: Attributes::default() },
    ] {
        server.refused(&request, Status::NoSuchFile);
    }
}

#[test]
fn a_folder_that_is_renamed_takes_its_uploads_along() {
    let home = tempdir().unwrap();
    std::fs::create_dir(home.path().join("d")).unwrap();
    let mut server = server(home.path());
    let handle = server.create("/d/new");
    server.ok(&Request::Rename { from: bytes("/d"), to: bytes("/e") });
    server.ok(&write(&handle, 0, b"1"));
    server.ok(&Request::Close { handle });
    assert_eq!(std::fs::read(home.path().join("e/new")).unwrap(), b"1");
}

/// Tags belong to the content of a file, as in S3: what replaces it has none.
#[test]
fn tags_are_replaced_as_a_whole_and_end_with_their_file() {
    let home = tempdir().unwrap();
    let volume = folder(home.path(), FolderOptions { atomic_uploads: true });
    std::fs::write(home.path().join("a"), b"content").unwrap();
    let tags = |all: &[(&str, &str)]| -> Tags {
        all.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    let file = path("/a");
    assert_eq!(volume.tags(&file).unwrap(), tags(&[]));
    match volume.set_tags(&file, &tags(&[("state", "seen"), ("by", "a = b")]), None) {
        Ok(done) => assert!(done),
        Err(error) => {
            assert_eq!(error.status, Status::OpUnsupported);
            outlast_testing::skip("this file system has no extended attributes");
            return;
        }
    }
    assert_eq!(volume.tags(&file).unwrap(), tags(&[("state", "seen"), ("by", "a = b")]));
    volume.set_tags(&file, &tags(&[("state", "")]), None).unwrap();
    assert_eq!(volume.tags(&file).unwrap(), tags(&[("state", "")]));
    for odd in ["a\tb", "a\nb", "\0"] {
        let refused = volume.set_tags(&file, &tags(&[(odd, "x")]), None).unwrap_err();
        assert_eq!(refused.status, Status::Failure, "{odd:?}");
        assert!(volume.set_tags(&file, &tags(&[("x", odd)]), None).is_err());
    }
    // More than a file system keeps in one attribute.
    let huge = "x".repeat(100_000);
    let refused = volume.set_tags(&file, &tags(&[("a", &huge)]), None).unwrap_err();
    assert!(refused.text.contains("no room"), "{refused}");
    assert_eq!(volume.tags(&file).unwrap(), tags(&[("state", "")]));
    let how = OpenHow { write: true, create: true, truncate: true, ..OpenHow::default() };
    let upload = volume.open(&file, &how).unwrap();
    upload.write_at(0, b"new").unwrap();
    upload.close().unwrap();
    assert_eq!(volume.tags(&file).unwrap(), tags(&[]));
    for missing in ["/none", "/.outlast-upload-1"] {
        assert_eq!(
            volume.set_tags(&path(missing), &tags(&[]), None).unwrap_err().status,
            Status::NoSuchFile
        );
    }
    std::fs::create_dir(home.path().join("folder")).unwrap();
    assert!(volume.set_tags(&path("/folder"), &tags(&[("a", "b")]), None).is_err());
}

/// A file that is written in its place loses the tags of what it was, and keeps those that it gets afterwards.
#[test]
fn tags_end_with_the_content_that_is_overwritten() {
    let home = tempdir().unwrap();
    let volume = folder(home.path(), FolderOptions { atomic_uploads: false });
    std::fs::write(home.path().join("a"), b"content").unwrap();
    let (file, seen) = (path("/a"), vec![("state".to_owned(), "seen".to_owned())]);
    if volume.set_tags(&file, &seen, None).is_err() {
        outlast_testing::skip("this file system has no extended attributes");
        return;
    }
    let writing = OpenHow { write: true, ..OpenHow::default() };
    let tags = || volume.tags(&file).unwrap();
    let shorter = Attributes { size: Some(3), ..Attributes::default() };
    let open = || volume.open(&file, &writing).unwrap();
    let changes: [&dyn Fn(); 4] = [
        &|| drop(volume.open(&file, &OpenHow { truncate: true, ..writing }).unwrap()),
        &|| open().write_at(0, b"other").unwrap(),
        &|| open().set_attributes(&shorter).unwrap(),
        &|| volume.set_attributes(&file, &shorter, Follow::Yes).unwrap(),
    ];
    for change in changes {
        assert!(volume.set_tags(&file, &seen, None).unwrap());
        // Opening it changes nothing.
        drop(open());
        assert_eq!(tags(), seen);
        change();
        assert!(tags().is_empty());
    }
}

/// What has an entity tag is removed and tagged only while it has the same content.
#[test]
fn a_file_that_was_replaced_is_neither_removed_nor_tagged() {
    for atomic_uploads in [false, true] {
        let home = tempdir().unwrap();
        let volume = folder(home.path(), FolderOptions { atomic_uploads });
        let file = path("/a");
        let how = OpenHow { write: true, create: true, truncate: true, ..OpenHow::default() };
        let upload = |content: &[u8]| {
            let file = volume.open(&file, &how).unwrap();
            file.write_at(0, content).unwrap();
            let tag = file.entity_tag().unwrap().unwrap();
            file.close().unwrap();
            tag
        };
        let now = || volume.entity_tag(&file).unwrap().unwrap();
        let first = upload(b"content");
        assert_eq!(now(), first);
        let reading = volume.open(&file, &OpenHow::reading()).unwrap();
        // Tags, permissions and times that a client keeps are no content.
        let seen = vec![("state".to_owned(), "seen".to_owned())];
        let _ = volume.set_tags(&file, &seen, None);
        let kept = Attributes {
            mode: Some(0o600),
            times: Some((1_000_000_000, 1_000_000_000)),
            ..Attributes::default()
        };
        volume.set_attributes(&file, &kept, Follow::Yes).unwrap();
        assert!(reading.is_same(&first).unwrap());
        // The same length, and even the same bytes.
        std::thread::sleep(std::time::Duration::from_millis(20));
        let second = upload(b"content");
        assert_ne!(second, first);
        assert_eq!(reading.is_same(&first).unwrap(), atomic_uploads, "an open file stays");
        assert!(!volume.remove_same(&file, &first).unwrap());
        assert!(!volume.set_tags(&file, &seen, Some(&first)).is_ok_and(|done| done));
        assert!(volume.tags(&file).unwrap().is_empty());
        assert_eq!(now(), second);
        // What is gone is removed, with or without its folder.
        for _ in 0..2 {
            assert!(volume.remove_same(&file, &second).unwrap());
            assert!(!home.path().join("a").exists());
        }
        assert!(volume.remove_same(&path("/none/a"), &second).unwrap());
        assert!(volume.entity_tag(&file).is_err());
    }
}

#[test]
fn an_upload_that_is_not_closed_is_told_apart_from_the_file_of_its_name() {
    let home = tempdir().unwrap();
    std::fs::write(home.path().join("a"), b"the one before").unwrap();
    let mut server = server(home.path());
    let handle = server.create("/a");
    server.ok(&write(&handle, 0, b"half"));
    let ended = server.session.end();
    assert!(ended[0].is_apart, "{ended:?}");
    assert_eq!(std::fs::read(home.path().join("a")).unwrap(), b"the one before");
}
