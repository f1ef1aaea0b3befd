//! Sessions: greeting, order, limits, and clients that do not read.

use std::cell::Cell;
use std::sync::Arc;

use bytes::Bytes;
use outlast_sftp::attributes::Attributes;
use outlast_sftp::error::{Error, Status};
use outlast_sftp::limits::{
    COPY_BUFFER, MAX_DATA, MAX_PACKET, MAX_REPLY_BYTES, MAX_REQUESTS, REPLY_OVERHEAD,
};
use outlast_sftp::quota::{Quota, Usage};
use outlast_sftp::reply::Reply;
use outlast_sftp::request::{Request, write_hello};
use outlast_sftp::session::{Session, Violation};
use outlast_sftp::volume::OpenHow;
use tempfile::tempdir;

use crate::support::{Server, UPLOAD, bytes, open, path, read, view, write};

#[test]
fn a_session_begins_with_version_3_or_later() {
    for version in [3, 4, 6, u32::MAX] {
        let mut session = Session::default();
        session.receive(&write_hello(version)).unwrap();
        assert!(session.next_output().unwrap().starts_with(b"\0\0\x01") || version > 0);
    }
    for wrong in [write_hello(2), Request::Limits.write(0), b"\0\0\0\x04\x01\0\0\0".to_vec()] {
        let mut session = Session::default();
        assert_eq!(session.receive(&wrong), Err(Violation::NoGreeting));
        assert_eq!(session.receive(b""), Err(Violation::NoGreeting));
        assert!(!session.wants_input() && session.next_output().is_none());
    }
}

#[test]
fn packets_that_are_empty_too_long_or_without_identifier_end_the_session() {
    let longer = u32::try_from(MAX_PACKET + 1).unwrap().to_be_bytes();
    for (wrong, violation) in [
        (&b"\0\0\0\0"[..], Violation::Length),
        (&longer, Violation::Length),
        (b"\0\0\0\x04\x11\0\0\0", Violation::NoIdentifier),
    ] {
        let mut session = Session::default();
        session.receive(&write_hello(3)).unwrap();
        assert_eq!(session.receive(wrong), Err(violation));
        assert_eq!(session.violation(), Some(violation));
    }
}

#[test]
fn input_may_arrive_byte_by_byte() {
    let home = tempdir().unwrap();
    let mut server = Server::of(home.path());
    for (id, request) in
        [Request::Limits, Request::RealPath { path: bytes("a/../b") }].iter().enumerate()
    {
        let packet = request.write(u32::try_from(id).unwrap());
        for byte in &packet {
            server.session.receive(&[*byte]).unwrap();
        }
    }
    server.pump();
    assert_eq!(server.replies.len(), 2);
    assert_eq!(server.replies[&1], Reply::path(b"/b"));
    // 256 KiB, 255 KiB, 255 KiB and 100.
    let mut limits = Vec::new();
    for limit in [0x4_0000_u64, 0x3_fc00, 0x3_fc00, 100] {
        limits.extend_from_slice(&limit.to_be_bytes());
    }
    assert_eq!(server.replies[&0], Reply::Extended(limits.into()));
}

#[test]
fn malformed_requests_are_refused_and_the_session_goes_on() {
    let home = tempdir().unwrap();
    let mut server = Server::of(home.path());
    server.session.receive(b"\0\0\0\x06\x11\0\0\0\x09\0").unwrap();
    server.pump();
    let Some(Reply::Status(error)) = server.replies.remove(&9) else { panic!() };
    assert_eq!(error.status, Status::BadMessage);
    assert_eq!(server.name(&Request::RealPath { path: bytes("") }), b"/");
    assert_eq!(server.status(&Request::Unknown { kind: 77 }), Status::OpUnsupported);
}

/// paramiko's `prefetch` asks for a whole file before it reads a single reply.
#[test]
fn two_thousand_outstanding_reads_do_not_block_and_hold_little() {
    const READS: u64 = 2000;
    let home = tempdir().unwrap();
    let content: Vec<u8> = (0..MAX_DATA).map(|at| u8::try_from(at % 251).unwrap()).collect();
    std::fs::write(home.path().join("file"), &content).unwrap();
    let mut server = Server::of(home.path());
    let handle = server.open("/file");
    let length = u32::try_from(MAX_DATA).unwrap();
    let mut ids = Vec::new();
    let mut wanted = 0;
    let drain = |server: &mut Server| {
        let (mut held, mut ran) = (0, Vec::new());
        while let Some(operation) = server.session.next_operation() {
            ran.push(operation);
        }
        for operation in ran {
            held += MAX_DATA;
            server.session.complete(operation.run(&server.view));
        }
        held
    };
    let mut held = 0;
    for _ in 0..READS {
        wanted += u64::from(server.session.wants_input());
        ids.push(server.send(&read(&handle, 0, length)));
        held += drain(&mut server);
    }
    assert!(held <= MAX_REPLY_BYTES, "{held}");
    assert!((MAX_REQUESTS as u64..READS).contains(&wanted), "{wanted}");
    assert!(!server.session.wants_input());
    // Now the client reads, and everything arrives.
    server.pump();
    for id in ids {
        assert_eq!(server.replies.remove(&id), Some(Reply::Data(Bytes::from(content.clone()))));
    }
    assert!(server.session.is_idle() && server.session.wants_input());
}

#[test]
fn a_client_that_only_sends_rubbish_is_stopped_too() {
    let mut session = Session::default();
    session.receive(&write_hello(3)).unwrap();
    let rubbish = b"\0\0\0\x05\x11\0\0\0\x09".repeat(10_000);
    let mut sent = 0;
    while session.wants_input() {
        session.receive(&rubbish).unwrap();
        sent += 1;
        assert!(sent < 1000);
    }
    let packets = std::iter::from_fn(|| session.next_output());
    let queued: usize = packets.map(|bytes| bytes.len() + REPLY_OVERHEAD).sum();
    assert!((MAX_REPLY_BYTES..MAX_REPLY_BYTES * 2).contains(&queued), "{queued}");
}

/// A caller with less memory lets one reply be made at a time, and everything is answered all the same.
#[test]
fn replies_may_be_limited_to_one() {
    let home = tempdir().unwrap();
    std::fs::write(home.path().join("file"), vec![1; MAX_DATA]).unwrap();
    let mut server = Server::of(home.path());
    let handle = server.open("/file");
    assert_eq!(server.session.held_bytes(), 0);
    server.session.limit_replies(1000);
    for _ in 0..3 {
        server.send(&read(&handle, 0, u32::try_from(MAX_DATA).unwrap()));
    }
    let operation = server.session.next_operation().unwrap();
    assert!(server.session.next_operation().is_none() && !server.session.wants_input());
    assert!((MAX_DATA..2 * MAX_DATA).contains(&server.session.held_bytes()));
    server.session.complete(operation.run(&server.view));
    assert!(server.session.next_operation().is_none(), "the first reply waits");
    server.pump();
    assert_eq!((server.replies.len(), server.session.held_bytes()), (3, 0));
    // What is abandoned is not held.
    server.send(&read(&handle, 0, 1));
    assert!(server.session.held_bytes() > 0);
    server.session.abandon();
    assert_eq!(server.session.held_bytes(), 0);
}

/// Replies that wait hold no more memory than they count.
#[test]
fn short_replies_to_long_reads_hold_little() {
    let home = tempdir().unwrap();
    std::fs::write(home.path().join("one"), b"1").unwrap();
    let mut server = Server::of(home.path());
    let handle = server.open("/one");
    server.send(&read(&handle, 0, u32::try_from(MAX_DATA).unwrap()));
    let operation = server.session.next_operation().unwrap();
    server.session.complete(operation.run(&server.view));
    let reply = server.session.next_output().unwrap();
    assert!(reply.len() < 32 && reply.capacity() < 64, "{}", reply.capacity());
}

#[test]
fn requests_with_long_names_count_by_their_size() {
    let mut session = Session::default();
    session.receive(&write_hello(3)).unwrap();
    let request = Request::Stat { path: vec![b'x'; 200_000].into() };
    let mut sent = 0;
    while session.wants_input() {
        session.receive(&request.write(sent)).unwrap();
        sent += 1;
    }
    assert!(sent < 30, "{sent}");
    // A caller that goes on all the same is told.
    let overrun = (0..100).find_map(|id| session.receive(&request.write(id)).err());
    assert_eq!(overrun, Some(Violation::Overrun));
}

#[test]
fn one_handle_keeps_its_order_and_reads_run_together() {
    let home = tempdir().unwrap();
    std::fs::write(home.path().join("a"), b"12345").unwrap();
    std::fs::write(home.path().join("b"), b"").unwrap();
    let mut server = Server::of(home.path());
    let a = server.handle(&open("/a", OpenHow { read: true, write: true, ..OpenHow::default() }));
    let b = server.handle(&open("/b", OpenHow { write: true, ..OpenHow::default() }));
    for request in [
        read(&a, 0, 5),
        read(&a, 1, 5),
        write(&a, 0, b"x"),
        read(&a, 0, 5),
        write(&b, 0, b"1"),
        write(&b, 0, b"2"),
        Request::Limits,
        Request::Remove { path: bytes("/a") },
        Request::Stat { path: bytes("/a") },
        Request::Close { handle: a.clone() },
    ] {
        server.send(&request);
    }
    // What starts at once: two reads of a, the first write to b, what touches nothing.
    let started = |server: &mut Server| {
        let operations: Vec<_> = std::iter::from_fn(|| server.session.next_operation()).collect();
        let kinds: Vec<_> =
            operations.iter().map(outlast_sftp::operation::Operation::kind).collect();
        for operation in operations {
            server.session.complete(operation.run(&server.view));
        }
        kinds
    };
    assert_eq!(started(&mut server), ["read", "read", "write", "limits"]);
    // Then each handle goes on; the removal waits for all before it.
    assert_eq!(started(&mut server), ["write", "write"]);
    assert_eq!(started(&mut server), ["read"]);
    assert_eq!(started(&mut server), ["remove"]);
    assert_eq!(started(&mut server), ["stat"]);
    assert_eq!(started(&mut server), ["close"]);
    assert_eq!(started(&mut server), [""; 0]);
    server.pump();
    let Some(Reply::Data(data)) = server.replies.get(&5) else { panic!("{:?}", server.replies) };
    assert_eq!(&**data, b"x2345");
    assert_eq!(std::fs::read(home.path().join("b")).unwrap(), b"2");
}

#[test]
fn writes_run_together_up_to_what_must_not_see_the_later_ones() {
    let home = tempdir().unwrap();
    for name in ["a", "b"] {
        std::fs::write(home.path().join(name), b"").unwrap();
    }
    let mut server = Server::of(home.path());
    let a = server.handle(&open("/a", OpenHow { read: true, write: true, ..OpenHow::default() }));
    let b = server.handle(&open("/b", OpenHow { write: true, ..OpenHow::default() }));
    for request in [
        write(&a, 0, b"1"),
        write(&b, 0, b"1"),
        write(&a, 1, b"2"),
        Request::Limits,
        write(&a, 2, b"3"),
        read(&a, 0, 3),
        write(&a, 0, b"4"),
        Request::Stat { path: bytes("/a") },
        write(&a, 3, b"5"),
        Request::Close { handle: a.clone() },
        write(&a, 0, b"6"),
    ] {
        server.send(&request);
    }
    // All that starts, each with the writes that follow it; all of it runs at the end.
    let started = |server: &mut Server| {
        let mut all = Vec::new();
        while let Some(first) = server.session.next_operation() {
            let mut together = vec![first];
            while let Some(next) = server.session.next_after(&together[0]) {
                together.push(next);
            }
            all.push(together);
        }
        let kinds: Vec<_> = all.iter().map(|some| (some[0].kind(), some.len())).collect();
        for operation in all.into_iter().flatten() {
            server.session.complete(operation.run(&server.view));
        }
        kinds
    };
    assert_eq!(started(&mut server), [("write", 3), ("write", 1), ("limits", 1)]);
    assert_eq!(std::fs::read(home.path().join("a")).unwrap(), b"123");
    assert_eq!(started(&mut server), [("read", 1)]);
    assert_eq!(started(&mut server), [("write", 1)]);
    assert_eq!(started(&mut server), [("stat", 1)]);
    assert_eq!(started(&mut server), [("write", 1)]);
    assert_eq!(started(&mut server), [("close", 1)]);
    server.pump();
    assert_eq!(std::fs::read(home.path().join("a")).unwrap(), b"4235");
    let Some(Reply::Data(data)) = server.replies.get(&7) else { panic!("{:?}", server.replies) };
    assert_eq!(&**data, b"123");
}

/// What has not begun when the session is over fails, and a copy stops between two pieces.
#[test]
fn operations_end_with_the_session() {
    let home = tempdir().unwrap();
    std::fs::write(home.path().join("long"), vec![7_u8; 3 * COPY_BUFFER]).unwrap();
    let mut server = Server::of(home.path());
    let (from, to) = (server.open("/long"), server.create("/copy"));
    server.send(&Request::CopyData { from, offset: 0, length: 0, to: to.clone(), to_offset: 0 });
    let copy = server.session.next_operation().unwrap();
    // Asked at the beginning, before the first piece, and before the second.
    let asked = Cell::new(0);
    let is_over = || {
        asked.set(asked.get() + 1);
        asked.get() > 2
    };
    let record = server.session.complete(copy.run_until(&server.view, &is_over));
    assert_eq!((record.kind, record.status), ("copy-data", Status::Failure));
    assert_eq!(record.bytes_written, COPY_BUFFER as u64);
    assert_eq!(std::fs::read(home.path().join("copy")).unwrap(), vec![7_u8; COPY_BUFFER]);
    for request in [
        write(&to, 0, b"late"),
        Request::MkDir { path: bytes("/d"), attributes: Default::default() },
        Request::Remove { path: bytes("/long") },
    ] {
        server.send(&request);
        let operation = server.session.next_operation().unwrap();
        let record = server.session.complete(operation.run_until(&server.view, &|| true));
        assert_eq!(record.status, Status::Failure, "{request:?}");
    }
    // A close that comes too late leaves the file open, and the record says so like that of any other open file.
    let close = server.send(&Request::Close { handle: to.clone() });
    let operation = server.session.next_operation().unwrap();
    let record = server.session.complete(operation.run_until(&server.view, &|| true));
    assert_eq!((record.kind, &*record.text), ("abandon", ""));
    assert_eq!((record.bytes_written, record.writes), (COPY_BUFFER as u64, true));
    assert_eq!(record.path, Some(path("/copy")));
    server.pump();
    assert!(
        matches!(&server.replies[&close], Reply::Status(error) if error.status == Status::Failure)
    );
    // The file that was only read is still open.
    let left: Vec<_> = server.session.end().into_iter().map(|record| record.path).collect();
    assert_eq!(left, [Some(path("/long"))]);
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 2);
    assert!(std::fs::read(home.path().join("copy")).unwrap().starts_with(&[7; 4]));
}

#[test]
fn a_request_after_close_finds_no_handle() {
    let home = tempdir().unwrap();
    std::fs::write(home.path().join("a"), b"12345").unwrap();
    let mut server = Server::of(home.path());
    let handle = server.open("/a");
    let close = server.send(&Request::Close { handle: handle.clone() });
    let late = server.send(&read(&handle, 0, 1));
    server.pump();
    assert_eq!(server.replies[&close], Reply::ok());
    assert_eq!(server.replies[&late], Reply::Status(Error::failure("no such handle")));
    // Handles are never used again.
    assert_ne!(server.open("/a"), handle);
}

#[test]
fn open_handles_are_limited() {
    let home = tempdir().unwrap();
    let mut server = Server::of(home.path());
    server.write("/f", b"");
    server.session = Session::new(3);
    server.session.receive(&write_hello(3)).unwrap();
    server.session.next_output();
    // All at once: those that are being opened count.
    let sent: Vec<_> =
        (0..4).map(|_| server.send(&Request::OpenDir { path: bytes("/") })).collect();
    let operations: Vec<_> = std::iter::from_fn(|| server.session.next_operation()).collect();
    assert_eq!(operations.len(), 3);
    for operation in operations {
        server.session.complete(operation.run(&server.view));
    }
    server.pump();
    let refused = sent.iter().filter(|id| matches!(server.replies[id], Reply::Status(_))).count();
    assert_eq!(refused, 1);
    let text = server.refused(&open("/f", OpenHow::reading()), Status::Failure);
    assert!(text.contains("close one"), "{text}");
    let Reply::Handle(handle) = server.replies[&sent[0]].clone() else { panic!() };
    server.ok(&Request::Close { handle });
    server.open("/f");
    // A failed open takes no handle.
    server.ok(&Request::Remove { path: bytes("/f") });
}

#[test]
fn records_say_what_happened() {
    let home = tempdir().unwrap();
    let mut server = Server::of(home.path());
    let handle = server.create("/up");
    server.ok(&write(&handle, 0, b"1234"));
    server.ok(&write(&handle, 4, b"5678"));
    server.ok(&Request::Close { handle });
    server.read("/up");
    server.ok(&Request::Rename { from: bytes("/up"), to: bytes("/there") });
    server.refused(&open("/gone", OpenHow::reading()), Status::NoSuchFile);
    let rows: Vec<_> = server
        .records
        .iter()
        .map(|record| {
            let path =
                |path: &Option<_>| path.as_ref().map_or("-".to_owned(), |path| format!("{path:?}"));
            let (from, to) = (path(&record.path), path(&record.to));
            let (read, written) = (record.bytes_read, record.bytes_written);
            let status = record.status.name();
            format!("{} {from} {to} {} {read} {written} {status}", record.kind, record.writes)
        })
        .collect();
    assert_eq!(
        rows,
        [
            "open \"/up\" - true 0 0 SSH_FX_OK",
            "write \"/up\" - false 0 4 SSH_FX_OK",
            "write \"/up\" - false 0 4 SSH_FX_OK",
            "close \"/up\" - true 0 8 SSH_FX_OK",
            "open \"/up\" - false 0 0 SSH_FX_OK",
            "read \"/up\" - false 8 0 SSH_FX_OK",
            "read \"/up\" - false 0 0 SSH_FX_EOF",
            "close \"/up\" - false 8 0 SSH_FX_OK",
            "rename \"/up\" \"/there\" false 0 0 SSH_FX_OK",
            "open \"/gone\" - false 0 0 SSH_FX_NO_SUCH_FILE",
        ]
    );
    let how: Vec<_> = server.records.iter().filter_map(|record| record.how).collect();
    assert_eq!(how, [UPLOAD, OpenHow::reading(), OpenHow::reading()]);
    // What was not closed is told at the end.
    let handle = server.create("/half");
    server.ok(&write(&handle, 0, b"12"));
    let ended = server.session.end();
    assert_eq!(ended.len(), 1);
    assert_eq!((ended[0].kind, ended[0].bytes_written, ended[0].writes), ("abandon", 2, true));
    assert_eq!(ended[0].path, Some(path("/half")));
    assert!(!ended[0].is_apart, "its name shows what was written");
}

#[test]
fn records_have_targets_of_links_and_attributes_that_were_to_be_set() {
    let home = tempdir().unwrap();
    let mut server = Server::of(home.path());
    let mode = Attributes { mode: Some(0o600), ..Attributes::default() };
    let size = Attributes { size: Some(3), ..Attributes::default() };
    let handle = server.create("/f");
    server.ok(&Request::FSetStat { handle: handle.clone(), attributes: mode });
    server.ok(&Request::Close { handle });
    server.ok(&Request::SetStat { path: bytes("/f"), attributes: size });
    let gone = Request::LSetStat { path: bytes("/gone"), attributes: mode };
    server.refused(&gone, Status::NoSuchFile);
    server.ok(&Request::Symlink { target: bytes("./f"), link: bytes("/l") });
    server.ok(&Request::HardLink { from: bytes("/f"), to: bytes("/h") });
    let of = |kind: &str| {
        let record = server.records.iter().find(|record| record.kind == kind).unwrap();
        (record.path.clone(), record.to.clone(), record.target.clone(), record.attributes)
    };
    assert_eq!(of("fsetstat"), (Some(path("/f")), None, None, Some(mode)));
    assert_eq!(of("setstat"), (Some(path("/f")), None, None, Some(size)));
    assert_eq!(of("lsetstat"), (Some(path("/gone")), None, None, Some(mode)));
    assert_eq!(of("symlink"), (Some(path("/l")), None, Some(bytes("./f")), None));
    assert_eq!(of("hardlink"), (Some(path("/f")), Some(path("/h")), None, None));
}

/// A client that pipelines what its handle does not allow is told of each, and the first alone is marked as new.
#[test]
fn the_first_denied_write_of_a_handle_is_marked() {
    let home = tempdir().unwrap();
    std::fs::write(home.path().join("f"), "1").unwrap();
    let mut server = Server::of(home.path());
    for _ in 0..2 {
        let handle = server.open("/f");
        for _ in 0..3 {
            server.refused(&write(&handle, 0, b"2"), Status::PermissionDenied);
        }
        server.ok(&Request::Close { handle });
    }
    let writes = server.records.iter().filter(|record| record.kind == "write");
    let repeated: Vec<_> = writes.map(|record| record.is_repeated).collect();
    assert_eq!(repeated, [false, true, true, false, true, true]);
}

#[test]
fn the_first_write_that_fails_is_marked_and_so_is_the_close() {
    let home = tempdir().unwrap();
    let quota = Arc::new(Quota::new(Some(4), None, Usage::default()));
    let mut server = Server::new(view(home.path()).quota(&quota));
    let handle = server.create("/f");
    server.ok(&write(&handle, 0, b"1234"));
    server.refused(&write(&handle, 4, b"5"), Status::Failure);
    server.refused(&write(&handle, 5, b"6"), Status::Failure);
    server.ok(&Request::Close { handle });
    let records = server.records.iter();
    let rows: Vec<_> =
        records.map(|record| (record.kind, record.status, record.is_broken)).collect();
    assert_eq!(
        rows,
        [
            ("open", Status::Ok, false),
            ("write", Status::Ok, false),
            ("write", Status::Failure, true),
            ("write", Status::Failure, false),
            ("close", Status::Ok, true),
        ]
    );
}

#[test]
fn an_operation_is_known_before_it_runs_and_can_be_refused() {
    let home = tempdir().unwrap();
    let mut server = Server::of(home.path());
    server.send(&open("sub/../new", UPLOAD));
    let operation = server.session.next_operation().unwrap();
    assert_eq!((operation.kind(), operation.changes(), operation.blocks()), ("open", true, true));
    let view = view(home.path());
    assert_eq!((operation.path(&view), operation.to(&view)), (Some(path("/new")), None));
    let outcome = operation.refuse(&view, Error::denied("not on Sundays"));
    assert_eq!(outcome.record.status, Status::PermissionDenied);
    server.session.complete(outcome);
    server.pump();
    assert_eq!(server.replies[&0], Reply::Status(Error::denied("not on Sundays")));
    assert!(!home.path().join("new").exists());
    assert!(server.session.is_idle());
}
