//! `outlast audit`: verifies, shows and exports the audit events.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use outlast_domain::Fault;
use outlast_domain::audit::{self, CHECKPOINTS, Checkpoint, PublicKey, Verifier, public_keys};
use outlast_domain::work::Work;
use outlast_net::server::system_clock;
use outlast_store::Event;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::data::{Data, StoreArguments, StoreOptions, store_failure};
use crate::failure::Failure;
use crate::files;
use crate::output::{self, Output};

mod witness;

/// Events that are read at once.
const PAGE: usize = 1000;
/// Problems that are shown.
const MAX_SHOWN: usize = 20;
/// Longest line of an export.
const MAX_LINE: usize = 1 << 20;

/// Arguments of `audit`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Verify the hash chain and the signed checkpoints of all events, in a store or in an export. What came
    /// after the last checkpoint, which is at most 1000 events or a minute, is not signed yet.
    Verify(Verify),
    /// Show the last events.
    Tail(Tail),
    /// Write events, checkpoints and public keys to a file, which can be verified anywhere.
    Export(Export),
    /// Be a witness of others' logs.
    Witness(witness::Arguments),
}

#[derive(clap::Args)]
struct Verify {
    /// Verify this export, and no store.
    #[arg(long)]
    file: Option<PathBuf>,
    /// Id of the key that is to be believed in an export, as `audit verify` shows it for the store.
    #[arg(long, requires = "file")]
    key_id: Option<String>,
    /// Data folder, made by `outlast init`.
    #[arg(long, env = "OUTLAST_DATA", required_unless_present = "file")]
    data: Option<PathBuf>,
    #[command(flatten)]
    options: StoreOptions,
}

#[derive(clap::Args)]
struct Tail {
    /// How many.
    #[arg(short = 'n', long, default_value_t = 10)]
    lines: u64,
    /// Go on with new events until interrupted.
    #[arg(short, long)]
    follow: bool,
    #[command(flatten)]
    store: StoreArguments,
}

#[derive(clap::Args)]
struct Export {
    /// File to make.
    #[arg(long)]
    out: PathBuf,
    #[command(flatten)]
    store: StoreArguments,
}

/// A line of an export.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    PublicKey(PublicKey),
    Event {
        sequence: u64,
        chain: String,
        event: Box<RawValue>,
    },
    Checkpoint(Checkpoint),
    /// The last line: without it the file was cut off.
    End {
        events: u64,
    },
}

/// Does it.
pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    match &arguments.command {
        Command::Verify(verify) => self::verify(verify, output),
        Command::Tail(tail) => self::tail(tail, output),
        Command::Export(export) => self::export(export, output),
        Command::Witness(arguments) => witness::run(arguments, output),
    }
}

fn open(arguments: &StoreArguments) -> Result<Data, Failure> {
    Data::open_read_only(&arguments.place()?, &arguments.provider()?)
}

fn verify(arguments: &Verify, output: Output) -> Result<(), Failure> {
    let mut problems = Vec::new();
    let bar = output::spinner("verifying");
    let mut problem = |outcome: Result<(), String>| problems.extend(outcome.err());
    let (verifier, keys) = match (&arguments.file, &arguments.data) {
        (Some(path), _) => verify_file(path, arguments.key_id.as_deref(), &mut problem)?,
        (None, Some(data)) => {
            let store = StoreArguments::new(data.clone(), arguments.options.clone());
            verify_store(&open(&store)?, &mut problem)?
        }
        (None, None) => {
            return Err(Failure::new("there is nothing to verify").hint("give --data or --file"));
        }
    };
    bar.finish_and_clear();
    let uncovered = verifier.sequence - verifier.covered.min(verifier.sequence);
    let ids: Vec<_> = keys.iter().map(|key| key.id.clone()).collect();
    let mut text = format!(
        "{} events in one chain, {} signed checkpoints, {uncovered} events after the last\n\
         head: {}\nsigned with: {}",
        verifier.sequence,
        verifier.checkpoints,
        verifier.head(),
        if ids.is_empty() { "-".to_owned() } else { ids.join(", ") }
    );
    if uncovered > audit::INTERVAL {
        output::warning(&format!(
            "nothing is signed after event {}: the events from there on prove nothing",
            verifier.covered
        ));
    }
    for problem in problems.iter().take(MAX_SHOWN) {
        text.push_str(&format!("\nproblem: {problem}"));
    }
    output.result(
        &text,
        &json!({
            "events": verifier.sequence,
            "checkpoints": verifier.checkpoints,
            "uncovered": uncovered,
            "head": verifier.head(),
            "keys": ids,
            "problems": problems,
        }),
    );
    if problems.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!("the audit events have {} problems", problems.len()))
        .hint("compare them with an earlier export or a backup"))
}

fn verify_store(
    data: &Data,
    problem: &mut dyn FnMut(Result<(), String>),
) -> Result<(Verifier, Vec<PublicKey>), Failure> {
    let mut work = data.service.work(system_clock());
    // Read first: a server may go on meanwhile.
    let last = match audit::last(&mut work) {
        Err(Fault::Damaged(place)) => {
            problem(Err(format!("the record {place} does not open: it was changed")));
            None
        }
        other => other?,
    };
    let keys = public_keys(&mut work)?;
    let mut verifier = Verifier::new(keys.clone());
    let mut checkpoints = Checkpoints::default();
    loop {
        let page = data.store().events(verifier.sequence, PAGE).map_err(store_failure)?;
        if page.is_empty() {
            break;
        }
        for event in &page {
            problem(verifier.event(event));
            while let Some(checkpoint) = checkpoints.up_to(&work, event.sequence)? {
                problem(verifier.checkpoint(&checkpoint));
            }
        }
    }
    problem(verifier.end(last));
    while let Some(checkpoint) = checkpoints.up_to(&work, u64::MAX)? {
        // Its events may have come after those that were read; then they are there by now.
        let (head, _) = data.store().last_event().map_err(store_failure)?;
        if checkpoint.sequence > head {
            problem(verifier.checkpoint(&checkpoint));
        }
    }
    Ok((verifier, keys))
}

/// The checkpoints of a store, in order.
#[derive(Default)]
struct Checkpoints {
    page: std::collections::VecDeque<Checkpoint>,
    after: String,
    ended: bool,
}

impl Checkpoints {
    /// The next one that covers no event after `sequence`.
    fn up_to(&mut self, work: &Work<'_>, sequence: u64) -> Result<Option<Checkpoint>, Failure> {
        if self.page.is_empty() && !self.ended {
            let page = work.scan::<Checkpoint>(CHECKPOINTS, &self.after, PAGE)?;
            self.ended = page.len() < PAGE;
            if let Some((last, _)) = page.last() {
                self.after.clone_from(last);
            }
            self.page.extend(page.into_iter().map(|(_, checkpoint)| checkpoint));
        }
        if self.page.front().is_some_and(|checkpoint| checkpoint.sequence <= sequence) {
            return Ok(self.page.pop_front());
        }
        Ok(None)
    }
}

fn verify_file(
    path: &Path,
    key_id: Option<&str>,
    problem: &mut dyn FnMut(Result<(), String>),
) -> Result<(Verifier, Vec<PublicKey>), Failure> {
    let file = File::open(path).map_err(|error| Failure::file(path, &error))?;
    let mut input = BufReader::new(file);
    let mut keys = Vec::new();
    let mut verifier: Option<Verifier> = None;
    let mut end = None;
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let mut limited = std::io::Read::take(&mut input, MAX_LINE as u64);
        let read =
            limited.read_until(b'\n', &mut line).map_err(|error| Failure::file(path, &error))?;
        if read == 0 {
            break;
        }
        let parsed = serde_json::from_slice::<Line>(&line).map_err(|_| {
            Failure::file(path, &format!("line {number} is not one of an audit export"))
        })?;
        if end.is_some() {
            return Err(Failure::file(path, &format!("line {number} comes after the end")));
        }
        match parsed {
            Line::End { events } => end = Some(events),
            Line::PublicKey(key) => {
                if verifier.is_none() && key_id.is_none_or(|wanted| wanted == key.id) {
                    keys.push(key);
                }
            }
            Line::Event { sequence, chain, event } => {
                let chain = hex::decode(&chain)
                    .ok()
                    .and_then(|bytes| bytes.try_into().ok())
                    .ok_or_else(|| Failure::file(path, &format!("line {number}: bad chain")))?;
                let body = event.get().as_bytes().to_vec();
                let verifier = verifier.get_or_insert_with(|| Verifier::new(keys.clone()));
                problem(verifier.event(&Event { sequence, body, chain }));
            }
            Line::Checkpoint(checkpoint) => {
                let verifier = verifier.get_or_insert_with(|| Verifier::new(keys.clone()));
                problem(verifier.checkpoint(&checkpoint));
            }
        }
    }
    let verifier = verifier.unwrap_or_else(|| Verifier::new(keys.clone()));
    problem(match end {
        None => Err("the end of the export is missing: it was cut off".into()),
        Some(events) if events != verifier.sequence => {
            Err(format!("the export had {events} events: some were taken out or put in"))
        }
        Some(_) => Ok(()),
    });
    if let Some(id) = key_id {
        // Else whoever takes all signatures out could change what he likes.
        if keys.is_empty() || verifier.checkpoints == 0 {
            problem(Err(format!("nothing in the export is signed with the key {id}")));
        }
    } else {
        output::warning(
            "the export's own public key was believed; compare the id below with the store's, or give \
             --key-id",
        );
    }
    Ok((verifier, keys))
}

fn tail(arguments: &Tail, output: Output) -> Result<(), Failure> {
    let data = open(&arguments.store)?;
    let (head, _) = data.store().last_event().map_err(store_failure)?;
    let mut after = head.saturating_sub(arguments.lines);
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
        if !arguments.follow {
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
    format!(
        "{:>8} {} {:28} {} {} {} {}",
        event.sequence,
        field(&value["eventTime"]),
        field(&value["eventName"]),
        who,
        field(&value["resources"][0]["ARN"]),
        field(&value["tlsDetails"]["keyExchange"]),
        value["errorCode"].as_str().unwrap_or("ok"),
    )
}

fn export(arguments: &Export, output: Output) -> Result<(), Failure> {
    let data = open(&arguments.store)?;
    let path = &arguments.out;
    // An earlier export is not replaced: it may be what tells that the store was changed.
    let count = files::write_new(path, |file| write_export(&data, path, file))?;
    let text = format!(
        "wrote {count} events to {}\nverify it: outlast audit verify --file {}",
        path.display(),
        path.display()
    );
    output.result(&text, &json!({ "file": path, "events": count }));
    Ok(())
}

/// Writes the lines of an export, and tells how many events there are.
fn write_export(data: &Data, path: &Path, file: &mut dyn Write) -> Result<u64, Failure> {
    let mut out = BufWriter::new(file);
    let mut write = |line: &Line| {
        let mut text = serde_json::to_vec(line).map_err(|error| Failure::file(path, &error))?;
        text.push(b'\n');
        out.write_all(&text).map_err(|error| files::io_failure(path, &error))
    };
    let mut work = data.service.work(system_clock());
    for key in public_keys(&mut work)? {
        write(&Line::PublicKey(key))?;
    }
    let (mut after, mut count) = (0, 0_u64);
    let mut checkpoints = Checkpoints::default();
    let bar = output::spinner("exporting");
    loop {
        let page = data.store().events(after, PAGE).map_err(store_failure)?;
        if page.is_empty() {
            break;
        }
        for event in page {
            after = event.sequence;
            count += 1;
            write(&Line::Event {
                sequence: event.sequence,
                chain: hex::encode(event.chain),
                event: raw(event.body).ok_or_else(|| {
                    Failure::new(format!("event {after} was changed: it is not JSON on one line"))
                        .hint("see what else is wrong with: outlast audit verify")
                })?,
            })?;
            while let Some(checkpoint) = checkpoints.up_to(&work, after)? {
                write(&Line::Checkpoint(checkpoint))?;
            }
        }
        bar.set_message(format!("{count} events"));
    }
    write(&Line::End { events: after })?;
    bar.finish_and_clear();
    out.flush().map_err(|error| files::io_failure(path, &error))?;
    Ok(count)
}

/// The JSON text of an event, as it is.
fn raw(body: Vec<u8>) -> Option<Box<RawValue>> {
    let text = String::from_utf8(body).ok()?;
    let one_line = !text.contains('\n');
    RawValue::from_string(text).ok().filter(|_| one_line)
}
