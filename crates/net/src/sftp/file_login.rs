//! Logins of users that a file names. They prove a key, have a certificate for it, or show a password.

use std::sync::Arc;

use outlast_api::service::sftp::Session;
use outlast_crypto::Secret;
use outlast_domain::transfer::Refusal;
use outlast_ssh::{AuthDecision, KeyOffer, Signed};
use tokio::sync::Notify;

use super::certified::{Certificated, Claimant, Proof};
use super::listener::Listening;
use super::login::{FileLogin, Outcome, Renewal, Shown, User, seconds, too_many, unless_gone};
use super::roster::{FileUser, Roster};
use super::turns::on_thread;
use super::{SftpServer, tree};
use crate::metrics::{Action, Limit};
use crate::peer::Peer;

/// A user who has shown something.
struct Found {
    user: Arc<FileUser>,
    proof: Proof,
    /// Whether it is more than the offer of a key.
    is_proven: bool,
}

impl SftpServer {
    /// The users of the file, if the listener serves one.
    pub(super) fn roster(&self) -> Option<Arc<Roster>> {
        let users = self.settings.users.as_ref()?;
        Some(self.quotas.follow(|| users.borrow().clone()))
    }

    /// Decides a try to log in.
    pub(super) async fn file_login(
        self: &Arc<Self>,
        login: FileLogin<'_>,
        shown: &Shown,
        gone: &Notify,
    ) -> Result<Outcome, Refusal> {
        let FileLogin { roster, listening, described, peer } = login;
        let roster = &roster;
        let now_ms = (self.clock)();
        let from = Claimant { user: &shown.user, source: peer.ip(), now_ms };
        let Found { user: found, proof, is_proven } = match (&shown.key, &shown.password) {
            (Some(offer), _) => self.with_key(roster, listening, offer, &from)?,
            (None, Some(password)) => self.with_password(roster, password, &from, gone).await?,
            (None, None) => return Err(Refusal::Method),
        };
        if !is_proven {
            return Ok(Outcome::of(AuthDecision::AcceptKey));
        }
        let user = &shown.user;
        let most = found.sessions.unwrap_or(self.settings.sessions_by_user);
        let place = self.users.enter(user, most).ok_or_else(too_many)?;
        let session = Arc::new(Session::of_file(described.clone(), user, &roster.user_arn(user)));
        // Before the event that says that the user is connected.
        let (server, opened, account) =
            (self.clone(), found.clone(), roster.facts.scope.account.clone());
        let (storage, reception) = (self.storage_of(&session.user_arn), self.reception(&session));
        let turn = unless_gone(gone, place.logins.acquire()).await?;
        let measuring = unless_gone(gone, self.quotas.measuring(&found.tree)).await?;
        let thread = unless_gone(gone, self.logins.acquire()).await?;
        let view = on_thread([], move || {
            tree::view(&opened.tree, &account, &storage, &server.quotas, &reception, seconds)
                .map(|view| view.user(opened.name.as_bytes()))
        });
        let view = view.await;
        drop((turn, measuring, thread));
        let view = view.unwrap_or_else(|_| Err(outlast_sftp::error::Status::Failure.into()));
        let view = view.map_err(|error| Refusal::Unusable(error.to_string()))?;
        let (key, certificate) = match &proof {
            Proof::Key(blob) => (FileUser::fingerprint(blob), None),
            Proof::Password => (None, None),
            Proof::Certificate(certificated) => {
                let key = certificated.certificate.key();
                (FileUser::fingerprint(key.blob()), Some(&certificated.shown))
            }
        };
        let event =
            self.service.sftp_file_connected(&session, b"/", key.as_ref(), certificate, now_ms);
        let recorded = match event {
            Ok(transaction) => super::journal::commit(&self.service, transaction).await,
            Err(fault) => Err(fault.to_string()),
        };
        if let Err(error) = recorded {
            tracing::error!(error, "a login could not be recorded");
            return Ok(Outcome::of(AuthDecision::Reject));
        }
        let target = found.clone();
        Ok(Outcome::accepted(User {
            arn: session.user_arn.clone(),
            welcome: roster.facts.welcome.clone(),
            view: Arc::new(view),
            target: Arc::new(move |path| target.tree.target(path)),
            renewal: Renewal::File { user: found, proof },
            session,
            place: Arc::new(place),
        }))
    }

    fn with_key(
        &self,
        roster: &Roster,
        listening: &Listening,
        offer: &KeyOffer,
        from: &Claimant<'_>,
    ) -> Result<Found, Refusal> {
        let is_proven = offer.signed == Signed::Valid;
        let (blob, signatures) = (offer.key.blob(), listening.signatures);
        let Some(certificate) = &offer.certificate else {
            self.certified(signatures, Some(blob), None, from)?;
            let user = roster.with_key(from.user, blob, from.source, from.now_ms)?;
            return Ok(Found { user, proof: Proof::Key(blob.to_vec()), is_proven });
        };
        // The same work whether or not there is such a user.
        let user = roster.named(from.user);
        let authorities = user.as_ref().map_or(&[][..], |user| &user.authorities);
        let shown = self.certified_by(authorities, signatures, certificate, from);
        let (user, shown) = (user?.clone(), shown?);
        user.admits(from.source, from.now_ms)?;
        let certificate = certificate.clone();
        let certificated = Certificated { certificate, shown, signatures, at_ms: from.now_ms };
        Ok(Found { user, proof: Proof::Certificate(Box::new(certificated)), is_proven })
    }

    /// Compares a password with the user's hash, or with another one if there is no such user: the same words after the same time.
    ///
    /// Addresses take turns, so that who tries many passwords does not keep others waiting.
    async fn with_password(
        &self,
        roster: &Roster,
        password: &Secret,
        from: &Claimant<'_>,
        gone: &Notify,
    ) -> Result<Found, Refusal> {
        let hash = roster.hash(from.user).ok_or(Refusal::Method)?;
        let is_right = {
            let peer = format!("{:?}", Peer::of(from.source));
            let turn = unless_gone(gone, self.passwords.take(&peer)).await?;
            let Ok(_turn) = turn else {
                self.tally.count(Limit::SlowByPrincipal, Action::Refused);
                let text = "too many passwords are being tried from this address";
                return Err(Refusal::Unusable(text.to_owned()));
            };
            tokio::task::block_in_place(|| hash.verify(password))
        };
        // The file may have changed meanwhile, and the next roster decides about the next try.
        let user = roster.with_password(from.user, is_right, from.source, from.now_ms)?;
        Ok(Found { user, proof: Proof::Password, is_proven: true })
    }

    /// Whether a session that began with this proof may go on.
    pub(super) fn still_in_file(
        &self,
        user: &FileUser,
        proof: &Proof,
        from: &Claimant<'_>,
    ) -> Result<(), Refusal> {
        let Some(roster) = self.roster() else { return Ok(()) };
        match proof {
            Proof::Key(key) => self.still_certified(Some(key), None, from.user, from.source)?,
            Proof::Password => {}
            Proof::Certificate(certificated) if !self.cannot_check() => {
                let Certificated { certificate, signatures, at_ms, .. } = &**certificated;
                let at_login = Claimant { now_ms: *at_ms, ..*from };
                let authorities = &roster.named(from.user)?.authorities;
                self.certified_by(authorities, signatures, certificate, &at_login)?;
            }
            Proof::Certificate(_) => {}
        }
        roster.keeps(user, proof, from.source, from.now_ms)
    }
}
