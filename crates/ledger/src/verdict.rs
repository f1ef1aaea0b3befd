//! Verdicts on connections.

use outlast_crypto::groups::Group;
use outlast_negotiate::ssh::{SshOffer, SshRules, decide_ssh, decide_ssh_server, served};
use outlast_negotiate::{Mode, Offer, Rules, SecurityPolicy};
use serde::{Deserialize, Serialize};

use crate::event::{Handshake, Outcome, SshHandshake, SshOutcome};
use crate::known::{self, Ability};
use crate::known_ssh;

/// The verdict on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// A post-quantum group.
    Hybrid,
    /// A post-quantum group whose share the client had to be asked for.
    HybridAfterRetry,
    /// It offered a post-quantum group and got a classical one: [`Cause`] says why.
    Missed,
    /// It only offers classical groups.
    NeverOffers,
    /// It only offers post-quantum groups that are not served here.
    Unserved,
    /// It only offers post-quantum groups of old drafts.
    OldDraft,
    /// It offers TLS 1.2 at most.
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

    /// Label for people.
    pub fn label(self) -> &'static str {
        match self {
            Self::Hybrid => "hybrid",
            Self::HybridAfterRetry => "hybrid after retry",
            Self::Missed => "advertised post-quantum but got classical",
            Self::NeverOffers => "never offers it",
            Self::Unserved => "unsupported post-quantum groups",
            Self::OldDraft => "old draft groups",
            Self::Tls12 => "TLS 1.2 only",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }

    /// The verdict on a handshake.
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
        Self::classical(handshake.offer.as_ref().map_or(Ability::Unreadable, known::ability))
    }

    /// The verdict on an SSH handshake.
    pub fn of_ssh(handshake: &SshHandshake) -> Self {
        match &handshake.outcome {
            SshOutcome::Refused(_) => Self::Refused,
            SshOutcome::Failed(_) => Self::Failed,
            SshOutcome::Served(served) if served.post_quantum => Self::Hybrid,
            SshOutcome::Served(_) => {
                let offer = handshake.offer.as_ref();
                Self::classical(offer.map_or(Ability::Unreadable, known_ssh::ability))
            }
        }
    }

    /// The verdict on a classical connection of a client that could do this.
    fn classical(ability: Ability) -> Self {
        match ability {
            Ability::PostQuantum => Self::Missed,
            Ability::Unserved => Self::Unserved,
            Ability::OldDraft => Self::OldDraft,
            Ability::Tls12 => Self::Tls12,
            Ability::Classical | Ability::Unreadable => Self::NeverOffers,
        }
    }
}

/// Why a client that offered a post-quantum group got a classical one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The listener's mode is `allow` or `off`.
    Mode,
    /// The policy has none of the post-quantum groups that it offers.
    Policy,
    /// An SSH client put a classical method first, and waited so long for the server's list that the server had to send
    /// it before it had the client's.
    Order,
    /// The policy has one, and the mode prefers it: a defect of this program.
    Defect,
}

impl Cause {
    /// Label for people.
    pub fn label(self) -> &'static str {
        match self {
            Self::Mode => "the listener's mode is allow or off",
            Self::Policy => "the policy allows none of the client's post-quantum groups",
            Self::Order => {
                "the client waited for the server's list, and prefers a classical key exchange"
            }
            Self::Defect => {
                "the policy allows one of the client's groups: this is a bug, please report it"
            }
        }
    }

    /// Whether the operator or the client has chosen so.
    pub fn is_chosen(self) -> bool {
        self != Self::Defect
    }

    /// The cause, if the verdict on this handshake is [`Verdict::Missed`].
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

    /// The same for an SSH handshake.
    pub fn of_ssh(handshake: &SshHandshake, offer: &SshOffer) -> Self {
        if matches!(handshake.mode.as_str(), "allow" | "off") {
            return Self::Mode;
        }
        let policy = SecurityPolicy::by_name(&handshake.policy).ok();
        let rules = policy.and_then(|row| SshRules::new(row, Some(Mode::Prefer), served).ok());
        let decide = if handshake.outgoing.is_some() { decide_ssh_server } else { decide_ssh };
        let preferred = rules.and_then(|rules| decide(&rules, offer).ok());
        if !preferred.is_some_and(|chosen| chosen.post_quantum) {
            return Self::Policy;
        }
        if handshake.blind { Self::Order } else { Self::Defect }
    }
}
