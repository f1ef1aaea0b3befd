//! `outlast audit tail`: shows the last events, and new ones as they come.

use std::fmt::Write;
use std::time::Duration;

use outlast_store::Event;
use serde_json::Value;

use super::{PAGE, open};
use crate::data::{StoreArguments, store_failure};
use crate::failure::Failure;
use crate::output::{self, Output};

/// Arguments of `audit tail`.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Number of events.
    #[arg(short = 'n', long, default_value_t = 10)]
    lines: u64,
    /// Keep showing new events until interrupted.
    #[arg(short, long)]
    follow: bool,
    #[command(flatten)]
    store: StoreArguments,
}

/// Runs the command.
pub(super) fn run(tail: &Arguments, output: Output) -> Result<(), Failure> {
    let data = open(&tail.store)?;
    let head = data.store().last_event().map_err(store_failure)?;
    let mut after = head.saturating_sub(tail.lines);
    loop {
        loop {
            let page = data.store().events(after, PAGE).map_err(store_failure)?;
            let Some(last) = page.last() else { break };
            after = last.sequence;
            for event in &page {
                if !output::try_line(&line(event, output)) {
                    return Ok(());
                }
            }
        }
        if !tail.follow {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(500));
    }
}

fn line(event: &Event, output: Output) -> String {
    let text = String::from_utf8_lossy(&event.body);
    if let Output::Json = output {
        return text.into_owned();
    }
    let value: Value = serde_json::from_slice(&event.body).unwrap_or_default();
    let field = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let who = match value["userIdentity"]["arn"].as_str() {
        Some(arn) => arn.to_owned(),
        None => field(&value["userIdentity"]["invokedBy"]),
    };
    let outcome = match value["additionalEventData"]["activity-type"].as_str() {
        Some("ERROR" | "AUTH_FAILURE") => "failed",
        _ => value["errorCode"].as_str().unwrap_or("ok"),
    };
    format!(
        "{:>8} {} {:28} {} {} {} {outcome}{}",
        event.sequence,
        field(&value["eventTime"]),
        field(&value["eventName"]),
        who,
        field(&value["resources"][0]["ARN"]),
        field(&value["tlsDetails"]["keyExchange"]),
        details(&value["additionalEventData"]),
    )
}

/// What the `additionalEventData` of an event of SFTP tell: operation, user, paths, and why it failed. Clients choose names, which must not reach a terminal
/// as they are.
fn details(event: &Value) -> String {
    let mut text = String::new();
    let kind = event["activity-type"].as_str().unwrap_or_default();
    let members: &[&str] = match kind {
        "" => &[],
        "AUTH_FAILURE" => &["user", "users", "count", "message"],
        _ => &["operation", "path", "new-path", "message"],
    };
    for value in members.iter().map(|member| &event[*member]).filter(|value| !value.is_null()) {
        let _ = match value {
            Value::String(value) => write!(text, " {value:?}"),
            Value::Array(values) => {
                let names: Vec<_> = values.iter().filter_map(Value::as_str).collect();
                write!(text, " {names:?}")
            }
            other => write!(text, " {other}"),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_clients_choose_reaches_no_terminal_as_it_is() {
        let wild = "a\u{9b}2J\u{202e}\u{7f}\n\u{1b}[0m";
        for event in [
            json!({ "activity-type": "ERROR", "operation": "WRITE", "path": wild, "message": wild }),
            json!({ "activity-type": "AUTH_FAILURE", "user": wild }),
            json!({ "activity-type": "AUTH_FAILURE", "users": [wild, "b"], "count": 5 }),
        ] {
            let shown = details(&event);
            assert!(!shown.chars().any(|c| c.is_control() || c == '\u{202e}'), "{shown:?}");
            assert!(shown.contains("\"a\\u{9b}2J"), "{shown}");
        }
    }
}
