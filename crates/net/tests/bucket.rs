//! Buckets of S3 as volumes of SFTP, with moto's S3 and Versity's gateway.

mod gateway;

use std::sync::Arc;

use outlast_api::wire::sigv4::Credentials;
use outlast_crypto::{Secret, digests, random};
use outlast_net::client::Connector;
use outlast_net::policy::Policy;
use outlast_net::s3::{Client, Settings};
use outlast_net::server::system_clock;
use outlast_net::sftp::{Buckets, S3Buckets};
use outlast_sftp::attributes::Attributes;
use outlast_sftp::error::Status;
use outlast_sftp::path::RemotePath;
use outlast_sftp::quota::Quota;
use outlast_sftp::view::View;
use outlast_sftp::volume::{File, Follow, OpenHow, Volume};
use outlast_testing::s3::{ACCESS_KEY, S3, SECRET};
use tokio::runtime::Runtime;

/// Bytes of the first parts.
const PART: u64 = 8 << 20;
/// What clients write at a time, and how many they have under way.
pub(crate) const PIECE: usize = 255 * 1024;
const WINDOW: usize = 64;

pub(crate) struct World {
    pub(crate) volume: Arc<dyn Volume>,
    runtime: Runtime,
}

fn client(endpoint: &str, secret: &str) -> Client {
    let settings = Settings {
        endpoint: endpoint.into(),
        allow_plain: false,
        region: "us-east-1".into(),
        credentials: Credentials {
            access_key_id: ACCESS_KEY.into(),
            secret: Secret::new(secret.as_bytes().to_vec()),
            token: None,
        },
        connector: Connector::new(&Policy::default(), &[]).unwrap(),
    };
    Client::new(settings, system_clock).unwrap()
}

pub(crate) fn world(endpoint: &str, bucket: &str) -> World {
    let runtime = Runtime::new().unwrap();
    let buckets = S3Buckets::new(client(endpoint, SECRET), runtime.handle().clone());
    World { volume: buckets.open(bucket).unwrap(), runtime }
}

pub(crate) fn path(text: impl AsRef<[u8]>) -> RemotePath {
    RemotePath::parse(text.as_ref(), &RemotePath::root()).unwrap()
}

pub(crate) fn creating() -> OpenHow {
    OpenHow { write: true, create: true, truncate: true, ..OpenHow::default() }
}

/// For writing into what is there, or into a new file.
fn changing() -> OpenHow {
    OpenHow { truncate: false, ..creating() }
}

pub(crate) fn content(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    random::fill(&mut bytes).unwrap();
    bytes
}

pub(crate) fn write_all(file: &dyn File, content: &[u8], order: impl Iterator<Item = usize>) {
    for piece in order {
        let at = piece * PIECE;
        file.write_at(at as u64, &content[at..(at + PIECE).min(content.len())]).unwrap();
    }
}

impl World {
    fn put(&self, name: &str, content: &[u8]) {
        let file = self.volume.open(&path(name), &creating()).unwrap();
        write_all(&*file, content, 0..content.len().div_ceil(PIECE));
        file.close().unwrap();
    }

    fn get(&self, name: &str) -> Vec<u8> {
        let file = self.volume.open(&path(name), &OpenHow::reading()).unwrap();
        let size = usize::try_from(file.attributes().unwrap().size.unwrap()).unwrap();
        let (mut out, mut buffer) = (Vec::new(), vec![0; PIECE]);
        loop {
            let read = file.read_at(out.len() as u64, &mut buffer).unwrap();
            if read == 0 {
                assert_eq!(out.len(), size, "{name}");
                return out;
            }
            out.extend_from_slice(&buffer[..read]);
        }
    }

    fn is_there(&self, name: &str) -> bool {
        match self.volume.attributes(&path(name), Follow::No) {
            Ok(_) => true,
            Err(error) => {
                assert_eq!(error.status, Status::NoSuchFile, "{name}: {error}");
                false
            }
        }
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let mut listing = self.volume.list(&path(folder)).unwrap();
        let mut names = Vec::new();
        while let Some(entry) = listing.next().unwrap() {
            let slash = if entry.attributes.is_folder() { "/" } else { "" };
            names.push(format!("{}{slash}", String::from_utf8(entry.name).unwrap()));
        }
        names.sort_unstable();
        names
    }
}

/// Runs a test with each server that is there.
fn each(test: impl Fn(&S3)) {
    for s3 in [S3::moto(0), S3::gateway()].iter().flatten() {
        test(s3);
    }
}

#[track_caller]
pub(crate) fn refused<T>(outcome: outlast_sftp::error::Result<T>, status: Status, why: &str) {
    let error = outcome.err().unwrap();
    assert!(error.status == status && error.text.contains(why), "{error:?}");
}

#[track_caller]
fn same(found: &[u8], expected: &[u8]) {
    assert_eq!(found.len(), expected.len());
    assert!(digests::sha256(found) == digests::sha256(expected), "the content is another one");
}

#[test]
fn files_are_written_in_any_order_and_appear_whole() {
    each(|s3| {
        let world = world(&s3.endpoint(), "files");
        let content = content(20_000_000);
        let count = content.len().div_ceil(PIECE);
        // As a client with 64 requests under way, the last of which arrives first; from back to front; twice.
        let windows = (0..count.div_ceil(WINDOW))
            .flat_map(|window| (window * WINDOW..((window + 1) * WINDOW).min(count)).rev());
        let orders: [(&str, Vec<usize>); 3] = [
            ("windows", windows.collect()),
            ("reversed", (0..count).rev().collect()),
            ("twice", (0..3).chain(0..count).collect()),
        ];
        for (name, order) in orders {
            let file = world.volume.open(&path(name), &creating()).unwrap();
            write_all(&*file, &content, order.into_iter());
            assert!(!world.is_there(name), "{name}");
            assert_eq!(file.attributes().unwrap().size, Some(content.len() as u64));
            file.close().unwrap();
            same(&world.get(name), &content);
            same(&s3.curl(&[], &format!("/files/{name}")), &content);
        }
        for (name, len) in [("empty", 0), ("small", 1), ("part", 8 << 20)] {
            world.put(name, &content[..len]);
            same(&s3.curl(&[], &format!("/files/{name}")), &content[..len]);
            same(&world.get(name), &content[..len]);
        }
        // Reads at random, across the borders of blocks, and beyond the end.
        let file = world.volume.open(&path("reversed"), &OpenHow::reading()).unwrap();
        for (at, len) in
            [(9_000_000, 1000), (4 << 20, 10), ((4 << 20) - 5, 9_000_000), (19_999_999, 50), (5, 5)]
        {
            let mut buffer = vec![0; len];
            let read = file.read_at(at as u64, &mut buffer).unwrap();
            same(&buffer[..read], &content[at..(at + len).min(content.len())]);
        }
        assert_eq!(file.read_at(20_000_000, &mut [0; 8]).unwrap(), 0);
        assert_eq!(file.read_at(u64::MAX, &mut [0; 8]).unwrap(), 0);
        // Another object has taken its place: what was not read yet is not mixed with it.
        world.put("reversed", b"another");
        let mut buffer = [0; 8];
        refused(file.read_at(5_000_000, &mut buffer), Status::Failure, "somebody else");
        assert!(s3.uploads("files").is_empty());
    });
}

/// Of two clients that add to a file, one is told that it was too late; nothing that was acknowledged is lost.
#[test]
fn two_who_add_to_a_file_lose_nothing() {
    each(|s3| {
        let world = world(&s3.endpoint(), "files");
        world.put("log", b"begin ");
        let how = OpenHow { append: true, ..changing() };
        let open = || world.volume.open(&path("log"), &how).unwrap();
        let (one, other) = (open(), open());
        one.write_at(0, b"one").unwrap();
        other.write_at(0, b"other").unwrap();
        one.close().unwrap();
        refused(other.close(), Status::Failure, "somebody else");
        assert_eq!(world.get("log"), b"begin one");
        // Neither is anything lost where somebody else empties and writes it.
        let late = open();
        late.write_at(0, b"late").unwrap();
        world.put("log", b"new");
        refused(late.close(), Status::Failure, "somebody else");
        assert_eq!(world.get("log"), b"new");
        // Nor where there was nothing yet to add to.
        for (name, how) in [("first", how), ("opened", changing())] {
            let open = || world.volume.open(&path(name), &how).unwrap();
            let (one, other) = (open(), open());
            one.write_at(0, b"the same").unwrap();
            other.write_at(0, b"the same").unwrap();
            one.close().unwrap();
            refused(other.close(), Status::Failure, "somebody else");
            let again = open();
            again.write_at(8, b" file").unwrap();
            again.close().unwrap();
            assert_eq!(world.get(name), b"the same file");
        }
    });
}

/// In S3 one name can be that of a file and of a folder, which stays when the file is renamed.
#[test]
fn a_rename_gives_back_what_it_replaces_although_its_old_name_is_a_folder_too() {
    let Some(moto) = S3::moto(0) else { return };
    let world = world(&moto.endpoint(), "files");
    for (name, content) in [("a", &b"new"[..]), ("a/x", b"x"), ("c", b"the old content")] {
        world.put(name, content);
    }
    let measure = || View::new(|| 0).mount(path("/"), world.volume.clone()).measure().unwrap();
    let quota = Arc::new(Quota::new(None, None, measure()));
    let view = View::new(|| 0).mount_with(path("/"), world.volume.clone(), Some(quota.clone()));
    view.rename(&path("/a"), &path("/c"), true).unwrap();
    assert_eq!(world.get("c"), b"new");
    assert_eq!(quota.used(), measure());
    // A folder that is made and removed beside a file gives back nothing of the file.
    let file = view.open(&path("/d"), &creating()).unwrap();
    file.write_at(0, &[1; 1000]).unwrap();
    view.make_folder(&path("/d"), None).unwrap();
    file.close().unwrap();
    drop(file);
    assert_eq!(quota.used(), measure());
    view.remove_folder(&path("/d")).unwrap();
    assert_eq!(quota.used(), measure());
    view.remove(&path("/d")).unwrap();
    assert_eq!(quota.used(), measure());
}

/// A client cannot take the memory of all others with a few bytes at the end of a large part.
#[test]
fn a_gap_takes_no_memory() {
    let Some(moto) = S3::moto(0) else { return };
    let world = world(&moto.endpoint(), "files");
    let file = world.volume.open(&path("sparse"), &creating()).unwrap();
    let in_large_part = (16_000 << 20) + (60 << 20);
    refused(file.write_at(in_large_part, b"x"), Status::Failure, "in order");
}

#[test]
fn an_upload_that_is_not_closed_changes_nothing() {
    each(|s3| {
        let world = world(&s3.endpoint(), "files");
        world.put("old", b"old");
        let content = content(20_000_000);
        for name in ["old", "new"] {
            let file = world.volume.open(&path(name), &creating()).unwrap();
            write_all(&*file, &content, 0..content.len().div_ceil(PIECE));
            assert_eq!(s3.uploads("files"), [name]);
            drop(file);
            outlast_testing::until("the parts are forgotten", || s3.uploads("files").is_empty());
        }
        assert_eq!(s3.keys("files"), ["old"]);
        assert_eq!(world.get("old"), b"old");
        // What cannot be kept is refused, and leaves nothing either.
        let open = |name: &str| world.volume.open(&path(name), &creating()).unwrap();
        let hole = open("new");
        hole.write_at(PART, b"x").unwrap();
        refused(hole.close(), Status::OpUnsupported, "hole");
        let again = open("new");
        write_all(&*again, &content, 0..content.len().div_ceil(PIECE));
        refused(again.write_at(0, b"header"), Status::Failure, "in order");
        refused(again.close(), Status::Failure, "in order");
        let scattered = open("new");
        for part in 0..4 {
            scattered.write_at(part * PART, b"x").unwrap();
        }
        refused(scattered.write_at(4 * PART, b"x"), Status::Failure, "in order");
        refused(open("new").write_at(5 << 40, b"x"), Status::Failure, "1.7 TiB");
        refused(open("new").write_at(u64::MAX, b"x"), Status::Failure, "1.7 TiB");
        assert_eq!(s3.keys("files"), ["old"]);
        outlast_testing::until("the parts are forgotten", || s3.uploads("files").is_empty());
    });
}

#[test]
fn what_is_there_stays_where_nothing_is_written() {
    each(|s3| {
        let world = world(&s3.endpoint(), "files");
        let new = content(1_000_000);
        for len in [1000, 20_000_000] {
            let mut expected = content(len);
            world.put("x", &expected);
            // reput: the rest of a file whose beginning is there.
            let file = world.volume.open(&path("x"), &changing()).unwrap();
            let begin = len - 100;
            for (piece, bytes) in new.chunks(PIECE).enumerate() {
                file.write_at((begin + piece * PIECE) as u64, bytes).unwrap();
            }
            same(&world.get("x"), &expected);
            file.close().unwrap();
            expected.truncate(begin);
            expected.extend_from_slice(&new);
            same(&world.get("x"), &expected);
            // In the middle.
            let file = world.volume.open(&path("x"), &changing()).unwrap();
            file.write_at(500, b"changed").unwrap();
            file.close().unwrap();
            expected[500..507].copy_from_slice(b"changed");
            same(&world.get("x"), &expected);
            // At the end, wherever the client says; durable before the file is closed.
            let how = OpenHow { append: true, ..changing() };
            let file = world.volume.open(&path("x"), &how).unwrap();
            file.write_at(0, b"one").unwrap();
            file.sync().unwrap();
            expected.extend_from_slice(b"one");
            same(&world.get("x"), &expected);
            file.write_at(0, b"two").unwrap();
            file.close().unwrap();
            expected.extend_from_slice(b"two");
            same(&world.get("x"), &expected);
            // Shorter, as clients make a file whose upload was interrupted.
            let file = world.volume.open(&path("x"), &changing()).unwrap();
            let size = Some(700);
            file.set_attributes(&Attributes { size, ..Attributes::default() }).unwrap();
            file.close().unwrap();
            same(&world.get("x"), &expected[..700]);
        }
        // A file that is opened and closed is not written.
        let before = s3.curl(&["-I"], "/files/x");
        world.volume.open(&path("x"), &changing()).unwrap().close().unwrap();
        let tag = |head: &[u8]| String::from_utf8_lossy(head).to_lowercase().contains("etag");
        assert!(tag(&before) && tag(&s3.curl(&["-I"], "/files/x")));
        // Somebody else changes what is there.
        world.put("y", &content(20_000_000));
        let file = world.volume.open(&path("y"), &changing()).unwrap();
        file.write_at(5, b"x").unwrap();
        world.put("y", b"another");
        assert!(file.close().is_err());
        assert_eq!(world.get("y"), b"another");
    });
}

#[test]
fn one_of_two_creates_a_file() {
    each(|s3| {
        let world = world(&s3.endpoint(), "files");
        let how = OpenHow { exclusive: true, truncate: false, ..creating() };
        for (name, len) in [("small", 10), ("large", 10_000_000)] {
            let contents = [content(len), content(len)];
            let files: Vec<_> = contents
                .iter()
                .map(|content| {
                    let file = world.volume.open(&path(name), &how).unwrap();
                    write_all(&*file, content, 0..content.len().div_ceil(PIECE));
                    file
                })
                .collect();
            files[1].close().unwrap();
            refused(files[0].close(), Status::Failure, "somebody else");
            refused(files[0].close(), Status::Failure, "somebody else");
            same(&world.get(name), &contents[1]);
            refused(world.volume.open(&path(name), &how), Status::Failure, "exists");
        }
    });
}

#[test]
fn folders_are_what_keys_share() {
    let Some(moto) = S3::moto(0) else { return };
    let world = world(&moto.endpoint(), "files");
    let volume = &world.volume;
    assert!(world.names("/").is_empty());
    volume.make_folder(&path("a"), None).unwrap();
    assert_eq!(moto.keys("files"), ["a/"]);
    assert!(volume.attributes(&path("a"), Follow::No).unwrap().is_folder());
    assert!(world.names("a").is_empty());
    refused(volume.make_folder(&path("a"), None), Status::Failure, "exists");
    world.put("a/b/c d+é%&", b"1");
    world.put("a/b.txt", b"2");
    assert_eq!(world.names("a"), ["b.txt", "b/"]);
    assert_eq!(world.names("a/b"), ["c d+é%&"]);
    assert_eq!(world.get("a/b/c d+é%&"), b"1");
    assert!(volume.attributes(&path("a/b"), Follow::No).unwrap().is_folder());
    let found = volume.attributes(&path("a/b.txt"), Follow::No).unwrap();
    let now = system_clock() / 1000;
    assert!(found.is_regular() && found.size == Some(1));
    assert!((i64::from(found.times.unwrap().1) - now).abs() < 300, "{found:?}");
    // What only S3 tells apart is not listed, and hides nothing else.
    for odd in ["a//x", "a/./x", "a/../x", "a/b//"] {
        let _ = moto.curl(&["-X", "PUT", "-H", "content-length: 0"], &format!("/files/{odd}"));
    }
    assert_eq!(world.names("a"), ["b.txt", "b/"]);
    refused(volume.list(&path("nowhere")), Status::NoSuchFile, "");
    refused(volume.list(&path("a/b.txt")), Status::NoSuchFile, "");
    refused(volume.open(&path("a"), &creating()), Status::Failure, "folder");
    refused(volume.open(&path("/"), &creating()), Status::Failure, "folder");
    refused(volume.open(&path("a/none"), &OpenHow::reading()), Status::NoSuchFile, "");
    refused(volume.remove(&path("a/none")), Status::NoSuchFile, "");
    refused(volume.remove(&path("a/b")), Status::Failure, "folder");
    refused(volume.remove_folder(&path("a/b")), Status::Failure, "not empty");
    refused(volume.remove_folder(&path("a/b.txt")), Status::Failure, "file");
    refused(volume.remove_folder(&path("nowhere")), Status::NoSuchFile, "");
    // Names.
    refused(volume.open(&path(b"\xff"), &creating()), Status::Failure, "UTF-8");
    refused(volume.make_folder(&path(b"\xff"), None), Status::Failure, "UTF-8");
    world.put(&"n".repeat(1024), b"3");
    refused(volume.open(&path("n".repeat(1025)), &creating()), Status::Failure, "too long");
    // What S3 does not have.
    let mode = Attributes { mode: Some(0o600), ..Attributes::default() };
    refused(
        volume.set_attributes(&path("a/b.txt"), &mode, Follow::No),
        Status::OpUnsupported,
        "permissions",
    );
    volume.set_attributes(&path("a/b.txt"), &Attributes::default(), Follow::No).unwrap();
    refused(volume.symlink(b"a", &path("l")), Status::OpUnsupported, "");
    refused(volume.hard_link(&path("a/b.txt"), &path("l")), Status::OpUnsupported, "");
    refused(volume.space(&path("/")), Status::OpUnsupported, "");
    // Renaming.
    world.put("from", &content(10_000_000));
    let moved = world.get("from");
    volume.rename(&path("from"), &path("a/to"), false).unwrap();
    same(&world.get("a/to"), &moved);
    assert!(!world.is_there("from"));
    refused(volume.rename(&path("a/to"), &path("a/b.txt"), false), Status::Failure, "exists");
    refused(volume.rename(&path("a/to"), &path("a/b"), true), Status::Failure, "folder");
    refused(volume.rename(&path("a"), &path("z"), true), Status::OpUnsupported, "folders");
    refused(volume.rename(&path("none"), &path("z"), true), Status::NoSuchFile, "");
    volume.rename(&path("a/to"), &path("a/to"), true).unwrap();
    volume.rename(&path("a/to"), &path("a/b.txt"), true).unwrap();
    same(&world.get("a/b.txt"), &moved);
    // The last file of a folder without a marker takes it along.
    world.put("deep/er/x", b"4");
    assert!(world.is_there("deep/er"));
    volume.remove(&path("deep/er/x")).unwrap();
    assert!(!world.is_there("deep"));
    volume.make_folder(&path("empty"), None).unwrap();
    volume.remove_folder(&path("empty")).unwrap();
    assert!(!world.is_there("empty"));
}

#[test]
fn a_long_listing_comes_page_by_page() {
    let Some(moto) = S3::moto(10_001) else { return };
    let world = world(&moto.endpoint(), "many");
    assert_eq!(world.names("/"), ["all/"]);
    let names = world.names("all");
    assert_eq!(names.len(), 10_001);
    assert!(names.iter().enumerate().all(|(at, name)| *name == format!("{at:05}")));
    // What is not read is not asked for.
    let mut listing = world.volume.list(&path("all")).unwrap();
    for _ in 0..1000 {
        listing.next().unwrap().unwrap();
    }
    drop(moto);
    let error = listing.next().unwrap_err();
    assert!(error.text.contains("does not answer"), "{error}");
}

#[test]
fn a_storage_that_is_away_or_refuses_tells_no_secret() {
    let away = world("http://127.0.0.1:1", "files");
    let error = away.volume.attributes(&path("x"), Follow::No).unwrap_err();
    assert_eq!(error.status, Status::Failure);
    assert!(error.text.contains("does not answer") && !error.text.contains("secret"), "{error}");
    let shown = format!("{:?}", client("http://127.0.0.1:1", SECRET));
    assert_eq!(shown, "Client(\"127.0.0.1:1\")");
    let Some(moto) = S3::moto(0) else { return };
    let nowhere = world(&moto.endpoint(), "nowhere");
    refused(nowhere.volume.list(&path("/")), Status::NoSuchFile, "bucket");
    refused(nowhere.volume.attributes(&path("x"), Follow::No), Status::NoSuchFile, "bucket");
    refused(nowhere.volume.open(&path("x"), &creating()), Status::NoSuchFile, "bucket");
    let buckets =
        S3Buckets::new(client(&moto.endpoint(), SECRET), nowhere.runtime.handle().clone());
    for odd in ["", ".", "..", "a/b", ".a"] {
        assert!(buckets.open(odd).is_err(), "{odd}");
    }
}

/// What a workflow has copied is known by itself: another file may have its name at once.
#[test]
fn an_upload_knows_what_it_has_written() {
    let Some(moto) = S3::moto(0) else { return };
    let world = world(&moto.endpoint(), "files");
    for len in [10, 10_000_000] {
        let content = content(len);
        let file = world.volume.open(&path("x"), &creating()).unwrap();
        write_all(&*file, &content, 0..content.len().div_ceil(PIECE));
        assert_eq!(file.entity_tag().unwrap(), None);
        file.close().unwrap();
        let written = world.volume.entity_tag(&path("x")).unwrap();
        assert!(written.is_some());
        world.put("x", b"another");
        assert_eq!(file.entity_tag().unwrap(), written);
        assert_ne!(world.volume.entity_tag(&path("x")).unwrap(), written);
    }
}
