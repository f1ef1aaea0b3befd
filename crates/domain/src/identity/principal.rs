//! The identity of callers.

use crate::arn;

/// A caller whose signature has been verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// Account that it belongs to.
    pub account: String,
    /// Access key that signed.
    pub access_key_id: String,
    /// A user or a session.
    pub identity: Identity,
}

/// Kind of a principal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identity {
    /// A user with an access key of its own.
    User {
        /// Name.
        name: String,
        /// Unique id, `AIDA...`.
        id: String,
    },
    /// A session of a role.
    Session {
        /// Name of the role.
        role: String,
        /// Unique id of the role, `AROA...`.
        role_id: String,
        /// Name of the session.
        session: String,
        /// When the session started, milliseconds since 1970.
        issued_ms: i64,
    },
}

impl Principal {
    /// `arn:aws:iam::account:user/name`, or `arn:aws:sts::account:assumed-role/role/session`.
    pub fn arn(&self) -> String {
        match &self.identity {
            Identity::User { name, .. } => arn::iam(&self.account, &format!("user/{name}")),
            Identity::Session { role, session, .. } => {
                arn::assumed_role(&self.account, role, session)
            }
        }
    }

    /// ARN of the role, if this is a session.
    pub fn role_arn(&self) -> Option<String> {
        match &self.identity {
            Identity::User { .. } => None,
            Identity::Session { role, .. } => {
                Some(arn::iam(&self.account, &format!("role/{role}")))
            }
        }
    }

    /// STS `UserId`: the unique id of a user, or `role id:session`.
    pub fn unique_id(&self) -> String {
        match &self.identity {
            Identity::User { id, .. } => id.clone(),
            Identity::Session { role_id, session, .. } => format!("{role_id}:{session}"),
        }
    }

    /// Unique id of the user, or of the session's role.
    pub fn principal_id(&self) -> &str {
        match &self.identity {
            Identity::User { id, .. } | Identity::Session { role_id: id, .. } => id,
        }
    }

    /// Name of the user; a session has none.
    pub fn user_name(&self) -> &str {
        match &self.identity {
            Identity::User { name, .. } => name,
            Identity::Session { .. } => "",
        }
    }
}
