//! Promises of the guide: modes of what clients make, handles that are open, users that are read again, and weak RSA keys.

use std::os::unix::fs::MetadataExt;

use bytes::Bytes;
use outlast_sftp::attributes::Attributes;
use outlast_sftp::error::Status;
use outlast_sftp::reply::Reply;
use outlast_sftp::request::Request;
use outlast_sftp::volume::OpenHow;
use outlast_testing::{program, until};

use super::*;
use crate::common::{Log, fail};
use crate::sftp_logins::keygen;
use crate::sftp_server::Server as Piped;
use crate::sftp_users::{self, World as FileWorld};

/// What `sftp.toml` says of a user whose home all users share.
const HOME: &str = "folder = \"{dir}/home\"\n";

/// Why a key that has one bit too few is refused.
const WEAK: &str = "an RSA key has 2047 bits; 2048 to 8192 are supported";

/// A server that `command` starts, with alice as the only user of its file, and its log.
fn file_world(command: Command, tools: &Path) -> (FileWorld, Log) {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path("files/home")).unwrap();
    let file = sftp_users::write(&folder, tools, &[("alice", HOME)]).display().to_string();
    let arguments = ["--sftp-listen", "127.0.0.1:0", "--sftp-users", &file];
    let (server, log) = Server::start_logged_by(command, &folder.data, &arguments);
    (FileWorld { folder, server, tools: tools.to_path_buf() }, log)
}

/// Gives the server another file of users in one step, so that it never reads a part of it.
fn replace(world: &FileWorld, text: &str) {
    let new = world.folder.write("new.toml", text.as_bytes());
    std::fs::rename(new, world.folder.path("sftp.toml")).unwrap();
}

/// Runs a script of asyncssh's with the server's port and alice's key; returns what it prints.
fn script(python: &Path, world: &FileWorld, text: &str) -> String {
    let mut command = Command::new(python.join("bin/python"));
    command.args(["-c", text, &world.server.sftp.unwrap().to_string()]);
    succeed(command.arg(world.folder.path("alice")))
}

/// The program with a umask, which a shell sets: that of the tests is one for all threads.
fn with_umask() -> Command {
    let mut shell = program::command("sh");
    shell.args(["-c", "umask 027; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_outlast")]);
    shell
}

fn mode_of(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().mode() & 0o777
}

fn asks(mode: Option<u32>) -> Attributes {
    Attributes { mode, ..Attributes::default() }
}

fn upload(server: &mut Piped, path: &'static str, mode: Option<u32>) {
    let how = OpenHow { write: true, create: true, truncate: true, ..OpenHow::default() };
    let open = Request::Open { path: path.into(), how, attributes: asks(mode) };
    let Reply::Handle(handle) = server.call(&open) else { panic!("{path} was not opened") };
    server.ok(&Request::Close { handle });
}

#[test]
fn the_umask_applies_to_what_is_made_and_not_to_what_is_set() {
    for options in [&[][..], &["--atomic"]] {
        let root = tempfile::tempdir().unwrap();
        let mut server = Piped::start_by(with_umask(), root.path(), options);
        server.greet();
        upload(&mut server, "/asked", Some(0o777));
        upload(&mut server, "/default", None);
        for (path, mode) in [("/folder", Some(0o777)), ("/plain", None)] {
            server.ok(&Request::MkDir { path: path.into(), attributes: asks(mode) });
        }
        let modes = || {
            let names = ["asked", "default", "folder", "plain"];
            names.map(|name| mode_of(&root.path().join(name)))
        };
        assert_eq!(modes(), [0o750, 0o640, 0o750, 0o750], "{options:?}");
        // A mode that a client sets later is kept as it is, also when an upload replaces the file.
        for path in ["/asked", "/folder"] {
            server.ok(&Request::SetStat { path: path.into(), attributes: asks(Some(0o777)) });
        }
        upload(&mut server, "/asked", Some(0o600));
        assert_eq!(modes(), [0o777, 0o640, 0o777, 0o750], "{options:?}");
    }
}

/// Makes a file and a folder, and asks for all permissions of both.
const MAKES: &str = r#"
import asyncio, asyncssh, sys
async def main():
    port, key = int(sys.argv[1]), sys.argv[2]
    async with asyncssh.connect("127.0.0.1", port, username="alice", client_keys=[key], known_hosts=None) as c:
        async with c.start_sftp_client() as sftp:
            every = asyncssh.SFTPAttrs(permissions=0o777)
            async with sftp.open("/file", "wb", every) as f:
                await f.write(b"content")
            await sftp.mkdir("/folder", every)
asyncio.run(main())
"#;

#[test]
fn the_umask_of_a_server_applies_to_what_its_users_make() {
    let (Some(tools), Some(python)) = (openssh(), peer("python")) else { return };
    let (world, _) = file_world(with_umask(), &tools);
    script(&python, &world, MAKES);
    for name in ["file", "folder"] {
        assert_eq!(mode_of(&world.folder.path("files/home").join(name)), 0o750, "{name}");
    }
}

#[test]
fn an_open_beyond_the_limit_fails_until_a_handle_is_closed() {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("f"), b"content").unwrap();
    let path = || Bytes::from_static(b"/f");
    let open = Request::Open { path: path(), how: OpenHow::reading(), attributes: asks(None) };
    let list = Request::OpenDir { path: Bytes::from_static(b"/") };
    let opens = |server: &mut Piped, request: &Request| match server.call(request) {
        Reply::Handle(handle) => handle,
        other => panic!("{request:?}: {other:?}"),
    };
    for (options, most) in [(&["--max-handles", "2"][..], 2_u64), (&[], 100)] {
        let mut server = Piped::start(root.path(), options);
        server.greet();
        let Reply::Extended(limits) = server.call(&Request::Limits) else { panic!("no limits") };
        assert!(limits.ends_with(&most.to_be_bytes()), "{most}: {limits:?}");
        // Files and folders count together.
        let first = opens(&mut server, &open);
        for _ in 1..most {
            opens(&mut server, &list);
        }
        let is_full = |server: &mut Piped| {
            for request in [&open, &list] {
                let Reply::Status(refused) = server.call(request) else { panic!("one more") };
                let text = &refused.text;
                assert_eq!(refused.status, Status::Failure, "{text}");
                assert!(text.contains(&format!("{most} files and folders are open")), "{text}");
                assert!(text.contains("close one"), "{text}");
            }
        };
        is_full(&mut server);
        // What needs no handle works.
        let stat = server.call(&Request::Stat { path: path() });
        assert!(matches!(stat, Reply::Attributes(_)), "{stat:?}");
        server.ok(&Request::Close { handle: first });
        opens(&mut server, &open);
        is_full(&mut server);
    }
}

/// Opens as many files as a session may, and tries two more; a session beside it and one of another connection go on.
const HANDLES: &str = r#"
import asyncio, asyncssh, sys
def login():
    return asyncssh.connect("127.0.0.1", int(sys.argv[1]), username="alice", client_keys=[sys.argv[2]], known_hosts=None)
async def reads(sftp):
    async with sftp.open("/f", "rb") as f:
        assert await f.read() == b"content"
async def main():
    async with login() as one, login() as two:
        async with one.start_sftp_client() as full, one.start_sftp_client() as beside, two.start_sftp_client() as apart:
            files = [await full.open("/f", "rb") for _ in range(100)]
            for path, mode in (("/f", "rb"), ("/new", "wb")):
                try:
                    await full.open(path, mode)
                    print("opened")
                except asyncssh.SFTPFailure as error:
                    print(error.reason)
            await reads(beside)
            await reads(apart)
            assert await files[0].read() == b"content"
            await files.pop().close()
            await reads(full)
asyncio.run(main())
"#;

#[test]
fn handles_of_one_session_are_not_those_of_another() {
    let (Some(tools), Some(python)) = (openssh(), peer("python")) else { return };
    let (world, _) = file_world(outlast(), &tools);
    std::fs::write(world.folder.path("files/home/f"), b"content").unwrap();
    let said = script(&python, &world, HANDLES);
    let is_clear =
        |line: &str| line.contains("100 files and folders are open") && line.contains("close one");
    assert!(said.lines().count() == 2 && said.lines().all(is_clear), "{said}");
    // A file that could not be opened was not made.
    assert!(!world.folder.path("files/home/new").exists());
}

#[test]
fn a_hang_up_has_the_users_read_again_and_a_mistake_changes_nothing() {
    let Some(tools) = openssh() else { return };
    let (world, log) = file_world(outlast(), &tools);
    let mut session = world.stays("alice");
    // Alice is not in it, and bobby is, with her key.
    let wrong = "account = \"123456789012\"\n[[user]]\nname = \"bobby\"\nfolder = \"files/home\"\n\
                 key_files = [\"alice.pub\"]\nrights = [\"reed\"]\n";
    let why = "user bobby: rights: there is no right reed";
    replace(&world, wrong);
    // The server finds by itself that the file has changed, and reads it once. Only a signal has it read the same file again.
    log.until(why, 0);
    for _ in 0..2 {
        let before = log.count(why);
        world.server.hang_up();
        log.until(why, before);
    }
    assert!(log.count("the users of SFTP cannot be used: the previous ones stay in use") >= 3);
    assert!(!world.with_key("bobby", "alice", &["pwd"]).status.success());
    world.works("alice", &["pwd"]);
    assert!(session.try_wait().unwrap().is_none(), "the session has ended");
    // Without the mistake one user comes, and the other one goes.
    world.change(&[("bobby", HOME)]);
    world.server.hang_up();
    until("the new user logs in", || world.with_key("bobby", "bobby", &["pwd"]).status.success());
    assert!(!world.with_key("alice", "alice", &["pwd"]).status.success());
    until("the session of the removed user ends", || {
        // The client notices at its next request.
        let _ = session.stdin.as_mut().unwrap().write_all(b"ls\n");
        session.try_wait().unwrap().is_some()
    });
}

/// Whether an event says that a login failed because of the weak key.
fn is_of_weak_key(event: &Value) -> bool {
    let has_reason = event["message"].as_str().is_some_and(|text| text.contains(WEAK));
    event["activity-type"] == "AUTH_FAILURE" && has_reason
}

#[test]
fn a_file_of_users_takes_no_rsa_key_below_2048_bits() {
    let Some(tools) = openssh() else { return };
    let (world, log) = file_world(outlast(), &tools);
    for (name, bits) in [("weak", "2047"), ("strong", "2048")] {
        let kind = ["-t", "rsa", "-b", bits, "-N", "", "-C", "", "-f", name];
        keygen(&tools, &world.folder, &kind);
    }
    let file = |keys: &str| {
        let user = "[[user]]\nname = \"alice\"\nfolder = \"files/home\"";
        format!("account = \"123456789012\"\n{user}\n{keys}\n")
    };
    let check = |text: &str| {
        let mut command = outlast();
        let file = world.folder.write("check.toml", text.as_bytes());
        command.args(["sftp", "check"]).arg(file);
        command
    };
    let line = std::fs::read_to_string(world.folder.path("weak.pub")).unwrap();
    let line = format!("keys = [\"{}\"]", line.trim());
    let in_file = "key_files = [\"alice.pub\", \"weak.pub\"]";
    for (keys, place) in [(&*line, "keys, number 1"), (in_file, "weak.pub, line 1")] {
        let told = fail(&mut check(&file(keys)), 1);
        assert!(told.contains(&format!("{place}: {WEAK}")), "{told}");
        assert!(told.contains("user alice"), "{told}");
    }
    let strong = file("key_files = [\"strong.pub\"]");
    succeed(&mut check(&strong));
    // A server that is given the weak key keeps the users of before, and a client that has it does not get in.
    replace(&world, &file(in_file));
    world.server.hang_up();
    log.until(WEAK, 0);
    world.works("alice", &["pwd"]);
    assert!(!world.with_key("alice", "weak", &["pwd"]).status.success());
    until("the refusal is recorded", || world.folder.sftp_events().iter().any(is_of_weak_key));
    replace(&world, &strong);
    world.server.hang_up();
    until("the strong key logs in", || {
        world.with_key("alice", "strong", &["pwd"]).status.success()
    });
}

#[test]
fn no_rsa_key_below_2048_bits_is_imported() {
    let Some(tools) = openssh() else { return };
    let world = World::new(&tools, "2026-11", &[]);
    world.at_home("alice", "all");
    let [weak, strong] = [("weak", "2047"), ("strong", "2048")]
        .map(|(name, bits)| world.key(name, &["-t", "rsa", "-b", bits]));
    let import = |line: &str| {
        let body = json!({ "ServerId": world.id, "UserName": "alice", "SshPublicKeyBody": line });
        world.call(async |session| {
            session.call::<import_ssh_public_key::ImportSshPublicKey>(body).await.unwrap()
        })
    };
    let new = json!({
        "ServerId": world.id, "UserName": "bobby", "SshPublicKeyBody": weak,
        "Role": format!("arn:aws:iam::{ACCOUNT}:role/all"),
    });
    let made = world
        .call(async |session| session.call::<create_user::CreateUser>(new).await.unwrap())
        .map(|_| ());
    for refused in [import(&weak).map(|_| ()), made] {
        let refused = refused.unwrap_err();
        assert_eq!(refused.code, "InvalidRequestException", "{refused}");
        let text = format!("Unsupported or invalid SSH public key format: {WEAK}");
        assert!(refused.message.contains(&text), "{refused}");
    }
    import(&strong).unwrap();
    let logs_in = |key: &str| {
        let port = world.server.sftp.unwrap().to_string();
        let mut command = world.tool("sftp");
        command.args(world.options(key));
        command.args(["-P", &port, "-b", "/dev/null", "alice@127.0.0.1"]);
        run(&mut command).status.success()
    };
    assert!(logs_in("alice") && logs_in("strong"));
    assert!(!logs_in("weak"));
    let events = world.events_until("AUTH_FAILURE");
    assert!(events.iter().any(is_of_weak_key), "{events:?}");
}
