//! Programs as a user runs them: run to the end, with their output.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output};

/// A program without AWS or Outlast variables in its environment.
pub fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("AWS_") || name.starts_with("OUTLAST_") {
            command.env_remove(&*name);
        }
    }
    command
}

/// Runs a command to its end.
pub fn run(command: &mut Command) -> Output {
    match command.output() {
        Ok(output) => output,
        Err(error) => panic!("{command:?} does not start: {error}"),
    }
}

/// Its stdout.
pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Its stderr.
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs a command that must succeed; returns its stdout.
pub fn succeed(command: &mut Command) -> String {
    let output = run(command);
    assert!(output.status.success(), "{command:?}\n{}{}", stdout(&output), stderr(&output));
    stdout(&output)
}

/// Runs a command that must fail with this exit code; returns its stderr.
pub fn fail(command: &mut Command, code: i32) -> String {
    let output = run(command);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{command:?}\n{}{text}", stdout(&output));
    text
}

/// Copies a program to the folder where it will be started. Another process does the copying: a file that this
/// process has open for writing is also open in children that other threads are starting, and a file that anybody has
/// open for writing cannot be started ("Text file busy").
#[track_caller]
pub fn copy(from: impl AsRef<OsStr>, to: &Path) {
    succeed(Command::new("cp").arg("--preserve=mode").arg(from.as_ref()).arg(to));
}
