//! The page's first paragraph: what does it cost us, should we worry, and what is to be changed? In plain words, from this
//! run's figures; what they do not carry is left out, or said to be not measured. Below it is the table with the links.

use crate::model::validated;
use crate::result::{Table, Told, Value, Verdict};

/// The experiment that answers it, and its table with every pair.
const EXPERIMENT: &str = "handshake-cost";
const TABLE: &str = "flights";
/// Its table with links.
const LINKS: &str = "operators";
/// Its table of processor times with intervals.
const PROCESSOR: &str = "cpu";
/// Pairs, as spelled in its column `who`, with a chain of two certificates.
const CLASSICAL: &str = "x25519 + ECDSA P-256 x2";
const HYBRID: &str = "X25519MLKEM768 + ECDSA P-256 x2";
const SIGNED: &str = "X25519MLKEM768 + ML-DSA-65 x2";
/// The same in the table of links, where they are compared with the classical pair.
const HYBRID_LINKS: &str = "hybrid";
const SIGNED_LINKS: &str = "hybrid, ML-DSA-65, leaf and intermediate";
const LEAF_LINKS: &str = "hybrid, ML-DSA-65, leaf alone";
const RESUMED_LINKS: &str = "hybrid, ML-DSA-65, resumed";
/// Its table of first windows, and the columns of two of them.
const WINDOWS: &str = "first-windows";
const WINDOW_COLUMNS: [&str; 2] = ["window of 10: more, mean", "window of 20: more, mean"];
/// The link of which the advice speaks: round-trip time in milliseconds, loss in per cent.
const ADVISED: (f64, f64) = (30.0, 0.0);
/// Share of a handshake's time above which users may notice.
const NOTICED: f64 = 0.05;
/// The experiment that measures requests on connections that are kept open, and how its claim about them begins.
const REQUESTS: &str = "requests";
const REUSE: &str = "With connection reuse";

/// Costs of a pair.
struct Pair {
    /// The stack.
    stack: Value,
    /// Processor time of both sides, in microseconds.
    cpu: f64,
    /// Time of a handshake at a round trip of 30 ms, in milliseconds.
    far: f64,
    /// Bytes of TLS in both directions.
    bytes: f64,
    /// Bytes of the server's flight.
    flight: f64,
}

impl Pair {
    /// A pair's first row, from the stack that was measured first.
    fn find(table: &Table, who: &str) -> Option<Self> {
        let at = place(table, "who")?;
        let row = table.rows.iter().find(|row| row.get(at) == Some(&Value::from(who)))?;
        let number = |name: &str| number(row, place(table, name)?);
        Some(Self {
            stack: row.get(place(table, "stack")?)?.clone(),
            cpu: number("client CPU (us)")? + number("server CPU (us)")?,
            far: number("handshake at RTT 30 ms (ms)")?,
            bytes: number("client (bytes)")? + number("server (bytes)")?,
            flight: number("server's flight (bytes)")?,
        })
    }

    /// How much longer a handshake takes than another, as a share.
    fn longer_than(&self, other: &Self) -> f64 {
        self.far / other.far - 1.0
    }
}

/// The sentences of the paragraph.
pub(super) fn sentences(told: &[Told]) -> Vec<String> {
    let measured = experiment(told);
    let table = measured.and_then(|one| named(one, TABLE));
    let pair = |who| table.and_then(|table| Pair::find(table, who));
    let (Some(classical), Some(hybrid)) = (pair(CLASSICAL), pair(HYBRID)) else {
        return vec![format!(
            "This report does not say what it costs you: the run has no figures of the experiment {EXPERIMENT}, which \
             measures that in a minute (outlast lab run {EXPERIMENT})."
        )];
    };
    let links = measured.and_then(links);
    let processor = measured.and_then(|one| processor(one, &hybrid)).unwrap_or_else(|| {
        format!(
            "{} of processor time on both sides together (of typical handshakes, without an interval)",
            time(hybrid.cpu - classical.cpu)
        )
    });
    let mut sentences = vec![format!(
        "Hybrid key exchange (X25519MLKEM768 in place of x25519) costs {processor} and {:.0} bytes for each new connection. At a round \
         trip of 30 ms without loss a handshake takes {:.1} ms where it took {:.1} ({}), computed by the model from typical processor \
         times, without an interval.",
        hybrid.bytes - classical.bytes,
        hybrid.far,
        classical.far,
        share(hybrid.longer_than(&classical)),
    )];
    sentences.push(match links.and_then(|table| noticed(table, HYBRID_LINKS)) {
        Some(places) if places.is_empty() => format!(
            "On none of the links in the table below is its mean more than {} above the classical one, by the upper end of the interval \
             where there is one: for users who wait for a network that is no reason to postpone the key exchange.",
            limit()
        ),
        Some(places) => format!(
            "Its mean may be more than {} above the classical one at {}: that can be noticed. Read what the experiments below say about \
             your links before you decide.",
            limit(),
            at(&places, links)
        ),
        None if hybrid.longer_than(&classical) < NOTICED => format!(
            "That is below {}. The run has no table of other links, so it does not say whether anything speaks against the key exchange there.",
            limit()
        ),
        None => "That can be noticed: read what the experiments below say about your links before you decide.".to_owned(),
    });
    if let Some(signed) = pair(SIGNED) {
        let felt = match links.and_then(|table| noticed(table, SIGNED_LINKS)) {
            Some(places) if places.is_empty() => format!(
                " On none of the links in the table below is the mean with both more than {} above the classical one.",
                limit()
            ),
            Some(places) => format!(
                " With both, the mean may be more than {} above the classical one at {}: that can be noticed, and is the part to plan.",
                limit(),
                at(&places, links)
            ),
            None if signed.longer_than(&hybrid) < NOTICED => String::new(),
            None => " That can be noticed, and is the part to plan.".to_owned(),
        };
        sentences.push(format!(
            "ML-DSA-65 certificates in addition make the server's flight {:.1} kB instead of {:.1}, and that handshake {:.1} ms ({}).{felt}",
            signed.flight / 1000.0,
            hybrid.flight / 1000.0,
            signed.far,
            share(signed.longer_than(&hybrid)),
        ));
    }
    sentences.extend(links.and_then(links_sentence));
    sentences.extend(reuse(told));
    sentences.push(measured.and_then(advice).unwrap_or_else(|| {
        "Not measured here: the general advice, where it matters, is to send no root and no second intermediate, to let clients resume, to \
         keep connections in a pool, and only then to raise TCP's initial window (RFC 6928)."
            .to_owned()
    }));
    sentences
}

/// What each change buys where ML-DSA certificates are to come, over one link.
fn advice(told: &Told) -> Option<String> {
    let (links, windows) = (links(told)?, named(told, WINDOWS)?);
    let row = |table: &'_ Table| {
        let is_it = |row: &&Vec<Value>| {
            number(row, 0) == Some(ADVISED.0) && number(row, 1) == Some(ADVISED.1)
        };
        table.rows.iter().find(is_it).cloned()
    };
    let (link, window) = (row(links)?, row(windows)?);
    let more = |who: &str| words(&link, place(links, &format!("{who}: more, mean"))?);
    let [ten, twenty] = WINDOW_COLUMNS.map(|column| words(&window, place(windows, column)?));
    Some(format!(
        "What to change before ML-DSA-65 certificates come, at a round trip of {} ms without loss, where a handshake with leaf and \
         intermediate takes {} more than the classical one: send the leaf alone, where clients have the intermediate ({}); let clients resume \
         ({}); keep connections in a pool, which pays once for each that it opens; and raise the server's first window (RFC 6928) from 10 \
         packets to 20 (initcwnd of the route: {}). What a larger window does on a slow link with a short queue is not measured.",
        ADVISED.0,
        ten?,
        more(LEAF_LINKS)?,
        more(RESUMED_LINKS)?,
        twenty?,
    ))
}

/// What the hybrid costs each side, with intervals, if the run has them for the same stack.
fn processor(told: &Told, hybrid: &Pair) -> Option<String> {
    let table = named(told, PROCESSOR)?;
    let (stack, who) = (place(table, "stack")?, place(table, "who")?);
    let pair = Value::from(HYBRID.strip_suffix(" x2")?);
    let is_it =
        |row: &&Vec<Value>| row.get(stack) == Some(&hybrid.stack) && row.get(who) == Some(&pair);
    let row = table.rows.iter().find(is_it)?;
    let text = |name: &str| words(row, place(table, name)?);
    Some(format!(
        "the client {} and the server {} of processor time",
        text("client, more than classical")?,
        text("server, more than classical")?
    ))
}

/// What the run found about requests on connections that are kept open.
fn reuse(told: &[Told]) -> Option<String> {
    let requests = told.iter().find(|one| one.experiment == REQUESTS)?;
    let found = requests.findings.findings.iter().find(|one| one.claim.starts_with(REUSE))?;
    let word = match found.verdict {
        Verdict::Holds | Verdict::HoldsInSample => "cost what they did",
        Verdict::Differs => "do not cost what they did",
        _ => "may cost what they did: the run does not decide it",
    };
    Some(format!(
        "All of it is paid once for each connection: requests on one that is kept open {word} ({}).",
        found.measured
    ))
}

/// The table of links, for the page.
pub(super) fn links(told: &Told) -> Option<&Table> {
    named(told, LINKS).filter(|table| !table.rows.is_empty())
}

/// The experiment that has the table of links.
pub(super) fn experiment(told: &[Told]) -> Option<&Told> {
    told.iter().find(|one| one.experiment == EXPERIMENT)
}

fn named<'a>(told: &'a Told, name: &str) -> Option<&'a Table> {
    told.findings.tables.iter().find(|table| table.name == name)
}

fn place(table: &Table, name: &str) -> Option<usize> {
    table.columns.iter().position(|column| column == name)
}

fn number(row: &[Value], column: usize) -> Option<f64> {
    match row.get(column)? {
        Value::Number(number) if number.is_finite() => Some(*number),
        _ => None,
    }
}

fn words(row: &[Value], column: usize) -> Option<&str> {
    match row.get(column)? {
        Value::Text(text) if text != "-" => Some(text),
        _ => None,
    }
}

/// How much longer somebody's handshake takes than the classical one over a link.
struct Longer<'a> {
    /// The mean, in per cent.
    percent: f64,
    /// The upper end of its interval, or the mean where there is none.
    most: f64,
    /// The difference in milliseconds, with its interval.
    words: Option<&'a str>,
    /// The link.
    link: String,
    /// What is outside the model's validated range there.
    outside: Option<&'a str>,
}

/// Over each link of the table; `None` if it does not have this pair.
fn longer<'a>(table: &'a Table, who: &str) -> Option<Vec<Longer<'a>>> {
    let column = place(table, &format!("{who}: more, mean (%)"))?;
    let text = place(table, &format!("{who}: more, mean"));
    let base = place(table, "classical, mean (ms)");
    let outside = place(table, validated::COLUMN);
    let of = |row: &'a Vec<Value>| {
        let percent = number(row, column)?;
        let words_of = |place: Option<usize>| words(row, place?);
        let upper = words_of(text).and_then(upper);
        let most = upper.zip(base.and_then(|base| number(row, base)));
        Some(Longer {
            percent,
            most: most.map_or(percent, |(upper, base)| percent.max(100.0 * upper / base)),
            words: words_of(text),
            link: format!("RTT {} ms and {} % loss", number(row, 0)?, number(row, 1)?),
            outside: words_of(outside),
        })
    };
    let rows: Vec<Longer<'_>> = table.rows.iter().filter_map(of).collect();
    (!rows.is_empty()).then_some(rows)
}

/// The upper end of an interval in words, such as `+0.06 ms [+0.05, +0.07]`.
fn upper(words: &str) -> Option<f64> {
    let (_, interval) = words.split_once('[')?;
    let (_, high) = interval.split_once(']')?.0.split_once(',')?;
    high.trim().parse().ok()
}

/// The links over which somebody's handshake may take so much longer that it is noticed; `None` if it was not measured.
fn noticed(table: &Table, who: &str) -> Option<Vec<String>> {
    let rows = longer(table, who)?;
    let over = rows.into_iter().filter(|row| row.most > 100.0 * NOTICED);
    Some(over.map(|row| row.link).collect())
}

/// Links by their names, or by their number if there are many.
fn at(places: &[String], table: Option<&Table>) -> String {
    const NAMED: usize = 4;
    if places.len() <= NAMED {
        return places.join("; ");
    }
    let all = table.map_or(0, |table| table.rows.len());
    format!("{} of the {all} links in the table below", places.len())
}

fn limit() -> String {
    format!("{:.0} %", 100.0 * NOTICED)
}

/// The largest costs over all links, in a sentence.
fn links_sentence(table: &Table) -> Option<String> {
    let said = |what: &str, who: &str| {
        let rows = longer(table, who)?;
        let row = rows.iter().max_by(|one, other| one.percent.total_cmp(&other.percent))?;
        let mut about: Vec<String> = row.words.map(str::to_owned).into_iter().collect();
        about.push(row.link.clone());
        about
            .extend(row.outside.map(|what| format!("outside the model's validated range: {what}")));
        Some(format!("{what} {:+.1} % ({})", row.percent, about.join("; ")))
    };
    let parts: Vec<String> = [
        said("the hybrid", HYBRID_LINKS),
        said("with an ML-DSA-65 leaf alone", LEAF_LINKS),
        said("with leaf and intermediate", SIGNED_LINKS),
        said("resumed", RESUMED_LINKS),
    ]
    .into_iter()
    .flatten()
    .collect();
    let ends = |column: usize| {
        let values = || table.rows.iter().filter_map(move |row| number(row, column));
        let (least, most) = (values().fold(f64::NAN, f64::min), values().fold(f64::NAN, f64::max));
        format!("{least} to {most}")
    };
    let is_outside = place(table, validated::COLUMN)
        .is_some_and(|column| table.rows.iter().any(|row| words(row, column).is_some()));
    let marked = if is_outside {
        " The links that the table marks are outside the range in which the model was validated."
    } else {
        ""
    };
    (!parts.is_empty()).then(|| {
        format!(
            "Over links of {} ms with {} % loss, the most that a handshake's mean grows by the model, compared with the classical one, \
             is: {}.{marked}",
            ends(0),
            ends(1),
            parts.join("; ")
        )
    })
}

/// Microseconds for people.
fn time(micros: f64) -> String {
    if micros.abs() < 1000.0 {
        format!("{micros:.0} µs")
    } else {
        format!("{:.1} ms", micros / 1000.0)
    }
}

fn share(share: f64) -> String {
    format!("{:+.1} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{ClaimKind, Finding, Findings};
    use crate::state::State;

    fn told(rows: &[(&str, [f64; 6])]) -> Told {
        let columns = [
            "stack",
            "who",
            "client CPU (us)",
            "server CPU (us)",
            "handshake at RTT 30 ms (ms)",
            "client (bytes)",
            "server (bytes)",
            "server's flight (bytes)",
        ];
        let rows = rows.iter().map(|(who, numbers)| {
            let mut row: Vec<Value> = vec!["rustls".into(), (*who).into()];
            row.extend(numbers.iter().map(|number| Value::from(*number)));
            row
        });
        let table = Table {
            name: TABLE.into(),
            title: String::new(),
            columns: columns.map(str::to_owned).to_vec(),
            rows: rows.collect(),
            note: String::new(),
        };
        Told {
            experiment: EXPERIMENT.into(),
            title: String::new(),
            question: String::new(),
            source: String::new(),
            state: State::default(),
            after: None,
            seconds: 1.0,
            findings: Findings { tables: vec![table], ..Findings::default() },
            skipped: None,
            failed: None,
        }
    }

    /// Each link is in the table, and the largest cost in the paragraph.
    #[test]
    fn links_are_told() {
        let mut one = told(&[BEFORE, (HYBRID, [240.0, 170.0, 60.6, 1784.0, 2988.0, 2788.0])]);
        assert!(links(&one).is_none());
        let columns = [
            "RTT (ms)",
            "loss (%)",
            "hybrid: more, mean (%)",
            "hybrid, ML-DSA-65, resumed: more, mean (%)",
        ];
        let row = |cells: [f64; 4]| cells.map(Value::from).to_vec();
        one.findings.tables.push(Table {
            name: LINKS.into(),
            title: String::new(),
            columns: columns.map(str::to_owned).to_vec(),
            rows: vec![row([1.0, 0.0, 3.0, 1.0]), row([300.0, 3.0, 0.2, -2.0])],
            note: String::new(),
        });
        assert_eq!(links(&one).map(|table| table.rows.len()), Some(2));
        let text = sentences(&[one]).join(" ");
        for part in [
            "the hybrid +3.0 % (RTT 1 ms and 0 % loss)",
            "resumed +1.0 %",
            "initial window (RFC 6928)",
            "let clients resume",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("leaf alone"), "{text}");
    }

    const BEFORE: (&str, [f64; 6]) = (CLASSICAL, [200.0, 150.0, 60.5, 600.0, 1900.0, 1700.0]);

    #[test]
    fn it_says_what_the_run_says() {
        let hybrid = (HYBRID, [240.0, 170.0, 60.6, 1784.0, 2988.0, 2788.0]);
        let signed = (SIGNED, [300.0, 500.0, 91.2, 1784.0, 17_300.0, 17_100.0]);
        let text = sentences(&[told(&[BEFORE, hybrid, signed])]).join(" ");
        // One link does not decide about the others.
        for part in [
            "60 µs",
            "2272 bytes",
            "60.6 ms where it took 60.5 (+0.2 %)",
            "no table of other links",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(
            text.contains("17.1 kB instead of 2.8") && text.contains("91.2 ms (+50.5 %)"),
            "{text}"
        );
        assert!(text.contains("the part to plan") && !text.contains("no reason"), "{text}");
    }

    /// A table of links with the hybrid's interval on the last one, whose classical handshake takes 700 ms.
    fn with_links(interval: &str) -> Told {
        let mut one = told(&[BEFORE, (HYBRID, [240.0, 170.0, 60.6, 1784.0, 2988.0, 2788.0])]);
        let columns = [
            "RTT (ms)",
            "loss (%)",
            "classical, mean (ms)",
            "hybrid: more, mean (%)",
            "hybrid: more, mean",
            validated::COLUMN,
        ];
        let row = |numbers: [f64; 4], words: [&str; 2]| {
            let numbers = numbers.into_iter().map(Value::from);
            numbers.chain(words.into_iter().map(Value::from)).collect::<Vec<_>>()
        };
        one.findings.tables.push(Table {
            name: LINKS.into(),
            title: String::new(),
            columns: columns.map(str::to_owned).to_vec(),
            rows: vec![
                row([30.0, 0.0, 60.0, 0.1], ["+0.06 ms (no interval)", "-"]),
                row([300.0, 3.0, 700.0, 4.0], [interval, "all times"]),
            ],
            note: String::new(),
        });
        one
    }

    /// At 30 ms nothing is noticed; the worst link decides, by the upper end of its interval.
    #[test]
    fn the_worst_link_decides() {
        let text = sentences(&[with_links("+28 ms [+20, +34]")]).join(" ");
        assert!(text.contains("no reason to postpone"), "{text}");
        for part in [
            "Over links of 30 to 300 ms with 0 to 3 % loss",
            "The links that the table marks are outside",
            "the hybrid +4.0 % (+28 ms [+20, +34]; RTT 300 ms and 3 % loss; outside the model's validated range: all times)",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let text = sentences(&[with_links("+28 ms [+20, +36]")]).join(" ");
        assert!(!text.contains("no reason to postpone"), "{text}");
        assert!(
            text.contains("more than 5 % above the classical one at RTT 300 ms and 3 % loss:"),
            "{text}"
        );
    }

    /// What no figure of the run carries is said to be not measured, or not said.
    #[test]
    fn advice_is_no_result() {
        let one = with_links("+28 ms [+20, +34]");
        let text = sentences(std::slice::from_ref(&one)).join(" ");
        let (before, advice) = text.split_once("Not measured here: ").unwrap();
        for word in ["initial window", "pool", "resume,"] {
            assert!(advice.contains(word) && !before.contains(word), "{word}: {text}");
        }
        assert!(!text.contains("kept open"), "{text}");
        let requests = |verdict| {
            let finding = Finding {
                kind: ClaimKind::Published,
                source: String::new(),
                claim: "With connection reuse hybrid key exchange costs nothing that matters"
                    .into(),
                published: String::new(),
                measured: "loopback: -3.0 % [-4.0, -2.0]".into(),
                verdict,
                why: String::new(),
            };
            let findings = Findings { findings: vec![finding], ..Findings::default() };
            Told { experiment: REQUESTS.into(), findings, ..one.clone() }
        };
        for (verdict, words) in [
            (Verdict::Holds, "kept open cost what they did (loopback: -3.0 % [-4.0, -2.0])"),
            (Verdict::Differs, "kept open do not cost what they did (loopback"),
            (Verdict::Undecided, "the run does not decide it (loopback"),
        ] {
            let text = sentences(&[one.clone(), requests(verdict)]).join(" ");
            assert!(text.contains(words), "{words}: {text}");
        }
    }

    /// With the figures of both tables the advice says what each change buys.
    #[test]
    fn advice_has_its_figures() {
        let mut one = told(&[BEFORE, (HYBRID, [240.0, 170.0, 60.6, 1784.0, 2988.0, 2788.0])]);
        let table = |name: &str, columns: &[&str], cells: &[&str]| {
            let row = |rtt: f64, cells: &[&str]| {
                let mut row: Vec<Value> = vec![rtt.into(), 0.0.into()];
                row.extend(cells.iter().map(|cell| Value::from(*cell)));
                row
            };
            let others: Vec<&str> = cells.iter().map(|_| "+9 s (elsewhere)").collect();
            Table {
                name: name.into(),
                title: String::new(),
                columns: ["RTT (ms)", "loss (%)"]
                    .iter()
                    .chain(columns)
                    .map(|&column| column.to_owned())
                    .collect(),
                rows: vec![row(1.0, &others), row(30.0, cells)],
                note: String::new(),
            }
        };
        let who = [LEAF_LINKS, RESUMED_LINKS].map(|who| format!("{who}: more, mean"));
        let who: Vec<&str> = who.iter().map(String::as_str).collect();
        one.findings.tables.push(table(LINKS, &who, &["+0.15 ms", "-0.2 ms"]));
        let without = sentences(std::slice::from_ref(&one)).join(" ");
        assert!(without.contains("Not measured here: the general advice"), "{without}");
        one.findings.tables.push(table(WINDOWS, &WINDOW_COLUMNS, &["+30.5 ms", "+0.4 ms"]));
        let text = sentences(&[one]).join(" ");
        for part in [
            "takes +30.5 ms more",
            "intermediate (+0.15 ms)",
            "resume (-0.2 ms)",
            "packets to 20 (initcwnd of the route: +0.4 ms)",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("general advice") && !text.contains("elsewhere"), "{text}");
    }

    #[test]
    fn processor_times_have_their_intervals() {
        let mut one = with_links("+28 ms [+20, +34]");
        let columns =
            ["stack", "who", "client, more than classical", "server, more than classical"];
        let row = |stack: &str, client: &str| {
            [stack, "X25519MLKEM768 + ECDSA P-256", client, "+25 us [+24, +26]"]
                .map(Value::from)
                .to_vec()
        };
        one.findings.tables.push(Table {
            name: PROCESSOR.into(),
            title: String::new(),
            columns: columns.map(str::to_owned).to_vec(),
            rows: vec![row("another", "+99 us [+98, +100]"), row("rustls", "+31 us [+30, +32]")],
            note: String::new(),
        });
        let text = sentences(&[one]).join(" ");
        let part =
            "costs the client +31 us [+30, +32] and the server +25 us [+24, +26] of processor time";
        assert!(text.contains(part), "{text}");
    }

    #[test]
    fn what_can_be_noticed_is_not_played_down() {
        let hybrid = (HYBRID, [4000.0, 3000.0, 75.0, 1784.0, 2988.0, 2788.0]);
        let text = sentences(&[told(&[BEFORE, hybrid])]).join(" ");
        assert!(text.contains("6.7 ms of processor") && text.contains("(+24.0 %)"), "{text}");
        assert!(text.contains("can be noticed") && !text.contains("no reason"), "{text}");
        assert!(!text.contains("ML-DSA"), "{text}");
    }

    #[test]
    fn without_figures_it_says_which_experiment_has_them() {
        for told in [vec![], vec![told(&[BEFORE])], vec![told(&[(HYBRID, [f64::NAN; 6]), BEFORE])]]
        {
            let text = sentences(&told).join(" ");
            assert!(
                text.contains("does not say what it costs") && text.contains("handshake-cost"),
                "{text}"
            );
        }
    }
}
