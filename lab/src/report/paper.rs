//! The results as a short paper in Markdown: question, method, result and limits of each experiment, with the command that
//! measures it again. `report.html` has every table and chart; the paper has what a reader needs who does not want to work
//! with the figures.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::files::{plain, write_whole};
use super::page::{date, duration, kind_word, machine, mode, percent, verdict_word};
use super::results::{Asked, Results};
use super::{Paper, lead};
use crate::error::LabError;
use crate::experiment::{Engine, Experiment};
use crate::plot::{self, figure};
use crate::result::{ClaimKind, Control, Finding, Table, Told, Value, Worth};
use crate::state::State;

/// Charts of an experiment that are in the paper, at most: the first ones.
const CHARTS: usize = 3;

/// How an engine measures, in a sentence.
fn method(engine: Engine) -> &'static str {
    match engine {
        Engine::Cpu => {
            "Handshakes run in memory, client and server on one thread, and only the processor time of that thread counts; \
             configurations take turns in random order, in several processes."
        }
        Engine::Model => {
            "A model of Linux TCP plays handshakes in virtual time, with the flights and the processor times that were measured; \
             losses are paired, so that two configurations meet the same ones."
        }
        Engine::Live => {
            "Real TCP and TLS run between two network namespaces over an emulated link, which records its own lateness."
        }
        Engine::Quic => {
            "s2n-quic with rustls runs in virtual time over the links; quinn against a real server gives the rates."
        }
        Engine::Server => "A real server of Outlast answers real clients on the same machine.",
    }
}

/// Writes `NAME.md` and the charts `NAME-EXPERIMENT-CHART.svg` into a folder, which must exist.
pub(super) fn write(results: &Results, name: &str, folder: &Path) -> Result<Paper, LabError> {
    let name = plain(name);
    let mut charts = Vec::new();
    let text = text(results, &name);
    for told in &results.told {
        for chart in told.findings.charts.iter().take(CHARTS) {
            let path = folder.join(chart_file(&name, told, &chart.name));
            write_whole(&path, plot::svg(chart)?.as_bytes())?;
            charts.push(path);
        }
    }
    let page: PathBuf = folder.join(format!("{name}.md"));
    write_whole(&page, text.as_bytes())?;
    Ok(Paper { page, charts })
}

fn chart_file(name: &str, told: &Told, chart: &str) -> String {
    format!("{name}-{}-{}.svg", plain(&told.experiment), plain(chart))
}

/// The whole page.
fn text(results: &Results, name: &str) -> String {
    let asked = &results.asked;
    let title =
        asked.plan.clone().unwrap_or_else(|| "What post-quantum cryptography costs".to_owned());
    let state =
        results.state.clone().or_else(|| results.told.first().map(|told| told.state.clone()));
    let state = state.unwrap_or_default();
    let seconds: f64 =
        results.told.iter().map(|told| told.seconds).filter(|one| one.is_finite()).sum();
    let mut out = format!("# {}\n\n", escaped(&title));
    let mut about = vec![
        date(state.at_ms),
        format!("{} of outlast lab, {}", mode(asked.quick), duration(seconds)),
    ];
    about.extend(asked.version.iter().map(|version| format!("version {version}")));
    about.extend(asked.seed.map(|seed| format!("seed {seed}")));
    about.push(machine(&state));
    about.retain(|one| !one.is_empty());
    line(&mut out, &format!("{}.", escaped(&about.join("; "))));
    out.push_str("\n## What it comes to\n\n");
    for paragraph in lead::sentences(&results.told) {
        line(&mut out, &escaped(&paragraph));
        out.push('\n');
    }
    if let Some(links) = lead::experiment(&results.told).and_then(lead::links) {
        table(&mut out, links);
        out.push('\n');
        line(&mut out, &escaped(&links.note));
    }
    if let Some(tally) = tally(&results.told) {
        out.push('\n');
        line(&mut out, &tally);
    }
    for told in &results.told {
        experiment(&mut out, name, told, asked);
    }
    for (experiment, reason) in &results.unreadable {
        let _ = write!(
            out,
            "\n## {}\n\nIts results cannot be read: {}.\n",
            escaped(experiment),
            escaped(reason)
        );
    }
    out.push_str("\n## The program\n\n");
    line(&mut out, &program(results, &state));
    out.push_str("\n## The machine\n\nA figure without its machine means nothing.\n\n| fact | value |\n|---|---|\n");
    for (fact, value) in &state.facts {
        let _ = writeln!(out, "| {} | {} |", escaped(fact), escaped(value));
    }
    out
}

/// What became of the published claims.
fn tally(told: &[Told]) -> Option<String> {
    let published: Vec<&Finding> = told
        .iter()
        .flat_map(|one| &one.findings.findings)
        .filter(|one| one.kind == ClaimKind::Published)
        .collect();
    let mut words: Vec<(&str, usize)> = Vec::new();
    for finding in &published {
        let word = verdict_word(finding.verdict);
        match words.iter_mut().find(|(other, _)| *other == word) {
            Some((_, count)) => *count += 1,
            None => words.push((word, 1)),
        }
    }
    let parts: Vec<_> = words.iter().map(|(word, count)| format!("{word}: {count}")).collect();
    (!published.is_empty()).then(|| {
        format!(
            "Published claims that were measured again: {} ({}).",
            published.len(),
            parts.join("; ")
        )
    })
}

fn experiment(out: &mut String, name: &str, told: &Told, asked: &Asked) {
    let _ = write!(out, "\n## {}\n\n", escaped(&told.title));
    if !told.question.is_empty() {
        line(out, &format!("**Question.** {}", escaped(&told.question)));
    }
    out.push('\n');
    line(out, &format!("**Method.** {}", method_of(told, asked)));
    for (label, reason) in
        [("Not measured", &told.skipped), ("Failed before its end", &told.failed)]
    {
        if let Some(reason) = reason {
            out.push('\n');
            line(out, &format!("**{label}.** {}", escaped(reason)));
        }
    }
    out.push_str("\n**Result.**\n\n");
    for sentence in &told.findings.summary {
        line(out, &format!("- {}", escaped(sentence)));
    }
    for chart in told.findings.charts.iter().take(CHARTS) {
        let file = chart_file(name, told, &chart.name);
        let _ = write!(out, "\n![{}]({file})\n\n", escaped(&chart.title));
        line(
            out,
            &format!(
                "*{}.* {}",
                escaped(chart.title.trim_end_matches('.')),
                escaped(&chart.caption)
            ),
        );
    }
    if !told.findings.findings.is_empty() {
        out.push_str(
            "\n| claim | published or expected | measured here | verdict |\n|---|---|---|---|\n",
        );
        // Published claims first, as in the other page.
        let (published, own): (Vec<_>, Vec<_>) =
            told.findings.findings.iter().partition(|one| one.kind == ClaimKind::Published);
        for finding in published.into_iter().chain(own) {
            claim(out, finding);
        }
    }
    out.push_str("\n**Limits.**\n\n");
    for note in &told.findings.notes {
        line(out, &format!("- {}", escaped(note)));
    }
    line(out, &format!("- {}", controls(&told.findings.controls)));
}

fn method_of(told: &Told, asked: &Asked) -> String {
    let mut parts = Vec::new();
    if !told.source.is_empty() {
        parts.push(format!("After {}.", escaped(told.source.trim_end_matches('.'))));
    }
    let row = Experiment::by_name(&told.experiment);
    let engines: Vec<_> = row.map(|row| row.engines).unwrap_or_default().to_vec();
    parts.extend(engines.into_iter().map(|engine| method(engine).to_owned()));
    let pressure = percent(told.state.cpu_pressure);
    parts.push(format!(
        "It took {}; CPU pressure at its start was {pressure}.",
        duration(told.seconds)
    ));
    parts.push(again(row.map(|row| row.name), asked));
    parts.join(" ")
}

/// The command that measures an experiment of the table, or else the plan, again with this run's settings.
fn again(experiment: Option<&str>, asked: &Asked) -> String {
    let mut command = format!("outlast lab run {}", experiment.unwrap_or("--plan FILE"));
    if asked.quick == Some(true) {
        command.push_str(" --quick");
    }
    if let Some(seed) = asked.seed {
        let _ = write!(command, " --seed {seed}");
    }
    if asked.passes > 1 {
        let _ = write!(command, " --repeat {}", asked.passes);
    }
    let mut text = format!("Again: `{command}`");
    if experiment.is_none() {
        text.push_str(" with the plan in `run.json`");
    }
    text.push_str(", by the program below.");
    if asked.quick.is_none() || asked.seed.is_none() {
        text.push_str(" Not all settings of the run are recorded.");
    }
    text
}

/// What the program was that measured: its version, its build, and the libraries that it was given.
fn program(results: &Results, state: &State) -> String {
    const LEGACY: &str = "+legacy";
    let version = results.asked.version.as_deref();
    let has_legacy = version.is_some_and(|version| version.ends_with(LEGACY));
    let is_debug =
        state.facts.iter().any(|(fact, value)| fact == "build" && value.starts_with("debug"));
    let mut text = match version {
        Some(version) => {
            format!("Version {}", escaped(version.strip_suffix(LEGACY).unwrap_or(version)))
        }
        None => "A version that is not recorded".to_owned(),
    };
    let _ = write!(
        text,
        ", built with `cargo build{} --package outlast --package outlast-lab{}`.",
        if is_debug { "" } else { " --release" },
        if has_legacy { " --features outlast-lab/legacy" } else { "" },
    );
    if has_legacy {
        text.push_str(
            " Aigis takes part if PQMagic's library is found, or is in the folder that `OUTLAST_PQMAGIC` names.",
        );
    }
    if let Some(openssl) = openssl(&results.told) {
        let _ = write!(
            text,
            " {} took part: where the system has another one, `OUTLAST_OPENSSL_LIB` names the folder of its libraries. Which folder it was \
             is not recorded.",
            escaped(openssl)
        );
    }
    text
}

/// OpenSSL with its version, if an experiment says that it was measured on it.
fn openssl(told: &[Told]) -> Option<&str> {
    let notes = told.iter().flat_map(|one| &one.findings.notes);
    let stacks = notes.filter_map(|note| note.strip_prefix("Measured on "));
    let mut names = stacks.flat_map(|stacks| stacks.trim_end_matches('.').split(", "));
    names.find(|name| name.starts_with("OpenSSL "))
}

fn claim(out: &mut String, finding: &Finding) {
    let kind = kind_word(finding.kind);
    let source = if kind.is_empty() {
        finding.source.clone()
    } else {
        format!("{kind}: {}", finding.source)
    };
    let verdict = verdict_word(finding.verdict);
    let why =
        if finding.why.is_empty() { String::new() } else { format!(": {}", escaped(&finding.why)) };
    let _ = writeln!(
        out,
        "| {}<br>*{}* | {} | {} | **{verdict}**{why} |",
        escaped(&finding.claim),
        escaped(&source),
        escaped(&finding.published),
        escaped(&finding.measured),
    );
}

/// What the controls of an experiment are worth.
fn controls(controls: &[Control]) -> String {
    let count = |worth| controls.iter().filter(|one| one.worth() == worth).count();
    let (holding, failing, blind) =
        (count(Worth::Holds), count(Worth::Fails), count(Worth::CannotFail));
    if controls.is_empty() {
        return "There is no control: nothing was measured twice as if it were two.".to_owned();
    }
    let all = holding + failing;
    let finest = controls
        .iter()
        .filter(|one| one.worth() != Worth::CannotFail)
        .map(Control::resolution)
        .fold(f64::INFINITY, f64::min);
    let mut text = format!(
        "Controls, each the same thing measured twice as if it were two: {holding} of {all} hold"
    );
    if finest.is_finite() {
        let _ = write!(text, ", the finest with a resolution of ±{:.2} %", 100.0 * finest);
    }
    if blind > 0 {
        let _ = write!(
            text,
            "; {blind} cannot fail and {} not counted",
            if blind == 1 { "is" } else { "are" }
        );
    }
    text.push('.');
    if failing > 0 {
        text.push_str(" Where one does not hold, the comparisons beside it cannot be trusted.");
    }
    text
}

fn table(out: &mut String, table: &Table) {
    let cells = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    out.push_str(&cells(table.columns.iter().map(|column| escaped(column)).collect()));
    out.push_str(&cells(vec!["---".to_owned(); table.columns.len()]));
    for row in &table.rows {
        out.push_str(&cells(row.iter().take(table.columns.len()).map(cell).collect()));
    }
}

fn cell(value: &Value) -> String {
    match value {
        Value::Number(number) => figure(*number),
        Value::Text(text) => escaped(text),
    }
}

/// A paragraph or a list item; its text has no line breaks.
fn line(out: &mut String, text: &str) {
    out.push_str(text.trim());
    out.push('\n');
}

/// A text that is only text in Markdown, also in a cell of a table: results may come from another machine.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\r' => {}
            '\n' => out.push(' '),
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '~' => out.push_str("&#126;"),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '#' | '|' => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{Findings, Verdict};

    fn told() -> Told {
        let finding = |kind, verdict| Finding {
            kind,
            source: "Somebody, 2022".into(),
            claim: "A | B is <b>fast</b>".into(),
            published: "1 ms".into(),
            measured: "2 ms [1, 3]".into(),
            verdict,
            why: "other *machine*".into(),
        };
        let control = |low, high| Control { what: "the same".into(), ratio: 1.0, low, high };
        Told {
            experiment: "tls-matrix".into(),
            title: "TLS".into(),
            question: "What does it cost?".into(),
            source: "Somebody.".into(),
            state: State::default(),
            after: None,
            seconds: 60.0,
            findings: Findings {
                summary: vec!["It costs [little](https://example.com).".into()],
                findings: vec![
                    finding(ClaimKind::Own, Verdict::Differs),
                    finding(ClaimKind::Published, Verdict::Holds),
                ],
                controls: vec![control(0.99, 1.01), control(1.01, 1.02), control(0.5, 1.5)],
                notes: vec!["One\nmachine.".into()],
                ..Findings::default()
            },
            skipped: None,
            failed: None,
        }
    }

    fn results(told: Vec<Told>) -> Results {
        Results { asked: Asked::default(), state: None, told, unreadable: vec![] }
    }

    #[test]
    fn question_method_result_and_limits_are_told() {
        let text = text(&results(vec![told()]), "full");
        for part in [
            "**Question.** What does it cost?",
            "**Method.** After Somebody. Handshakes run in memory",
            "Again: `outlast lab run tls-matrix`, by the program below. Not all settings",
            "- One machine.",
            "1 of 2 hold, the finest with a resolution of ±1.00 %; 1 cannot fail and is not counted.",
            "cannot be trusted",
            "Published claims that were measured again: 1 (holds: 1).",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let published = text.find("| **holds**").unwrap();
        assert!(published < text.find("| **differs**").unwrap(), "{text}");
    }

    /// Without its settings a command gives other figures.
    #[test]
    fn the_command_again_has_the_settings_of_the_run() {
        let mut with_openssl = told();
        with_openssl.findings.notes = vec!["Measured on rustls 0.23.1, OpenSSL 3.5.1.".into()];
        let mut all = results(vec![with_openssl]);
        all.asked = Asked {
            quick: Some(true),
            seed: Some(42),
            version: Some("1.2.3+legacy".into()),
            plan: None,
            passes: 5,
        };
        let text = text(&all, "full");
        for part in [
            "Again: `outlast lab run tls-matrix --quick --seed 42 --repeat 5`, by the program below.\n",
            "Version 1.2.3, built with `cargo build --release --package outlast --package outlast-lab --features outlast-lab/legacy`.",
            "OpenSSL 3.5.1 took part",
            "`OUTLAST_OPENSSL_LIB` names the folder",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let full = Asked { quick: Some(false), seed: Some(1), passes: 1, ..Asked::default() };
        assert_eq!(
            again(None, &full),
            "Again: `outlast lab run --plan FILE --seed 1` with the plan in `run.json`, by the program below."
        );
        all.asked = full;
        all.told = vec![told()];
        let text = super::text(&all, "full");
        assert!(text.contains("--package outlast-lab`.") && !text.contains("OPENSSL"), "{text}");
    }

    /// Results of another machine are text.
    #[test]
    fn text_stays_text() {
        let text = text(&results(vec![told()]), "full");
        assert!(text.contains("A \\| B is &lt;b&gt;fast&lt;/b&gt;"), "{text}");
        assert!(text.contains("costs \\[little\\](https"), "{text}");
        assert!(text.contains(": other \\*machine\\* |"), "{text}");
    }

    #[test]
    fn a_paper_is_written_with_its_charts() {
        let folder = tempfile::tempdir().unwrap();
        let paper = write(&results(vec![told()]), "../full", folder.path()).unwrap();
        assert_eq!(paper.page, folder.path().join("---full.md"));
        assert!(paper.page.is_file() && paper.charts.is_empty());
    }
}
