//! Workflows of SFTP servers: carries out the steps that are due, each under a lease that is prolonged while it runs.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use outlast_api::service::Service;
use outlast_domain::limits::EXECUTION_LEASE_MS;
use outlast_domain::transfer::{Cause, Content, Deed, Job, Outcome, StepError};
use outlast_net::connectors::LeaseTimes;
use outlast_net::server::system_clock;
use outlast_net::sftp::WorkflowFiles;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::workflow_functions::{Environment, WorkflowFunctions};

/// Executions at a time.
const AT_ONCE: usize = 128;
/// Executions of one account at a time.
const OF_ACCOUNT: usize = 32;
/// Steps at a time that touch files.
const FILES_AT_ONCE: usize = 8;
/// Those of one account at a time.
const FILES_OF_ACCOUNT: usize = 2;
/// Interval between searches for steps that are due.
const SEARCH: Duration = Duration::from_secs(1);
/// The lease of a step.
const LEASE: Duration = Duration::from_millis(EXECUTION_LEASE_MS.unsigned_abs());
/// Interval between prolongations of a lease: a third of it.
const RENEWAL: Duration = Duration::from_millis(EXECUTION_LEASE_MS.unsigned_abs() / 3);
/// Time before the end of a lease at which the step stops, so that it changes nothing when another server begins it.
const MARGIN: Duration = Duration::from_secs(2);
/// How often a step is repeated whose storage fails, each time when its lease has ended.
const REPETITIONS: u32 = 3;

/// Why a step has not succeeded.
enum Stopped {
    Failed(StepError),
    /// Another server may have it, or the store cannot be used: it is repeated.
    Lost,
}

/// What steps need.
pub(crate) struct Means {
    pub(crate) service: Arc<Service>,
    pub(crate) files: WorkflowFiles,
    pub(crate) functions: Arc<WorkflowFunctions>,
}

/// How many executions of an account run, and the account's turns at files.
type OfAccount = (usize, Arc<Semaphore>);

/// Executions that run, by account.
#[derive(Clone, Default)]
struct Running(Arc<Mutex<HashMap<String, OfAccount>>>);

impl Running {
    fn of(&self, account: &str) -> usize {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(account).map_or(0, |(count, _)| *count)
    }

    fn enter(&self, account: &str) -> Place {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let turns = || (0, Arc::new(Semaphore::new(FILES_OF_ACCOUNT)));
        let (count, turns) = all.entry(account.to_owned()).or_insert_with(turns);
        *count += 1;
        Place { running: self.clone(), account: account.to_owned(), turns: turns.clone() }
    }
}

/// One of them.
struct Place {
    running: Running,
    account: String,
    turns: Arc<Semaphore>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut all = self.running.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((count, _)) = all.get_mut(&self.account) {
            *count -= 1;
            if *count == 0 {
                all.remove(&self.account);
            }
        }
    }
}

/// Carries out what is due, until the server begins to stop. Steps that are not over then have no outcome: when their leases end, any
/// server carries them out again.
pub(crate) async fn run(means: Means, mut stopped: watch::Receiver<bool>) {
    let mut steps = JoinSet::new();
    let has_stopped = means.files.stopped.clone();
    tokio::select! {
        () = search(means, &mut steps) => {}
        // If the sender is gone, the server is stopping, too.
        _ = stopped.wait_for(|stopped| *stopped) => {}
    }
    // First: what is interrupted by the flag must not be taken for a failure.
    steps.abort_all();
    has_stopped.store(true, Ordering::Relaxed);
    while steps.join_next().await.is_some() {}
}

async fn search(means: Means, steps: &mut JoinSet<()>) {
    let (means, room) = (Arc::new(means), Arc::new(Semaphore::new(AT_ONCE)));
    let (running, threads) = (Running::default(), Arc::new(Semaphore::new(FILES_AT_ONCE)));
    loop {
        while steps.try_join_next().is_some() {}
        let (service, free) = (means.service.clone(), room.available_permits());
        let others = running.clone();
        // The leases begin after this.
        let since = Instant::now();
        let taking = move || {
            let may_take = |account: &str, taken| others.of(account) + taken < OF_ACCOUNT;
            service.workflow_jobs(system_clock(), free, &may_take)
        };
        let jobs = match tokio::task::spawn_blocking(taking).await {
            Ok(Ok(jobs)) => jobs,
            Ok(Err(fault)) => {
                tracing::error!(%fault, "the executions of workflows cannot be read");
                Vec::new()
            }
            Err(error) => {
                tracing::error!(%error, "the executions of workflows cannot be read");
                Vec::new()
            }
        };
        for job in jobs {
            let Ok(slot) = room.clone().acquire_owned().await else { return };
            let place = running.enter(&job.execution.scope().account);
            let (means, threads) = (means.clone(), threads.clone());
            steps.spawn(async move {
                let mut next = Some((job, since));
                while let Some((job, since)) = next {
                    next = means.clone().step(Arc::new(job), since, &place, &threads).await;
                }
                drop((slot, place));
            });
        }
        tokio::time::sleep(SEARCH).await;
    }
}

impl Means {
    /// Carries out a step whose lease began after `since`; the next one of the same execution, if it is due, with the same time.
    async fn step(
        self: Arc<Self>,
        job: Arc<Job>,
        since: Instant,
        place: &Place,
        threads: &Semaphore,
    ) -> Option<(Job, Instant)> {
        let lost = Arc::new(AtomicBool::new(false));
        // Ends with this step, even if it is aborted.
        let mut kept = JoinSet::new();
        kept.spawn(self.clone().keep(job.clone(), since, lost.clone()));
        let is_custom = matches!(job.step.what, Deed::Custom { .. });
        let worked = match self.pin(&job).await {
            Err(stopped) => Err(stopped),
            Ok(()) if is_custom => tokio::select! {
                called = self.call(&job) => called.map(|()| None).map_err(Stopped::Failed),
                // Another server may call it.
                Some(_) = kept.join_next() => Err(Stopped::Lost),
            },
            Ok(()) => {
                let files = self.files.of_step(lost.clone());
                self.touch(files, job.clone(), place, threads).await
            }
        };
        drop(kept);
        if self.files.stopped.load(Ordering::Relaxed) {
            return None;
        }
        let outcome = match worked {
            Ok(copy) => Ok(copy),
            Err(Stopped::Failed(error)) if !lost.load(Ordering::Relaxed) => Err(error),
            Err(_) => {
                let (workflow, execution) = (job.execution.workflow_arn(), job.execution.id());
                tracing::warn!(
                    workflow,
                    execution,
                    "a step of a workflow is not over; it is repeated"
                );
                return None;
            }
        };
        let service = self.service.clone();
        let since = Instant::now();
        let noting = move || {
            let now_ms = system_clock();
            match outcome {
                Ok(_) if is_custom => service.workflow_called(&job, now_ms).map(|()| None),
                Ok(None) => service.workflow_outcome(&job, &Outcome::Done, now_ms),
                Ok(Some(copy)) => service.workflow_outcome(&job, &Outcome::Copied(copy), now_ms),
                Err(error) => service.workflow_outcome(&job, &Outcome::Failed(error), now_ms),
            }
        };
        match tokio::task::spawn_blocking(noting).await {
            Ok(Ok(next)) => next.map(|job| (job, since)),
            Ok(Err(fault)) => {
                tracing::error!(%fault, "the outcome of a workflow's step is lost; it is repeated");
                None
            }
            Err(error) => {
                tracing::error!(%error, "the outcome of a workflow's step is lost; it is repeated");
                None
            }
        }
    }

    /// Finds out what the file of a step is, if no step has yet, and records it.
    async fn pin(&self, job: &Arc<Job>) -> Result<(), Stopped> {
        if job.content.get().is_some() {
            return Ok(());
        }
        let (files, service, job) = (self.files.clone(), self.service.clone(), job.clone());
        let pinning = move || {
            let content = files.look(&job).map_err(|error| stopped(&job, error))?;
            match service.workflow_pin(&job, &content, system_clock()) {
                Ok(true) => {
                    let _ = job.content.set(content);
                    Ok(())
                }
                Ok(false) => Err(Stopped::Lost),
                Err(fault) => {
                    tracing::error!(%fault, "a step of a workflow cannot be begun; it is repeated");
                    Err(Stopped::Lost)
                }
            }
        };
        let pinned = tokio::task::spawn_blocking(pinning).await;
        pinned.unwrap_or_else(|error| Err(Stopped::Failed(internal(error.to_string()))))
    }

    /// Prolongs the lease of a step, which began after `since`, until this is dropped. If the lease is lost, or soon may be, this sets
    /// `lost` and ends.
    async fn keep(self: Arc<Self>, job: Arc<Job>, since: Instant, lost: Arc<AtomicBool>) {
        let renew = || {
            let (service, job) = (self.service.clone(), job.clone());
            let renewing = move || service.workflow_renew(&job, system_clock());
            async move {
                match tokio::task::spawn_blocking(renewing).await {
                    Ok(renewed) => renewed.map_err(|fault| fault.to_string()),
                    Err(error) => Err(error.to_string()),
                }
            }
        };
        let warn = |error: &str| {
            tracing::warn!(error, "the lease of a workflow's step was not prolonged");
        };
        LeaseTimes::new(LEASE, MARGIN, RENEWAL).keep(since, renew, warn).await;
        lost.store(true, Ordering::Relaxed);
    }

    /// Carries out a step that touches files, on a thread that may block.
    async fn touch(
        &self,
        files: WorkflowFiles,
        job: Arc<Job>,
        place: &Place,
        threads: &Semaphore,
    ) -> Result<Option<Content>, Stopped> {
        // Nobody closes them.
        let _own = place.turns.acquire().await;
        let _turn = threads.acquire().await;
        let service = self.service.clone();
        let touching = move || {
            // Both may have taken long, and the role may be gone, or allow less, by now.
            let rights = service.workflow_rights(&job, system_clock()).map_err(|fault| {
                tracing::error!(%fault, "the role of a workflow cannot be read; the step is repeated");
                Stopped::Lost
            })?;
            let rights = rights.map_err(Stopped::Failed)?;
            files.carry_out(&job, &rights).map_err(|error| stopped(&job, error))
        };
        let touched = tokio::task::spawn_blocking(touching).await;
        touched.unwrap_or_else(|error| Err(Stopped::Failed(internal(error.to_string()))))
    }

    /// Calls the function of a custom step.
    async fn call(&self, job: &Arc<Job>) -> Result<(), StepError> {
        let Deed::Custom { target, .. } = &job.step.what else { return Ok(()) };
        let function = self.functions.get(target).ok_or_else(|| {
            internal(format!(
                "the function {target} is not configured: add it to the file that workflow_functions in section [sftp] of \
                 outlast.toml names, and restart the server (docs/guide/workflows.md)"
            ))
        })?;
        let (files, asked) = (self.files.clone(), job.clone());
        let checked = tokio::task::spawn_blocking(move || files.check(&asked)).await;
        checked.map_err(|error| internal(error.to_string()))??;
        let event = event(job);
        let environment = match function.has_credentials() {
            true => self.environment(job.clone(), target).await?,
            false => Environment::new(),
        };
        let seconds = job.timeout_seconds();
        let timeout = Duration::from_secs(seconds.into());
        let called =
            tokio::time::timeout(timeout, function.call(&event, &environment, timeout + RENEWAL));
        match called.await {
            Ok(called) => called.map_err(|reason| {
                // What the function said stays here: it may quote what is in the file.
                tracing::warn!(function = target, reason, "the function of a workflow has failed");
                let text = format!("the function {target} has failed; the server's log says why");
                StepError::new(Cause::CustomStepFailed, text)
            }),
            Err(_) => {
                let text = format!("the function took longer than {seconds} s");
                Err(StepError::new(Cause::Timeout, text))
            }
        }
    }

    /// What a program finds in its environment: what a function at AWS finds there, with credentials of the execution role.
    async fn environment(&self, job: Arc<Job>, target: &str) -> Result<Environment, StepError> {
        let url = self.service.settings().service_url.clone();
        let region = job.execution.scope().region.clone();
        let name = target.rsplit(":function:").next().unwrap_or_default().to_owned();
        let service = self.service.clone();
        let issuing = move || service.workflow_credentials(&job, system_clock());
        let issued = tokio::task::spawn_blocking(issuing).await;
        let denied = |text: String| StepError::new(Cause::PermissionDenied, text);
        let issued = issued.map_err(|error| internal(error.to_string()))?.map_err(denied)?;
        let text = |bytes: &[u8]| {
            String::from_utf8(bytes.to_vec()).map_err(|error| internal(error.to_string()))
        };
        Ok(vec![
            ("AWS_REGION", region.clone()),
            ("AWS_DEFAULT_REGION", region),
            ("AWS_ENDPOINT_URL", url),
            ("AWS_LAMBDA_FUNCTION_NAME", name),
            ("AWS_SECRET_ACCESS_KEY", text(issued.secret.expose())?),
            ("AWS_SESSION_TOKEN", text(issued.token.expose())?),
            ("AWS_ACCESS_KEY_ID", issued.access_key_id),
        ])
    }
}

/// The event that AWS sends to the function of a custom step.
fn event(job: &Job) -> Value {
    let execution = &job.execution;
    let entity_tag = match job.content.get() {
        Some(Content::Tag(tag)) => Some(tag),
        _ => None,
    };
    json!({
        "token": job.token,
        "serviceMetadata": {
            "executionDetails": {
                "workflowId": execution.workflow(),
                "executionId": execution.id(),
            },
            "transferDetails": {
                "sessionId": execution.session(),
                "userName": execution.user(),
                "serverId": execution.server(),
            },
        },
        "fileLocation": {
            "domain": "S3",
            "bucket": job.source.bucket,
            "key": job.source.key,
            "eTag": entity_tag,
            "versionId": null,
        },
    })
}

/// What a failure of the storage means for a step: what may be better soon is repeated a few times.
fn stopped(job: &Job, error: StepError) -> Stopped {
    if error.cause != Cause::InternalServerError || job.tries >= REPETITIONS {
        return Stopped::Failed(error);
    }
    let (workflow, reason) = (job.execution.workflow_arn(), &error.message);
    tracing::warn!(workflow, reason, "the storage fails a step of a workflow");
    Stopped::Lost
}

fn internal(text: impl Into<String>) -> StepError {
    StepError::new(Cause::InternalServerError, text)
}
