//! Logins: what a client shows, decided by the service.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use outlast_api::service::sftp::{Connection as Described, Decision, Session};
use outlast_crypto::Secret;
use outlast_domain::transfer::{Account, Login, Refusal};
use outlast_ssh::{Attempt, AuthDecision, Certificate, KeyOffer, Method, Signed};
use outlast_store::driver::drive;

use super::SftpServer;
use super::listener::Listening;

/// Result of a try to log in.
pub(super) struct Outcome {
    pub(super) decision: AuthDecision,
    /// The user, if the try succeeded.
    pub(super) user: Option<User>,
    /// Why it failed, for the audit event of the connection's end.
    pub(super) failure: Option<Failure>,
}

/// A failed try.
pub(super) struct Failure {
    pub(super) user: String,
    pub(super) method: &'static str,
    pub(super) refusal: Refusal,
}

/// A user who is logged in.
pub(super) struct User {
    pub(super) account: Arc<Account>,
    pub(super) session: Arc<Session>,
    /// Counts as a session of the user until it is dropped.
    pub(super) _place: Place,
}

/// Sessions and tries of each user, by the name that clients give.
pub(super) struct Users {
    most: usize,
    open: Arc<Mutex<HashMap<String, usize>>>,
}

/// One of them.
pub(super) struct Place {
    open: Arc<Mutex<HashMap<String, usize>>>,
    user: String,
}

impl Users {
    pub(super) fn new(most: usize) -> Self {
        Self { most, open: Arc::default() }
    }

    /// One more session of a user, unless there are too many.
    fn enter(&self, user: &str) -> Option<Place> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let count = open.entry(user.to_owned()).or_default();
        if *count >= self.most {
            return None;
        }
        *count += 1;
        Some(Place { open: self.open.clone(), user: user.to_owned() })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&self.user) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.user);
            }
        }
    }
}

/// What a client has shown.
struct Shown {
    user: String,
    key: Option<Box<KeyOffer>>,
    password: Option<Secret>,
    method: &'static str,
}

/// A key that was proven in this connection, where a password is wanted, too.
#[derive(Clone)]
pub(super) struct Proven {
    pub(super) user: String,
    pub(super) key: Vec<u8>,
    pub(super) certificate: Option<Certificate>,
}

impl Outcome {
    fn of(decision: AuthDecision) -> Self {
        Self { decision, user: None, failure: None }
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
    ) -> Outcome {
        let Attempt { user, method } = attempt;
        let shown = match method {
            Method::PublicKey(key) => {
                Shown { user, key: Some(key), password: None, method: "publickey" }
            }
            Method::Password(password) => {
                Shown { user, key: None, password: Some(password), method: "password" }
            }
            // A client asks for the methods in this way.
            Method::None => return Outcome::of(AuthDecision::Reject),
            Method::KeyboardInteractive(_) | Method::Other(_) => {
                Shown { user, key: None, password: None, method: "other" }
            }
        };
        let failed = |refusal| Outcome {
            decision: AuthDecision::Reject,
            user: None,
            failure: Some(Failure { user: shown.user.clone(), method: shown.method, refusal }),
        };
        if shown.key.as_ref().is_some_and(|offer| offer.signed == Signed::Invalid) {
            return failed(Refusal::WrongKey);
        }
        let tries = shown.password.is_some()
            || shown.key.as_ref().is_some_and(|offer| offer.signed == Signed::Valid);
        // Before the decision: its event says that the user is connected.
        let mut place = None;
        if tries {
            place = self.users.enter(&shown.user);
            if place.is_none() {
                return failed(Refusal::Unusable("the user has too many sessions".to_owned()));
            }
        }
        let blob = shown.key.as_ref().map(|offer| offer.key.blob().to_vec());
        let is_signed = shown.key.as_ref().is_some_and(|offer| offer.signed == Signed::Valid);
        // A password that follows a key is decided with it.
        let earlier = proven.filter(|proven| shown.password.is_some() && proven.user == shown.user);
        let certificate = match (&shown.key, &earlier) {
            (Some(offer), _) => offer.certificate.clone(),
            (None, earlier) => earlier.as_ref().and_then(|proven| proven.certificate.clone()),
        };
        let (blob, key_is_proven) = match (blob, earlier) {
            (None, Some(earlier)) => (Some(earlier.key), true),
            (blob, _) => (blob, is_signed),
        };
        let key = blob.as_deref();
        let accepted =
            self.certified(listening.signatures, key, certificate.as_ref(), &shown.user, peer.ip());
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
            certificate: certified.as_ref(),
            password: shown.password.as_ref(),
            source_ip: peer.ip(),
            session: &described.session,
        };
        let mut answer = None;
        for _ in 0..2 {
            let decided = self.decide(&login, &described, answer.as_ref()).await;
            match decided {
                Decision::Refused(refusal) => return failed(refusal),
                Decision::KeyAcceptable => return Outcome::of(AuthDecision::AcceptKey),
                Decision::NeedsPassword => {
                    return Outcome::of(AuthDecision::Partial(vec!["password"]));
                }
                Decision::Ask(question) => answer = Some((self.settings.ask)(question).await),
                Decision::Failed => return Outcome::of(AuthDecision::Reject),
                Decision::Account(account) => {
                    // Nobody is logged in without a proof.
                    let Some(place) = place else { return Outcome::of(AuthDecision::Reject) };
                    let session = Arc::new(Session::new((*described).clone(), &account));
                    let user = User { account: Arc::from(account), session, _place: place };
                    let decision = AuthDecision::Accept;
                    return Outcome { decision, user: Some(user), failure: None };
                }
            }
        }
        Outcome::of(AuthDecision::Reject)
    }

    async fn decide(
        self: &Arc<Self>,
        login: &Login<'_>,
        described: &Described,
        answer: Option<&Option<outlast_domain::transfer::Answer>>,
    ) -> Decision {
        let service = &self.service;
        let prepare = || async {
            let answer = answer.map(Option::as_ref);
            tokio::task::block_in_place(|| {
                service.sftp_login(login, described, answer, (self.clock)())
            })
        };
        let finish = |ready, outcome| service.sftp_settled(ready, outcome);
        drive(service.store().as_ref(), prepare, finish).await.unwrap_or(Decision::Failed)
    }
}
