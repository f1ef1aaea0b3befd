//! `outlast audit witness`: cosigns the checkpoints of others' logs (c2sp.org/tlog-witness).
//!
//! Its folder: `witness.db` with its records of logs and its key, sealed; `root.key` (0600); `witness.lock` of the
//! process that serves it. It is not a data folder, and deliberately has no backup: a witness that forgets what it
//! has cosigned is useless.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outlast_domain::change::change;
use outlast_domain::seal::{self, RootKey};
use outlast_domain::witness::{self, Watched, WitnessError};
use outlast_domain::work::Work;
use outlast_net::server::system_clock;
use outlast_net::witness::WitnessServer;
use outlast_store::lock::FolderLock;
use outlast_store::sqlite::SqliteStore;
use outlast_store::{Store, StoreError};
use outlast_tlog::VerifierKey;
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use crate::commands::server::start_log;
use crate::data::{self, store_failure};
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::root_key::Provider;
use crate::{dumps, listeners, values};

/// Arguments of `audit witness`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Make a witness: its folder and its ML-DSA-44 key.
    Init(Init),
    /// Show the witness's verifier key, for policies and for the logs that use it.
    Key(Key),
    /// The logs that it watches.
    #[command(subcommand)]
    Log(Log),
    /// Answer requests for cosignatures over plain HTTP: POST PREFIX/add-checkpoint.
    Serve(Serve),
}

#[derive(clap::Args)]
struct Init {
    /// Folder to create.
    #[arg(long)]
    data: PathBuf,
    /// Name of its key: a URL without scheme, such as example.org/witness.
    #[arg(long)]
    name: String,
}

#[derive(clap::Args)]
struct Key {
    /// The witness's folder.
    #[arg(long)]
    data: PathBuf,
}

#[derive(clap::Subcommand)]
enum Log {
    /// Watch a log, or add a key to one. A running witness uses it at once.
    Add(Add),
    /// Show the logs and the size that was last cosigned for each.
    List(Key),
}

#[derive(clap::Args)]
struct Add {
    /// The witness's folder.
    #[arg(long)]
    data: PathBuf,
    /// The log's verifier key, whose name is the log's origin.
    #[arg(long)]
    vkey: String,
}

#[derive(clap::Args)]
struct Serve {
    /// The witness's folder.
    #[arg(long)]
    data: PathBuf,
    /// Address and port; port 0 picks a free one.
    #[arg(long, default_value = "127.0.0.1:8446", value_parser = values::address)]
    listen: SocketAddr,
    /// Prefix of request paths, such as /witness.
    #[arg(long, default_value = "", value_parser = prefix)]
    prefix: String,
    /// What to log: error, warn, info, debug, trace.
    #[arg(long, default_value = "info", env = "OUTLAST_LOG")]
    log: String,
}

fn prefix(text: &str) -> Result<String, String> {
    if text.is_empty() || text.starts_with('/') {
        Ok(text.to_owned())
    } else {
        Err("a prefix begins with a slash".into())
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    match &arguments.command {
        Command::Init(init) => self::init(init, output),
        Command::Key(key) => {
            let (store, root) = open(&key.data, SqliteStore::open_read_only)?;
            let mut work = Work::new(&store, &root, system_clock());
            let signer = witness::signer(&mut work).map_err(failure)?;
            let (vkey, name) = (signer.verifier().to_string(), signer.verifier().name());
            output.result(&vkey, &json!({ "vkey": vkey, "name": name }));
            Ok(())
        }
        Command::Log(Log::Add(add)) => self::add(add, output),
        Command::Log(Log::List(list)) => self::list(list, output),
        Command::Serve(serve) => self::serve(serve),
    }
}

fn init(arguments: &Init, output: Output) -> Result<(), Failure> {
    let (build, _) = data::begin(&arguments.data)?;
    let (kek, parameters) = Provider::default_in(build.path()).create()?;
    let root = RootKey::new(kek);
    let store = SqliteStore::open(&file(build.path())).map_err(store_failure)?;
    let mut work = Work::new(&store, &root, system_clock());
    root.establish(&mut work, parameters)?;
    let key = witness::create(&mut work, &arguments.name).map_err(failure)?;
    store.commit_and_wait(work.into_transaction(Vec::new())).map_err(store_failure)?;
    drop(store);
    data::complete(build, &arguments.data)?;
    let folder = arguments.data.display();
    let text = format!(
        "made the witness {folder}\n\n\
         verifier key: {key}\n\
         watch a log:  outlast audit witness log add --data {folder} --vkey LOGS-VERIFIER-KEY\n\
         start it:     outlast audit witness serve --data {folder}"
    );
    output.result(&text, &json!({ "data": arguments.data, "vkey": key.to_string() }));
    Ok(())
}

fn add(arguments: &Add, output: Output) -> Result<(), Failure> {
    let key: VerifierKey = arguments.vkey.parse().map_err(|error| {
        Failure::new(format!("--vkey: {error}"))
            .hint("to see a server's key, run: outlast audit policy")
    })?;
    let (store, root) = open(&arguments.data, SqliteStore::open)?;
    let add = |work: &mut Work<'_>| {
        witness::signer(work).map_err(failure)?;
        Ok::<_, Failure>((witness::add_log(work, &key).map_err(failure)?, Vec::new()))
    };
    let new = change(&store, || Work::new(&store, &root, system_clock()), add)?;
    let what = if new { "watches" } else { "already watches" };
    let text = format!("{what} {}", key.name());
    output.result(&text, &json!({ "origin": key.name(), "added": new }));
    Ok(())
}

fn list(arguments: &Key, output: Output) -> Result<(), Failure> {
    let (store, root) = open(&arguments.data, SqliteStore::open_read_only)?;
    let mut work = Work::new(&store, &root, system_clock());
    let logs = witness::logs(&mut work)?;
    let line = |log: &Watched| {
        let size = log.known.head.size;
        format!("{}: {size} entries, {} keys", log.origin, log.known.keys.len())
    };
    let text: Vec<String> = logs.iter().map(line).collect();
    let value: Vec<_> = logs
        .iter()
        .map(|log| {
            json!({
                "origin": log.origin,
                "keys": log.known.keys.iter().map(ToString::to_string).collect::<Vec<_>>(),
                "size": log.known.head.size,
                "root": hex::encode(log.known.head.root),
                "time": log.time,
                "checkpoint": log.checkpoint,
            })
        })
        .collect();
    let text = if text.is_empty() { "no logs".to_owned() } else { text.join("\n") };
    output.result(&text, &value);
    Ok(())
}

fn serve(arguments: &Serve) -> Result<(), Failure> {
    // Before its key is read.
    dumps::refuse();
    start_log(&arguments.log)?;
    require(&arguments.data)?;
    let lock = FolderLock::acquire(&arguments.data.join("witness.lock")).map_err(store_failure)?;
    let (store, root) = open(&arguments.data, SqliteStore::open)?;
    let mut work = Work::new(&store, &root, system_clock());
    let signer = witness::signer(&mut work).map_err(failure)?;
    let name = signer.verifier().name().to_owned();
    drop(work);
    let prefix = &arguments.prefix;
    let server = WitnessServer::new(Arc::new(store), root, signer, prefix, system_clock);
    listeners::raise_open_files();
    let runtime = crate::runtime::runtime()?;
    runtime.block_on(async {
        let receive = |kind| {
            signal(kind)
                .map_err(|error| Failure::new(format!("signals cannot be received: {error}")))
        };
        let mut terminate = receive(SignalKind::terminate())?;
        let mut interrupt = receive(SignalKind::interrupt())?;
        let (listener, address) = listeners::listen_at(arguments.listen, "--listen")?;
        output::line(&format!("{name} listening on http://{address}{prefix}"));
        let stop = async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        Arc::new(server).run(listener, stop).await;
        Ok::<_, Failure>(())
    })?;
    drop(lock);
    Ok(())
}

fn file(folder: &Path) -> PathBuf {
    folder.join("witness.db")
}

fn require(folder: &Path) -> Result<(), Failure> {
    if file(folder).exists() {
        return Ok(());
    }
    Err(Failure::file(folder, &"there is no witness in this folder").hint(format!(
        "make one with: outlast audit witness init --data {} --name NAME",
        folder.display()
    )))
}

/// Opens the store of a witness with its root key.
fn open(
    folder: &Path,
    by: fn(&Path) -> Result<SqliteStore, StoreError>,
) -> Result<(SqliteStore, RootKey), Failure> {
    require(folder)?;
    let store = by(&file(folder)).map_err(store_failure)?;
    let record = seal::read_record(&store)?;
    let root = RootKey::new(Provider::default_in(folder).open(record.as_ref())?);
    Ok((store, root))
}

fn failure(error: WitnessError) -> Failure {
    match error {
        WitnessError::Fault(fault) => fault.into(),
        other => Failure::new(other.to_string()),
    }
}
