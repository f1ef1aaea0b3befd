//! What is served over plain HTTP: CRLs, OCSP, and certificates of authorities. Nothing else is served there, and no
//! client is authenticated: everything is signed and public.
//!
//! OCSP: RFC 6960, appendix A, and the profile of RFC 5019, which says what caches on the way may keep.

use std::cell::Cell;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_TYPE, ETAG, EXPIRES, IF_NONE_MATCH, LAST_MODIFIED,
};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use outlast_domain::ca::crl::{self, Made};
use outlast_domain::ca::{self, Authority, ocsp};
use outlast_domain::work::{Swept, Work};
use outlast_domain::{Fault, ids, limits};
use outlast_pki::ocsp::{Failure, RESPONSE_MEDIA_TYPE, Request};
use outlast_store::StoreError;
use outlast_store::driver::{Attempt, drive_and_wait};

use super::Service;
use super::alone::events;
use super::answers::{Answers, Bounded, Kept, key};
use super::shared::{http_date, lock};
use super::strangers::{Strangers, Window};
use crate::ops::ACM_PCA;

/// What revocation keeps in memory, none of which is believed without a look at the store.
pub(super) struct State {
    pub(super) answers: Answers,
    /// CRLs by their digest.
    crls: Mutex<Bounded<String, Bytes>>,
    /// Where a read of the store takes a round trip: the epochs that were seen last, and when.
    pub(super) epochs: Mutex<HashMap<String, (Option<u64>, i64)>>,
    validity_seconds: AtomicI64,
    /// The last of the CRLs with slow signatures that it was the turn of. Which comes next is fairness, no more.
    pub(super) last_slow: Mutex<String>,
    /// What is signed for questions that nobody has asked before.
    pub(super) strangers: Strangers,
    /// Commits that may have changed answers: see [`super::watched`].
    pub(super) changes: Arc<AtomicU64>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            answers: Answers::default(),
            crls: Mutex::new(Bounded::new(limits::MAX_KEPT_CRLS_BYTES)),
            epochs: Mutex::default(),
            last_slow: Mutex::default(),
            strangers: Strangers::default(),
            validity_seconds: AtomicI64::new(limits::OCSP_VALIDITY_SECONDS),
            changes: Arc::new(AtomicU64::new(1)),
        }
    }
}

/// A request whose body has arrived.
pub struct Plain<'a> {
    /// Method.
    pub method: &'a Method,
    /// Path, as sent.
    pub path: &'a str,
    /// Headers.
    pub headers: &'a HeaderMap,
    /// Body.
    pub body: &'a [u8],
    /// Milliseconds since 1970.
    pub now_ms: i64,
    /// Who asks.
    pub peer: IpAddr,
}

/// What is to be done now.
pub enum PlainStep {
    /// Send this.
    Respond(Response<Bytes>),
    /// Have it signed, when it is its turn: [`Service::recheck`], then [`Service::sign`].
    Ask(Question),
}

/// A question that has no answer yet.
pub struct Question {
    request: Request,
    peer: IpAddr,
    key: Arc<[u8]>,
    /// The path of a GET that asked it.
    path: Option<Box<[u8]>>,
    /// Whether it was counted as one that may be signed.
    admitted: AtomicBool,
    if_none_match: Option<HeaderValue>,
}

/// Result of signing. [`Service::signed`] finishes a commit.
pub type Signing = Attempt<Signed, Response<Bytes>>;

/// An answer that may be sent when its transaction is durable.
pub struct Signed {
    kept: Arc<Kept>,
    /// Whether it is an answer that can be given again.
    is_lasting: bool,
    /// What the transaction announces.
    announced: Option<Window>,
}

impl Service {
    /// For how long OCSP answers are valid from now on, in seconds.
    pub fn set_ocsp_validity(&self, seconds: i64) {
        self.revocation.validity_seconds.store(seconds, Ordering::Relaxed);
    }

    pub(super) fn ocsp_validity(&self) -> i64 {
        self.revocation.validity_seconds.load(Ordering::Relaxed)
    }

    /// The answer to a GET that was asked with the same path before, if it still holds.
    pub fn plain_again(&self, request: &Plain<'_>) -> Option<Response<Bytes>> {
        let kept = self.revocation.answers.by_path(request.path.as_bytes())?;
        self.holds(&kept, request.now_ms).then(|| {
            kept.used();
            answered(&kept, request.headers.get(IF_NONE_MATCH), request.now_ms)
        })
    }

    /// Answers what needs no signature. May read the store.
    pub fn plain(&self, request: &Plain<'_>) -> PlainStep {
        match *request.method {
            Method::GET | Method::HEAD => self.plain_get(request),
            Method::POST if matches!(request.path, "/" | "/ocsp" | "/ocsp/") => {
                self.ask(request, request.body, None)
            }
            Method::POST => PlainStep::Respond(not_found()),
            _ => {
                let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "method not allowed\n");
                response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD, POST"));
                PlainStep::Respond(response)
            }
        }
    }

    fn plain_get(&self, request: &Plain<'_>) -> PlainStep {
        let path = request.path;
        let name = path.rsplit('/').next().unwrap_or_default();
        let found = if let Some(name) = name.strip_suffix(".crl") {
            self.crl(request, name)
        } else if let Some(id) = path.strip_prefix("/ca/").and_then(|at| at.strip_suffix(".cer")) {
            self.authority_certificate(request, id)
        } else {
            // The slashes of base 64 may be there as they are. Every request begins with a SEQUENCE.
            let given = path.strip_prefix("/ocsp/");
            let encoded = given.unwrap_or_else(|| path.trim_start_matches('/'));
            return match (decode(encoded), given) {
                // Without the prefix it may be anything.
                (Some(der), None) if Request::parse(&der).is_err() => {
                    PlainStep::Respond(not_found())
                }
                (Some(der), _) => self.ask(request, &der, Some(path)),
                (None, Some(_)) => PlainStep::Respond(failed(Failure::MalformedRequest)),
                (None, None) => PlainStep::Respond(not_found()),
            };
        };
        PlainStep::Respond(match found {
            Ok(Some(response)) => response,
            Ok(None) => not_found(),
            Err(fault) => {
                tracing::error!(%fault, "a public resource could not be read");
                text(StatusCode::SERVICE_UNAVAILABLE, "try again later\n")
            }
        })
    }

    fn crl(&self, request: &Plain<'_>, name: &str) -> Result<Option<Response<Bytes>>, Fault> {
        // It may be replaced between the two reads.
        for _ in 0..8 {
            let mut work = self.work(request.now_ms);
            let Some(made) = crl::made(&mut work, name)? else { return Ok(None) };
            let etag = header(format!("\"{}\"", made.digest));
            let mut response = if matches_etag(request.headers.get(IF_NONE_MATCH), &etag) {
                not_modified()
            } else {
                match self.crl_bytes(&work, name, &made)? {
                    Some(bytes) => Response::new(bytes),
                    None => continue,
                }
            };
            let headers = response.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/pkix-crl"));
            headers.insert(LAST_MODIFIED, header(http_date(made.this_update)));
            headers.insert(ETAG, etag);
            // It may be replaced at any time: caches must revalidate.
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, no-cache"));
            return Ok(Some(response));
        }
        Err(StoreError::Conflict.into())
    }

    fn crl_bytes(&self, work: &Work<'_>, name: &str, made: &Made) -> Result<Option<Bytes>, Fault> {
        if let Some(bytes) = lock(&self.revocation.crls).get(&made.digest) {
            return Ok(Some(bytes.clone()));
        }
        let Some(bytes) = crl::der(work, name, made)?.map(Bytes::from) else { return Ok(None) };
        lock(&self.revocation.crls).put(made.digest.clone(), bytes.clone(), bytes.len());
        Ok(Some(bytes))
    }

    fn authority_certificate(
        &self,
        request: &Plain<'_>,
        id: &str,
    ) -> Result<Option<Response<Bytes>>, Fault> {
        if ids::uuid_bytes(id).is_none() {
            return Ok(None);
        }
        let der = ca::authority_certificate(&mut self.work(request.now_ms), id)?;
        Ok(der.map(|der| {
            let mut response = Response::new(Bytes::from(der));
            // RFC 5280, section 4.2.2.1.
            let kind = HeaderValue::from_static("application/pkix-cert");
            response.headers_mut().insert(CONTENT_TYPE, kind);
            response
        }))
    }

    fn ask(&self, request: &Plain<'_>, der: &[u8], path: Option<&str>) -> PlainStep {
        let Ok(asked) = Request::parse(der) else {
            return PlainStep::Respond(failed(Failure::MalformedRequest));
        };
        let key = key(&asked.ids);
        let if_none_match = request.headers.get(IF_NONE_MATCH);
        let kept = self.revocation.answers.by_key(&key);
        if let Some(kept) = kept.filter(|kept| self.holds(kept, request.now_ms)) {
            if asked.nonce.is_none() {
                kept.used();
                if let Some(path) = path {
                    self.revocation.answers.put_path(path.as_bytes(), key);
                }
                return PlainStep::Respond(answered(&kept, if_none_match, request.now_ms));
            }
            // As in [`Self::sign`], but now: a peer that asks too much neither makes the store work nor takes a turn from others.
            if !self.revocation.strangers.would_admit(request.peer, request.now_ms) {
                return PlainStep::Respond(once(&kept, request.now_ms));
            }
        }
        PlainStep::Ask(Question {
            request: asked,
            peer: request.peer,
            key,
            path: path.map(|path| path.as_bytes().into()),
            admitted: AtomicBool::new(false),
            if_none_match: if_none_match.cloned(),
        })
    }

    /// The answer that is kept to a question, if it was only the epoch that kept it from being given, or if somebody
    /// else has had it signed meanwhile. Reads the store.
    pub fn recheck(&self, question: &Question, now_ms: i64) -> Option<Response<Bytes>> {
        if question.request.nonce.is_some() {
            return None;
        }
        let kept = self.kept(question, now_ms)?;
        kept.used();
        if let Some(path) = &question.path {
            self.revocation.answers.put_path(path, question.key.clone());
        }
        Some(answered(&kept, question.if_none_match.as_ref(), now_ms))
    }

    /// An answer without a nonce, if one is kept that holds. Reads the store.
    fn kept(&self, question: &Question, now_ms: i64) -> Option<Arc<Kept>> {
        let kept = self.revocation.answers.by_key(&question.key)?;
        if !kept.is_fresh(now_ms.div_euclid(1000)) {
            return None;
        }
        if !self.holds(&kept, now_ms) {
            let mut work = self.work(now_ms);
            let (ids, said) = (&kept.ids, &kept.statuses);
            match ocsp::recheck(&mut work, ids, said, &kept.epoch_record_key) {
                Ok(Some(epoch)) => {
                    kept.set_epoch(epoch);
                    self.saw(&kept, epoch, now_ms);
                }
                Ok(None) => return None,
                Err(fault) => {
                    tracing::warn!(%fault, "a cached OCSP answer could not be checked");
                    return None;
                }
            }
        }
        Some(kept)
    }

    /// Signs the answer to a question. Reads the store.
    pub fn sign(&self, question: &Question, now_ms: i64) -> Signing {
        let asked = &question.request;
        let outcome = match self.try_sign(question, asked, now_ms) {
            Ok(Err(Failure::TryLater)) if asked.nonce.is_some() => {
                // RFC 9654, section 2.1: without a nonce is better than not at all. Who gave one decides.
                match self.kept(question, now_ms) {
                    Some(kept) => return Signing::Done(once(&kept, now_ms)),
                    None => {
                        let plain = Request { ids: asked.ids.clone(), nonce: None };
                        self.try_sign(question, &plain, now_ms)
                    }
                }
            }
            outcome => outcome,
        };
        match outcome {
            Ok(Ok(signing)) => signing,
            Ok(Err(failure)) => Signing::Done(failed(failure)),
            Err(Fault::Store(StoreError::Conflict)) => Signing::Again,
            Err(fault) => {
                tracing::error!(%fault, "an OCSP answer could not be signed");
                Signing::Done(failed(Failure::InternalError))
            }
        }
    }

    fn try_sign(
        &self,
        question: &Question,
        request: &Request,
        now_ms: i64,
    ) -> Result<Result<Signing, Failure>, Fault> {
        let (mut work, mut swept) = (self.work(now_ms), Swept::default());
        let strangers = &self.revocation.strangers;
        let is_announced = Cell::new(false);
        let admit = |authority: &Authority| {
            if !question.admitted.load(Ordering::Relaxed) {
                let admitted = strangers.admit(question.peer, now_ms);
                question.admitted.store(admitted, Ordering::Relaxed);
                if !admitted {
                    return false;
                }
            }
            // Counted before the key is used: what an announcement covers is never more than it says.
            is_announced.set(strangers.count(&authority.arn(), question.peer, now_ms));
            true
        };
        let terms = ocsp::Terms { validity_seconds: self.ocsp_validity(), admit: &admit };
        let answer = match ocsp::answer(&mut work, &self.ring, request, &terms, &mut swept)? {
            Ok(answer) => answer,
            Err(failure) => return Ok(Err(failure)),
        };
        let is_lasting = request.nonce.is_none() && answer.is_lasting();
        if is_announced.get() {
            // The event is on disk. What was read must hold as for a commit, and after an alarm nothing is sent.
            if let Some(reason) = self.trail.guard.refusal() {
                return Err(StoreError::Unavailable(reason).into());
            }
            if !work.is_current()? {
                return Err(StoreError::Conflict.into());
            }
            let kept = Arc::new(Kept::new(request.ids.clone(), answer));
            return Ok(Ok(Signing::Done(self.hand_out(question, kept, is_lasting, now_ms))));
        }
        let mut events = events(&ACM_PCA, now_ms, &swept)?;
        let mut announced = None;
        if answer.is_once {
            let (scope, arn) = answer.authority.clone();
            let (window, event) = Window::announce(&scope, arn, question.peer, now_ms)?;
            announced = Some(window);
            events.push(event);
        }
        let kept = Arc::new(Kept::new(request.ids.clone(), answer));
        let transaction = work.into_transaction(events);
        let signed = Signed { kept, is_lasting, announced };
        Ok(Ok(Signing::Commit(transaction, signed)))
    }

    /// The answer, once the event that records it is durable, or the failure to make it so.
    pub fn signed(
        &self,
        question: &Question,
        signed: Signed,
        outcome: Result<(), StoreError>,
        now_ms: i64,
    ) -> Response<Bytes> {
        if let Err(error) = outcome {
            tracing::error!(%error, "the commit of an OCSP answer failed");
            return failed(Failure::InternalError);
        }
        if let Some(window) = signed.announced {
            self.revocation.strangers.open(window);
        }
        self.hand_out(question, signed.kept, signed.is_lasting, now_ms)
    }

    fn hand_out(
        &self,
        question: &Question,
        kept: Arc<Kept>,
        is_lasting: bool,
        now_ms: i64,
    ) -> Response<Bytes> {
        if !is_lasting {
            return once(&kept, now_ms);
        }
        self.keep(kept.clone(), now_ms);
        kept.used();
        if question.request.nonce.is_some() {
            // It has no nonce: the path of the question must not lead to it.
            return once(&kept, now_ms);
        }
        if let Some(path) = &question.path {
            self.revocation.answers.put_path(path, question.key.clone());
        }
        answered(&kept, question.if_none_match.as_ref(), now_ms)
    }

    /// Carries a request out and waits for the commit.
    pub fn call_plain(&self, request: &Plain<'_>) -> Response<Bytes> {
        if let Some(response) = self.plain_again(request) {
            return response;
        }
        let question = match self.plain(request) {
            PlainStep::Respond(response) => return response,
            PlainStep::Ask(question) => question,
        };
        if let Some(response) = self.recheck(&question, request.now_ms) {
            return response;
        }
        let sign = || self.sign(&question, request.now_ms);
        let finish = |signed, outcome| self.signed(&question, signed, outcome, request.now_ms);
        drive_and_wait(self.store.as_ref(), sign, finish).unwrap_or_else(busy)
    }

    pub(super) fn keep(&self, kept: Arc<Kept>, now_ms: i64) {
        self.saw(&kept, kept.epoch(), now_ms);
        self.revocation.answers.put(key(&kept.ids), kept);
    }

    /// Whether an answer that is kept still is what would be answered, without a round trip to the store.
    fn holds(&self, kept: &Kept, now_ms: i64) -> bool {
        if !kept.is_fresh(now_ms.div_euclid(1000)) {
            return false;
        }
        if self.fresh.is_remote() {
            let seen = lock(&self.revocation.epochs).get(&kept.epoch_record_key).copied();
            return seen.is_some_and(|(epoch, at_ms)| {
                epoch == kept.epoch() && (0..limits::MAX_EPOCH_AGE_MS).contains(&(now_ms - at_ms))
            });
        }
        // Asked first: what changes from here on makes it another count.
        let changes = self.revocation.changes.load(Ordering::SeqCst);
        if kept.seen_at() == changes {
            return true;
        }
        let same = self
            .fresh
            .read(&kept.epoch_record_key)
            .is_ok_and(|record| record.map(|record| record.version) == kept.epoch());
        if same {
            kept.set_seen_at(changes);
        }
        same
    }

    fn saw(&self, kept: &Kept, epoch: Option<u64>, now_ms: i64) {
        if self.fresh.is_remote() {
            // What was seen later is not overwritten: epochs only grow.
            let mut epochs = lock(&self.revocation.epochs);
            let seen = epochs.entry(kept.epoch_record_key.clone()).or_insert((epoch, now_ms));
            if seen.0 <= epoch {
                *seen = (epoch, now_ms);
            }
        }
    }
}

/// The answer when there is too much to sign.
pub fn busy() -> Response<Bytes> {
    failed(Failure::TryLater)
}

/// The answer to a body that is too long or did not arrive.
pub fn too_large() -> Response<Bytes> {
    text(StatusCode::PAYLOAD_TOO_LARGE, "the request is too long\n")
}

/// RFC 5019, section 6.2.
fn answered(kept: &Kept, if_none_match: Option<&HeaderValue>, now_ms: i64) -> Response<Bytes> {
    let mut response = if matches_etag(if_none_match, &kept.etag) {
        not_modified()
    } else {
        Response::new(kept.body.clone())
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(RESPONSE_MEDIA_TYPE));
    headers.insert(LAST_MODIFIED, kept.last_modified.clone());
    headers.insert(EXPIRES, kept.expires.clone());
    headers.insert(ETAG, kept.etag.clone());
    let left = (kept.next_update - now_ms.div_euclid(1000)).max(0);
    let control = format!("max-age={left}, public, no-transform, must-revalidate");
    headers.insert(CACHE_CONTROL, header(control));
    response
}

/// An answer to one question alone.
fn once(kept: &Kept, now_ms: i64) -> Response<Bytes> {
    let mut response = answered(kept, None, now_ms);
    only_once(&mut response);
    response
}

/// Takes out what would let caches keep it.
fn only_once(response: &mut Response<Bytes>) {
    let headers = response.headers_mut();
    for name in [LAST_MODIFIED, EXPIRES, ETAG] {
        headers.remove(name);
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
}

/// RFC 6960, section 2.3: errors are not signed, and HTTP has nothing to say about them.
fn failed(failure: Failure) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(failure.to_der()));
    let kind = HeaderValue::from_static(RESPONSE_MEDIA_TYPE);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    only_once(&mut response);
    response
}

fn not_found() -> Response<Bytes> {
    text(StatusCode::NOT_FOUND, "not found\n")
}

fn not_modified() -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    response
}

fn text(status: StatusCode, body: &'static str) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from_static(body.as_bytes()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
}

fn header(text: String) -> HeaderValue {
    HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

fn matches_etag(given: Option<&HeaderValue>, etag: &HeaderValue) -> bool {
    let Some(given) = given.and_then(|value| value.to_str().ok()) else { return false };
    given.split(',').any(|one| one.trim().as_bytes() == etag.as_bytes())
}

/// URL-encoded base 64 (RFC 6960, appendix A.1); the padding may be missing.
fn decode(encoded: &str) -> Option<Vec<u8>> {
    const LENIENT: GeneralPurpose = GeneralPurpose::new(
        &alphabet::STANDARD,
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
    );
    let longest = outlast_pki::ocsp::MAX_REQUEST_LEN * 4;
    // A SEQUENCE begins with `M`.
    if encoded.len() > longest || !(encoded.starts_with('M') || encoded.starts_with("%4")) {
        return None;
    }
    let mut plain = Vec::with_capacity(encoded.len());
    let mut bytes = encoded.bytes();
    while let Some(byte) = bytes.next() {
        plain.push(match byte {
            b'%' => {
                let mut octet = [0];
                hex::decode_to_slice([bytes.next()?, bytes.next()?], &mut octet).ok()?;
                octet[0]
            }
            other => other,
        });
    }
    LENIENT.decode(plain).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_as_they_may_be_written() {
        let der: Vec<u8> = (0..70).map(|n| if n == 0 { 0x30 } else { 255 - n }).collect();
        let plain = base64::engine::general_purpose::STANDARD.encode(&der);
        assert!(plain.contains('/') && plain.contains('+') && plain.ends_with('='), "{plain}");
        let escaped = plain.replace('/', "%2F").replace('+', "%2b").replace('=', "%3D");
        for written in [&plain, &escaped, &plain.trim_end_matches('=').to_owned()] {
            assert_eq!(decode(written).as_deref(), Some(der.as_slice()), "{written}");
        }
        for wrong in ["", "M", "M%", "M%4", "M%zz", "favicon.ico", "MM MM", "MEI.", "%4dEI=M"] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn dates_are_those_of_http() {
        assert_eq!(http_date(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
    }
}
