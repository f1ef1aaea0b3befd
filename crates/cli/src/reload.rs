//! What a running server takes over without dropping a connection: certificates, CAs and CRLs of clients, ticket keys.
//!
//! What is broken changes nothing: what was there before stays, and the log says so.

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
use crate::tls::Shows;

/// How often it is looked whether files have changed.
const FILES: Duration = Duration::from_secs(5);

/// How often the keys of tickets are looked at. The next one is in the store hours before it is used.
const TICKET_KEYS: Duration = Duration::from_secs(60);

/// A server that could serve nobody does not start.
pub(crate) fn check(door: &Door) -> Result<(), Failure> {
    let rules = door.rules();
    if door.facts().iter().any(|facts| can_show(rules, facts)) {
        return Ok(());
    }
    let name = rules.policy.name;
    let kinds: Vec<_> = KINDS.iter().map(|row| row.name).collect();
    Err(Failure::new(format!("the policy {name} allows none of the server's certificates")).hint(
        format!("choose another with --tls-cert ({}), or another --policy", kinds.join(", ")),
    ))
}

/// Takes over changed files, and all of them at SIGHUP. Never ends, unless there are none.
pub(crate) async fn watch(
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
    let mut shown = shows.stamp();
    let mut believed = clients.as_ref().map(Clients::stamp);
    loop {
        let asked = tokio::select! {
            () = tokio::time::sleep(FILES) => false,
            () = received(&mut hang_up) => true,
        };
        let newer = shows.stamp();
        if shows.has_files() && (asked || newer != shown) {
            shown = newer;
            certificates(&data, &door, &shows, &names);
        }
        let newer = clients.as_ref().map(Clients::stamp);
        if let Some(clients) = &clients
            && (asked || newer != believed)
        {
            believed = newer;
            believe(&door, clients);
        }
    }
}

async fn received(hang_up: &mut Option<Signal>) {
    let got = match hang_up {
        Some(signal) => signal.recv().await,
        None => None,
    };
    if got.is_none() {
        std::future::pending::<()>().await;
    }
}

fn believe(door: &Door, clients: &Clients) {
    let taken = tokio::task::block_in_place(|| clients.load()).and_then(|auth| {
        door.replace_clients(&auth).map_err(|error| Failure::new(error.to_string()))
    });
    match taken {
        Ok(()) => tracing::info!("the client CAs and CRLs were read again"),
        Err(failure) => tracing::error!(
            error = failure.message(),
            "the client CAs and CRLs have changed and cannot be used: those before stay"
        ),
    }
}

/// Reads or renews the certificates, and shows them from the next connection on.
pub(crate) fn certificates(data: &Data, door: &Door, shows: &Shows, names: &[String]) {
    let taken = tokio::task::block_in_place(|| data.certificates(shows, names)).and_then(|list| {
        let rules = door.rules();
        if !list.iter().any(|shown| can_show(rules, &shown.facts())) {
            let name = rules.policy.name;
            return Err(Failure::new(format!("the policy {name} allows none of them")));
        }
        door.replace_certificates(list).map_err(|error| Failure::new(error.to_string()))
    });
    match taken {
        Ok(()) if shows.has_files() => tracing::info!("the TLS certificates were read again"),
        Ok(()) => {}
        Err(failure) => tracing::error!(
            error = failure.message(),
            "the TLS certificates cannot be renewed: those before stay"
        ),
    }
}

/// Keeps the keys of tickets as they are in the store. Never ends.
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
