//! The values for the page's template.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use minijinja::{Environment, HtmlEscape, context};
use serde::Serialize;
use time::OffsetDateTime;
use time::macros::format_description;

use super::results::Results;
use super::{files, lead, tables};
use crate::error::LabError;
use crate::plot::{self, Look};
use crate::result::{Chart, ClaimKind, Control, Finding, Marks, Told, Verdict, Worth};
use crate::state::State;

/// Largest picture that is included in the page, in bytes; larger ones are links.
const PICTURE_MAX: u64 = 8 << 20;

#[derive(Serialize)]
struct Experiment {
    name: String,
    title: String,
    question: String,
    source: String,
    took: String,
    pressure: String,
    summary: Vec<String>,
    skipped: Option<String>,
    failed: Option<String>,
    charts: Vec<Figure>,
    pictures: Vec<Picture>,
    tables: Vec<tables::Shown>,
    controls: Vec<Checked>,
    findings: Vec<Claim>,
    notes: Vec<String>,
    data: String,
    has_points: bool,
}

#[derive(Serialize)]
struct Figure {
    title: String,
    caption: String,
    file: String,
    wide: String,
    narrow: String,
}

#[derive(Serialize)]
struct Picture {
    caption: String,
    file: String,
    /// As a `data:` URL; empty if there is only the link.
    inline: String,
}

#[derive(Serialize)]
struct Claim {
    experiment: String,
    source: String,
    claim: String,
    published: String,
    measured: String,
    why: String,
    /// Origin of the claim, if it is not a published one.
    kind: &'static str,
    verdict: &'static str,
    word: &'static str,
    sign: &'static str,
}

#[derive(Serialize)]
struct Checked {
    what: String,
    text: String,
    /// Verdict on it: class, word, sign.
    class: &'static str,
    word: &'static str,
    sign: &'static str,
    /// Where to draw the interval and the ratio, in per cent.
    from: f64,
    wide: f64,
    at: f64,
}

/// A verdict: class, word, sign.
const VERDICTS: [(Verdict, &str, &str, &str); 6] = [
    (Verdict::Holds, "holds", "holds", "✓"),
    (Verdict::HoldsInSample, "in-sample", "holds in-sample", "✓"),
    (Verdict::Partly, "partly", "holds in part", "◐"),
    (Verdict::Differs, "differs", "differs", "✕"),
    (Verdict::Undecided, "undecided", "undecided", "?"),
    (Verdict::NotComparable, "not-comparable", "not comparable", "≠"),
];

/// For a verdict without a row.
const UNKNOWN: (Verdict, &str, &str, &str) = (Verdict::Undecided, "undecided", "undecided", "?");

/// A verdict in words.
pub(super) fn verdict_word(verdict: Verdict) -> &'static str {
    VERDICTS.iter().find(|(other, ..)| *other == verdict).unwrap_or(&UNKNOWN).2
}

/// Origin of a claim in words; none for published ones.
pub(super) fn kind_word(kind: ClaimKind) -> &'static str {
    match kind {
        ClaimKind::Published => "",
        ClaimKind::Earlier => "earlier trial of the project",
        ClaimKind::Standard => "parameter of a standard",
        ClaimKind::Own => "the lab's own",
    }
}

/// The whole page.
pub(super) fn page(folder: &Path, results: &Results) -> Result<String, LabError> {
    let mut experiments = Vec::new();
    for told in &results.told {
        experiments.push(experiment(folder, told)?);
    }
    let findings: Vec<&Claim> = experiments.iter().flat_map(|one| &one.findings).collect();
    let tally: Vec<_> = VERDICTS
        .iter()
        .map(|(_, class, word, sign)| {
            let count = findings
                .iter()
                .filter(|claim| claim.kind.is_empty() && claim.verdict == *class)
                .count();
            context! { class, word, sign, count }
        })
        .collect();
    // A control that cannot fail says nothing, and is not counted.
    let worth: Vec<Worth> = results
        .told
        .iter()
        .flat_map(|told| told.findings.controls.iter().map(Control::worth))
        .collect();
    let count = |wanted: Worth| worth.iter().filter(|one| **one == wanted).count();
    let (holding, blind) = (count(Worth::Holds), count(Worth::CannotFail));
    let all = worth.len() - blind;
    let state =
        results.state.clone().or_else(|| results.told.first().map(|told| told.state.clone()));
    let state = state.unwrap_or_default();
    let seconds =
        results.told.iter().map(|told| told.seconds).filter(|seconds| seconds.is_finite()).sum();
    let title = results.asked.plan.clone().unwrap_or_else(|| "What post-quantum costs".to_owned());
    render(
        include_str!("page.html"),
        context! {
            title,
            lead => lead::sentences(&results.told),
            links => lead::experiment(&results.told)
                .and_then(|told| Some(tables::shown(&told.experiment, lead::links(told)?).named("lead"))),
            date => date(state.at_ms),
            asked => results.asked,
            mode => mode(results.asked.quick),
            took => duration(seconds),
            machine => machine(&state),
            debug => state.facts.iter().any(|(name, value)| name == "build" && value.starts_with("debug")),
            facts => state.facts,
            pressure => percent(state.cpu_pressure),
            load => state.load.map_or("unknown".to_owned(), |load| format!("{load:.2}")),
            steal => state.steal_seconds.map_or("unknown".to_owned(), |steal| format!("{steal:.1} s")),
            findings, tally, experiments,
            controls => context! { holding, all, blind },
            unreadable => results.unreadable,
            first => tables::FIRST,
        },
    )
}

/// Renders a page's template with the common style and script.
pub(crate) fn render(template: &str, values: minijinja::Value) -> Result<String, LabError> {
    let mut environment = Environment::new();
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment
        .add_filter("linked", |text: String| minijinja::Value::from_safe_string(linked(&text)));
    for (name, source) in [("page.html", template), ("table.html", include_str!("table.html"))] {
        environment.add_template(name, source).map_err(LabError::failed)?;
    }
    let page = environment.get_template("page.html").map_err(LabError::failed)?;
    let script = include_str!("script.js");
    page.render(context! { style => styled(), script, ..values }).map_err(failed)
}

/// With the underlying reason: the error's own words only say where it happened.
fn failed(error: minijinja::Error) -> LabError {
    let mut text = error.to_string();
    let mut next = std::error::Error::source(&error);
    while let Some(error) = next {
        let _ = write!(text, ": {error}");
        next = error.source();
    }
    LabError::failed(text)
}

/// The style, with the charts' colours in light and dark mode.
fn styled() -> String {
    let mut style = include_str!("style.css").to_owned();
    for (code, name) in plot::NEUTRALS {
        for part in ["fill", "stroke"] {
            let _ = writeln!(style, ".chart [{part}=\"{code}\"]{{{part}:var(--chart-{name})}}");
        }
    }
    for code in plot::series_colours() {
        let dark = plot::for_dark(&code);
        if dark != code {
            for part in ["fill", "stroke"] {
                let _ = writeln!(
                    style,
                    ".chart [{part}=\"{code}\"]{{{part}:light-dark({code},{dark})}}"
                );
            }
        }
    }
    style
}

fn experiment(folder: &Path, told: &Told) -> Result<Experiment, LabError> {
    let name = &told.experiment;
    let findings = &told.findings;
    let mut charts = Vec::new();
    for chart in &findings.charts {
        charts.push(Figure {
            title: chart.title.clone(),
            caption: chart.caption.clone(),
            file: format!("{name}/{}", files::plain(&chart.name)),
            wide: plot::draw(chart, Look::WIDE)?,
            narrow: plot::draw(chart, Look::NARROW)?,
        });
    }
    let pictures =
        findings.pictures.iter().map(|(file, caption)| picture(folder, name, file, caption));
    let before = percent(told.state.cpu_pressure);
    let after = told.after.as_ref().map(|state| percent(state.cpu_pressure));
    Ok(Experiment {
        name: name.clone(),
        title: told.title.clone(),
        question: told.question.clone(),
        source: told.source.clone(),
        took: duration(told.seconds),
        pressure: after.map_or(before.clone(), |after| format!("{before} before, {after} after")),
        summary: findings.summary.clone(),
        skipped: told.skipped.clone(),
        failed: told.failed.clone(),
        charts,
        pictures: pictures.collect(),
        tables: findings.tables.iter().map(|table| tables::shown(name, table)).collect(),
        controls: controls(&findings.controls),
        findings: claims(name, &findings.findings),
        notes: findings.notes.clone(),
        data: data(told)?,
        has_points: folder.join(name).join("points.ndjson").is_file(),
    })
}

/// Published claims first.
fn claims(experiment: &str, findings: &[Finding]) -> Vec<Claim> {
    let mut claims: Vec<Claim> =
        findings.iter().map(|finding| claim(experiment, finding)).collect();
    claims.sort_by_key(|claim| !claim.kind.is_empty());
    claims
}

fn claim(experiment: &str, finding: &Finding) -> Claim {
    let row = VERDICTS.iter().find(|(verdict, ..)| *verdict == finding.verdict);
    let (_, class, word, sign) = row.copied().unwrap_or(UNKNOWN);
    Claim {
        experiment: experiment.to_owned(),
        source: finding.source.clone(),
        claim: finding.claim.clone(),
        published: finding.published.clone(),
        measured: finding.measured.clone(),
        why: finding.why.clone(),
        kind: kind_word(finding.kind),
        verdict: class,
        word,
        sign,
    }
}

/// Controls with their intervals on one scale around 1.
fn controls(controls: &[Control]) -> Vec<Checked> {
    let ends = controls.iter().flat_map(|one| [one.low, one.high, one.ratio]);
    let most =
        ends.filter(|end| end.is_finite()).map(|end| (end - 1.0).abs()).fold(0.01, f64::max) * 1.15;
    let place = |ratio: f64| {
        let share = 50.0 + 50.0 * (ratio - 1.0) / most;
        if share.is_finite() { (share.clamp(0.0, 100.0) * 100.0).round() / 100.0 } else { 50.0 }
    };
    controls
        .iter()
        .map(|one| {
            let (class, word, sign) = match one.worth() {
                Worth::Holds => ("holds", "holds", "✓"),
                Worth::Fails => ("differs", "does not hold", "✕"),
                Worth::CannotFail => ("undecided", "cannot fail, not counted", "?"),
            };
            Checked {
                what: one.what.clone(),
                text: format!(
                    "{:.4} [{:.4}, {:.4}], resolution ±{:.2} %",
                    one.ratio,
                    one.low,
                    one.high,
                    100.0 * one.resolution()
                ),
                class,
                word,
                sign,
                from: place(one.low),
                wide: (place(one.high) - place(one.low)).max(0.4),
                at: place(one.ratio),
            }
        })
        .collect()
}

/// The data of the charts and tables. Sorted times and distributions are in `points.ndjson`, which is much larger.
fn data(told: &Told) -> Result<String, LabError> {
    let findings = &told.findings;
    let charts: Vec<&Chart> = findings
        .charts
        .iter()
        .filter(|chart| !matches!(chart.marks, Marks::Steps { .. }))
        .collect();
    let data = serde_json::json!({
        "experiment": told.experiment,
        "tables": findings.tables,
        "charts": charts,
        "controls": findings.controls,
    });
    let text = serde_json::to_string(&data).map_err(LabError::failed)?;
    // HTML ends a script at any `</script`.
    Ok(text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026"))
}

/// A picture from the experiment's folder. As an image it runs no scripts and loads nothing.
fn picture(folder: &Path, experiment: &str, file: &str, caption: &str) -> Picture {
    let path = Path::new(file);
    let name =
        path.file_stem().and_then(|stem| stem.to_str()).map(files::plain).unwrap_or_default();
    let kind = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let mime = match kind {
        "svg" => "image/svg+xml",
        "png" => "image/png",
        _ => "",
    };
    let file = format!("{name}.{}", if mime.is_empty() { "svg" } else { kind });
    let path = folder.join(experiment).join(&file);
    let small = fs::metadata(&path).is_ok_and(|meta| meta.is_file() && meta.len() <= PICTURE_MAX);
    let bytes =
        if small && !mime.is_empty() { fs::read(&path).unwrap_or_default() } else { Vec::new() };
    let inline = if bytes.is_empty() {
        String::new()
    } else {
        format!("data:{mime};base64,{}", BASE64_STANDARD.encode(bytes))
    };
    Picture { caption: caption.to_owned(), file: format!("{experiment}/{file}"), inline }
}

/// Text with its URLs as links.
fn linked(text: &str) -> String {
    let mut out = String::new();
    for (place, word) in text.split(' ').enumerate() {
        if place > 0 {
            out.push(' ');
        }
        let begin = word.find("http").filter(|begin| *begin <= 1).unwrap_or(0);
        let (before, rest) = word.split_at(begin);
        let address = rest.trim_end_matches([',', '.', ';', ':', ')']);
        let after = rest.get(address.len()..).unwrap_or_default();
        let _ = write!(out, "{}", HtmlEscape(before));
        let shown = HtmlEscape(address);
        if address.starts_with("https://") || address.starts_with("http://") {
            let _ = write!(out, "<a href=\"{shown}\" rel=\"noreferrer\">{shown}</a>");
        } else {
            let _ = write!(out, "{shown}");
        }
        let _ = write!(out, "{}", HtmlEscape(after));
    }
    out
}

/// A date and time in UTC.
pub(crate) fn date(at_ms: u64) -> String {
    let seconds = i64::try_from(at_ms / 1000).unwrap_or(0);
    let format = format_description!("[year]-[month]-[day] [hour]:[minute] UTC");
    OffsetDateTime::from_unix_timestamp(seconds)
        .ok()
        .and_then(|time| time.format(format).ok())
        .unwrap_or_else(|| "unknown".to_owned())
}

/// Quick or full, in words.
pub(crate) fn mode(quick: Option<bool>) -> &'static str {
    match quick {
        Some(true) => "quick run",
        Some(false) => "full run",
        None => "run",
    }
}

pub(super) fn duration(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return "unknown".to_owned();
    }
    if seconds < 120.0 {
        return format!("{seconds:.0} s");
    }
    let minutes = (seconds / 60.0).round();
    if minutes < 120.0 { format!("{minutes:.0} min") } else { format!("{:.1} h", minutes / 60.0) }
}

pub(super) fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "unknown".to_owned(), |share| format!("{share:.1} %"))
}

/// The processor and the kernel, as far as the facts name them.
pub(super) fn machine(state: &State) -> String {
    let fact = |name: &str| {
        state.facts.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone())
    };
    let count = fact("processors").map(|count| format!("{count} processors"));
    let parts = [fact("processor"), count, fact("kernel")];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}
