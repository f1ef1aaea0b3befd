//! Logins of users that a file names. They prove keys.

use std::net::SocketAddr;
use std::sync::Arc;

use outlast_api::service::sftp::{Connection as Described, Session};
use outlast_domain::transfer::Refusal;
use outlast_ssh::AuthDecision;

use super::login::{Outcome, Renewal, ShownKey, User, seconds, too_many};
use super::roster::{FileUser, Roster};
use super::{SftpServer, tree};

impl SftpServer {
    /// The users of the file, if the listener serves one.
    pub(super) fn roster(&self) -> Option<Arc<Roster>> {
        let roster = self.settings.users.as_ref()?.borrow().clone();
        self.quotas.follow(&roster);
        Some(roster)
    }

    /// Decides a try to log in.
    pub(super) async fn file_login(
        self: &Arc<Self>,
        roster: &Arc<Roster>,
        described: &Described,
        peer: SocketAddr,
        user: &str,
        key: Option<ShownKey>,
    ) -> Result<Outcome, Refusal> {
        let now_ms = (self.clock)();
        let blob = key.as_ref().map(|key| key.blob.as_slice());
        let found = roster.find(user, blob, peer.ip(), now_ms)?;
        let Some(ShownKey { blob, is_proven: true }) = key else {
            return Ok(Outcome::of(AuthDecision::AcceptKey));
        };
        let most = found.sessions.unwrap_or(self.settings.sessions_by_user);
        let place = self.users.enter(user, most).ok_or_else(too_many)?;
        let session = Arc::new(Session::of_file(described.clone(), user, &roster.user_arn(user)));
        // Before the event that says that the user is connected.
        let (server, opened, account) =
            (self.clone(), found.clone(), roster.facts.scope.account.clone());
        let reception = self.reception(&session);
        let view = tokio::task::spawn_blocking(move || {
            let (storage, quotas) = (&server.storage, &server.quotas);
            tree::view(&opened.tree, &account, storage, quotas, &reception, seconds)
        });
        let view = view.await.unwrap_or_else(|_| Err(outlast_sftp::error::Status::Failure.into()));
        let view = view.map_err(|error| Refusal::Unusable(error.to_string()))?;
        let key = FileUser::fingerprint(&blob);
        let event = self.service.sftp_file_connected(&session, b"/", key.as_ref(), now_ms);
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
            renewal: Renewal::File { user: found, key: blob },
            session,
            place,
        }))
    }
}
