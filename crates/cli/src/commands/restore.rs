//! `outlast restore`: makes a data folder from a backup.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use outlast_domain::backup::{self, Header, Restored};
use outlast_domain::check;
use outlast_domain::identity::{self, AccessKey};
use outlast_domain::seal::{Kek, RootKey};
use outlast_domain::work::Work;
use outlast_net::certificate::{self, KINDS};
use outlast_net::server::system_clock;
use outlast_store::{Store, Transaction};
use serde_json::{Map, json};

use super::backup::{describe, failure};
use crate::data::{self, Profile, store_failure};
use crate::failure::Failure;
use crate::location::StoreLocation;
use crate::output::{self, Output};
use crate::root_key::Provider;
use crate::settings::PORT;
use crate::temporary::Pending;
use crate::tls::default_names;
use crate::{files, shell};

/// Arguments of `restore`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Backup file.
    file: PathBuf,
    /// Folder to create.
    #[arg(long, env = "OUTLAST_DATA", required_unless_present = "verify_only")]
    data: Option<PathBuf>,
    /// Only check the backup: it is complete, every record in it can be opened and matches the others, and the audit
    /// log is as it was signed. Needs as much space in the temporary folder as the store; what is written there is
    /// sealed as in the store, and is removed.
    #[arg(long)]
    verify_only: bool,
    /// What wraps the store's root key: file:PATH, passphrase:SOURCE or pkcs11:URI. If the root key is in the
    /// backup: what wraps it from now on [default: file:root.key in the new folder].
    #[arg(long, env = "OUTLAST_ROOT_KEY", hide_env_values = true)]
    root_key: Option<String>,
    /// Key of the backup, if it was made with one.
    #[arg(long, env = "OUTLAST_BACKUP_KEY", hide_env_values = true)]
    backup_key: Option<String>,
    /// Region in the AWS profile; the server accepts every other Region as well.
    #[arg(long, default_value = "us-east-1")]
    region: String,
    /// Where to keep the records: sqlite, or the URL of an empty PostgreSQL database
    /// [default: sqlite, in the data folder].
    #[arg(long, env = "OUTLAST_STORE", hide_env_values = true)]
    store: Option<String>,
    /// Port in the AWS profile.
    #[arg(long, default_value_t = PORT)]
    port: u16,
}

/// Makes the folder; it appears complete or not at all.
pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let path = &arguments.file;
    let file = File::open(path).map_err(|error| files::io_failure(path, &error))?;
    let mut file = BufReader::with_capacity(1 << 17, file);
    let (header, head) = backup::header(&mut file).map_err(|error| failure(path, error))?;
    let here = std::env::current_dir().map_err(|error| Failure::new(error.to_string()))?;
    let parse = |text: &Option<String>| match text {
        // Absolute, because it is written into the settings file.
        Some(text) => Provider::parse(text, &here).map(Some),
        None => Ok(None),
    };
    let root_key = parse(&arguments.root_key)?;
    let backup_key = parse(&arguments.backup_key)?;
    let opener = opener(&header, root_key.as_ref(), backup_key.as_ref())?;
    let kek = opener.open_stated(&header.key.provider, Some(&header.key.parameters))?;
    let input = Input { path, header: &header, head: &head, kek: kek.as_ref() };
    let Some(folder) = arguments.data.as_ref().filter(|_| !arguments.verify_only) else {
        return verify(&input, &mut file, root_key.as_ref(), output);
    };
    let (build, location) = data::begin(folder)?;
    let target = StoreLocation::choose(build.path(), arguments.store.as_deref())?;
    let opened = target.open()?;
    let store = opened.as_ref();
    let restored = input.restore(&mut file, store, "restoring")?;
    let counts = restored.counts;
    let provider = keep_root_keys(store, restored, root_key.as_ref(), folder, build.path())?;
    let (root, state) = data::unlock(store, &provider)?;
    if !state.is_authenticated {
        // The backup of an earlier version is authentic as a whole.
        data::bring_up_to_date(store, &root, state)?;
    }
    finish(store, &root, &header, arguments, build.path(), &location)?;
    data::write_settings(build.path(), root_key.as_ref(), target.database.as_deref())?;
    drop(opened);
    data::complete(build, folder)?;
    let made = outlast_pki::time::rfc3339(header.created_ms.div_euclid(1000));
    let text = format!(
        "made {folder} from the backup of {made}: {counts}\n\n\
         start it: outlast server --data {quoted}{listen}\n\
         check it: outlast store check --data {quoted}",
        folder = folder.display(),
        quoted = shell::quoted(folder),
        listen = listen(arguments.port),
        counts = describe(counts),
    );
    output.result(
        &text,
        &json!({
            "data": files::json_path(folder),
            "created_ms": header.created_ms,
            "records": counts.records,
            "events": counts.events,
        }),
    );
    Ok(())
}

/// The option that makes the server listen at the port in its profile.
fn listen(port: u16) -> String {
    if port == PORT { String::new() } else { format!(" --listen 127.0.0.1:{port}") }
}

/// An open backup.
struct Input<'a> {
    path: &'a Path,
    header: &'a Header,
    head: &'a [u8],
    kek: &'a dyn Kek,
}

impl Input<'_> {
    /// Fills an empty store from the backup after its header.
    fn restore(
        &self,
        file: &mut dyn Read,
        store: &dyn Store,
        doing: &'static str,
    ) -> Result<Restored, Failure> {
        let bar = output::spinner(doing);
        let restored =
            backup::restore(self.header, self.head, self.kek, file, store, &mut |counts| {
                bar.set_message(describe(counts));
            })
            .map_err(|error| failure(self.path, error))?;
        bar.finish_and_clear();
        Ok(restored)
    }
}

/// Checks the backup as `store check` checks a store.
fn verify(
    input: &Input<'_>,
    file: &mut dyn Read,
    root_key: Option<&Provider>,
    output: Output,
) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        Failure::new(format!("the temporary folder cannot be used: {error}"))
            .hint("name another one with TMPDIR")
    };
    let (_pending, build) = Pending::create(tempfile::tempdir).map_err(failed)?;
    let opened = StoreLocation::in_folder(build.path()).open()?;
    let store = opened.as_ref();
    let restored = input.restore(file, store, "reading the backup")?;
    let counts = restored.counts;
    let mine = restored.root_keys.is_empty();
    // Root keys from the backup are put beside the copy; the provider that will keep them is not asked here.
    let kept = root_key.filter(|_| mine);
    let provider = keep_root_keys(store, restored, kept, build.path(), build.path())?;
    let (root, _) = data::unlock(store, &provider)?;
    let report = check::check(store, &root, &mut |_| {})?;
    let made = outlast_pki::time::rfc3339(input.header.created_ms.div_euclid(1000));
    let mut text = format!(
        "the backup of {made}: {}, {} sealed records open, {} problems\n",
        describe(counts),
        report.opened,
        report.problem_count
    );
    for problem in &report.problems {
        text.push_str(&format!("  {}: {} ({})\n", problem.record_key, problem.what, problem.title));
    }
    output.result(&text, &report);
    if report.problem_count == 0 {
        return Ok(());
    }
    Err(Failure::file(input.path, &"the store in the backup has problems")
        .hint("keep an older backup that verifies, and check the store with: outlast store check"))
}

/// The key that opens the backup.
fn opener<'a>(
    header: &Header,
    root_key: Option<&'a Provider>,
    backup_key: Option<&'a Provider>,
) -> Result<&'a Provider, Failure> {
    if header.key.by_store {
        return root_key.ok_or_else(|| {
            Failure::new("the backup opens only with what wraps the root key of its store")
                .hint(format!("give it with --root-key {}:...", header.key.provider))
        });
    }
    let opener = backup_key.ok_or_else(|| {
        Failure::new("the backup opens only with the key that it was made with")
            .hint(format!("give it with --backup-key {}:...", header.key.provider))
    })?;
    if !header.has_root_keys && root_key.is_none() {
        return Err(Failure::new("the root key of the store is not in the backup")
            .hint("give what wraps it with --root-key, too"));
    }
    Ok(opener)
}

/// The provider of the restored store's root keys: the previous one, or the one that keeps those in the backup.
fn keep_root_keys(
    store: &dyn Store,
    restored: Restored,
    root_key: Option<&Provider>,
    folder: &Path,
    build: &Path,
) -> Result<Provider, Failure> {
    let provider = data::provider_in(root_key, folder, build);
    let mut keys = restored.root_keys;
    match keys.as_slice() {
        [] => {}
        [(location, _)] if location.is_empty() => {
            for (_, key) in keys.drain(..) {
                provider.keep(key)?;
            }
        }
        _ => {
            let (kek, parameters) = provider.create()?;
            let root = RootKey::new(kek);
            let mut work = Work::new(store, &root, 0);
            root.adopt(&mut work, parameters, &keys)?;
            store.commit_and_wait(work.into_transaction(Vec::new())).map_err(store_failure)?;
        }
    }
    Ok(provider)
}

/// Writes the administrator's profile, and records the restoration.
fn finish(
    store: &dyn Store,
    root: &RootKey,
    header: &Header,
    arguments: &Arguments,
    build: &Path,
    location: &Path,
) -> Result<(), Failure> {
    let now_ms = system_clock();
    let mut work = Work::new(store, root, now_ms);
    // Only read: the server renews what it needs when it starts.
    let chain = certificate::ensure(&mut work, &KINDS[0], &default_names())?;
    if let Some(id) = administrator(&work)?
        && let Some(secret) = identity::access_key_secret(&mut work, &id)?
    {
        let profile =
            Profile { region: &arguments.region, port: arguments.port, root_pem: &chain.root_pem };
        data::write_client(build, location, &profile, &id, &secret)?;
    }
    let mut parameters = Map::new();
    parameters.insert(
        "backupTime".into(),
        outlast_pki::time::rfc3339(header.created_ms.div_euclid(1000)).into(),
    );
    let event = data::store_event(now_ms, "RestoreBackup", &parameters.into())?;
    let transaction = Transaction { events: vec![event.into()], ..Transaction::default() };
    store.commit_and_wait(transaction).map_err(store_failure)
}

/// The access key that `outlast init` made: an administrator's oldest.
fn administrator(work: &Work<'_>) -> Result<Option<String>, Failure> {
    let mut oldest: Option<AccessKey> = None;
    let mut after = String::new();
    loop {
        let page = work.scan::<AccessKey>("iam/access-key/", &after, 100)?;
        let Some((last, _)) = page.last() else { break };
        after.clone_from(last);
        for (_, key) in page {
            let older = oldest.as_ref().is_none_or(|found| key.created_ms < found.created_ms);
            if key.user == "administrator" && older {
                oldest = Some(key);
            }
        }
    }
    Ok(oldest.map(|key| key.id))
}
