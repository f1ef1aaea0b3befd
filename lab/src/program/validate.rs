//! `outlast lab validate`: scores the model against published figures, and against a researcher's own.

use std::path::PathBuf;

use outlast_lab::model::validation::data;
use outlast_lab::model::validation::score::{self, Score};
use outlast_lab::model::validation::sets::sets;
use outlast_lab::model::{PROFILES, Profile};
use outlast_lab::report;
use serde_json::{Value, json};

use super::failure;
use outlast_terminal::failure::Failure;
use outlast_terminal::output::Output;

/// Arguments of `lab validate`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Measurements to score, a CSV file as docs/lab.md describes it [default: the published ones, those that the model was made with and those
    /// that were held out].
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// Kernel whose TCP is modelled [default: the newest, or for published figures that of their study].
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Handshakes of the model for each point.
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(100..=10_000_000))]
    count: u64,
    /// Seed of the losses.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write all points as CSV, too.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let chosen = chosen(arguments)?;
    let stop = super::stop_flag()?;
    let mut scored: Vec<(String, Vec<Score>)> = Vec::new();
    let mut text = String::new();
    let mut roles = Vec::new();
    let mut score = |set: &str,
                     role: &str,
                     source: Value,
                     profile: &'static Profile,
                     points: &[score::Measured]|
     -> Result<(), Failure> {
        let scores = score::score(points, profile, arguments.count, arguments.seed, &stop);
        let scores = scores.map_err(|error| failure(&error).code(2))?;
        text += &format!("{set} ({role}): {}\n", score::sentence(&scores));
        roles.push(
                json!({ "set": set, "role": role, "source": source, "profile": profile.name, "points": scores.as_slice() }),
            );
        scored.push((format!("{set} ({role})"), scores));
        Ok(())
    };
    match &arguments.data {
        Some(file) => {
            let points = data::read(file).map_err(|error| {
                failure(&error)
                    .hint("docs/lab.md, \"Scoring your own data\", describes the columns")
                    .code(2)
            })?;
            let profile = chosen.or(PROFILES.first()).ok_or_else(|| Failure::new("no profile"))?;
            score(&file.display().to_string(), "your data", Value::Null, profile, &points)?;
        }
        None => {
            for set in sets().map_err(|error| failure(&error))? {
                let (file, sha256) = &set.file;
                let source =
                    json!({ "file": file, "sha256": sha256, "frozen": set.frozen, "why": set.why });
                let profile = chosen.unwrap_or(set.profile);
                score(&set.name, set.role.words(), source, profile, &set.points)?;
            }
        }
    }
    let table = score::table("validation", "The model against measurements", "", &scored);
    if let Some(file) = &arguments.out {
        report::write_csv(file, &table).map_err(|error| failure(&error))?;
    }
    // A few of the worst for people; JSON and CSV have all.
    let mut worst: Vec<&Score> =
        scored.iter().flat_map(|(_, scores)| scores).filter(|one| !one.agrees()).collect();
    worst.sort_by(|one, other| other.distance().total_cmp(&one.distance()));
    for one in worst.iter().take(10) {
        text += &format!(
            "  {} at RTT {} ms, {} % loss: {:.0} standard errors{}\n",
            one.name,
            one.rtt_ms,
            one.loss_percent,
            one.distance(),
            one.outside
                .map_or_else(String::new, |what| format!(" (outside the validated range: {what})"))
        );
    }
    if worst.len() > 10 {
        text += &format!("  and {} further points that do not agree\n", worst.len() - 10);
    }
    output.result(text.trim_end(), &json!({ "sets": roles }));
    Ok(())
}

/// The kernel that the command names.
fn chosen(arguments: &Arguments) -> Result<Option<&'static Profile>, Failure> {
    let Some(name) = &arguments.profile else { return Ok(None) };
    let found = Profile::by_name(name).ok_or_else(|| {
        let known: Vec<&str> = PROFILES.iter().map(|row| row.name).collect();
        Failure::new(format!("no kernel profile is named {name}")).hint(known.join(", ")).code(2)
    })?;
    Ok(Some(found))
}
