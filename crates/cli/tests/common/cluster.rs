//! Two data folders for two servers on one PostgreSQL database.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;

use outlast_store::testing::Postgres;

use super::{ACCESS_KEY, SECRET, Server, outlast, succeed};

/// A database with a store, and the folders of its servers.
pub struct Cluster {
    pub postgres: Arc<Postgres>,
    pub url: String,
    pub temporary: tempfile::TempDir,
    pub folders: Vec<PathBuf>,
}

impl Cluster {
    /// On a new database of a server that the tests share.
    pub fn new() -> Option<Self> {
        Postgres::shared().map(Self::on)
    }

    /// On a new database of its own server, which may be stopped.
    pub fn alone() -> Option<Self> {
        Postgres::start().map(|postgres| Self::on(Arc::new(postgres)))
    }

    fn on(postgres: Arc<Postgres>) -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let url = postgres.new_database();
        let folders = ["a", "b"].map(|name| temporary.path().join(name)).to_vec();
        let cluster = Self { postgres, url, temporary, folders };
        for (folder, join) in cluster.folders.iter().zip([&[][..], &["--join"]]) {
            succeed(
                outlast()
                    .args([
                        "init",
                        "--access-key-id",
                        ACCESS_KEY,
                        "--root-key",
                        &cluster.root_key(),
                    ])
                    .args(join)
                    .arg("--data")
                    .arg(folder)
                    .env("OUTLAST_STORE", &cluster.url)
                    .env("OUTLAST_SECRET_ACCESS_KEY", SECRET),
            );
        }
        cluster
    }

    /// Where the store's root key is kept.
    pub fn root_key(&self) -> String {
        format!("file:{}", self.temporary.path().join("root.key").display())
    }

    /// Starts the server of a folder. Its messages about a database that is gone are hidden.
    pub fn serve(&self, number: usize) -> Server {
        self.serve_with(number, &[])
    }

    /// The same, with these options.
    pub fn serve_with(&self, number: usize, options: &[&str]) -> Server {
        let mut command = outlast();
        command.stderr(Stdio::null());
        Server::start_by(command, &self.folders[number], options)
    }
}
