//! Reads a researcher's measurements: a CSV file with one row for each point.
//!
//! docs/lab.md describes the columns. Errors name the line and the column.

use std::path::Path;

use super::score::{Measured, flights};
use crate::error::LabError;
use crate::link::{ClockStart, Link};
use crate::trace::{Side, Step};

/// Longest file, in bytes.
const MAX_TEXT: u64 = 4 << 20;
/// Most rows.
const MAX_ROWS: usize = 10_000;
/// Most bytes of a flight.
const MAX_FLIGHT: u32 = 4 << 20;
/// Most writes of a flight.
const MAX_WRITES: usize = 64;

/// Columns that a file must have.
const NEEDED: [&str; 6] =
    ["name", "rtt_ms", "loss_percent", "handshakes", "client_hello_bytes", "server_flight_bytes"];
/// Columns that it may have, besides quantiles such as `p95_ms` and `p99.9_ms`.
const ALLOWED: [&str; 5] = ["client_finished_bytes", "cpu_ms", "clock", "rate_mbps", "mean_ms"];
/// Bytes of the client's last flight, if they are not given.
const FINISHED: u32 = 80;

/// Reads a file.
pub fn read(path: &Path) -> Result<Vec<Measured>, LabError> {
    let named = |what: String| LabError::Plan(format!("{}: {what}", path.display()));
    let length = std::fs::metadata(path).map_err(|error| LabError::file(path, error))?.len();
    if length > MAX_TEXT {
        return Err(named(format!("longer than {} MiB", MAX_TEXT >> 20)));
    }
    let text = std::fs::read_to_string(path).map_err(|error| LabError::file(path, error))?;
    parse(&text).map_err(|error| named(error.to_string()))
}

/// Reads its text.
pub fn parse(text: &str) -> Result<Vec<Measured>, LabError> {
    let fail = |what: String| LabError::Plan(what);
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
    let header = reader.headers().map_err(|error| fail(format!("line 1: {error}")))?.clone();
    let columns = columns(&header).map_err(|what| fail(format!("line 1: {what}")))?;
    let mut points = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| {
            let line = error.position().map_or(0, csv::Position::line);
            fail(format!("line {line}: not as many fields as the header has, or not CSV"))
        })?;
        let line = record.position().map_or(0, csv::Position::line);
        if points.len() == MAX_ROWS {
            return Err(fail(format!("line {line}: more than {MAX_ROWS} rows")));
        }
        let row = Row { header: &header, record: &record };
        let point =
            point(&row, &columns, line).map_err(|what| fail(format!("line {line}, {what}")))?;
        points.push(point);
    }
    if points.iter().all(|point| point.link.loss == 0.0) {
        return Err(fail("no row has a loss: there is nothing to compare".to_owned()));
    }
    Ok(points)
}

/// The columns with quantiles: name and share.
fn columns(header: &csv::StringRecord) -> Result<Vec<(String, f64)>, String> {
    let mut quantiles: Vec<(String, f64)> = Vec::new();
    for (place, name) in header.iter().enumerate() {
        if header.iter().take(place).any(|other| other == name) {
            return Err(format!("two columns are named {name}"));
        }
        if NEEDED.contains(&name) || ALLOWED.contains(&name) {
            continue;
        }
        let percent = name.strip_prefix('p').and_then(|rest| rest.strip_suffix("_ms"));
        match percent.and_then(|percent| percent.parse::<f64>().ok()) {
            Some(percent) if percent > 0.0 && percent < 100.0 => {
                quantiles.push((name.to_owned(), percent / 100.0));
            }
            _ => {
                return Err(format!(
                    "no column is named {name}; known: {}, {}, and quantiles such as p50_ms and p99.9_ms",
                    NEEDED.join(", "),
                    ALLOWED.join(", ")
                ));
            }
        }
    }
    if let Some(missing) = NEEDED.iter().find(|name| !header.iter().any(|other| other == **name)) {
        return Err(format!("the column {missing} is missing"));
    }
    if quantiles.is_empty() && !header.iter().any(|name| name == "mean_ms") {
        return Err(
            "no figures: at least a quantile such as p50_ms, or mean_ms, is needed".to_owned()
        );
    }
    quantiles.sort_by(|one, other| one.1.total_cmp(&other.1));
    Ok(quantiles)
}

struct Row<'a> {
    header: &'a csv::StringRecord,
    record: &'a csv::StringRecord,
}

impl Row<'_> {
    /// A field; none if it is empty or the file has no such column.
    fn text(&self, name: &str) -> Option<&str> {
        let place = self.header.iter().position(|other| other == name)?;
        self.record.get(place).filter(|text| !text.is_empty())
    }

    fn needed(&self, name: &str) -> Result<&str, String> {
        self.text(name).ok_or_else(|| format!("column {name}: is empty"))
    }

    /// A number in a range; none if the field is empty.
    fn number(&self, name: &str, low: f64, high: f64) -> Result<Option<f64>, String> {
        let Some(text) = self.text(name) else { return Ok(None) };
        match text.parse::<f64>() {
            Ok(number) if (low..=high).contains(&number) => Ok(Some(number)),
            Ok(_) => Err(format!("column {name}: {} is not between {low} and {high}", shown(text))),
            Err(_) => Err(format!("column {name}: {} is not a number", shown(text))),
        }
    }

    fn needed_number(&self, name: &str, low: f64, high: f64) -> Result<f64, String> {
        self.number(name, low, high)?.ok_or_else(|| format!("column {name}: is empty"))
    }

    /// Bytes of one write, or of several, such as `4096+2494`.
    fn writes(&self, name: &str) -> Result<Vec<u32>, String> {
        let text = self.needed(name)?;
        let writes: Option<Vec<u32>> = text
            .split('+')
            .map(|part| part.trim().parse().ok().filter(|bytes| (1..=MAX_FLIGHT).contains(bytes)))
            .collect();
        writes.filter(|writes| writes.len() <= MAX_WRITES).ok_or_else(|| {
            format!(
                "column {name}: {} must be a number of bytes from 1 to {MAX_FLIGHT}, or several with + between them",
                shown(text)
            )
        })
    }
}

fn point(row: &Row<'_>, columns: &[(String, f64)], line: u64) -> Result<Measured, String> {
    let name: String =
        row.needed("name")?.chars().filter(|one| !one.is_control()).take(100).collect();
    let microseconds = row.needed_number("rtt_ms", 0.05, 10_000.0)? * 1e3;
    let loss = row.needed_number("loss_percent", 0.0, 50.0)? / 100.0;
    let handshakes = row.needed_number("handshakes", 10.0, 1e9)?;
    let rate = row.number("rate_mbps", 0.05, 100_000.0)?;
    let finished = row.number("client_finished_bytes", 1.0, f64::from(MAX_FLIGHT))?;
    let cpu_ms = row.number("cpu_ms", 0.0, 60_000.0)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "ranges were checked"
    )]
    let whole = |number: f64| number.round() as u64;
    let small = |number: f64| u32::try_from(whole(number)).unwrap_or(u32::MAX);
    let mut trace = flights(
        &row.writes("client_hello_bytes")?,
        &row.writes("server_flight_bytes")?,
        finished.map_or(FINISHED, small),
    );
    if let Some(cpu_ms) = cpu_ms {
        // All of it before the server's flight, and at least a nanosecond, so that it counts as given.
        let server = trace.steps.iter_mut().find(|step: &&mut Step| step.from == Side::Server);
        if let Some(step) = server {
            step.cpu_ns = whole(cpu_ms * 1e6).max(1);
        }
    }
    let clock = match row.text("clock") {
        None | Some("syn") => ClockStart::Syn,
        Some("connected") => ClockStart::Connected,
        Some(other) => {
            return Err(format!("column clock: {} is neither syn nor connected", shown(other)));
        }
    };
    let mut quantiles: Vec<(f64, f64)> = Vec::new();
    for (column, share) in columns {
        let Some(time) = row.number(column, 0.001, 3_600_000.0)? else { continue };
        if let Some(before) = quantiles.last().filter(|before| before.1 > time) {
            return Err(format!(
                "column {column}: {time} is less than the quantile before it, {}",
                before.1
            ));
        }
        quantiles.push((*share, time));
    }
    let mean_ms = row.number("mean_ms", 0.001, 3_600_000.0)?;
    if quantiles.is_empty() && mean_ms.is_none() {
        return Err("no figure: all quantiles and mean_ms are empty".to_owned());
    }
    let link = Link {
        rtt_us: whole(microseconds),
        loss,
        rate_bps: rate.map(|rate| whole(rate * 1e6)),
        queue_packets: 1000,
        jitter_us: 0,
    };
    Ok(Measured {
        name,
        line,
        link,
        handshakes: small(handshakes),
        clock,
        trace,
        quantiles,
        mean_ms,
    })
}

/// Somebody's text for a terminal.
fn shown(text: &str) -> String {
    let short: String = text.chars().filter(|one| !one.is_control()).take(40).collect();
    format!("\"{short}\"")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::model::validation::score::{Score, score};
    use crate::model::{PROFILES, Profile};

    const HEAD: &str = "name,rtt_ms,loss_percent,handshakes,client_hello_bytes,server_flight_bytes,clock,p50_ms,p95_ms,mean_ms\n";

    fn message(rows: &str) -> String {
        parse(&format!("{HEAD}{rows}")).unwrap_err().to_string()
    }

    #[test]
    fn mistakes_are_told_with_line_and_column() {
        let good = "a,30,0,5000,300,900,syn,61,62,61\na,30,5,5000,300,900,syn,61,262,90\n";
        assert_eq!(parse(&format!("{HEAD}{good}")).unwrap().len(), 2);
        for (rows, parts) in [
            (
                "a,fast,5,5000,300,900,syn,61,62,61",
                ["line 2, column rtt_ms", "\"fast\" is not a number"],
            ),
            (
                "a,30,60,5000,300,900,syn,61,62,61",
                ["line 2, column loss_percent", "between 0 and 50"],
            ),
            (
                "a,30,0.05,5000,300,900,syn,62,61,61",
                ["line 2, column p95_ms", "less than the quantile before"],
            ),
            ("a,30,5,5000,300,0,syn,61,62,61", ["line 2, column server_flight_bytes", "\"0\""]),
            ("a,30,5,5000,300,1+x,syn,61,62,61", ["server_flight_bytes", "\"1+x\""]),
            ("a,30,5,5000,300,900,ack,61,62,61", ["column clock", "neither syn nor connected"]),
            ("a,30,5,1,300,900,syn,61,62,61", ["column handshakes", "between 10"]),
            ("a,30,5,5000,300,900,syn,,,", ["line 2", "no figure"]),
            (",30,5,5000,300,900,syn,1,1,1", ["column name", "is empty"]),
            ("a,30,5,5000", ["line 2", "not as many fields"]),
            ("a,30,0,5000,300,900,syn,61,62,61", ["no row has a loss", ""]),
        ] {
            let said = message(rows);
            assert!(parts.iter().all(|part| said.contains(part)), "{rows}: {said}");
        }
        let head = |text: &str| parse(text).unwrap_err().to_string();
        assert!(head("name,rtt_ms\n").contains("loss_percent is missing"));
        assert!(head("name,rtt\n").contains("no column is named rtt; known: name, rtt_ms"));
        assert!(head("name,name\n").contains("two columns are named name"));
        assert!(head("p0_ms\n").contains("no column is named p0_ms"));
        let without = HEAD.replace(",p50_ms,p95_ms,mean_ms", "");
        assert!(head(&without).contains("no figures"));
        let alone = parse(&format!("{HEAD}a,30,5,5000,300,900,syn,61,262,90\n")).unwrap();
        let stop = AtomicBool::new(false);
        let error = score(&alone, &PROFILES[0], 100, 1, &stop).unwrap_err().to_string();
        assert!(
            error.contains("line 2: a has no cpu_ms, and no row with loss_percent 0"),
            "{error}"
        );
    }

    /// Data that the model itself made agree with it, and those of another kernel do not.
    #[test]
    fn the_score_can_tell_kernels_apart() {
        use crate::link::Transfer;
        use crate::model::connections;
        use crate::statistics::{quantile, sorted};
        let netem = Profile::by_name("linux-5.0-netem").unwrap();
        let row = |loss: f64| {
            let link = Link { loss, ..Link::new(std::time::Duration::from_millis(30), 0.0) };
            let trace = flights(&[1402], &[4096, 5000], 80);
            let nothing = Transfer { request: 0, body: 0 };
            let all = connections(netem, &link, &trace, nothing, 99, 5000);
            let times = sorted(all.iter().map(|one| one.handshake_ns as f64 / 1e6 + 1.0));
            let at = |share| quantile(&times, share);
            format!(
                "made,30,{},5000,1402,4096+5000,,{},{},{}\n",
                100.0 * loss,
                at(0.5),
                at(0.95),
                times.iter().sum::<f64>() / 5000.0
            )
        };
        let text: String = [0.0, 0.02, 0.05, 0.08].map(row).concat();
        let points = parse(&format!("{HEAD}{text}")).unwrap();
        let stop = AtomicBool::new(false);
        let of = |profile| score(&points, profile, 5000, 1, &stop).unwrap();
        let (own, other) = (of(netem), of(&PROFILES[0]));
        assert_eq!(own.len(), 3);
        assert!(own.iter().all(Score::agrees), "{own:#?}");
        assert!(other.iter().any(|one| !one.agrees()), "{other:#?}");
    }

    proptest::proptest! {
        /// A file is somebody else's: whatever it says, it is read or refused.
        #[test]
        fn no_text_makes_the_reader_panic(text in ".{0,200}", rows in "[a0-9.,+\\-\n\"]{0,200}") {
            let _ = parse(&text);
            let _ = parse(&format!("{HEAD}{rows}"));
        }
    }
}
