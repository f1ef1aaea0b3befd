//! Validation of the model: against published measurements, and against real TCP over the emulated link.
//!
//! CPU times and a machine's own overhead are calibrated without loss. But some properties of the profile for the
//! published data, `linux-5.0-netem`, come from those data with loss: whole segments are lost, a repeated SYN-ACK
//! leaves a window of one packet, and the client's kernel saves what it learns of a connection for the next.
//! docs/lab-model.md says how that was decided. No property of the default profile comes from them.

pub mod agreement;
pub mod data;
mod live;
mod paquin;
pub mod score;
pub mod sets;

use std::sync::Mutex;

pub use live::against_live;
pub use paquin::{against_paquin, against_paquin_with, paquin_trace};

use crate::result::Table;

/// Result of a comparison.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// All points: published or measured, the model's, and their difference.
    pub table: Table,
    /// Figures that were compared.
    pub compared: usize,
    /// Number within the limits.
    pub within: usize,
    /// Number beyond the limits at a jump of the distribution, where sampling explains it.
    pub at_jump: usize,
    /// Share of the figures that must be within the limits or at a jump.
    pub needed: f64,
    /// The limits, in words.
    pub limits: String,
    /// Further comparisons for information, without limits, in words.
    pub beside: Vec<String>,
}

impl Comparison {
    /// Number of figures that nothing explains.
    pub fn beyond(&self) -> usize {
        self.compared.saturating_sub(self.within + self.at_jump)
    }

    /// Whether enough figures are within the limits; none of none is not enough.
    #[expect(clippy::cast_precision_loss, reason = "hundreds of figures")]
    pub fn met(&self) -> bool {
        let good = (self.within + self.at_jump) as f64;
        self.compared > 0 && good >= self.needed * self.compared as f64
    }

    /// A sentence for a report.
    pub fn sentence(&self) -> String {
        if self.compared == 0 {
            return "no verdict on any figure".to_owned();
        }
        format!(
            "{} of {} figures strictly within, {} at a jump, {} beyond",
            self.within,
            self.compared,
            self.at_jump,
            self.beyond()
        )
    }
}

/// Tables of the comparisons that this process has made, each once, for the caller of the checks to write.
pub fn tables() -> Vec<Table> {
    TABLES.lock().map(|tables| tables.clone()).unwrap_or_default()
}

static TABLES: Mutex<Vec<Table>> = Mutex::new(Vec::new());

/// Keeps the latest table with each name.
fn keep(table: &Table) {
    if let Ok(mut tables) = TABLES.lock() {
        tables.retain(|one| one.name != table.name);
        tables.push(table.clone());
    }
}

/// A ratio as a difference in percent.
fn percent(of: f64, to: f64) -> f64 {
    if to == 0.0 { 0.0 } else { (of / to - 1.0) * 100.0 }
}

/// A value with three digits after the point.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}
