//! Transfers that last: connections that are lost at any byte, what is on disk after `fsync@openssh.com`, many files, large ones.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use outlast_testing::program;

use super::openssh;
use crate::common::peers::peer;
use crate::common::{Server, run, stderr, stdout, succeed};
use crate::sftp::{World, random};

/// A relay in front of the door that cuts every connection after some bytes of the client's, until it is told to stop.
struct Cutter {
    port: u16,
    /// Bytes of the next connection, which grow with each; 0 cuts nothing.
    left: Arc<AtomicU64>,
    cut: Arc<AtomicU64>,
}

impl Cutter {
    fn start(door: u16, first: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (left, cut) = (Arc::new(AtomicU64::new(first)), Arc::new(AtomicU64::new(0)));
        let (bytes, cuts) = (left.clone(), cut.clone());
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let server = TcpStream::connect(("127.0.0.1", door)).unwrap();
                let (up, down) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                let limit = bytes.load(Ordering::Relaxed);
                let cuts = cuts.clone();
                std::thread::spawn(move || {
                    if relay(up, server, limit) {
                        cuts.fetch_add(1, Ordering::Relaxed);
                    }
                });
                std::thread::spawn(move || relay(down, client, 0));
            }
        });
        Self { port, left, cut }
    }
}

/// Copies until an end, or until `limit` bytes have passed; whether it was the limit.
fn relay(mut from: TcpStream, mut to: TcpStream, limit: u64) -> bool {
    let mut buffer = [0; 16 * 1024];
    let mut passed = 0;
    let is_cut = loop {
        let Ok(len @ 1..) = from.read(&mut buffer) else { break false };
        let over = limit > 0 && passed + len as u64 > limit;
        let len = if over { usize::try_from(limit - passed).unwrap() } else { len };
        if to.write_all(&buffer[..len]).is_err() {
            break false;
        }
        passed += len as u64;
        if over {
            break true;
        }
    };
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
    is_cut
}

/// `sftp` of the machine's OpenSSH at some port.
fn sftp(world: &World, port: u16, options: &[&str], commands: &[&str]) -> Command {
    let client = openssh().pop().unwrap();
    let batch = world.folder.write("endurance.batch", commands.join("\n").as_bytes());
    let mut command = program::command(client.bin.join("sftp").to_str().unwrap());
    command.arg("-S").arg(client.bin.join("ssh")).args(world.options("alice")).args(options);
    command.args(["-P", &port.to_string(), "-b"]).arg(batch).arg("alice@127.0.0.1");
    command.current_dir(world.folder.temporary.path());
    command
}

fn alice() -> World {
    let world = World::new(&PathBuf::from("/usr/bin"), "2026-11", &[]);
    world.at_home("alice", "all");
    world
}

/// A number below `below`.
fn below(below: u64) -> u64 {
    let bytes = random(8).try_into().unwrap();
    u64::from_ne_bytes(bytes) % below
}

#[test]
fn uploads_that_are_cut_at_random_bytes_are_resumed() {
    if openssh().is_empty() {
        return;
    }
    let world = alice();
    let content = random(6_000_000);
    world.folder.write("big", &content);
    // The first connection never gets beyond the key exchange.
    let cutter = Cutter::start(world.server.sftp.unwrap(), 100 + below(2000));
    let mut tries = 0;
    loop {
        tries += 1;
        assert!(tries < 40, "the upload makes no progress");
        let verb = if world.bucket("files/alice/big").exists() { "reput" } else { "put" };
        let output = run(&mut sftp(&world, cutter.port, &[], &[&format!("{verb} big")]));
        if output.status.success() {
            break;
        }
        cutter.left.store(10_000 + below(1_500_000), Ordering::Relaxed);
        if tries > 8 {
            cutter.left.store(0, Ordering::Relaxed);
        }
    }
    assert!(cutter.cut.load(Ordering::Relaxed) >= 3, "{tries} tries");
    assert!(std::fs::read(world.bucket("files/alice/big")).unwrap() == content);
    println!("{tries} tries, {} cuts", cutter.cut.load(Ordering::Relaxed));
}

#[test]
fn rclone_tries_again_what_was_cut() {
    let Some(rclone) = peer("rclone") else { return };
    if openssh().is_empty() {
        return;
    }
    let world = alice();
    let folder = world.folder.path("many");
    std::fs::create_dir(&folder).unwrap();
    for number in 0..20 {
        std::fs::write(folder.join(format!("f{number}")), random(150_000)).unwrap();
    }
    // Each connection carries some of the files, and is lost.
    let cutter = Cutter::start(world.server.sftp.unwrap(), 700_000 + below(200_000));
    let mut command = program::command(rclone.join("bin/rclone").to_str().unwrap());
    command.args(["--config", "/dev/null", "--retries", "20", "--low-level-retries", "2"]);
    command.args(["--sftp-host", "127.0.0.1", "--sftp-port", &cutter.port.to_string()]);
    command.args(["--sftp-user", "alice", "--sftp-shell-type", "none"]);
    command.arg("--sftp-key-file").arg(world.folder.path("alice"));
    command.args(["--sftp-disable-hashcheck", "--transfers", "2", "copy"]);
    command.arg(&folder).arg(":sftp:/files/alice/many");
    let output = run(&mut command);
    let said = stderr(&output);
    // At its end rclone closes its connections, and fails if one has been cut since it was used.
    let is_late = said.contains("Failed to copy: close tcp");
    assert!(output.status.success() || is_late, "{said}");
    assert!(cutter.cut.load(Ordering::Relaxed) >= 2);
    same(&folder, &world.bucket("files/alice/many"));
}

/// Whether two folders have the same files.
fn same(one: &Path, other: &Path) {
    let read = |folder: &Path| {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files.into_iter().map(|path| std::fs::read(path).unwrap()).collect::<Vec<_>>()
    };
    assert!(read(one) == read(other), "{} and {} differ", one.display(), other.display());
}

#[test]
fn sixty_four_requests_and_new_keys_every_64_kib() {
    if openssh().is_empty() {
        return;
    }
    let world = alice();
    let content = random(8_000_000);
    world.folder.write("big", &content);
    let options = ["-v", "-R", "64", "-B", "32768", "-o", "RekeyLimit=64K"];
    let port = world.server.sftp.unwrap();
    let output = run(&mut sftp(&world, port, &options, &["put big", "get big back"]));
    assert!(output.status.success(), "{}", stderr(&output));
    let exchanges = stderr(&output).matches("SSH2_MSG_NEWKEYS received").count();
    // 64 KiB in either direction: 8 MB each way make about 120 each.
    assert!(exchanges > 100, "{exchanges} key exchanges");
    assert!(std::fs::read(world.folder.path("back")).unwrap() == content);
}

/// Writes the blocks of a file in a random order, many at a time, and reads them back in another one.
const REORDERED: &str = r#"
import asyncio, asyncssh, random, sys
BLOCK, COUNT = 32768, 400
async def main():
    port, key = int(sys.argv[1]), sys.argv[2]
    content = random.randbytes(BLOCK * COUNT)
    async with asyncssh.connect("127.0.0.1", port, username="alice", client_keys=[key], known_hosts=None, config=None) as c:
        async with c.start_sftp_client() as sftp:
            order = list(range(COUNT))
            random.shuffle(order)
            async with sftp.open("reordered", "wb") as f:
                for at in range(0, COUNT, 64):
                    await asyncio.gather(*(f.write(content[b * BLOCK:(b + 1) * BLOCK], b * BLOCK) for b in order[at:at + 64]))
            random.shuffle(order)
            async with sftp.open("reordered", "rb") as f:
                for at in range(0, COUNT, 64):
                    blocks = order[at:at + 64]
                    read = await asyncio.gather(*(f.read(BLOCK, b * BLOCK) for b in blocks))
                    assert all(got == content[b * BLOCK:(b + 1) * BLOCK] for b, got in zip(blocks, read))
            assert (await sftp.stat("reordered")).size == len(content)
asyncio.run(main())
"#;

#[test]
fn blocks_in_any_order_make_the_file() {
    let Some(python) = peer("python") else { return };
    let world = alice();
    let mut command = program::command(python.join("bin/python").to_str().unwrap());
    command.args(["-c", REORDERED, &world.server.sftp.unwrap().to_string()]);
    succeed(command.arg(world.folder.path("alice")));
}

/// Uploads numbered files, each with `fsync@openssh.com`, and says which of them the server has acknowledged.
const FSYNC: &str = r#"
import asyncio, asyncssh, sys
async def main():
    port, key = int(sys.argv[1]), sys.argv[2]
    async with asyncssh.connect("127.0.0.1", port, username="alice", client_keys=[key], known_hosts=None, config=None) as c:
        async with c.start_sftp_client() as sftp:
            for number in range(100000):
                async with sftp.open(f"n{number}", "wb") as f:
                    await f.write(str(number).encode() * 3000)
                    await f.fsync()
                    print(number, flush=True)
asyncio.run(main())
"#;

#[test]
fn what_fsync_acknowledged_is_there_after_a_kill() {
    let Some(python) = peer("python") else { return };
    for atomic in ["true", "false"] {
        let arguments = ["--sftp-atomic-uploads", atomic];
        let mut world = World::new(&PathBuf::from("/usr/bin"), "2026-11", &arguments);
        world.at_home("alice", "all");
        let mut command = program::command(python.join("bin/python").to_str().unwrap());
        command.args(["-c", FSYNC, &world.server.sftp.unwrap().to_string()]);
        command.arg(world.folder.path("alice")).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut client = command.spawn().unwrap();
        let mut told = std::io::BufReader::new(client.stdout.take().unwrap());
        let mut lines = String::new();
        for _ in 0..20 {
            std::io::BufRead::read_line(&mut told, &mut lines).unwrap();
        }
        world.server.kill();
        told.read_to_string(&mut lines).unwrap();
        let _ = client.wait();
        let numbers: Vec<u64> = lines.lines().map(|line| line.parse().unwrap()).collect();
        assert!(numbers.len() >= 20);
        world.server = Server::start(&world.folder.data, &["--sftp-listen", "127.0.0.1:0"]);
        for number in &numbers {
            let content = std::fs::read(world.bucket(&format!("files/alice/n{number}"))).unwrap();
            assert!(content == number.to_string().repeat(3000).as_bytes(), "{number}");
        }
        let said = run(&mut sftp(&world, world.server.sftp.unwrap(), &[], &["ls -1"]));
        assert!(stdout(&said).contains("n0"), "{}", stderr(&said));
        println!("{} files, atomic uploads {atomic}", numbers.len());
    }
}

#[test]
#[ignore = "a measurement: 10 GiB both ways"]
fn ten_gibibytes_both_ways() {
    let world = alice();
    let mut file = std::fs::File::create(world.folder.path("big")).unwrap();
    let mut piece = random(1 << 20);
    for number in 0..10 * 1024_u64 {
        piece[..8].copy_from_slice(&number.to_ne_bytes());
        file.write_all(&piece).unwrap();
    }
    drop(file);
    let port = world.server.sftp.unwrap();
    let hash = |path: &Path| {
        let text = succeed(Command::new("sha256sum").arg(path));
        text.split_whitespace().next().unwrap().to_owned()
    };
    let before = hash(&world.folder.path("big"));
    succeed(&mut sftp(&world, port, &[], &["put big"]));
    std::fs::remove_file(world.folder.path("big")).unwrap();
    assert_eq!(hash(&world.bucket("files/alice/big")), before);
    succeed(&mut sftp(&world, port, &[], &["get big"]));
    assert_eq!(hash(&world.folder.path("big")), before);
}

#[test]
#[ignore = "a measurement: 100,000 files"]
fn a_hundred_thousand_small_files() {
    let world = alice();
    let folder = world.folder.path("many");
    std::fs::create_dir(&folder).unwrap();
    for number in 0..100_000_u32 {
        std::fs::write(folder.join(format!("f{number}")), number.to_string()).unwrap();
    }
    let port = world.server.sftp.unwrap();
    succeed(&mut sftp(&world, port, &[], &["put -r many"]));
    same(&folder, &world.bucket("files/alice/many"));
    succeed(&mut sftp(&world, port, &[], &["get -r many back"]));
    same(&folder, &world.folder.path("back"));
    let listed = succeed(&mut sftp(&world, port, &[], &["ls -1 many"]));
    assert_eq!(listed.lines().filter(|line| line.contains("many/f")).count(), 100_000);
}
