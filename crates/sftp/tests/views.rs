//! Views: mounts, rights, hidden names, quotas.

use std::os::unix::fs::symlink;
use std::sync::Arc;

use outlast_sftp::attributes::Attributes;
use outlast_sftp::error::Status::{
    Failure, NoSuchFile, Ok as Done, OpUnsupported, PermissionDenied,
};
use outlast_sftp::local::FolderOptions;
use outlast_sftp::quota::{Quota, Usage};
use outlast_sftp::request::{Request, write_hello};
use outlast_sftp::rights::Rights;
use outlast_sftp::session::Session;
use outlast_sftp::view::View;
use outlast_sftp::volume::OpenHow;
use tempfile::tempdir;

use crate::support::{NOW, Server, UPLOAD, bytes, folder, open, path, view, write};

fn rename(from: &str, to: &str) -> Request {
    Request::PosixRename { from: bytes(from), to: bytes(to) }
}

fn make(at: &str) -> Request {
    Request::MkDir { path: bytes(at), attributes: Attributes::default() }
}

#[test]
fn volumes_are_composed_to_one_tree() {
    let (one, other) = (tempdir().unwrap(), tempdir().unwrap());
    std::fs::write(one.path().join("a"), b"a").unwrap();
    std::fs::write(other.path().join("b"), b"b").unwrap();
    std::fs::create_dir(one.path().join("sub")).unwrap();
    std::fs::write(one.path().join("sub/covered"), b"").unwrap();
    let plain = FolderOptions::default();
    let view = View::new(|| NOW)
        .mount(path("/in"), folder(one.path(), plain))
        .mount(path("/in/sub"), folder(other.path(), plain))
        .mount(path("/deep/er/out"), folder(other.path(), plain));
    let mut server = Server::new(view);
    assert_eq!(server.names("/"), ["deep", "in"]);
    assert_eq!(server.names("/in"), ["a", "sub"]);
    assert_eq!(server.names("/in/sub"), ["b"]);
    assert_eq!(server.names("/deep"), ["er"]);
    assert_eq!(server.names("/deep/er/out/../../.."), ["deep", "in"]);
    assert_eq!(server.read("/in/sub/b"), b"b");
    assert!(server.attributes(&Request::Stat { path: bytes("/deep/er") }).is_folder());
    server.write("/deep/er/out/new", b"1");
    assert_eq!(server.read("/in/sub/new"), b"1");
    // What only the view has cannot be changed.
    for request in [
        Request::RmDir { path: bytes("/deep") },
        Request::RmDir { path: bytes("/in") },
        make("/new"),
        rename("/in", "/out"),
        rename("/in/sub", "/in/x"),
        rename("/in/a", "/in/sub"),
        Request::Remove { path: bytes("/deep") },
        Request::Symlink { target: bytes("in/a"), link: bytes("/link") },
        Request::SetStat { path: bytes("/deep"), attributes: Attributes::virtual_folder() },
    ] {
        let status = server.status(&request);
        assert!(status == PermissionDenied || status == NoSuchFile, "{request:?}: {status:?}");
    }
    server.refused(&open("/deep", OpenHow::reading()), Failure);
    server.refused(&open("/new", UPLOAD), NoSuchFile);
    server.refused(&Request::StatVfs { path: bytes("/") }, OpUnsupported);
    // From one volume to another.
    let text = server.refused(&rename("/in/a", "/in/sub/a"), Failure);
    assert!(text.contains("copy the file"), "{text}");
    server
        .refused(&Request::HardLink { from: bytes("/in/a"), to: bytes("/deep/er/out/a") }, Failure);
    server.refused(&Request::Symlink { target: bytes("/in/a"), link: bytes("/in/sub/l") }, Failure);
    // An absolute link within a volume means the view's path.
    server.ok(&Request::Symlink { target: bytes("/in/a"), link: bytes("/in/l") });
    assert_eq!(server.read("/in/l"), b"a");
    assert_eq!(server.name(&Request::ReadLink { path: bytes("/in/l") }), b"a");
}

#[test]
fn a_read_only_view_changes_nothing() {
    let home = tempdir().unwrap();
    std::fs::write(home.path().join("f"), b"f").unwrap();
    let mut server = Server::new(view(home.path()).only(Rights::READ_ONLY));
    assert_eq!(server.read("/f"), b"f");
    assert_eq!(server.names("/"), ["f"]);
    let handle = server.open("/f");
    let attributes = Attributes { mode: Some(0o777), ..Attributes::default() };
    for request in [
        open("/f", UPLOAD),
        open("/new", UPLOAD),
        open("/f", OpenHow { append: true, ..OpenHow::default() }),
        open("/new", OpenHow { read: true, create: true, ..OpenHow::default() }),
        open("/f", OpenHow { read: true, truncate: true, ..OpenHow::default() }),
        write(&handle, 0, b"x"),
        Request::SetStat { path: bytes("/f"), attributes },
        Request::LSetStat { path: bytes("/f"), attributes },
        Request::FSetStat { handle: handle.clone(), attributes },
        Request::Remove { path: bytes("/f") },
        make("/d"),
        Request::RmDir { path: bytes("/") },
        Request::Rename { from: bytes("/f"), to: bytes("/g") },
        rename("/f", "/g"),
        Request::Symlink { target: bytes("f"), link: bytes("/l") },
        Request::HardLink { from: bytes("/f"), to: bytes("/l") },
    ] {
        server.refused(&request, PermissionDenied);
    }
    assert_eq!(server.names("/"), ["f"]);
}

#[test]
fn rights_are_those_of_the_closest_rule() {
    let home = tempdir().unwrap();
    for name in ["in", "out", "out/all"] {
        std::fs::create_dir(home.path().join(name)).unwrap();
        std::fs::write(home.path().join(name).join("f"), b"f").unwrap();
    }
    symlink("../out/f", home.path().join("in/link")).unwrap();
    let view = view(home.path())
        .rule(path("/"), Rights::LIST)
        .rule(path("/in"), Rights::WRITE.or(Rights::RENAME))
        .rule(path("/out"), Rights::READ_ONLY)
        .rule(path("/out/all"), Rights::ALL);
    let mut server = Server::new(view);
    // Only writing.
    server.write("/in/new", b"1");
    for request in [
        open("/in/new", OpenHow::reading()),
        Request::OpenDir { path: bytes("/in") },
        Request::Stat { path: bytes("/in/new") },
        Request::Remove { path: bytes("/in/new") },
        make("/in/d"),
        Request::ReadLink { path: bytes("/in/link") },
    ] {
        let text = server.refused(&request, PermissionDenied);
        assert!(text.contains("right to"), "{text}");
    }
    assert!(server.attributes(&Request::Stat { path: bytes("/in") }).is_folder());
    server.ok(&rename("/in/new", "/in/newer"));
    // A new size is a write, everything else is not.
    let size = Attributes { size: Some(0), ..Attributes::default() };
    server.ok(&Request::SetStat { path: bytes("/in/newer"), attributes: size });
    let both = Attributes { mode: Some(0o600), ..size };
    server.refused(
        &Request::SetStat { path: bytes("/in/newer"), attributes: both },
        PermissionDenied,
    );
    // Only reading, and everything further down.
    assert_eq!(server.read("/out/f"), b"f");
    server.refused(&open("/out/f", UPLOAD), PermissionDenied);
    server.write("/out/all/new", b"1");
    server.ok(&Request::Remove { path: bytes("/out/all/new") });
    // From one to the other both must allow it.
    server.refused(&rename("/in/newer", "/out/x"), PermissionDenied);
    server.refused(&rename("/out/f", "/in/x"), PermissionDenied);
    server.refused(
        &Request::HardLink { from: bytes("/out/f"), to: bytes("/out/all/x") },
        PermissionDenied,
    );
    // Not even where both allow it: what may only be written would be read.
    server.refused(&rename("/out/all/f", "/in/x"), PermissionDenied);
    // A link does not carry the rights of its folder to its target.
    let status = server.status(&open("/in/link", UPLOAD));
    assert_eq!(status, NoSuchFile);
    // A folder with a rule keeps its name, and so do those above it.
    server.refused(&rename("/out/all", "/in/all"), PermissionDenied);
    assert_eq!(std::fs::read(home.path().join("out/f")).unwrap(), b"f");
}

#[test]
fn a_rename_replaces_only_with_the_right_to_write_or_delete() {
    let home = tempdir().unwrap();
    for name in ["a", "b"] {
        std::fs::write(home.path().join(name), name).unwrap();
    }
    let rights = Rights::READ_ONLY.or(Rights::RENAME);
    let mut server = Server::new(view(home.path()).only(rights));
    let text = server.refused(&rename("/a", "/b"), Failure);
    assert!(text.contains("exists"), "{text}");
    server.ok(&rename("/a", "/c"));
    let mut server = Server::new(view(home.path()).only(rights.or(Rights::DELETE)));
    server.ok(&rename("/c", "/b"));
}

#[test]
fn hidden_names_do_not_exist() {
    let home = tempdir().unwrap();
    std::fs::create_dir(home.path().join(".ssh")).unwrap();
    std::fs::write(home.path().join(".ssh/key"), b"secret").unwrap();
    std::fs::write(home.path().join("f"), b"f").unwrap();
    symlink(".ssh/key", home.path().join("link")).unwrap();
    let mut server = Server::new(view(home.path()).hide(b".ssh"));
    assert_eq!(server.names("/"), ["f", "link"]);
    for request in [
        open("/.ssh/key", OpenHow::reading()),
        open("/link", OpenHow::reading()),
        Request::Stat { path: bytes("/.ssh") },
        Request::OpenDir { path: bytes(".ssh") },
        make("/.ssh"),
        rename("/f", "/.ssh"),
        rename("/.ssh", "/mine"),
        Request::HardLink { from: bytes("/.ssh/key"), to: bytes("/k") },
    ] {
        server.refused(&request, NoSuchFile);
    }
}

#[test]
fn quotas_are_kept() {
    let home = tempdir().unwrap();
    std::fs::create_dir(home.path().join("d")).unwrap();
    std::fs::write(home.path().join("d/old"), b"1234567890").unwrap();
    for options in [FolderOptions::default(), FolderOptions { atomic_uploads: true }] {
        let open_view = || View::new(|| NOW).mount(path("/"), folder(home.path(), options));
        let used = open_view().measure().unwrap();
        assert_eq!(used, Usage { bytes: 10, files: 2 });
        let quota = Arc::new(Quota::new(Some(100), Some(5), used));
        let mut server = Server::new(open_view().quota(&quota));
        let usage = |bytes, files| assert_eq!(quota.used(), Usage { bytes, files });
        let handle = server.create("/new");
        server.ok(&write(&handle, 0, &[1; 60]));
        // What is written again is counted once.
        server.ok(&write(&handle, 0, &[1; 60]));
        usage(70, 3);
        let more = OpenHow { write: true, create: true, ..OpenHow::default() };
        let other = server.handle(&open("/new", more));
        let text = server.refused(&write(&other, 60, &[1; 31]), Failure);
        assert!(text.starts_with("quota exceeded"), "{text}");
        server.refused(&write(&other, u64::MAX - 1, &[1; 1]), Failure);
        let close = Request::Close { handle: other };
        if options.atomic_uploads {
            // It would not be whole.
            server.refused(&close, Failure);
        } else {
            server.ok(&close);
        }
        server.ok(&write(&handle, 60, &[1; 30]));
        let size = |size| Attributes { size: Some(size), ..Attributes::default() };
        server
            .refused(&Request::FSetStat { handle: handle.clone(), attributes: size(91) }, Failure);
        server.ok(&Request::FSetStat { handle: handle.clone(), attributes: size(20) });
        usage(30, 3);
        server.ok(&Request::Close { handle });
        // Files: one more fits, and then none.
        server.ok(&make("/e"));
        server.ok(&Request::Symlink { target: bytes("new"), link: bytes("/l") });
        usage(30, 5);
        server.refused(&make("/g"), Failure);
        server.refused(&open("/g", UPLOAD), Failure);
        // A failure uses nothing.
        server.ok(&Request::Remove { path: bytes("/l") });
        server.refused(&make("/e"), Failure);
        server.refused(&Request::Symlink { target: bytes("x"), link: bytes("/") }, Failure);
        usage(30, 4);
        let hard_link = Request::HardLink { from: bytes("/new"), to: bytes("/g") };
        server.refused(&hard_link, OpUnsupported);
        server.write("/g", &[1; 10]);
        usage(40, 5);
        server.ok(&rename("/g", "/d/old"));
        usage(30, 4);
        server.ok(&Request::SetStat { path: bytes("/d/old"), attributes: size(0) });
        server.ok(&Request::SetStat { path: bytes("/d/old"), attributes: size(10) });
        // An existing file that is emptied gives its bytes back; appending counts from its end.
        let handle = server.handle(&open("/d/old", UPLOAD));
        server.ok(&write(&handle, 0, b"1234567890"));
        server.ok(&Request::Close { handle });
        let handle = server.handle(&open("/d/old", OpenHow { append: true, ..OpenHow::default() }));
        server.ok(&write(&handle, 0, b"1"));
        let attributes = size(10);
        server.ok(&Request::FSetStat { handle: handle.clone(), attributes });
        server.ok(&Request::Close { handle });
        // A session that is lost counts what is there.
        let handle = server.create("/lost");
        server.ok(&write(&handle, 0, b"12345"));
        server.session.end();
        drop(handle);
        for name in ["/lost", "/new"] {
            let status = server.status(&Request::Remove { path: bytes(name) });
            assert!(status == Done || name == "/lost");
        }
        server.ok(&Request::RmDir { path: bytes("/e") });
        usage(10, 2);
        assert_eq!(open_view().measure().unwrap(), quota.used());
        // `df` has what is left of the quota.
        quota.limit(Some(8 * 4096 + 10), Some(5));
        let space = server.view.space(&path("/")).unwrap();
        let unit = space.fragment_size;
        assert_eq!((space.blocks * unit, space.available_blocks * unit), (8 * 4096, 8 * 4096));
        assert_eq!((space.files, space.available_files), (5, 3));
    }
}

/// Each volume has its own quota, or shares one.
#[test]
fn quotas_belong_to_volumes() {
    let (one, other) = (tempdir().unwrap(), tempdir().unwrap());
    let plain = FolderOptions::default();
    let quota = |bytes| Some(Arc::new(Quota::new(Some(bytes), None, Usage::default())));
    let view = View::new(|| NOW)
        .mount_with(path("/"), folder(one.path(), plain), quota(10))
        .mount_with(path("/big"), folder(other.path(), plain), quota(100))
        .mount(path("/free"), folder(other.path(), plain));
    let mut server = Server::new(view);
    for (name, most) in [("/x", 10), ("/big/x", 100), ("/free/x", 1000)] {
        server.write(name, &vec![1; most]);
        let handle = server.create(name);
        if name != "/free/x" {
            server.refused(&write(&handle, 0, &vec![1; most + 1]), Failure);
        }
    }
}

/// Two handles of one file, and uploads that are given up, do not lead to more than the quota.
#[test]
fn a_quota_cannot_be_tricked() {
    for options in [FolderOptions::default(), FolderOptions { atomic_uploads: true }] {
        let home = tempdir().unwrap();
        let view = View::new(|| NOW).mount(path("/"), folder(home.path(), options));
        let quota = Arc::new(Quota::new(Some(100), None, Usage::default()));
        let mut server = Server::new(view.quota(&quota));
        server.write("/f", &[1; 30]);
        // One handle empties what the other has counted. Copies that are to be resumed count as well.
        let how = OpenHow { write: true, ..OpenHow::default() };
        let (one, other) = (server.handle(&open("/f", how)), server.handle(&open("/f", how)));
        let attributes = Attributes { size: Some(0), ..Attributes::default() };
        server.ok(&Request::FSetStat { handle: other, attributes });
        server.ok(&write(&one, 0, &[1; 30]));
        server.write("/g", &[1; 1]);
        let refused = server.create("/h");
        server.refused(&write(&refused, 0, &[1; 80]), Failure);
        // Opening for replacement gives nothing back before the replacement.
        for _ in 0..20 {
            let handle = server.create("/g");
            server.refused(&write(&handle, 0, &[1; 80]), Failure);
        }
        // A file that takes its own place is still there.
        server.ok(&Request::PosixRename { from: bytes("/f"), to: bytes("/f") });
        // A link's size is not its target's, and what a link replaces was never charged.
        server.ok(&Request::Symlink { target: vec![b'x'; 60].into(), link: bytes("/l") });
        server.refused(&Request::LSetStat { path: bytes("/l"), attributes }, NoSuchFile);
        server.write("/l", b"1");
        server.session.end();
        assert_eq!(server.view.measure().unwrap().bytes, quota.used().bytes);
        // No bytes beyond the end make no file longer.
        let used = quota.used();
        server.session = Session::default();
        server.session.receive(&write_hello(3)).unwrap();
        server.session.next_output();
        let handle = server.handle(&open("/g", how));
        server.ok(&write(&handle, 90, b""));
        server.ok(&Request::Close { handle });
        assert_eq!(quota.used(), used);
        assert_eq!(server.view.measure().unwrap().bytes, used.bytes);
    }
}

/// A user's home is mounted at the root, and something else two folders below.
#[test]
fn what_leads_to_a_mount_can_be_entered() {
    let (home, other) = (tempdir().unwrap(), tempdir().unwrap());
    std::fs::write(other.path().join("b"), b"b").unwrap();
    let plain = FolderOptions::default();
    let view = View::new(|| NOW)
        .mount(path("/"), folder(home.path(), plain))
        .mount(path("/in/new"), folder(other.path(), plain));
    let mut server = Server::new(view);
    assert_eq!(server.names("/"), ["in"]);
    assert!(server.attributes(&Request::Stat { path: bytes("/in") }).is_folder());
    assert_eq!(server.names("/in"), ["new"]);
    assert_eq!(server.names("/in/new"), ["b"]);
    server.refused(&Request::OpenDir { path: bytes("/out") }, NoSuchFile);
    // The home's own folder is beneath.
    std::fs::create_dir(home.path().join("in")).unwrap();
    std::fs::write(home.path().join("in/a"), b"a").unwrap();
    assert_eq!(server.names("/in"), ["a", "new"]);
}
