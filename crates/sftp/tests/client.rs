//! The client's side against the server's, and against servers that send anything.

use std::collections::BTreeMap;
use std::fs;

use bytes::{Bytes, BytesMut};
use outlast_sftp::attributes::Attributes;
use outlast_sftp::client::{Client, Download, Failed, Upload, Violation};
use outlast_sftp::error::{Error, Status};
use outlast_sftp::limits::{CLIENT_REQUESTS, CLIENT_WINDOW, MAX_HANDLES, MAX_PACKET};
use outlast_sftp::reply::{Name, Reply};
use outlast_sftp::request::Request;
use outlast_sftp::session::Session;
use outlast_sftp::view::View;
use outlast_sftp::volume::OpenHow;
use outlast_sftp::wire::Writer;
use proptest::prelude::*;

use crate::support::view;

/// `SSH_FXP_VERSION` 3 with these extensions.
fn version(extensions: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = Writer::packet(2);
    writer.u32(3);
    for (name, version) in extensions {
        writer.string(name.as_bytes());
        writer.string(version.as_bytes());
    }
    writer.finish()
}

/// A client that has been greeted by a server without extensions.
fn greeted() -> Client {
    let mut client = Client::default();
    assert!(client.next_output().is_some());
    client.receive(&version(&[])).unwrap();
    assert!(client.is_ready());
    client
}

/// Both sides in one thread.
struct Pair {
    client: Client,
    session: Session,
    view: View,
}

impl Pair {
    fn new(view: View) -> Self {
        let mut pair = Self { client: Client::default(), session: Session::new(MAX_HANDLES), view };
        while !pair.client.is_ready() {
            pair.turn();
        }
        pair
    }

    fn turn(&mut self) {
        while let Some(bytes) = self.client.next_output() {
            self.session.receive(&bytes).unwrap();
        }
        while let Some(operation) = self.session.next_operation() {
            self.session.complete(operation.run(&self.view));
        }
        while let Some(bytes) = self.session.next_output() {
            // As a network does it.
            for piece in bytes.chunks(10_000) {
                self.client.receive(piece).unwrap();
            }
        }
    }

    fn reply(&mut self) -> (u32, Reply) {
        loop {
            if let Some(reply) = self.client.next_reply() {
                return reply;
            }
            self.turn();
        }
    }

    fn call(&mut self, request: &Request) -> Reply {
        let id = self.client.send(request);
        let (answered, reply) = self.reply();
        assert_eq!(answered, id);
        reply
    }

    fn open(&mut self, path: &str, how: OpenHow) -> Bytes {
        let path = Bytes::copy_from_slice(path.as_bytes());
        match self.call(&Request::Open { path, how, attributes: Attributes::default() }) {
            Reply::Handle(handle) => handle,
            other => panic!("{other:?}"),
        }
    }

    fn download(&mut self, path: &str, size: Option<u64>) -> Result<Vec<u8>, Failed> {
        let handle = self.open(path, OpenHow::reading());
        let mut download = Download::new(handle, size);
        let mut file = BTreeMap::new();
        loop {
            download.ask(&mut self.client);
            if let Some(length) = download.done()? {
                let bytes: Vec<u8> = file.into_values().flatten().collect();
                assert_eq!(bytes.len() as u64, length);
                return Ok(bytes);
            }
            let (id, reply) = self.reply();
            if let Some((offset, data)) = download.take(id, reply)? {
                assert!(file.insert(offset, data).is_none());
            }
        }
    }
}

#[test]
fn a_file_goes_both_ways() {
    let place = tempfile::tempdir().unwrap();
    let mut pair = Pair::new(view(place.path()));
    // The server tells its limits.
    assert_eq!((pair.client.max_read(), pair.client.max_write()), (255 << 10, 255 << 10));
    assert!(pair.client.has_fsync());
    for length in [0, 1, 255 << 10, (255 << 10) + 1, 5_000_001] {
        let content: Vec<u8> = (0..length).map(|at| (at * 31 % 251) as u8).collect();
        let how = OpenHow { write: true, create: true, truncate: true, ..OpenHow::default() };
        let handle = pair.open("/file", how);
        let mut upload = Upload::new(handle.clone());
        let mut rest = Bytes::from(content.clone());
        while !rest.is_empty() || upload.is_waiting() {
            while !rest.is_empty() && upload.has_room() {
                upload.write(&mut pair.client, rest.split_to(rest.len().min(300_000)));
            }
            if upload.is_waiting() {
                let (id, reply) = pair.reply();
                upload.take(id, reply).unwrap();
                upload.send(&mut pair.client);
            }
        }
        assert_eq!(upload.written(), length);
        assert_eq!(pair.call(&Request::FSync { handle: handle.clone() }), Reply::ok());
        assert_eq!(pair.call(&Request::Close { handle }), Reply::ok());
        assert!(fs::read(place.path().join("file")).unwrap() == content);
        for size in [Some(length), None] {
            assert!(pair.download("/file", size).unwrap() == content, "{length} {size:?}");
        }
    }
}

#[test]
fn a_file_that_changed_is_told() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("file"), vec![7; 3_000_000]).unwrap();
    let mut pair = Pair::new(view(place.path()));
    for size in [2_999_999, 0, 3_000_001, 9_000_000] {
        assert_eq!(pair.download("/file", Some(size)), Err(Failed::Changed), "{size}");
        // What came late belongs to no file.
        while pair.client.next_reply().is_some() {}
        pair = Pair::new(view(place.path()));
    }
}

#[test]
fn a_new_name_replaces_where_the_server_can() {
    let place = tempfile::tempdir().unwrap();
    for name in ["a", "b"] {
        fs::write(place.path().join(name), name).unwrap();
    }
    let mut pair = Pair::new(view(place.path()));
    let request = pair.client.rename("/a".into(), "/b".into());
    assert!(matches!(request, Request::PosixRename { .. }));
    assert_eq!(pair.call(&request), Reply::ok());
    assert_eq!(fs::read(place.path().join("b")).unwrap(), b"a");
    let request = greeted().rename("/a".into(), "/b".into());
    assert!(matches!(request, Request::Rename { .. }));
}

/// Answers reads from a file in pieces of any size, in any order.
fn answer(
    content: &[u8],
    requests: &mut Vec<(u32, u64, u32)>,
    choice: usize,
    most: usize,
) -> Option<Vec<u8>> {
    if requests.is_empty() {
        return None;
    }
    let (id, offset, length) = requests.remove(choice % requests.len());
    let offset = usize::try_from(offset).unwrap();
    let reply = if offset >= content.len() {
        Reply::Status(Status::Eof.into())
    } else {
        let end = content.len().min(offset + most.min(length as usize).max(1));
        Reply::Data(Bytes::copy_from_slice(&content[offset..end]))
    };
    Some(reply.write(id))
}

/// Requests in the client's output.
fn reads(client: &mut Client, into: &mut Vec<(u32, u64, u32)>) {
    while let Some(bytes) = client.next_output() {
        let numbered = Request::parse(bytes.slice(4..)).unwrap();
        match numbered.request.unwrap() {
            Request::Read { offset, length, .. } => into.push((numbered.id, offset, length)),
            other => panic!("{other:?}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Short replies in any order give the file, and never is more under way than the limits say.
    #[test]
    fn short_replies_in_any_order_give_the_file(
        length in 0_usize..300_000,
        knows_size in any::<bool>(),
        choices in proptest::collection::vec((any::<usize>(), 1_usize..60_000), 1..50),
    ) {
        let content: Vec<u8> = (0..length).map(|at| (at * 7 % 253) as u8).collect();
        let mut client = greeted();
        let size = knows_size.then_some(length as u64);
        let mut download = Download::new("h".into(), size);
        let mut file = vec![0; length];
        let mut requests = Vec::new();
        for (choice, most) in choices.iter().cycle() {
            download.ask(&mut client);
            reads(&mut client, &mut requests);
            prop_assert!(requests.len() <= CLIENT_REQUESTS);
            let asked: usize = requests.iter().map(|(_, _, length)| *length as usize).sum();
            prop_assert!(asked <= CLIENT_WINDOW + MAX_PACKET);
            if let Some(done) = download.done().unwrap() {
                prop_assert_eq!(done, length as u64);
                break;
            }
            // A server that knows no size and answers in another order than it was asked may seem to have changed the file only
            // if it really did: it says where the end is.
            let packet = answer(&content, &mut requests, *choice, *most).unwrap();
            client.receive(&packet).unwrap();
            let (id, reply) = client.next_reply().unwrap();
            if let Some((offset, data)) = download.take(id, reply).unwrap() {
                let offset = usize::try_from(offset).unwrap();
                file[offset..offset + data.len()].copy_from_slice(&data);
            }
        }
        prop_assert!(file == content);
    }

    /// Whatever a server sends, the client holds no more than it was sent, ends with an error or goes on, and hands out only
    /// replies that belong to its requests.
    #[test]
    fn anything_from_a_server_is_survived(
        packets in proptest::collection::vec(
            (0_u8..=255, any::<bool>(), 0_u32..6, proptest::collection::vec(any::<u8>(), 0..64)),
            0..20,
        ),
        raw in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut client = greeted();
        let handle = Bytes::from_static(b"h");
        let requests = [
            Request::Read { handle: handle.clone(), offset: 0, length: 8 },
            Request::ReadDir { handle: handle.clone() },
            Request::OpenDir { path: handle.clone() },
            Request::FStat { handle: handle.clone() },
            Request::RealPath { path: handle.clone() },
            Request::Close { handle },
        ];
        for (at, request) in requests.iter().enumerate() {
            prop_assert_eq!(client.send(request) as usize, at);
        }
        let mut answered = Vec::new();
        for (kind, is_reply, id, body) in packets {
            let mut writer = Writer::packet(if is_reply { 101 + kind % 5 } else { kind });
            writer.u32(id);
            writer.raw(&body);
            if client.receive(&writer.finish()).is_err() {
                break;
            }
            while let Some((id, reply)) = client.next_reply() {
                prop_assert!(!answered.contains(&id));
                answered.push(id);
                let fits = match (&requests[id as usize], &reply) {
                    (Request::Read { .. }, Reply::Data(data)) => (1..=8).contains(&data.len()),
                    (Request::ReadDir { .. }, Reply::Names(names)) => !names.is_empty(),
                    (Request::OpenDir { .. }, Reply::Handle(_)) => true,
                    (Request::FStat { .. }, Reply::Attributes(_)) => true,
                    (Request::RealPath { .. }, Reply::Names(names)) => names.len() == 1,
                    (Request::Close { .. }, Reply::Status(_)) => true,
                    (_, Reply::Status(error)) => error.status != Status::Ok,
                    _ => false,
                };
                prop_assert!(fits, "{:?} {:?}", requests[id as usize], reply);
            }
        }
        let _ = client.receive(&raw);
        let mut fresh = Client::default();
        let _ = fresh.receive(&raw);
    }
}

#[test]
fn what_no_server_may_send_ends_the_session() {
    let data = |id, length: usize| Reply::Data(vec![1; length].into()).write(id);
    let name = Name { name: b"x".to_vec(), long: Vec::new(), attributes: Attributes::default() };
    let too_long = u32::try_from(MAX_PACKET + 1).unwrap().to_be_bytes().to_vec();
    for (what, packet, violation) in [
        ("no bytes", vec![0; 4], Violation::Length),
        ("too long", too_long, Violation::Length),
        ("a request", Request::Limits.write(0), Violation::Malformed),
        ("unasked", data(7, 1), Violation::Unasked),
        ("more than asked for", data(0, 9), Violation::Mismatch),
        ("no data", data(0, 0), Violation::Mismatch),
        ("a handle for data", Reply::Handle("h".into()).write(0), Violation::Mismatch),
        ("success without data", Reply::ok().write(0), Violation::Mismatch),
        ("no names", Reply::Names(Vec::new()).write(1), Violation::Mismatch),
        ("the end of a close", Reply::Status(Error::end()).write(2), Violation::Mismatch),
        ("two paths", Reply::Names(vec![name.clone(), name]).write(3), Violation::Mismatch),
        ("a long handle", Reply::Handle(vec![0; 257].into()).write(4), Violation::Mismatch),
    ] {
        let mut client = greeted();
        let handle = Bytes::from_static(b"h");
        client.send(&Request::Read { handle: handle.clone(), offset: 0, length: 8 });
        client.send(&Request::ReadDir { handle: handle.clone() });
        client.send(&Request::Close { handle: handle.clone() });
        client.send(&Request::RealPath { path: handle.clone() });
        client.send(&Request::OpenDir { path: handle });
        assert_eq!(client.receive(&packet), Err(violation), "{what}");
        assert_eq!(client.receive(&data(0, 8)), Err(violation), "{what}");
        assert!(client.next_reply().is_none(), "{what}");
    }
    // A reply is given once.
    let mut client = greeted();
    client.send(&Request::Read { handle: "h".into(), offset: 0, length: 8 });
    client.receive(&data(0, 8)).unwrap();
    assert_eq!(client.receive(&data(0, 8)), Err(Violation::Unasked));
}

#[test]
fn a_server_of_another_version_is_refused() {
    for first in [Reply::ok().write(0), Request::Limits.write(3)] {
        let mut client = Client::default();
        assert_eq!(client.receive(&first), Err(Violation::Version));
    }
    let mut second = Writer::packet(2);
    second.u32(2);
    assert_eq!(Client::default().receive(&second.finish()), Err(Violation::Version));
    let many: Vec<_> = (0..300).map(|_| ("a", "1")).collect();
    assert_eq!(Client::default().receive(&version(&many)), Err(Violation::Version));
}

/// PROTOCOL, section 4.8.
#[test]
fn limits_of_a_server_are_kept() {
    let limits = |values: [u64; 4]| {
        let mut writer = Writer::bare();
        values.iter().for_each(|value| writer.u64(*value));
        Reply::Extended(Bytes::from(writer.into_bytes())).write(0)
    };
    let default = 32 << 10;
    for (packet, read, write) in [
        (limits([0, 0, 0, 0]), default, default),
        (limits([256 << 10, 255 << 10, 255 << 10, 100]), 255 << 10, 255 << 10),
        (limits([34_000, 0, 1024, 0]), default, 1024),
        (limits([2048, 0, 0, 0]), 1024, 1024),
        (limits([u64::MAX; 4]), 255 << 10, 255 << 10),
        (limits([10_000, 60_000, 60_000, 0]), 10_000 - 1024, 10_000 - 1024),
        (Reply::Status(Status::OpUnsupported.into()).write(0), default, default),
    ] {
        let mut client = Client::default();
        client.receive(&version(&[("limits@openssh.com", "1")])).unwrap();
        assert!(!client.is_ready());
        let mut output = BytesMut::new();
        while let Some(bytes) = client.next_output() {
            output.extend_from_slice(&bytes);
        }
        assert!(output.ends_with(&Request::Limits.write(0)));
        client.receive(&packet).unwrap();
        assert!(client.is_ready() && client.next_reply().is_none());
        assert_eq!((client.max_read(), client.max_write()), (read, write));
    }
    let mut client = Client::default();
    client.receive(&version(&[("limits@openssh.com", "1")])).unwrap();
    let short = Reply::Extended(Bytes::from_static(b"short")).write(0);
    assert_eq!(client.receive(&short), Err(Violation::Malformed));
    // Requests for so little would be mostly overhead.
    for low in [[1, 0, 0, 0], [2047, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1023, 0]] {
        let mut client = Client::default();
        client.receive(&version(&[("limits@openssh.com", "1")])).unwrap();
        assert_eq!(client.receive(&limits(low)), Err(Violation::Limits), "{low:?}");
    }
}

/// However little a server takes at a time, a piece of a file does not become more requests than may be under way.
#[test]
fn writes_under_way_are_limited_whatever_a_server_takes_at_a_time() {
    let mut client = Client::default();
    client.receive(&version(&[("limits@openssh.com", "1")])).unwrap();
    let mut writer = Writer::bare();
    [0_u64, 1024, 1024, 0].iter().for_each(|value| writer.u64(*value));
    let limits = Reply::Extended(Bytes::from(writer.into_bytes())).write(0);
    client.receive(&limits).unwrap();
    while client.next_output().is_some() {}
    assert_eq!(client.max_write(), 1024);

    let content: Vec<u8> = (0..300_000).map(|at| (at * 31 % 251) as u8).collect();
    let (mut upload, mut got) = (Upload::new("h".into()), Vec::new());
    upload.write(&mut client, content.clone().into());
    assert_eq!(upload.written(), 300_000);
    let mut under_way = Vec::new();
    while upload.is_waiting() {
        while let Some(packet) = client.next_output() {
            let numbered = Request::parse(packet.slice(4..)).unwrap();
            let (id, request) = (numbered.id, numbered.request);
            let Ok(Request::Write { offset, data, .. }) = request else { panic!("{request:?}") };
            assert!(offset == got.len() as u64 && data.len() <= 1024);
            got.extend_from_slice(&data);
            under_way.push(id);
        }
        assert!((1..=CLIENT_REQUESTS).contains(&under_way.len()), "{}", under_way.len());
        assert!(!upload.has_room() || upload.written() == got.len() as u64);
        let id = under_way.swap_remove(under_way.len() / 2);
        client.receive(&Reply::ok().write(id)).unwrap();
        let (id, reply) = client.next_reply().unwrap();
        upload.take(id, reply).unwrap();
        upload.send(&mut client);
    }
    assert!(got == content);
}
