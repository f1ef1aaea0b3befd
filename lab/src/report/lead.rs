//! The page's first paragraph: what does it cost us, should we worry, and what is to be changed? In plain words, from
//! this run's figures alone. Below it is the table with the links.

use crate::result::{Table, Told, Value};

/// The experiment that answers it, and its table with every pair.
const EXPERIMENT: &str = "handshake-cost";
const TABLE: &str = "flights";
/// Its table with links.
const LINKS: &str = "operators";
/// Pairs, as spelled in its column `who`, with a chain of two certificates.
const CLASSICAL: &str = "x25519 + ECDSA P-256 x2";
const HYBRID: &str = "X25519MLKEM768 + ECDSA P-256 x2";
const SIGNED: &str = "X25519MLKEM768 + ML-DSA-65 x2";
/// Share of a handshake's time above which users may notice.
const NOTICED: f64 = 0.05;

/// Costs of a pair.
struct Pair {
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
        let column = |name: &str| table.columns.iter().position(|column| column == name);
        let at = column("who")?;
        let row = table.rows.iter().find(|row| row.get(at) == Some(&Value::from(who)))?;
        let number = |name: &str| match row.get(column(name)?)? {
            Value::Number(number) if number.is_finite() => Some(*number),
            _ => None,
        };
        Some(Self {
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
    let measured = told.iter().find(|one| one.experiment == EXPERIMENT);
    let table =
        measured.and_then(|one| one.findings.tables.iter().find(|table| table.name == TABLE));
    let pair = |who| table.and_then(|table| Pair::find(table, who));
    let (Some(classical), Some(hybrid)) = (pair(CLASSICAL), pair(HYBRID)) else {
        return vec![format!(
            "This report does not say what it costs you: the run has no figures of the experiment {EXPERIMENT}, which \
             measures that in a minute (outlast lab run {EXPERIMENT})."
        )];
    };
    let mut sentences = vec![format!(
        "Hybrid key exchange (X25519MLKEM768 in place of x25519) costs {} of processor time on both sides together and {:.0} bytes for \
         each new connection. At a round trip of 30 ms a handshake takes {:.1} ms where it took {:.1} ({}).",
        time(hybrid.cpu - classical.cpu),
        hybrid.bytes - classical.bytes,
        hybrid.far,
        classical.far,
        share(hybrid.longer_than(&classical)),
    )];
    sentences.push(if hybrid.longer_than(&classical) < NOTICED {
        "Users who wait for a network do not notice that: it is no reason to postpone the key exchange.".to_owned()
    } else {
        "That can be noticed: read what the experiments below say about your links before you decide.".to_owned()
    });
    if let Some(signed) = pair(SIGNED) {
        let felt = if signed.longer_than(&hybrid) < NOTICED {
            "is not noticed either"
        } else {
            "can be noticed, and is the part to plan: shorter chains, resumption, connections that are kept open"
        };
        sentences.push(format!(
            "ML-DSA-65 certificates in addition make the server's flight {:.1} kB instead of {:.1}, and the handshake {:.1} ms ({}), which {felt}.",
            signed.flight / 1000.0,
            hybrid.flight / 1000.0,
            signed.far,
            share(signed.longer_than(&hybrid)),
        ));
    }
    sentences.extend(measured.and_then(links).map(links_sentence));
    sentences.push(
        "What to change, if it matters: send no root and no second intermediate, let clients resume, keep connections in a pool, and \
         only then raise TCP's initial window (RFC 6928), which also helps what follows the handshake."
            .to_owned(),
    );
    sentences.push(
        "All of it is paid once for each connection: requests on one that is kept open cost what they did."
            .to_owned(),
    );
    sentences
}

/// The table of links, for the page.
pub(super) fn links(told: &Told) -> Option<&Table> {
    let is_it = |table: &&Table| table.name == LINKS && !table.rows.is_empty();
    told.findings.tables.iter().find(is_it)
}

/// The experiment that has the table of links.
pub(super) fn experiment(told: &[Told]) -> Option<&Told> {
    told.iter().find(|one| one.experiment == EXPERIMENT)
}

/// The largest costs over all links, in a sentence.
fn links_sentence(table: &Table) -> String {
    let number = |row: &[Value], column: usize| match row.get(column) {
        Some(Value::Number(number)) if number.is_finite() => Some(*number),
        _ => None,
    };
    let largest = |who: &str| -> Option<(f64, f64, f64)> {
        let column = table.columns.iter().position(|name| name.starts_with(&format!("{who}: ")))?;
        let rows = table
            .rows
            .iter()
            .filter_map(|row| Some((number(row, column)?, number(row, 0)?, number(row, 1)?)));
        rows.max_by(|one, other| one.0.total_cmp(&other.0))
    };
    let said = |what: &str, who: &str| {
        let (percent, rtt, loss) = largest(who)?;
        Some(format!("{what} {percent:+.1} % (RTT {rtt} ms, {loss} % loss)"))
    };
    let parts: Vec<String> = [
        said("the hybrid", "hybrid"),
        said("with an ML-DSA-65 leaf alone", "hybrid, ML-DSA-65, leaf alone"),
        said("with leaf and intermediate", "hybrid, ML-DSA-65, leaf and intermediate"),
        said("resumed", "hybrid, ML-DSA-65, resumed"),
    ]
    .into_iter()
    .flatten()
    .collect();
    format!(
        "Over links of 1 to 300 ms with 0 to 3 % loss, the most that a handshake's mean grows, compared with the classical one, is: {}.",
        parts.join("; ")
    )
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
    use crate::result::Findings;
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
            "the hybrid +3.0 % (RTT 1 ms, 0 % loss)",
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
        for part in
            ["60 µs", "2272 bytes", "60.6 ms where it took 60.5 (+0.2 %)", "no reason to postpone"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(
            text.contains("17.1 kB instead of 2.8") && text.contains("91.2 ms (+50.5 %)"),
            "{text}"
        );
        assert!(text.contains("the part to plan"), "{text}");
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
