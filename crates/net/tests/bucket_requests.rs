//! What is asked of S3, and what becomes of its answers: an S3 that answers what a test says.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};

use bytes::Bytes;
use outlast_sftp::attributes::Attributes;
use outlast_sftp::error::Status;
use outlast_sftp::path::RemotePath;
use outlast_sftp::quota::{Quota, Usage};
use outlast_sftp::request::{Request, write_hello};
use outlast_sftp::session::Session;
use outlast_sftp::view::View;
use outlast_sftp::volume::OpenHow;

use crate::bucket::{PIECE, World, content, creating, path, refused, world, write_all};

/// What an S3 of a test answers: status, headers, body.
type Answer = (&'static str, String, &'static str);

/// A bucket of an S3 that answers what `answer` makes of the head of a request, and those heads. They are in lower case.
fn scripted(mut answer: impl FnMut(&str) -> Answer + Send + 'static) -> (World, Receiver<String>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let world = world(&format!("http://{}", listener.local_addr().unwrap()), "files");
    let (sender, heads) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read_exact(&mut byte).is_ok() {
                head.push(byte[0]);
            }
            // A client may open a connection that it does not use.
            if !head.ends_with(b"\r\n\r\n") {
                continue;
            }
            let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length = length.map_or(0, |length| length.parse::<usize>().unwrap());
            if stream.read_exact(&mut vec![0; length]).is_err() {
                continue;
            }
            let (status, mut headers, body) = answer(&head);
            if !head.starts_with("head ") {
                headers.push_str(&format!("content-length: {}\r\n", body.len()));
            }
            // Before the answer, so that a test that has it finds the request; it may not want it.
            let _ = sender.send(head);
            let _ = write!(stream, "HTTP/1.1 {status}\r\n{headers}connection: close\r\n\r\n{body}");
        }
    });
    (world, heads)
}

fn answered(status: &'static str, body: &'static str) -> Answer {
    (status, String::new(), body)
}

/// The answer to HEAD for an object of so many bytes.
fn there(size: u64, etag: &str) -> Answer {
    ("200 OK", format!("content-length: {size}\r\netag: \"{etag}\"\r\n"), "")
}

fn absent() -> Answer {
    ("404 Not Found", "content-length: 0\r\n".to_owned(), "")
}

const EMPTY: &str = "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>";

/// A repeated removal, or one that comes late, leaves what was uploaded in the meantime.
#[test]
fn a_file_is_removed_only_as_it_was_found() {
    let mut is_removed = false;
    let (world, heads) = scripted(move |head| {
        let (request, _) = head.split_once(" http/1.1").unwrap();
        match request {
            "head /files/gone" if is_removed => absent(),
            "head /files/same" | "head /files/other" | "head /files/gone" => there(4, "found"),
            "delete /files/same" => answered("200 OK", ""),
            "delete /files/other" => answered("412 Precondition Failed", ""),
            "delete /files/gone" => {
                is_removed = true;
                answered("412 Precondition Failed", "")
            }
            _ => answered("200 OK", EMPTY),
        }
    });
    world.volume.remove(&path("same")).unwrap();
    refused(world.volume.remove(&path("other")), Status::Failure, "somebody else");
    // The first attempt has removed it, and its answer was lost.
    world.volume.remove(&path("gone")).unwrap();
    let removals: Vec<_> = heads.try_iter().filter(|head| head.starts_with("delete ")).collect();
    assert_eq!(removals.len(), 3);
    for head in removals {
        assert!(head.contains("\r\nif-match: \"found\"\r\n"), "{head}");
    }
}

/// S3 refuses an upload without its length, also an empty one; moto does not.
#[test]
fn an_empty_upload_says_its_length() {
    let (world, heads) = scripted(|head| match head.split(' ').next().unwrap() {
        "get" => answered("200 OK", EMPTY),
        "put" => ("200 OK", "etag: \"x\"\r\n".to_owned(), ""),
        _ => absent(),
    });
    world.volume.make_folder(&path("folder"), None).unwrap();
    let uploads: Vec<_> = heads.try_iter().filter(|head| head.starts_with("put ")).collect();
    let [upload] = &uploads[..] else { panic!("{uploads:?}") };
    assert!(upload.contains("\r\ncontent-length: 0\r\n"), "{upload}");
}

/// A rename that fails leaves no second name, unless that may be the only one.
#[test]
fn a_copy_of_a_rename_that_fails_is_removed() {
    for (removal, undo, replace, text, removed) in [
        ("412 Precondition Failed", "200 OK", false, "somebody else", true),
        ("403 Forbidden", "200 OK", false, "the storage does not allow it", true),
        ("403 Forbidden", "403 Forbidden", false, "a copy has the new name", true),
        // It may have been carried out.
        ("504 Gateway Timeout", "200 OK", false, "a copy has the new name", false),
        // What was there before cannot come back.
        ("403 Forbidden", "200 OK", true, "a copy has the new name", false),
    ] {
        let (world, heads) = scripted(move |head| {
            let (request, _) = head.split_once(" http/1.1").unwrap();
            match request {
                "head /files/old" => there(4, "old"),
                "head /files/new" if replace => there(4, "before"),
                "head /files/new" => absent(),
                "put /files/new" => answered(
                    "200 OK",
                    "<CopyObjectResult><ETag>&quot;copy&quot;</ETag></CopyObjectResult>",
                ),
                "delete /files/old" => answered(removal, ""),
                "delete /files/new" => answered(undo, ""),
                _ => answered("200 OK", EMPTY),
            }
        });
        let error = world.volume.rename(&path("old"), &path("new"), replace).unwrap_err();
        assert!(error.text.contains(text), "{removal} {undo}: {error}");
        let is_told = error.text.contains("a copy has the new name");
        assert_eq!(is_told, text == "a copy has the new name", "{removal} {undo}: {error}");
        let removals: Vec<_> =
            heads.try_iter().filter(|head| head.starts_with("delete ")).collect();
        let undone = removals.iter().find(|head| head.starts_with("delete /files/new "));
        assert_eq!(undone.is_some(), removed, "{removal} {undo}");
        assert!(
            undone.is_none_or(|head| head.contains("\r\nif-match: \"copy\"\r\n")),
            "{undone:?}"
        );
        assert_eq!(removals.len(), 1 + usize::from(removed), "{removal} {undo}");
    }
}

/// S3 copies those with an object as a whole, but not with its parts.
#[test]
fn a_large_file_keeps_type_metadata_and_tags() {
    let (world, heads) = scripted(|head| {
        let (request, _) = head.split_once(" http/1.1").unwrap();
        let (method, target) = request.split_once(' ').unwrap();
        match (method, target) {
            ("head", "/files/old") => {
                let (status, headers, body) = there((5 << 30) + 1, "old");
                let more =
                    "content-type: text/x-notes\r\nx-amz-meta-owner: alice\r\nserver: s3\r\n";
                (status, headers + more, body)
            }
            ("head", _) => absent(),
            ("get", "/files/old?tagging=") => answered(
                "200 OK",
                "<Tagging><TagSet><Tag><Key>state</Key><Value>a &amp; b</Value></Tag></TagSet></Tagging>",
            ),
            ("post", "/files/new?uploads=") => answered(
                "200 OK",
                "<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>",
            ),
            ("put", _) => answered("200 OK", "<CopyPartResult><ETag>p</ETag></CopyPartResult>"),
            ("post", _) => answered(
                "200 OK",
                "<CompleteMultipartUploadResult><ETag>c</ETag></CompleteMultipartUploadResult>",
            ),
            ("delete", _) => answered("200 OK", ""),
            _ => answered("200 OK", EMPTY),
        }
    });
    world.volume.rename(&path("old"), &path("new"), false).unwrap();
    let begun = heads.try_iter().find(|head| head.starts_with("post /files/new?uploads=")).unwrap();
    for header in [
        "content-type: text/x-notes",
        "x-amz-meta-owner: alice",
        "x-amz-tagging: state=a%20%26%20b",
    ] {
        assert!(begun.contains(&format!("\r\n{header}\r\n")), "{header}: {begun}");
    }
    assert!(!begun.contains("\r\nserver:"), "{begun}");
}

/// What takes long is done before a quota's lock is taken: one request is left.
#[test]
fn a_settled_upload_appears_by_one_request() {
    let (world, heads) = scripted(|head| match head.split_once(' ').unwrap() {
        ("head", _) => absent(),
        ("put", _) => ("200 OK", "etag: \"p\"\r\n".to_owned(), ""),
        ("post", target) if target.starts_with("/files/x?uploads=") => answered(
            "200 OK",
            "<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>",
        ),
        ("post", _) => answered(
            "200 OK",
            "<CompleteMultipartUploadResult><ETag>c</ETag></CompleteMultipartUploadResult>",
        ),
        _ => answered("200 OK", EMPTY),
    });
    let content = content(10_000_000);
    let file = world.volume.open(&path("x"), &creating()).unwrap();
    write_all(&*file, &content, 0..content.len().div_ceil(PIECE));
    file.settle().unwrap();
    let sent: Vec<_> = heads.try_iter().collect();
    let parts = sent.iter().filter(|head| head.starts_with("put /files/x?partnumber=")).count();
    assert_eq!(parts, 2, "{sent:?}");
    file.close().unwrap();
    let sent: Vec<_> = heads.try_iter().collect();
    assert!(
        matches!(&sent[..], [last] if last.starts_with("post /files/x?uploadid=1")),
        "{sent:?}"
    );
    // A small one is sent as a whole, when it appears.
    let file = world.volume.open(&path("x"), &creating()).unwrap();
    file.write_at(0, b"small").unwrap();
    heads.try_iter().for_each(drop);
    file.settle().unwrap();
    assert_eq!(heads.try_iter().count(), 0);
}

/// A large object is copied before it is renamed: what is left are three requests. A copy that is not wanted leaves nothing.
#[test]
fn a_prepared_rename_has_copied_what_is_large() {
    let (world, heads) = scripted(|head| {
        let (request, _) = head.split_once(" http/1.1").unwrap();
        match request.split_once(' ').unwrap() {
            ("head", "/files/old") => there(20_000_000, "old"),
            ("head", "/files/small") => there(4, "small"),
            ("head", "/files/there") => there(4, "there"),
            ("head", _) => absent(),
            ("post", target) if target.ends_with("?uploads=") => answered(
                "200 OK",
                "<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>",
            ),
            ("post", _) => answered(
                "200 OK",
                "<CompleteMultipartUploadResult><ETag>c</ETag></CompleteMultipartUploadResult>",
            ),
            ("put", target) if target.contains('?') => {
                answered("200 OK", "<CopyPartResult><ETag>p</ETag></CopyPartResult>")
            }
            ("put", _) => answered("200 OK", "<CopyObjectResult><ETag>s</ETag></CopyObjectResult>"),
            ("delete", _) => answered("204 No Content", ""),
            ("get", "/files/old?tagging=") => {
                answered("200 OK", "<Tagging><TagSet></TagSet></Tagging>")
            }
            _ => answered("200 OK", EMPTY),
        }
    });
    let requests = || -> Vec<String> {
        let short = |head: String| head.split(" http/1.1").next().unwrap().to_owned();
        heads.try_iter().map(short).collect()
    };
    let rename = world.volume.renaming(path("old"), path("new"), false).unwrap();
    let before = requests();
    let copies = before.iter().filter(|one| one.starts_with("put /files/new?partnumber=")).count();
    assert!(copies >= 2, "{before:?}");
    assert!(!before.iter().any(|one| one.contains("?uploadid=1")), "it appears: {before:?}");
    rename().unwrap();
    let after = requests();
    // The old one must still be there: somebody else may have renamed it, too.
    let expected = ["head /files/old", "post /files/new?uploadid=1", "delete /files/old"];
    assert_eq!(after, expected, "{after:?}");
    // What somebody else has written since under the new name is not replaced.
    for (target, condition) in [("new", "if-none-match: *"), ("there", "if-match: \"there\"")] {
        let rename = world.volume.renaming(path("old"), path(target), true).unwrap();
        heads.try_iter().for_each(drop);
        rename().unwrap();
        let completes = |head: &String| head.starts_with("post ");
        let head = heads.try_iter().find(completes).unwrap();
        assert!(head.contains(&format!("\r\n{condition}\r\n")), "{head}");
    }
    drop(world.volume.renaming(path("old"), path("new"), false).unwrap());
    outlast_testing::until("the copy is forgotten", || {
        heads.try_iter().any(|head| head.starts_with("delete /files/new?uploadid=1"))
    });
    // A small one takes no longer than that.
    let rename = world.volume.renaming(path("small"), path("new"), false).unwrap();
    assert!(!requests().iter().any(|one| one.starts_with("put")));
    rename().unwrap();
    assert_eq!(requests(), ["put /files/new", "delete /files/small"]);
}

/// An object that a client goes on with: nothing is visible before it is closed, so that nobody waits for its parts.
#[test]
fn what_is_added_to_an_object_is_apart() {
    let (world, heads) = scripted(|head| match head.split(' ').next().unwrap() {
        "head" => there(3, "old"),
        "get" => ("206 Partial Content", "etag: \"old\"\r\n".to_owned(), "old"),
        _ => ("200 OK", "etag: \"new\"\r\n".to_owned(), ""),
    });
    let how = OpenHow { write: true, ..OpenHow::default() };
    let file = world.volume.open(&path("x"), &how).unwrap();
    assert!(file.writes_apart() && !file.is_apart(), "nothing is written yet");
    file.write_at(3, b"new").unwrap();
    assert!(file.is_apart());
    heads.try_iter().for_each(drop);
    // What it needs of the old one is read before it appears.
    file.settle().unwrap();
    let before: Vec<_> = heads.try_iter().collect();
    assert!(matches!(&before[..], [read] if read.starts_with("get /files/x")), "{before:?}");
    file.close().unwrap();
    let after: Vec<_> = heads.try_iter().collect();
    assert!(matches!(&after[..], [write] if write.starts_with("put /files/x")), "{after:?}");
    assert!(file.writes_apart() && !file.is_apart());
}

/// What a client copies into an object, or cuts off, is not visible when the connection breaks, as what it writes: who acts on partial
/// uploads must not act on the object that is still there.
#[test]
fn what_is_copied_into_an_object_is_apart() {
    let (world, _heads) = scripted(|head| match head.split(' ').next().unwrap() {
        "head" => there(3, "old"),
        "get" => ("206 Partial Content", "etag: \"old\"\r\n".to_owned(), "old"),
        _ => ("200 OK", "etag: \"new\"\r\n".to_owned(), ""),
    });
    let view = View::new(|| 0).mount(RemotePath::root(), world.volume.clone());
    let writing = OpenHow { write: true, ..OpenHow::default() };
    let handle = |number: u64| Bytes::copy_from_slice(&number.to_be_bytes());
    let open = |name: &'static str, how| Request::Open {
        path: Bytes::from_static(name.as_bytes()),
        how,
        attributes: Attributes::default(),
    };
    let (from, to) = (handle(0), handle(1));
    let cut = Attributes { size: Some(1), ..Attributes::default() };
    for (change, is_apart) in [
        (Request::FSync { handle: to.clone() }, false),
        (Request::CopyData { from, offset: 0, length: 0, to: to.clone(), to_offset: 3 }, true),
        (Request::FSetStat { handle: to, attributes: cut }, true),
    ] {
        let mut session = Session::default();
        session.receive(&write_hello(3)).unwrap();
        for request in [open("/from", OpenHow::reading()), open("/to", writing), change] {
            session.receive(&request.write(1)).unwrap();
            while let Some(operation) = session.next_operation() {
                let record = session.complete(operation.run(&view));
                assert_eq!(record.status, Status::Ok, "{request:?}: {}", record.text);
            }
        }
        let left: Vec<_> = session.end().into_iter().filter(|one| one.writes).collect();
        let [left] = &left[..] else { panic!("{left:?}") };
        assert_eq!(left.is_apart, is_apart, "{left:?}");
    }
}

/// An object that is stored although the answer was lost counts as stored; what somebody else has stored meanwhile does not.
#[test]
fn an_upload_whose_answer_is_lost_is_found() {
    // MD5 of what is sent; that of two parts follows from theirs.
    const SMALL: &str = "eb5c1399a871211c7e7ed732d15e3a8b";
    const PART: &str = "d41d8cd98f00b204e9800998ecf8427e";
    const BOTH: &str = "5873dd45edd01f09c1ef2e7819369e8e-2";
    for (large, found, is_stored) in
        [(false, SMALL, true), (false, PART, false), (true, BOTH, true), (true, SMALL, false)]
    {
        let size = if large { 10_000_000 } else { 5 };
        let mut is_sent = false;
        let (world, _heads) = scripted(move |head| match head.split_once(' ').unwrap() {
            ("head", target) if target.starts_with("/files/x ") && is_sent => there(size, found),
            ("head", _) => absent(),
            ("post", target) if target.starts_with("/files/x?uploads=") => answered(
                "200 OK",
                "<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>",
            ),
            ("post", _) => {
                is_sent = true;
                answered("502 Bad Gateway", "")
            }
            ("put", target) if target.contains('?') => {
                ("200 OK", format!("etag: \"{PART}\"\r\n"), "")
            }
            ("put", _) => {
                is_sent = true;
                answered("504 Gateway Timeout", "")
            }
            ("delete", _) => answered("204 No Content", ""),
            _ => answered("200 OK", EMPTY),
        });
        let file = world.volume.open(&path("x"), &creating()).unwrap();
        if large {
            let content = content(10_000_000);
            write_all(&*file, &content, 0..content.len().div_ceil(PIECE));
        } else {
            file.write_at(0, b"small").unwrap();
        }
        assert_eq!(file.close().is_ok(), is_stored, "{found}");
    }
    // Of two who add the same, or make a file that must be new, the second is refused, although the object looks like its own.
    for exclusive in [false, true] {
        let mut is_sent = false;
        let (world, _heads) = scripted(move |head| match head.split(' ').next().unwrap() {
            "head" if is_sent => there(5, SMALL),
            "head" if exclusive => absent(),
            "head" => there(2, "old"),
            "get" if head.contains("range") => {
                ("206 Partial Content", "etag: \"old\"\r\n".to_owned(), "sm")
            }
            "put" => {
                is_sent = true;
                match exclusive {
                    true => answered("504 Gateway Timeout", ""),
                    false => answered("412 Precondition Failed", ""),
                }
            }
            _ => answered("200 OK", EMPTY),
        });
        let how = OpenHow { exclusive, truncate: false, create: exclusive, ..creating() };
        let file = world.volume.open(&path("x"), &how).unwrap();
        let (at, bytes) = if exclusive { (0, &b"small"[..]) } else { (2, &b"all"[..]) };
        file.write_at(at, bytes).unwrap();
        assert!(file.close().is_err(), "{exclusive}");
    }
}

/// Of several renames of one large file, or a rename and a removal, only one may succeed.
#[test]
fn a_prepared_rename_needs_what_it_has_copied() {
    let mut is_copied = false;
    let (world, heads) = scripted(move |head| {
        let (request, _) = head.split_once(" http/1.1").unwrap();
        match request.split_once(' ').unwrap() {
            ("head", "/files/old") if !is_copied => there(20_000_000, "old"),
            ("head", _) => absent(),
            ("post", _) => answered(
                "200 OK",
                "<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>",
            ),
            ("put", _) => {
                is_copied = true;
                answered("200 OK", "<CopyPartResult><ETag>p</ETag></CopyPartResult>")
            }
            ("get", "/files/old?tagging=") => {
                answered("200 OK", "<Tagging><TagSet></TagSet></Tagging>")
            }
            ("delete", _) => answered("204 No Content", ""),
            _ => answered("200 OK", EMPTY),
        }
    });
    let rename = world.volume.renaming(path("old"), path("new"), true).unwrap();
    refused(rename(), Status::Failure, "somebody else");
    outlast_testing::until("the copy is forgotten", || {
        heads.try_iter().any(|head| head.starts_with("delete /files/new?uploadid=1"))
    });
}

/// A publication, a rename or a removal of which S3 does not say whether it was carried out: the quota counts what is there.
#[test]
fn what_s3_did_without_saying_so_is_counted() {
    let is_added = Arc::new(AtomicBool::new(false));
    let is_moved = Arc::new(AtomicBool::new(false));
    let (added, moved) = (is_added.clone(), is_moved.clone());
    let mut is_removed = false;
    let (world, _heads) = scripted(move |head| {
        let (request, _) = head.split_once(" http/1.1").unwrap();
        let is = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        match request.split_once(' ').unwrap() {
            ("head", "/files/x") if is(&moved) => absent(),
            // Not the MD5 of what was sent: the object is under a key of KMS.
            ("head", "/files/x") if is(&added) => there(6, "new"),
            ("head", "/files/x") => there(3, "old"),
            ("head", "/files/y") if is(&moved) && !is_removed => there(6, "copy"),
            ("head", _) => absent(),
            ("get", "/files/x") => ("206 Partial Content", "etag: \"old\"\r\n".to_owned(), "old"),
            ("put", "/files/x") => {
                added.store(true, Ordering::Relaxed);
                answered("504 Gateway Timeout", "")
            }
            ("put", "/files/y") => answered(
                "200 OK",
                "<CopyObjectResult><ETag>&quot;copy&quot;</ETag></CopyObjectResult>",
            ),
            ("delete", "/files/y") => {
                is_removed = true;
                answered("504 Gateway Timeout", "")
            }
            ("delete", "/files/x") => {
                moved.store(true, Ordering::Relaxed);
                answered("504 Gateway Timeout", "")
            }
            _ => answered("200 OK", EMPTY),
        }
    });
    let quota = Arc::new(Quota::new(None, None, Usage { bytes: 3, files: 1 }));
    let volume = world.volume.clone();
    let view = View::new(|| 0).mount_with(RemotePath::root(), volume, Some(quota.clone()));
    let adding = OpenHow { write: true, ..OpenHow::default() };
    let file = view.open(&path("x"), &adding).unwrap();
    file.write_at(3, b"new").unwrap();
    assert!(file.close().is_err());
    drop(file);
    assert!(is_added.load(Ordering::Relaxed));
    assert_eq!(quota.used(), Usage { bytes: 6, files: 1 });
    assert!(view.rename(&path("x"), &path("y"), false).is_err());
    assert!(is_moved.load(Ordering::Relaxed));
    assert_eq!(quota.used(), Usage { bytes: 6, files: 1 });
    assert!(view.remove(&path("y")).is_err());
    assert_eq!(quota.used(), Usage::default());
}
