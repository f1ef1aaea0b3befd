//! The grid of a plan: by the model and, if requested, live.

use super::Part;
use crate::error::LabError;
use crate::experiments::play::{self, Contender, GridPoint, Seen};
use crate::experiments::tables::{self, place_words, short};
use crate::experiments::validation::{self, Job};
use crate::link::ClockStart;
use crate::plan::{Plan, PlanEngine};
use crate::result::{Axis, Chart, Control, Marks, Series};
use crate::run::Run;
use crate::subject::{Kind, Subject};
use crate::tls::{STACKS, Stack};

/// Most heat maps of one kind and chain.
const HEATS: usize = 3;
/// Most lines that can be told apart in a chart.
const LINES: usize = 6;
/// A point keeps every time if it has at most so many.
const RAW: u64 = 60_000;

/// A kind of handshake and a chain length.
struct Group {
    kind: Kind,
    certificates: u8,
    /// The handshakes; those of the plan's traces have no subject.
    contenders: Vec<(Option<Subject>, Contender)>,
    seen: Vec<Seen>,
}

pub(super) fn run(run: &mut Run<'_>, plan: &Plan, seed: u64) -> Result<Part, LabError> {
    let mut part = Part::default();
    let stack: &'static dyn Stack =
        *STACKS.first().ok_or_else(|| LabError::failed("there is no TLS implementation"))?;
    let mut groups = Vec::new();
    if plan.only_traces() || !plan.kinds.contains(&Kind::Full) {
        let mut contenders = traces(plan);
        baseline_first(plan, &mut contenders);
        if !contenders.is_empty() {
            let mut group =
                Group { kind: Kind::Full, certificates: 0, contenders, seen: Vec::new() };
            group.seen = model(run, plan, seed, &group)?;
            part.measured |= !group.seen.is_empty();
            tell(run, plan, &group);
        }
    }
    if !plan.traces.is_empty() {
        let names: Vec<&str> = plan.traces.iter().map(|trace| trace.name.as_str()).collect();
        run.note(format!(
            "Sizes and processor times of these are the plan's, and were not measured here: {}.",
            names.join("; ")
        ));
    }
    for kernel in &plan.own_kernels {
        run.note(format!("Kernel {} is the plan's own: {}.", kernel.name, kernel.source));
    }
    for &kind in plan.kinds.iter().filter(|_| !plan.only_traces()) {
        for &certificates in &plan.certificates {
            let subjects = plan.subjects(kind, certificates)?;
            let measured = play::contenders(run, stack, &subjects)?;
            let Some((first, _)) = measured.first() else {
                run.note(format!("Nothing of {} could be measured.", title(kind, certificates)));
                continue;
            };
            if Some(first.name()) != subjects.first().map(Subject::name) {
                run.note(format!(
                    "{}: the plan's baseline could not be measured; {} is used in its place.",
                    title(kind, certificates),
                    first.name()
                ));
            }
            let subjects = measured.into_iter().map(|(subject, one)| (Some(subject), one));
            let mut contenders: Vec<(Option<Subject>, Contender)> = subjects.collect();
            if kind == Kind::Full && plan.certificates.first() == Some(&certificates) {
                contenders.extend(traces(plan));
                baseline_first(plan, &mut contenders);
            }
            let mut group = Group { kind, certificates, contenders, seen: Vec::new() };
            if plan.engines.contains(&PlanEngine::Model) {
                group.seen = model(run, plan, seed, &group)?;
                part.measured |= !group.seen.is_empty();
                tell(run, plan, &group);
            }
            groups.push(group);
        }
    }
    if plan.engines.contains(&PlanEngine::Live) {
        let (measured, trouble) = live(run, plan, seed, stack, &groups)?;
        part.measured |= measured;
        part.trouble = trouble;
    }
    Ok(part)
}

fn traces(plan: &Plan) -> Vec<(Option<Subject>, Contender)> {
    plan.traces.iter().map(|contender| (None, contender.clone())).collect()
}

/// Puts the trace that the plan names as its baseline first.
fn baseline_first(plan: &Plan, contenders: &mut [(Option<Subject>, Contender)]) {
    let is_named =
        |(_, one): &(Option<Subject>, Contender)| Some(&one.name) == plan.baseline_trace.as_ref();
    if let Some(place) = contenders.iter().position(is_named) {
        contenders[..=place].rotate_right(1);
    }
}

fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Full => "full",
        Kind::HelloRetry => "hello-retry",
        Kind::Resumed => "resumed",
        Kind::Mutual => "mutual",
    }
}

fn title(kind: Kind, certificates: u8) -> String {
    if certificates == 0 {
        return "the plan's traces".to_owned();
    }
    let word = match kind {
        Kind::Full => "full handshakes",
        Kind::HelloRetry => "handshakes after a HelloRetryRequest",
        Kind::Resumed => "resumed handshakes",
        Kind::Mutual => "mutual handshakes",
    };
    let plural = if certificates == 1 { "certificate" } else { "certificates" };
    format!("{word}, {certificates} {plural}")
}

fn model(run: &mut Run<'_>, plan: &Plan, seed: u64, group: &Group) -> Result<Vec<Seen>, LabError> {
    let part = if group.certificates == 0 {
        "traces".to_owned()
    } else {
        format!("{}/x{}", word(group.kind), group.certificates)
    };
    let contenders: Vec<Contender> =
        group.contenders.iter().map(|(_, contender)| contender.clone()).collect();
    let count = plan.connections(run.quick());
    let mut places = Vec::new();
    for profile in plan.kernels()? {
        for transfer in plan.transfers() {
            for link in plan.links() {
                places.push(GridPoint {
                    part: &part,
                    profile,
                    link,
                    transfer,
                    count,
                    seed: Some(seed),
                    raw: count * contenders.len() as u64 <= RAW && plan.points() <= 100,
                    bytes: true,
                });
            }
        }
    }
    play::over(run, &places, &contenders)
}

/// The clock's name in a sentence.
fn since(clock: ClockStart) -> &'static str {
    match clock {
        ClockStart::Syn => "since the SYN",
        ClockStart::Connected => "since TCP was connected",
    }
}

fn tell(run: &mut Run<'_>, plan: &Plan, group: &Group) {
    let words = title(group.kind, group.certificates);
    let suffix = match group.certificates {
        0 => "traces".to_owned(),
        certificates => format!("{}-x{certificates}", word(group.kind)),
    };
    run.table(tables::table(
        &format!("grid-{suffix}"),
        &format!("Handshakes over your links: {words}"),
        "Differences are to the first row of each link; paired: flow by flow with the same losses; unpaired: against a baseline with \
         losses of its own.",
        &group.seen,
    ));
    run.table(tables::bytes_table(
        &format!("bytes-{suffix}"),
        &format!("Time to first and last byte: {words}"),
        &format!("Since the SYN, with a request of {} bytes.", plan.request),
        &group.seen,
    ));
    // Charts show the first kernel and, except for the last one, the first body.
    let (Some(profile), Some(body)) =
        (group.seen.first().map(|point| point.profile), plan.bodies.first())
    else {
        return;
    };
    let seen: Vec<Seen> = group
        .seen
        .iter()
        .filter(|point| point.profile == profile && point.transfer.body == *body)
        .cloned()
        .collect();
    let names: Vec<&str> =
        group.contenders.iter().take(LINES).map(|(_, contender)| contender.name.as_str()).collect();
    if plan.loss.len() > 1 {
        let name = format!("fans-{suffix}");
        let title = format!("Handshake time against loss: {words}");
        run.chart(tables::fans(&name, &title, &seen, &names, plan.clock));
    }
    if group.contenders.len() > 1 {
        for &loss in plan.loss.iter().take(HEATS) {
            let name = format!("heat-{suffix}-{}", place_name(loss));
            run.chart(tables::heat(&name, &seen, loss));
        }
        if let Some(point) = lossy(&seen) {
            let name = format!("differences-{suffix}");
            run.chart(tables::difference_ecdf(&name, point, names.get(1..).unwrap_or_default()));
        }
        if plan.bodies.len() > 1 {
            run.chart(bodies(&format!("bodies-{suffix}"), &words, group, profile));
        }
    }
    for sentence in sentences(plan, group, &seen) {
        run.summary(sentence);
    }
    if let Some(control) = control(&words, &seen) {
        run.control(control);
    }
}

/// A share as part of a file's name.
fn place_name(loss: f64) -> String {
    tables::hundred(loss).to_string().replace('.', "p")
}

/// The point with the most loss at the longest RTT.
fn lossy(seen: &[Seen]) -> Option<&Seen> {
    seen.iter().filter(|point| point.link.loss > 0.0).max_by(|one, other| {
        one.link.loss.total_cmp(&other.link.loss).then(one.link.rtt_us.cmp(&other.link.rtt_us))
    })
}

fn bodies(name: &str, words: &str, group: &Group, profile: &str) -> Chart {
    let mut series: Vec<Series> = Vec::new();
    let seen: Vec<&Seen> = group.seen.iter().filter(|point| point.profile == profile).collect();
    for point in seen {
        let Some(base) = point.played.rows.first() else { continue };
        for row in point.played.rows.iter().skip(1).take(LINES) {
            let (Some(last), Some(base_last)) = (&row.last_byte, &base.last_byte) else { continue };
            if point.link.loss.to_bits() != group.seen[0].link.loss.to_bits() {
                continue;
            }
            let line = format!("{}, {} ms", row.name, tables::rtt_ms(&point.link));
            let at = [f64::from(point.transfer.body), tables::above(last, base_last, 50)];
            match series.iter_mut().find(|one| one.name == line) {
                Some(line) => line.points.push(at),
                None => series.push(Series { name: line, points: vec![at], band: Vec::new() }),
            }
        }
    }
    for line in &mut series {
        line.points.sort_unstable_by(|one, other| one[0].total_cmp(&other[0]));
    }
    Chart {
        name: name.to_owned(),
        title: format!(
            "What is left of the handshake's cost in the time to the last byte: {words}"
        ),
        x: Axis::log("answer (bytes)"),
        y: Axis::linear("time to last byte over the baseline (%)"),
        marks: Marks::Lines { series },
        rules: Vec::new(),
        caption: "Medians at the plan's first loss.".to_owned(),
    }
}

/// What each contender costs on the calmest and on the worst link.
fn sentences(plan: &Plan, group: &Group, seen: &[Seen]) -> Vec<String> {
    let (Some(first), Some(last)) = (seen.first(), lossy(seen).or(seen.last())) else {
        return Vec::new();
    };
    let mut sentences = Vec::new();
    for (_, contender) in group.contenders.iter().skip(1).take(LINES) {
        let words = |point: &Seen| {
            let (row, base) = (point.played.row(&contender.name)?, point.played.rows.first()?);
            let outside = point.outside().map_or_else(String::new, |outside| {
                format!("; outside the model's validated range: {}", outside.words())
            });
            let (own, base) = (row.handshake(plan.clock), base.handshake(plan.clock));
            Some(format!(
                "{} at {} (median {} ms against {} ms, 95th percentile {} against {}{outside})",
                tables::told(&row.paired, "ms"),
                place_words(&point.link),
                short(own.at(50)),
                short(base.at(50)),
                short(own.at(95)),
                short(base.at(95))
            ))
        };
        let Some(calm) = words(first) else { continue };
        let mut sentence = format!("{} in the mean, {}: {calm}", contender.name, since(plan.clock));
        if !std::ptr::eq(first, last)
            && let Some(worst) = words(last)
        {
            sentence += &format!(", and {worst}");
        }
        sentences.push(sentence + ".");
    }
    sentences
}

/// The baseline against itself with other losses, where telling them apart is hardest.
fn control(words: &str, seen: &[Seen]) -> Option<Control> {
    let point = lossy(seen).or(seen.first())?;
    let row = point.played.rows.first()?;
    let other = row.syn.mean - row.unpaired.value;
    if other <= 0.0 {
        return None;
    }
    Some(Control {
        what: format!("{}, two seeds ({words}; {})", row.name, place_words(&point.link)),
        ratio: row.syn.mean / other,
        low: (other + row.unpaired.low) / other,
        high: (other + row.unpaired.high) / other,
    })
}

fn live(
    run: &mut Run<'_>,
    plan: &Plan,
    seed: u64,
    stack: &dyn Stack,
    groups: &[Group],
) -> Result<(bool, Option<LabError>), LabError> {
    let count = plan.live_connections(run.quick());
    let mut jobs = Vec::new();
    for link in plan.links() {
        for group in groups.iter().filter(|group| group.certificates > 0) {
            for transfer in plan.transfers() {
                jobs.push(Job {
                    part: format!("{}/x{}", word(group.kind), group.certificates),
                    link,
                    transfer,
                    subjects: group.contenders.iter().filter_map(|(subject, _)| *subject).collect(),
                    count,
                });
            }
        }
    }
    let (points, trouble) = validation::measure(run, stack, seed, &jobs)?;
    let contenders: Vec<Contender> = groups
        .iter()
        .flat_map(|group| group.contenders.iter().map(|(_, contender)| contender.clone()))
        .collect();
    if let Some(profile) = plan.kernels()?.first() {
        let drawn = plan.links().last().copied();
        let close = |link: &crate::link::Link| Some(*link) == drawn;
        validation::tell(run, profile, seed, &points, &contenders, &close);
    }
    Ok((!points.is_empty(), trouble))
}
