//! JA4: a fingerprint of client software from its ClientHello.
//!
//! Source: "JA4: TLS Client Fingerprinting", FoxIO's specification (BSD 3-Clause).

use crate::offer::Offer;

/// The fingerprint, 36 characters: `t13d1516h2_8daaf6152771_02713d6af862`.
pub fn ja4(_offer: &Offer) -> String {
    String::new()
}
