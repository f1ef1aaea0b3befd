//! `outlast root-key`: replaces the root key beside a running server, and shows its state.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use outlast_domain::Fault;
use outlast_domain::change::Contended;
use outlast_domain::records;
use outlast_domain::seal::rotation::{self, NewKek, Step};
use outlast_domain::seal::{self, RootRecord, SealedUnder};
use outlast_domain::work::Work;
use outlast_store::Store;
use serde_json::{Value, json};

use crate::data::{self, Data, StoreArguments, store_failure};
use crate::failure::Failure;
use crate::heartbeat;
use crate::location::StoreLocation;
use crate::output::{self, Output};
use crate::root_key::{Made, Provider};

/// Records that one transaction covers.
const BATCH: usize = 256;
/// Longest pause between two batches, in which the server gets its turn.
const MAX_PAUSE: Duration = Duration::from_millis(50);

/// Arguments of `root-key`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Make a new root key, and seal or authenticate every record again under it; a server may run meanwhile. If
    /// interrupted, run the same command again to continue.
    Rotate(Rotate),
    /// Show the root keys, and how many records are sealed or authenticated under each; needs no key.
    Status(StoreArguments),
}

#[derive(clap::Args)]
struct Rotate {
    #[command(flatten)]
    store: StoreArguments,
    /// What wraps the root key from now on: file:PATH, passphrase:SOURCE or pkcs11:URI; a file or a token's key is
    /// created unless it exists. Stop the server first.
    #[arg(long)]
    to: Option<String>,
    /// With --to and a database: confirm that no server runs on it, since a running one could no longer read its
    /// secrets. The servers' heartbeats in the database are watched before anything is changed.
    #[arg(long, requires = "to")]
    servers_are_stopped: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    match &arguments.command {
        Command::Rotate(arguments) => rotate(arguments, output),
        Command::Status(arguments) => status(arguments, output),
    }
}

fn rotate(arguments: &Rotate, output: Output) -> Result<(), Failure> {
    let location = arguments.store.location()?;
    if arguments.to.is_some() && location.is_shared() && !arguments.servers_are_stopped {
        return Err(Failure::new("a server that runs on the database could no longer read it")
            .hint("stop all servers on it, and add --servers-are-stopped"));
    }
    let given = arguments.store.provider()?;
    let to = match &arguments.to {
        Some(text) => Some(Provider::parse(text, Path::new(""))?),
        None => None,
    };
    // A running server could not unwrap another provider's key, so none may start before this ends.
    let _lock = match to {
        Some(_) => {
            location.require_initialised()?;
            let hint = "stop the server, rotate, and start it with the new --root-key";
            location.lock().map_err(|failure| failure.hint(hint))?
        }
        None => None,
    };
    let (data, provider, record) = open(&location, given, to.as_ref())?;
    let resumed = record.as_ref().is_some_and(|record| record.previous.is_some());
    // An earlier version made the new provider's key current before it sealed anything under it.
    let to = to.filter(|to| !(resumed && to.to_string() == provider.to_string()));
    if to.is_some() && location.is_shared() {
        heartbeat::require_stopped(&data)?;
    }
    let made = to.as_ref().map(made).transpose()?;
    if !resumed {
        survey(&data)?;
        begin(&data)?;
    }
    let resealed = reseal(data.store(), &data)?;
    let new = made
        .as_ref()
        .map(|(kek, parameters)| NewKek { kek: kek.as_ref(), parameters: parameters.clone() });
    let record = finish(&data, resealed, new.as_ref())?;
    let provider = to.as_ref().unwrap_or(&provider);
    let text = format!(
        "the root key is now {} (kept by {provider}); {resealed} records were sealed again{}{}",
        record.current,
        if resumed { ", which completes an earlier rotation" } else { "" },
        match &to {
            Some(_) => format!(
                "\nstart the server with: --root-key '{provider}' (or root_key in outlast.toml)\n\
                 what kept it before opens only older backups; if others may know it, rotate once more: it wrapped the new \
                 root key during this rotation"
            ),
            None => String::new(),
        }
    );
    output.result(
        &text,
        &json!({
            "current": record.current,
            "provider": record.provider,
            "resealed": resealed,
            "resumed": resumed,
        }),
    );
    Ok(())
}

/// Opens the store with the provider of its root keys. After an earlier version was interrupted in a rotation to
/// another provider, that is the new one.
fn open(
    location: &StoreLocation,
    given: Provider,
    to: Option<&Provider>,
) -> Result<(Data, Provider, Option<RootRecord>), Failure> {
    let (data, provider) = match (Data::open_beside(location, &given), to) {
        (Ok(data), _) => (data, given),
        (Err(failure), None) => return Err(failure),
        // Run again after an interruption: the first failure is the one to report.
        (Err(failure), Some(to)) if under_way(location, to) => {
            (Data::open_beside(location, to).map_err(|_| failure)?, to.clone())
        }
        (Err(failure), Some(_)) => return Err(failure),
    };
    let record = seal::read_record(data.store())?;
    Ok((data, provider, record))
}

/// Whether a rotation to this kind of provider was started and not finished.
fn under_way(location: &StoreLocation, to: &Provider) -> bool {
    location
        .open_read_only()
        .ok()
        .and_then(|store| seal::read_record(store.as_ref()).ok().flatten())
        .is_some_and(|record| record.previous.is_some() && record.provider == to.name())
}

/// Makes the new provider's key and tries it out: nothing is changed if it does not work.
fn made(to: &Provider) -> Result<Made, Failure> {
    let (kek, parameters) = to.create()?;
    rotation::try_out(kek.as_ref()).map_err(|fault| {
        let kept = "nothing was changed, and the root key is where it was";
        Failure::from(fault).prefixed(&to.to_string()).hint(kept)
    })?;
    Ok((kek, parameters))
}

/// Checks that every record can be sealed or authenticated again, so that no rotation starts that cannot finish.
fn survey(data: &Data) -> Result<(), Failure> {
    let bar = output::spinner("checking that every record can be read");
    let unreadable = walk(data, &bar, |work, from| rotation::survey(work, from, BATCH))?.unreadable;
    bar.finish_and_clear();
    match unreadable.as_slice() {
        [] => Ok(()),
        places => Err(stopped(data.store(), places, "nothing was changed")),
    }
}

fn begin(data: &Data) -> Result<(), Failure> {
    step(data, |work| {
        let record = rotation::begin(work)?;
        let parameters = json!({
            "rootKey": record.current,
            "previousRootKey": record.previous,
            "provider": record.provider,
        });
        Ok(((), Some(("BeginRootKeyRotation", parameters))))
    })
}

fn finish(data: &Data, resealed: usize, new: Option<&NewKek<'_>>) -> Result<RootRecord, Failure> {
    step(data, |work| {
        let record = rotation::finish(work, new)?;
        let parameters = json!({
            "rootKey": record.current,
            "provider": record.provider,
            "resealed": resealed,
        });
        // Another process may have finished it already, and recorded that.
        let event = work.writes_anything().then_some(("FinishRootKeyRotation", parameters));
        Ok((record, event))
    })
}

/// Walks over the whole store; returns the number of records that were sealed again.
fn reseal(store: &dyn Store, data: &Data) -> Result<usize, Failure> {
    let bar = output::spinner("sealing the store's records again");
    let done = walk(data, &bar, |work, from| rotation::reseal(work, from, BATCH))?;
    bar.finish_and_clear();
    if !done.unreadable.is_empty() {
        let left = "the previous root key stays in the store, and everything else opens";
        return Err(stopped(store, &done.unreadable, left));
    }
    let left = census(store)?;
    let others = left.records.keys().filter(|id| Some(*id) != left.current.as_ref()).count();
    if others > 0 {
        return Err(Failure::new("records are still sealed under another root key")
            .hint("run the same command again"));
    }
    Ok(done.resealed)
}

/// Takes steps over the whole store; returns their total.
fn walk(
    data: &Data,
    bar: &indicatif::ProgressBar,
    each: impl Fn(&mut Work<'_>, &str) -> Result<Step, Fault>,
) -> Result<Step, Failure> {
    let mut all = Step::default();
    let mut after = Some(String::new());
    while let Some(from) = after {
        let begun = Instant::now();
        let done = step(data, |work| Ok((each(work, &from)?, None)))?;
        all.seen += done.seen;
        all.resealed += done.resealed;
        all.unreadable.extend(done.unreadable);
        after = done.next;
        bar.set_message(format!("{} records checked, {} sealed again", all.seen, all.resealed));
        if done.resealed > 0 {
            std::thread::sleep(begun.elapsed().min(MAX_PAUSE));
        }
    }
    Ok(all)
}

/// The failure of a rotation that met unreadable records.
fn stopped(store: &dyn Store, places: &[String], left: &str) -> Failure {
    let first = places.first().map(|location| records::title(store, location)).unwrap_or_default();
    let more = match places.len() {
        0 | 1 => String::new(),
        count => format!(", and neither could {} others", count - 1),
    };
    Failure::new(format!("root key rotation stopped: {first} could not be read{more}; {left}"))
        .hint("to see what is wrong, run: outlast store check; then run the same command again")
}

type Noted = Option<(&'static str, Value)>;

/// Commits one unit of work with the event that records it; repeats it after a conflict.
fn step<T>(
    opened: &Data,
    run: impl Fn(&mut Work<'_>) -> Result<(T, Noted), Failure>,
) -> Result<T, Failure> {
    let changed = opened.change(|work| {
        let (result, event) = run(work)?;
        let event =
            event.map(|(name, parameters)| data::store_event(work.now_ms(), name, &parameters));
        Ok((result, event.transpose()?.into_iter().collect()))
    });
    changed.map_err(|failure: Failure| match failure.is_conflict() {
        true => failure.hint("run the same command again"),
        false => failure,
    })
}

/// Numbers of records by the key that they are sealed under.
struct Census {
    current: Option<String>,
    record: Option<RootRecord>,
    records: BTreeMap<String, u64>,
}

/// Name for the key of records that are sealed in the first layout.
const DIRECT: &str = "file";

fn census(store: &dyn Store) -> Result<Census, Failure> {
    let record = seal::read_record(store)?;
    let mut records = BTreeMap::new();
    let mut after = String::new();
    loop {
        let page = store.scan("", &after, BATCH).map_err(store_failure)?;
        for (key, stored) in &page {
            let id = match seal::protected_under(key, &stored.value) {
                None => continue,
                Some(SealedUnder::Direct) => DIRECT.to_owned(),
                Some(SealedUnder::Id(id)) => id,
            };
            *records.entry(id).or_default() += 1;
        }
        match page.last() {
            Some((last, _)) => after.clone_from(last),
            None => break,
        }
    }
    Ok(Census { current: record.as_ref().map(|record| record.current.clone()), record, records })
}

fn status(arguments: &StoreArguments, output: Output) -> Result<(), Failure> {
    let location = arguments.location()?;
    location.require_initialised()?;
    let store = location.open_read_only()?;
    let census = census(store.as_ref())?;
    let mut text = match &census.record {
        None => "the root key is the key in the root key file itself; the first rotation moves it \
                 into the store\n"
            .to_owned(),
        Some(record) => {
            let made = outlast_pki::time::rfc3339(record.created_ms.div_euclid(1000));
            let mut text = format!(
                "root key:    {} (made {made})\nkept by:     {}\n",
                record.current, record.provider
            );
            if let Some(previous) = &record.previous {
                text += &format!(
                    "rotation:    under way, from {previous}; to continue, run: outlast root-key rotate\n"
                );
            }
            text
        }
    };
    for (id, count) in &census.records {
        text += &format!("sealed with: {id}, {count} records\n");
    }
    output.result(
        &text,
        &json!({
            "current": census.current,
            "previous": census.record.as_ref().and_then(|record| record.previous.clone()),
            "provider": census.record.as_ref().map_or("file", |record| &record.provider),
            "parameters": census.record.as_ref().map(|record| &record.parameters),
            "created_ms": census.record.as_ref().map(|record| record.created_ms),
            "records": census.records,
        }),
    );
    Ok(())
}
