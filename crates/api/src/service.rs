//! From a request to a response and the transaction that must be durable before it is sent.

mod alone;
mod answers;
mod bucket;
mod clock;
mod connectors;
mod elsewhere;
pub mod events;
mod housekeeping;
mod plain;
mod publish;
pub mod published;
mod rates;
pub mod readiness;
mod revocation;
mod rotation;
mod route;
mod session;
pub mod sftp;
mod shared;
mod strangers;
mod trail;
pub mod tsa;
mod watched;
mod workflows;

use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use http::{HeaderMap, Method};
use outlast_crypto::pace;
use outlast_domain::arn::Scope;
use outlast_domain::change::change;
use outlast_domain::identity::session::SessionCertificate;
use outlast_domain::identity::{self, Caller, Credential, Identity, PolicyCache};
use outlast_domain::keyring::KeyRing;
use outlast_domain::kms::{self, LastUse};
use outlast_domain::policy::ConditionKeys;
use outlast_domain::quotas::Quotas;
use outlast_domain::seal::RootKey;
use outlast_domain::settings::Settings;
use outlast_domain::work::Work;
use outlast_domain::{Fault, ids, records, register, rolesanywhere};
use outlast_store::cache::CachedStore;
use outlast_store::driver::{Attempt, drive_and_wait};
use outlast_store::{Store, StoreError, Transaction};

pub use clock::Reading;
pub use connectors::Room;
pub use plain::{Plain, PlainStep, Question, Signed, Signing, busy, too_large};
pub use publish::Sink;
pub use route::Route;
pub use shared::http_date;

use crate::audit::{Event, Notes, TlsDetails};
use crate::call::Call;
use crate::outside::{Errand, Need, Outside, Reply};
use crate::wire::sigv4::{Claim, Parts};
use crate::wire::{ApiError, Payload, Protocol};

/// All services on one store.
pub struct Service {
    /// The store behind a cache of the records that requests read; each request's commit verifies them.
    store: Arc<dyn Store>,
    /// The store without the cache, for housekeeping.
    fresh: Arc<dyn Store>,
    root: RootKey,
    ring: KeyRing,
    policies: PolicyCache,
    settings: RwLock<Arc<Settings>>,
    quotas: OnceLock<Quotas>,
    revocation: plain::State,
    trail: trail::State,
    clock: clock::State,
    timestamping: tsa::State,
    sftp: sftp::State,
    connectors: connectors::State,
    workflows: workflows::State,
}

/// A complete request, body included.
pub struct Request<'a> {
    /// Method.
    pub method: &'a Method,
    /// Path.
    pub path: &'a str,
    /// Query string without the question mark.
    pub query: &'a str,
    /// Host and port.
    pub host: &'a str,
    /// Headers.
    pub headers: &'a HeaderMap,
    /// Body.
    pub body: &'a [u8],
    /// Address of the caller.
    pub source_ip: &'a str,
    /// What the connection negotiated.
    pub tls: Option<&'a TlsDetails>,
    /// Milliseconds since 1970.
    pub now_ms: i64,
    /// Id of the request, a UUID.
    pub request_id: &'a str,
}

impl<'a> Request<'a> {
    fn parts(&self) -> Parts<'a> {
        Parts {
            method: self.method.as_str(),
            path: self.path,
            query: self.query,
            host: self.host,
            headers: self.headers,
            body: self.body,
        }
    }
}

/// A response. There is no `Debug`: the body may hold a plaintext.
#[derive(Clone, PartialEq, Eq)]
pub struct Response {
    /// HTTP status.
    pub status: u16,
    /// `Content-Type`.
    pub content_type: &'static str,
    /// Whether the response has the header `smithy-protocol: rpc-v2-cbor`.
    pub is_cbor: bool,
    /// Error type for `x-amzn-errortype`, if it is one.
    pub error: Option<&'static str>,
    /// Body.
    pub body: Vec<u8>,
}

/// The next step.
pub enum Step {
    /// Send this.
    Respond(Response),
    /// Commit, and send what [`Prepared::settle`] makes of the outcome; on a conflict prepare again.
    Commit(Box<Prepared>),
    /// Another operation changed the same records meanwhile: prepare again.
    Again,
    /// The call takes long and was tried under a time limit ([`outlast_crypto::pace`]): prepare it again when it is
    /// the turn of the user or role with this ARN, which signed it.
    TakesLong(String),
    /// Somebody outside must be asked: prepare again with the reply ([`Service::prepare_with`]).
    Ask(Box<Asking>),
}

/// What a call has to ask outside.
pub struct Asking {
    /// What to ask.
    pub errand: Errand,
    /// The response of callers that cannot ask.
    pub otherwise: Response,
}

/// A call that was carried out except for its commit.
pub struct Prepared {
    /// Changes and event that must be durable before the response is sent.
    pub transaction: Transaction,
    /// The response.
    pub response: Response,
    /// ARN of the caller; of a session, its role's.
    pub principal: String,
    route: Route,
}

impl From<Step> for Attempt<Box<Prepared>, Response> {
    /// For callers that can wait for long work.
    fn from(step: Step) -> Self {
        match step {
            Step::Respond(response) => Self::Done(response),
            Step::Again | Step::TakesLong(_) => Self::Again,
            Step::Ask(asking) => Self::Done(asking.otherwise),
            Step::Commit(mut prepared) => {
                Self::Commit(std::mem::take(&mut prepared.transaction), prepared)
            }
        }
    }
}

impl Prepared {
    /// Returns the answer, given the outcome of the commit.
    pub fn settle(self: Box<Self>, outcome: Result<(), StoreError>) -> Response {
        match outcome {
            Ok(()) => self.response,
            Err(error) => {
                tracing::error!(operation = self.route.row.name, %error, "a commit failed");
                self.route.failure(&self.route.fault(error.into()))
            }
        }
    }
}

impl Service {
    /// All services on `store`, whose secrets are sealed under `root`.
    pub fn new(store: Arc<dyn Store>, root: RootKey) -> Self {
        let revocation = plain::State::default();
        let trail = trail::State::default();
        let watches = watched::Watches {
            changes: revocation.changes.clone(),
            guard: trail.guard.clone(),
            stamps: root.stamps().clone(),
        };
        let store: Arc<dyn Store> = Arc::new(watched::Watched::new(store, watches));
        Self {
            store: Arc::new(CachedStore::new(store.clone()).remembering(records::is_often_absent)),
            fresh: store,
            root,
            ring: KeyRing::default(),
            policies: PolicyCache::default(),
            settings: RwLock::default(),
            quotas: OnceLock::new(),
            revocation,
            trail,
            clock: clock::State::default(),
            timestamping: tsa::State::default(),
            sftp: sftp::State::default(),
            connectors: connectors::State::default(),
            workflows: workflows::State::default(),
        }
    }

    /// Learns from the new audit events which records are the newest, including those that other processes wrote, so
    /// that an older record that is put back is refused.
    pub fn follow_events(&self, now_ms: i64) -> Result<(), Fault> {
        change(
            self.store.as_ref(),
            || self.work(now_ms),
            |work| Ok((register::follow(work)?, Vec::new())),
        )
    }

    /// Sets the quotas of each account. A second call has no effect.
    pub fn set_quotas(&self, quotas: Quotas) {
        // Work that has begun keeps the quotas it began with.
        let _ = self.quotas.set(quotas);
    }

    /// Sets the URLs at which clients reach this server.
    pub fn set_settings(&self, settings: Settings) {
        *self.settings.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
    }

    /// The URLs at which clients reach this server.
    pub fn settings(&self) -> Arc<Settings> {
        self.settings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Loaded keys.
    pub(crate) fn ring(&self) -> &KeyRing {
        &self.ring
    }

    /// Parsed policies.
    pub(crate) fn policies(&self) -> &PolicyCache {
        &self.policies
    }

    /// The root keys.
    pub fn root(&self) -> &RootKey {
        &self.root
    }

    /// A unit of work outside any request, for the service's own housekeeping.
    pub fn work(&self, now_ms: i64) -> Work<'_> {
        self.limited(Work::new(self.fresh.as_ref(), &self.root, now_ms))
    }

    /// A unit of work of a request. Its reads may be stale until its commit has verified them.
    pub(crate) fn request_work(&self, now_ms: i64) -> Work<'_> {
        self.limited(Work::new(self.store.as_ref(), &self.root, now_ms))
    }

    fn limited<'a>(&'a self, work: Work<'a>) -> Work<'a> {
        let work = work.under(self.settings());
        match self.quotas.get() {
            Some(quotas) => work.limited(quotas),
            None => work,
        }
    }

    /// Whether the head of a request names a caller that is known; the body is not read.
    pub fn admit(&self, route: Route, request: &Request<'_>) -> Result<(), Response> {
        let attempt = || {
            let mut work = self.request_work(request.now_ms);
            match find_caller(&mut work, &self.policies, route, request) {
                Ok(_) => Ok(()),
                Err(error) => Err(refused(&work, route, error)),
            }
        };
        let mut outcome = attempt();
        // By now the cache has dropped the stale records.
        if outcome.as_ref().is_err_and(ApiError::is_conflict) {
            outcome = attempt();
        }
        outcome.map_err(|error| {
            if let Some(fault) = &error.fault {
                tracing::error!(operation = route.row.name, %fault, "a caller could not be identified");
            }
            route.failure(&error)
        })
    }

    /// Carries a request out, except for the commit.
    pub fn prepare(&self, route: Route, request: &Request<'_>) -> Step {
        self.prepare_with(route, request, None)
    }

    /// The same with the reply to [`Step::Ask`].
    pub fn prepare_with<'a>(
        &'a self,
        route: Route,
        request: &Request<'_>,
        reply: Option<&'a Reply>,
    ) -> Step {
        let mut principal = None;
        let mut outside = Outside::with(reply);
        let prepared = self.try_prepare(route, request, &mut principal, &mut outside);
        if let Err(error) = &prepared
            && !error.is_conflict()
            && let Some(need) = outside.need()
        {
            let otherwise = route.refusal(error, request.request_id);
            let errand = match need {
                Need::Errand(errand) => errand,
                Need::Connection(connector) => {
                    match self.connection_test(&connector, request.now_ms) {
                        Ok(endpoint) => Errand::Connection(Box::new(endpoint)),
                        // Nobody needs to be asked any more.
                        Err(failure) => {
                            let reply = Reply::Connection(Err(failure));
                            return self.prepare_with(route, request, Some(&reply));
                        }
                    }
                }
            };
            return Step::Ask(Box::new(Asking { errand, otherwise }));
        }
        match prepared {
            Ok(prepared) => Step::Commit(Box::new(prepared)),
            Err(error) if error.is_conflict() => Step::Again,
            Err(error) if error.takes_long() => Step::TakesLong(principal.unwrap_or_default()),
            Err(error) => {
                if let Some(fault) = &error.fault {
                    tracing::error!(operation = route.row.name, %fault, "an operation failed");
                }
                Step::Respond(route.refusal(&error, request.request_id))
            }
        }
    }

    /// Carries a request out and waits for the commit. Servers wait on their runtime instead.
    pub fn call(&self, request: &Request<'_>) -> Response {
        let route = match Route::find(request.method, request.path, request.headers) {
            Ok(route) => route,
            Err(response) => return response,
        };
        let route = match route.resolve(request.body) {
            Ok(route) => route,
            Err(response) => return response,
        };
        let prepare = || self.prepare(route, request).into();
        drive_and_wait(self.store.as_ref(), prepare, Prepared::settle)
            .unwrap_or_else(|| self.contended(route))
    }

    /// The answer after [`MAX_ATTEMPTS`](outlast_store::driver::MAX_ATTEMPTS) conflicts.
    pub fn contended(&self, route: Route) -> Response {
        route.failure(&route.fault(StoreError::Conflict.into()))
    }

    /// Prepares a request once; notes its signer in `signed_by` as soon as the signature is verified.
    fn try_prepare<'a>(
        &'a self,
        route: Route,
        request: &Request<'_>,
        signer: &mut Option<String>,
        outside: &mut Outside<'a>,
    ) -> Result<Prepared, ApiError> {
        let mut work = self.request_work(request.now_ms);
        if route.is_session() {
            return self.try_session(work, route, request, signer);
        }
        let (caller, certificate, region) = match self.authenticate(&mut work, route, request) {
            Ok(known) => known,
            Err(error) => return Err(refused(&work, route, error)),
        };
        let principal = caller.principal.role_arn().unwrap_or_else(|| caller.principal.arn());
        *signer = Some(principal.clone());
        if route.row.slow {
            pace::take_long().map_err(|error| route.fault(error.into()))?;
        }
        let scope = Scope { account: caller.principal.account.clone(), region };
        let event_id = ids::event_id(request.now_ms).map_err(|fault| route.fault(fault))?;
        let conditions = conditions(&caller, &scope, request);
        let mut call = Call {
            work,
            ring: &self.ring,
            policies: &self.policies,
            settings: self.settings(),
            caller,
            certificate,
            scope,
            conditions,
            tokens: Vec::new(),
            notes: Notes::default(),
            used: Vec::new(),
            forwarded: Vec::new(),
            reports: Vec::new(),
            outside: std::mem::take(outside),
        };
        let payload = Payload { path: request.path, query: request.query, body: request.body };
        let mut outcome = (route.row.run)(&mut call, route.protocol, payload);
        *outside = std::mem::take(&mut call.outside);
        if let Some(error) = outcome.as_ref().err().filter(|_| outside.needs_something()) {
            // It did not end: there is nothing to record yet.
            return Err(refused(&call.work, route, error.clone()));
        }
        let mut used: Vec<_> = std::mem::take(&mut call.used)
            .into_iter()
            .map(|key| (key, route.row.name, event_id.clone()))
            .collect();
        let mut forwarded = Vec::new();
        for mut made in std::mem::take(&mut call.forwarded) {
            let id = ids::event_id(request.now_ms).map_err(|fault| route.fault(fault))?;
            used.extend(made.key.take().map(|key| (key, made.name, id.clone())));
            forwarded.push((made, id));
        }
        if outcome.is_ok() {
            for (key, operation, event_id) in used {
                let last = LastUse {
                    operation: operation.to_owned(),
                    at_ms: request.now_ms,
                    event_id,
                    request_id: request.request_id.to_owned(),
                };
                if let Err(fault) = kms::record_use(&mut call.work, &key, &last) {
                    outcome = Err(route.fault(fault));
                }
            }
        }
        let error = outcome.as_ref().err();
        if let Some(error) = error.filter(|error| error.fault.is_some()) {
            return Err(refused(&call.work, route, error.clone()));
        }
        let event = Event {
            now_ms: request.now_ms,
            event_id: &event_id,
            request_id: request.request_id,
            source: route.service.model.event_source,
            name: route.row.name,
            region: &call.scope.region,
            read_only: route.row.read_only,
            actor: (&call.caller.principal).into(),
            source_ip: request.source_ip,
            user_agent: header_text(request.headers, "user-agent"),
            host: request.host,
            tls: request.tls,
            notes: &call.notes,
            error,
            invoked_by: None,
        }
        .to_json();
        let mut events = vec![event];
        events.extend(forwarded.iter().map(|(made, event_id)| {
            Event {
                now_ms: request.now_ms,
                event_id,
                request_id: request.request_id,
                source: made.service.event_source,
                name: made.name,
                region: &made.region,
                read_only: true,
                actor: (&call.caller.principal).into(),
                source_ip: made.by.unwrap_or(request.source_ip),
                user_agent: made.by.unwrap_or(header_text(request.headers, "user-agent")),
                host: if made.by.is_some() { "" } else { request.host },
                tls: request.tls.filter(|_| made.by.is_none()),
                notes: &made.notes,
                error: made.error.as_ref(),
                invoked_by: made.by,
            }
            .to_json()
        }));
        if outcome.is_ok() {
            events.extend(
                connectors::events(&call.reports, request.now_ms)
                    .map_err(|fault| refused(&call.work, route, route.fault(fault)))?,
            );
        }
        let (transaction, response) = match outcome {
            Ok(body) => (
                call.work.into_transaction(events),
                Response {
                    status: route.row.http.status,
                    content_type: route.protocol.response_type(),
                    is_cbor: route.protocol == Protocol::RpcV2Cbor,
                    error: None,
                    body: route.protocol.enclose(
                        body,
                        route.row.name,
                        route.service.model.namespace,
                        request.request_id,
                    ),
                },
            ),
            // A refused call changes nothing, whatever it wrote before it failed; its event is recorded nevertheless.
            Err(error) => {
                (call.work.into_refusal(events), route.refusal(&error, request.request_id))
            }
        };
        Ok(Prepared { transaction, response, principal, route })
    }

    /// The signer of a request, the certificate of its session, and the Region that it signed for.
    fn authenticate(
        &self,
        work: &mut Work<'_>,
        route: Route,
        request: &Request<'_>,
    ) -> Result<(Caller, Option<SessionCertificate>, String), ApiError> {
        let (claim, credential) = find_caller(work, &self.policies, route, request)?;
        claim.verify(&request.parts(), &credential.secret)?;
        self.check_session(work, &credential).map_err(|error| match error.fault {
            Some(fault) => route.fault(fault),
            None => error,
        })?;
        Ok((credential.caller, credential.certificate, claim.region))
    }

    /// Checks that a session has not ended: its time, and its certificate if it began with one and the operator wants that.
    fn check_session(&self, work: &mut Work<'_>, credential: &Credential) -> Result<(), ApiError> {
        let mut ended = credential.expires_ms.is_some_and(|expires| expires <= work.now_ms());
        if let Some(certificate) = &credential.certificate
            && !ended
            && self.settings().end_sessions_on_revocation
        {
            ended = rolesanywhere::has_ended(work, certificate)?;
        }
        if !ended {
            return Ok(());
        }
        Err(ApiError::new(
            "ExpiredTokenException",
            "The security token included in the request is expired",
        ))
    }
}

/// The answer of a call without a commit. A commit would verify the records that were read, so this verifies them. A stale
/// record makes the request run again; a record that another call deleted meanwhile is no damage.
fn refused(work: &Work<'_>, route: Route, error: ApiError) -> ApiError {
    let by_records = matches!(error.fault, None | Some(Fault::Damaged(_) | Fault::Forged(_)));
    match if by_records { work.is_current() } else { Ok(true) } {
        Ok(true) => error,
        Ok(false) => route.fault(StoreError::Conflict.into()),
        Err(fault) => route.fault(fault),
    }
}

/// The signer that the head of a request names; not verified yet.
fn find_caller(
    work: &mut Work<'_>,
    policies: &PolicyCache,
    route: Route,
    request: &Request<'_>,
) -> Result<(Claim, Credential), ApiError> {
    let claim = Claim::parse(&request.parts(), work.now())?;
    let unknown = || {
        ApiError::new(
            "UnrecognizedClientException",
            "The security token included in the request is invalid.",
        )
    };
    if claim.service != route.service.model.signing_name {
        return Err(ApiError::new(
            "InvalidSignatureException",
            format!(
                "Credential should be scoped to correct service: '{}'.",
                route.service.model.signing_name
            ),
        ));
    }
    let token = match request.headers.get("x-amz-security-token").map(|value| value.to_str()) {
        None => None,
        Some(Ok(token)) => Some(token),
        Some(Err(_)) => return Err(unknown()),
    };
    let credential = identity::find_credential(work, policies, &claim.access_key_id)
        .map_err(|fault| route.fault(fault))?
        .filter(|credential| credential.takes_token(token))
        .ok_or_else(unknown)?;
    Ok((claim, credential))
}

/// The condition keys of every request (IAM user guide, "AWS global condition context keys"), and
/// `outlast:KeyExchange`, `outlast:TlsVersion` and `outlast:ClientCertificateSubject`, which describe the connection
/// and its peer.
pub(crate) fn conditions(caller: &Caller, scope: &Scope, request: &Request<'_>) -> ConditionKeys {
    let principal = &caller.principal;
    let mut keys = ConditionKeys::new();
    keys.set_time(request.now_ms);
    keys.set("aws:SourceIp", request.source_ip);
    keys.set("aws:SecureTransport", if request.tls.is_some() { "true" } else { "false" });
    keys.set("aws:PrincipalArn", principal.role_arn().unwrap_or_else(|| principal.arn()));
    keys.set("aws:PrincipalAccount", principal.account.as_str());
    keys.set("aws:userid", principal.unique_id());
    keys.set("aws:RequestedRegion", scope.region.as_str());
    match &principal.identity {
        Identity::User { name, .. } => {
            keys.set("aws:PrincipalType", "User");
            keys.set("aws:username", name.as_str());
        }
        Identity::Session { issued_ms, .. } => {
            keys.set("aws:PrincipalType", "AssumedRole");
            let issued = outlast_pki::time::rfc3339(issued_ms.div_euclid(1000));
            keys.set("aws:TokenIssueTime", issued);
        }
    }
    keys.set_tags("aws:PrincipalTag", &caller.tags);
    if let Some(name) = &caller.source_identity {
        keys.set("aws:SourceIdentity", name.as_str());
    }
    let user_agent = header_text(request.headers, "user-agent");
    if !user_agent.is_empty() {
        keys.set("aws:UserAgent", user_agent);
    }
    let referer = header_text(request.headers, "referer");
    if !referer.is_empty() {
        keys.set("aws:referer", referer);
    }
    if let Some(tls) = request.tls {
        keys.set("outlast:TlsVersion", tls.version.as_str());
        if let Some(group) = &tls.key_exchange {
            keys.set("outlast:KeyExchange", group.as_str());
        }
        if let Some(client) = &tls.client_certificate {
            keys.set("outlast:ClientCertificateSubject", client.subject.as_str());
        }
    }
    keys
}

pub(crate) fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}
