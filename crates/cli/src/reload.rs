//! What a running server reloads without dropping a connection: certificates, CAs and CRLs of clients, ticket keys.
//!
//! A broken file changes nothing: what was loaded before stays, and the log says so.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use outlast_negotiate::decide::can_show;
use outlast_net::certificate::KINDS;
use outlast_net::door::Door;
use outlast_net::tickets::Tickets;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::client_ca::Clients;
use crate::data::Data;
use crate::failure::Failure;
use crate::files::Stamp;
use crate::tls::Shows;

/// Interval between checks for changed files.
const FILES: Duration = Duration::from_secs(5);

/// Interval between reads of the ticket keys. The next key is in the store hours before its first use.
const TICKET_KEYS: Duration = Duration::from_secs(60);

/// Refuses to start a server that could not serve any client.
pub(crate) fn check(door: &Door) -> Result<(), Failure> {
    let Some(name) = useless(door) else { return Ok(()) };
    let kinds: Vec<_> = KINDS.iter().map(|row| row.name).collect();
    Err(Failure::new(format!("the policy {name} allows none of the server's certificates")).hint(
        format!("choose another with --tls-cert ({}), or another --policy", kinds.join(", ")),
    ))
}

/// The name of the policy, if it allows none of the certificates: no client could be served.
pub(crate) fn useless(door: &Door) -> Option<&'static str> {
    let rules = door.rules();
    let is_useful = door.facts().iter().any(|facts| can_show(rules, facts));
    (!is_useful).then_some(rules.policy.name)
}

/// Watched files, and the outcome of reading them.
struct Followed {
    /// Their stamps when they were last loaded; `None` if the last attempt failed, which is then repeated: the cause
    /// may lie outside the files.
    taken: Option<Stamps>,
    /// Their stamps when an error about them was last logged.
    refused: Option<Stamps>,
}

type Stamps = Vec<Option<Stamp>>;

impl Followed {
    fn new(stamps: Stamps) -> Self {
        Self { taken: Some(stamps), refused: None }
    }

    /// Calls `take` if the files have changed since they were loaded, or if a reload was requested; names `what` if
    /// that fails.
    fn follow(&mut self, stamps: Stamps, asked: bool, what: &str, take: impl FnOnce() -> Taken) {
        if !asked && self.taken.as_ref() == Some(&stamps) {
            return;
        }
        match take() {
            Ok(()) => *self = Self::new(stamps),
            Err(failure) => {
                if asked || self.refused.as_ref() != Some(&stamps) {
                    refused(what, &failure);
                }
                *self = Self { taken: None, refused: Some(stamps) };
            }
        }
    }
}

type Taken = Result<(), Failure>;

fn refused(what: &str, failure: &Failure) {
    tracing::error!(
        error = failure.message(),
        "{what} cannot be used: the previous ones stay in use"
    );
}

/// The files that a server has loaded, by their stamps from before they were read.
pub(crate) struct Watch {
    shown: Followed,
    believed: Followed,
}

impl Watch {
    /// To be called before the files are read for the first time, so that no change is missed.
    pub(crate) fn new(shows: &Shows, clients: Option<&Clients>) -> Self {
        let believed = clients.map(Clients::stamp).unwrap_or_default();
        Self { shown: Followed::new(shows.stamp()), believed: Followed::new(believed) }
    }

    /// Reloads changed files, and all of them at SIGHUP. Never ends, unless there are no files.
    pub(crate) async fn run(
        mut self,
        data: Arc<Data>,
        door: Arc<Door>,
        shows: Shows,
        names: Vec<String>,
        clients: Option<Clients>,
    ) {
        if !shows.has_files() && clients.is_none() {
            return;
        }
        let mut hang_up = signal(SignalKind::hangup())
            .inspect_err(|error| tracing::warn!(%error, "SIGHUP cannot be received"))
            .ok();
        loop {
            let asked = tokio::select! {
                () = tokio::time::sleep(FILES) => false,
                () = received(&mut hang_up) => true,
            };
            if shows.has_files() {
                self.shown.follow(shows.stamp(), asked, CERTIFICATES, || {
                    certificates(&data, &door, &shows, &names)?;
                    tracing::info!("the TLS certificates were read again");
                    Ok(())
                });
            }
            if let Some(clients) = &clients {
                self.believed.follow(clients.stamp(), asked, CLIENTS, || {
                    let auth = tokio::task::block_in_place(|| clients.load())?;
                    replaced(door.replace_clients(&auth))?;
                    tracing::info!("the client CAs and CRLs were read again");
                    Ok(())
                });
            }
        }
    }
}

const CERTIFICATES: &str = "the TLS certificates";
const CLIENTS: &str = "the client CAs and CRLs";

async fn received(hang_up: &mut Option<Signal>) {
    let got = match hang_up {
        Some(signal) => signal.recv().await,
        None => None,
    };
    if got.is_none() {
        std::future::pending::<()>().await;
    }
}

/// Renews the service's own certificates if they are due.
pub(crate) fn renew(data: &Data, door: &Door, shows: &Shows, names: &[String]) {
    if let Err(failure) = certificates(data, door, shows, names) {
        refused(CERTIFICATES, &failure);
    }
}

/// Reads or renews the certificates, and shows them from the next connection on.
fn certificates(data: &Data, door: &Door, shows: &Shows, names: &[String]) -> Taken {
    tokio::task::block_in_place(|| {
        let shown = data.certificates(shows, names)?;
        if let Some(failure) = shown.untimely {
            return Err(failure);
        }
        let rules = door.rules();
        if !shown.certificates.iter().any(|shown| can_show(rules, &shown.facts())) {
            let name = rules.policy.name;
            return Err(Failure::new(format!("the policy {name} allows none of them")));
        }
        replaced(door.replace_certificates(shown.certificates))?;
        // Written last: clients that trust only the new root would not trust the previous certificates.
        if let Err(failure) = data.give_roots(&shown.roots) {
            tracing::error!(error = failure.message(), "the roots cannot be written for clients");
        }
        Ok(())
    })
}

fn replaced(outcome: Result<(), impl Display>) -> Taken {
    outcome.map_err(|error| Failure::new(error.to_string()))
}

/// Keeps the ticket keys as they are in the store. Never ends.
pub(crate) async fn ticket_keys(data: Arc<Data>, tickets: Arc<Tickets>) {
    loop {
        tokio::time::sleep(TICKET_KEYS).await;
        tokio::task::block_in_place(|| {
            if let Err(failure) = data.refresh_tickets(&tickets) {
                tracing::error!(error = failure.message(), "the ticket keys cannot be read");
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreadable_file_is_retried_even_if_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let stamps = || vec![crate::files::stamp(&path)];
        let mut followed = Followed::new(stamps());
        let mut tries = |asked: bool, works: bool| {
            let mut tried = false;
            followed.follow(stamps(), asked, "the file", || {
                tried = true;
                if works { Ok(()) } else { Err(Failure::new("no")) }
            });
            tried
        };
        assert!(!tries(false, true), "nothing has changed");
        std::fs::write(&path, b"1").unwrap();
        assert!(tries(false, false), "there is a new file");
        assert!(tries(false, false), "it could not be read");
        assert!(tries(false, true), "it could not be read the second time either");
        assert!(!tries(false, true), "it was read");
        assert!(tries(true, false), "somebody asks");
        assert!(tries(false, true), "that failed");
        assert!(!tries(false, true), "it was read");
    }

    #[test]
    fn replaced_file_is_noticed_whatever_its_time() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("key"), folder.path().join("other"));
        std::fs::write(&path, b"1").unwrap();
        std::fs::write(&other, b"2").unwrap();
        let times = std::fs::FileTimes::new().set_modified(std::time::SystemTime::UNIX_EPOCH);
        for file in [&path, &other] {
            let file = std::fs::File::options().write(true).open(file).unwrap();
            file.set_times(times).unwrap();
        }
        let before = crate::files::stamp(&path);
        assert_eq!(before, crate::files::stamp(&path));
        std::fs::rename(&other, &path).unwrap();
        assert_ne!(before, crate::files::stamp(&path));
    }
}
