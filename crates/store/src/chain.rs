//! The hash chain that linked events in earlier versions. Stores and backups of those versions are verified with it
//! once, when their events become a Merkle log.
//!
//! chain(n) = SHA-256("outlast audit v1" || chain(n-1) || n as 8 bytes, big-endian || body), chain(0) = 32
//! zero bytes.

use outlast_crypto::digests::sha256;

/// The link before the first event.
pub const START: [u8; 32] = [0; 32];

/// Link of the event `sequence` with this `body`, which follows the link `previous`.
pub fn next(previous: &[u8; 32], sequence: u64, body: &[u8]) -> [u8; 32] {
    let number = sequence.to_be_bytes();
    sha256(&[LABEL, previous.as_slice(), number.as_slice(), body].concat())
}

const LABEL: &[u8] = b"outlast audit v1";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_have_known_values() {
        // Computed with `printf 'outlast audit v1'` and the bytes, piped through sha256sum.
        let first = next(&START, 1, b"one");
        let second = next(&first, 2, b"");
        let hex =
            |link: [u8; 32]| link.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(hex(first), "d72dc4dbfd2222e2c4ac0bff86739606a7bf8a4139944e3e9a87ffd3d061dec5");
        assert_eq!(hex(second), "497e1580c2869e11e6aa1b98a6fd0b2fda09456ff45aa03546ce8bb0f150eecd");
    }
}
