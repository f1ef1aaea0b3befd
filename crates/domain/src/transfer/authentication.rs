//! `SftpAuthenticationMethods`: what users of a custom identity provider must prove.

use serde::{Deserialize, Serialize};

/// What a user must prove.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Methods {
    /// `PASSWORD`
    Password,
    /// `PUBLIC_KEY`
    PublicKey,
    /// `PUBLIC_KEY_OR_PASSWORD`
    #[default]
    Either,
    /// `PUBLIC_KEY_AND_PASSWORD`
    Both,
}

impl Methods {
    /// All of them, with AWS's names.
    pub const ALL: [(Self, &'static str); 4] = [
        (Self::Password, "PASSWORD"),
        (Self::PublicKey, "PUBLIC_KEY"),
        (Self::Either, "PUBLIC_KEY_OR_PASSWORD"),
        (Self::Both, "PUBLIC_KEY_AND_PASSWORD"),
    ];

    /// AWS's name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(known, _)| *known == self).map_or("", |(_, name)| name)
    }

    /// Reverses [`Methods::name`].
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(method, _)| *method)
    }

    /// Whether a public key is of use.
    pub fn takes_key(self) -> bool {
        self != Self::Password
    }

    /// Whether a password is of use.
    pub fn takes_password(self) -> bool {
        self != Self::PublicKey
    }
}
