//! What the door of SFTP refuses, and when it ends a session: silent clients, too many connections, weaker keys, events that cannot be
//! recorded.

use std::io::{ErrorKind, Read};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use outlast_ledger::Observe;
use outlast_negotiate::Mode;
use outlast_net::sftp::Settings;
use outlast_sftp::attributes::Attributes;
use outlast_sftp::error::Status;
use outlast_sftp::reply::Reply;
use outlast_sftp::request::Request as Asks;
use outlast_ssh::{Algorithms, Reason};
use outlast_testing::until;

use crate::sftp_door::{Door, Ends, PATIENCE, connect_from, send};

/// Interval of a server's questions for a sign of life. A session ends when three of them and another interval have passed without one.
const INTERVAL: Duration = Duration::from_millis(500);

/// Connects from an address of this machine. `None` if the server closes the connection without a greeting.
fn connect(door: &Door, from: [u8; 4]) -> Option<TcpStream> {
    let mut stream = connect_from(door.runtime, from, door.address);
    let mut greeting = [0; 4];
    match stream.read_exact(&mut greeting) {
        Ok(()) => {
            assert_eq!(&greeting, b"SSH-");
            Some(stream)
        }
        Err(error) => {
            assert_ne!(error.kind(), ErrorKind::WouldBlock, "the server does nothing");
            None
        }
    }
}

/// A client that sends something stays, although it reads no question and so answers none, as one whose path takes minutes for
/// what is on its way already.
#[test]
fn a_client_that_goes_on_is_alive() {
    const PAUSES: u32 = 60;
    let door = Door::open(|settings| Settings { keepalive: INTERVAL, ..settings });
    let mut session = door.login();
    for _ in 0..PAUSES {
        session.sftp.send(&Asks::RealPath { path: Bytes::from_static(b".") });
        session.pump();
        send(&mut session.ssh, &mut session.stream);
        std::thread::sleep(INTERVAL / 10);
    }
    for _ in 0..PAUSES {
        let (_, reply) = session.reply();
        assert!(matches!(reply, Reply::Names(_)), "{reply:?}");
    }
}

#[test]
fn a_client_that_stays_silent_is_let_go() {
    let (ends, ended) = std::sync::mpsc::channel();
    let observer: Arc<dyn Observe> = Arc::new(Ends(Mutex::new(ends)));
    let door = Door::open(|settings| Settings {
        observer: Some(observer),
        keepalive: INTERVAL,
        ..settings
    });
    let mut session = door.login();
    ended.recv_timeout(PATIENCE).expect("the session goes on");
    let end = session.end();
    assert!(end.by_peer);
    assert_eq!((end.reason, end.message.as_str()), (Reason::ConnectionLost, "you did not answer"));
}

/// A client that answers, and does nothing else, stays.
#[test]
fn answers_are_signs_of_life() {
    let door = Door::open(|settings| Settings { keepalive: INTERVAL, ..settings });
    let mut session = door.login();
    session.stream.set_read_timeout(Some(INTERVAL / 10)).unwrap();
    let mut buffer = [0; 4096];
    for _ in 0..60 {
        if let Ok(read) = session.stream.read(&mut buffer) {
            assert!(read > 0, "the server has closed the connection");
            session.ssh.receive(&buffer[..read], 0);
            while session.ssh.poll().is_some() {}
            send(&mut session.ssh, &mut session.stream);
        }
    }
    session.stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let reply = session.call(&Asks::RealPath { path: Bytes::from_static(b".") });
    assert!(matches!(reply, Reply::Names(_)), "{reply:?}");
}

/// A client that began to exchange keys, and is slow to go on, has more time than one that is silent.
#[test]
fn an_exchange_of_keys_is_no_silence() {
    let door = Door::open(|settings| Settings { keepalive: INTERVAL, ..settings });
    let mut session = door.login();
    session.ssh.rekey();
    send(&mut session.ssh, &mut session.stream);
    std::thread::sleep(6 * INTERVAL);
    let reply = session.call(&Asks::RealPath { path: Bytes::from_static(b".") });
    assert!(matches!(reply, Reply::Names(_)), "{reply:?}");
}

#[test]
fn an_address_has_its_number_of_connections() {
    let door = Door::open(|settings| Settings { connections_by_peer: 2, ..settings });
    let sessions = [door.login(), door.login()];
    assert!(connect(&door, [127, 0, 0, 1]).is_none());
    // Others have their own.
    assert!(connect(&door, [127, 0, 0, 2]).is_some());
    drop(sessions);
    until("the address has room again", || connect(&door, [127, 0, 0, 1]).is_some());
}

/// One address cannot take all connections, however few there are.
#[test]
fn an_address_has_its_part_of_few_connections() {
    let few = |settings: Settings| settings.with_connections(16);
    // Each of the two limits that follow the number, without the other.
    let before_login = |settings| Settings { connections_by_peer: 16, ..few(settings) };
    let in_all = |settings| Settings { startups: (16, 16), ..few(settings) };
    for door in [Door::open(before_login), Door::open(in_all), Door::open(few)] {
        let silent: Vec<_> = (0..16).filter_map(|_| connect(&door, [127, 0, 0, 2])).collect();
        assert_eq!(silent.len(), 2);
        door.login();
    }
}

/// What a user's sessions have open counts together, and leaves some to others.
#[test]
fn a_user_has_a_number_of_open_files() {
    let door = Door::open(|settings| Settings { handles: 24, ..settings });
    let opens = Asks::OpenDir { path: Bytes::from_static(b".") };
    let mut sessions = [door.login(), door.login()];
    let mut handles = Vec::new();
    for number in 0..3 {
        let Reply::Handle(handle) = sessions[number % 2].call(&opens) else { panic!("{number}") };
        handles.push(handle);
    }
    for session in &mut sessions {
        let reply = session.call(&opens);
        let Reply::Status(error) = reply else { panic!("{reply:?}") };
        assert_eq!(error.status, Status::Failure);
        assert!(error.text.contains("close some"), "{}", error.text);
    }
    // One that is closed, or whose session has ended, can be opened again.
    let close = Asks::Close { handle: handles[0].clone() };
    assert!(matches!(sessions[0].call(&close), Reply::Status(error) if error.status == Status::Ok));
    assert!(matches!(sessions[1].call(&opens), Reply::Handle(_)));
    let [mut first, second] = sessions;
    drop(second);
    until("the other session's are closed", || matches!(first.call(&opens), Reply::Handle(_)));
}

#[test]
fn a_full_door_opens_when_a_client_leaves() {
    let door = Door::open(|settings| Settings { startups: (2, 3), ..settings });
    // They do not count, because they have logged in.
    let _sessions = [door.login(), door.login(), door.login()];
    let mut waiting: Vec<_> =
        (2..5).map(|last| connect(&door, [127, 0, 0, last]).expect("room")).collect();
    assert!(connect(&door, [127, 0, 0, 5]).is_none());
    waiting.pop();
    until("there is room again", || connect(&door, [127, 0, 0, 5]).is_some());
}

/// Silent connections of two addresses, one after the other until no more are taken, leave room for a third address.
#[test]
fn two_addresses_do_not_close_the_door() {
    let door = Door::open(|settings| Settings { startups: (8, 16), ..settings });
    let flood = |from: [u8; 4]| -> Vec<TcpStream> {
        (0..24).filter_map(|_| connect(&door, from)).collect()
    };
    let (first, second) = (flood([127, 0, 0, 2]), flood([127, 0, 0, 3]));
    // As many as begin before any is dropped, then none; and a share.
    assert_eq!((first.len(), second.len()), (8, 2));
    for _ in 0..8 {
        door.login();
    }
}

/// `SSH_MSG_KEXINIT` (RFC 4253, section 7.1) of a client that has one method.
fn kexinit(method: &'static str) -> Vec<u8> {
    let Algorithms { ciphers, macs, host_keys, .. } = Algorithms::all();
    let none = vec!["none"];
    let lists = [
        vec![method],
        host_keys,
        ciphers.clone(),
        ciphers,
        macs.clone(),
        macs,
        none.clone(),
        none,
        Vec::new(),
        Vec::new(),
    ];
    let mut payload = vec![20];
    payload.extend([0; 16]);
    for list in lists {
        let list = list.join(",");
        payload.extend((list.len() as u32).to_be_bytes());
        payload.extend(list.bytes());
    }
    // No guess follows.
    payload.extend([0; 5]);
    payload
}

/// A session that is recorded as post-quantum gets no classical keys later, whether the server's list depends on the client's
/// first one (`prefer`) or not.
#[test]
fn new_keys_are_no_weaker_than_the_first_ones() {
    for (mode, message) in [
        (Mode::Prefer, "no common key exchange method"),
        (Mode::Allow, "the new keys would not be post-quantum as the first ones"),
    ] {
        let door = Door::open(|settings| Settings { mode: Some(mode), ..settings });
        let mut session = door.login();
        session.ssh.send_raw(&kexinit("curve25519-sha256"));
        let end = session.end();
        assert!(end.by_peer, "{mode:?}: {end:?}");
        assert_eq!((end.reason, end.message.as_str()), (Reason::KeyExchangeFailed, message));
    }
}

/// A change whose event cannot be written is not acknowledged, and nothing more is done in the session.
#[test]
fn a_session_ends_if_its_event_cannot_be_recorded() {
    let door = Door::open(|settings| settings);
    let mut session = door.login();
    let folder = |name: &'static str| Asks::MkDir {
        path: Bytes::from_static(name.as_bytes()),
        attributes: Attributes::default(),
    };
    let reply = session.call(&folder("before"));
    assert!(matches!(&reply, Reply::Status(error) if error.status == Status::Ok), "{reply:?}");
    door.store.fail_writes(true);
    session.sftp.send(&folder("after"));
    let end = session.end();
    assert!(end.by_peer);
    assert_eq!(end.message, "the server cannot record what you do");
    let reply = session.sftp.next_reply();
    assert!(reply.is_none(), "{reply:?}");
}
