//! `outlast lab` and `outlast siege` start another program.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use outlast_testing::program::copy;

use crate::common::{fail, outlast, run, stdout};

/// The program in a folder of its own.
fn alone(folder: &Path) -> Command {
    let place = folder.join("outlast");
    copy(outlast().get_program(), &place);
    let mut command = Command::new(place);
    command.env_remove("OUTLAST_OUTPUT").env("PATH", "/usr/bin:/bin");
    command
}

/// A lab that prints its arguments, and exits with 42.
fn lab(folder: &Path, name: &str) {
    std::fs::create_dir_all(folder).unwrap();
    let script = folder.join("script");
    std::fs::write(&script, format!("#!/bin/sh\necho {name} \"$@\"\nexit 42\n")).unwrap();
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
    copy(script, &folder.join("outlast-lab"));
}

#[test]
fn the_lab_beside_it_is_started_and_else_that_of_the_path() {
    let folder = tempfile::tempdir().unwrap();
    let (beside, elsewhere) = (folder.path().join("bin"), folder.path().join("other"));
    std::fs::create_dir(&beside).unwrap();
    lab(&elsewhere, "elsewhere");
    let mut command = alone(&beside);
    let path = format!("{}:/usr/bin:/bin", elsewhere.display());
    let said = |command: &mut Command| {
        let output = run(command.env("PATH", &path));
        assert_eq!(output.status.code(), Some(42));
        stdout(&output)
    };
    assert_eq!(
        said(command.args(["lab", "list", "--all", "--help"])),
        "elsewhere list --all --help\n"
    );
    lab(&beside, "beside");
    let again = || {
        let mut command = Command::new(beside.join("outlast"));
        command.env_remove("OUTLAST_OUTPUT");
        command
    };
    assert_eq!(
        said(again().args(["--output", "json", "siege", "-x"])),
        "beside --output json siege -x\n"
    );
    assert_eq!(said(again().args(["lab", "--output", "json"])), "beside --output json\n");
    assert_eq!(said(again().args(["lab", "--version"])), "beside --version\n");
}

#[test]
fn without_a_lab_it_is_told_how_to_get_one() {
    let folder = tempfile::tempdir().unwrap();
    for command in ["lab", "siege"] {
        let said = fail(alone(folder.path()).args([command, "--list"]), 1);
        assert!(said.starts_with("error: outlast-lab is not installed"), "{said}");
        assert!(said.contains("hint: ") && said.contains("--package outlast-lab"), "{said}");
    }
}
