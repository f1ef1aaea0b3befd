//! The secret of a connector, read as its access role: by the role's policies, with the events of a role's calls.

use http::{HeaderMap, Method};
use outlast_domain::change::Contended;
use outlast_domain::kms::{self, LastUse};
use outlast_domain::transfer::SERVICE_PRINCIPAL;
use outlast_domain::transfer::connector::{
    Credentials, Failure, FailureCode, Refused, SOURCE_IP, Session, secret_of,
};
use outlast_domain::work::{Done, Work};
use outlast_domain::{Fault, ids};
use outlast_store::driver::{Attempt, drive_and_wait};
use outlast_store::{StoreError, Transaction};

use super::super::{Request, Service, conditions};
use crate::audit::{Event, Notes, service_event};
use crate::aws::secretsmanager::SERVICE as SECRETS_MANAGER;
use crate::call::Call;
use crate::model::secretsmanager::current_value;
use crate::ops::STS;
use crate::outside::Outside;
use crate::wire::ApiError;

/// Result of reading a secret: the events are recorded either way.
type Read = Result<(Session, Credentials), Failure>;

impl Service {
    /// Begins a session of the access role and reads the secret of its connector. When this returns, the events of both are on
    /// disk.
    pub(super) fn connector_secret(
        &self,
        now_ms: i64,
        begin: &dyn Fn(&mut Work<'_>) -> Result<Session, Refused>,
    ) -> Result<(Session, Credentials), Refused> {
        let prepare = || match self.try_connector_secret(now_ms, begin) {
            Ok((transaction, read)) => Attempt::Commit(transaction, read),
            Err(Refused::Fault(fault)) if fault.is_conflict() => Attempt::Again,
            Err(refused) => Attempt::Done(Err(refused)),
        };
        let finish = |read: Read, outcome: Result<(), StoreError>| {
            outcome.map_err(Fault::from)?;
            Ok(read?)
        };
        drive_and_wait(self.store.as_ref(), prepare, finish)
            .unwrap_or_else(|| Err(Fault::from(StoreError::Conflict).into()))
    }

    fn try_connector_secret(
        &self,
        now_ms: i64,
        begin: &dyn Fn(&mut Work<'_>) -> Result<Session, Refused>,
    ) -> Result<(Transaction, Read), Refused> {
        let mut work = self.work(now_ms);
        let session = begin(&mut work)?;
        let id = secret_of(&session.connector)?.to_owned();
        let scope = session.connector.scope().clone();
        let source_ip = SOURCE_IP.to_string();
        let request = Request {
            method: &Method::POST,
            path: "/",
            query: "",
            host: "",
            headers: &HeaderMap::new(),
            body: &[],
            source_ip: &source_ip,
            tls: None,
            now_ms,
            request_id: &ids::uuid()?,
        };
        let mut conditions = conditions(&session.caller, &scope, &request);
        // It does not leave the process.
        conditions.set("aws:SecureTransport", "true");
        let mut call = Call {
            work,
            ring: self.ring(),
            policies: self.policies(),
            settings: self.settings(),
            caller: session.caller.clone(),
            certificate: None,
            scope,
            conditions,
            tokens: Vec::new(),
            notes: Notes::default(),
            used: Vec::new(),
            forwarded: Vec::new(),
            reports: Vec::new(),
            outside: Outside::default(),
        };
        let value = current_value(&mut call, &id);
        if let Some(fault) = value.as_ref().err().and_then(|error| error.fault.clone()) {
            return Err(fault.into());
        }
        let events = events(&mut call, &session, value.as_ref().err(), &request)?;
        Ok(match value {
            Ok(value) => {
                let read = Credentials::read(&value.bytes);
                (call.work.into_transaction(events), read.map(|read| (session, read)))
            }
            Err(error) => (call.work.into_refusal(events), Err(unreadable(&id, &error))),
        })
    }
}

/// The result of a job whose secret cannot be read.
fn unreadable(id: &str, error: &ApiError) -> Failure {
    let is_denied = error.code == "AccessDeniedException";
    let code = if is_denied { FailureCode::AssumeRole } else { FailureCode::Connection };
    let message = format!(
        "The secret {id} cannot be read as the access role: {}. Verify that the secret exists, and that the policies of the role \
         allow secretsmanager:GetSecretValue for it and kms:Decrypt for its key",
        error.message.trim_end_matches('.')
    );
    Failure::new(code, message)
}

/// The events: the role is assumed, the secret is read, and its key is used.
fn events(
    call: &mut Call<'_>,
    session: &Session,
    error: Option<&ApiError>,
    request: &Request<'_>,
) -> Result<Vec<Vec<u8>>, Fault> {
    let now_ms = request.now_ms;
    let assumed = Done {
        scope: session.connector.scope().clone(),
        arn: session.connector.access_role().to_owned(),
        event: "AssumeRole",
    };
    let source = STS.model.event_source;
    let mut all = vec![service_event(now_ms, &ids::event_id(now_ms)?, source, &assumed)];
    let of = |event_id: &str, by: &'static str, notes: &Notes, error: Option<&ApiError>| {
        Event {
            now_ms,
            event_id,
            request_id: request.request_id,
            source: SECRETS_MANAGER.event_source,
            name: "GetSecretValue",
            region: &session.connector.scope().region,
            read_only: true,
            actor: (&session.caller.principal).into(),
            source_ip: by,
            user_agent: by,
            host: "",
            tls: None,
            notes,
            error,
            invoked_by: Some(by),
        }
        .to_json()
    };
    all.push(of(&ids::event_id(now_ms)?, SERVICE_PRINCIPAL, &call.notes, error));
    for mut made in std::mem::take(&mut call.forwarded) {
        let id = ids::event_id(now_ms)?;
        let by = made.by.unwrap_or(SERVICE_PRINCIPAL);
        let event = Event {
            now_ms,
            event_id: &id,
            request_id: request.request_id,
            source: made.service.event_source,
            name: made.name,
            region: &made.region,
            read_only: true,
            actor: (&session.caller.principal).into(),
            source_ip: by,
            user_agent: by,
            host: "",
            tls: None,
            notes: &made.notes,
            error: made.error.as_ref(),
            invoked_by: Some(by),
        };
        all.push(event.to_json());
        if let Some(key) = made.key.take().filter(|_| error.is_none()) {
            let last = LastUse {
                operation: made.name.to_owned(),
                at_ms: now_ms,
                event_id: id,
                request_id: request.request_id.to_owned(),
            };
            kms::record_use(&mut call.work, &key, &last)?;
        }
    }
    Ok(all)
}
