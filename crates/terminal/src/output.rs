//! The only module that prints: results to stdout, everything else to stderr.
//!
//! It never fails: the reader may have gone away (`outlast ... | head`), and the exit code still has to say how the
//! command ended. `print!` and its like would panic.

use std::io::{IsTerminal, Write};
use std::sync::OnceLock;

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

/// Format of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Output {
    /// For people.
    Text,
    /// For programs.
    Json,
}

impl Output {
    /// Prints a result: `text` for people, or `value` as JSON.
    pub fn result<T: Serialize>(self, text: &str, value: &T) {
        match self {
            Self::Text => line(text.trim_end_matches('\n')),
            Self::Json => match serde_json::to_string_pretty(value) {
                Ok(json) => line(&json),
                Err(failure) => ended("error", &failure.to_string(), None),
            },
        }
    }
}

/// Prints a line of data. A closed pipe is not an error; other errors are kept for [`lost`].
pub fn line(text: &str) {
    try_line(text);
}

/// Prints a line of data; returns whether anybody still reads.
pub fn try_line(text: &str) -> bool {
    data(format!("{text}\n").as_bytes())
}

/// Prints a line about how a command ended, `error: ...` or `found: ...`, and perhaps a `hint:` line.
pub fn ended(label: &str, message: &str, hint: Option<&str>) {
    error_line(&format!("{label}: {}", harmless(message)));
    if let Some(hint) = hint {
        error_line(&format!("hint: {}", harmless(hint)));
    }
}

/// Prints something worth knowing that stops nothing.
pub fn warning(message: &str) {
    error_line(&format!("warning: {}", harmless(message)));
}

/// Prints progress for people who watch; never a result.
pub fn notice(text: &str) {
    error_line(text);
}

/// Prints a line to stderr, in one write so that lines of several processes do not mix.
fn error_line(text: &str) {
    let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}

/// A message without control characters, its lines after the first indented. Files and peers have written parts of some: they
/// command no terminal, and no line of theirs looks like one of ours.
fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => out.push_str("\n  "),
            '\t' => out.push(' '),
            _ if character.is_control() => out.extend(character.escape_default()),
            _ => out.push(character),
        }
    }
    out
}

/// A progress bar over `bytes`, shown only on a terminal.
pub fn byte_bar(bytes: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template(
        "{msg:24!} {bar:30} {bytes:>11} of {total_bytes:<11} {bytes_per_sec}",
    );
    let bar = ProgressBar::new(bytes);
    style.map_or(bar.clone(), |style| bar.with_style(style))
}

/// A spinner with a message, shown only on a terminal.
pub fn spinner(message: &str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let spinner = ProgressBar::new_spinner().with_message(message.to_owned());
    spinner.enable_steady_tick(std::time::Duration::from_millis(80));
    spinner
}

/// Why data was lost, if it was.
static LOST: OnceLock<String> = OnceLock::new();

/// Writes data to stdout, the only way to do so; returns whether anybody still reads. A closed pipe is no failure,
/// because its reader has seen enough; any other error is kept for [`lost`].
pub fn data(bytes: &[u8]) -> bool {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => true,
        Err(error) => {
            if error.kind() != std::io::ErrorKind::BrokenPipe {
                // The first reason counts.
                let _ = LOST.set(error.to_string());
            }
            false
        }
    }
}

/// Why data was lost, if some was. A command asks once, when it has ended.
pub fn lost() -> Option<&'static str> {
    LOST.get().map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::harmless;

    #[test]
    fn messages_command_no_terminal_and_forge_no_line() {
        let forged = "x\u{1b}[2K\rok\u{9b}1m\nverified app.bin";
        assert_eq!(harmless(forged), "x\\u{1b}[2K\\rok\\u{9b}1m\n  verified app.bin");
        assert_eq!(harmless("ä → \"b\""), "ä → \"b\"");
    }
}
