//! The formats: what is written is read back, and nothing else is accepted.

use bytes::Bytes;
use outlast_sftp::attributes::Attributes;
use outlast_sftp::error::{Error, Status};
use outlast_sftp::reply::{Name, Reply, read_version, version};
use outlast_sftp::request::{EXTENSIONS, Request, hello, write_hello};
use outlast_sftp::volume::OpenHow;
use proptest::prelude::*;

fn string() -> impl Strategy<Value = Bytes> {
    proptest::collection::vec(any::<u8>(), 0..40).prop_map(Bytes::from)
}

fn attributes() -> impl Strategy<Value = Attributes> {
    (
        any::<Option<u64>>(),
        any::<Option<(u32, u32)>>(),
        any::<Option<u32>>(),
        any::<Option<(u32, u32)>>(),
    )
        .prop_map(|(size, owner, mode, times)| Attributes { size, owner, mode, times })
}

fn how() -> impl Strategy<Value = OpenHow> {
    any::<[bool; 6]>().prop_map(|[read, write, append, create, truncate, exclusive]| OpenHow {
        read,
        write,
        append,
        create,
        truncate,
        exclusive,
        mode: None,
    })
}

/// Every request.
fn request() -> impl Strategy<Value = Request> {
    let strings = (string(), string());
    let numbers = (any::<u64>(), any::<u64>(), any::<u64>());
    let ids = || proptest::collection::vec(any::<u32>(), 0..5);
    (0..29, strings, numbers, attributes(), how(), ids(), ids()).prop_map(
        |(kind, (a, b), (n, m, o), attributes, how, users, groups)| match kind {
            0 => {
                Request::Open { path: a, how: OpenHow { mode: attributes.mode, ..how }, attributes }
            }
            1 => Request::Close { handle: a },
            2 => Request::Read { handle: a, offset: n, length: m as u32 },
            3 => Request::Write { handle: a, offset: n, data: b },
            4 => Request::LStat { path: a },
            5 => Request::FStat { handle: a },
            6 => Request::SetStat { path: a, attributes },
            7 => Request::FSetStat { handle: a, attributes },
            8 => Request::OpenDir { path: a },
            9 => Request::ReadDir { handle: a },
            10 => Request::Remove { path: a },
            11 => Request::MkDir { path: a, attributes },
            12 => Request::RmDir { path: a },
            13 => Request::RealPath { path: a },
            14 => Request::Stat { path: a },
            15 => Request::Rename { from: a, to: b },
            16 => Request::ReadLink { path: a },
            17 => Request::Symlink { target: a, link: b },
            18 => Request::PosixRename { from: a, to: b },
            19 => Request::StatVfs { path: a },
            20 => Request::FStatVfs { handle: a },
            21 => Request::HardLink { from: a, to: b },
            22 => Request::FSync { handle: a },
            23 => Request::LSetStat { path: a, attributes },
            24 => Request::Limits,
            25 => Request::ExpandPath { path: a },
            26 => Request::CopyData { from: a, offset: n, length: m, to: b, to_offset: o },
            27 => Request::HomeDirectory { user: a },
            _ => Request::UsersGroups { users, groups },
        },
    )
}

fn reply() -> impl Strategy<Value = Reply> {
    let name = (string(), string(), attributes()).prop_map(|(name, long, attributes)| Name {
        name: name.to_vec(),
        long: long.to_vec(),
        attributes,
    });
    prop_oneof![
        (0..9_u32, "[a-z ]{0,20}")
            .prop_map(|(code, text)| Reply::Status(Error::new(Status::of_code(code), text))),
        string().prop_map(Reply::Handle),
        string().prop_map(Reply::Data),
        proptest::collection::vec(name, 0..4).prop_map(Reply::Names),
        attributes().prop_map(Reply::Attributes),
        string().prop_map(Reply::Extended),
    ]
}

fn packet(written: Vec<u8>) -> Bytes {
    let length = u32::from_be_bytes(*written.first_chunk().unwrap()) as usize;
    assert_eq!(length, written.len() - 4);
    Bytes::from(written).slice(4..)
}

proptest! {
    #[test]
    fn a_request_is_read_as_it_was_written(request in request(), id in any::<u32>()) {
        let packet = packet(request.write(id));
        let numbered = Request::parse(packet.clone()).unwrap();
        prop_assert_eq!(numbered.id, id);
        prop_assert_eq!(numbered.request.unwrap(), request.clone());
        // Cut anywhere, it is no request; with the identifier gone, not even an answer is possible. An extended request whose
        // name is cut off is none either.
        for end in 0..packet.len() {
            match Request::parse(packet.slice(..end)) {
                Ok(numbered) => prop_assert!(numbered.request.is_err(), "{} of {:?}", end, &request),
                Err(_) => prop_assert!(end < 5),
            }
        }
        // What follows it is ignored, as by OpenSSH.
        let longer = [&packet[..], b"x"].concat();
        prop_assert_eq!(Request::parse(longer.into()).unwrap().request.unwrap(), request);
    }

    #[test]
    fn a_reply_is_read_as_it_was_written(reply in reply(), id in any::<u32>()) {
        let packet = packet(reply.write(id));
        prop_assert_eq!(Reply::parse(packet).unwrap(), (id, reply));
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let bytes = Bytes::from(bytes);
        let _ = (hello(bytes.clone()), Request::parse(bytes.clone()), Reply::parse(bytes.clone()));
        let _ = read_version(bytes);
    }
}

/// The bytes of requests as OpenSSH sends them, written by hand from the draft and from PROTOCOL.
#[test]
fn requests_have_the_bytes_of_the_draft() {
    let open = Request::Open {
        path: Bytes::from_static(b"/a"),
        how: OpenHow {
            write: true,
            create: true,
            truncate: true,
            mode: Some(0o644),
            ..OpenHow::default()
        },
        attributes: Attributes { mode: Some(0o644), ..Attributes::default() },
    };
    let expected = b"\0\0\0\x17\x03\0\0\0\x07\0\0\0\x02/a\0\0\0\x1a\0\0\0\x04\0\0\x01\xa4";
    assert_eq!(open.write(7), expected);
    let symlink =
        Request::Symlink { target: Bytes::from_static(b"t"), link: Bytes::from_static(b"l") };
    assert_eq!(symlink.write(1), b"\0\0\0\x0f\x14\0\0\0\x01\0\0\0\x01t\0\0\0\x01l");
    let fsync = Request::FSync { handle: Bytes::from_static(b"h") };
    assert_eq!(fsync.write(2), b"\0\0\0\x1f\xc8\0\0\0\x02\0\0\0\x11fsync@openssh.com\0\0\0\x01h");
    assert_eq!(write_hello(3), b"\0\0\0\x05\x01\0\0\0\x03");
    // Extended attributes are skipped.
    let bytes =
        b"\x09\0\0\0\x01\0\0\0\x01f\x80\0\0\x04\0\0\x01\xff\0\0\0\x01\0\0\0\x01n\0\0\0\x02vv";
    let read = Request::parse(Bytes::from_static(bytes)).unwrap().request.unwrap();
    let attributes = Attributes { mode: Some(0o777), ..Attributes::default() };
    assert_eq!(read, Request::SetStat { path: Bytes::from_static(b"f"), attributes });
}

#[test]
fn unknown_requests_and_extensions_are_told_apart_from_broken_ones() {
    let unknown = |bytes: &'static [u8]| Request::parse(Bytes::from_static(bytes)).unwrap().request;
    assert_eq!(unknown(b"\x63\0\0\0\x01"), Ok(Request::Unknown { kind: 99 }));
    assert_eq!(unknown(b"\xc8\0\0\0\x01\0\0\0\x01x\0\0\0"), Ok(Request::Unknown { kind: 200 }));
    assert!(unknown(b"\xc8\0\0\0\x01\0\0\0\x02x").is_err());
    // More extended attributes than bytes.
    let bytes = b"\x09\0\0\0\x01\0\0\0\x01f\x80\0\0\0\xff\xff\xff\xff";
    assert!(unknown(bytes).is_err());
    // A list of identifiers that is no multiple of four bytes.
    let odd = b"\xc8\0\0\0\x01\0\0\0\x1eusers-groups-by-id@openssh.com\0\0\0\x03abc\0\0\0\0";
    assert!(unknown(odd).is_err());
}

#[test]
fn the_greeting_names_the_extensions() {
    let (number, extensions) = read_version(packet(version(|_| true))).unwrap();
    let names: Vec<_> = extensions
        .iter()
        .map(|(name, version)| {
            (std::str::from_utf8(name).unwrap(), std::str::from_utf8(version).unwrap())
        })
        .collect();
    assert_eq!((number, &*names), (3, EXTENSIONS));
}

#[test]
fn the_greeting_leaves_out_what_is_refused() {
    let offered = |kind: &str| kind != "limits" && kind != "copy-data";
    let (_, extensions) = read_version(packet(version(offered))).unwrap();
    let has = |name: &[u8]| extensions.iter().any(|(found, _)| found == name);
    assert!(!has(b"limits@openssh.com") && !has(b"copy-data") && has(b"fsync@openssh.com"));
    assert_eq!(extensions.len(), EXTENSIONS.len() - 2);
}
