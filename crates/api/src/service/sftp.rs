//! SFTP for those who speak it: which server a listener serves, the decision of a login, and the audit events of a session.
//!
//! Nothing here knows SSH. The caller authenticates the peer's key and says what it has verified; it asks an identity
//! provider outside if it is told to; it commits what it gets ([`outlast_store::driver`]) and only then tells the peer.
//!
//! ```text
//! let facts = service.sftp_server(id, now)?;                       // at most once a second it reads the store
//! loop {
//!     match drive(store, || service.sftp_login(&login, answer, now), |ready, outcome| service.sftp_settled(ready, outcome)) {
//!         Decision::Ask(question) => answer = Some(answer(&question, &ask(target(&question)))),   // and decide again
//!         Decision::Account(account) => break account,             // its CONNECTED event is durable
//!         ...
//!     }
//! }
//! store.commit(service.sftp_events(&session, &[FileEvent::Open { .. }], now)?)  // then reply to the request
//! ```
//!
//! A peer that could not log in, or not at once, leaves one event ([`Service::sftp_auth_failed`]); with many such peers most of them are
//! summed up (`docs/decisions/0024-strangers-are-summed-up.md`).

mod announce;
mod failures;
mod record;
mod signing;
mod workflow;

use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use outlast_domain::Fault;
use outlast_domain::arn::Scope;
use outlast_domain::transfer::{self, Account, Answer, Certified, Login, Question, Refusal, Step};
use outlast_store::driver::{Attempt, drive_and_wait};
use outlast_store::{NewEvent, StoreError, Transaction};

pub use announce::Subject;
pub use outlast_domain::transfer::{ServedHostKey, ServerFacts, Unserved};
pub use record::{AuthFailure, FileEvent};
pub use signing::Upload;

use super::Service;
use super::shared::lock;
pub use crate::provider::{AnswerError, Target, answer, target};
use failures::Failures;

/// How long what was read of a server may be used, in milliseconds.
const FACTS_MS: i64 = 1000;
/// Servers whose facts are kept.
const MAX_FACTS: usize = 64;

/// What is kept in memory.
#[derive(Default)]
pub(super) struct State {
    facts: Mutex<Vec<Kept>>,
    failures: Failures,
    signing: signing::State,
}

/// The facts of the server that a listener asks for.
struct Kept {
    id: Option<String>,
    read_ms: i64,
    facts: Arc<ServerFacts>,
}

/// A connection, as audit events have it. Texts come from the peer and are shortened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    /// Account and Region of the server.
    pub scope: Scope,
    /// ARN of the server.
    pub server_arn: String,
    /// Id of the connection, hexadecimal.
    pub session: String,
    /// Address of the peer.
    pub source_ip: IpAddr,
    /// The peer's version line, such as `SSH-2.0-OpenSSH_10.0`.
    pub client: String,
    /// Name of the key exchange.
    pub key_exchange: String,
    /// Whether it is post-quantum or hybrid.
    pub post_quantum: bool,
    /// Algorithm of the host key.
    pub host_key: String,
    /// Ciphers: from the client, to the client.
    pub ciphers: [String; 2],
    /// MACs: from the client, to the client; empty where the cipher authenticates.
    pub macs: [String; 2],
}

/// A session of a user: what its events have in common.
#[derive(Debug, Clone)]
pub struct Session {
    /// The connection.
    pub connection: Connection,
    /// Name of the user.
    pub user: String,
    /// ARN of the user.
    pub user_arn: String,
    /// ARN of the role.
    pub role_arn: String,
    /// The session of that role; users of a file have none.
    principal: Option<outlast_domain::identity::Principal>,
}

impl Session {
    /// The session of a user who is logged in.
    pub fn new(connection: Connection, account: &Account) -> Self {
        Self {
            connection,
            user: account.user.clone(),
            user_arn: account.user_arn.clone(),
            role_arn: account.role_arn.clone(),
            principal: Some(account.rights.caller().principal.clone()),
        }
    }

    /// The session of a user that a file names; there is no role.
    pub fn of_file(connection: Connection, user: &str, user_arn: &str) -> Self {
        Self {
            connection,
            user: user.to_owned(),
            user_arn: user_arn.to_owned(),
            role_arn: String::new(),
            principal: None,
        }
    }
}

/// What comes next in a login.
pub enum Decision {
    /// Refuse, always with the same words. The reason is for the operator.
    Refused(Refusal),
    /// The key may sign.
    KeyAcceptable,
    /// The key is proven; a password is wanted, too.
    NeedsPassword,
    /// Ask the identity provider, then decide again.
    Ask(Question),
    /// The user is logged in, and the event `CONNECTED` is durable.
    Account(Box<Account>),
    /// The service failed: refuse. It was logged.
    Failed,
}

/// What [`Service::sftp_settled`] makes a decision of, once it is committed.
pub struct Ready(Box<Account>);

impl Service {
    /// The server with this id, or the only one that is online, if all are of one account. What it says is at most a second old.
    ///
    /// # Errors
    /// [`Unserved`]
    pub fn sftp_server(&self, id: Option<&str>, now_ms: i64) -> Result<Arc<ServerFacts>, Unserved> {
        if let Some(kept) = self.kept_sftp_server(id, now_ms) {
            return Ok(kept);
        }
        let mut work = self.work(now_ms);
        let facts = Arc::new(transfer::served(&mut work, id)?);
        let mut all = lock(&self.sftp.facts);
        all.retain(|kept| kept.id.as_deref() != id);
        if all.len() >= MAX_FACTS {
            all.remove(0);
        }
        all.push(Kept { id: id.map(str::to_owned), read_ms: now_ms, facts: facts.clone() });
        Ok(facts)
    }

    /// What [`Self::sftp_server`] has read within the last second. It does not block.
    #[must_use]
    pub fn kept_sftp_server(&self, id: Option<&str>, now_ms: i64) -> Option<Arc<ServerFacts>> {
        let is_fresh = |kept: &&Kept| {
            kept.id.as_deref() == id && (0..FACTS_MS).contains(&now_ms.saturating_sub(kept.read_ms))
        };
        lock(&self.sftp.facts).iter().find(is_fresh).map(|kept| kept.facts.clone())
    }

    /// Decides a login, except for the commit. `answer` is that of the identity provider, once it was asked: `Some(None)` if
    /// it refuses. Called again after a conflict, with the time of then.
    pub fn sftp_login(
        &self,
        login: &Login<'_>,
        connection: &Connection,
        answer: Option<Option<&Answer>>,
        now_ms: i64,
    ) -> Attempt<Ready, Decision> {
        // Without the cache, which knows users who exist and not those who do not.
        let mut work = self.work(now_ms);
        let decided = match transfer::login(&mut work, &self.policies, login, answer) {
            Ok(Step::Accepted(account)) => {
                let session = Session::new(connection.clone(), &account);
                let home = account.directories.start();
                let (key, certificate) = (account.key.as_ref(), account.certificate.as_ref());
                let proved = record::Proved { key, certificate };
                match record::connected(&session, &home, &proved, now_ms) {
                    Ok(event) => {
                        let transaction = work.into_transaction(vec![event]);
                        return Attempt::Commit(transaction, Ready(account));
                    }
                    Err(fault) => Err(fault),
                }
            }
            Ok(step) => Ok(step),
            Err(fault) => Err(fault),
        };
        match decided {
            Err(Fault::Store(StoreError::Conflict)) => return Attempt::Again,
            // A record may have changed between two reads.
            Ok(_) | Err(_) => match work.is_current() {
                Ok(true) => {}
                Ok(false) => return Attempt::Again,
                Err(fault) => return Attempt::Done(failed(&fault)),
            },
        }
        Attempt::Done(match decided {
            Ok(Step::Refused(refusal)) => Decision::Refused(refusal),
            Ok(Step::KeyAcceptable) => Decision::KeyAcceptable,
            Ok(Step::NeedsPassword) => Decision::NeedsPassword,
            Ok(Step::Ask(question)) => Decision::Ask(question),
            // It was committed above.
            Ok(Step::Accepted(_)) => Decision::Failed,
            Err(fault) => failed(&fault),
        })
    }

    /// Whether the user of a session could log in now as well, with the same key and role. The identity provider is not
    /// asked again. Call it from time to time, and end the session if it fails.
    ///
    /// # Errors
    /// Why not. A failure of the service is none: the next check decides.
    pub fn sftp_still_admits(
        &self,
        login: &Login<'_>,
        session: &Session,
        now_ms: i64,
    ) -> Result<(), Refusal> {
        let mut work = self.work(now_ms);
        let found = transfer::still_admits(&mut work, &self.policies, login, &session.role_arn);
        match (found, work.is_current()) {
            (Ok(Some(refusal)), Ok(true)) => Err(refusal),
            (Err(fault), _) | (_, Err(fault)) => {
                tracing::error!(%fault, "a session could not be checked again");
                Ok(())
            }
            // A record may have changed between two reads: the next check decides.
            (Ok(_), Ok(_)) => Ok(()),
        }
    }

    /// The decision, once its event is durable, or the failure to make it so.
    pub fn sftp_settled(&self, ready: Ready, outcome: Result<(), StoreError>) -> Decision {
        match outcome {
            Ok(()) => Decision::Account(ready.0),
            Err(error) => failed(&error.into()),
        }
    }

    /// Decides a login and waits for the commit. Servers wait on their runtime instead.
    pub fn sftp_login_call(
        &self,
        login: &Login<'_>,
        connection: &Connection,
        answer: Option<Option<&Answer>>,
        now_ms: i64,
    ) -> Decision {
        let prepare = || self.sftp_login(login, connection, answer, now_ms);
        let finish = |ready, outcome| self.sftp_settled(ready, outcome);
        drive_and_wait(self.store.as_ref(), prepare, finish).unwrap_or(Decision::Failed)
    }

    /// The transaction with the event `CONNECTED` of a user that a file names, who has proved a key, perhaps with a certificate, or
    /// a password. The user is logged in when it is durable.
    ///
    /// # Errors
    /// If there are no random numbers for the event's id.
    pub fn sftp_file_connected(
        &self,
        session: &Session,
        home: &[u8],
        key: Option<&(String, &'static str)>,
        certificate: Option<&Certified>,
        now_ms: i64,
    ) -> Result<Transaction, Fault> {
        let proved = record::Proved { key, certificate };
        let event = NewEvent::new(record::connected(session, home, &proved, now_ms)?);
        Ok(Transaction { events: vec![event], ..Transaction::default() })
    }

    /// The transaction with the events of a session. What they record may be told to the peer when it is durable.
    ///
    /// # Errors
    /// If there are no random numbers for the ids of events.
    pub fn sftp_events(
        &self,
        session: &Session,
        events: &[FileEvent<'_>],
        now_ms: i64,
    ) -> Result<Transaction, Fault> {
        let event = |event| Ok(NewEvent::new(record::file_event(session, event, now_ms)?));
        let events = events.iter().map(event).collect::<Result<_, Fault>>()?;
        Ok(Transaction { events, ..Transaction::default() })
    }

    /// The same for something that was done with a file, which programs outside are told of in the same transaction. So begins the
    /// workflow of an upload. After a conflict it is called again.
    ///
    /// # Errors
    /// If the store cannot be read, or there are no random numbers for the ids of events.
    pub fn sftp_file_event(
        &self,
        session: &Session,
        event: &FileEvent<'_>,
        subject: &Subject<'_>,
        now_ms: i64,
    ) -> Result<Transaction, Fault> {
        let mut work = self.work(now_ms);
        announce::announce(&mut work, session, event, subject, now_ms)?;
        let mut events = vec![record::file_event(session, event, now_ms)?];
        events.extend(workflow::start(&mut work, session, event, subject, now_ms)?);
        Ok(work.into_transaction(events))
    }

    /// Records that tries to log in failed: those of a connection that ended without a login, or those before one. Call it at most once
    /// for each connection, and commit what it returns; `None` if the failure was counted and is summed up later
    /// ([`Service::sum_up_strangers`]).
    ///
    /// # Errors
    /// If there are no random numbers for the ids of events.
    pub fn sftp_auth_failed(
        &self,
        connection: &Connection,
        failure: &AuthFailure<'_>,
        now_ms: i64,
    ) -> Result<Option<Transaction>, Fault> {
        if !self.sftp.failures.may_record(connection, failure.user, now_ms) {
            return Ok(None);
        }
        let event = record::auth_failure(connection, failure, now_ms)?;
        Ok(Some(Transaction { events: vec![NewEvent::new(event)], ..Transaction::default() }))
    }

    /// Sums up in the audit log the failures of the minutes that are over; when the server ends, also of the current one.
    pub(super) fn sum_up_failures(&self, now_ms: i64, at_end: bool) -> Result<(), Fault> {
        for ended in self.sftp.failures.ended(now_ms, at_end) {
            let events = vec![NewEvent::new(record::sum_of_failures(&ended, now_ms)?)];
            let outcome =
                self.store.commit_and_wait(Transaction { events, ..Transaction::default() });
            if let Err(error) = outcome {
                self.sftp.failures.keep(ended);
                return Err(error.into());
            }
        }
        Ok(())
    }
}

fn failed(fault: &Fault) -> Decision {
    tracing::error!(%fault, "a login could not be decided");
    Decision::Failed
}
