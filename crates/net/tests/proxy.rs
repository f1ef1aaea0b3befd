//! Bytes through the proxy: ends of every kind, back-pressure, PROXY protocol, client certificates, and changes at
//! run time.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail and print")]

use crate::proxied;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use outlast_net::client_auth::Mode;
use outlast_net::proxy::protocol::Version;
use outlast_net::proxy::{Balance, HealthCheck, Protocol, Proxy, ProxyError, Settings};
use ppp::v2;
use proxied::{World, any_port, behind, nobody, server_behind, settings, soon, start};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

fn tcp(world: &World, backends: Vec<outlast_net::proxy::Backend>) -> Settings {
    settings(world, Protocol::Tcp, backends)
}

/// Answers each connection with its name and the bytes it received.
fn echo(listener: TcpListener, name: &'static str) {
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                stream.write_all(name.as_bytes()).await.unwrap();
                let (mut from, mut to) = stream.split();
                let _ = tokio::io::copy(&mut from, &mut to).await;
            });
        }
    });
}

async fn said(world: &World, to: SocketAddr) -> std::io::Result<String> {
    let mut stream = world.connect_with(to, world.config(&[], None), &[]).await?;
    stream.write_all(b".").await?;
    stream.shutdown().await?;
    let mut said = String::new();
    stream.read_to_string(&mut said).await?;
    Ok(said)
}

#[tokio::test]
async fn each_direction_ends_by_itself() {
    let world = World::new();
    let (server, backend) = server_behind().await;
    let (_proxy, address) = start(tcp(&world, vec![backend]));
    soon(async {
        // The client ends first.
        let mut client = world.connect(address).await;
        let (mut behind, _) = server.accept().await.unwrap();
        client.write_all(b"question").await.unwrap();
        client.shutdown().await.unwrap();
        let mut got = Vec::new();
        behind.read_to_end(&mut got).await.unwrap();
        assert_eq!(got, b"question");
        tokio::time::sleep(Duration::from_millis(100)).await;
        behind.write_all(b"answer").await.unwrap();
        drop(behind);
        got.clear();
        // An end without close_notify would be an error here.
        client.read_to_end(&mut got).await.unwrap();
        assert_eq!(got, b"answer");

        // The server ends first.
        let mut client = world.connect(address).await;
        let (mut behind, _) = server.accept().await.unwrap();
        behind.write_all(b"greeting").await.unwrap();
        behind.shutdown().await.unwrap();
        got.clear();
        client.read_to_end(&mut got).await.unwrap();
        assert_eq!(got, b"greeting");
        client.write_all(b"still here").await.unwrap();
        client.shutdown().await.unwrap();
        got.clear();
        behind.read_to_end(&mut got).await.unwrap();
        assert_eq!(got, b"still here");
    })
    .await;
}

#[tokio::test]
async fn what_breaks_off_is_not_taken_for_an_end() {
    let world = World::new();
    let (server, backend) = server_behind().await;
    let (_proxy, address) = start(tcp(&world, vec![backend]));
    soon(async {
        let mut client = world.connect(address).await;
        let (mut behind, _) = server.accept().await.unwrap();
        client.write_all(b"half of it").await.unwrap();
        let mut got = [0; 10];
        behind.read_exact(&mut got).await.unwrap();
        // FIN without close_notify.
        client.get_mut().0.shutdown().await.unwrap();
        let error = behind.read(&mut got).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);

        let mut client = world.connect(address).await;
        let (mut behind, _) = server.accept().await.unwrap();
        behind.write_all(b"half of it").await.unwrap();
        client.read_exact(&mut got).await.unwrap();
        behind.set_zero_linger().unwrap();
        drop(behind);
        let error = client.read(&mut got).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
    })
    .await;
}

/// A server sends everything and closes while the client is still sending: the client receives all of it.
#[tokio::test]
async fn the_last_words_of_a_server_arrive() {
    let world = World::new();
    let (server, backend) = server_behind().await;
    let (_proxy, address) = start(tcp(&world, vec![backend]));
    soon(async {
        let client = world.connect(address).await;
        let (mut behind, _) = server.accept().await.unwrap();
        let (mut from, mut to) = tokio::io::split(client);
        let sending = tokio::spawn(async move {
            let piece = vec![7; 64 * 1024];
            while to.write_all(&piece).await.is_ok() {}
        });
        let mut some = vec![0; 100_000];
        behind.read_exact(&mut some).await.unwrap();
        let words = vec![9; 300_000];
        behind.write_all(&words).await.unwrap();
        behind.shutdown().await.unwrap();
        // It reads a little more, as well-behaved servers do, and closes.
        behind.read_exact(&mut some).await.unwrap();
        let mut got = Vec::new();
        from.read_to_end(&mut got).await.unwrap();
        assert!(got == words, "{} bytes", got.len());
        drop(behind);
        sending.abort();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_reads_slowly_slows_the_sender() {
    const WHOLE: usize = 64 << 20;
    let world = World::new();
    let (server, backend) = server_behind().await;
    let (_proxy, address) = start(tcp(&world, vec![backend]));
    let pattern: Vec<u8> = (0..=250).cycle().take(251 * 1000).collect();
    soon(async {
        for upward in [true, false] {
            let client = world.connect(address).await;
            let (behind, _) = server.accept().await.unwrap();
            let (client_from, client_to) = tokio::io::split(client);
            let (behind_from, behind_to) = tokio::io::split(behind);
            type Ends = (
                Box<dyn tokio::io::AsyncRead + Send + Unpin>,
                Box<dyn tokio::io::AsyncWrite + Send + Unpin>,
            );
            let (mut from, mut to): Ends = match upward {
                true => (Box::new(behind_from), Box::new(client_to)),
                false => (Box::new(client_from), Box::new(behind_to)),
            };
            let sent = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
            let (count, pieces) = (sent.clone(), pattern.clone());
            let sending = tokio::spawn(async move {
                let mut left = WHOLE;
                while left > 0 {
                    let piece = &pieces[..pieces.len().min(left)];
                    to.write_all(piece).await.unwrap();
                    left -= piece.len();
                    count.fetch_add(piece.len(), std::sync::atomic::Ordering::SeqCst);
                }
                to.shutdown().await.unwrap();
                to
            });
            tokio::time::sleep(Duration::from_millis(700)).await;
            // As much as the system's buffers hold, and no more.
            let before = sent.load(std::sync::atomic::Ordering::SeqCst);
            assert!(before < WHOLE / 2, "{before} bytes went to somebody who reads nothing");
            let mut got = Vec::with_capacity(WHOLE);
            from.read_to_end(&mut got).await.unwrap();
            assert_eq!(got.len(), WHOLE);
            assert!(got.chunks(pattern.len()).all(|chunk| chunk == &pattern[..chunk.len()]));
            sending.await.unwrap();
        }
    })
    .await;
}

#[tokio::test]
async fn idle_connections_are_closed() {
    let world = World::new();
    let (server, backend) = server_behind().await;
    let mut settings = tcp(&world, vec![backend]);
    const IDLE: Duration = Duration::from_secs(2);
    settings.idle = IDLE;
    let (_proxy, address) = start(settings);
    soon(async {
        let mut client = world.connect(address).await;
        let (mut behind, _) = server.accept().await.unwrap();
        let mut last = std::time::Instant::now();
        for _ in 0..8 {
            tokio::time::sleep(IDLE / 6).await;
            let written = client.write_all(b"x").await;
            let read = behind.read_exact(&mut [0]).await;
            // If the machine stood still for this long, the connection was idle.
            if last.elapsed() >= IDLE / 2 && (written.is_err() || read.is_err()) {
                return;
            }
            written.unwrap();
            read.unwrap();
            last = std::time::Instant::now();
        }
        assert!(client.read(&mut [0]).await.is_err());
        assert!(last.elapsed() >= IDLE / 2);
    })
    .await;
}

#[tokio::test]
async fn a_proxy_in_front_says_who_the_client_is() {
    let world = World::new();
    let (server, backend) = server_behind().await;
    let mut settings = tcp(&world, vec![backend]);
    settings.proxies = vec!["127.0.0.0/8".parse().unwrap()];
    settings.connecting.announce = Some(Version::V1);
    let (_proxy, address) = start(settings);
    let v1 = b"PROXY TCP4 192.0.2.1 192.0.2.2 5000 443\r\n".to_vec();
    let v2 = v2::Builder::with_addresses(
        v2::Version::Two | v2::Command::Proxy,
        v2::Protocol::Stream,
        ("[2001:db8::1]:5000".parse::<SocketAddr>().unwrap(), "[2001:db8::2]:443".parse().unwrap()),
    );
    let v2 = v2.write_tlv(v2::Type::NoOp, &[0; 300]).unwrap().build().unwrap();
    let local = [v2::PROTOCOL_PREFIX, &[0x20, 0, 0, 0]].concat();
    soon(async {
        for (header, expected) in [
            (v1, "PROXY TCP4 192.0.2.1 192.0.2.2 5000 443\r\n"),
            (v2, "PROXY TCP6 2001:db8::1 2001:db8::2 5000 443\r\n"),
            (local, "PROXY TCP4 127.0.0.1 127.0.0.1 "),
        ] {
            let connecting = world.connect_with(address, world.config(&[], None), &header);
            let _client = connecting.await.unwrap();
            let (mut behind, _) = server.accept().await.unwrap();
            let mut got = vec![0; expected.len()];
            behind.read_exact(&mut got).await.unwrap();
            assert_eq!(String::from_utf8_lossy(&got), expected);
        }
        // A trusted proxy must send a header.
        let silent = world.connect_with(address, world.config(&[], None), &[]).await;
        assert!(silent.is_err());
    })
    .await;
}

#[tokio::test]
async fn nobody_else_does() {
    let world = World::new();
    let (server, backend) = server_behind().await;
    echo(server, "hello");
    let mut settings = tcp(&world, vec![backend]);
    settings.proxies = vec!["192.0.2.0/24".parse().unwrap()];
    let (_proxy, address) = start(settings);
    soon(async {
        let header = b"PROXY TCP4 192.0.2.1 192.0.2.2 5000 443\r\n";
        assert!(world.connect_with(address, world.config(&[], None), header).await.is_err());
        assert_eq!(said(&world, address).await.unwrap(), "hello.");
    })
    .await;
}

/// Values of a header's TLVs.
fn values(bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut out = Vec::new();
    let mut rest = bytes;
    while let [kind, high, low, more @ ..] = rest {
        let (value, after) = more.split_at(usize::from(u16::from_be_bytes([*high, *low])));
        out.push((*kind, value.to_vec()));
        rest = after;
    }
    assert!(rest.is_empty());
    out
}

#[tokio::test]
async fn the_server_behind_is_told_of_tls() {
    let world = World::new();
    let (server, backend) = server_behind().await;
    let mut settings = settings(&world, Protocol::Postgres, vec![backend]);
    settings.protocol = Protocol::Tcp;
    settings.door = Some(world.door(Protocol::Postgres, Some(Mode::Request)));
    settings.connecting.announce = Some(Version::V2);
    let (_proxy, address) = start(settings);
    soon(async {
        for name in [Some("robot-1"), None] {
            let party = name.map(|name| world.client(name));
            let config = world.config(&["postgresql"], party.as_ref());
            let client = world.connect_with(address, config, &[]).await.unwrap();
            let (mut behind, _) = server.accept().await.unwrap();
            let mut got = vec![0; 16];
            behind.read_exact(&mut got).await.unwrap();
            let len = u16::from_be_bytes([got[14], got[15]]);
            got.resize(16 + usize::from(len), 0);
            behind.read_exact(&mut got[16..]).await.unwrap();
            let header = v2::Header::try_from(got.as_slice()).unwrap();
            let own = client.get_ref().0.local_addr().unwrap();
            assert_eq!(header.addresses, (own, address).into());
            let all = values(header.tlv_bytes());
            assert_eq!(all[0], (0x01, b"postgresql".to_vec()));
            assert_eq!(all[1], (0x02, b"localhost".to_vec()));
            let (kind, ssl) = &all[2];
            assert_eq!((*kind, all.len()), (0x20, 3));
            let seen = if name.is_some() { [7, 0, 0, 0, 0] } else { [1, 0, 0, 0, 1] };
            assert_eq!(ssl[..5], seen);
            let within = values(&ssl[5..]);
            let value = |kind| {
                let found = within.iter().find(|(known, _)| *known == kind);
                found.map(|(_, value)| String::from_utf8(value.clone()).unwrap())
            };
            assert_eq!(value(0x21).as_deref(), Some("TLSv1.3"));
            assert_eq!(value(0x22).as_deref(), name);
            assert!(value(0x23).unwrap().starts_with("TLS_AES_"));
            assert_eq!(value(0x26).as_deref(), Some("X25519MLKEM768"));
        }
    })
    .await;
}

#[tokio::test]
async fn only_clients_with_a_certificate_come_through() {
    let world = World::new();
    let (server, backend) = server_behind().await;
    echo(server, "hello");
    let mut settings = tcp(&world, vec![backend]);
    settings.door = Some(world.door(Protocol::Tcp, Some(Mode::Require)));
    let (_proxy, address) = start(settings);
    soon(async {
        let elsewhere = World::new();
        for (party, lets_in) in [
            (Some(world.client("robot-1")), true),
            (Some(elsewhere.client("robot-1")), false),
            (None, false),
        ] {
            let config = world.config(&[], party.as_ref());
            let reading = async {
                let mut stream = world.connect_with(address, config, &[]).await?;
                stream.read_exact(&mut [0; 5]).await
            };
            assert_eq!(reading.await.is_ok(), lets_in);
        }
    })
    .await;
}

#[tokio::test]
async fn servers_take_turns_and_one_that_is_gone_is_passed_over() {
    let world = World::new();
    let (a, behind_a) = server_behind().await;
    let (b, behind_b) = server_behind().await;
    echo(a, "a");
    echo(b, "b");
    let (_proxy, address) =
        start(tcp(&world, vec![behind_a.clone(), behind(nobody()), behind_b.clone()]));
    soon(async {
        let mut turns = Vec::new();
        for _ in 0..9 {
            turns.push(said(&world, address).await.unwrap());
        }
        let count = |name: &str| turns.iter().filter(|said| *said == name).count();
        assert_eq!(count("a.") + count("b."), 9, "{turns:?}");
        assert!(count("a.").min(count("b.")) >= 3, "{turns:?}");

        // The backend with the fewest connections: never the one with the held connections.
        let mut settings = tcp(&world, vec![behind_a, behind_b]);
        settings.connecting.balance = Balance::LeastConnections;
        let (_proxy, address) = start(settings);
        let mut held = world.connect(address).await;
        let mut name = [0];
        held.read_exact(&mut name).await.unwrap();
        let other = if name == *b"a" { "b." } else { "a." };
        for _ in 0..4 {
            assert_eq!(said(&world, address).await.unwrap(), other);
            // The end of the previous connection is noticed.
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        // No backend at all.
        let (_proxy, address) = start(tcp(&world, vec![behind(nobody())]));
        assert!(said(&world, address).await.is_err());
    })
    .await;
}

#[tokio::test]
async fn health_checks_take_a_server_out_and_back() {
    let world = World::new();
    let (good, behind_good) = server_behind().await;
    echo(good, "good");
    // It accepts but does not respond over HTTP, which only the health check notices.
    let (ill, behind_ill) = server_behind().await;
    let slot = ill.local_addr().unwrap();
    let task = tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((stream, _)) = ill.accept().await {
            held.push(stream);
        }
    });
    let mut settings = tcp(&world, vec![behind_good.clone(), behind_ill]);
    settings.health = Some(HealthCheck {
        interval: Duration::from_millis(50),
        timeout: Duration::from_millis(300),
        rise: 2,
        fall: 2,
        ..HealthCheck::default()
    });
    let (_proxy, address) = start(settings);
    soon(async {
        task.abort();
        let _ = task.await;
        // Connections before the first check also end up at the other backend.
        for _ in 0..4 {
            assert_eq!(said(&world, address).await.unwrap(), "good.");
        }
        echo(TcpListener::bind(slot).await.unwrap(), "back");
        while said(&world, address).await.unwrap() != "back." {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        while said(&world, address).await.unwrap() != "good." {}
    })
    .await;
}

#[tokio::test]
async fn settings_change_under_open_connections() {
    let world = World::new();
    let (a, behind_a) = server_behind().await;
    let (b, behind_b) = server_behind().await;
    echo(a, "a");
    echo(b, "b");
    let serial = |client: &tokio_rustls::client::TlsStream<tokio::net::TcpStream>| {
        client.get_ref().1.peer_certificates().unwrap()[0].to_vec()
    };
    let named = |name: &str, settings: Settings| Settings { name: name.into(), ..settings };
    soon(async {
        let mut proxy =
            Proxy::start(vec![named("one", tcp(&world, vec![behind_a.clone()]))]).unwrap();
        let address = proxy.addresses()[0].1;
        let mut open = world.connect(address).await;
        open.read_exact(&mut [0]).await.unwrap();

        // Another certificate, another backend and one more listener.
        let renewed = world.renewed();
        let changed = || {
            let door = Some(world.door_with(&renewed, Protocol::Tcp, None));
            named("one", Settings { door, ..tcp(&world, vec![behind_b.clone()]) })
        };
        let second = named("two", tcp(&world, vec![behind_a.clone()]));
        proxy.reload(vec![changed(), second]).unwrap();
        assert_eq!(proxy.addresses().len(), 2);
        assert_eq!(said(&world, address).await.unwrap(), "b.");
        let newer = world.connect(address).await;
        assert_ne!(serial(&newer), serial(&open));

        // Unusable settings change nothing.
        let taken = TcpListener::bind(any_port()).await.unwrap();
        let at = taken.local_addr().unwrap();
        let error =
            proxy.reload(vec![Settings { listen: at, ..tcp(&world, vec![behind_a.clone()]) }]);
        assert!(matches!(error, Err(ProxyError::Listen { .. })));
        let error = proxy.reload(vec![named("one", tcp(&world, Vec::new()))]);
        assert!(matches!(error, Err(ProxyError::NoBackend(_))));
        let error = proxy.reload(vec![changed(), changed()]);
        assert!(matches!(error, Err(ProxyError::Twice(_))));
        assert_eq!(proxy.addresses().len(), 2);
        assert_eq!(said(&world, address).await.unwrap(), "b.");

        // The listener is closed, but its connection is not.
        proxy.reload(vec![named("two", tcp(&world, vec![behind_a.clone()]))]).unwrap();
        while tokio::net::TcpStream::connect(address).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        open.write_all(b"!").await.unwrap();
        let mut got = [0];
        open.read_exact(&mut got).await.unwrap();
        assert_eq!(&got, b"!");

        // Shutdown: open connections get their time, and no more.
        let begun = std::time::Instant::now();
        let stopping = tokio::spawn(proxy.stop(Duration::from_secs(3)));
        tokio::time::sleep(Duration::from_millis(200)).await;
        let before = begun.elapsed();
        let outcome = open.write_all(b"?").await;
        let outcome = outcome.and(open.read_exact(&mut got).await.map(drop));
        assert!(outcome.is_ok() || begun.elapsed() > Duration::from_secs(3), "{before:?}");
        stopping.await.unwrap();
        assert!(begun.elapsed() >= Duration::from_secs(3));
        assert!(open.read(&mut got).await.is_err());
    })
    .await;
}

#[tokio::test]
async fn connections_have_a_limit() {
    let world = World::new();
    let (server, backend) = server_behind().await;
    echo(server, "x");
    let mut settings = tcp(&world, vec![backend]);
    settings.max_connections = 2;
    let (_proxy, address) = start(settings);
    soon(async {
        let mut first = world.connect(address).await;
        let mut second = world.connect(address).await;
        first.read_exact(&mut [0]).await.unwrap();
        second.read_exact(&mut [0]).await.unwrap();
        let mut third = world.connect(address).await;
        let mut byte = [0];
        let waiting = third.read_exact(&mut byte);
        assert!(tokio::time::timeout(Duration::from_millis(300), waiting).await.is_err());
        drop(first);
        third.read_exact(&mut [0]).await.unwrap();
    })
    .await;
}

/// After its health check is removed, a backend counts as healthy, also for connections that were open before.
#[tokio::test]
async fn a_health_check_that_is_gone_says_nothing() {
    let world = World::new();
    let (server, backend) = server_behind().await;
    echo(server, "a");
    let checked = || Settings {
        health: Some(HealthCheck {
            // Refused: nothing at this path.
            path: Some("/".into()),
            fall: 1,
            interval: Duration::from_millis(20),
            ..HealthCheck::default()
        }),
        ..tcp(&world, vec![backend.clone()])
    };
    let (mut proxy, address) = start(checked());
    soon(async {
        while said(&world, address).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        proxy.reload(vec![tcp(&world, vec![backend.clone()])]).unwrap();
        assert_eq!(said(&world, address).await.unwrap(), "a.");
    })
    .await;
    let same = || Settings::new("same", any_port(), vec![backend.clone()]);
    let fixed = || Settings { listen: nobody(), ..same() };
    let error = proxy.reload(vec![same(), fixed()]).unwrap_err();
    assert!(matches!(error, ProxyError::SameName(name) if name == "same"));
}
