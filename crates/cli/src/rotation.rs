//! Rotation of secrets: which function a `RotationLambdaARN` is, and the calls of functions that are due.

mod file;
mod own;
mod postgresql;

use std::sync::Arc;
use std::time::Duration;

use outlast_api::service::Service;
use outlast_domain::identity::session::Issued;
use outlast_domain::secrets::rotation::{Call, Outcome};
use outlast_net::invoke::invoke;
use outlast_net::server::system_clock;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::program;
use file::{Function, Kind};

pub(crate) use file::Functions;

/// Calls at a time.
const AT_ONCE: usize = 8;
/// Interval between searches for calls that are due.
const SEARCH: Duration = Duration::from_secs(1);
/// What a lease lasts longer than the call may take.
const GRACE_MS: i64 = 10_000;
/// Lease of a function that is no longer configured: its rotation fails at once.
const UNKNOWN_MS: i64 = 30_000;

/// Makes the calls that are due, from now on. Never ends. It may be dropped at any time: when the leases of unfinished calls
/// end, they are made again.
pub(crate) async fn run(service: Arc<Service>, functions: Arc<Functions>) {
    let room = Arc::new(Semaphore::new(AT_ONCE));
    loop {
        let (asked, known, free) = (service.clone(), functions.clone(), room.available_permits());
        let taking = move || {
            let lease = |function: &str| known.get(function).map_or(UNKNOWN_MS, lease_ms);
            asked.rotation_calls(system_clock(), free, &lease)
        };
        let calls = match tokio::task::spawn_blocking(taking).await {
            Ok(Ok(calls)) => calls,
            Ok(Err(fault)) => {
                tracing::error!(%fault, "the rotations that are due cannot be read");
                Vec::new()
            }
            Err(error) => {
                tracing::error!(%error, "the rotations that are due cannot be read");
                Vec::new()
            }
        };
        let has_more = !calls.is_empty();
        for call in calls {
            let (service, functions) = (service.clone(), functions.clone());
            let Ok(slot) = room.clone().acquire_owned().await else { return };
            tokio::spawn(async move {
                let outcome = match made(&service, &functions, &call).await {
                    Ok(()) => Outcome::Done,
                    Err(reason) => Outcome::Failed(reason),
                };
                let noting = move || service.rotation_outcome(&call, &outcome, system_clock());
                match tokio::task::spawn_blocking(noting).await {
                    Ok(Ok(())) => {}
                    Ok(Err(fault)) => {
                        tracing::error!(%fault, "the outcome of a rotation step is lost; it is repeated");
                    }
                    Err(error) => {
                        tracing::error!(%error, "the outcome of a rotation step is lost; it is repeated");
                    }
                }
                drop(slot);
            });
        }
        // The next step of a rotation is due at once.
        tokio::time::sleep(if has_more { SEARCH / 10 } else { SEARCH }).await;
    }
}

fn lease_ms(function: &Function) -> i64 {
    i64::from(function.timeout_seconds()) * 1000 + GRACE_MS
}

/// Makes one call.
async fn made(service: &Arc<Service>, functions: &Functions, call: &Call) -> Result<(), String> {
    let function = functions.get(&call.function).ok_or_else(|| {
        format!(
            "the function {} is not configured: add it to the file that functions in section [rotation] of outlast.toml \
             names, and restart the server (docs/guide/secrets.md)",
            call.function
        )
    })?;
    let timeout = Duration::from_secs(function.timeout_seconds().into());
    let credentials = match &function.role {
        None => None,
        Some(role) => {
            let (asked, role, call) = (service.clone(), role.clone(), call.clone());
            let issuing = move || asked.function_credentials(&role, &call, system_clock());
            let issued = tokio::task::spawn_blocking(issuing).await;
            Some(issued.map_err(|error| error.to_string())??)
        }
    };
    match &function.kind {
        Kind::Url { url, tls } => invoke(url, tls.as_ref(), &event(call), timeout).await,
        Kind::Program(words) => {
            let url = service.settings().service_url.clone();
            program::run(
                words,
                &event(call),
                &environment(call, credentials.as_ref(), &url)?,
                timeout,
            )
            .await
        }
        Kind::Postgresql(database) => {
            let credentials = credentials.ok_or("the function has no role")?;
            let own = own::Client::new(service.clone(), &call.scope.region, credentials)?;
            let rotating = postgresql::step(database, &own, call);
            tokio::time::timeout(timeout, rotating)
                .await
                .map_err(|_| format!("the step took longer than {} s", timeout.as_secs()))?
        }
    }
}

/// The event that AWS sends to a rotation function.
fn event(call: &Call) -> Value {
    json!({
        "Step": call.step.name(),
        "SecretId": call.secret_arn,
        "ClientRequestToken": call.version_id,
        "RotationToken": call.token,
    })
}

/// What a program finds in its environment: what a function at AWS finds there.
fn environment(
    call: &Call,
    credentials: Option<&Issued>,
    url: &str,
) -> Result<Vec<(&'static str, String)>, String> {
    let mut all = vec![
        ("AWS_REGION", call.scope.region.clone()),
        ("AWS_DEFAULT_REGION", call.scope.region.clone()),
        ("AWS_ENDPOINT_URL", url.to_owned()),
        ("SECRETS_MANAGER_ENDPOINT", url.to_owned()),
    ];
    if let Some(issued) = credentials {
        let text =
            |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|error| error.to_string());
        all.push(("AWS_ACCESS_KEY_ID", issued.access_key_id.clone()));
        all.push(("AWS_SECRET_ACCESS_KEY", text(issued.secret.expose())?));
        all.push(("AWS_SESSION_TOKEN", text(issued.token.expose())?));
    }
    Ok(all)
}
