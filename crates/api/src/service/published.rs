//! The logs for readers (C2SP tlog-tiles). The audit log is below `/tlog/`: the signed head and the tiles of hashes for
//! anybody, the entries for principals that the operator names. The artifact log is below `/log/`, all of it for
//! anybody. Neither is there unless the operator wants it.

use outlast_domain::arn::Scope;
use outlast_domain::audit::{LogKey, cosigned, serve};
use outlast_domain::identity::{self, Caller, Permit, action};
use outlast_domain::work::Work;
use outlast_domain::{Fault, artifacts, ids};
use outlast_store::driver::{Attempt, drive_and_wait};
use outlast_store::{StoreError, Transaction};
use outlast_tlog::tile::Resource;

use super::{Request, Response, Service, conditions, header_text};
use crate::audit::{Event, Notes};
use crate::wire::ApiError;
use crate::wire::sigv4::Claim;

/// Prefix of the audit log's paths.
pub const PREFIX: &str = "/tlog/";
/// Prefix of the artifact log's paths.
pub const ARTIFACTS: &str = "/log/";
/// Service name that requests to what is none of AWS's services are signed for.
const SIGNING_NAME: &str = "outlast";

/// Whether the log is published, and its readers.
#[derive(Default)]
pub(super) struct Published {
    is_on: bool,
    /// ARNs of users and roles.
    readers: Vec<String>,
}

/// A tile, if it exists, or why its reader may not have it.
type Found = Result<Option<Vec<u8>>, ApiError>;

/// Whether a path is that of a log's resource.
pub fn is_log_path(path: &str) -> bool {
    path.starts_with(PREFIX) || path.starts_with(ARTIFACTS)
}

impl Service {
    /// Sets whether the log is published, and who may read its entries.
    pub fn publish_log(&self, is_on: bool, readers: Vec<String>) {
        let mut published =
            self.trail.published.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        *published = Published { is_on, readers };
    }

    /// The answer to a GET of a log's resource: see [`is_log_path`].
    pub fn log_resource(&self, request: &Request<'_>) -> Response {
        if let Some(path) = request.path.strip_prefix(ARTIFACTS) {
            return answered(self.artifact_resource(path, request.now_ms));
        }
        let published =
            self.trail.published.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        let Some(path) = request.path.strip_prefix(PREFIX).filter(|_| published.is_on) else {
            return text(404, "not found\n");
        };
        let answer = match path.parse::<Resource>() {
            _ if path == "checkpoint" => self.published_head(request.now_ms),
            Ok(Resource::Tile(id)) => {
                let found = serve::tile(&mut self.work(request.now_ms), id);
                found.map_err(ApiError::from).map(|found| found.map(octets))
            }
            Ok(Resource::Entries(id)) => {
                let prepare = || match self.published_entries(&published, request, id) {
                    Ok((transaction, found)) => Attempt::Commit(transaction, found),
                    Err(error) if error.is_conflict() => Attempt::Again,
                    Err(error) => Attempt::Done(Err(error)),
                };
                let finish = |found: Found, committed: Result<(), StoreError>| {
                    committed.map_err(Fault::from)?;
                    found.map(|found| found.map(octets))
                };
                drive_and_wait(self.store.as_ref(), prepare, finish).unwrap_or_else(|| {
                    let text = "The records that the request reads were changing; try again later.";
                    Err(ApiError { status: 503, ..ApiError::new("ServiceUnavailable", text) })
                })
            }
            Err(_) => Ok(None),
        };
        answered(answer)
    }

    /// A resource of the artifact log, whose entries tell nothing that its signers did not want to be public.
    fn artifact_resource(&self, path: &str, now_ms: i64) -> Result<Option<Response>, ApiError> {
        if !self.settings().artifact_log.is_published {
            return Ok(None);
        }
        let mut work = self.work(now_ms);
        Ok(match path.parse::<Resource>() {
            _ if path == "checkpoint" => {
                artifacts::serve::head(&mut work)?.map(|head| text(200, &head))
            }
            Ok(Resource::Tile(id)) => artifacts::serve::tile(&mut work, id)?.map(octets),
            Ok(Resource::Entries(id)) => artifacts::serve::entries(&mut work, id)?.map(octets),
            Err(_) => None,
        })
    }

    fn published_head(&self, now_ms: i64) -> Result<Option<Response>, ApiError> {
        let mut work = self.work(now_ms);
        let key = LogKey::read(&mut work)?;
        // Every head covers the empty range.
        let head = cosigned::best_head(&mut work, &key, 0)?.ok();
        Ok(head.map(|head| text(200, &head.to_string())))
    }

    /// The entries of a tile, if it exists, and a transaction whose event says who read them.
    fn published_entries(
        &self,
        published: &Published,
        request: &Request<'_>,
        id: outlast_tlog::tile::TileId,
    ) -> Result<(Transaction, Found), ApiError> {
        let mut work = self.work(request.now_ms);
        let key = LogKey::read(&mut work)?;
        let (caller, region) = self.signed_by(&mut work, request)?;
        let principal = caller.principal.role_arn().unwrap_or_else(|| caller.principal.arn());
        let scope = Scope { account: caller.principal.account.clone(), region };
        let keys = conditions(&caller, &scope, request);
        let arn = serve::arn(&caller.principal.account, &key.origin);
        // The log holds the events of all accounts, so an account's own policies do not suffice.
        let permit: Result<Permit<action::outlast::GetAuditEntries>, ApiError> =
            if published.readers.contains(&principal) {
                identity::authorize(&caller, &keys, action::outlast::GetAuditEntries, &arn)
                    .map_err(ApiError::from)
            } else {
                Err(ApiError::new(
                    "AccessDeniedException",
                    format!("{principal} is not one of the readers that the operator has named"),
                ))
            };
        let outcome = permit.and_then(|permit| Ok(serve::entries(&mut work, &arn, id, &permit)?));
        let mut notes = Notes::default();
        notes.parameter("tile", Resource::Entries(id).to_string());
        notes.resource(arn, "Outlast::AuditLog");
        let event = Event {
            now_ms: request.now_ms,
            event_id: &ids::event_id(request.now_ms)?,
            request_id: request.request_id,
            source: "outlast",
            name: "GetAuditEntries",
            region: &scope.region,
            read_only: true,
            actor: (&caller.principal).into(),
            source_ip: request.source_ip,
            user_agent: header_text(request.headers, "user-agent"),
            host: request.host,
            tls: request.tls,
            notes: &notes,
            error: outcome.as_ref().err(),
            invoked_by: None,
        }
        .to_json();
        Ok((work.into_refusal(vec![event]), outcome))
    }
}

impl Service {
    /// The caller who signed a request to what is none of AWS's services, and the Region that it signed for.
    pub(super) fn signed_by(
        &self,
        work: &mut Work<'_>,
        request: &Request<'_>,
    ) -> Result<(Caller, String), ApiError> {
        let claim = Claim::parse(&request.parts(), work.now())?;
        let unknown = || {
            ApiError::new(
                "UnrecognizedClientException",
                "The security token included in the request is invalid.",
            )
        };
        if claim.service != SIGNING_NAME {
            return Err(ApiError::new(
                "InvalidSignatureException",
                format!("Credential should be scoped to correct service: '{SIGNING_NAME}'."),
            ));
        }
        let token = header_text(request.headers, "x-amz-security-token");
        let token = request.headers.contains_key("x-amz-security-token").then_some(token);
        let credential = identity::find_credential(work, &self.policies, &claim.access_key_id)?
            .filter(|credential| credential.takes_token(token))
            .ok_or_else(unknown)?;
        claim.verify(&request.parts(), &credential.secret)?;
        self.check_session(work, &credential)?;
        Ok((credential.caller, claim.region))
    }
}

fn answered(answer: Result<Option<Response>, ApiError>) -> Response {
    match answer {
        Ok(Some(response)) => response,
        Ok(None) => text(404, "not found\n"),
        Err(error) => {
            if let Some(fault) = &error.fault {
                tracing::error!(%fault, "a log could not be served");
            }
            text(error.status, &format!("{}: {}\n", error.code, error.message))
        }
    }
}

/// A text.
pub(super) fn text(status: u16, text: &str) -> Response {
    Response {
        status,
        content_type: "text/plain; charset=utf-8",
        is_cbor: false,
        error: None,
        body: text.as_bytes().to_vec(),
    }
}

fn octets(body: Vec<u8>) -> Response {
    Response { content_type: "application/octet-stream", body, ..text(200, "") }
}
