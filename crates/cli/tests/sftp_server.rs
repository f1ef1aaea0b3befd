//! `outlast sftp-server` with OpenSSH's `sftp -D`, and killed in the middle of uploads.
//!
//! The commands are those that OpenSSH's own regress scripts for sftp try: basic transfers with odd buffer sizes, commands,
//! commands that must fail, globs, and permissions.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

use bytes::Bytes;
use outlast_sftp::attributes::Attributes;
use outlast_sftp::error::Status;
use outlast_sftp::reply::Reply;
use outlast_sftp::request::{Request, write_hello};
use outlast_sftp::volume::OpenHow;
use outlast_testing::program::{self, stderr, stdout};
use outlast_testing::skip;
use tempfile::{TempDir, tempdir};

use crate::common::outlast;

/// Whether OpenSSH's client is there.
fn has_sftp() -> bool {
    let there = Command::new("sftp").arg("-h").output().is_ok();
    if !there {
        skip("OpenSSH's sftp is not installed");
    }
    there
}

/// A folder with `served` and `local` in it; `local/data` has content.
struct World {
    folder: TempDir,
    data: Vec<u8>,
}

impl World {
    fn new() -> Self {
        let folder = tempdir().unwrap();
        for name in ["served", "local"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let data: Vec<u8> = (0..600_000_u32).flat_map(u32::to_le_bytes).collect();
        let world = Self { folder, data };
        fs::write(world.local("data"), &world.data).unwrap();
        world
    }

    fn served(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join("served").join(name)
    }

    fn local(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join("local").join(name)
    }

    /// Runs commands of sftp in the folder `local`.
    fn sftp(&self, server: &[&str], client: &[&str], commands: &str) -> Output {
        let mut line = vec![env!("CARGO_BIN_EXE_outlast"), "sftp-server", "--root"];
        let root = self.served("");
        line.push(root.to_str().unwrap());
        line.extend(server);
        let mut command = program::command("sftp");
        command.current_dir(self.local("")).args(client).args(["-b", "-", "-D", &line.join(" ")]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(commands.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    #[track_caller]
    fn succeed(&self, server: &[&str], commands: &str) -> String {
        let output = self.sftp(server, &[], commands);
        assert!(output.status.success(), "{commands}\n{}{}", stdout(&output), stderr(&output));
        stdout(&output)
    }

    #[track_caller]
    fn fail(&self, server: &[&str], commands: &str) -> String {
        let output = self.sftp(server, &[], commands);
        assert_eq!(output.status.code(), Some(1), "{commands}\n{}", stdout(&output));
        stderr(&output)
    }

    #[track_caller]
    fn same(&self, path: &Path) {
        assert!(fs::read(path).unwrap() == self.data, "{} differs", path.display());
    }
}

/// Names and contents below a folder.
fn tree(at: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(at).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_dir() {
            let below = tree(&entry.path());
            found.extend(
                below.into_iter().map(|(path, content)| (format!("{name}/{path}"), content)),
            );
        } else {
            found.insert(name, fs::read(entry.path()).unwrap());
        }
    }
    found
}

#[test]
fn openssh_uses_every_command() {
    if !has_sftp() {
        return;
    }
    for server in [&[][..], &["--atomic"]] {
        let world = World::new();
        fs::write(world.served("a \"quoted\" [name].txt"), b"quoted").unwrap();
        let text = world.succeed(
            server,
            "version\npwd\nput data copy\nput -f data synced\nget copy back\nget copy\nrename copy copy.1\n\
             ln copy.1 copy.2\nln -s copy.1 copy.3\ncp copy.1 copy.4\nmkdir d\ncd d\nput ../local/data\npwd\n\
             put data in-folder\ncd ..\nrename d dd\nget dd/* .\nchmod 751 copy.1\nls -la\ndf\ndf -h\n\
             get \"a \\\"quoted\\\" [name].txt\" odd\n-rm nothing\nget -p copy.1 kept\nput -p kept kept\n\
             mkdir empty\nrmdir empty\nrm copy.3\nrm copy.2\nls -l copy.1\nlpwd\n",
        );
        for name in ["back", "copy", "in-folder", "kept"] {
            world.same(&world.local(name));
        }
        for name in ["copy.1", "copy.4", "synced", "dd/data", "dd/in-folder", "kept"] {
            world.same(&world.served(name));
        }
        for gone in ["copy", "copy.2", "copy.3", "d", "empty"] {
            assert!(!world.served(gone).exists(), "{gone}");
        }
        assert_eq!(fs::read(world.local("odd")).unwrap(), b"quoted");
        let (one, kept) =
            (world.served("copy.1").metadata().unwrap(), world.served("kept").metadata().unwrap());
        assert_eq!(one.mode() & 0o7777, 0o751);
        // Through a get -p and a put -p.
        assert_eq!((kept.mode() & 0o7777, kept.mtime()), (0o751, one.mtime()));
        for expected in
            ["SFTP protocol version 3", "working directory: /d", "-rwxr-x--x", "%Capacity"]
        {
            assert!(text.contains(expected), "{expected} is missing in\n{text}");
        }
    }
}

#[test]
fn openssh_transfers_with_any_buffer_and_number_of_requests() {
    if !has_sftp() {
        return;
    }
    let world = World::new();
    for (buffer, requests) in
        [("5", "1"), ("5", "10"), ("1000", "2"), ("32000", "10"), ("64000", "1"), ("261120", "64")]
    {
        // A buffer of five bytes makes a packet of every five.
        let length = if buffer == "5" { 20_000 } else { world.data.len() };
        fs::write(world.local("part"), &world.data[..length]).unwrap();
        let client = ["-B", buffer, "-R", requests];
        let output = world.sftp(&[], &client, "put part copy\nget copy back\n");
        assert!(output.status.success(), "{}", stderr(&output));
        for copy in [world.served("copy"), world.local("back")] {
            assert!(fs::read(copy).unwrap() == world.data[..length], "{buffer} {requests}");
        }
    }
}

#[test]
fn openssh_is_told_what_cannot_be_done() {
    if !has_sftp() {
        return;
    }
    let world = World::new();
    fs::write(world.served("f"), b"f").unwrap();
    fs::create_dir(world.served("d")).unwrap();
    for (commands, told) in [
        ("get nothing", "not found"),
        ("put data nowhere/copy", "No such file"),
        ("rename nothing f.1", "No such file"),
        ("rename f d", "Failure"),
        ("rename -l f d", "Failure"),
        ("mkdir d", "Failure"),
        ("rmdir f", "No such file"),
        ("rm d/nothing", "No such file"),
        ("cd f", "not a directory"),
        ("ls nothing", "not found"),
        ("ln -s ../../outside l", "Permission denied"),
        ("put data d/../../../etc/passwd", "No such file"),
    ] {
        let text = world.fail(&[], commands);
        assert!(text.contains(told), "{commands}: {text}");
    }
    assert_eq!(tree(&world.served("")).into_keys().collect::<Vec<_>>(), ["f"]);
}

#[test]
fn openssh_resumes_uploads_and_downloads() {
    if !has_sftp() {
        return;
    }
    for server in [&[][..], &["--atomic"]] {
        let world = World::new();
        let half = &world.data[..1_000_001];
        for name in ["reput", "put-a"] {
            fs::write(world.served(name), half).unwrap();
        }
        fs::write(world.served("whole"), &world.data).unwrap();
        for name in ["reget", "get-a"] {
            fs::write(world.local(name), half).unwrap();
        }
        let commands =
            "reput data reput\nput -a data put-a\nreget whole reget\nget -a whole get-a\n";
        world.succeed(server, commands);
        for path in [
            world.served("reput"),
            world.served("put-a"),
            world.local("reget"),
            world.local("get-a"),
        ] {
            world.same(&path);
        }
    }
}

#[test]
fn two_thousand_small_files_arrive_and_come_back() {
    if !has_sftp() {
        return;
    }
    let world = World::new();
    fs::create_dir_all(world.local("many/deep/er")).unwrap();
    for number in 0..2000 {
        let folder = ["many", "many/deep", "many/deep/er"][number % 3];
        fs::write(world.local(&format!("{folder}/{number}")), number.to_string()).unwrap();
    }
    world.succeed(&[], "put -r many\nget -r many back\n");
    let expected = tree(&world.local("many"));
    assert_eq!(expected.len(), 2000);
    assert!(tree(&world.served("many")) == expected && tree(&world.local("back")) == expected);
}

#[test]
fn requests_can_be_refused() {
    if !has_sftp() {
        return;
    }
    let world = World::new();
    let prepare = || {
        let _ = fs::remove_dir_all(world.served(""));
        fs::create_dir_all(world.served("d")).unwrap();
        fs::write(world.served("f"), b"f").unwrap();
        fs::set_permissions(world.served("f"), PermissionsExt::from_mode(0o644)).unwrap();
    };
    let state = || {
        let names = tree(&world.served(""));
        let mode = world.served("f").metadata().map(|it| it.mode()).ok();
        (names, world.served("d").exists(), world.served("e").exists(), mode)
    };
    // The command, the request that it cannot do without, and the others that it uses.
    for (commands, request, others) in [
        ("put data copy", "open", "realpath,stat,lstat,write,close,fsetstat,limits"),
        ("put data copy", "write", "realpath,stat,lstat,open,close,fsetstat,limits"),
        ("chmod 700 f", "setstat", "realpath,stat,lstat"),
        ("rm f", "remove", "realpath,stat,lstat"),
        ("mkdir e", "mkdir", "realpath,stat,lstat"),
        ("rmdir d", "rmdir", "realpath,stat,lstat"),
        ("rename -l f g", "rename", "realpath,stat,lstat"),
        ("rename f g", "posix-rename", "realpath,stat,lstat"),
        ("ln -s f g", "symlink", "realpath,stat,lstat"),
        ("ln f g", "hardlink", "realpath,stat,lstat"),
    ] {
        prepare();
        let before = state();
        // Without the extension OpenSSH's client uses the plain request.
        let denied = if request == "posix-rename" { "posix-rename,rename" } else { request };
        for refusing in
            [&["-R"][..], &["--read-only"], &["-P", denied], &["--deny", denied], &["-p", others]]
        {
            world.fail(refusing, commands);
            // Without `write` an empty file is created; without `open` nothing.
            let _ = fs::remove_file(world.served("copy"));
            assert_eq!(state(), before, "{commands} {refusing:?}");
        }
        world.succeed(&["--allow", &format!("{request},{others}")], commands);
        assert_ne!(state(), before, "{commands}");
    }
    prepare();
    for (commands, request, others) in [
        ("get f x", "read", "realpath,stat,lstat,open,close,fstat,limits"),
        ("ls -l d", "opendir", "realpath,stat,lstat,readdir,close"),
        ("df .", "statvfs", "realpath,stat,lstat"),
    ] {
        world.fail(&["-P", request], commands);
        world.fail(&["-p", others], commands);
        world.succeed(&["-p", &format!("{request},{others}")], commands);
    }
    // Hidden names, and where relative paths begin.
    let text = world.succeed(&["--hide", "f", "-d", "/d"], "pwd\nls ..\n");
    assert!(text.contains("working directory: /d") && !text.contains("../f"), "{text}");
}

#[test]
fn wrong_input_ends_it_with_a_message() {
    let mut command = outlast();
    let text = program::fail(command.args(["sftp-server", "--root", "/nonexistent"]), 1);
    assert!(text.contains("/nonexistent: No such file"), "{text}");
    let mut command = outlast();
    let text = program::fail(command.args(["sftp-server", "--root", "/", "--deny", "fly"]), 2);
    assert!(text.contains("fly"), "{text}");
    let mut server = Server::start(Path::new("/"), &[]);
    server.input().write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    assert_eq!(server.child.wait().unwrap().code(), Some(1));
    let mut text = String::new();
    server.child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(text.contains("error: a packet is"), "{text}");
}

/// The server with a client that is this test.
pub struct Server {
    child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
    next_id: u32,
}

impl Server {
    pub fn start(root: &Path, options: &[&str]) -> Self {
        Self::start_by(outlast(), root, options)
    }

    /// Starts a server with the environment of `command`.
    pub fn start_by(mut command: Command, root: &Path, options: &[&str]) -> Self {
        command.args(["sftp-server", "--root"]).arg(root).args(options);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
        Self { child, input, output, next_id: 0 }
    }

    fn input(&mut self) -> &mut ChildStdin {
        self.input.as_mut().unwrap()
    }

    fn packet(&mut self) -> Bytes {
        let mut length = [0; 4];
        self.output.read_exact(&mut length).unwrap();
        let mut packet = vec![0; u32::from_be_bytes(length) as usize];
        self.output.read_exact(&mut packet).unwrap();
        packet.into()
    }

    pub fn greet(&mut self) {
        self.input().write_all(&write_hello(3)).unwrap();
        self.packet();
    }

    fn send(&mut self, request: &Request) {
        let packet = request.write(self.next_id);
        self.next_id += 1;
        self.input().write_all(&packet).unwrap();
    }

    fn reply(&mut self) -> Reply {
        Reply::parse(self.packet()).unwrap().1
    }

    pub fn call(&mut self, request: &Request) -> Reply {
        self.send(request);
        self.reply()
    }

    #[track_caller]
    pub fn ok(&mut self, request: &Request) {
        let reply = self.call(request);
        assert!(matches!(&reply, Reply::Status(it) if it.status == Status::Ok), "{reply:?}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The server is killed at each stage of an upload, and in the middle of many writes.
#[test]
fn a_killed_server_leaves_no_half_file_and_loses_nothing_synced() {
    const PIECE: usize = 20_000;
    const PIECES: u64 = 20;
    let piece = |number: u64| vec![u8::try_from(number % 250).unwrap() + 1; PIECE];
    let whole: Vec<u8> = (0..PIECES).flat_map(piece).collect();
    let how = OpenHow { write: true, create: true, truncate: true, ..OpenHow::default() };
    for old in [None, Some(&b"the old content"[..])] {
        for stage in 0..PIECES + 6 {
            let root = tempdir().unwrap();
            let file = root.path().join("file");
            if let Some(old) = old {
                fs::write(&file, old).unwrap();
            }
            let mut server = Server::start(root.path(), &["--atomic"]);
            server.greet();
            let open = Request::Open {
                path: Bytes::from_static(b"/file"),
                how,
                attributes: Attributes::default(),
            };
            let Reply::Handle(handle) = server.call(&open) else { panic!() };
            let write = |number: u64| Request::Write {
                handle: handle.clone(),
                offset: number * PIECE as u64,
                data: piece(number).into(),
            };
            let acknowledged = stage.min(PIECES);
            for number in 0..acknowledged {
                server.ok(&write(number));
            }
            let sync = Request::FSync { handle: handle.clone() };
            let close = Request::Close { handle: handle.clone() };
            // Expected afterwards: the old state, the new one, or either.
            let expected = match stage - acknowledged {
                // In the middle of the writes that are on their way.
                0 => {
                    (acknowledged..PIECES).for_each(|number| server.send(&write(number)));
                    vec![false]
                }
                1 => vec![false],
                2 => {
                    server.send(&close);
                    vec![false, true]
                }
                3 => {
                    server.send(&sync);
                    vec![false, true]
                }
                4 => {
                    server.ok(&sync);
                    vec![true]
                }
                _ => {
                    server.ok(&close);
                    vec![true]
                }
            };
            server.child.kill().unwrap();
            server.child.wait().unwrap();
            let there = fs::read(&file).ok();
            let is_new = there.as_ref() == Some(&whole);
            assert!(is_new || there.as_deref() == old, "stage {stage}: half a file");
            assert!(expected.contains(&is_new), "stage {stage}: {is_new}");
            // Nothing else is left that a client could see.
            let mut server = Server::start(root.path(), &["--atomic"]);
            server.greet();
            let list = Request::OpenDir { path: Bytes::from_static(b"/") };
            let Reply::Handle(handle) = server.call(&list) else { panic!() };
            let Reply::Names(names) = server.call(&Request::ReadDir { handle }) else { panic!() };
            let names: Vec<_> = names.iter().filter(|name| !name.name.starts_with(b".")).collect();
            assert_eq!(names.len(), usize::from(there.is_some()), "stage {stage}");
        }
    }
}

/// A client that closes its side gets the replies to everything that it has sent.
#[test]
fn requests_before_the_end_of_input_are_answered() {
    let root = tempdir().unwrap();
    let mut server = Server::start(root.path(), &["--threads", "1"]);
    server.greet();
    for _ in 0..500 {
        server.send(&Request::RealPath { path: Bytes::from_static(b"x") });
    }
    server.input = None;
    for _ in 0..500 {
        assert_eq!(server.reply(), Reply::path(b"/x"));
    }
    assert!(server.child.wait().unwrap().success());
}
