//! Attempts to get out of a folder.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use outlast_sftp::error::Status;
use outlast_sftp::local::{Folder, FolderOptions};
use outlast_sftp::reply::Reply;
use outlast_sftp::request::Request;
use outlast_sftp::volume::OpenHow;
use tempfile::{TempDir, tempdir};

use crate::support::{Server, UPLOAD, bytes, open, read};

const CANARY: &[u8] = b"the canary outside";

/// A folder `home` and a folder `outside` with a canary next to it.
fn world() -> (TempDir, PathBuf, PathBuf) {
    let world = tempdir().unwrap();
    let (home, outside) = (world.path().join("home"), world.path().join("outside"));
    std::fs::create_dir(&home).unwrap();
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("canary"), CANARY).unwrap();
    (world, home, outside)
}

/// Tries everything at a path that leads to the canary if somebody follows it; nothing may be read or changed.
#[track_caller]
fn attack(server: &mut Server, path: &str) {
    let p = || bytes(path);
    let how = OpenHow { read: true, write: true, ..OpenHow::default() };
    for request in [
        open(path, OpenHow::reading()),
        open(path, how),
        open(path, UPLOAD),
        open(path, OpenHow { append: true, ..OpenHow::default() }),
    ] {
        if let Reply::Handle(handle) = server.call(&request) {
            // A new file inside is no harm.
            if let Reply::Data(data) = server.call(&read(&handle, 0, 100)) {
                assert_ne!(&*data, CANARY, "{path}");
            }
            server.ok(&Request::Close { handle });
        }
    }
    if let Reply::Attributes(attributes) = server.call(&Request::Stat { path: p() }) {
        assert_ne!(attributes.size, Some(CANARY.len() as u64), "{path}");
    }
    let attributes = outlast_sftp::attributes::Attributes {
        size: Some(1),
        mode: Some(0o777),
        times: Some((1, 1)),
        ..Default::default()
    };
    let _ = server.call(&Request::SetStat { path: p(), attributes });
    let _ = server.call(&Request::LSetStat { path: p(), attributes });
    let _ = server.call(&Request::StatVfs { path: p() });
    if let Reply::Handle(handle) = server.call(&Request::OpenDir { path: p() }) {
        while let Reply::Names(names) = server.call(&Request::ReadDir { handle: handle.clone() }) {
            assert!(names.iter().all(|name| name.name != b"canary"), "{path}");
        }
        server.ok(&Request::Close { handle });
    }
    let _ = server.call(&Request::HardLink { from: p(), to: bytes("/stolen") });
    if let Reply::Handle(handle) = server.call(&open("/stolen", OpenHow::reading())) {
        if let Reply::Data(data) = server.call(&read(&handle, 0, 100)) {
            assert_ne!(&*data, CANARY, "{path}");
        }
        server.ok(&Request::Close { handle });
    }
    let _ = server.call(&Request::Remove { path: bytes("/stolen") });
}

#[track_caller]
fn unharmed(outside: &Path) {
    assert_eq!(std::fs::read(outside.join("canary")).unwrap(), CANARY);
    assert_eq!(std::fs::read_dir(outside).unwrap().count(), 1);
    let mode = std::os::unix::fs::PermissionsExt::mode(&outside.metadata().unwrap().permissions());
    assert_ne!(mode & 0o777, 0o777, "somebody has changed the permissions outside");
}

#[test]
fn dots_and_links_do_not_lead_out() {
    let (_world, home, outside) = world();
    let absolute = outside.to_str().unwrap();
    symlink(&outside, home.join("absolute")).unwrap();
    symlink(outside.join("canary"), home.join("canary-link")).unwrap();
    symlink("../outside", home.join("relative")).unwrap();
    symlink("../../../../../../../../../../../..", home.join("top")).unwrap();
    symlink("/proc/self/root", home.join("magic")).unwrap();
    symlink("loop", home.join("loop")).unwrap();
    std::fs::create_dir(home.join("d")).unwrap();
    symlink("../../outside", home.join("d/up")).unwrap();
    let mut server = Server::of(&home);
    for path in [
        "/../outside/canary",
        "../outside/canary",
        "/d/../../outside/canary",
        absolute,
        &format!("{absolute}/canary"),
        "/absolute",
        "/absolute/canary",
        "/canary-link",
        "/relative/canary",
        "/relative",
        "/top",
        &format!("/top{absolute}/canary"),
        &format!("/magic{absolute}/canary"),
        "/magic/etc/passwd",
        "/d/up/canary",
        "/loop",
        "/loop/x",
    ] {
        attack(&mut server, path);
        unharmed(&outside);
    }
    // What acts on names acts on the link, or not at all.
    for name in ["absolute", "relative", "top", "magic"] {
        let below = format!("/{name}/canary");
        for request in [
            Request::Remove { path: bytes(&below) },
            Request::RmDir { path: bytes(format!("/{name}")) },
            Request::Rename { from: bytes(&below), to: bytes("/mine") },
            Request::MkDir { path: bytes(format!("/{name}/new")), attributes: Default::default() },
            Request::Symlink { target: bytes("x"), link: bytes(format!("/{name}/new")) },
            Request::Rename { from: bytes("/d"), to: bytes(format!("/{name}/d")) },
        ] {
            // Links to the top of everything lead to the top of the folder.
            if name != "top" {
                assert_ne!(server.status(&request), Status::Ok, "{request:?}");
            }
        }
        unharmed(&outside);
        server.ok(&Request::Remove { path: bytes(format!("/{name}")) });
        unharmed(&outside);
    }
}

#[test]
fn an_absolute_link_begins_at_the_folder() {
    let (_world, home, outside) = world();
    symlink("/inside", home.join("link")).unwrap();
    std::fs::write(home.join("inside"), b"mine").unwrap();
    let mut server = Server::of(&home);
    assert_eq!(server.read("/link"), b"mine");
    unharmed(&outside);
}

#[test]
fn clients_make_no_link_that_leads_out() {
    let (_world, home, outside) = world();
    std::fs::create_dir_all(home.join("a/b")).unwrap();
    let mut server = Server::of(&home);
    for target in ["..", "../outside/canary", "x/../../outside", "../../.."] {
        let request = Request::Symlink { target: bytes(target), link: bytes("/link") };
        let text = server.refused(&request, Status::PermissionDenied);
        assert!(text.contains("lead out"), "{text}");
    }
    let canary = outside.join("canary");
    let absolute = bytes(canary.to_str().unwrap());
    server.ok(&Request::Symlink { target: absolute, link: bytes("/a/b/link") });
    // Other programs follow it to a place within the folder.
    let target = std::fs::read_link(home.join("a/b/link")).unwrap();
    assert!(target.starts_with("../.."), "{target:?}");
    assert!(std::fs::read(home.join("a/b/link")).is_err());
    server.ok(&Request::Symlink { target: bytes("../../a/x"), link: bytes("/a/b/in") });
}

/// A path does not say how deep a folder is, and a target not where a name in it leads.
#[test]
fn clients_make_no_link_that_leads_out_over_another_one() {
    let (_world, home, outside) = world();
    std::fs::create_dir_all(home.join("a/b")).unwrap();
    let mut server = Server::of(&home);
    let link =
        |target: &str, link: &str| Request::Symlink { target: bytes(target), link: bytes(link) };
    server.ok(&link(".", "/here"));
    server.ok(&link("../..", "/a/b/up"));
    for (target, at) in [
        ("here/../outside/canary", "/l"),
        ("./a/../../outside/canary", "/l"),
        ("../outside/canary", "/a/b/up/l"),
        ("../../../outside/canary", "/a/b/up/l"),
    ] {
        let text = server.refused(&link(target, at), Status::PermissionDenied);
        assert!(text.contains("lead out"), "{text}");
    }
    std::fs::write(home.join("a/b/in"), b"the inside").unwrap();
    for (at, stored) in [("/a/b/up/m", "a/b/in"), ("/here/a/n", "../a/b/in")] {
        server.ok(&link("/a/b/in", at));
        let physical = home.join(at.trim_start_matches("/a/b/up/").trim_start_matches("/here/"));
        assert_eq!(std::fs::read_link(&physical).unwrap(), Path::new(stored));
        assert_eq!(std::fs::read(&physical).unwrap(), b"the inside");
        assert_eq!(server.read(at), b"the inside");
    }
    unharmed(&outside);
}

#[test]
fn a_link_cannot_take_the_place_of_the_folder() {
    let (_world, home, outside) = world();
    let mut server = Server::of(&home);
    for target in ["x", "/x", ".."] {
        let request = Request::Symlink { target: bytes(target), link: bytes("/") };
        let text = server.refused(&request, Status::Failure);
        assert!(text.contains("root folder"), "{text}");
    }
    unharmed(&outside);
}

#[test]
fn a_canonical_path_has_no_links() {
    let (world, home, outside) = world();
    let (root, options) = (world.path().canonicalize().unwrap(), FolderOptions::default());
    assert!(Folder::open_canonical(&root.join("home"), options).is_ok());
    std::fs::create_dir(outside.join("d")).unwrap();
    std::fs::rename(&home, root.join("moved")).unwrap();
    symlink(&outside, &home).unwrap();
    assert!(Folder::open(&root.join("home/d"), options).is_ok());
    for path in ["home", "home/d"] {
        assert!(Folder::open_canonical(&root.join(path), options).is_err(), "{path}");
    }
}

#[test]
fn proc_below_the_folder_has_no_magic_links() {
    // The whole machine is served: /proc is inside.
    let (_world, _home, outside) = world();
    let canary = outside.join("canary");
    let held = std::fs::File::open(&canary).unwrap();
    let mut server = Server::of(Path::new("/"));
    let number = std::os::fd::AsRawFd::as_raw_fd(&held);
    for path in [format!("/proc/self/root{}", canary.display()), format!("/proc/self/fd/{number}")]
    {
        attack(&mut server, &path);
    }
    // The way without magic is open.
    assert_eq!(server.read(canary.to_str().unwrap()), CANARY);
    unharmed(&outside);
}

/// Another process swaps a folder of the path for a link to the outside, again and again.
#[test]
fn swapping_a_folder_for_a_link_does_not_lead_out() {
    const ROUNDS: usize = 3000;
    let (_world, home, outside) = world();
    std::fs::create_dir(home.join("real")).unwrap();
    std::fs::write(home.join("real/canary"), b"the inside").unwrap();
    symlink(&outside, home.join("evil")).unwrap();
    symlink("../outside", home.join("evil-too")).unwrap();
    std::fs::create_dir_all(home.join("deep/er")).unwrap();
    rustix::fs::symlink("real", home.join("d")).unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let swap = |with: &str| {
                let flags = rustix::fs::RenameFlags::EXCHANGE;
                let (one, other) = (home.join("d"), home.join(with));
                rustix::fs::renameat_with(rustix::fs::CWD, one, rustix::fs::CWD, other, flags)
            };
            while !stop.load(Ordering::Relaxed) {
                for with in ["evil", "evil-too", "real"] {
                    swap(with).unwrap();
                }
                // A folder on the way moves up and down, as `..` is resolved.
                let (deep, shallow) = (home.join("deep/er"), home.join("moved"));
                std::fs::rename(&deep, &shallow).unwrap();
                std::fs::rename(&shallow, &deep).unwrap();
            }
        });
        let mut server = Server::of(&home);
        let mut seen = 0;
        for _ in 0..ROUNDS {
            for path in ["/d/canary", "/deep/er/../../d/canary"] {
                let Reply::Handle(handle) = server.call(&open(path, OpenHow::reading())) else {
                    continue;
                };
                if let Reply::Data(data) = server.call(&read(&handle, 0, 100)) {
                    assert_ne!(&*data, CANARY);
                    seen += 1;
                }
                server.ok(&Request::Close { handle });
            }
            let new = Request::MkDir { path: bytes("/d/new"), attributes: Default::default() };
            let _ = server.call(&new);
            let _ = server.call(&Request::RmDir { path: bytes("/d/new") });
            let _ = server.call(&open("/d/uploaded", UPLOAD));
            server.session.end();
        }
        stop.store(true, Ordering::Relaxed);
        assert!(seen > 0, "the attack never met the folder itself");
    });
    unharmed(&outside);
}

#[test]
fn a_folder_that_is_renamed_during_an_operation_stays_inside() {
    let (_world, home, outside) = world();
    std::fs::create_dir(home.join("d")).unwrap();
    let mut server = Server::of(&home);
    let handle = server.create("/d/file");
    server.ok(&Request::Rename { from: bytes("/d"), to: bytes("/e") });
    server.ok(&crate::support::write(&handle, 0, b"1"));
    server.ok(&Request::Close { handle });
    assert_eq!(server.read("/e/file"), b"1");
    unharmed(&outside);
}
