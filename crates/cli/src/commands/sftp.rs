//! `outlast sftp`: files of SFTP users.

use std::io::{BufRead, IsTerminal, Read};
use std::path::PathBuf;

use outlast_crypto::Secret;
use outlast_crypto::passwords::PasswordHash;
use serde_json::json;

use crate::failure::Failure;
use crate::output::Output;
use crate::sftp_users;

/// Least characters of a password (NIST SP 800-63B-4, section 3.1.1.2).
const MIN_PASSWORD: usize = 8;
/// Most bytes that are read of a password.
const MAX_PASSWORD: u64 = 1024;

/// Arguments of `sftp`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Check a file of users (--sftp-users), and show what each user may do where.
    Check {
        /// The file.
        file: PathBuf,
    },
    /// Hash a password for a user of such a file: the value of its member password. The password is asked for, or is the
    /// first line of standard input if that is no terminal.
    Password,
}

/// Checks a file of users, or hashes a password.
pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    match &arguments.command {
        Command::Check { file } => {
            let (text, value) = sftp_users::described(file)?;
            output.result(&text, &value);
        }
        Command::Password => {
            let hash = PasswordHash::make(&password()?)
                .map_err(|error| Failure::new(format!("the password cannot be hashed: {error}")))?;
            output.result(&hash, &json!({ "password": hash }));
        }
    }
    Ok(())
}

fn password() -> Result<Secret, Failure> {
    let unread =
        |error: std::io::Error| Failure::new(format!("the password cannot be read: {error}"));
    let ask = |prompt: &str| {
        rpassword::prompt_password(prompt).map(|text| Secret::new(text.into_bytes()))
    };
    let is_terminal = std::io::stdin().is_terminal();
    let password = if is_terminal {
        ask("password of the user: ").map_err(unread)?
    } else {
        let mut line = Vec::new();
        let mut input = std::io::stdin().lock().take(MAX_PASSWORD + 2);
        input.read_until(b'\n', &mut line).map_err(unread)?;
        let end = line.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n'));
        line.truncate(end.map_or(0, |last| last + 1));
        Secret::new(line)
    };
    let text = std::str::from_utf8(password.expose())
        .map_err(|_| Failure::new("the password is not UTF-8, which clients of SSH send"))?;
    if password.len() as u64 > MAX_PASSWORD {
        return Err(Failure::new(format!("the password has more than {MAX_PASSWORD} bytes")));
    }
    if text.chars().count() < MIN_PASSWORD {
        return Err(Failure::new("the password is too short")
            .hint(format!("use {MIN_PASSWORD} or more characters, such as six random words")));
    }
    if is_terminal && ask("repeat the password: ").map_err(unread)?.expose() != password.expose() {
        return Err(Failure::new("the two passwords differ"));
    }
    Ok(password)
}
