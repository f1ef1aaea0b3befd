//! OpenSSH's own tests of sftp (`regress/sftp*.sh`) with `outlast sftp-server` in the place of OpenSSH's.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use outlast_testing::program;

use crate::common::peers::{checkout, peer};
use crate::common::{run, stderr, stdout};

/// The tests that need no sshd: those of `sftp-chroot.sh` and `sftp-uri.sh` do.
const TESTS: [&str; 7] =
    ["sftp", "sftp-cmds", "sftp-badcmds", "sftp-batch", "sftp-glob", "sftp-perm", "sftp-resume"];

#[test]
fn openssh_tests_of_sftp_pass() {
    let (Some(openssh), Some(tests)) = (peer("openssh"), peer("openssh-regress")) else { return };
    let folder = tempfile::tempdir().unwrap();
    // The options of OpenSSH's server for its log have no counterpart: the log is on standard error, as with `-e`.
    let server = folder.path().join("server");
    let text = format!(
        "#!/bin/sh\n[ \"$1\" != -el ] || shift 2\nexec {} sftp-server --root / -d \"$(pwd)\" \"$@\"\n",
        env!("CARGO_BIN_EXE_outlast")
    );
    std::fs::write(&server, text).unwrap();
    std::fs::set_permissions(&server, std::fs::Permissions::from_mode(0o755)).unwrap();
    let own = openssh.join("10.0/tree/usr/lib/openssh/sftp-server");
    let mut steps = 0;
    for test in TESTS {
        // With OpenSSH's own server first: what fails there says nothing.
        for server in [&own, &server] {
            steps += passes(&tests.join(test).with_extension("sh"), &openssh, server);
        }
    }
    println!("{} steps of {} tests, with each server", steps / 2, TESTS.len());
    assert!(steps > 100, "{steps}");
}

fn passes(test: &Path, openssh: &Path, server: &Path) -> usize {
    let mut command = program::command("sh");
    command.arg(checkout().join("tests/interop/ssh/regress.sh")).arg(test);
    command.arg(openssh.join("10.0/bin/sftp")).arg(server);
    let output = run(&mut command);
    let text = stdout(&output);
    let failed = !output.status.success() || text.contains("FAIL:");
    assert!(!failed, "{} with {}: {text}{}", test.display(), server.display(), stderr(&output));
    text.matches("step: ").count()
}
