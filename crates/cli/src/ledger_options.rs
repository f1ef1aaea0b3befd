//! Where the ledger of connections is written: flags, settings file, and what comes of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use outlast_ledger::{Ledger, Options};
use outlast_net::server::system_clock;

use crate::failure::Failure;

/// The ledger's folder in a data folder.
pub(crate) const FOLDER: &str = "ledger";

/// Flags of `server`; the settings file has the same.
#[derive(clap::Args, Default)]
#[group(id = "ledger_options")]
pub(crate) struct Flags {
    /// Folder for the ledger of connections, or off [default: ledger in the data folder].
    #[arg(long, env = "OUTLAST_LEDGER", value_name = "DIR|off")]
    pub(crate) ledger: Option<String>,
    /// Days for which the ledger is kept [default: 400].
    #[arg(long, env = "OUTLAST_LEDGER_DAYS", value_name = "DAYS")]
    pub(crate) ledger_days: Option<u32>,
    /// Bytes that the ledger may take, after which the oldest goes [default: 1073741824].
    #[arg(long, env = "OUTLAST_LEDGER_BYTES", value_name = "BYTES")]
    pub(crate) ledger_bytes: Option<u64>,
}

/// What flags and settings file say together.
pub(crate) struct Settings {
    folder: Option<PathBuf>,
    options: Options,
}

impl Flags {
    /// What was given here, and for the rest what was given there.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            ledger: self.ledger.or(other.ledger),
            ledger_days: self.ledger_days.or(other.ledger_days),
            ledger_bytes: self.ledger_bytes.or(other.ledger_bytes),
        }
    }

    /// For the server of this data folder.
    pub(crate) fn choose(self, data: &Path) -> Settings {
        let folder = match self.ledger.as_deref() {
            Some("off") => None,
            Some(folder) => Some(folder.into()),
            None => Some(data.join(FOLDER)),
        };
        let mut options = Options::new(system_clock);
        options.keep_days = self.ledger_days.unwrap_or(options.keep_days);
        options.total_bytes = self.ledger_bytes.unwrap_or(options.total_bytes);
        // So that something is left when the oldest segment goes.
        options.segment_bytes = options.segment_bytes.min(options.total_bytes / 8).max(4096);
        Settings { folder, options }
    }
}

impl Settings {
    /// Where it is, or that there is none, for whoever starts the process.
    pub(crate) fn told(&self) -> String {
        match &self.folder {
            Some(folder) => format!("ledger in {}", folder.display()),
            None => "no ledger: who connects how is not recorded (--ledger DIR)".to_owned(),
        }
    }

    /// Opens the ledger, if there is to be one.
    pub(crate) fn open(self) -> Result<Option<Arc<Ledger>>, Failure> {
        let Some(folder) = self.folder else { return Ok(None) };
        let ledger = Ledger::open(&folder, self.options).map_err(|error| {
            Failure::file(&folder, &error)
                .hint("choose another folder with --ledger, or switch the ledger off: off")
        })?;
        Ok(Some(Arc::new(ledger)))
    }
}
