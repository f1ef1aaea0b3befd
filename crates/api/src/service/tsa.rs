//! Timestamps over HTTP (RFC 3161, section 3.4): `POST /tsa`, and `/tsa/NAME` for one of several authorities.
//!
//! Each token has an event of its own, in the transaction that must be durable before the token is sent: the token's
//! serial number, policy, time and imprint, as additional data of the key's `Sign`. Unlike OCSP responses, tokens are
//! not summed up (`docs/decisions/0024-strangers-are-summed-up.md`), because an authority must be able to say later
//! which tokens it made. Rates bound what strangers can write. A refused request uses no key and leaves no event.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use http::Method;
use http::header::CONTENT_TYPE;
use outlast_crypto::digests::sha256;
use outlast_domain::arn::Scope;
use outlast_domain::certified_key::Identities;
use outlast_domain::identity::{self, Permit, action};
use outlast_domain::kms::LastUse;
use outlast_domain::limits::{self, Rate};
use outlast_domain::tsa::{self, Authority, Order, TsaError};
use outlast_domain::work::Work;
use outlast_domain::{Fault, ids, kms};
use outlast_pki::timestamp::{
    self, Accuracy, Failure, MAX_REQUEST_LEN, REQUEST_MEDIA_TYPE, RESPONSE_MEDIA_TYPE,
};
use outlast_store::StoreError;
use outlast_store::driver::{Attempt, drive_and_wait};
use serde_json::json;

use super::published::text;
use super::rates::Rates;
use super::shared::lock;
use super::{Request, Response, Service, conditions, header_text};
use crate::audit::{Event, Notes};
use crate::ops::KMS;
use crate::wire::ApiError;

/// The path of the default authority; the others' are below it.
const PATH: &str = "/tsa";

/// Whether a path belongs to time stamping.
pub fn is_path(path: &str) -> bool {
    path.strip_prefix(PATH).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Says why the clock is not synchronised, if it is not.
pub type ClockCheck = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// What the operator wants.
#[derive(Clone)]
pub struct Settings {
    /// The authorities; the first one is that of `/tsa`.
    pub authorities: Vec<Authority>,
    /// ARNs of the users and roles that may ask; everybody if there are none.
    pub callers: Vec<String>,
    /// How far the clock may be off, as tokens say.
    pub accuracy: Option<Accuracy>,
    /// Whether the times of an authority's tokens ascend strictly. Only for a store that this process alone uses.
    pub ordering: bool,
    /// Asked before each token.
    pub clock: Option<ClockCheck>,
    /// Tokens for all strangers.
    pub rate: Rate,
    /// Tokens for one of them.
    pub rate_of_peer: Rate,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            authorities: Vec::new(),
            callers: Vec::new(),
            accuracy: None,
            ordering: false,
            clock: None,
            rate: limits::TIMESTAMPS,
            rate_of_peer: limits::TIMESTAMPS_OF_PEER,
        }
    }
}

/// Settings, and what is kept in memory.
#[derive(Default)]
pub(super) struct State(RwLock<Option<Arc<Running>>>);

struct Running {
    settings: Settings,
    rates: Rates,
    identities: Identities,
    /// The last times of tokens in strict order, by the ARN of their key.
    last_ms: Mutex<HashMap<String, i64>>,
}

/// A request that may have a token.
pub struct Asked {
    running: Arc<Running>,
    /// Its index.
    authority: usize,
    request: timestamp::Request,
}

/// Result of making a token. [`Service::timestamp_settled`] finishes a commit.
pub type Stamping = Attempt<Response, Response>;

impl Service {
    /// Sets which authorities there are; none, if nobody has called it.
    ///
    /// # Errors
    /// If the store is shared by several servers and strict order is wanted.
    pub fn set_timestamping(&self, settings: Settings) -> Result<(), String> {
        if settings.ordering && self.fresh.is_remote() {
            return Err(
                "several servers on one database cannot promise an order of their tokens".into()
            );
        }
        let running = (!settings.authorities.is_empty()).then(|| {
            Arc::new(Running {
                rates: Rates::new(settings.rate, settings.rate_of_peer),
                settings,
                identities: tsa::identities(),
                last_ms: Mutex::default(),
            })
        });
        *self.timestamping.0.write().unwrap_or_else(PoisonError::into_inner) = running;
        Ok(())
    }

    /// Reads a request below `/tsa`, and counts it for its peer. Call once for each request; `peer` is `None` for one
    /// that comes from this process.
    pub fn timestamp_asked(
        &self,
        request: &Request<'_>,
        peer: Option<IpAddr>,
    ) -> Result<Asked, Response> {
        let running = self.timestamping.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(running) = running else { return Err(text(404, "not found\n")) };
        let name = request.path.strip_prefix(PATH).unwrap_or_default().trim_matches('/');
        let authorities = &running.settings.authorities;
        let authority = match name {
            "" => Some(0),
            name => authorities.iter().position(|authority| authority.name == name),
        };
        let Some(authority) = authority else {
            return Err(text(404, "there is no time-stamping authority of this name\n"));
        };
        if *request.method != Method::POST {
            let reason = "send a timestamp request with POST (RFC 3161, section 3.4)\n";
            return Err(text(405, reason));
        }
        let kind = request.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let kind = kind.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case(REQUEST_MEDIA_TYPE) {
            return Err(text(415, &format!("the content type must be {REQUEST_MEDIA_TYPE}\n")));
        }
        let parsed = timestamp::Request::parse(request.body);
        let parsed = parsed.map_err(|error| refusal(error.failure, &error.text))?;
        if let Some(authority) = authorities.get(authority) {
            // Before it is counted.
            authority.policy(&parsed).map_err(|error| refusal(error.failure, &error.text))?;
        }
        let is_open = running.settings.callers.is_empty();
        if let Some(peer) = peer.filter(|_| is_open)
            && !running.rates.admit(peer, request.now_ms)
        {
            let reason = "too many requests; try again in a few seconds";
            return Err(refusal(Failure::SystemFailure, reason));
        }
        Ok(Asked { running, authority, request: parsed })
    }

    /// Makes a token, except for the commit. Called again after a conflict, with the time of then.
    pub fn timestamp(&self, asked: &Asked, request: &Request<'_>) -> Stamping {
        let mut work = self.request_work(request.now_ms);
        match self.try_timestamp(&mut work, asked, request) {
            Ok((event, response)) => Attempt::Commit(work.into_transaction(vec![event]), response),
            // A refusal for a record that has changed meanwhile is none.
            Err(Refused::Timestamp(TsaError::Fault(Fault::Store(StoreError::Conflict)))) => {
                Attempt::Again
            }
            Err(refused) => match work.is_current() {
                Ok(true) => Attempt::Done(refused.response()),
                Ok(false) => Attempt::Again,
                Err(fault) => Attempt::Done(Refused::from(fault).response()),
            },
        }
    }

    /// The answer, once the token's event is durable, or the failure to make it so.
    pub fn timestamp_settled(
        &self,
        response: Response,
        outcome: Result<(), StoreError>,
    ) -> Response {
        match outcome {
            Ok(()) => response,
            Err(error) => Refused::from(Fault::from(error)).response(),
        }
    }

    /// Carries a request out and waits for the commit. Servers wait on their runtime instead.
    pub fn timestamp_call(&self, request: &Request<'_>, peer: Option<IpAddr>) -> Response {
        let asked = match self.timestamp_asked(request, peer) {
            Ok(asked) => asked,
            Err(response) => return response,
        };
        let prepare = || self.timestamp(&asked, request);
        let finish = |response, outcome| self.timestamp_settled(response, outcome);
        drive_and_wait(self.store.as_ref(), prepare, finish).unwrap_or_else(timestamp_contended)
    }

    fn try_timestamp(
        &self,
        work: &mut Work<'_>,
        asked: &Asked,
        request: &Request<'_>,
    ) -> Result<(Vec<u8>, Response), Refused> {
        let settings = &asked.running.settings;
        let authority = settings
            .authorities
            .get(asked.authority)
            .ok_or_else(|| TsaError::Unusable("the authority is no longer there".to_owned()))?;
        let caller = match settings.callers.is_empty() {
            true => None,
            false => Some(self.permitted(work, settings, authority, request)?),
        };
        if let Some(wrong) = self.clock_problem() {
            return Err(Refused::clock(wrong));
        }
        if let Some(check) = &settings.clock {
            check().map_err(Refused::clock)?;
        }
        let signer = tsa::signer(authority, &self.policies)?;
        let keys = conditions(&signer, authority.scope(), request);
        let order = Order {
            authority,
            request: &asked.request,
            time_ms: asked.running.time_ms(work, authority, request.now_ms)?,
            accuracy: settings.accuracy,
            ordering: settings.ordering,
            signer: &signer,
            conditions: &keys,
        };
        let identities = &asked.running.identities;
        let made = tsa::stamp(work, &self.ring, &self.policies, identities, &order)?;
        let event_id = ids::event_id(request.now_ms)?;
        let last = LastUse {
            operation: "Sign".to_owned(),
            at_ms: request.now_ms,
            event_id: event_id.clone(),
            request_id: request.request_id.to_owned(),
        };
        kms::record_use(work, &made.key, &last)?;
        if settings.ordering {
            tsa::note_time(work, &made.key, order.time_ms)?;
        }
        let mut notes = Notes::default();
        notes.parameter("keyId", authority.key.as_str());
        notes.parameter("signingAlgorithm", made.algorithm.kms_name);
        notes.resource(made.key.arn(), "AWS::KMS::Key");
        // By this the owner of the key finds the signature, as those of `Sign`.
        notes.additional("signatureSha256", hex::encode(sha256(&made.signature)));
        let imprint = &asked.request.imprint;
        notes.additional(
            "timestamp",
            json!({
                "authority": authority.name,
                "serialNumber": hex::encode(made.serial),
                "policy": made.policy.to_string(),
                "timeMs": order.time_ms,
                "digest": imprint.digest.name,
                "imprint": hex::encode(&imprint.value),
            }),
        );
        if let Some(caller) = caller {
            notes.additional("requestedBy", caller);
        }
        let event = Event {
            now_ms: request.now_ms,
            event_id: &event_id,
            request_id: request.request_id,
            source: KMS.model.event_source,
            name: "Sign",
            region: &authority.scope().region,
            read_only: true,
            actor: (&signer.principal).into(),
            source_ip: request.source_ip,
            user_agent: header_text(request.headers, "user-agent"),
            host: request.host,
            tls: request.tls,
            notes: &notes,
            error: None,
            invoked_by: Some("timestamping.outlast"),
        };
        let body = timestamp::Response::granted(&made.token).map_err(Fault::from)?;
        Ok((event.to_json(), reply(body)))
    }

    /// The principal that has signed a request, if it may have a token of this authority.
    fn permitted(
        &self,
        work: &mut Work<'_>,
        settings: &Settings,
        authority: &Authority,
        request: &Request<'_>,
    ) -> Result<String, Refused> {
        let (caller, region) = self.signed_by(work, request)?;
        let principal = caller.principal.role_arn().unwrap_or_else(|| caller.principal.arn());
        if !settings.callers.contains(&principal) {
            return Err(Refused::Caller(ApiError::new(
                "AccessDeniedException",
                format!("{principal} is not one of the callers that the operator has named"),
            )));
        }
        let scope = Scope { account: caller.principal.account.clone(), region };
        let keys = conditions(&caller, &scope, request);
        let arn = Scope { account: scope.account.clone(), ..authority.scope().clone() }
            .arn("outlast", &format!("timestamping-authority/{}", authority.name));
        let permit: Permit<action::outlast::GetTimestamp> =
            identity::authorize(&caller, &keys, action::outlast::GetTimestamp, &arn)
                .map_err(ApiError::from)?;
        permit.opens(&arn)?;
        Ok(principal)
    }
}

impl Running {
    /// The time of a token: the clock's, or later where times ascend strictly.
    fn time_ms(
        &self,
        work: &mut Work<'_>,
        authority: &Authority,
        now_ms: i64,
    ) -> Result<i64, Refused> {
        if !self.settings.ordering {
            return Ok(now_ms);
        }
        let key = tsa::key(work, authority)?;
        let arn = key.arn();
        let is_known = lock(&self.last_ms).contains_key(&arn);
        // After a restart the store knows. What was noted last is at most so far behind the last token as any token is
        // ahead of the clock.
        let noted = if is_known { None } else { tsa::last_time(work, &key)? };
        let before = noted.map_or(i64::MIN, |ms| ms.saturating_add(limits::TIMESTAMPS_AHEAD_MS));
        let mut last_ms = lock(&self.last_ms);
        let last = last_ms.entry(arn).or_insert(before);
        let time_ms = now_ms.max(last.saturating_add(1));
        if time_ms > now_ms.saturating_add(limits::TIMESTAMPS_AHEAD_MS) {
            return Err(Refused::clock(
                "the clock was set back, the server was just restarted, or there are too many requests"
                    .into(),
            ));
        }
        *last = time_ms;
        Ok(time_ms)
    }
}

/// Why there is no token.
enum Refused {
    /// The caller may not have one.
    Caller(ApiError),
    /// The clock is not good enough.
    Clock(String),
    /// Anything else.
    Timestamp(TsaError),
}

impl Refused {
    fn clock(reason: String) -> Self {
        Self::Clock(reason)
    }

    fn response(self) -> Response {
        match self {
            Self::Caller(error) => {
                if let Some(fault) = &error.fault {
                    tracing::error!(%fault, "a timestamp's caller could not be identified");
                }
                // AWS's protocols answer 400 to most of these; for clients of this one they mean that it is forbidden.
                let status = if error.status < 500 { 403 } else { error.status };
                text(status, &format!("{}: {}\n", error.code, error.message))
            }
            Self::Clock(reason) => {
                tracing::warn!(reason, "a timestamp was refused: the clock cannot be trusted");
                refusal(Failure::TimeNotAvailable, "the clock of the authority is not synchronised")
            }
            Self::Timestamp(TsaError::Refused(error)) => refusal(error.failure, &error.text),
            Self::Timestamp(TsaError::Unusable(reason)) => {
                tracing::error!(reason, "a time-stamping authority cannot sign");
                refusal(Failure::SystemFailure, "the authority cannot sign at present")
            }
            Self::Timestamp(TsaError::Fault(fault)) => {
                tracing::error!(%fault, "a timestamp could not be made");
                refusal(Failure::SystemFailure, "the authority has failed; try again later")
            }
        }
    }
}

impl From<ApiError> for Refused {
    fn from(error: ApiError) -> Self {
        match error.fault {
            Some(fault) => fault.into(),
            None => Self::Caller(error),
        }
    }
}

impl From<TsaError> for Refused {
    fn from(error: TsaError) -> Self {
        Self::Timestamp(error)
    }
}

impl From<Fault> for Refused {
    fn from(fault: Fault) -> Self {
        Self::Timestamp(fault.into())
    }
}

/// The answer when other requests changed the same records at every attempt.
pub fn timestamp_contended() -> Response {
    refusal(Failure::SystemFailure, "the records of the authority are changing; try again later")
}

/// The answer to a body that is too long or did not arrive.
pub fn timestamp_unread(status: u16) -> Response {
    match status {
        413 => refusal(
            Failure::BadRequest,
            &format!("the request is longer than {MAX_REQUEST_LEN} bytes"),
        ),
        _ => text(status, "the request did not arrive in time\n"),
    }
}

/// RFC 3161, section 3.4: HTTP has nothing to say about refusals.
fn refusal(failure: Failure, reason: &str) -> Response {
    match timestamp::refusal(failure, reason) {
        Ok(body) => reply(body),
        Err(error) => {
            tracing::error!(%error, "a refusal could not be encoded");
            text(500, "internal error\n")
        }
    }
}

fn reply(body: Vec<u8>) -> Response {
    Response { status: 200, content_type: RESPONSE_MEDIA_TYPE, is_cbor: false, error: None, body }
}
