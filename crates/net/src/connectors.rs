//! Jobs of SFTP connectors: takes those that are due, does them, and records their results.
//!
//! A job runs under a lease, which is renewed while it runs. If this server dies or stops, the lease ends, and any server
//! goes on with the files that have no result yet. Files of buckets are read and written by [`Home`], with the rights of
//! the connector's role; a retrieved file appears whole or not at all.

mod files;
mod lease;
mod listing;
mod local;
mod remote;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::join_all;
use outlast_api::service::{Room, Service, Sink};
use outlast_domain::Fault;
use outlast_domain::transfer::connector::{
    Endpoint, Failure, FileOutcome, FileTask, Finish, Job, Refused, Task,
};
use outlast_sftp::arrival::Inspector;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::Instant;

use crate::clock::Clock;
use crate::limits;
use crate::outbound::{Outbound, Remote};
use crate::sftp::home::{Home, Storage};
use crate::sftp::{Buckets, OfUser};
pub use lease::Times as LeaseTimes;
use local::Local;

/// Does the jobs of a service's connectors.
pub struct Connectors {
    service: Arc<Service>,
    clock: Clock,
    outbound: Arc<Outbound>,
    storage: Storage,
    inspector: Option<Arc<dyn Inspector>>,
    running: Running,
}

/// Account and id of the jobs that run here.
#[derive(Clone, Default)]
struct Running(Arc<Mutex<BTreeSet<(String, String)>>>);

/// One of them.
struct Place {
    running: Running,
    id: (String, String),
}

impl Running {
    fn all(&self) -> BTreeSet<(String, String)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn enter(&self, job: &Job) -> Place {
        let id = (job.scope.account.clone(), job.id.clone());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone());
        Place { running: self.clone(), id }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.running.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

/// Why a job ended before it was done.
enum Stopped {
    Failed(Failure),
    /// Another server may have it, or the store cannot be written: the server with the next lease goes on.
    Lost,
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Which way the files of a transfer go.
#[derive(Clone, Copy)]
enum Way<'a> {
    Send(Option<&'a str>),
    Retrieve(&'a str),
}

/// What the connections of a transfer share.
struct Transfer<'a> {
    job: &'a Arc<Job>,
    endpoint: &'a Endpoint,
    local: &'a Local,
    files: &'a [FileTask],
    way: Way<'a>,
    /// Indices of the files that nobody has begun.
    waiting: Mutex<VecDeque<usize>>,
}

impl Connectors {
    /// Does the jobs of `service`. Uploads to `buckets` must become visible when they are closed, as those of
    /// `FolderOptions::atomic_uploads` do; `inspector` decides which retrieved files appear.
    pub fn new(
        service: Arc<Service>,
        clock: Clock,
        outbound: Arc<Outbound>,
        buckets: Arc<dyn Buckets>,
        sink: Arc<dyn Sink>,
        inspector: Option<Arc<dyn Inspector>>,
    ) -> Self {
        let storage = Storage { buckets, sink, atomic_uploads: true };
        Self { service, clock, outbound, storage, inspector, running: Running::default() }
    }

    /// Ends the inspections of retrieved files, for a server that stops: they would keep it waiting after [`Self::run`] was
    /// dropped.
    pub fn stop(&self) {
        if let Some(inspector) = &self.inspector {
            inspector.stop();
        }
    }

    /// Does what is due, from now on. Never ends. It may be dropped at any time.
    pub async fn run(self: Arc<Self>) {
        let mut running = JoinSet::new();
        let mut looked: Option<Instant> = None;
        loop {
            while running.try_join_next().is_some() {}
            let room = Room {
                jobs: limits::MAX_CONNECTOR_JOBS.saturating_sub(running.len()),
                per_account: limits::CONNECTOR_JOBS_OF_ACCOUNT,
                running: self.running.all(),
            };
            let mut has_more = false;
            if looked.is_none_or(|at| at.elapsed() >= limits::CONNECTOR_OVERDUE) {
                looked = Some(Instant::now());
                let (service, clock, room) = (self.service.clone(), self.clock, room.clone());
                let ended = blocking(move || service.connector_overdue(&clock, &room)).await;
                if let Err(error) = ended {
                    tracing::error!(
                        error,
                        "the jobs of connectors whose time is over cannot be read"
                    );
                }
            }
            if room.jobs > 0 {
                let (service, clock) = (self.service.clone(), self.clock);
                // The leases begin after this.
                let since = Instant::now();
                let taken = blocking(move || service.connector_jobs(&clock, &room)).await;
                match taken {
                    Ok(jobs) => {
                        has_more = !jobs.is_empty();
                        for job in jobs {
                            let place = self.running.enter(&job);
                            running.spawn(self.clone().job(Arc::new(job), since, place));
                        }
                    }
                    Err(error) => {
                        tracing::error!(
                            error,
                            "the jobs of connectors that are due cannot be read"
                        );
                    }
                }
            }
            // Jobs often come in rows, and the next one of a connector may begin when the one before it ends.
            let pause = limits::CONNECTOR_SEARCH / if has_more { 10 } else { 1 };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                Some(_) = running.join_next(), if !running.is_empty() => {}
            }
        }
    }

    async fn job(self: Arc<Self>, job: Arc<Job>, since: Instant, _place: Place) {
        let result = tokio::select! {
            result = self.work(&job) => result,
            () = self.keep(&job, since) => Err(Stopped::Lost),
        };
        let result = match result {
            Ok(finish) => Ok(finish),
            Err(Stopped::Failed(failure)) => {
                tracing::info!(
                    connector = job.connector_arn,
                    job = job.id,
                    code = failure.code.name(),
                    message = failure.message,
                    "a job of a connector failed"
                );
                Err(failure)
            }
            Err(Stopped::Lost) => {
                tracing::warn!(
                    connector = job.connector_arn,
                    job = job.id,
                    "the lease of a connector's job is lost; the next holder goes on"
                );
                return;
            }
        };
        let (service, clock, ended) = (self.service.clone(), self.clock, job.clone());
        let noted = blocking(move || service.connector_ended(&ended, &result, clock())).await;
        if let Err(error) = noted {
            tracing::error!(
                connector = job.connector_arn,
                job = job.id,
                error,
                "the end of a connector's job is lost; the job is repeated"
            );
        }
    }

    /// Renews the lease, which began after `since`; ends when it is lost, or soon may be.
    async fn keep(&self, job: &Arc<Job>, since: Instant) {
        let renew = || {
            let (service, clock, held) = (self.service.clone(), self.clock, job.clone());
            blocking(move || service.connector_renew(&held, clock()))
        };
        let warn = |error: &str| {
            tracing::warn!(
                connector = job.connector_arn,
                job = job.id,
                error,
                "the lease of a connector's job cannot be renewed"
            );
        };
        LeaseTimes::default().keep(since, renew, warn).await;
    }

    async fn work(&self, job: &Arc<Job>) -> Result<Finish, Stopped> {
        let (service, clock, opened) = (self.service.clone(), self.clock, job.clone());
        let opening = spawn_blocking(move || service.connector_open(&opened, clock()));
        let opened = opening.await.unwrap_or_else(|error| {
            tracing::error!(connector = job.connector_arn, job = job.id, %error, "a connector cannot be read");
            Err(Refused::Lost)
        });
        let (endpoint, account) = opened.map_err(|refused| match refused {
            Refused::Failure(failure) => Stopped::Failed(failure),
            Refused::Lost => Stopped::Lost,
            // It may pass: the job is begun again, and not for ever.
            Refused::Fault(fault) => {
                tracing::error!(connector = job.connector_arn, job = job.id, %fault, "a connector cannot be read");
                Stopped::Lost
            }
        })?;
        // The connectors of one account leave memory to those of others.
        let buckets = OfUser::new(self.storage.buckets.clone(), job.scope.account.as_str());
        let storage = Storage { buckets: Arc::new(buckets), ..self.storage.clone() };
        let home = Home::new(account, storage, self.clock);
        let local = Local::of(home, self.inspector.as_ref());
        let transfer = |files, way| self.transfer(job, &endpoint, &local, files, way);
        match &job.task {
            Task::Send { files, to } => transfer(files, Way::Send(to.as_deref())).await,
            Task::Retrieve { files, to } => transfer(files, Way::Retrieve(to)).await,
            Task::List { from, max_items, output } => {
                let mut remote = self.outbound.connect(&endpoint).await?;
                let listed = listing::list(&mut remote, from, *max_items).await?;
                remote.end().await;
                Ok(listed.store(&local, output).await?)
            }
            Task::Delete { path } => {
                let mut remote = self.outbound.connect(&endpoint).await?;
                remote::delete(&mut remote, path).await?;
                remote.end().await;
                Ok(Finish::Done)
            }
            Task::Move { from, to } => {
                let mut remote = self.outbound.connect(&endpoint).await?;
                remote::rename(&mut remote, from, to).await?;
                remote.end().await;
                Ok(Finish::Done)
            }
        }
    }

    /// Transfers files over as many connections as the job may have.
    async fn transfer(
        &self,
        job: &Arc<Job>,
        endpoint: &Endpoint,
        local: &Local,
        files: &[FileTask],
        way: Way<'_>,
    ) -> Result<Finish, Stopped> {
        let waiting: VecDeque<_> =
            files.iter().enumerate().filter(|(_, file)| !file.is_done).map(|(at, _)| at).collect();
        let most = usize::try_from(endpoint.max_connections).unwrap_or(1).max(1);
        let connections = most.min(waiting.len());
        let transfer = Transfer { job, endpoint, local, files, way, waiting: Mutex::new(waiting) };
        let ended = join_all((0..connections).map(|_| self.connection(&transfer))).await;
        let mut failure = None;
        for outcome in ended {
            match outcome {
                Ok(()) => {}
                Err(Stopped::Failed(why)) => failure = Some(why),
                Err(Stopped::Lost) => return Err(Stopped::Lost),
            }
        }
        // What one connection could not do, others may have done.
        match failure.filter(|_| transfer.has_more()) {
            Some(failure) => Err(failure.into()),
            None => Ok(Finish::Done),
        }
    }

    /// Transfers files over one connection at a time, until none is left or there is no connection.
    async fn connection(&self, transfer: &Transfer<'_>) -> Result<(), Stopped> {
        let mut open: Option<Remote> = None;
        while transfer.has_more() {
            let mut remote = match open.take() {
                Some(remote) => remote,
                None => self.outbound.connect(transfer.endpoint).await?,
            };
            let Some(index) = transfer.next() else {
                open = Some(remote);
                break;
            };
            let began_ms = (self.clock)();
            let (path, local) = (&transfer.files[index].path, transfer.local);
            let (result, is_over) = match transfer.way {
                Way::Send(to) => files::send(&mut remote, local, path, to).await,
                Way::Retrieve(to) => files::retrieve(&mut remote, local, path, to).await,
            };
            if !is_over {
                open = Some(remote);
            }
            let outcome = FileOutcome { index, began_ms, result };
            let (service, clock, job) = (self.service.clone(), self.clock, transfer.job.clone());
            match blocking(move || service.connector_file(&job, &outcome, clock())).await {
                Ok(true) => {}
                Ok(false) => return Err(Stopped::Lost),
                Err(error) => {
                    tracing::error!(
                        connector = transfer.job.connector_arn,
                        job = transfer.job.id,
                        error,
                        "the result of a connector's file is lost; the file is transferred again"
                    );
                    return Err(Stopped::Lost);
                }
            }
        }
        if let Some(remote) = open {
            remote.end().await;
        }
        Ok(())
    }
}

impl Transfer<'_> {
    fn has_more(&self) -> bool {
        !self.waiting.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    fn next(&self) -> Option<usize> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

/// Runs what waits for the disk on a thread of its own.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> Result<T, String> {
    match spawn_blocking(work).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(fault)) => Err(fault.to_string()),
        Err(error) => Err(error.to_string()),
    }
}
