//! Every request on a local folder, with good and bad input.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use bytes::Bytes;
use outlast_sftp::attributes::Attributes;
use outlast_sftp::error::Status::{self, Failure, NoSuchFile, PermissionDenied};
use outlast_sftp::owners::Owners;
use outlast_sftp::reply::Reply;
use outlast_sftp::request::Request;
use outlast_sftp::volume::OpenHow;
use tempfile::{TempDir, tempdir};

use crate::support::{Server, UPLOAD, bytes, open, read, view, write};

/// A folder with a file `f`, a folder `d` with a file `d/g`, a link `l` to `f`, and a dangling link `n`.
fn home() -> TempDir {
    let home = tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    std::fs::write(at("f"), b"content").unwrap();
    std::fs::create_dir(at("d")).unwrap();
    std::fs::write(at("d/g"), b"g").unwrap();
    symlink("f", at("l")).unwrap();
    symlink("nowhere", at("n")).unwrap();
    home
}

fn mode(of: u32) -> Attributes {
    Attributes { mode: Some(of), ..Attributes::default() }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Requests that must fail, each with its status.
#[test]
fn bad_input_is_refused_with_the_right_status() {
    let home = home();
    let mut server = Server::of(home.path());
    rustix::fs::mkfifoat(rustix::fs::CWD, home.path().join("fifo"), 0o600.into()).unwrap();
    let file = server.open("/f");
    let folder = server.handle(&Request::OpenDir { path: bytes("/d") });
    let p = |path: &str| bytes(path);
    let none = Attributes::default();
    let no_handle = Bytes::from_static(b"\0\0\0\0\0\0\0\x77");
    let new = OpenHow { exclusive: true, truncate: false, ..UPLOAD };
    let copy = |from: &Bytes, to: &Bytes| Request::CopyData {
        from: from.clone(),
        offset: 0,
        length: 0,
        to: to.clone(),
        to_offset: 0,
    };
    let long = "x".repeat(256);
    let longest = "x/".repeat(3000);
    let cases: Vec<(Request, Status)> = vec![
        (open("/gone", OpenHow::reading()), NoSuchFile),
        (open("/gone/f", UPLOAD), NoSuchFile),
        (open("/f/f", UPLOAD), NoSuchFile),
        (open("/f", new), Failure),
        (open("/n", new), Failure),
        (open("/f", OpenHow { create: false, ..new }), Failure),
        (open("/d", OpenHow::reading()), Failure),
        (open("/d", UPLOAD), Failure),
        (open("/", OpenHow::reading()), Failure),
        (open("/fifo", OpenHow::reading()), Failure),
        (open("/fifo", UPLOAD), Failure),
        (open("/n", OpenHow::reading()), NoSuchFile),
        (open(&long, UPLOAD), Failure),
        (open(&longest, UPLOAD), Failure),
        (open("a\0b", UPLOAD), Status::BadMessage),
        (Request::Close { handle: no_handle.clone() }, Failure),
        (Request::Close { handle: Bytes::new() }, Failure),
        (read(&no_handle, 0, 1), Failure),
        (read(&folder, 0, 1), Failure),
        (read(&file, 7, 1), Status::Eof),
        (read(&file, u64::MAX, 1), Status::Eof),
        (write(&file, 0, b"x"), PermissionDenied),
        (write(&folder, 0, b"x"), Failure),
        (write(&no_handle, 0, b"x"), Failure),
        (Request::LStat { path: p("/gone") }, NoSuchFile),
        (Request::Stat { path: p("/gone") }, NoSuchFile),
        (Request::Stat { path: p("/n") }, NoSuchFile),
        (Request::FStat { handle: no_handle.clone() }, Failure),
        (Request::SetStat { path: p("/gone"), attributes: mode(0o600) }, NoSuchFile),
        (
            Request::SetStat { path: p("/d"), attributes: Attributes { size: Some(0), ..none } },
            Failure,
        ),
        (
            Request::SetStat { path: p("/fifo"), attributes: Attributes { size: Some(0), ..none } },
            Failure,
        ),
        (Request::LSetStat { path: p("/l"), attributes: mode(0o600) }, Status::OpUnsupported),
        (Request::LSetStat { path: p("/gone"), attributes: mode(0o600) }, NoSuchFile),
        (Request::FSetStat { handle: no_handle.clone(), attributes: none }, Failure),
        (
            Request::FSetStat {
                handle: file.clone(),
                attributes: Attributes { size: Some(0), ..none },
            },
            PermissionDenied,
        ),
        (Request::OpenDir { path: p("/gone") }, NoSuchFile),
        (Request::OpenDir { path: p("/f") }, NoSuchFile),
        (Request::ReadDir { handle: file.clone() }, Failure),
        (Request::ReadDir { handle: no_handle.clone() }, Failure),
        (Request::Remove { path: p("/gone") }, NoSuchFile),
        (Request::Remove { path: p("/d") }, Failure),
        (Request::Remove { path: p("/") }, Failure),
        (Request::MkDir { path: p("/d"), attributes: none }, Failure),
        (Request::MkDir { path: p("/f"), attributes: none }, Failure),
        (Request::MkDir { path: p("/gone/d"), attributes: none }, NoSuchFile),
        (Request::MkDir { path: p("/"), attributes: none }, Failure),
        (Request::RmDir { path: p("/d") }, Failure),
        (Request::RmDir { path: p("/f") }, NoSuchFile),
        (Request::RmDir { path: p("/gone") }, NoSuchFile),
        (Request::RmDir { path: p("/") }, PermissionDenied),
        (Request::RealPath { path: p("a\0") }, Status::BadMessage),
        (Request::Rename { from: p("/f"), to: p("/d") }, Failure),
        (Request::Rename { from: p("/f"), to: p("/l") }, Failure),
        (Request::Rename { from: p("/gone"), to: p("/new") }, NoSuchFile),
        (Request::Rename { from: p("/d"), to: p("/d/inside") }, Failure),
        (Request::Rename { from: p("/"), to: p("/new") }, PermissionDenied),
        (Request::PosixRename { from: p("/gone"), to: p("/f") }, NoSuchFile),
        (Request::PosixRename { from: p("/f"), to: p("/d") }, Failure),
        (Request::PosixRename { from: p("/f"), to: p("/") }, PermissionDenied),
        (Request::ReadLink { path: p("/f") }, Failure),
        (Request::ReadLink { path: p("/gone") }, NoSuchFile),
        (Request::ReadLink { path: p("/") }, Failure),
        (Request::Symlink { target: p("x"), link: p("/f") }, Failure),
        (Request::Symlink { target: p(""), link: p("/new") }, Failure),
        (Request::Symlink { target: p("x"), link: p("/gone/new") }, NoSuchFile),
        (Request::HardLink { from: p("/gone"), to: p("/new") }, NoSuchFile),
        (Request::HardLink { from: p("/f"), to: p("/d") }, Failure),
        (Request::HardLink { from: p("/d"), to: p("/new") }, Failure),
        (Request::FSync { handle: no_handle.clone() }, Failure),
        (Request::FSync { handle: folder.clone() }, Failure),
        (Request::StatVfs { path: p("/gone") }, NoSuchFile),
        (Request::FStatVfs { handle: no_handle.clone() }, Failure),
        (Request::ExpandPath { path: p("~root/x") }, Failure),
        (copy(&file, &no_handle), Failure),
        (copy(&no_handle, &file), Failure),
        (copy(&file, &file), PermissionDenied),
        (copy(&folder, &file), Failure),
    ];
    for (request, status) in cases {
        match server.call(&request) {
            Reply::Status(error) if error.status == status => assert!(!error.text.is_empty()),
            other => panic!("{request:?} should be {status:?}: {other:?}"),
        }
    }
    // Nothing has changed.
    assert_eq!(server.names("/"), ["d", "f", "fifo", "l", "n"]);
    assert_eq!(server.read("/f"), b"content");
}

#[test]
fn files_are_written_read_and_closed() {
    let home = home();
    let mut server = Server::of(home.path());
    let how = OpenHow { read: true, mode: Some(0o640), ..UPLOAD };
    let handle = server.handle(&open("new", how));
    // Out of order, and with a hole.
    server.ok(&write(&handle, 6, b"789"));
    server.ok(&write(&handle, 0, b"1234"));
    assert_eq!(
        server.call(&read(&handle, 0, 100)),
        Reply::Data(Bytes::from_static(b"1234\0\x00789"))
    );
    assert_eq!(server.call(&read(&handle, 2, 3)), Reply::Data(Bytes::from_static(b"34\0")));
    assert_eq!(server.call(&read(&handle, 0, 0)), Reply::Data(Bytes::new()));
    server.refused(&write(&handle, u64::MAX, b"x"), Failure);
    server.ok(&Request::FSync { handle: handle.clone() });
    server.ok(&Request::Close { handle });
    assert_eq!(home.path().join("new").metadata().unwrap().mode() & 0o7777, 0o640);
    // Appending ignores the offset.
    let handle = server.handle(&open("/new", OpenHow { append: true, ..OpenHow::default() }));
    server.ok(&write(&handle, 0, b"end"));
    server.ok(&Request::Close { handle });
    assert_eq!(server.read("/new"), b"1234\0\x00789end");
    // Without flags a file is opened for reading, and nothing is created.
    let handle = server.handle(&open("/f", OpenHow::default()));
    assert_eq!(server.call(&read(&handle, 0, 3)), Reply::Data(Bytes::from_static(b"con")));
    server.refused(&open("/other", OpenHow { write: true, ..OpenHow::default() }), NoSuchFile);
    // Through a link, also one whose target does not exist yet.
    server.write("/n", b"made");
    assert_eq!(server.read("/nowhere"), b"made");
}

#[test]
fn attributes_are_shown_and_set() {
    let home = home();
    let mut server = Server::of(home.path());
    let stat = |path: &str| Request::Stat { path: bytes(path) };
    let found = server.attributes(&stat("/f"));
    let there = home.path().join("f").metadata().unwrap();
    assert_eq!(found.size, Some(7));
    assert_eq!(found.owner, Some((there.uid(), there.gid())));
    assert_eq!(found.mode, Some(there.mode()));
    assert!(server.attributes(&stat("/l")).is_regular());
    assert!(server.attributes(&Request::LStat { path: bytes("/l") }).is_link());
    assert!(server.attributes(&stat("/")).is_folder());
    // Permissions, without set-user-ID and its like; a folder keeps those that it has.
    server.ok(&Request::SetStat { path: bytes("/l"), attributes: mode(0o107_751) });
    assert_eq!(server.attributes(&stat("/f")).mode, Some(0o100_751));
    let folder = home.path().join("d");
    std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o3777)).unwrap();
    server.ok(&Request::SetStat { path: bytes("/d"), attributes: mode(0o750) });
    assert_eq!(folder.metadata().unwrap().mode() & 0o7777, 0o3750);
    server.ok(&Request::MkDir { path: bytes("/e"), attributes: mode(0o7700) });
    assert_eq!(home.path().join("e").metadata().unwrap().mode() & 0o7777, 0o700);
    // Times and size; of a link itself, too.
    let times = Attributes { times: Some((1_000_000_000, 4_000_000_000)), ..Attributes::default() };
    server.ok(&Request::SetStat {
        path: bytes("/f"),
        attributes: Attributes { size: Some(3), ..times },
    });
    let found = server.attributes(&stat("/f"));
    assert_eq!((found.size, found.times), (Some(3), times.times));
    server.ok(&Request::LSetStat { path: bytes("/l"), attributes: times });
    assert_eq!(server.attributes(&Request::LStat { path: bytes("/l") }).times, times.times);
    // By handle; a file that is open for reading can be changed but for its size.
    let handle = server.open("/f");
    server.ok(&Request::FSetStat { handle: handle.clone(), attributes: mode(0o600) });
    assert_eq!(server.attributes(&Request::FStat { handle }).mode, Some(0o100_600));
    let handle = server.handle(&open("/f", OpenHow { write: true, ..OpenHow::default() }));
    let longer = Attributes { size: Some(100), ..times };
    server.ok(&Request::FSetStat { handle: handle.clone(), attributes: longer });
    let found = server.attributes(&Request::FStat { handle });
    assert_eq!((found.size, found.times), (Some(100), times.times));
    let handle = server.handle(&Request::OpenDir { path: bytes("/d") });
    server.ok(&Request::FSetStat { handle: handle.clone(), attributes: mode(0o700) });
    assert_eq!(server.attributes(&Request::FStat { handle }).mode, Some(0o043_700));
    // Owners: giving a file to its owner is no change; giving it away needs privilege.
    let owner = Attributes { owner: server.attributes(&stat("/f")).owner, ..Attributes::default() };
    server.ok(&Request::SetStat { path: bytes("/f"), attributes: owner });
    let away = Attributes { owner: Some((12_345, 12_345)), ..Attributes::default() };
    let request = Request::SetStat { path: bytes("/f"), attributes: away };
    if is_root() {
        server.ok(&request);
        assert_eq!(server.attributes(&stat("/f")).owner, Some((12_345, 12_345)));
        server.ok(&Request::LSetStat { path: bytes("/l"), attributes: away });
        assert_eq!(home.path().join("l").symlink_metadata().unwrap().uid(), 12_345);
    } else {
        server.refused(&request, PermissionDenied);
    }
}

#[test]
fn folders_are_made_listed_and_removed() {
    let home = home();
    let mut server = Server::of(home.path());
    server.ok(&Request::MkDir { path: bytes("/d/e"), attributes: Attributes::default() });
    assert_eq!(server.names("/d"), ["e", "g"]);
    server.ok(&Request::RmDir { path: bytes("/d/e/") });
    assert_eq!(server.names("/d/.."), ["d", "f", "l", "n"]);
    let all = server.list(b"/");
    let line = String::from_utf8(all[1].long.clone()).unwrap();
    assert!(line.starts_with("-rw") && line.ends_with(" f"), "{line}");
    assert!(all[2].attributes.is_link(), "a listing is of the links themselves");
    // `.` and `..` are there, and `..` of the root is not what is above it.
    let handle = server.handle(&Request::OpenDir { path: bytes("/") });
    let Reply::Names(names) = server.call(&Request::ReadDir { handle: handle.clone() }) else {
        panic!()
    };
    let of = |wanted: &[u8]| names.iter().find(|name| name.name == wanted).unwrap().attributes;
    assert_eq!(of(b".."), of(b"."));
    assert_eq!(server.status(&Request::ReadDir { handle }), Status::Eof);
}

#[test]
fn large_folders_are_listed_in_pages() {
    let home = tempdir().unwrap();
    for number in 0..3000 {
        std::fs::write(home.path().join(format!("file-with-a-name-{number:05}")), b"").unwrap();
    }
    let mut server = Server::of(home.path());
    let names = server.list(b"/");
    assert_eq!(names.len(), 3000);
    let pages = server.kinds().iter().filter(|kind| **kind == "readdir").count();
    assert!((10..40).contains(&pages), "{pages}");
    // A file that disappears meanwhile is left out; the listing goes on.
    let handle = server.handle(&Request::OpenDir { path: bytes("/") });
    server.call(&Request::ReadDir { handle: handle.clone() });
    for entry in std::fs::read_dir(home.path()).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    while let Reply::Names(_) = server.call(&Request::ReadDir { handle: handle.clone() }) {}
    assert_eq!(server.status(&Request::ReadDir { handle }), Status::Eof);
}

#[test]
fn names_of_any_bytes_work() {
    let home = tempdir().unwrap();
    let mut server = Server::of(home.path());
    let odd: &[u8] = b"/\xff\xfe latin-\xe9\n\x01";
    let handle = server.handle(&Request::Open {
        path: bytes(odd),
        how: UPLOAD,
        attributes: Attributes::default(),
    });
    server.ok(&write(&handle, 0, b"1"));
    server.ok(&Request::Close { handle });
    let names = server.list(b"/");
    assert_eq!(names[0].name, odd[1..]);
    assert!(names[0].long.ends_with(odd[1..].as_ref()));
    server.ok(&Request::Rename { from: bytes(odd), to: bytes(b"/\x80") });
    server.ok(&Request::Symlink { target: bytes(b"\x80"), link: bytes(b"/\x81") });
    assert_eq!(server.name(&Request::ReadLink { path: bytes(b"/\x81") }), b"\x80");
    assert_eq!(server.attributes(&Request::Stat { path: bytes(b"/\x81") }).size, Some(1));
    assert_eq!(server.name(&Request::RealPath { path: bytes(b"\xff/../\x80") }), b"/\x80");
    server.ok(&Request::Remove { path: bytes(b"/\x80") });
}

/// `put file folder/` where there is no such folder: the next file would replace the first.
#[test]
fn a_name_that_ends_with_a_slash_is_that_of_a_folder() {
    let home = home();
    let mut server = Server::of(home.path());
    let before = server.names("/");
    for path in ["/new/", "/f/", "/new//", "new/", "/new/."] {
        let text = server.refused(&open(path, UPLOAD), Failure);
        assert!(text.contains("slash"), "{path}: {text}");
        server.refused(&open(path, OpenHow::reading()), NoSuchFile);
        let (from, to) = (bytes("/f"), bytes(path));
        server.refused(&Request::Rename { from: from.clone(), to: to.clone() }, Failure);
        server.refused(&Request::PosixRename { from: from.clone(), to: to.clone() }, Failure);
        server.refused(&Request::HardLink { from, to: to.clone() }, Failure);
        server.refused(&Request::Symlink { target: bytes("f"), link: to }, Failure);
    }
    let missing = Request::Rename { from: bytes("/none"), to: bytes("/new/") };
    server.refused(&missing, NoSuchFile);
    let text = server.refused(&open("/d/", OpenHow::reading()), Failure);
    assert!(text.contains("folder"), "{text}");
    assert_eq!(server.names("/"), before);
    assert_eq!(server.read("/f"), b"content");
    // Folders may be named like that.
    server.ok(&Request::MkDir { path: bytes("/x/"), attributes: Attributes::default() });
    server.ok(&Request::Rename { from: bytes("/x/"), to: bytes("/y/") });
    server.ok(&Request::RmDir { path: bytes("/y/") });
}

#[test]
fn renames_replace_only_if_asked() {
    let home = home();
    let mut server = Server::of(home.path());
    let rename = |from: &str, to: &str| Request::Rename { from: bytes(from), to: bytes(to) };
    let posix = |from: &str, to: &str| Request::PosixRename { from: bytes(from), to: bytes(to) };
    server.ok(&rename("/f", "/d/f"));
    let text = server.refused(&rename("/d/f", "/d/g"), Failure);
    assert!(text.contains("exists"), "{text}");
    server.ok(&posix("/d/f", "/d/g"));
    assert_eq!(server.read("/d/g"), b"content");
    server.ok(&rename("/d", "/e"));
    // Of a link, not of its target.
    server.ok(&rename("/l", "/e/l"));
    assert_eq!(server.name(&Request::ReadLink { path: bytes("/e/l") }), b"f");
    server.ok(&Request::Remove { path: bytes("/e/l") });
    assert_eq!(server.names("/e"), ["g"]);
}

#[test]
fn paths_are_absolute_and_normal() {
    let home = home();
    let start = crate::support::path("/d");
    let mut server = Server::new(view(home.path()).home(start).user(b"me"));
    for (text, expected) in [
        ("", "/d"),
        (".", "/d"),
        ("..", "/"),
        ("../../../..", "/"),
        ("x/./y//z/", "/d/x/y/z"),
        ("/", "/"),
        ("//a/b/../c", "/a/c"),
        ("/../../etc", "/etc"),
    ] {
        assert_eq!(server.name(&Request::RealPath { path: bytes(text) }), expected.as_bytes());
    }
    for (text, expected) in [
        ("~", "/d"),
        ("~/x", "/d/x"),
        ("~//etc", "/d/etc"),
        ("~me", "/d"),
        ("~me/x", "/d/x"),
        ("/f", "/f"),
        ("x", "/d/x"),
    ] {
        assert_eq!(server.name(&Request::ExpandPath { path: bytes(text) }), expected.as_bytes());
    }
    for user in ["", "me"] {
        assert_eq!(server.name(&Request::HomeDirectory { user: bytes(user) }), b"/d");
    }
    // Those of others are not known, whether or not there are such users.
    for request in [
        Request::HomeDirectory { user: bytes("root") },
        Request::HomeDirectory { user: bytes("m") },
        Request::ExpandPath { path: bytes("~root") },
        Request::ExpandPath { path: bytes("~m/x") },
    ] {
        assert_eq!(server.refused(&request, Failure), "only your own home is known here");
    }
    // A relative path is below the start.
    assert_eq!(server.read("g"), b"g");
}

#[test]
fn data_is_copied_between_handles() {
    let home = home();
    let mut server = Server::of(home.path());
    let content: Vec<u8> = (0..700_000_u32).map(|at| (at % 241) as u8).collect();
    server.write("/big", &content[..250_000]);
    let handle = server.handle(&open("/big", OpenHow { write: true, ..OpenHow::default() }));
    server.ok(&write(&handle, 250_000, &content[250_000..500_000]));
    server.ok(&write(&handle, 500_000, &content[500_000..]));
    server.ok(&Request::Close { handle });
    let from = server.open("/big");
    let to = server.create("/copy");
    let copy = |offset, length, to_offset| Request::CopyData {
        from: from.clone(),
        offset,
        length,
        to: to.clone(),
        to_offset,
    };
    server.ok(&copy(0, 0, 0));
    assert_eq!(std::fs::read(home.path().join("copy")).unwrap(), content);
    let record = server.records.last().unwrap();
    assert_eq!((record.bytes_read, record.bytes_written), (700_000, 700_000));
    server.ok(&copy(699_990, 100, 5));
    let copied = std::fs::read(home.path().join("copy")).unwrap();
    assert_eq!((&copied[..5], &copied[5..15]), (&content[..5], &content[699_990..]));
    // Past the end there is nothing to copy.
    server.ok(&copy(1 << 40, 0, 0));
    server.refused(&copy(0, 10, u64::MAX - 2), Failure);
    // Into the same file by another handle: it ends where the file ended.
    let again = server.handle(&open("/big", OpenHow { write: true, ..OpenHow::default() }));
    let request = Request::CopyData {
        from: from.clone(),
        offset: 0,
        length: 0,
        to: again,
        to_offset: 600_000,
    };
    server.ok(&request);
    assert_eq!(server.attributes(&Request::FStat { handle: from.clone() }).size, Some(1_300_000));
}

#[test]
fn links_are_made_and_read() {
    let home = home();
    let mut server = Server::of(home.path());
    let link =
        |target: &str, link: &str| Request::Symlink { target: bytes(target), link: bytes(link) };
    server.ok(&link("g", "/d/relative"));
    server.ok(&link("/f", "/d/absolute"));
    server.ok(&link("../f", "/d/up"));
    for (name, target, content) in
        [("relative", "g", "g"), ("absolute", "../f", "content"), ("up", "../f", "content")]
    {
        let path = format!("/d/{name}");
        assert_eq!(server.name(&Request::ReadLink { path: bytes(&path) }), target.as_bytes());
        assert_eq!(server.read(&path), content.as_bytes());
        // Other programs on the machine find the same file.
        assert_eq!(std::fs::read(home.path().join(&path[1..])).unwrap(), content.as_bytes());
    }
    server.ok(&Request::HardLink { from: bytes("/f"), to: bytes("/d/second") });
    assert_eq!(home.path().join("f").metadata().unwrap().nlink(), 2);
    let line = server.list(b"/d").into_iter().find(|name| name.name == b"second").unwrap().long;
    assert!(line.starts_with(b"-rw") && String::from_utf8_lossy(&line).contains("   2 "));
}

#[test]
fn space_and_owners_are_told() {
    let home = home();
    let owners = Owners {
        users: [(7, "seven".to_owned())].into(),
        groups: [(8, "eight".to_owned())].into(),
    };
    let mut server = Server::new(view(home.path()).owners(owners));
    let Reply::Extended(by_path) = server.call(&Request::StatVfs { path: bytes("/f") }) else {
        panic!()
    };
    assert_eq!(by_path.len(), 11 * 8);
    let block = u64::from_be_bytes(*by_path.first_chunk().unwrap());
    assert!(block.is_power_of_two());
    let handle = server.open("/f");
    assert!(matches!(server.call(&Request::FStatVfs { handle }), Reply::Extended(_)));
    let handle = server.handle(&Request::OpenDir { path: bytes("/") });
    assert!(matches!(server.call(&Request::FStatVfs { handle }), Reply::Extended(_)));
    let reply = server.call(&Request::UsersGroups { users: vec![7, 9], groups: vec![8] });
    let expected = b"\0\0\0\x0d\0\0\0\x05seven\0\0\0\0\0\0\0\x09\0\0\0\x05eight";
    assert_eq!(reply, Reply::Extended(Bytes::from_static(expected)));
}

#[test]
fn a_folder_of_the_folder_is_a_volume_too() {
    use crate::support::{folder, path};
    use outlast_sftp::local::FolderOptions;
    let home = home();
    let whole = folder(home.path(), FolderOptions::default());
    assert!(whole.below(&path("/users/a"), false).is_err());
    let made = whole.below(&path("/users/a"), true).unwrap();
    assert!(home.path().join("users/a").is_dir());
    let again = whole.below(&path("/users/a"), true).unwrap();
    let view =
        |volume| outlast_sftp::view::View::new(|| 0).mount(path("/"), std::sync::Arc::new(volume));
    Server::new(view(made)).write("/x", b"1");
    assert_eq!(Server::new(view(again)).read("/x"), b"1");
    // A link on the way cannot lead out.
    symlink("/", home.path().join("users/out")).unwrap();
    assert!(whole.below(&path("/users/out/etc"), false).is_err());
    assert!(
        outlast_sftp::local::Folder::open(Path::new("/nonexistent"), FolderOptions::default())
            .is_err()
    );
}
