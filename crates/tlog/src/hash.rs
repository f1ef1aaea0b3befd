//! Leaves, nodes and the empty tree (RFC 6962, section 2.1).

use outlast_crypto::digests::sha256;

use crate::Hash;

/// The root of a tree without entries: SHA-256 of nothing.
pub const EMPTY_ROOT: Hash = [
    0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24,
    0x27, 0xae, 0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
];

/// SHA-256(0x00 ‖ entry).
pub fn leaf(entry: &[u8]) -> Hash {
    let mut message = Vec::with_capacity(entry.len() + 1);
    message.push(0x00);
    message.extend_from_slice(entry);
    sha256(&message)
}

/// SHA-256(0x01 ‖ left ‖ right).
pub fn node(left: &Hash, right: &Hash) -> Hash {
    let mut message = [0x01; 65];
    message[1..33].copy_from_slice(left);
    message[33..].copy_from_slice(right);
    sha256(&message)
}

/// The root over `hashes` as leaf hashes: for a full tile, its hash one level up. `None` if there are none.
///
/// ```
/// use outlast_tlog::hash::{leaf, node, root};
///
/// let leaves = [leaf(b"first"), leaf(b"second"), leaf(b"third")];
/// assert_eq!(root(&leaves), Some(node(&node(&leaves[0], &leaves[1]), &leaves[2])));
/// ```
pub fn root(hashes: &[Hash]) -> Option<Hash> {
    let mut level = hashes.to_vec();
    while level.len() > 1 {
        // A last hash without a sibling goes up unchanged, which is equivalent to splitting at the largest power of
        // two.
        level = level
            .chunks(2)
            .map(|pair| match pair {
                [left, right] => node(left, right),
                [alone] => *alone,
                _ => EMPTY_ROOT,
            })
            .collect();
    }
    level.first().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_empty_root_is_the_hash_of_nothing() {
        assert_eq!(EMPTY_ROOT, sha256(b""));
        assert_eq!(root(&[]), None);
    }
}
