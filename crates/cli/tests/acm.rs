//! Certificate Manager with AWS's Python SDK, and its exports with OpenSSL: `tests/interop/python/acm_steps.py`.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::common;

use std::process::Command;

use common::peers::{checkout, peer};
use common::{Folder, outlast, run, stderr, stdout, succeed};

#[test]
fn certificates_from_request_to_revocation() {
    let (Some(python), Some(openssl)) = (peer("python"), peer("openssl")) else { return };
    let folder = Folder::new();
    let mut server = folder.serve();
    let mut program = Command::new(python.join("bin/python"));
    program.arg(checkout().join("tests/interop/python/acm_steps.py"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("AWS_") {
            program.env_remove(&name);
        }
    }
    program
        .env("AWS_CONFIG_FILE", folder.data.join("client/config"))
        .env("AWS_SHARED_CREDENTIALS_FILE", folder.data.join("client/credentials"))
        .env("AWS_PROFILE", "outlast")
        .env("OPENSSL", openssl.join("bin/openssl"));
    let output = run(&mut program);
    let text = stdout(&output);
    let failed: Vec<_> = text.lines().filter(|line| line.starts_with("FAILED")).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(output.status.success(), "{text}{}", stderr(&output));
    let last = text.lines().last().unwrap_or_default();
    assert!(last.ends_with(" steps passed, 0 failed"), "{text}");
    println!("{last}");
    assert_eq!(server.terminate(), Some(0));
    // Every certificate has its key, and the two match.
    let said = succeed(outlast().args(["store", "check", "--data"]).arg(&folder.data));
    println!("{said}");
}
