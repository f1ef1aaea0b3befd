//! Settings of the ledger of connections.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use outlast_ledger::{Ledger, Options, limits};
use outlast_net::server::system_clock;

use crate::failure::Failure;
use crate::settings::{self, Located};

/// Name of the ledger's folder in a data folder.
const FOLDER: &str = "ledger";

/// The value that turns the ledger off.
pub(crate) const OFF: &str = "off";

/// The settings, checked.
pub(crate) struct Settings {
    folder: Option<PathBuf>,
    options: Options,
}

/// The ledger's default folder in a data folder.
pub(crate) fn default_folder(data: &Path) -> PathBuf {
    data.join(FOLDER)
}

/// The ledger's folder for a data folder; `None` if the ledger is off.
pub(crate) fn folder(said: Option<&Located>, data: &Path) -> Option<PathBuf> {
    match said {
        Some(said) if said.text == OFF => None,
        Some(said) => Some(said.base.join(&said.text)),
        None => Some(default_folder(data)),
    }
}

/// Checks the settings of the server of this data folder.
pub(crate) fn choose(settings: settings::Ledger, data: &Path) -> Result<Settings, Failure> {
    if settings.ledger_days() < limits::MIN_KEEP_DAYS {
        return Err(Failure::new("the ledger cannot be kept for less than a day")
            .hint("give a number of days from 1 on, or switch the ledger off: --ledger off")
            .about("ledger_days"));
    }
    if settings.ledger_bytes() < limits::MIN_TOTAL_BYTES {
        let least = limits::MIN_TOTAL_BYTES;
        return Err(Failure::new(format!("the ledger cannot be smaller than {least} bytes"))
            .hint("give more, since the oldest records are deleted, or switch the ledger off: --ledger off")
            .about("ledger_bytes"));
    }
    let mut options = Options::new(system_clock);
    options.keep_days = settings.ledger_days();
    options.total_bytes = settings.ledger_bytes();
    // So that records remain when the oldest segment is deleted.
    options.segment_bytes = options.segment_bytes.min(options.total_bytes / 8).max(4096);
    Ok(Settings { folder: folder(settings.ledger.as_ref(), data), options })
}

impl Settings {
    /// The ledger's folder, or that it is off, for the messages at the start.
    pub(crate) fn told(&self) -> String {
        match &self.folder {
            Some(folder) => format!("ledger in {}", folder.display()),
            None => "no ledger: connections are not recorded (--ledger DIR)".to_owned(),
        }
    }

    /// Opens the ledger, unless it is off.
    pub(crate) fn open(self) -> Result<Option<Arc<Ledger>>, Failure> {
        let Some(folder) = self.folder else { return Ok(None) };
        let ledger = Ledger::open(&folder, self.options).map_err(|error| {
            Failure::file(&folder, &error)
                .hint("choose another folder with --ledger, or switch the ledger off: --ledger off")
                .about("ledger")
        })?;
        Ok(Some(Arc::new(ledger)))
    }
}
