//! The principals of a statement.
//!
//! Sources: "AWS JSON policy elements: Principal", "AWS JSON policy elements: NotPrincipal".

use super::Caller;
use crate::arn::{Arn, account_of, is_account_id};

/// One principal of a statement.
#[derive(Debug, Clone)]
pub(super) enum Principal {
    /// `*`
    Everyone,
    /// An account, by its id or as `arn:aws:iam::account:root`.
    Account(String),
    /// A user, a role or a session.
    Arn {
        /// Its ARN.
        name: String,
        /// Its unique id when the document was stored; for a session, its role's. Unknown in documents of earlier
        /// builds.
        id: Option<String>,
    },
    /// A service, by its name, such as `acm-acme.amazonaws.com`.
    Service(String),
    /// A federated or canonical user, which no caller here is.
    Elsewhere,
    /// Accepted by earlier builds, and matches nobody: in a partition that does not exist, or with characters that no
    /// name has. The root of an account still stands for its account.
    Impossible(Box<Principal>),
}

/// How a statement matches a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Match {
    /// Not at all.
    No,
    /// Through its account only.
    Account,
    /// By the caller itself, by its role, or as everyone.
    Direct,
}

impl Principal {
    /// Parses an entry of `"AWS"`.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        if text == "*" {
            return Ok(Self::Everyone);
        }
        if is_account_id(text) {
            return Ok(Self::Account(text.to_owned()));
        }
        if text.contains(['*', '?']) {
            return Err("has a wildcard: only * alone may stand for principals");
        }
        match Arn::principal(text) {
            Some(arn) if arn.resource() == "root" => Ok(Self::Account(arn.account().to_owned())),
            Some(arn) => Ok(Self::Arn { name: arn.to_string(), id: None }),
            None => Self::impossible(text).ok_or(WRONG),
        }
    }

    /// The account that it belongs to, if it belongs to one.
    pub fn account(&self) -> Option<&str> {
        match self {
            Self::Account(account) => Some(account),
            Self::Arn { name, .. } => account_of(name),
            Self::Impossible(meant) => meant.account(),
            Self::Everyone | Self::Service(_) | Self::Elsewhere => None,
        }
    }

    fn impossible(text: &str) -> Option<Self> {
        let parts: Vec<_> = text.splitn(6, ':').collect();
        let ["arn", partition, service, "", account, resource] = parts[..] else { return None };
        let words: Vec<_> = resource.split('/').collect();
        if !partition.starts_with("aws") || !is_account_id(account) || words.contains(&"") {
            return None;
        }
        let meant = match (service, &words[..]) {
            ("iam", ["root"]) => Self::Account(account.to_owned()),
            ("iam", ["user" | "role", _, ..])
            | ("sts", ["assumed-role", _, _] | ["federated-user", _]) => Self::Elsewhere,
            _ => return None,
        };
        Some(Self::Impossible(Box::new(meant)))
    }

    fn speaks_of(&self, caller: Caller<'_>) -> Match {
        match self {
            Self::Everyone => Match::Direct,
            Self::Impossible(meant) => meant.speaks_of(caller),
            Self::Account(account) if account != caller.account => Match::No,
            Self::Account(_) if caller.is_root => Match::Direct,
            Self::Account(_) => Match::Account,
            Self::Arn { name, id }
                if (name == caller.arn || caller.role_arn == Some(name))
                    && caller.has_id(id.as_deref()) =>
            {
                Match::Direct
            }
            // A service that acts for itself has its name in place of an ARN.
            Self::Service(name) if name == caller.arn => Match::Direct,
            Self::Arn { .. } | Self::Service(_) | Self::Elsewhere => Match::No,
        }
    }
}

/// How `Principal` matches the caller.
pub(super) fn within(listed: &[Principal], caller: Caller<'_>) -> Match {
    listed.iter().map(|principal| principal.speaks_of(caller)).max().unwrap_or(Match::No)
}

/// How `NotPrincipal` matches the caller. The caller is exempt only if each of its identities is listed: its account,
/// and its role, and its session or user. "When you use NotPrincipal, you must also specify the account ARN of the
/// not-denied principal": otherwise the account would exempt everybody in it.
pub(super) fn outside(listed: &[Principal], caller: Caller<'_>) -> Match {
    let lists = |wanted: &str| {
        listed.iter().any(|principal| match principal {
            Principal::Everyone => true,
            Principal::Arn { name, id } => name == wanted && caller.has_id(id.as_deref()),
            Principal::Service(name) => name == wanted,
            Principal::Account(_) | Principal::Elsewhere | Principal::Impossible(_) => false,
        })
    };
    let account = within(listed, Caller { arn: "", role_arn: None, ..caller }) != Match::No;
    let spared =
        account && caller.role_arn.is_none_or(&lists) && (caller.is_root || lists(caller.arn));
    if spared { Match::No } else { Match::Direct }
}

const WRONG: &str = "is not an account id or the ARN of an account root, user, role or session";
