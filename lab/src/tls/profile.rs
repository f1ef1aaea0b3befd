//! Further measurements: instructions by callgrind, ticks of the time-stamp counter by perf, and flame graphs.
//!
//! Each observes a helper process that only makes handshakes. The figures need none of them: if a tool is missing,
//! the error says how to install it.

use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

use inferno::collapse::Collapse;
use inferno::collapse::perf::{Folder, Options as FoldOptions};
use inferno::{differential, flamegraph};

use super::helper;
use super::implementation::Stack;
use super::rustls::Rustls;
use super::turns::SERVER_THREAD;
use crate::error::LabError;
use crate::run::Settings;
use crate::subject::Subject;

/// Samples per second; a prime number, so that nothing periodic is always or never sampled.
const FREQUENCY: &str = "997";
/// Bytes of stack that are saved with each sample: ML-KEM puts its matrices there.
const STACK: &str = "dwarf,32768";

/// Instructions of one handshake, client and server together, for each of these: counted by callgrind between marks,
/// so that one-time costs of a process do not count. Valgrind simulates a processor without AVX-512 and ADX, so other
/// code runs than usually: only ratios are meaningful.
pub fn instructions(
    settings: &Settings,
    stack: &dyn Stack,
    subjects: &[Subject],
    count: u32,
    stop: &AtomicBool,
) -> Result<Vec<f64>, LabError> {
    let needs = "valgrind on the path (package valgrind in every distribution)";
    found("valgrind", "callgrind", needs)?;
    let folder = crate::temporary::folder()?;
    let out = folder.path().join("out");
    let inner = helper::between_marks(settings, stack, subjects, count)?;
    let mut command = Command::new("valgrind");
    command
        // PQMagic is compiled for this processor, which may have instructions that valgrind does not know.
        .env("OUTLAST_PQMAGIC", "none")
        .args(["--tool=callgrind", "--dump-before=*outlast_profile_mark*", "--quiet"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(inner.get_program())
        .args(inner.get_args());
    helper::lines(&settings.executable, &command, stop, |_| Ok(()))?;
    // The first dump is from before the first mark.
    (0..subjects.len())
        .map(|index| {
            let path = folder.path().join(format!("out.{}", index + 2));
            let total = total(&path)?;
            #[expect(clippy::cast_precision_loss, reason = "a count of instructions")]
            let total = total as f64;
            Ok(total / f64::from(count))
        })
        .collect()
}

/// The total at the end of a callgrind dump.
fn total(path: &Path) -> Result<u64, LabError> {
    let text = std::fs::read_to_string(path).map_err(|error| LabError::file(path, error))?;
    text.lines()
        .rev()
        .find_map(|line| line.strip_prefix("totals: ")?.trim().parse().ok())
        .ok_or_else(|| LabError::failed("callgrind left no total"))
}

fn found(program: &str, what: &str, needs: &str) -> Result<(), LabError> {
    let tried = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match tried {
        Ok(status) if status.success() => Ok(()),
        _ => Err(LabError::unavailable(what, needs)),
    }
}

/// Ticks of the time-stamp counter per second of CPU time.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Ticks {
    /// Ticks per second.
    pub hertz: f64,
    /// How they were determined.
    pub by: String,
}

/// Frequency of the time-stamp counter: perf counts its ticks (`msr/tsc/`) and the task's time of the same process.
/// If it cannot, `/proc/cpuinfo` has the processor's nominal speed.
pub fn ticks(settings: &Settings, subject: &Subject, stop: &AtomicBool) -> Result<Ticks, LabError> {
    match ticks_by_perf(settings, subject, stop) {
        Ok(hertz) => Ok(Ticks {
            hertz,
            by: "CPU time times the rate of the time-stamp counter, which perf counted (msr/tsc/)"
                .to_owned(),
        }),
        Err(LabError::Interrupted) => Err(LabError::Interrupted),
        Err(error) => {
            let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
            let line = text.lines().find_map(|line| line.strip_prefix("cpu MHz"));
            let megahertz: Option<f64> =
                line.and_then(|line| line.trim_start_matches([' ', '\t', ':']).trim().parse().ok());
            let hertz = megahertz.ok_or(error)? * 1e6;
            let by = "CPU time times the processor's speed in /proc/cpuinfo: perf does not count msr/tsc/ here";
            Ok(Ticks { hertz, by: by.to_owned() })
        }
    }
}

fn ticks_by_perf(
    settings: &Settings,
    subject: &Subject,
    stop: &AtomicBool,
) -> Result<f64, LabError> {
    let folder = crate::temporary::folder()?;
    let out = folder.path().join("ticks");
    let inner = helper::repeating(settings, &Rustls, subject, 300)?;
    let mut command = Command::new("perf");
    command
        .args(["stat", "-x", ",", "-e", "msr/tsc/,task-clock", "-o"])
        .arg(&out)
        .arg("--")
        .arg(inner.get_program())
        .args(inner.get_args());
    helper::lines(&settings.executable, &command, stop, |_| Ok(()))?;
    let text = std::fs::read_to_string(&out).map_err(LabError::failed)?;
    ticks_a_second(&text).ok_or_else(|| LabError::failed("perf counted no ticks"))
}

/// From `perf stat -x ,`: VALUE,UNIT,EVENT,…; task-clock is in milliseconds.
fn ticks_a_second(text: &str) -> Option<f64> {
    let value = |event: &str| {
        text.lines().find_map(|line| {
            let fields: Vec<_> = line.split(',').collect();
            let named = fields.get(2).is_some_and(|name| name.starts_with(event));
            named.then(|| fields[0].parse::<f64>().ok()).flatten()
        })
    };
    let (ticks, milliseconds) = (value("msr/tsc/")?, value("task-clock")?);
    (ticks > 0.0 && milliseconds > 0.0).then(|| ticks / (milliseconds / 1000.0))
}

/// Folded stacks of a server: lines `frame;frame;frame NANOSECONDS`, for one handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folded(pub String);

/// Samples the server's turns of so many handshakes.
pub fn sample(
    settings: &Settings,
    stack: &dyn Stack,
    subject: &Subject,
    count: u64,
    stop: &AtomicBool,
) -> Result<Folded, LabError> {
    let needs = "perf on the path that may sample cpu-clock (kernel.perf_event_paranoid at most 2, or root)";
    found("perf", "flame graphs", needs)?;
    let folder = crate::temporary::folder()?;
    let data = folder.path().join("perf.data");
    let script = folder.path().join("stacks");
    let inner = helper::named(settings, stack, subject, count)?;
    let mut record = Command::new("perf");
    record
        .args(["record", "-q", "-e", "cpu-clock", "-F", FREQUENCY, "--call-graph", STACK, "-o"])
        .arg(&data)
        .arg("--")
        .arg(inner.get_program())
        .args(inner.get_args());
    helper::lines(&settings.executable, &record, stop, |_| Ok(())).map_err(
        |error| match error {
            LabError::Peer { reason, .. } => {
                LabError::unavailable("flame graphs", format!("{needs} ({reason})"))
            }
            error => error,
        },
    )?;
    let file = File::create(&script).map_err(|error| LabError::file(&script, error))?;
    let written = Command::new("perf")
        .args(["script", "--no-inline", "--comms", SERVER_THREAD, "-i"])
        .arg(&data)
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(Stdio::null())
        .status()
        .map_err(LabError::failed)?;
    if !written.success() {
        return Err(LabError::failed(format!("perf script: {written}")));
    }
    let file = File::open(&script).map_err(|error| LabError::file(&script, error))?;
    let mut folded = Vec::new();
    Folder::from(FoldOptions::default())
        .collapse(BufReader::new(file), &mut folded)
        .map_err(LabError::failed)?;
    let folded = tidy(&String::from_utf8_lossy(&folded), count);
    if folded.0.is_empty() {
        return Err(LabError::failed("perf saw nothing of the server"));
    }
    Ok(folded)
}

/// The samples, for one of so many handshakes: perf gives each sample the nanoseconds that it stands for.
///
/// Names without parts of no use to readers: hashes at the end of Rust's, the version in AWS-LC's. Everything above
/// the server's turn is cut off, so that the stacks of both begin in the same way.
fn tidy(folded: &str, handshakes: u64) -> Folded {
    let mut counts: HashMap<String, u64> = HashMap::new();
    for line in folded.lines() {
        let Some((stack, count)) = line.rsplit_once(' ') else { continue };
        let frames: Vec<String> = stack.split(';').map(frame).collect();
        let turn = frames.iter().position(|frame| frame.contains("server_half"));
        let kept = frames.get(turn.map_or(1, |index| index + 1)..).unwrap_or_default();
        let stack = [&["server".to_owned()], kept].concat().join(";");
        *counts.entry(stack).or_default() += count.parse::<u64>().unwrap_or_default();
    }
    let mut lines: Vec<_> = counts
        .into_iter()
        .map(|(stack, count)| format!("{stack} {}\n", count / handshakes.max(1)))
        .collect();
    lines.sort_unstable();
    Folded(lines.concat())
}

fn frame(name: &str) -> String {
    let name = match name.rsplit_once("::h") {
        Some((rest, hash)) if hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()) => {
            rest
        }
        _ => name,
    };
    if let Some(rest) = name.strip_prefix("aws_lc_") {
        let version = |letter: char| letter.is_ascii_digit() || letter == '_';
        return rest.trim_start_matches(version).to_owned();
    }
    // `<a::b::Type<C> as d::Trait>::method` is `Type::method`, `a::b::c::function` is `c::function`.
    let (name, method) = match name.strip_prefix('<').and_then(|rest| rest.split_once(" as ")) {
        Some((implementer, rest)) => {
            (implementer, rest.rsplit_once(">::").map(|(_, method)| method))
        }
        None => (name, None),
    };
    let mut depth = 0_usize;
    let plain: String = name
        .chars()
        .filter(|letter| {
            depth += usize::from(*letter == '<');
            let outside = depth == 0;
            depth = depth.saturating_sub(usize::from(*letter == '>'));
            outside
        })
        .collect();
    let mut last = plain.rsplit("::").filter(|part| !part.is_empty());
    match (method, last.next(), last.next()) {
        (Some(method), Some(implementer), _) => format!("{implementer}::{method}"),
        (None, Some(function), Some(module)) => format!("{module}::{function}"),
        _ => name.to_owned(),
    }
}

impl Folded {
    /// Total nanoseconds of one handshake.
    pub fn nanos(&self) -> u64 {
        let counts = self.0.lines().filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok());
        counts.sum()
    }

    /// The flame graph.
    pub fn svg(&self, title: &str, notes: &str) -> Result<String, LabError> {
        draw(&self.0, title, notes)
    }

    /// The flame graph of this one, in red where it has more than `before`, in blue where less; scaled to the same
    /// number of handshakes.
    pub fn differential(
        &self,
        before: &Self,
        title: &str,
        notes: &str,
    ) -> Result<String, LabError> {
        let mut lines = Vec::new();
        let options = differential::Options::default();
        differential::from_readers(options, before.0.as_bytes(), self.0.as_bytes(), &mut lines)
            .map_err(LabError::failed)?;
        draw(&String::from_utf8_lossy(&lines), title, notes)
    }
}

fn draw(folded: &str, title: &str, notes: &str) -> Result<String, LabError> {
    let mut options = flamegraph::Options::default();
    options.title = title.to_owned();
    options.notes = notes.to_owned();
    options.count_name = "ns a handshake".to_owned();
    options.deterministic = true;
    options.font_type = "sans-serif".to_owned();
    options.min_width = 0.2;
    // The report has no scripts of others.
    options.no_javascript = true;
    options.image_width = Some(1200);
    let mut svg = Vec::new();
    flamegraph::from_lines(&mut options, folded.lines(), &mut svg).map_err(LabError::failed)?;
    let svg = String::from_utf8(svg).map_err(LabError::failed)?;
    Ok(without_script(&svg))
}

/// Removes what is left of the script when it is turned off, and the words to click on.
fn without_script(svg: &str) -> String {
    let mut svg = svg.replace(" onload=\"init(evt)\"", "");
    for (begin, end) in [
        ("<script", "</script>"),
        ("<text id=\"unzoom\"", "</text>"),
        ("<text id=\"search\"", "</text>"),
        ("<text id=\"matched\"", "</text>"),
    ] {
        if let Some(start) = svg.find(begin)
            && let Some(len) = svg[start..].find(end)
        {
            svg.replace_range(start..start + len + end.len(), "");
        }
    }
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_come_from_perf_s_own_table() {
        let text = "# started\n\n2600000000,,msr/tsc/,1000,100.00,,\n1000.5,msec,task-clock,1000,100.00,1,CPUs utilized\n";
        let hertz = ticks_a_second(text).unwrap();
        assert!((hertz - 2.5987e9).abs() < 1e6, "{hertz}");
        assert_eq!(ticks_a_second("<not supported>,,msr/tsc/,0,0,,\n1.0,msec,task-clock"), None);
        assert_eq!(ticks_a_second(""), None);
    }

    #[test]
    fn stacks_begin_at_the_server_s_turn() {
        let folded = "lab-server;main;outlast_lab::tls::exchange::server_half::h0123456789abcdef;aws_lc_0_44_0_SHA256 30\n\
                      lab-server;main;x::server_half;aws_lc_0_44_0_SHA256 20\nlab-server;[unknown] 10\n";
        assert_eq!(tidy(folded, 2).0, "server;SHA256 25\nserver;[unknown] 5\n");
        assert_eq!(tidy(folded, 1).nanos(), 60);
    }

    #[test]
    fn names_of_frames_are_short() {
        for (long, short) in [
            (
                "<rustls::server::hs::ExpectClientHello as rustls::State<x::Y>>::handle",
                "ExpectClientHello::handle",
            ),
            (
                "rustls::common_state::CommonState::process_main_protocol",
                "CommonState::process_main_protocol",
            ),
            ("aws_lc_0_44_0_EVP_DigestSign", "EVP_DigestSign"),
            (
                "rustls::conn::ConnectionCore<Data>::process_new_packets",
                "ConnectionCore::process_new_packets",
            ),
            ("[unknown]", "[unknown]"),
            ("main", "main"),
        ] {
            assert_eq!(frame(long), short);
        }
    }

    #[test]
    fn flame_graphs_are_drawn_without_scripts() {
        let before = Folded("server;sign 10\n".to_owned());
        let after = Folded("server;mlkem 4\nserver;sign 10\n".to_owned());
        let svg = after.svg("Hybrid", "a note").unwrap();
        assert!(
            svg.contains("mlkem") && svg.contains("Hybrid") && !svg.contains("<script"),
            "{svg}"
        );
        assert!(!svg.contains("init(") && !svg.contains("Reset Zoom") && svg.ends_with("</svg>"));
        let difference = after.differential(&before, "Difference", "").unwrap();
        assert!(difference.contains("mlkem"));
    }
}
