//! What is to be said of a connection.

use outlast_crypto::groups::Group;
use outlast_negotiate::{Mode, Offer, Rules};
use serde::{Deserialize, Serialize};

use crate::event::{Handshake, Outcome};
use crate::known::{self, Ability};

/// What a connection came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// A post-quantum group.
    Hybrid,
    /// A post-quantum group whose share the client had to be asked for.
    HybridAfterRetry,
    /// It advertised post-quantum and got classical: [`Cause`] says why.
    Missed,
    /// It never offers more than classical groups.
    NeverOffers,
    /// It offers post-quantum groups that are not served here only.
    Unserved,
    /// It offers post-quantum groups of old drafts only.
    OldDraft,
    /// It speaks TLS 1.2 at most.
    Tls12,
    /// The policy refused it.
    Refused,
    /// The handshake failed.
    Failed,
}

impl Verdict {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Hybrid,
        Self::HybridAfterRetry,
        Self::Missed,
        Self::NeverOffers,
        Self::Unserved,
        Self::OldDraft,
        Self::Tls12,
        Self::Refused,
        Self::Failed,
    ];

    /// As people read it.
    pub fn label(self) -> &'static str {
        match self {
            Self::Hybrid => "hybrid",
            Self::HybridAfterRetry => "hybrid after retry",
            Self::Missed => "advertised post-quantum but got classical",
            Self::NeverOffers => "never offers it",
            Self::Unserved => "other post-quantum groups",
            Self::OldDraft => "old draft groups",
            Self::Tls12 => "TLS 1.2 only",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }

    /// Of a handshake.
    pub fn of(handshake: &Handshake) -> Self {
        let served = match &handshake.outcome {
            Outcome::Refused(_) => return Self::Refused,
            Outcome::Failed(_) => return Self::Failed,
            Outcome::Served(served) => served,
        };
        match (served.post_quantum, served.hello_retry) {
            (true, false) => return Self::Hybrid,
            (true, true) => return Self::HybridAfterRetry,
            (false, _) => {}
        }
        match handshake.offer.as_ref().map_or(Ability::Unreadable, known::ability) {
            Ability::PostQuantum => Self::Missed,
            Ability::Unserved => Self::Unserved,
            Ability::OldDraft => Self::OldDraft,
            Ability::Tls12 => Self::Tls12,
            Ability::Classical | Ability::Unreadable => Self::NeverOffers,
        }
    }
}

/// Why a client that advertised post-quantum got classical.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The listener's mode is `allow` or `off`.
    Mode,
    /// The policy has none of the post-quantum groups that it names.
    Policy,
    /// The policy has one, and the mode prefers it: a defect of this program.
    Defect,
}

impl Cause {
    /// As people read it.
    pub fn label(self) -> &'static str {
        match self {
            Self::Mode => "the listener's mode is allow or off",
            Self::Policy => "the policy has none of the post-quantum groups that it names",
            Self::Defect => {
                "the policy has a group that it names: this is a defect, please report it"
            }
        }
    }

    /// Whether the operator has chosen it so.
    pub fn is_chosen(self) -> bool {
        matches!(self, Self::Mode | Self::Policy)
    }

    /// Why, if this handshake is one that was missed.
    pub fn of(handshake: &Handshake, offer: &Offer) -> Self {
        if matches!(handshake.mode.as_str(), "allow" | "off") {
            return Self::Mode;
        }
        let Ok(rules) = Rules::named(&handshake.policy) else { return Self::Policy };
        let rules = Rules { mode: Mode::Prefer, ..rules };
        let named = |row: &'static Group| {
            row.strength.is_post_quantum() && offer.groups.contains(&row.code_point)
        };
        if rules.groups().any(named) { Self::Defect } else { Self::Policy }
    }
}
