//! `outlast lab list`: the experiments.

use outlast_lab::experiment::{EXPERIMENTS, Engine};
use serde_json::json;

use super::progress::length;
use outlast_terminal::failure::Failure;
use outlast_terminal::output::Output;

/// Arguments of `lab list`.
#[derive(clap::Args)]
pub(crate) struct Arguments {}

pub(crate) fn run(_: &Arguments, output: Output) -> Result<(), Failure> {
    let quick = super::settings(true, 0, None)?;
    let full = super::settings(false, 0, None)?;
    let mut text = String::new();
    let mut values = Vec::new();
    for row in EXPERIMENTS {
        let (short, long) = ((row.estimate)(&quick), (row.estimate)(&full));
        let engines: Vec<&str> = row.engines.iter().copied().map(Engine::name).collect();
        text.push_str(&format!(
            "{}\n  {}\n  {}\n  engines: {}; takes about {}, {} with --quick\n",
            row.name,
            row.question,
            row.source,
            engines.join(", "),
            length(long),
            length(short),
        ));
        values.push(json!({
            "name": row.name, "title": row.title, "question": row.question, "source": row.source,
            "engines": engines, "seconds": long.as_secs(), "quick_seconds": short.as_secs(),
        }));
    }
    output.result(&text, &values);
    Ok(())
}
