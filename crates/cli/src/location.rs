//! The store of a data folder: its own file, or a database that several servers share.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use outlast_store::lock::FolderLock;
use outlast_store::postgres::PostgresStore;
use outlast_store::sqlite::SqliteStore;
use outlast_store::{Store, StoreError};

use crate::failure::{Failure, store_failure};
use crate::files;

/// Location of a store. There is no `Debug`: a URL may hold a password.
#[derive(Clone)]
pub(crate) struct StoreLocation {
    /// Data folder.
    pub(crate) folder: PathBuf,
    /// URL of a PostgreSQL database; absent for `store.db` in the folder.
    pub(crate) database: Option<String>,
}

impl StoreLocation {
    /// The location in `store`, or the default.
    pub(crate) fn choose(folder: &Path, store: Option<&str>) -> Result<Self, Failure> {
        let database = match store {
            None | Some("sqlite") => None,
            Some(url) if url.starts_with("postgres://") || url.starts_with("postgresql://") => {
                Some(url.to_owned())
            }
            Some(_) => {
                return Err(Failure::new("the store is neither sqlite nor a URL of PostgreSQL")
                    .hint("use --store postgres://USER@HOST/DATABASE, or leave it out for SQLite")
                    .about("store"));
            }
        };
        Ok(Self { folder: folder.to_path_buf(), database })
    }

    /// The store in a data folder.
    pub(crate) fn in_folder(folder: &Path) -> Self {
        Self { folder: folder.to_path_buf(), database: None }
    }

    /// Whether several servers may serve it.
    pub(crate) fn is_shared(&self) -> bool {
        self.database.is_some()
    }

    fn file(&self) -> PathBuf {
        self.folder.join("store.db")
    }

    /// Whether there is a store, as far as the folder shows.
    pub(crate) fn is_initialised(&self) -> Result<bool, Failure> {
        match self.database {
            Some(_) => Ok(files::exists(&self.folder)? && self.folder.is_dir()),
            None => files::exists(&self.file()),
        }
    }

    /// Fails unless there is a store.
    pub(crate) fn require_initialised(&self) -> Result<(), Failure> {
        if self.is_initialised()? {
            return Ok(());
        }
        Err(Failure::file(&self.folder, &"there is no outlast store in this folder").hint(
            "name the folder that outlast init made, or make one with: outlast init --data DIR",
        ))
    }

    /// Locks the folder, which only one server may serve; a database allows any number.
    pub(crate) fn lock(&self) -> Result<Option<FolderLock>, Failure> {
        if self.is_shared() {
            return Ok(None);
        }
        FolderLock::acquire(&self.folder.join("store.lock")).map(Some).map_err(store_failure)
    }

    /// Opens the store, or makes an empty one.
    pub(crate) fn open(&self) -> Result<Arc<dyn Store>, Failure> {
        match &self.database {
            Some(url) => match PostgresStore::open(url) {
                // The URL may hold a password, so it is not quoted.
                Err(error @ StoreError::Unavailable(_)) => Err(store_failure(error).hint(
                    "check that PostgreSQL runs, and the host, port, user and database of --store",
                )),
                other => other.map(|store| Arc::new(store) as _).map_err(store_failure),
            },
            None => SqliteStore::open(&self.file())
                .map(|store| Arc::new(store) as _)
                .map_err(store_failure),
        }
    }

    /// Opens the store beside the server that may serve it.
    pub(crate) fn open_beside(&self) -> Result<Arc<dyn Store>, Failure> {
        if !self.is_shared() && self.lock().is_err() {
            // Checks the schema first: it must not change under a running server.
            SqliteStore::open_read_only(&self.file()).map_err(store_failure)?;
        }
        self.open()
    }

    /// Opens the store read-only.
    pub(crate) fn open_read_only(&self) -> Result<Arc<dyn Store>, Failure> {
        match &self.database {
            Some(_) => self.open(),
            None => SqliteStore::open_read_only(&self.file())
                .map(|store| Arc::new(store) as _)
                .map_err(store_failure),
        }
    }
}
