//! Kernels that a plan or `outlast lab calibrate` describes: profiles as data.

mod running;

use std::sync::Mutex;

pub use running::running;

use serde::{Deserialize, Serialize};

use super::{PROFILES, Profile, Tcp};
use crate::error::LabError;

/// A kernel that is not in [`PROFILES`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    /// Its name in a plan's profiles.
    pub name: String,
    /// What it does.
    #[serde(flatten)]
    pub tcp: Tcp,
    /// Where these values are from.
    pub source: String,
}

/// Profiles that were made from data. They live as long as the process, like the rows of the table; a plan has few.
static MADE: Mutex<Vec<&'static Profile>> = Mutex::new(Vec::new());

impl Kernel {
    /// One that behaves like the first row of the table.
    pub fn like_the_default(name: &str) -> Self {
        let source = PROFILES.first().map_or_else(String::new, |row| format!("as {}", row.name));
        Self { name: name.to_owned(), tcp: Tcp::default(), source }
    }

    /// One that behaves like this row.
    pub fn like(name: &str, row: &Profile) -> Self {
        Self { name: name.to_owned(), tcp: row.tcp, source: format!("as {}", row.name) }
    }

    /// It as a table of a plan.
    pub fn toml(&self) -> Result<String, LabError> {
        Ok(format!("[[kernel]]\n{}", toml::to_string(self).map_err(LabError::failed)?))
    }

    /// It as a profile.
    pub fn profile(&self) -> &'static Profile {
        let mut made = match MADE.lock() {
            Ok(made) => made,
            Err(poisoned) => poisoned.into_inner(),
        };
        if let Some(known) = made.iter().find(|row| row.name == self.name && row.tcp == self.tcp) {
            return known;
        }
        let leaked = |text: &str| -> &'static str { Box::leak(text.to_owned().into_boxed_str()) };
        let row: &'static Profile = Box::leak(Box::new(Profile {
            name: leaked(&self.name),
            tcp: self.tcp,
            source: leaked(&self.source),
        }));
        made.push(row);
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_made_once() {
        let tcp = Tcp { hz: 1000, ..Tcp::default() };
        let own = Kernel { tcp, ..Kernel::like_the_default("mine") };
        let made = own.profile();
        assert_eq!((made.name, made.tcp), ("mine", tcp));
        assert!(std::ptr::eq(made, own.profile()));
        let slower = Tcp { hz: 100, ..tcp };
        assert!(!std::ptr::eq(made, Kernel { tcp: slower, ..own }.profile()));
    }

    /// Results of before a field existed are read: it has today's value.
    #[test]
    fn what_a_stored_kernel_lacks_is_as_today() {
        let stored = r#"{"name":"mine","hz":1000,"replies":3,"source":"x"}"#;
        let read: Kernel = serde_json::from_str(stored).unwrap();
        assert_eq!(read.tcp, Tcp { hz: 1000, replies: 3, ..Tcp::default() });
    }
}
