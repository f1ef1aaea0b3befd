//! `outlast lab selftest`: checks the promised accuracy on this machine.

pub mod check;

pub use self::check::{Check, Checked};

/// All checks, by engine.
pub fn checks() -> Vec<&'static Check> {
    let engines = [
        crate::tls::selftest::CHECKS,
        crate::model::selftest::CHECKS,
        crate::live::selftest::CHECKS,
        crate::quic::selftest::CHECKS,
    ];
    engines.into_iter().flatten().collect()
}
