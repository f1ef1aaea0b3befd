//! How the model was checked: against published measurements, and against real TCP over the emulated link.
//!
//! Nothing of the model is fitted to what it is compared with: what is calibrated (CPU time, a machine's own overhead) is calibrated
//! without loss, and what is compared has loss.

mod live;
mod paquin;

pub use live::against_live;
pub use paquin::{against_paquin, paquin_trace};

use crate::result::Table;

/// What a comparison came to.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// Every point: published or measured, the model's, their difference.
    pub table: Table,
    /// Figures that were compared.
    pub compared: usize,
    /// Those within the limits.
    pub within: usize,
    /// What the limits are, in words.
    pub limits: String,
    /// Largest difference of those within limits that do not stand at a jump of the distribution, in percent.
    pub typical_percent: f64,
}

impl Comparison {
    /// Whether everything was within the limits.
    pub fn met(&self) -> bool {
        self.within == self.compared
    }

    /// A sentence for a report.
    pub fn sentence(&self) -> String {
        format!("{} of {} figures within the limits ({})", self.within, self.compared, self.limits)
    }
}

/// A ratio as a difference in percent.
fn percent(of: f64, to: f64) -> f64 {
    if to == 0.0 { 0.0 } else { (of / to - 1.0) * 100.0 }
}

/// Three digits behind the point.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}
