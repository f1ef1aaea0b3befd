//! ACME's wire (RFC 8555, RFC 8737, RFC 9773): requests in JWS, answers in JSON. No I/O.
//!
//! [`Service::acme`] turns a request into an answer and the transaction that must be durable first, as
//! [`Service::prepare`] does for AWS's operations. [`jobs`] hands out the validation attempts that are due; `net`
//! opens their connections.

mod account;
pub mod jobs;
pub mod jwk;
pub mod jws;
pub mod objects;
mod order;
pub mod resource;

use outlast_crypto::CryptoError;
use outlast_domain::acme::{self, Account, AcmeError, Endpoint, Kind, Problem};
use outlast_domain::identity::Caller;
use outlast_domain::work::Work;
use outlast_domain::{Fault, ids};
use outlast_store::driver::{Attempt, drive_and_wait};
use outlast_store::{StoreError, Transaction};
use serde_json::Value;

use self::jwk::PublicKey;
use self::jws::{HS256, Jws, Signer};
use self::resource::{PREFIX, Resource, Urls};
use crate::audit::{Event, Notes};
use crate::ops::ACM;
use crate::service::{Request, Service, header_text};
use crate::wire::ApiError;

/// Bytes of a request's body at most.
pub const MAX_BODY: usize = 64 * 1024;
/// Seconds until a client should poll again.
const RETRY_AFTER: u32 = 3;
/// Seconds until a client should ask for the renewal window again: six hours, as in RFC 9773, section 4.2.
const RENEWAL_RETRY_AFTER: u32 = 21_600;

/// Answer to a request, ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// Status code.
    pub status: u16,
    /// `Content-Type`; empty if there is no body.
    pub content_type: &'static str,
    /// Other headers.
    pub headers: Vec<(&'static str, String)>,
    /// Body.
    pub body: Vec<u8>,
}

/// What the caller must do next.
pub enum Step {
    /// Send this.
    Respond(Response),
    /// Commit, and send the response if that succeeds; on a conflict begin again.
    Commit(Box<Prepared>),
    /// Another request changed the same records meanwhile: begin again.
    Again,
    /// The request takes long and was tried under a time limit ([`outlast_crypto::pace`]): begin again on a thread
    /// that may wait.
    TakesLong,
}

/// A request that has been carried out, except for its commit.
pub struct Prepared {
    /// What must be durable first.
    pub transaction: Transaction,
    /// The answer.
    pub response: Response,
    /// ARN of the account's session of its binding's role; none without an account.
    pub principal: Option<String>,
    /// Whether a validation attempt is due once the transaction is durable.
    pub has_job: bool,
}

/// Whether a path belongs to ACME.
pub fn is_path(path: &str) -> bool {
    path.starts_with(PREFIX)
}

/// Whether a request may take longer than a network thread can wait, whatever it asks: a revocation may have to
/// search many authorizations.
pub fn is_slow(path: &str) -> bool {
    path.ends_with("/revoke-cert")
}

/// The endpoint that a slow request is counted for when slow requests take turns.
pub fn principal(path: &str) -> String {
    let endpoint = path.strip_prefix(PREFIX).and_then(|rest| rest.split('/').next());
    format!("acme/{}", endpoint.unwrap_or_default())
}

/// The answer when too many slow requests of one endpoint are waiting.
pub fn throttled() -> Response {
    later("Too many slow requests to this endpoint are waiting; try again later.")
}

/// The answer to a body that is too large, or did not arrive whole and in time.
pub fn body_refused(status: u16) -> Response {
    let detail = match status {
        413 => format!("The body is longer than {MAX_BODY} bytes."),
        _ => "The body did not arrive in time.".to_owned(),
    };
    refusal(&AcmeError::malformed(detail).with_status(status))
}

impl From<Step> for Attempt<Box<Prepared>, Response> {
    /// For callers that can wait for slow work.
    fn from(step: Step) -> Self {
        match step {
            Step::Respond(response) => Self::Done(response),
            Step::Again | Step::TakesLong => Self::Again,
            Step::Commit(mut prepared) => {
                Self::Commit(std::mem::take(&mut prepared.transaction), prepared)
            }
        }
    }
}

impl Prepared {
    /// The answer, once the outcome of the commit is known.
    pub fn settle(self: Box<Self>, outcome: Result<(), StoreError>) -> Response {
        match outcome {
            Ok(()) => self.response,
            Err(error) => {
                tracing::error!(%error, "a commit for ACME failed");
                refusal(&AcmeError::Fault(error.into()))
            }
        }
    }
}

/// The answer when other requests changed the same records at every attempt.
pub fn contended() -> Response {
    later("Other requests are changing the same records; try again later.")
}

/// The answer to a request that would succeed if it were repeated in a moment.
fn later(detail: &str) -> Response {
    let mut response = refusal(&AcmeError::new(Kind::SERVER_INTERNAL, detail).with_status(503));
    response.headers.push(("retry-after", RETRY_AFTER.to_string()));
    response
}

/// What a handler returns.
struct Reply {
    status: u16,
    content_type: &'static str,
    body: Vec<u8>,
    location: Option<String>,
    /// (URL, relation)
    links: Vec<(String, &'static str)>,
    retry_after: Option<u32>,
    has_job: bool,
    /// Whether anything was changed, and must be recorded.
    changed: bool,
}

impl Reply {
    fn json(status: u16, value: &Value) -> Self {
        Self {
            status,
            content_type: "application/json",
            body: value.to_string().into_bytes(),
            location: None,
            links: Vec::new(),
            retry_after: None,
            has_job: false,
            changed: false,
        }
    }

    fn at(mut self, location: String) -> Self {
        self.location = Some(location);
        self
    }

    fn link(mut self, url: String, relation: &'static str) -> Self {
        self.links.push((url, relation));
        self
    }

    fn retry(mut self, wanted: bool) -> Self {
        self.retry_after = wanted.then_some(RETRY_AFTER);
        self
    }

    fn changed(mut self) -> Self {
        self.changed = true;
        self
    }
}

/// A signed request under way.
struct Call<'a> {
    service: &'a Service,
    request: &'a Request<'a>,
    work: Work<'a>,
    endpoint: Endpoint,
    urls: Urls,
    jws: Jws,
    /// The key that signed the request.
    key: PublicKey,
    /// The account that signed the request, once it is known.
    account: Option<Account>,
    notes: Notes,
}

impl Call<'_> {
    /// The account that signed; a request signed by a key alone has none.
    fn account(&self) -> Result<&Account, AcmeError> {
        self.account
            .as_ref()
            .ok_or_else(|| AcmeError::malformed("The JWS must have the account's URL as `kid`."))
    }

    /// The account that signed, if the path names the same one: no account sees another's resources.
    fn own_account(&self, id: &str) -> Result<&Account, AcmeError> {
        let account = self.account()?;
        if account.id() == id {
            return Ok(account);
        }
        Err(AcmeError::new(Kind::UNAUTHORIZED, "This belongs to another account."))
    }

    /// The principal, and the condition keys of the request.
    fn caller(
        &mut self,
        account: &Account,
    ) -> Result<(Caller, outlast_domain::policy::ConditionKeys), AcmeError> {
        let caller = acme::find_caller(&mut self.work, self.service.policies(), account)?;
        let scope = account.endpoint().scope();
        let conditions = crate::service::conditions(&caller, scope, self.request);
        Ok((caller, conditions))
    }

    /// Whether the payload is empty: a POST-as-GET.
    fn is_get(&self) -> bool {
        self.jws.payload().is_empty()
    }

    fn require_get(&self) -> Result<(), AcmeError> {
        if self.is_get() {
            return Ok(());
        }
        Err(AcmeError::malformed("The payload must be empty: this is read by POST-as-GET."))
    }
}

/// Why a request failed, and the headers that its answer carries.
struct Failure {
    error: AcmeError,
    /// A fresh nonce, and the directory.
    headers: Vec<(&'static str, String)>,
}

impl Service {
    /// Carries an ACME request out, but for the commit.
    pub fn acme(&self, request: &Request<'_>) -> Step {
        match self.try_acme(request) {
            Ok(step) => step,
            Err(Failure {
                error: AcmeError::Fault(Fault::Store(StoreError::Conflict)), ..
            }) => Step::Again,
            Err(Failure {
                error: AcmeError::Fault(Fault::Crypto(CryptoError::TakesLong)), ..
            }) => Step::TakesLong,
            Err(Failure { error, headers }) => {
                let mut response = refusal(&error);
                response.headers.extend(headers);
                Step::Respond(response)
            }
        }
    }

    /// Carries an ACME request out and waits for the commit.
    pub fn acme_call(&self, request: &Request<'_>) -> Response {
        drive_and_wait(self.store().as_ref(), || self.acme(request).into(), Prepared::settle)
            .unwrap_or_else(contended)
    }

    /// The URLs at which clients reach this server, the first one for links: the operator's setting, or else the host
    /// that this client used, or else the listening address.
    fn origins(&self, request: &Request<'_>) -> Vec<String> {
        let settings = self.settings();
        let seen = format!("https://{}", request.host);
        match settings.service_url.as_str() {
            "" => vec![seen],
            given if settings.service_url_is_given => vec![given.to_owned()],
            guessed => vec![seen, guessed.to_owned()],
        }
    }

    fn try_acme(&self, request: &Request<'_>) -> Result<Step, Failure> {
        let bare = |error: AcmeError| Failure { error, headers: Vec::new() };
        let mut work = self.request_work(request.now_ms);
        let missing = || AcmeError::not_found("ACME resource");
        let (id, resource) = Resource::parse(request.path).ok_or_else(missing).map_err(bare)?;
        let origins = self.origins(request);
        let found = acme::endpoint_by_id(&mut work, id).map_err(AcmeError::from).map_err(bare)?;
        let Some(endpoint) = found else { return Err(bare(current(&work, missing()))) };
        let urls = Urls::new(&origins[0], id);
        let nonce = acme::fresh_nonce(&mut work, id).map_err(AcmeError::from).map_err(bare)?;
        let mut headers = vec![("replay-nonce", nonce)];
        if resource != Resource::Directory {
            headers.push(("link", format!("<{}>;rel=\"index\"", urls.directory())));
        }
        if !resource.takes(request.method) {
            let error =
                AcmeError::malformed("This resource does not support the method.").with_status(405);
            return Err(Failure { error, headers });
        }
        let is_post = *request.method == http::Method::POST;
        let outcome = match resource {
            Resource::Directory if !is_post => Ok(Reply::json(200, &objects::directory(&urls))),
            Resource::NewNonce if !is_post => Ok(no_content(*request.method == http::Method::HEAD)),
            Resource::RenewalInfo(id) => order::renewal_info(&mut work, &endpoint, id),
            _ => return self.acme_signed(request, work, endpoint, resource, &origins, headers),
        };
        match outcome {
            Ok(reply) => Ok(Step::Respond(respond(reply, headers))),
            Err(error) => Err(Failure { error: current(&work, error), headers }),
        }
    }

    /// A request that must be signed.
    fn acme_signed(
        &self,
        request: &Request<'_>,
        work: Work<'_>,
        endpoint: Endpoint,
        resource: Resource<'_>,
        origins: &[String],
        headers: Vec<(&'static str, String)>,
    ) -> Result<Step, Failure> {
        let mut work = work;
        let authenticated = authenticate(&mut work, request, &endpoint, resource, origins);
        let signed = match authenticated {
            Ok(signed) => signed,
            Err(error) => return Err(Failure { error: current(&work, error), headers }),
        };
        let nonce_record_key = signed.nonce;
        let mut call = Call {
            service: self,
            request,
            urls: Urls::new(&origins[0], endpoint.id()),
            work,
            endpoint,
            jws: signed.jws,
            key: signed.key,
            account: signed.account,
            notes: Notes::default(),
        };
        call.notes.resource(call.endpoint.arn(), "AWS::CertificateManager::AcmeEndpoint");
        let outcome = handle(&mut call, resource);
        let faulty = match &outcome {
            Err(AcmeError::Fault(fault)) => Some(fault.clone()),
            _ => None,
        };
        if let Some(fault) = faulty {
            return Err(Failure { error: current(&call.work, fault.into()), headers });
        }
        if let (Err(error), None) = (&outcome, &call.account) {
            // Anybody can sign with a key of their own, so such a request leaves nothing behind, not even a used
            // nonce. Until the nonce expires the same request can be sent again, and is refused again.
            return Err(Failure { error: current(&call.work, error.clone()), headers });
        }
        let error = outcome.as_ref().err().map(api_error);
        let mut events = Vec::new();
        if let Some(account) = &call.account
            && outcome.as_ref().map_or(true, |reply| reply.changed)
        {
            let event_id = ids::event_id(request.now_ms)
                .map_err(|fault| Failure { error: fault.into(), headers: headers.clone() })?;
            let principal = acme::principal_of(account);
            let event = Event {
                now_ms: request.now_ms,
                event_id: &event_id,
                request_id: request.request_id,
                source: ACM.model.event_source,
                name: resource.event(),
                region: &call.endpoint.scope().region,
                read_only: error.is_some() && call.is_get(),
                actor: (&principal).into(),
                source_ip: request.source_ip,
                user_agent: header_text(request.headers, "user-agent"),
                host: request.host,
                tls: request.tls,
                notes: &call.notes,
                error: error.as_ref(),
                invoked_by: None,
            };
            events.push(event.to_json());
        }
        let principal = call.account.as_ref().map(|account| acme::principal_of(account).arn());
        let prepared = match outcome {
            Ok(reply) => Prepared {
                transaction: call.work.into_transaction(events),
                principal,
                has_job: reply.has_job,
                response: respond(reply, headers),
            },
            Err(error) => {
                // A refused request changes nothing, but uses its nonce up.
                let transaction = call.work.into_refusal_keeping(&nonce_record_key, events);
                let mut response = refusal(&error);
                response.headers.extend(headers);
                Prepared { transaction, response, principal, has_job: false }
            }
        };
        Ok(Step::Commit(Box::new(prepared)))
    }
}

/// A request whose signature and nonce are good.
struct Signed {
    jws: Jws,
    key: PublicKey,
    account: Option<Account>,
    /// Key of the record that marks the nonce as used.
    nonce: String,
}

/// Verifies who signed the request (RFC 8555, sections 6.2 to 6.5).
fn authenticate(
    work: &mut Work<'_>,
    request: &Request<'_>,
    endpoint: &Endpoint,
    resource: Resource<'_>,
    origins: &[String],
) -> Result<Signed, AcmeError> {
    let media = header_text(request.headers, "content-type");
    if !media
        .split(';')
        .next()
        .is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/jose+json"))
    {
        // RFC 8555, section 6.2: otherwise 415.
        return Err(AcmeError::malformed("The content type must be application/jose+json.")
            .with_status(415));
    }
    let jws = Jws::parse(request.body)?;
    check_url(&jws, request, origins)?;
    if jws.algorithm == HS256 {
        return Err(AcmeError::new(
            Kind::BAD_SIGNATURE_ALGORITHM,
            "A request must be signed with an asymmetric algorithm.",
        ));
    }
    let by_key = matches!(resource, Resource::NewAccount | Resource::RevokeCert);
    let by_account = resource != Resource::NewAccount;
    let (key, account) = match &jws.signer {
        Signer::Jwk(jwk) if by_key => (PublicKey::parse(jwk)?, None),
        Signer::Kid(url) if by_account => {
            let account = find_by_url(work, endpoint, url, origins)?;
            (PublicKey::of_account(account.key())?, Some(account))
        }
        Signer::Jwk(_) => {
            return Err(AcmeError::malformed("The JWS must have the account's URL as `kid`."));
        }
        Signer::Kid(_) => {
            return Err(AcmeError::malformed("The JWS must have the new account's key as `jwk`."));
        }
    };
    key.verify(&jws.algorithm, &jws.signed, &jws.signature)?;
    let nonce = jws
        .nonce
        .as_deref()
        .ok_or_else(|| AcmeError::new(Kind::BAD_NONCE, "The JWS has no nonce."))?;
    let nonce = acme::consume_nonce(work, endpoint.id(), nonce)?;
    Ok(Signed { jws, key, account, nonce })
}

/// RFC 8555, section 6.4: the signed URL must be the requested one.
fn check_url(jws: &Jws, request: &Request<'_>, origins: &[String]) -> Result<(), AcmeError> {
    let path = match request.query {
        "" => request.path.to_owned(),
        query => format!("{}?{query}", request.path),
    };
    let url = jws.url.as_deref().ok_or_else(|| AcmeError::malformed("The JWS has no `url`."))?;
    if origins.iter().any(|origin| url.strip_prefix(origin.as_str()) == Some(&path)) {
        return Ok(());
    }
    Err(AcmeError::new(Kind::UNAUTHORIZED, "The `url` of the JWS is not the URL of the request."))
}

/// The account of this endpoint with this URL.
fn find_by_url(
    work: &mut Work<'_>,
    endpoint: &Endpoint,
    url: &str,
    origins: &[String],
) -> Result<Account, AcmeError> {
    let id = origins
        .iter()
        .find_map(|origin| Urls::new(origin, endpoint.id()).account_id(url).map(str::to_owned));
    let found = match id {
        Some(id) => acme::find_account(work, endpoint, &id)?,
        None => None,
    };
    found.ok_or_else(|| {
        AcmeError::new(Kind::ACCOUNT_DOES_NOT_EXIST, "This endpoint has no account with that URL.")
    })
}

fn handle(call: &mut Call<'_>, resource: Resource<'_>) -> Result<Reply, AcmeError> {
    if let Some(account) = &call.account {
        account::require_valid(account)?;
    }
    match resource {
        Resource::NewAccount => account::create(call),
        Resource::KeyChange => account::change_key(call),
        Resource::Account(id) => account::update(call, id),
        Resource::Orders(id) => account::orders(call, id),
        Resource::NewOrder => order::create(call),
        Resource::Order(account, id) => order::show(call, account, id),
        Resource::Finalize(account, id) => order::finalize(call, account, id),
        Resource::Authorization(account, id) => order::authorization(call, account, id),
        Resource::Challenge(account, id, kind) => order::challenge(call, account, id, kind),
        Resource::Certificate(id) => order::certificate(call, id),
        Resource::RevokeCert => order::revoke(call),
        // "The server MUST allow POST-as-GET requests for these resources" (RFC 8555, section 6.3).
        Resource::Directory => {
            call.require_get()?;
            Ok(Reply::json(200, &objects::directory(&call.urls)))
        }
        Resource::NewNonce => {
            call.require_get()?;
            Ok(no_content(false))
        }
        Resource::RenewalInfo(_) => Err(AcmeError::not_found("signed resource")),
    }
}

/// The answer of newNonce (RFC 8555, section 7.2): HEAD is answered with 200, GET with 204.
fn no_content(is_head: bool) -> Reply {
    let mut reply = Reply::json(if is_head { 200 } else { 204 }, &Value::Null);
    (reply.content_type, reply.body) = ("", Vec::new());
    reply
}

/// Without a commit nothing verifies what was read, so it is verified here.
fn current(work: &Work<'_>, error: AcmeError) -> AcmeError {
    let by_records = matches!(
        error,
        AcmeError::Problem(_) | AcmeError::Fault(Fault::Damaged(_) | Fault::Forged(_))
    );
    match if by_records { work.is_current() } else { Ok(true) } {
        Ok(true) => error,
        Ok(false) => AcmeError::Fault(StoreError::Conflict.into()),
        Err(fault) => fault.into(),
    }
}

fn respond(reply: Reply, mut headers: Vec<(&'static str, String)>) -> Response {
    headers.push(("cache-control", "no-store".to_owned()));
    headers.extend(reply.location.map(|url| ("location", url)));
    for (url, relation) in reply.links {
        headers.push(("link", format!("<{url}>;rel=\"{relation}\"")));
    }
    headers.extend(reply.retry_after.map(|seconds| ("retry-after", seconds.to_string())));
    Response { status: reply.status, content_type: reply.content_type, headers, body: reply.body }
}

/// A problem document.
fn refusal(error: &AcmeError) -> Response {
    let internal;
    let problem = match error {
        AcmeError::Problem(problem) => problem,
        AcmeError::Fault(fault) => {
            tracing::error!(%fault, "an ACME request failed");
            let message = ApiError::internal("serverInternal", fault.clone()).message;
            internal = Box::new(Problem {
                kind: Kind::SERVER_INTERNAL,
                detail: message,
                subproblems: Vec::new(),
                status: None,
            });
            &internal
        }
    };
    let status = problem.status.unwrap_or(problem.kind.status);
    let names = jwk::algorithm_names();
    let algorithms = (problem.kind == Kind::BAD_SIGNATURE_ALGORITHM).then_some(names.as_slice());
    let mut headers = vec![("cache-control", "no-store".to_owned())];
    if problem.kind == Kind::RATE_LIMITED {
        headers.push(("retry-after", "3600".to_owned()));
    }
    Response {
        status,
        content_type: "application/problem+json",
        headers,
        body: objects::problem(problem, status, algorithms).to_string().into_bytes(),
    }
}

/// The error that the audit event records for a problem.
fn api_error(error: &AcmeError) -> ApiError {
    match error {
        AcmeError::Problem(problem) => ApiError {
            status: problem.status.unwrap_or(problem.kind.status),
            ..ApiError::new(problem.kind.name, problem.detail.clone())
        },
        AcmeError::Fault(fault) => ApiError::internal("serverInternal", fault.clone()),
    }
}

/// A header of an answer, for tests and clients.
pub fn header<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    response.headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
}
