//! From a request to a response and the transaction that must be durable before it is sent.

use std::sync::Arc;

use http::{HeaderMap, Method};
use outlast_crypto::Secret;
use outlast_domain::arn::Scope;
use outlast_domain::identity::{self, Principal};
use outlast_domain::keyring::KeyRing;
use outlast_domain::seal::RootKey;
use outlast_domain::work::{Sweep, Work};
use outlast_domain::{Fault, ids};
use outlast_store::{Store, StoreError, Transaction};

use crate::audit::{Event, Notes, TlsDetails, deletion_event};
use crate::ops::{ACM_PCA, Call, KMS, Row, SERVICES, ServiceRow};
use crate::wire::sigv4::{Claim, Parts};
use crate::wire::{ApiError, Protocol};

/// How often an operation is run again when others change the same records.
pub const MAX_ATTEMPTS: u32 = 64;

type SweepStep = fn(&mut Work<'_>, &KeyRing, &str, usize) -> Result<Sweep, Fault>;

/// What is swept, and for which service.
static SWEEPS: &[(&ServiceRow, SweepStep)] = &[
    (&KMS, outlast_domain::kms::erase_expired),
    (&ACM_PCA, outlast_domain::ca::erase_expired),
    (&ACM_PCA, outlast_domain::ca::forget_tokens),
];

/// All services on one store.
pub struct Service {
    store: Arc<dyn Store>,
    root: RootKey,
    ring: KeyRing,
}

/// A request whose body has arrived.
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
    /// Whether the header `smithy-protocol: rpc-v2-cbor` goes with it.
    pub is_cbor: bool,
    /// Error type for `x-amzn-errortype`, if it is one.
    pub error: Option<&'static str>,
    /// Body.
    pub body: Vec<u8>,
}

/// What is to be done now.
pub enum Step {
    /// Send this.
    Respond(Response),
    /// Commit, and send the response if that succeeds; on a conflict prepare again; else send
    /// [`Prepared::commit_failed`].
    Commit(Box<Prepared>),
    /// Another operation changed the same records meanwhile: prepare again.
    Again,
}

/// A call that was carried out but for its commit.
pub struct Prepared {
    /// What must be durable first.
    pub transaction: Transaction,
    /// The response.
    pub response: Response,
    route: Route,
}

/// Where a request goes, known from its head alone.
#[derive(Clone, Copy)]
pub struct Route {
    service: &'static ServiceRow,
    row: &'static Row,
    protocol: Protocol,
}

impl Route {
    /// Finds the operation. The error is ready to be sent.
    pub fn find(method: &Method, path: &str, headers: &HeaderMap) -> Result<Self, Response> {
        let unknown = |protocol: Protocol| {
            let error =
                ApiError::new("UnknownOperationException", "The operation is not known here.");
            response_for(protocol, "com.amazon.coral.service", &error)
        };
        if let Some(rest) = path.strip_prefix("/service/") {
            let cbor = headers.get("smithy-protocol").is_some_and(|name| name == "rpc-v2-cbor");
            let found = rest.split_once("/operation/").and_then(|(service, operation)| {
                let service =
                    SERVICES.iter().find(|row| row.cbor && row.target_prefix == service)?;
                let row = service.operations.iter().find(|row| row.name == operation)?;
                Some(Self { service, row, protocol: Protocol::RpcV2Cbor })
            });
            return found
                .filter(|_| cbor && method == Method::POST)
                .ok_or_else(|| unknown(Protocol::RpcV2Cbor));
        }
        let target = headers.get("x-amz-target").and_then(|value| value.to_str().ok());
        let found = target.and_then(|target| target.split_once('.')).and_then(|(prefix, name)| {
            let service = SERVICES.iter().find(|row| row.target_prefix == prefix)?;
            let row = service.operations.iter().find(|row| row.name == name)?;
            Some(Self { service, row, protocol: Protocol::Json11 })
        });
        found
            .filter(|_| method == Method::POST && path == "/")
            .ok_or_else(|| unknown(Protocol::Json11))
    }

    /// Largest body that the operation takes, in bytes.
    pub fn max_body(&self) -> usize {
        self.service.max_body
    }

    /// Whether the operation may take longer than a network thread can wait.
    pub fn is_slow(&self) -> bool {
        self.row.slow
    }

    /// The answer to a body that is too large.
    pub fn too_large(&self) -> Response {
        let error = ApiError {
            status: 413,
            ..ApiError::new(
                "RequestEntityTooLargeException",
                format!("The request body is longer than {} bytes.", self.service.max_body),
            )
        };
        self.failure(&error)
    }

    /// The answer to a body that did not arrive whole and in time.
    pub fn incomplete(&self) -> Response {
        let error = ApiError {
            status: 408,
            ..ApiError::new("RequestTimeoutException", "The request body did not arrive in time.")
        };
        self.failure(&error)
    }

    fn failure(&self, error: &ApiError) -> Response {
        response_for(self.protocol, self.service.namespace, error)
    }

    fn fault(&self, fault: Fault) -> ApiError {
        ApiError::internal(self.service.internal_error, fault)
    }
}

fn response_for(protocol: Protocol, namespace: &str, error: &ApiError) -> Response {
    Response {
        status: error.status,
        content_type: protocol.content_type(),
        is_cbor: protocol == Protocol::RpcV2Cbor,
        error: Some(error.code),
        body: protocol.encode_error(error, namespace),
    }
}

impl Prepared {
    /// The answer when the commit failed for good.
    pub fn commit_failed(&self, error: StoreError) -> Response {
        tracing::error!(operation = self.route.row.name, %error, "a commit failed");
        self.route.failure(&self.route.fault(error.into()))
    }
}

impl Service {
    /// All services on `store`, whose secrets are sealed under `root`.
    pub fn new(store: Arc<dyn Store>, root: RootKey) -> Self {
        Self { store, root, ring: KeyRing::default() }
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The root keys.
    pub fn root(&self) -> &RootKey {
        &self.root
    }

    /// A unit of work outside any request, for the service's own housekeeping.
    pub fn work(&self, now_ms: i64) -> Work<'_> {
        Work::new(self.store.as_ref(), &self.root, now_ms)
    }

    /// Erases keys and CAs whose waiting period is over, and forgets old idempotency tokens. Each erasure
    /// leaves its record in the same durable step.
    pub fn erase_expired(&self, now_ms: i64) -> Result<(), Fault> {
        for (row, sweep) in SWEEPS {
            let mut after = Some(String::new());
            while let Some(from) = after {
                let mut work = self.work(now_ms);
                let step = sweep(&mut work, &self.ring, &from, 500)?;
                after = step.next;
                if !work.writes_anything() {
                    continue;
                }
                let events = step
                    .erased
                    .iter()
                    .map(|(scope, arn)| {
                        Ok(deletion_event(now_ms, &ids::uuid()?, row.event_source, scope, arn))
                    })
                    .collect::<Result<_, Fault>>()?;
                match self.store.commit_and_wait(work.into_transaction(events)) {
                    // Somebody took a deletion back meanwhile; the next sweep sees the new state.
                    Ok(()) | Err(StoreError::Conflict) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }

    /// Whether a request's head, taken for itself, may be a known caller's: the body counts for nothing here.
    pub fn admit(&self, route: Route, request: &Request<'_>) -> Result<(), Response> {
        let mut work = self.work(request.now_ms);
        find_caller(&mut work, route, request).map(|_| ()).map_err(|error| route.failure(&error))
    }

    /// Carries a request out, but for the commit.
    pub fn prepare(&self, route: Route, request: &Request<'_>) -> Step {
        match self.try_prepare(route, request) {
            Ok(prepared) => Step::Commit(Box::new(prepared)),
            Err(error) if error.is_conflict() => Step::Again,
            Err(error) => {
                if let Some(fault) = &error.fault {
                    tracing::error!(operation = route.row.name, %fault, "an operation failed");
                }
                Step::Respond(route.failure(&error))
            }
        }
    }

    /// Carries a request out and waits for the commit.
    pub fn call(&self, request: &Request<'_>) -> Response {
        let route = match Route::find(request.method, request.path, request.headers) {
            Ok(route) => route,
            Err(response) => return response,
        };
        for _ in 0..MAX_ATTEMPTS {
            match self.prepare(route, request) {
                Step::Respond(response) => return response,
                Step::Again => {}
                Step::Commit(mut prepared) => {
                    let transaction = std::mem::take(&mut prepared.transaction);
                    match self.store.commit_and_wait(transaction) {
                        Ok(()) => return prepared.response,
                        Err(StoreError::Conflict) => {}
                        Err(error) => return prepared.commit_failed(error),
                    }
                }
            }
        }
        self.contended(route)
    }

    /// The answer when [`MAX_ATTEMPTS`] were not enough.
    pub fn contended(&self, route: Route) -> Response {
        route.failure(&route.fault(StoreError::Conflict.into()))
    }

    fn try_prepare(&self, route: Route, request: &Request<'_>) -> Result<Prepared, ApiError> {
        let mut work = self.work(request.now_ms);
        let (principal, region) = authenticate(&mut work, route, request)?;
        let scope = Scope { account: principal.account.clone(), region };
        let mut call = Call { work, ring: &self.ring, principal, scope, notes: Notes::default() };
        let outcome = (route.row.run)(&mut call, route.protocol, request.body);
        let error = outcome.as_ref().err();
        if let Some(error) = error.filter(|error| error.fault.is_some()) {
            return Err(error.clone());
        }
        let event_id = ids::uuid().map_err(|fault| route.fault(fault))?;
        let event = Event {
            now_ms: request.now_ms,
            event_id: &event_id,
            request_id: request.request_id,
            source: route.service.event_source,
            name: route.row.name,
            region: &call.scope.region,
            read_only: route.row.read_only,
            principal: &call.principal,
            source_ip: request.source_ip,
            user_agent: header_text(request.headers, "user-agent"),
            host: request.host,
            tls: request.tls,
            notes: &call.notes,
            error,
        }
        .to_json();
        let (transaction, response) = match outcome {
            Ok(body) => (
                call.work.into_transaction(vec![event]),
                Response {
                    status: 200,
                    content_type: route.protocol.content_type(),
                    is_cbor: route.protocol == Protocol::RpcV2Cbor,
                    error: None,
                    body,
                },
            ),
            // A refused call changes nothing, whatever it had written by then; it is recorded all the same.
            Err(error) => (
                Transaction { events: vec![event], ..Transaction::default() },
                route.failure(&error),
            ),
        };
        Ok(Prepared { transaction, response, route })
    }
}

/// Who signed the request, and for which region.
fn authenticate(
    work: &mut Work<'_>,
    route: Route,
    request: &Request<'_>,
) -> Result<(Principal, String), ApiError> {
    let (claim, principal, secret) = find_caller(work, route, request)?;
    claim.verify(&request.parts(), &secret)?;
    Ok((principal, claim.region))
}

/// Who the request's head says has signed it; not yet verified.
fn find_caller(
    work: &mut Work<'_>,
    route: Route,
    request: &Request<'_>,
) -> Result<(Claim, Principal, Secret), ApiError> {
    let claim = Claim::parse(&request.parts(), work.now())?;
    let unknown = || {
        ApiError::new(
            "UnrecognizedClientException",
            "The security token included in the request is invalid.",
        )
    };
    // Session tokens belong to STS, which is not served: no such token is one of ours.
    if request.headers.contains_key("x-amz-security-token") {
        return Err(unknown());
    }
    if claim.service != route.service.signing_name {
        return Err(ApiError::new(
            "InvalidSignatureException",
            format!(
                "Credential should be scoped to correct service: '{}'.",
                route.service.signing_name
            ),
        ));
    }
    let (principal, secret) = identity::find_access_key(work, &claim.access_key_id)
        .map_err(|fault| route.fault(fault))?
        .ok_or_else(unknown)?;
    Ok((claim, principal, secret))
}

fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}
