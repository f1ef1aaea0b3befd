//! The proxy and the forwarder as processes, between real clients and real servers: nginx, PostgreSQL, curl, OpenSSL, psql and
//! boto3.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::peers::{openssl, peer};
use common::pki::{New, Party, issue};
use common::{ACCESS_KEY, Folder, SECRET, fail, outlast, runtime, stderr, stdout, succeed};
use outlast_net::client::Connector;
use outlast_net::policy::Policy;
use outlast_net::server::system_clock;
use outlast_store::testing::{PASSWORD, Postgres};
use outlast_testing::{PATIENCE, free_port, until};

/// A CA, its certificates, and a folder with all of them.
pub struct World {
    folder: tempfile::TempDir,
    root: Party,
}

impl World {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = issue(
            "ECC_NIST_P256",
            New { days: 3650, ..New::of("RootCACertificate", "Proxy Root", now()) },
            None,
        );
        std::fs::write(folder.path().join("ca.pem"), root.pem()).unwrap();
        let world = Self { folder, root };
        world.certificate("server", "ECC_NIST_P256", "EndEntityServerAuthCertificate");
        world
    }

    /// Writes `NAME.pem` and `NAME.key`.
    fn certificate(&self, name: &str, spec: &str, template: &str) -> Party {
        let new = New { dns: &["localhost"], ..New::of(template, name, now()) };
        let party = issue(spec, new, Some(&self.root));
        std::fs::write(self.path(&format!("{name}.pem")), party.pem()).unwrap();
        std::fs::write(self.path(&format!("{name}.key")), party.key_pem()).unwrap();
        party
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// `outlast proxy` in front of a server, with the default certificate.
    pub fn proxy(&self, to: &str, more: &[&str]) -> Process {
        let mut command = outlast();
        command.args(["proxy", "--listen", "127.0.0.1:0", "--to", to, "--log", "info"]);
        command.arg("--tls-cert-file").arg(self.path("server.pem"));
        command.arg("--tls-key-file").arg(self.path("server.key"));
        Process::start(command.args(more))
    }

    fn forward(&self, to: &str, more: &[&str]) -> Process {
        let mut command = outlast();
        command.args(["forward", "--to", to, "--ca-bundle"]).arg(self.path("ca.pem"));
        Process::start(command.args(more))
    }

    fn curl(&self, port: u16, more: &[&str]) -> Command {
        let mut command = Command::new("curl");
        command.args(["-sS", "--max-time", "180", "--cacert"]).arg(self.path("ca.pem"));
        command.args(more).arg(format!("https://localhost:{port}/"));
        command
    }
}

fn now() -> i64 {
    system_clock().div_euclid(1000)
}

/// A process that listens; killed when dropped.
pub struct Process {
    child: Child,
    pub port: u16,
    /// What it printed before its address.
    before: String,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Process {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut process = Self { child, port: 0, before: String::new(), lines };
        while process.port == 0 {
            let line = process.lines.next();
            let line = line.unwrap_or_else(|| panic!("it does not start: {}", process.before));
            let line = line.unwrap();
            if let Some(rest) = line.strip_prefix("listening on ") {
                let address = rest.split(' ').next().unwrap();
                process.port = address.rsplit_once(':').unwrap().1.parse().unwrap();
            } else {
                process.before.push_str(&line);
                process.before.push('\n');
            }
        }
        process
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Its resident memory, in KiB.
    fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wait_for(port: u16) {
    let begun = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(begun.elapsed() < PATIENCE, "nobody listens at {port}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// nginx with this `http` block.
fn nginx(peer: &Path, folder: &Path, port: u16, http: &str) -> Process {
    let at = folder.display();
    let configuration = format!(
        "daemon off; master_process off; worker_processes 1; pid {at}/pid; error_log stderr warn;
        events {{ worker_connections 256; }}
        http {{
            access_log off;
            client_body_temp_path {at}/body; proxy_temp_path {at}/p; fastcgi_temp_path {at}/f;
            uwsgi_temp_path {at}/u; scgi_temp_path {at}/s;
            {http}
        }}"
    );
    let file = folder.join("nginx.conf");
    std::fs::write(&file, configuration).unwrap();
    let mut child = Command::new(peer.join("bin/nginx"));
    child.args(["-e", "stderr", "-p"]).arg(folder).arg("-c").arg(file);
    let mut child = child.stdout(Stdio::piped()).spawn().unwrap();
    wait_for(port);
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    Process { child, port, before: String::new(), lines }
}

/// `openssl s_client`'s report on a connection, with these arguments.
fn s_client(world: &World, port: u16, more: &[&str]) -> Option<String> {
    let peer = peer("openssl")?;
    let mut command = openssl(&peer, &["s_client", "-connect"]);
    command.arg(format!("127.0.0.1:{port}")).args(["-servername", "localhost"]);
    command.arg("-CAfile").arg(world.path("ca.pem")).args(["-verify_return_error"]).args(more);
    let output = command.stdin(Stdio::null()).output().unwrap();
    Some(stdout(&output) + &stderr(&output))
}

#[test]
fn nginx_behind() {
    let Some(peer) = peer("nginx") else { return };
    let world = World::new();
    let port = free_port();
    let fields = "$proxy_protocol_addr|$http_x_forwarded_proto|$http_x_outlast_tls_group|$http_host|$request_method";
    let served = format!(
        "server {{ listen 127.0.0.1:{port} proxy_protocol;
            location / {{ return 200 \"{fields}\"; }}
            location /file {{ root {}; }} }}",
        world.folder.path().display()
    );
    let content: Vec<u8> = (0..3_000_000u32).map(|number| number as u8).collect();
    std::fs::write(world.path("file"), &content).unwrap();
    let _nginx = nginx(&peer, world.folder.path(), port, &served);
    let to = format!("http://127.0.0.1:{port}");
    let proxy = world.proxy(&to, &["--send-proxy-protocol", "v2", "--tls-headers"]);
    for version in ["--http1.1", "--http2"] {
        let said = succeed(&mut world.curl(proxy.port, &[version]));
        // This machine's curl may have no hybrid groups.
        let parts: Vec<_> = said.split('|').collect();
        assert_eq!((parts[0], parts[1], parts[4]), ("127.0.0.1", "https", "GET"), "{said}");
        assert_eq!(parts[3], format!("localhost:{}", proxy.port));
        assert!(!parts[2].is_empty());
        let mut command = Command::new("curl");
        command.args(["-sS", version, "--cacert"]).arg(world.path("ca.pem"));
        let file = command.arg(format!("https://localhost:{}/file", proxy.port)).output().unwrap();
        assert!(file.stdout == content, "{}", file.stdout.len());
    }
    // A client that names the classical group first, and only sends a classical share.
    if let Some(said) = s_client(&world, proxy.port, &["-groups", "*X25519:X25519MLKEM768"]) {
        assert!(said.contains("Negotiated TLS1.3 group: X25519MLKEM768"), "{said}");
        assert!(said.contains("Verify return code: 0 (ok)"), "{said}");
    }
}

#[test]
fn certificates_of_both_kinds_and_of_clients() {
    let world = World::new();
    world.certificate("pq", "ML_DSA_65", "EndEntityServerAuthCertificate");
    world.certificate("robot", "ML_DSA_65", "EndEntityClientAuthCertificate");
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = format!("tcp://{}", server.local_addr().unwrap());
    let (chains, keys) = (
        format!("{},{}", world.text("pq.pem"), world.text("server.pem")),
        format!("{},{}", world.text("pq.key"), world.text("server.key")),
    );
    let mut command = outlast();
    command.args(["proxy", "--listen", "127.0.0.1:0", "--to", &to]);
    command.args(["--tls-cert-file", &chains, "--tls-key-file", &keys]);
    command.arg("--client-ca").arg(world.path("ca.pem"));
    let proxy = Process::start(&mut command);
    let (robot, key) = (world.text("robot.pem"), world.text("robot.key"));
    let identity = ["-cert", &robot, "-key", &key];
    for (schemes, kind) in [("mldsa65:ECDSA+SHA256", "mldsa65"), ("ECDSA+SHA256", "ecdsa")] {
        let more = [&identity[..], &["-sigalgs", schemes]].concat();
        let Some(said) = s_client(&world, proxy.port, &more) else { return };
        let line = said.lines().find(|line| line.starts_with("Peer signature type:"));
        assert!(line.unwrap().contains(kind), "{said}");
    }
    let said = s_client(&world, proxy.port, &["-ign_eof"]).unwrap();
    assert!(said.contains("certificate required"), "{said}");
}

/// This machine's libpq has no hybrid groups: the proxy accepts it nevertheless, and the forwarder adds them on its
/// side.
#[test]
fn postgresql_behind() {
    let Some(postgres) = Postgres::start() else { return };
    if Command::new("psql").arg("--version").output().is_err() {
        outlast_testing::skip("psql is not installed");
        return;
    }
    let world = World::new();
    let (_, port) = postgres.folder_and_port();
    let ledger = world.text("ledger");
    let to = format!("tcp://127.0.0.1:{port}");
    let proxy = world.proxy(&to, &["--protocol", "postgres", "--ledger", &ledger]);
    let psql = |port: u16, settings: &str| {
        let mut command = Command::new("psql");
        let place =
            format!("host=localhost hostaddr=127.0.0.1 port={port} user=outlast {settings}");
        command.arg(format!("{place} dbname=postgres")).args(["-XAtc", "SELECT 6 * 7"]);
        command.env("PGPASSWORD", PASSWORD).env("PGCONNECT_TIMEOUT", "20");
        command
    };
    let verified = format!("sslmode=verify-full sslrootcert={}", world.text("ca.pem"));
    assert_eq!(succeed(&mut psql(proxy.port, &verified)), "42\n");
    // Nothing in the clear.
    let said = fail(&mut psql(proxy.port, "sslmode=disable"), 2);
    assert!(said.contains("the connection must be encrypted"), "{said}");

    let far = format!("tls://localhost:{}", proxy.port);
    let forward = world.forward(&far, &["--protocol", "postgres"]);
    assert!(forward.before.contains("TLSv1.3 X25519MLKEM768"), "{}", forward.before);
    assert!(forward.before.contains("(post-quantum)"));
    for mode in ["disable", "prefer"] {
        assert_eq!(succeed(&mut psql(forward.port, &format!("sslmode={mode}"))), "42\n");
    }
    // The forwarder can speak TLS to local clients, too.
    let ca = world.text("local.pem");
    let local = world.forward(&far, &["--protocol", "postgres", "--local-ca", &ca]);
    let verified = format!("sslmode=verify-full sslrootcert={ca}");
    assert_eq!(succeed(&mut psql(local.port, &verified)), "42\n");
    // TLS from the start, which libpq supports since version 17, only if the client names the protocol.
    for (alpn, lets_in) in [("postgresql", true), ("http/1.1", false)] {
        let Some(said) = s_client(&world, proxy.port, &["-alpn", alpn]) else { break };
        assert_eq!(said.contains("ALPN protocol: postgresql"), lets_in, "{said}");
    }
    proxy.signal(rustix::process::Signal::TERM);
    let mut proxy = proxy;
    assert_eq!(proxy.child.wait().unwrap().code(), Some(0));
    let mut written = String::new();
    for entry in std::fs::read_dir(&ledger).unwrap() {
        written.push_str(&std::fs::read_to_string(entry.unwrap().path()).unwrap());
    }
    // X25519MLKEM768 was chosen for a connection of this listener.
    assert!(
        written.contains("\"g\":\"11ec\",\"q\":true") && written.contains("\"l\":\"proxy\""),
        "{written}"
    );

    // A backend that is gone is reported in PostgreSQL's protocol.
    let proxy = world.proxy(&to, &["--protocol", "postgres"]);
    postgres.stop();
    let said = fail(&mut psql(proxy.port, "sslmode=require"), 2);
    assert!(said.contains("the backend server cannot be reached"), "{said}");
}

/// An SDK on an OpenSSL without hybrids signs for the local port, and the signature is valid at the remote server.
#[test]
fn boto3_through_the_forwarder() {
    let Some(python) = peer("python") else { return };
    let folder = Folder::new();
    let server = folder.serve();
    let to = format!("https://localhost:{}", server.port);
    let mut command = outlast();
    command.args(["forward", "--to", &to, "--ca-bundle"]).arg(folder.data.join("client/ca.pem"));
    let forward = Process::start(&mut command);
    assert!(forward.before.contains("X25519MLKEM768"), "{}", forward.before);
    let program = "import boto3, sys
kms = boto3.client('kms', endpoint_url=sys.argv[1], region_name='us-east-1')
key = kms.create_key()['KeyMetadata']['KeyId']
sealed = kms.encrypt(KeyId=key, Plaintext=b'through the door')['CiphertextBlob']
print(kms.decrypt(CiphertextBlob=sealed)['Plaintext'].decode())
print(boto3.client('sts', endpoint_url=sys.argv[1], region_name='us-east-1').get_caller_identity()['Arn'])
";
    let mut command = Command::new(python.join("bin/python"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("AWS_") {
            command.env_remove(name);
        }
    }
    command.env("AWS_ACCESS_KEY_ID", ACCESS_KEY).env("AWS_SECRET_ACCESS_KEY", SECRET);
    command.args(["-c", program]).arg(format!("http://127.0.0.1:{}", forward.port));
    let said = succeed(&mut command);
    assert!(said.starts_with("through the door\narn:aws:"), "{said}");
    drop(server);
    let tail = ["audit", "tail", "-n", "100000", "--output", "json", "--data"];
    let events = succeed(outlast().args(tail).arg(&folder.data));
    let event = events.lines().rfind(|line| line.contains("\"Decrypt\"")).unwrap();
    assert!(event.contains("X25519MLKEM768"), "{event}");
}

#[test]
fn what_the_forwarder_refuses() {
    let world = World::new();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let classical =
        world.proxy(&format!("tcp://{}", server.local_addr().unwrap()), &["--mode", "off"]);
    let to = format!("tls://localhost:{}", classical.port);
    let ca = world.text("ca.pem");
    let forward = |arguments: &[&str]| {
        let mut command = outlast();
        command.arg("forward").args(arguments);
        command
    };
    let said = fail(&mut forward(&["--to", &to, "--ca-bundle", &ca]), 1);
    assert!(said.contains("hint: it may support no post-quantum group: --mode prefer"), "{said}");
    let said = fail(&mut forward(&["--to", &to, "--ca-bundle", &ca, "--listen", "0.0.0.0:0"]), 2);
    assert!(said.contains("hint: listen at 127.0.0.1"), "{said}");
    let other = World::new();
    let said = fail(
        &mut forward(&["--to", &to, "--mode", "prefer", "--ca-bundle", &other.text("ca.pem")]),
        1,
    );
    assert!(said.contains("--ca-bundle FILE"), "{said}");
    let said = fail(
        &mut forward(&["--to", &to, "--mode", "prefer", "--ca-bundle", &ca, "--name", "x.example"]),
        1,
    );
    assert!(said.contains("--name"), "{said}");
    let said = fail(&mut forward(&["--to", "http://localhost:1", "--ca-bundle", &ca]), 2);
    assert!(said.contains("is reached over TLS"), "{said}");
    let gone = format!("tls://localhost:{}", free_port());
    let said = fail(&mut forward(&["--to", &gone, "--ca-bundle", &ca]), 1);
    assert!(said.contains("hint: check that it is running"), "{said}");
    let classical = world.forward(&to, &["--mode", "prefer"]);
    assert!(classical.before.contains("(classical)"), "{}", classical.before);
    let lazy = world.forward(&gone, &["--lazy"]);
    assert_eq!(lazy.before, "");
}

#[test]
fn settings_files_and_sighup() {
    let world = World::new();
    let answers = |answer: &'static str| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                std::thread::spawn(move || {
                    let _ = stream.read(&mut [0; 4096]);
                    let length = answer.len();
                    let _ = write!(
                        stream,
                        "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{answer}"
                    );
                });
            }
        });
        at
    };
    let (one, two) = (answers("one"), answers("two"));
    let (first, second) = (free_port(), free_port());
    let table = |name: &str, port: u16, to: std::net::SocketAddr| {
        format!(
            "[[listener]]\nname = '{name}'\nlisten = '127.0.0.1:{port}'\nto = ['http://{to}']\n\
            tls_cert_file = ['server.pem']\ntls_key_file = ['server.key']\nhealth = 'tcp'\n"
        )
    };
    let config = world.path("proxy.toml");
    std::fs::write(&config, table("a", first, one)).unwrap();
    let mut command = outlast();
    command.args(["proxy", "--metrics-listen", "127.0.0.1:0", "--config"]).arg(&config);
    let mut proxy = Process::start(command.stderr(Stdio::null()));
    let metrics = proxy.lines.next().unwrap().unwrap();
    let metrics = metrics.strip_prefix("metrics on ").unwrap().to_owned();
    let said = |port: u16| world.curl(port, &[]).output().unwrap();
    assert_eq!(stdout(&said(first)), "one");
    let serial = |port: u16| {
        let certificate = world.curl(port, &["-v", "-o", "/dev/null"]).output().unwrap();
        stderr(&certificate).lines().find(|line| line.contains("start date:")).unwrap().to_owned()
    };
    let before = serial(first);

    // A broken file changes nothing; a valid one changes everything, including certificates.
    let reload = |text: &str| {
        std::fs::write(&config, text).unwrap();
        proxy.signal(rustix::process::Signal::HUP);
        std::thread::sleep(Duration::from_millis(500));
    };
    reload(&(table("a", first, two) + "no_such_key = 1\n"));
    assert_eq!(stdout(&said(first)), "one");
    let renewed = New {
        dns: &["localhost"],
        not_before: now() - 7 * 86_400,
        ..New::of("EndEntityServerAuthCertificate", "renewed", now())
    };
    let renewed = issue("ECC_NIST_P256", renewed, Some(&world.root));
    std::fs::write(world.path("server.pem"), renewed.pem()).unwrap();
    // The key does not belong to the certificate yet.
    reload(&table("a", first, two));
    assert_eq!(stdout(&said(first)), "one");
    std::fs::write(world.path("server.key"), renewed.key_pem()).unwrap();
    reload(&(table("a", first, two) + &table("b", second, one)));
    until("there is a second listener", || said(second).status.success());
    assert_eq!(stdout(&said(first)), "two");
    assert_eq!(stdout(&said(second)), "one");
    assert_ne!(serial(first), before);
    reload(&table("b", second, one));
    until("the first listener is gone", || !said(first).status.success());
    assert_eq!(stdout(&said(second)), "one");
    let page = succeed(Command::new("curl").args(["-sS", &metrics]));
    assert!(page.contains("listener=\"b\""), "{page}");

    proxy.signal(rustix::process::Signal::TERM);
    assert_eq!(proxy.child.wait().unwrap().code(), Some(0));
}

#[test]
fn wrong_usage_says_what_to_do() {
    let world = World::new();
    let (chain, key) = (world.text("server.pem"), world.text("server.key"));
    let shown = ["--tls-cert-file", &chain, "--tls-key-file", &key];
    let at = ["--listen", "127.0.0.1:0"];
    let to = ["--to", "tcp://127.0.0.1:1"];
    let rows: &[(&[&[&str]], &str)] = &[
        (&[&at, &shown], "hint: give one, such as --to"),
        (&[&to, &shown], "hint: give one, such as --listen"),
        (&[&at, &to], "hint: give --tls-cert-file"),
        (&[&at, &to, &["--tls-cert-file", &chain, "--tls-key-file", &chain]], "private key"),
        (&[&at, &to, &shown, &["--protocol", "udp"]], "[possible values: tcp, http, postgres]"),
        (
            &[&at, &to, &shown, &["--balance", "random"]],
            "[possible values: round-robin, least-connections]",
        ),
        (&[&at, &to, &shown, &["--send-proxy-protocol", "v3"]], "[possible values: v1, v2]"),
        (&[&at, &to, &shown, &["--proxy-protocol-from", "here"]], "write a network like"),
        (&[&at, &to, &shown, &["--health", "ping"]], "give tcp, or a path"),
        (&[&at, &to, &shown, &["--client-auth", "require"]], "hint: name the CAs to trust"),
        (&[&at, &shown, &["--to", "ftp://a"]], "a backend is tcp://"),
    ];
    for (arguments, expected) in rows {
        // A file with wrong contents is no misuse of its option.
        let code = if *expected == "private key" { 1 } else { 2 };
        let said = fail(outlast().arg("proxy").args(arguments.concat()), code);
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
    let wrong = [at.as_slice(), &to, &shown, &["--policy", "2020-01"]].concat();
    assert!(fail(outlast().arg("proxy").args(wrong), 2).contains("'--policy <NAME>'"));
    let said = fail(outlast().args(["proxy", "--config", "x", "--policy", "2026-11"]), 2);
    assert!(said.contains("--policy"), "{said}");
    let said = fail(outlast().args(["proxy", "--config", "x"]).args(at), 2);
    assert!(said.contains("cannot be used with"), "{said}");
}

/// Idle connections hold no buffers.
#[test]
fn idle_connections_are_cheap() {
    const COUNT: usize = 1000;
    let world = World::new();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = format!("tcp://{}", server.local_addr().unwrap());
    // Answers one request, and nothing more.
    std::thread::spawn(move || {
        let mut held = Vec::new();
        for stream in server.incoming() {
            let mut stream = stream.unwrap();
            let mut request = vec![0; 5_000];
            stream.read_exact(&mut request).unwrap();
            let body = "!".repeat(3_000);
            write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: 3000\r\n\r\n{body}").unwrap();
            held.push(stream);
        }
    });
    let proxy = world.proxy(&to, &[]);
    let ca = std::fs::read(world.path("ca.pem")).unwrap();
    let roots = outlast_pki::pem::read_certificates(&ca).unwrap();
    let connector = Connector::new(&Policy::default(), &roots).unwrap();
    runtime().block_on(async {
        let mut open = Vec::new();
        let mut before = 0;
        for number in 0..COUNT + 100 {
            let mut connection = connector.connect("localhost", proxy.port).await.unwrap();
            let mut request = http::Request::new(vec![b'?'; 5_000]);
            *request.method_mut() = http::Method::POST;
            request.headers_mut().insert("host", "localhost".parse().unwrap());
            assert_eq!(connection.send(request).await.unwrap().1.len(), 3_000);
            open.push(connection);
            // By then the process has allocated what it always needs.
            if number == 100 {
                before = proxy.resident();
            }
        }
        let each = (proxy.resident() - before) * 1024 / COUNT as u64;
        println!("{each} bytes for each idle connection");
        // 600 MiB for 10,000 would be 62,900.
        assert!(each < 45_000, "{each} bytes for each idle connection");
        drop(open);
    });
}
