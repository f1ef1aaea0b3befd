//! Logins: what a client shows, decided by the service.

use std::collections::HashMap;
use std::future::ready;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};

use outlast_api::service::sftp::{Connection as Described, Decision, Session};
use outlast_crypto::Secret;
use outlast_domain::transfer::{Account, Answer, Located, Login, Question, Refusal, ServerFacts};
use outlast_sftp::handles::Handles;
use outlast_sftp::path::RemotePath;
use outlast_sftp::view::View;
use outlast_ssh::{Attempt, AuthDecision, Certificate, KeyOffer, Method, Signed};
use outlast_store::driver::{self, drive};
use tokio::sync::{Notify, Semaphore};

use super::SftpServer;
use super::certified::{Certificated, Claimant, Proof};
use super::failures::{Failure, Gravity};
use super::home::Home;
use super::journal::Target;
use super::listener::Listening;
use super::roster::{FileUser, Roster};
use super::turns::on_thread;
use crate::limits;
use crate::metrics::{Action, Limit};
use crate::peer::Peer;
use crate::server::system_clock;

/// Result of a try to log in.
pub(super) struct Outcome {
    pub(super) decision: AuthDecision,
    /// The user, if the try succeeded.
    pub(super) user: Option<User>,
    /// Why it failed, for the audit event of the connection's end.
    pub(super) failure: Option<Failure>,
}

/// A user who is logged in.
pub(super) struct User {
    pub(super) arn: String,
    /// Text that the user is shown.
    pub(super) welcome: Option<String>,
    /// What the user sees.
    pub(super) view: Arc<View>,
    /// Where the user's files are, for audit events.
    pub(super) target: Target,
    /// By what the session is checked again.
    pub(super) renewal: Renewal,
    pub(super) session: Arc<Session>,
    /// Counts as a session of the user until it is dropped, by the operations of the session, too.
    pub(super) place: Arc<Place>,
}

/// By what a session is checked again while it lasts.
#[derive(Clone)]
pub(super) enum Renewal {
    /// A user of a file, with what the user has shown.
    File { user: Arc<FileUser>, proof: Proof },
    /// A user of the API, with the key that was proven.
    Account { key: Option<Vec<u8>>, certified: Option<Box<Certificated>> },
}

/// Sessions of each user, by the name that clients give.
pub(super) struct Users {
    open: Arc<Mutex<HashMap<String, Sessions>>>,
    /// Files and folders that all of them have open, and how many one user may have.
    handles: Arc<Handles>,
    handles_of_user: usize,
}

/// Those of one user.
struct Sessions {
    count: usize,
    turns: Arc<Semaphore>,
    logins: Arc<Semaphore>,
    held: Arc<AtomicUsize>,
    handles: Arc<Handles>,
}

/// One of them.
pub(super) struct Place {
    open: Arc<Mutex<HashMap<String, Sessions>>>,
    user: String,
    /// What operations of the user wait for; nobody closes it.
    pub(super) turns: Arc<Semaphore>,
    /// The same for logins that open folders.
    pub(super) logins: Arc<Semaphore>,
    /// Bytes that the sessions of the user hold in memory.
    pub(super) held: Arc<AtomicUsize>,
    /// Files and folders that the sessions of the user have open.
    pub(super) handles: Arc<Handles>,
}

impl Users {
    /// Users who may have so many files and folders open together.
    pub(super) fn new(handles: usize) -> Self {
        let handles_of_user = (handles / limits::SFTP_HANDLES_SHARE).max(1);
        Self { open: Arc::default(), handles: Arc::new(Handles::new(handles)), handles_of_user }
    }

    /// One more session of a user, unless there are `most`.
    pub(super) fn enter(&self, user: &str, most: usize) -> Option<Place> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let count = open.get(user).map_or(0, |sessions| sessions.count);
        if count >= most {
            return None;
        }
        let new = || Sessions {
            count: 0,
            turns: Arc::new(Semaphore::new(limits::SFTP_THREADS_OF_USER)),
            logins: Arc::new(Semaphore::new(limits::SFTP_LOGINS_OF_USER)),
            held: Arc::default(),
            handles: Arc::new(Handles::among(self.handles.clone(), self.handles_of_user)),
        };
        let sessions = open.entry(user.to_owned()).or_insert_with(new);
        sessions.count += 1;
        let (turns, held) = (sessions.turns.clone(), sessions.held.clone());
        let (logins, handles) = (sessions.logins.clone(), sessions.handles.clone());
        let (open, user) = (self.open.clone(), user.to_owned());
        Some(Place { open, user, turns, logins, held, handles })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sessions) = open.get_mut(&self.user) {
            sessions.count -= 1;
            if sessions.count == 0 {
                open.remove(&self.user);
            }
        }
    }
}

/// What is recorded of a method that is not served.
const OTHER_METHOD: &str = "other";

/// What a client has shown.
pub(super) struct Shown {
    pub(super) user: String,
    pub(super) key: Option<Box<KeyOffer>>,
    pub(super) password: Option<Secret>,
    method: &'static str,
}

impl Shown {
    /// Nothing that a login could be decided with.
    fn nothing(user: String, method: &'static str) -> Self {
        Self { user, key: None, password: None, method }
    }

    /// Whether it is more than the offer of a key.
    fn proves(&self) -> bool {
        let signed = self.key.as_ref().is_some_and(|offer| offer.signed == Signed::Valid);
        signed || self.password.is_some()
    }

    fn failure(&self, refusal: Refusal) -> Failure {
        let gravity = match refusal {
            Refusal::Signature => Gravity::Signature,
            _ if self.proves() => Gravity::Proof,
            Refusal::Certificate(_) | Refusal::Unreadable(_) => Gravity::Unusable,
            _ if self.key.is_some() => Gravity::Offered,
            _ => Gravity::NotServed,
        };
        Failure { user: self.user.clone(), method: self.method, refusal, gravity }
    }
}

/// Where somebody tries to log in whom the file of users may know.
pub(super) struct FileLogin<'a> {
    pub(super) roster: Arc<Roster>,
    pub(super) listening: &'a Listening,
    pub(super) described: &'a Described,
    pub(super) peer: SocketAddr,
}

/// A key that was proven in this connection, where a password is wanted, too.
#[derive(Clone)]
pub(super) struct Proven {
    pub(super) user: String,
    pub(super) key: Vec<u8>,
    pub(super) certificate: Option<Certificate>,
}

impl Outcome {
    pub(super) fn of(decision: AuthDecision) -> Self {
        Self { decision, user: None, failure: None }
    }

    pub(super) fn accepted(user: User) -> Self {
        Self { decision: AuthDecision::Accept, user: Some(user), failure: None }
    }
}

impl SftpServer {
    /// Decides a try to log in.
    pub(super) async fn login(
        self: Arc<Self>,
        listening: Arc<Listening>,
        described: Arc<Described>,
        peer: SocketAddr,
        attempt: Attempt,
        proven: Option<Proven>,
        gone: Arc<Notify>,
    ) -> Outcome {
        let Attempt { user, method } = attempt;
        // What fails without a decision.
        let mut hopeless = None;
        let shown = match method {
            Method::PublicKey(key) => {
                hopeless = (key.signed == Signed::Invalid).then_some(Refusal::Signature);
                Shown { user, key: Some(key), password: None, method: "publickey" }
            }
            Method::Password(password) => {
                Shown { user, key: None, password: Some(password), method: "password" }
            }
            // A client asks for the methods in this way.
            Method::None => return Outcome::of(AuthDecision::Reject),
            Method::KeyboardInteractive(_) => Shown::nothing(user, OTHER_METHOD),
            Method::Other(name) => {
                hopeless = Some(Refusal::NotServed(name));
                Shown::nothing(user, OTHER_METHOD)
            }
            Method::Unusable { method, why } => {
                hopeless = Some(Refusal::Unreadable(why));
                Shown::nothing(user, method)
            }
        };
        let failed = |refusal| Outcome {
            decision: AuthDecision::Reject,
            user: None,
            failure: Some(shown.failure(refusal)),
        };
        if let Some(refusal) = hopeless {
            return failed(refusal);
        }
        if let Some(roster) = self.roster() {
            let login = FileLogin { roster, listening: &listening, described: &described, peer };
            return self.file_login(login, &shown, &gone).await.unwrap_or_else(failed);
        }
        let blob = shown.key.as_ref().map(|offer| offer.key.blob().to_vec());
        let is_signed = shown.key.as_ref().is_some_and(|offer| offer.signed == Signed::Valid);
        // A password that follows a key is decided with it.
        let earlier = proven.filter(|proven| shown.password.is_some() && proven.user == shown.user);
        let certificate = match (&shown.key, &earlier) {
            (Some(offer), _) => offer.certificate.clone(),
            (None, earlier) => earlier.as_ref().and_then(|proven| proven.certificate.clone()),
        };
        let key_was_accepted = earlier.is_some() && blob.is_none();
        let (blob, key_is_proven) = match (blob, earlier) {
            (None, Some(earlier)) => (Some(earlier.key), true),
            (blob, _) => (blob, is_signed),
        };
        let key = blob.as_deref();
        let now_ms = (self.clock)();
        let from = Claimant { user: &shown.user, source: peer.ip(), now_ms };
        let accepted = self.certified(listening.signatures, key, certificate.as_ref(), &from);
        let certified = match accepted {
            Ok(certified) => certified,
            Err(refusal) => return failed(refusal),
        };
        let login = Login {
            scope: &listening.facts.scope,
            server: &listening.facts.id,
            user: &shown.user,
            key,
            key_is_proven,
            key_was_accepted,
            certificate: certified.as_ref(),
            password: shown.password.as_ref(),
            source_ip: peer.ip(),
            session: &described.session,
        };
        let mut answer = None;
        // Again if the provider was replaced meanwhile.
        for _ in 0..3 {
            let (decided, place) = self.decide(&login, &described, answer.as_ref()).await;
            match decided {
                Decision::Refused(refusal) => return failed(refusal),
                Decision::KeyAcceptable => return Outcome::of(AuthDecision::AcceptKey),
                Decision::NeedsPassword => {
                    return Outcome::of(AuthDecision::Partial(vec!["password"]));
                }
                Decision::Ask(question) => match self.ask(question, &gone).await {
                    Ok(found) => answer = Some(found),
                    Err(refusal) => return failed(refusal),
                },
                Decision::Failed => return Outcome::of(AuthDecision::Reject),
                Decision::Account(account) => {
                    // Nobody is logged in without a proof.
                    let Some(place) = place.filter(|_| shown.proves()) else {
                        return Outcome::of(AuthDecision::Reject);
                    };
                    let session = Arc::new(Session::new((*described).clone(), &account));
                    let key = login.key.filter(|_| key_is_proven).map(<[u8]>::to_vec);
                    let certified = certificate.zip(certified).map(|(certificate, shown)| {
                        let signatures = listening.signatures;
                        Box::new(Certificated { certificate, shown, signatures, at_ms: now_ms })
                    });
                    let renewal = Renewal::Account { key, certified };
                    return Outcome::accepted(
                        self.user(Arc::from(account), session, renewal, place).await,
                    );
                }
            }
        }
        Outcome::of(AuthDecision::Reject)
    }

    /// Asks an identity provider. Addresses take turns, so that one that tries many logins leaves most of the questions to others.
    /// One whose connection has ended waits no longer.
    async fn ask(&self, question: Question, gone: &Notify) -> Result<Option<Answer>, Refusal> {
        let peer = format!("{:?}", Peer::of(question.source_ip));
        let Ok(_turn) = unless_gone(gone, self.questions.take(&peer)).await? else {
            self.tally.count(Limit::SlowByPrincipal, Action::Refused);
            let text = "too many logins from this address wait for the identity provider";
            return Err(Refusal::Unusable(text.to_owned()));
        };
        (self.settings.ask)(question).await
    }

    /// Whether the user of a session could log in now as well; a certificate may have expired. It may read the store.
    pub(super) fn still_admits(
        &self,
        facts: &ServerFacts,
        session: &Session,
        renewal: &Renewal,
        from: IpAddr,
    ) -> Result<(), Refusal> {
        let now_ms = (self.clock)();
        match renewal {
            Renewal::File { user, proof } => {
                let from = Claimant { user: &session.user, source: from, now_ms };
                self.still_in_file(user, proof, &from)
            }
            Renewal::Account { key, certified } => {
                self.still_certified(key.as_deref(), certified.as_deref(), &session.user, from)?;
                let login = Login {
                    scope: &facts.scope,
                    server: &facts.id,
                    user: &session.user,
                    key: key.as_deref(),
                    key_is_proven: true,
                    key_was_accepted: false,
                    certificate: certified.as_ref().map(|certified| &certified.shown),
                    password: None,
                    source_ip: from,
                    session: &session.connection.session,
                };
                self.service.sftp_still_admits(&login, session, now_ms)
            }
        }
    }

    /// Whether a key and its certificate still count. A session outlives the validity of its certificate, as with OpenSSH, and
    /// a moment in which the operator's files cannot be read.
    pub(super) fn still_certified(
        &self,
        key: Option<&[u8]>,
        certified: Option<&Certificated>,
        user: &str,
        source: IpAddr,
    ) -> Result<(), Refusal> {
        if self.settings.authorities.is_none() || self.cannot_check() {
            return Ok(());
        }
        let now_ms = certified.map_or_else(|| (self.clock)(), |certified| certified.at_ms);
        let from = Claimant { user, source, now_ms };
        let signatures = certified.map_or(&[][..], |certified| certified.signatures);
        let certificate = certified.map(|certified| &certified.certificate);
        self.certified(signatures, key, certificate, &from).map(|_| ())
    }

    /// Whether nobody can say now what is revoked.
    pub(super) fn cannot_check(&self) -> bool {
        let Some(Err(error)) = self.settings.authorities.as_ref().map(|read| read()) else {
            return false;
        };
        tracing::warn!(error, "sessions go on, although their certificates cannot be checked");
        true
    }

    /// A user of the API, with the files of the user's home.
    async fn user(
        &self,
        account: Arc<Account>,
        session: Arc<Session>,
        renewal: Renewal,
        place: Place,
    ) -> User {
        let storage = self.storage_of(&account.user_arn);
        let home = Arc::new(Home::new(account.clone(), storage, self.clock));
        let preparing = home.clone();
        // A failure is in the log, and the first request says so, too.
        let _ = on_thread([&place.logins, &self.logins], move || preparing.prepare()).await;
        let start = RemotePath::parse(&account.directories.start(), &RemotePath::root())
            .unwrap_or_else(|_| RemotePath::root());
        let home = self.reception(&session).guard(home);
        let view = View::new(seconds)
            .mount(RemotePath::root(), home)
            .home(start)
            .user(session.user.as_bytes());
        User {
            arn: account.user_arn.clone(),
            welcome: account.welcome.clone(),
            view: Arc::new(view),
            target: Arc::new(move |path| match account.directories.locate(path.as_bytes()) {
                Located::Object { bucket, path, .. } => [bucket.as_bytes(), b"/", &path].concat(),
                Located::Virtual(_) | Located::Missing => Vec::new(),
            }),
            renewal,
            session,
            place: Arc::new(place),
        }
    }

    /// Decides a login. A user who is accepted has a place among the user's sessions before the event says that the user is connected;
    /// nobody else takes one.
    async fn decide(
        self: &Arc<Self>,
        login: &Login<'_>,
        described: &Described,
        answer: Option<&Option<Answer>>,
    ) -> (Decision, Option<Place>) {
        let service = &self.service;
        let mut place = None;
        let prepare = || {
            let answer = answer.map(Option::as_ref);
            let attempt = tokio::task::block_in_place(|| {
                service.sftp_login(login, described, answer, (self.clock)())
            });
            if matches!(attempt, driver::Attempt::Commit(..)) && place.is_none() {
                place = self.users.enter(login.user, self.settings.sessions_by_user);
                if place.is_none() {
                    return ready(driver::Attempt::Done(Decision::Refused(too_many())));
                }
            }
            ready(attempt)
        };
        let finish = |accepted, outcome| service.sftp_settled(accepted, outcome);
        let decided = drive(service.store().as_ref(), prepare, finish).await;
        let decided = decided.unwrap_or(Decision::Failed);
        let place = place.filter(|_| matches!(decided, Decision::Account(_)));
        (decided, place)
    }
}

/// Waits, but no longer than the connection lasts.
pub(super) async fn unless_gone<T>(
    gone: &Notify,
    waits: impl Future<Output = T>,
) -> Result<T, Refusal> {
    tokio::select! {
        biased;
        done = waits => Ok(done),
        () = gone.notified() => {
            Err(Refusal::Unusable("the connection ended before the login was decided".to_owned()))
        }
    }
}

pub(super) fn too_many() -> Refusal {
    Refusal::Unusable("the user has too many sessions".to_owned())
}

/// The time in seconds since 1970, for listings.
pub(super) fn seconds() -> i64 {
    system_clock().div_euclid(1000)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail")]
mod tests {
    use super::*;

    #[test]
    fn a_users_sessions_share_turns_and_leave_some_to_others() {
        let users = Users::new(100);
        let (first, second) = (users.enter("a", 2).unwrap(), users.enter("a", 2).unwrap());
        assert!(users.enter("a", 2).is_none());
        let other = users.enter("b", 2).unwrap();
        let taken: Vec<_> =
            (0..limits::SFTP_THREADS_OF_USER).map(|_| first.turns.try_acquire().unwrap()).collect();
        assert!(second.turns.try_acquire().is_err());
        assert!(other.turns.try_acquire().is_ok());
        assert!(taken.len() < limits::SFTP_THREADS);
        // What the user's operations hold does not keep the user's logins waiting.
        let logins: Vec<_> = (0..limits::SFTP_LOGINS_OF_USER)
            .map(|_| second.logins.try_acquire().unwrap())
            .collect();
        assert!(first.logins.try_acquire().is_err() && other.logins.try_acquire().is_ok());
        drop(logins);
        drop(taken);
        // Ends of sessions take nothing from those that stay.
        drop(first);
        let third = users.enter("a", 2).unwrap();
        assert!(Arc::ptr_eq(&second.turns, &third.turns));
        assert!(Arc::ptr_eq(&second.held, &third.held) && !Arc::ptr_eq(&second.held, &other.held));
        drop((second, third));
        assert!(users.open.lock().unwrap().get("a").is_none());
    }
}
