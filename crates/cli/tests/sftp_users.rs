//! `sftp.toml` with OpenSSH's clients: who gets in, what each user can reach, quotas, scans of uploads, and running sessions.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use outlast_api::ops::transfer::update_server::UpdateServer;
use outlast_testing::until;
use serde_json::Value;

use crate::common::peers::peer;
use crate::common::{self, Folder, Server, outlast, run, stderr, stdout, succeed};

/// A server whose users are in a file, and OpenSSH's programs.
pub struct World {
    pub folder: Folder,
    pub server: Server,
    pub tools: PathBuf,
}

fn openssh() -> Option<PathBuf> {
    Some(peer("openssh")?.join("10.0/bin"))
}

/// Users of a file: name, and what the file says of each.
type Said<'a> = &'a [(&'a str, &'a str)];

/// Makes keys of users, and the file. `{dir}` stands for a folder of the test.
pub fn write(folder: &Folder, tools: &Path, users: Said<'_>) -> PathBuf {
    let mut text =
        "account = \"123456789012\"\nbanner = \"before\"\nwelcome = \"after\"\n".to_owned();
    let dir = folder.path("files").display().to_string();
    for (name, said) in users {
        let key = folder.path(name);
        if !key.exists() {
            let mut keygen = Command::new(tools.join("ssh-keygen"));
            succeed(keygen.args(["-q", "-N", "", "-C", "", "-t", "ed25519", "-f"]).arg(&key));
        }
        let said = said.replace("{dir}", &dir);
        text.push_str(&format!(
            "[[user]]\nname = \"{name}\"\nkey_files = [\"{name}.pub\"]\n{said}\n"
        ));
    }
    folder.write("sftp.toml", text.as_bytes())
}

impl World {
    fn new(tools: &Path, folders: &[&str], users: Said<'_>, arguments: &[&str]) -> Self {
        let folder = Folder::new();
        for name in folders {
            std::fs::create_dir_all(folder.path("files").join(name)).unwrap();
        }
        let file = write(&folder, tools, users).display().to_string();
        let own = ["--sftp-listen", "127.0.0.1:0", "--sftp-users", &file];
        let server = Server::start(&folder.data, &[&own[..], arguments].concat());
        Self { folder, server, tools: tools.to_path_buf() }
    }

    pub fn change(&self, users: Said<'_>) {
        write(&self.folder, &self.tools, users);
    }

    fn file(&self, path: &str) -> PathBuf {
        self.folder.path("files").join(path)
    }

    fn command(&self, user: &str, key: &str) -> Command {
        let mut command = Command::new(self.tools.join("sftp"));
        command.arg("-S").arg(self.tools.join("ssh")).args(["-F", "none", "-i"]);
        command.arg(self.folder.path(key));
        for option in [
            "IdentitiesOnly=yes",
            "PasswordAuthentication=no",
            "StrictHostKeyChecking=no",
            "UserKnownHostsFile=/dev/null",
        ] {
            command.args(["-o", option]);
        }
        let port = self.server.sftp.unwrap().to_string();
        command.args(["-P", &port, "-b", "-"]).arg(format!("{user}@127.0.0.1"));
        command.current_dir(self.folder.temporary.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn with_key(&self, user: &str, key: &str, commands: &[&str]) -> Output {
        let mut child = self.command(user, key).spawn().unwrap();
        let text = commands.join("\n") + "\n";
        let mut input = child.stdin.take().unwrap();
        // A client that is refused does not read.
        let _ = input.write_all(text.as_bytes());
        drop(input);
        child.wait_with_output().unwrap()
    }

    #[track_caller]
    pub fn works(&self, user: &str, commands: &[&str]) -> String {
        let output = self.with_key(user, user, commands);
        assert!(output.status.success(), "{commands:?}: {}{}", stdout(&output), stderr(&output));
        stdout(&output)
    }

    #[track_caller]
    fn fails(&self, user: &str, commands: &[&str], why: &str) {
        let output = self.with_key(user, user, commands);
        let text = format!("{}{}", stdout(&output), stderr(&output));
        assert!(!output.status.success(), "{commands:?} worked: {text}");
        assert!(text.contains(why), "{commands:?}: {text}");
    }

    /// A session that stays, after its first reply.
    pub fn stays(&self, user: &str) -> Child {
        common::stays(self.command(user, user))
    }

    /// Additional data of the audit events of SFTP, the oldest first.
    fn events(&self) -> Vec<Value> {
        self.folder.sftp_events()
    }
}

#[test]
fn users_of_a_file_reach_their_folders_and_nothing_else() {
    let Some(tools) = openssh() else { return };
    let world = World::new(
        &tools,
        &["alice", "bob/private", "shared"],
        &[
            (
                "alice",
                "folder = \"{dir}/alice\"\nhidden = [\".git\"]\n\
                 [[user.folders]]\npath = \"/shared\"\nfolder = \"{dir}/shared\"\nrights = [\"list\", \"read\"]\n\
                 [[user.folders]]\npath = \"/bucket\"\nbucket = \"exchange/in\"\n",
            ),
            ("bob", "folder = \"{dir}/bob\"\nread_only = true\n"),
            ("drop", "folder = \"{dir}/shared\"\nrights = [\"write\"]\n"),
        ],
        &[],
    );
    std::fs::write(world.file("bob/private/secret"), b"secret").unwrap();
    std::fs::write(world.file("shared/news"), b"news").unwrap();
    std::fs::create_dir(world.file("alice/.git")).unwrap();
    std::os::unix::fs::symlink("../bob/private", world.file("alice/link")).unwrap();
    std::os::unix::fs::symlink(world.file("bob"), world.file("alice/absolute")).unwrap();
    world.folder.write("x", b"content");
    let said = world.works(
        "alice",
        &["pwd", "put x", "ls -1", "get shared/news n", "put x bucket/y", "ls -1 /"],
    );
    assert!(said.contains("Remote working directory: /\n"), "{said}");
    assert!(said.contains("shared") && said.contains("bucket") && !said.contains(".git"), "{said}");
    assert_eq!(std::fs::read(world.file("alice/x")).unwrap(), b"content");
    let bucket = world.folder.data.join("buckets/exchange/in/y");
    assert_eq!(std::fs::read(bucket).unwrap(), b"content");
    // Every spelling of what is not alice's.
    for path in [
        "/../bob/private/secret",
        "../bob/private/secret",
        "/../../../../../../etc/passwd",
        "/etc/passwd",
        "link/secret",
        "absolute/private/secret",
        "shared/../../bob/private/secret",
        "./shared/.././../bob/private/secret",
        "bucket/../../../etc/passwd",
        "/shared//..//..//bob/private/secret",
        ".git/config",
    ] {
        world.fails("alice", &[&format!("get {path} stolen")], "");
        assert!(!world.folder.path("stolen").exists(), "{path}");
    }
    for (user, commands, why) in [
        ("alice", &["put x shared/x"][..], "ermission denied"),
        ("alice", &["rm shared/news"], "ermission denied"),
        ("alice", &["rename shared/news shared/old"], "ermission denied"),
        ("alice", &["rename shared/news stolen"], ""),
        ("alice", &["mkdir shared/d"], "ermission denied"),
        ("alice", &["chmod 777 shared/news"], "ermission denied"),
        ("alice", &["ln -s /x shared/l"], ""),
        ("alice", &["rmdir shared"], ""),
        ("alice", &["rename shared mine"], ""),
        ("alice", &["mkdir .git"], ""),
        ("bob", &["put x"], "ermission denied"),
        ("bob", &["rm private/secret"], "ermission denied"),
        ("bob", &["mkdir d"], "ermission denied"),
        ("drop", &["get news n2"], ""),
        ("drop", &["rm news"], "ermission denied"),
    ] {
        world.fails(user, commands, why);
    }
    // The client goes on after a list that is refused.
    let listed = stderr(&world.with_key("drop", "drop", &["ls"]));
    assert!(listed.contains("ermission denied"), "{listed}");
    world.works("bob", &["get private/secret s", "ls"]);
    // It is closed before its attributes are set, which the user may not.
    world.works("drop", &["put x dropped"]);
    assert_eq!(std::fs::read(world.file("shared/dropped")).unwrap(), b"content");
    // A link that takes the place of a folder after the file was read leads nowhere.
    std::fs::rename(world.file("shared"), world.file("moved")).unwrap();
    std::os::unix::fs::symlink("bob", world.file("shared")).unwrap();
    world.fails("drop", &["put x linked"], "");
    assert!(!world.file("bob/linked").exists());
    let events = world.events();
    let connected = events.iter().find(|event| event["activity-type"] == "CONNECTED").unwrap();
    assert_eq!(connected["resource-arn"], "arn:aws:transfer:us-east-1:123456789012:server/sftp");
    assert_eq!(connected["user"], "alice");
    assert!(connected["ssh-public-key-fingerprint"].is_string() && connected["role"].is_null());
    let open = events.iter().find(|event| event["activity-type"] == "OPEN").unwrap();
    assert_eq!(open["target"], world.file("alice/x").canonicalize().unwrap().display().to_string());
    assert!(events.iter().any(|event| event["activity-type"] == "ERROR"), "{events:?}");
    // Host keys are made once, for their owner only.
    let key = world.folder.data.join("sftp-host-keys/ssh_host_ed25519_key");
    assert_eq!(std::fs::metadata(key).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn keys_addresses_times_and_banners_of_a_file() {
    let Some(tools) = openssh() else { return };
    let home = "folder = \"{dir}/home\"\n";
    let said = |more: &str| format!("{home}{more}\n");
    let users = [
        ("alice", said("allow = [\"127.0.0.0/8\"]")),
        ("elsewhere", said("allow = [\"192.0.2.0/24\"]")),
        ("blocked", said("allow = [\"127.0.0.1\"]\ndeny = [\"127.0.0.1\"]")),
        ("expired", said("expires = \"2020-01-01T00:00:00Z\"")),
        ("single", said("sessions = 1")),
    ];
    let users: Vec<_> = users.iter().map(|(name, said)| (*name, said.as_str())).collect();
    let world = World::new(&tools, &["home"], &users, &[]);
    let output = world.with_key("alice", "alice", &["pwd"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stderr(&output);
    let (before, after) = (text.find("before").unwrap(), text.find("after").unwrap());
    assert!(before < after, "{text}");
    let mut said = Vec::new();
    for (user, key) in [
        ("elsewhere", "elsewhere"),
        ("blocked", "blocked"),
        ("expired", "expired"),
        ("alice", "blocked"),
        ("nobody", "alice"),
    ] {
        let output = world.with_key(user, key, &["pwd"]);
        assert!(!output.status.success(), "{user} got in");
        said.push(stderr(&output).replace(user, "USER"));
    }
    // The same words, whatever the reason.
    said.dedup();
    assert_eq!(said.len(), 1, "{said:?}");
    let mut first = world.stays("single");
    assert!(!world.with_key("single", "single", &["pwd"]).status.success());
    drop(first.stdin.take());
    first.wait().unwrap();
    until("the session has ended", || {
        world.with_key("single", "single", &["pwd"]).status.success()
    });
    let reasons: Vec<_> = world
        .events()
        .into_iter()
        .filter(|event| event["activity-type"] == "AUTH_FAILURE")
        .map(|event| event["message"].as_str().unwrap().to_owned())
        .collect();
    for reason in ["from this address", "logins have ended", "none of the user's", "is unknown"] {
        assert!(reasons.iter().any(|said| said.contains(reason)), "{reason}: {reasons:?}");
    }
}

#[test]
fn a_session_ends_when_its_user_leaves_the_file() {
    let Some(tools) = openssh() else { return };
    let (alice, bob) =
        (("alice", "folder = \"{dir}/alice\"\n"), ("bobby", "folder = \"{dir}/bob\"\n"));
    let world = World::new(&tools, &["alice", "bob"], &[alice, bob], &[]);
    let (mut leaves, mut stays) = (world.stays("alice"), world.stays("bobby"));
    // A broken file changes nothing.
    let file = world.folder.path("sftp.toml");
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, b"account = 1").unwrap();
    world.server.hang_up();
    world.works("alice", &["pwd"]);
    std::fs::write(&file, whole).unwrap();
    world.change(&[bob]);
    world.server.hang_up();
    until("the session of the user ends", || {
        // The client notices at its next request.
        let _ = leaves.stdin.as_mut().unwrap().write_all(b"ls\n");
        leaves.try_wait().unwrap().is_some()
    });
    assert!(!world.with_key("alice", "alice", &["pwd"]).status.success());
    assert!(stays.try_wait().unwrap().is_none());
    drop(stays.stdin.take());
    assert!(stays.wait().unwrap().success());
    until("the ends are recorded", || {
        let events = world.events();
        let count =
            |kind: &str| events.iter().filter(|event| event["activity-type"] == kind).count();
        count("CONNECTED") == count("DISCONNECTED")
    });
}

#[test]
fn a_quota_holds_for_all_sessions_and_after_a_kill() {
    let Some(tools) = openssh() else { return };
    let said = "folder = \"{dir}/home\"\nquota = { bytes = 1000000, files = 5 }\n";
    let arguments = ["--sftp-atomic-uploads", "true"];
    let mut world = World::new(&tools, &["home"], &[("alice", said), ("bobby", said)], &arguments);
    world.folder.write("big", &vec![7; 600_000]);
    world.folder.write("small", &vec![7; 100_000]);
    world.works("alice", &["put big"]);
    // Another user of the folder, in another session.
    world.fails("bobby", &["put big second"], "");
    assert!(!world.file("home/second").exists());
    let said = world.works("alice", &["df"]);
    let line = said.lines().last().unwrap();
    let numbers: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    // In KiB, by blocks of the file system.
    assert!((970..=977).contains(&numbers[0]) && numbers[2] <= 391, "{said}");
    // Renaming and replacing do not count twice; removing gives back.
    let commands = ["rename big large", "put small twice", "put small twice", "rm twice"];
    world.works("alice", &commands);
    // Two sessions race for what is left.
    let puts = [("alice", "one"), ("bobby", "two"), ("alice", "three"), ("bobby", "four")];
    let race: Vec<Output> = std::thread::scope(|scope| {
        let all: Vec<_> = puts
            .iter()
            .map(|(user, name)| {
                let world = &world;
                scope.spawn(move || world.with_key(user, user, &[&format!("put big {name}")]))
            })
            .collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(race.iter().all(|output| !output.status.success()), "{race:?}");
    let race: usize = std::thread::scope(|scope| {
        let all: Vec<_> = (0..6)
            .map(|number| {
                let (world, user) = (&world, ["alice", "bobby"][number % 2]);
                scope.spawn(move || {
                    let put = format!("put small s{number}");
                    world.with_key(user, user, &[&put]).status.success()
                })
            })
            .collect();
        all.into_iter().map(|one| usize::from(one.join().unwrap())).sum()
    });
    let size = |world: &World| -> (u64, usize) {
        let entries = std::fs::read_dir(world.file("home")).unwrap();
        let sizes: Vec<_> = entries.map(|entry| entry.unwrap().metadata().unwrap().len()).collect();
        (sizes.iter().sum(), sizes.len())
    };
    let (bytes, files) = size(&world);
    // 600,000 and at most four of 100,000; five files in all.
    assert_eq!((race, files), (4, 5));
    assert!(bytes <= 1_000_000, "{bytes}");
    // A killed server has forgotten what it counted, and the next one measures.
    world.server.kill();
    std::fs::remove_file(world.file("home/large")).unwrap();
    let file = world.folder.path("sftp.toml").display().to_string();
    let own = ["--sftp-listen", "127.0.0.1:0", "--sftp-users", &file];
    world.server = Server::start(&world.folder.data, &[&own[..], &arguments].concat());
    world.works("bobby", &["put big again"]);
    world.fails("alice", &["put small more"], "");
    let (bytes, files) = size(&world);
    assert_eq!((bytes, files), (1_000_000, 5));
}

/// A program that judges by the content of its standard input, and says at which path it could open it.
const SCAN: &str = "#!/bin/sh
case \"$(head -c 16 \"$1\")\" in
*INFECTED*) exit 1;;
*HANG*) sleep 1000;;
*CRASH*) kill -SEGV $$;;
*NOISY*) yes noise | head -c 100000000; exit 0;;
*WAIT*) touch \"$2/scanning\"; while [ -e \"$2/scanning\" ]; do sleep 0.1; done;;
esac
exit 0
";

#[test]
fn an_upload_appears_when_the_program_that_scans_it_agrees() {
    let Some(tools) = openssh() else { return };
    let folder = Folder::new();
    let dir = folder.temporary.path().display().to_string();
    let program = folder.write("scan", SCAN.as_bytes());
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let config = format!(
        "[sftp_uploads]\nscan = [\"{}\", \"{{path}}\", \"{dir}\"]\nscan_timeout_seconds = 15\n",
        program.display()
    );
    let config = folder.write("scan.toml", config.as_bytes()).display().to_string();
    let said = ("alice", "folder = \"{dir}/home\"\nquota = { files = 100 }\n");
    let mut world = World::new(&tools, &["home"], &[said], &["--config", &config]);
    for (name, content) in [
        ("clean", "fine"),
        ("bad", "INFECTED"),
        ("slow", "HANG"),
        ("crash", "CRASH"),
        ("noisy", "NOISY"),
        ("tail", "fineINFECTED"),
    ] {
        world.folder.write(name, content.as_bytes());
    }
    world.works("alice", &["put clean", "put noisy", "put -f clean flushed"]);
    world.fails("alice", &["put bad"], "ermission denied");
    world.fails("alice", &["put -f bad"], "");
    world.fails("alice", &["put crash"], "ermission denied");
    world.fails("alice", &["put slow"], "ermission denied");
    // What was there stays.
    world.fails("alice", &["put bad clean"], "ermission denied");
    // Content that was inspected is not changed by a side door, nor put together from two files.
    world.fails("alice", &["put -a tail clean"], "ermission denied");
    let names = |world: &World| {
        let entries = std::fs::read_dir(world.file("home")).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&world), ["clean", "flushed", "noisy"]);
    assert_eq!(std::fs::read(world.file("home/clean")).unwrap(), b"fine");
    let refused =
        |event: &&Value| event["activity-type"] == "ERROR" && event["operation"] == "CLOSE";
    let events = world.events();
    assert!(events.iter().filter(refused).count() >= 4, "{events:?}");
    // Killed while the program runs: nothing has appeared, and the client was told nothing.
    world.folder.write("wait", b"WAIT");
    let marker = folder.path("scanning");
    let mut put = world.command("alice", "alice").spawn().unwrap();
    put.stdin.as_mut().unwrap().write_all(b"put wait\n").unwrap();
    until("the program runs", || marker.exists());
    world.server.kill();
    assert!(!put.wait().unwrap().success());
    std::fs::remove_file(marker).unwrap();
    assert_eq!(names(&world), ["clean", "flushed", "noisy"]);
}

/// The same program decides about uploads of users of the API.
#[test]
fn uploads_of_users_of_the_api_are_scanned() {
    let Some(tools) = openssh() else { return };
    let folder = Folder::new();
    let dir = folder.temporary.path().display().to_string();
    let program = folder.write("scan", SCAN.as_bytes());
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let config =
        format!("[sftp_uploads]\nscan = [\"{}\", \"{{path}}\", \"{dir}\"]\n", program.display());
    let config = folder.write("scan.toml", config.as_bytes()).display().to_string();
    let world = crate::sftp::World::new(&tools, "2026-11", &["--config", &config]);
    world.at_home("alice", "all");
    world.folder.write("clean", b"fine");
    world.folder.write("bad", b"INFECTED");
    world.works("alice", &["put clean", "put -f clean flushed"]);
    assert!(!world.sftp("alice", &[], &["put bad"]).status.success());
    assert_eq!(std::fs::read(world.bucket("files/alice/clean")).unwrap(), b"fine");
    assert!(!world.bucket("files/alice/bad").exists());
}

#[test]
fn a_server_of_the_api_ignores_attributes_if_it_is_told_to() {
    let Some(tools) = openssh() else { return };
    let world = crate::sftp::World::new(&tools, "2026-11", &[]);
    world.at_home("alice", "all");
    world.folder.write("x", b"content");
    world.works("alice", &["put x", "chmod 640 x"]);
    let file = world.bucket("files/alice/x");
    let mode = || std::fs::metadata(&file).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(), 0o640);
    let change = serde_json::json!({
        "ServerId": world.id, "ProtocolDetails": { "SetStatOption": "ENABLE_NO_OP" },
    });
    world.call(async |session| {
        session.call::<UpdateServer>(change).await.unwrap().unwrap();
    });
    until("the option is in force", || {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
        world.works("alice", &["chmod 600 x"]);
        mode() == 0o640
    });
    // The client learns nothing of it; the audit trail has what it asked for.
    let events = world.events();
    let set = events.iter().rfind(|event| event["activity-type"] == "SETSTAT").unwrap();
    assert_eq!(set["attributes"], "mode=0600");
}

/// Sets a size by a path, and times.
const ATTRIBUTES: &str = r#"
import asyncio, asyncssh, sys
async def main():
    port, key = int(sys.argv[1]), sys.argv[2]
    async with asyncssh.connect("127.0.0.1", port, username="alice", client_keys=[key], known_hosts=None) as c:
        async with c.start_sftp_client() as sftp:
            await sftp.truncate("/f", 3)
            await sftp.setstat("/f", asyncssh.SFTPAttrs(atime=1, mtime=2))
asyncio.run(main())
"#;

#[test]
fn events_name_links_attributes_and_what_has_failed() {
    let (Some(tools), Some(python)) = (openssh(), peer("python")) else { return };
    let alice = "folder = \"{dir}/home\"\n\
                 [[user.folders]]\npath = \"/fixed\"\nrights = [\"list\", \"read\"]\n";
    let bobby = "folder = \"{dir}/small\"\nquota = { files = 1 }\n";
    let folders = ["home/d", "home/fixed", "small"];
    let world = World::new(&tools, &folders, &[("alice", alice), ("bobby", bobby)], &[]);
    std::fs::write(world.file("home/f"), b"content").unwrap();
    std::fs::write(world.file("home/fixed/g"), b"content").unwrap();
    world.folder.write("x", b"content");
    world.works("alice", &["ln -s f soft", "ln f hard", "chmod 600 f"]);
    let mut command = Command::new(python.join("bin/python"));
    command.args(["-c", ATTRIBUTES, &world.server.sftp.unwrap().to_string()]);
    succeed(command.arg(world.folder.path("alice")));
    assert_eq!(std::fs::read(world.file("home/hard")).unwrap(), b"con");
    // The client goes on after what fails.
    world.works(
        "alice",
        &[
            "-rm gone",
            "-rename gone other",
            "-mkdir d",
            "-rmdir gone",
            "-ln -s f soft",
            "-ln gone more",
            "-chmod 600 gone",
            "-rename fixed/g g",
            "-get gone",
        ],
    );
    world.works("bobby", &["put x", "-put x second"]);
    let events = world.events();
    let told = |kind: &str, members: &[&str]| -> Vec<String> {
        let found = events.iter().filter(|event| event["activity-type"] == kind);
        found
            .map(|event| {
                let texts = members.iter().map(|member| event[*member].as_str().unwrap_or("-"));
                texts.collect::<Vec<_>>().join(" ")
            })
            .collect()
    };
    assert_eq!(told("CREATE_SYMLINK", &["path", "target"]), ["/soft f", "/hard /f"]);
    let mut set = told("SETSTAT", &["path", "attributes"]);
    // Whether the client sets attributes of what it puts depends on its version.
    set.retain(|told| told.starts_with("/f "));
    assert_eq!(set, ["/f mode=0600", "/f size=3", "/f atime=1, mtime=2"]);
    let failed = told("ERROR", &["operation", "path", "new-path", "target", "status"]);
    let expected = [
        "REMOVE /gone - - SSH_FX_NO_SUCH_FILE",
        "POSIX-RENAME /gone /other - SSH_FX_NO_SUCH_FILE",
        "MKDIR /d - - SSH_FX_FAILURE",
        "RMDIR /gone - - SSH_FX_NO_SUCH_FILE",
        "SYMLINK /soft - f SSH_FX_FAILURE",
        "HARDLINK /gone /more - SSH_FX_NO_SUCH_FILE",
        "SETSTAT /gone - - SSH_FX_NO_SUCH_FILE",
        "POSIX-RENAME /fixed/g /g - SSH_FX_PERMISSION_DENIED",
        "OPEN /second - - SSH_FX_FAILURE",
    ];
    assert_eq!(failed, expected);
    let messages = told("ERROR", &["message"]);
    assert_eq!((messages[0].as_str(), messages[7].as_str()), ("no such file", "Access denied"));
    assert!(messages[8].starts_with("quota exceeded"), "{messages:?}");
}

#[test]
fn what_happens_to_files_is_told_to_a_program() {
    let Some(tools) = openssh() else { return };
    let folder = Folder::new();
    let told = folder.path("told");
    std::fs::create_dir(&told).unwrap();
    let script = "f=$(mktemp \"$0/XXXXXX\"); cat > $f; mv $f $f.json";
    let config = format!(
        "[events.targets.t]\nprogram = [\"/bin/sh\", \"-c\", '{script}', \"{}\"]\nsources = [\"aws.transfer\"]\n",
        told.display()
    );
    let config = folder.write("events.toml", config.as_bytes()).display().to_string();
    let said =
        "folder = \"{dir}/home\"\n[[user.folders]]\npath = \"/fixed\"\nrights = [\"list\"]\n";
    let world = World::new(&tools, &["home/fixed"], &[("alice", said)], &["--config", &config]);
    world.folder.write("x", b"content");
    world.works("alice", &["put x", "get x y", "rename x z", "rm z", "mkdir d", "rmdir d"]);
    world.fails("alice", &["put x fixed/x"], "ermission denied");
    world.fails("alice", &["mkdir fixed/d"], "ermission denied");
    for command in ["rename gone z", "rm gone", "rmdir gone"] {
        world.fails("alice", &[command], "");
    }
    let events = || -> Vec<Value> {
        let entries = std::fs::read_dir(&told).unwrap().map(|entry| entry.unwrap().path());
        let whole = entries.filter(|path| path.extension().is_some_and(|found| found == "json"));
        whole.map(|path| serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()).collect()
    };
    for kind in [
        "File Upload Completed",
        "File Upload Failed",
        "File Download Completed",
        "File Rename Completed",
        "File Rename Failed",
        "File Delete Completed",
        "File Delete Failed",
        "Directory Create Completed",
        "Directory Create Failed",
        "Directory Delete Completed",
        "Directory Delete Failed",
    ] {
        let kind = format!("SFTP Server {kind}");
        until(&kind, || events().iter().any(|event| event["detail-type"] == *kind));
    }
    let all = events();
    let upload =
        all.iter().find(|event| event["detail-type"] == "SFTP Server File Upload Completed");
    let upload = upload.unwrap();
    let detail = &upload["detail"];
    assert_eq!(upload["account"], "123456789012");
    assert_eq!((&detail["bytes"], &detail["username"]), (&7.into(), &"alice".into()));
    assert_eq!((&detail["server-id"], &detail["client-ip"]), (&"sftp".into(), &"127.0.0.1".into()));
    let path = world.file("home").canonicalize().unwrap().join("x");
    assert_eq!(detail["file-path"], path.display().to_string());
    let renamed = all.iter().find(|event| event["detail-type"] == "SFTP Server File Rename Failed");
    let detail = &renamed.unwrap()["detail"];
    assert_eq!(
        (&detail["status-code"], &detail["failure-message"]),
        (&"FAILED".into(), &"no such file".into())
    );
    assert!(detail["renamed-file-path"].as_str().unwrap().ends_with("/home/z"), "{detail}");
    assert_eq!(all.len(), 11, "{all:?}");
}

#[test]
fn a_wrong_file_is_refused_with_advice() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path("files/a")).unwrap();
    let dir = folder.path("files").display().to_string();
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ9FH3RVU3BSxqBqzhQyBn5oF1Uxsp0pHvhMU+EvhUNg";
    let check = |text: &str| {
        let file = folder.write("check.toml", text.as_bytes());
        run(outlast().args(["sftp", "check", "--output", "json"]).arg(file))
    };
    let user = |said: &str| {
        let said = said.replace("{dir}", &dir);
        format!("account = '123456789012'\n[[user]]\nname = 'alice'\nkeys = ['{key}']\n{said}\n")
    };
    let output = check(&user("folder = '{dir}/a'\nquota = { bytes = 5 }\nread_only = true"));
    assert!(output.status.success(), "{}", stderr(&output));
    let value: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let output = check(&user("folder = '{dir}/a'\nexpires = 2027-01-31T00:00:00Z"));
    assert!(stdout(&output).contains("2027-01-31T00:00:00Z"), "{}", stderr(&output));
    let folders = &value["users"][0]["folders"][0];
    assert_eq!(folders["rights"], serde_json::json!(["list", "read"]), "{value}");
    assert_eq!(folders["quota"]["bytes"], 5);
    let nested = "folder = '{dir}/a'\nquota = { bytes = 5 }\n[[user.folders]]\npath = '/x'\nfolder = '{dir}'";
    for (text, why) in [
        ("[[user]]\nname = 'alice'".to_owned(), "account"),
        ("account = '1'".to_owned(), "account"),
        ("account = '123456789012'\nusers = 1".to_owned(), "unknown field"),
        ("account = '123456789012'\nhost_keys = ['none']".to_owned(), "none"),
        ("account = '123456789012'\nhost_keys = ['check.toml']".to_owned(), "host key"),
        (user("folder = '{dir}/none'"), "none"),
        (user("folder = '{dir}/a'\nbucket = 'files'"), "leave one out"),
        (user(""), "neither a folder nor a bucket"),
        (format!("policy = '2026-12'\n{}", user("folder = '{dir}/a'")), "did you mean 2026-11"),
        (
            format!("policy = 'cnsa2-2026-11'\n{}", user("folder = '{dir}/a'")),
            "no host key algorithm",
        ),
        (format!("policy = '20251014'\n{}", user("folder = '{dir}/a'")), "does not cover SSH"),
        (user("bucket = 'files/../x'"), "bucket"),
        (user("folder = '{dir}/a'\nrights = ['list', 'reed']"), "no right reed"),
        (user("folder = '{dir}/a'\nallow = ['192.0.2.0/33']"), "no network"),
        (user("folder = '{dir}/a'\nexpires = 'tomorrow'"), "no time"),
        (user("folder = '{dir}/a'\nexpires = 2027-01-31"), "2027-01-31 is no time"),
        (user("folder = '{dir}/a'\nquota = {}"), "limits nothing"),
        (user("folder = '{dir}/a'\nsessions = 0"), "at least 1"),
        (user("folder = '{dir}/a'\nkeys_files = []"), "unknown field"),
        (user("folder = '{dir}/a'\n[[user.folders]]\npath = '/../x'\nfolder = '{dir}'"), "path"),
        (user("folder = '{dir}/a'\n[[user.folders]]\npath = '/x'"), "says nothing"),
        (user(nested), "overlaps"),
        (user("folder = '{dir}/a'").replace("AAAAC3", "AAAAC4"), "keys, number 1"),
        (user("folder = '{dir}/a'").replace("'alice'", "'../x'"), "name"),
    ] {
        let output = check(&text);
        let said = stderr(&output);
        assert!(!output.status.success() && said.contains(why), "{text}: {said}");
        assert!(said.contains("check.toml") || said.contains("none"), "{said}");
    }
}
