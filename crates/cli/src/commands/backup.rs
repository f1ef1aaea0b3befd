//! `outlast backup`: copies the whole store, as of one point in time, into one encrypted file.

use std::io::BufWriter;
use std::path::{Path, PathBuf};

use outlast_domain::backup::{self, BackupError, Counts, NewBackup};
use outlast_domain::seal;
use outlast_net::server::system_clock;
use serde_json::json;

use crate::data::{Data, StoreArguments, store_failure};
use crate::failure::Failure;
use crate::files;
use crate::output::{self, Output};
use crate::root_key::Provider;

/// Arguments of `backup`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    store: StoreArguments,
    /// File to create, or - for standard output.
    #[arg(long)]
    out: PathBuf,
    /// Key of the backup: file:PATH (created unless it exists), passphrase:SOURCE or pkcs11:URI [default: what wraps
    /// the store's own root key].
    #[arg(long, env = "OUTLAST_BACKUP_KEY", hide_env_values = true)]
    backup_key: Option<String>,
    /// Include the store's root key: then --backup-key alone opens everything, even if what wraps the root key is
    /// lost. Otherwise the backup has no root key, and restoring it needs --root-key.
    #[arg(long, requires = "backup_key")]
    include_root_key: bool,
}

/// Writes the backup and prints its contents.
pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let provider = arguments.store.provider()?;
    let data = Data::open_read_only(&arguments.store.location()?, &provider)?;
    let root = data.service.root();
    let own = match &arguments.backup_key {
        Some(text) => Some(Provider::parse(text, Path::new(""))?.create()?),
        None => None,
    };
    let (kek, parameters) = match &own {
        Some((kek, parameters)) => (kek.as_ref(), parameters.clone()),
        None => {
            let record = seal::read_record(data.store())?;
            (root.kek(), record.map(|record| record.parameters).unwrap_or_default())
        }
    };
    let new = NewBackup {
        created_ms: system_clock(),
        created_by: format!("outlast {}", env!("CARGO_PKG_VERSION")),
        kek,
        parameters,
        by_store: own.is_none(),
        include_root_keys: arguments.include_root_key,
    };
    let created_ms = new.created_ms;
    let bar = output::spinner("backing up");
    let out = &arguments.out;
    let write = |file: &mut dyn std::io::Write| {
        let mut file = BufWriter::with_capacity(1 << 17, file);
        backup::write(data.store(), root, new, &mut file, &mut |counts| {
            bar.set_message(describe(counts));
        })
        .map_err(|error| failure(out, error))
    };
    if out.as_os_str() == "-" {
        write(&mut std::io::stdout().lock())?;
        bar.finish_and_clear();
        return Ok(());
    }
    let counts = files::write_new(out, write)?;
    bar.finish_and_clear();
    let key = match (&arguments.backup_key, arguments.include_root_key) {
        (None, _) => "what wraps the store's root key",
        (Some(_), false) => "--backup-key, and what wraps the store's root key",
        (Some(_), true) => "--backup-key alone",
    };
    let text =
        format!("wrote {}: {}\nneeded to restore it: {key}", out.display(), describe(counts));
    output.result(
        &text,
        &json!({
            "file": files::json_path(out),
            "created_ms": created_ms,
            "records": counts.records,
            "events": counts.events,
            "includes_root_key": arguments.include_root_key,
        }),
    );
    Ok(())
}

/// Counts for people.
pub(crate) fn describe(counts: Counts) -> String {
    format!("{} records, {} audit events", counts.records, counts.events)
}

/// The hint for each error of a backup.
pub(crate) fn failure(path: &Path, error: BackupError) -> Failure {
    match error {
        BackupError::Io(error) => files::io_failure(path, &error),
        BackupError::Fault(outlast_domain::Fault::Store(error)) => store_failure(error),
        BackupError::Fault(fault) => fault.into(),
        error => {
            let failure = Failure::file(path, &error);
            match error {
                BackupError::TooNew(_) => {
                    failure.hint("use the version of outlast that wrote it, or a newer one")
                }
                BackupError::Foreign => failure.hint("name the file that outlast backup wrote"),
                BackupError::WrongKey => failure.hint("give the key that it was made with"),
                BackupError::Damaged(_) => failure.hint("nothing was restored; use another copy"),
                _ => failure,
            }
        }
    }
}
