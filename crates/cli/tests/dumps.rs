//! Processes with keys: no debugger of their own user reads them, and they leave no core dump.

use std::os::unix::fs::MetadataExt;
use std::process::Command;

use outlast_testing::skip;

use crate::common::pki::{New, issue};
use crate::common::stub::Process;
use crate::common::{Folder, outlast, succeed};

/// A user that owns nothing.
const NOBODY: u32 = 65_534;

/// The command as this user.
fn as_nobody(command: &Command) -> Command {
    let mut wrapped = Command::new("setpriv");
    wrapped.args([format!("--reuid={NOBODY}"), format!("--regid={NOBODY}")]).arg("--clear-groups");
    wrapped.arg(command.get_program()).args(command.get_args());
    wrapped
}

/// Limit of core dumps, and the owner of the process's files in /proc: root if it may not be dumped (proc(5)).
fn found(process: &Process) -> (String, u32) {
    let folder = format!("/proc/{}", process.child.id());
    let limits = std::fs::read_to_string(format!("{folder}/limits")).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    let core = core.split_whitespace().nth(4).unwrap().to_owned();
    (core, std::fs::metadata(format!("{folder}/mem")).unwrap().uid())
}

#[test]
fn servers_refuse_debuggers_and_core_dumps() {
    if !rustix::process::geteuid().is_root() {
        return skip("only root can start a server as another user");
    }
    let folder = Folder::new();
    let place = folder.temporary.path();
    let new = New::of("EndEntityServerAuthCertificate", "localhost", 1_790_000_000);
    let leaf = issue("ECC_NIST_P256", New { days: 3650, ..new }, None);
    let certificate = folder.write("proxy.pem", leaf.pem().as_bytes());
    let key = folder.write("proxy.key", leaf.key_pem().as_bytes());
    let give = || {
        succeed(Command::new("chown").args(["-R", &NOBODY.to_string()]).arg(place));
    };
    let mut server = outlast();
    server
        .args(["server", "--listen", "127.0.0.1:0", "--http3", "off", "--data"])
        .arg(&folder.data);
    let mut proxy = outlast();
    proxy.args([
        "proxy",
        "--listen",
        "127.0.0.1:0",
        "--to",
        "tcp://127.0.0.1:1",
        "--tls-cert-file",
    ]);
    proxy.arg(certificate).arg("--tls-key-file").arg(key);
    let mut forward = outlast();
    forward.args(["forward", "--lazy", "--to", "tls://127.0.0.1:1", "--ca-bundle"]);
    forward.arg(folder.data.join("client/ca.pem"));
    give();
    for command in [&server, &proxy, &forward] {
        let process = Process::start(&mut as_nobody(command), 1, place);
        assert_eq!(found(&process), ("0".to_owned(), 0), "{command:?}");
    }
    // The operator may want a core dump of a server that fails.
    std::fs::write(folder.data.join("outlast.toml"), "[process]\nallow_dumps = true\n").unwrap();
    give();
    let process = Process::start(&mut as_nobody(&server), 1, place);
    let (core, owner) = found(&process);
    assert_eq!(owner, NOBODY);
    let own = std::fs::read_to_string("/proc/self/limits").unwrap();
    let own = own.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(Some(core.as_str()), own.split_whitespace().nth(4));
}
