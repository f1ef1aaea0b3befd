//! Kernels that a plan or `outlast lab calibrate` describes: profiles as data.

mod running;

use std::fmt::Write as _;
use std::sync::Mutex;

pub use running::running;

use serde::{Deserialize, Serialize};

use super::{PROFILES, Profile};

/// A kernel that is not in [`PROFILES`]. The fields are those of [`Profile`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "Profile says what they are")]
pub struct Kernel {
    pub name: String,
    pub hz: u32,
    pub linear_syns: u32,
    pub least_timeout_us: u64,
    pub reordering_floor_us: u64,
    pub replies: u8,
    pub undoes_syn: bool,
    pub pieces: bool,
    pub patient_client: bool,
    pub source: String,
}

/// Profiles that were made from data. They live as long as the process, like the rows of the table; a plan has few.
static MADE: Mutex<Vec<&'static Profile>> = Mutex::new(Vec::new());

impl Kernel {
    /// One that behaves like the first row of the table.
    pub fn like_the_default(name: &str) -> Self {
        PROFILES.first().map_or_else(Self::none, |row| Self::like(name, row))
    }

    fn none() -> Self {
        Self {
            name: String::new(),
            hz: 250,
            linear_syns: 0,
            least_timeout_us: 0,
            reordering_floor_us: 0,
            replies: 1,
            undoes_syn: true,
            pieces: false,
            patient_client: false,
            source: String::new(),
        }
    }

    /// One that behaves like this row.
    pub fn like(name: &str, row: &Profile) -> Self {
        Self {
            name: name.to_owned(),
            hz: row.hz,
            linear_syns: row.linear_syns,
            least_timeout_us: row.least_timeout_us,
            reordering_floor_us: row.reordering_floor_us,
            replies: row.replies,
            undoes_syn: row.undoes_syn,
            pieces: row.pieces,
            patient_client: row.patient_client,
            source: format!("as {}", row.name),
        }
    }

    /// It as a table of a plan.
    pub fn toml(&self) -> String {
        let mut text = String::from("[[kernel]]\n");
        let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
        let rows = [
            ("name", quoted(&self.name)),
            ("hz", self.hz.to_string()),
            ("linear_syns", self.linear_syns.to_string()),
            ("least_timeout_us", self.least_timeout_us.to_string()),
            ("reordering_floor_us", self.reordering_floor_us.to_string()),
            ("replies", self.replies.to_string()),
            ("undoes_syn", self.undoes_syn.to_string()),
            ("pieces", self.pieces.to_string()),
            ("patient_client", self.patient_client.to_string()),
            ("source", quoted(&self.source)),
        ];
        for (key, value) in rows {
            let _ = writeln!(text, "{key} = {value}");
        }
        text
    }

    /// It as a profile.
    pub fn profile(&self) -> &'static Profile {
        let mut made = match MADE.lock() {
            Ok(made) => made,
            Err(poisoned) => poisoned.into_inner(),
        };
        if let Some(known) = made.iter().find(|row| Self::like(row.name, row).same(self)) {
            return known;
        }
        let leaked = |text: &str| -> &'static str { Box::leak(text.to_owned().into_boxed_str()) };
        let row: &'static Profile = Box::leak(Box::new(Profile {
            name: leaked(&self.name),
            hz: self.hz,
            linear_syns: self.linear_syns,
            least_timeout_us: self.least_timeout_us,
            reordering_floor_us: self.reordering_floor_us,
            replies: self.replies,
            undoes_syn: self.undoes_syn,
            pieces: self.pieces,
            patient_client: self.patient_client,
            source: leaked(&self.source),
        }));
        made.push(row);
        row
    }

    /// Whether the two behave alike and have one name.
    fn same(&self, other: &Self) -> bool {
        let source = String::new();
        Self { source: source.clone(), ..self.clone() } == Self { source, ..other.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_made_once() {
        let own = Kernel { hz: 1000, ..Kernel::like_the_default("mine") };
        let made = own.profile();
        assert_eq!((made.name, made.hz, made.linear_syns), ("mine", 1000, PROFILES[0].linear_syns));
        assert!(std::ptr::eq(made, own.profile()));
        assert!(!std::ptr::eq(made, Kernel { hz: 100, ..own }.profile()));
    }
}
