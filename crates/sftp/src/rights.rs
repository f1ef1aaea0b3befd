//! What a user may do in a folder of a view.

use crate::error::{Error, Result};

/// A set of rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rights(u16);

/// Names of rights in configurations, and their sets.
const NAMES: &[(&str, Rights)] = &[
    ("list", Rights::LIST),
    ("read", Rights::READ),
    ("write", Rights::WRITE),
    ("delete", Rights::DELETE),
    ("rename", Rights::RENAME),
    ("mkdir", Rights::MKDIR),
    ("setstat", Rights::SETSTAT),
    ("symlink", Rights::SYMLINK),
    ("all", Rights::ALL),
];

impl Rights {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// List names and see attributes.
    pub const LIST: Self = Self(1);
    /// Read files.
    pub const READ: Self = Self(2);
    /// Create and write files.
    pub const WRITE: Self = Self(4);
    /// Remove files and folders.
    pub const DELETE: Self = Self(8);
    /// Rename files and folders.
    pub const RENAME: Self = Self(16);
    /// Make folders.
    pub const MKDIR: Self = Self(32);
    /// Set permissions, owners, times and sizes.
    pub const SETSTAT: Self = Self(64);
    /// Make symbolic and hard links.
    pub const SYMLINK: Self = Self(128);
    /// Everything.
    pub const ALL: Self = Self(255);
    /// List and read.
    pub const READ_ONLY: Self = Self(3);

    /// The right of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, rights)| *rights)
    }

    /// The names of what is in the set, one by one.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let is_one = move |rights: Self| rights != Self::ALL && self.has(rights);
        NAMES.iter().filter(move |(_, rights)| is_one(*rights)).map(|(name, _)| *name)
    }

    /// Both sets together.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// What is in both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether all of another set are in this one.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Refuses what is not in the set.
    ///
    /// # Errors
    /// `SSH_FX_PERMISSION_DENIED`, with the right that is missing.
    pub fn demand(self, needed: Self) -> Result<()> {
        if self.has(needed) {
            return Ok(());
        }
        let missing = NAMES.iter().find(|(_, one)| needed.has(*one) && !self.has(*one));
        let name = missing.map_or("all", |(name, _)| *name);
        Err(Error::denied(format!("you do not have the right to {name} here")))
    }
}
