//! Verifies inclusion and consistency proofs (RFC 9162, sections 2.1.3.2 and 2.1.4.2; the proofs are those of RFC 6962).

use crate::{Hash, MAX_SIZE, hash};

/// Why a proof was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// The index is outside of a tree of this size, or the new size is smaller than the old one.
    #[error("the proof's numbers contradict each other")]
    Numbers,
    /// Too many or too few hashes for these numbers.
    #[error("the proof has {found} hashes, which does not match its numbers")]
    Length {
        /// Number of hashes given.
        found: usize,
    },
    /// The hashes lead to another root than the old tree's.
    #[error("the proof does not lead to the old root")]
    OldRoot,
    /// The hashes lead to another root.
    #[error("the proof does not lead to the root")]
    Root,
}

/// The root that an inclusion proof gives.
pub fn root_of_inclusion(
    leaf: &Hash,
    index: u64,
    size: u64,
    proof: &[Hash],
) -> Result<Hash, ProofError> {
    if index >= size || size > MAX_SIZE {
        return Err(ProofError::Numbers);
    }
    let wrong_length = ProofError::Length { found: proof.len() };
    let (mut at, mut last) = (index, size - 1);
    let mut root = *leaf;
    for sibling in proof {
        if last == 0 {
            return Err(wrong_length);
        }
        if at % 2 == 1 || at == last {
            root = hash::node(sibling, &root);
            if at.is_multiple_of(2) {
                // The right edge: skips levels without a sibling.
                let levels = at.trailing_zeros().min(63);
                at >>= levels;
                last >>= levels;
            }
        } else {
            root = hash::node(&root, sibling);
        }
        at >>= 1;
        last >>= 1;
    }
    if last == 0 { Ok(root) } else { Err(wrong_length) }
}

/// Verifies that the entry with the hash `leaf` is the one at `index` in the tree of `size` entries with this root.
pub fn verify_inclusion(
    leaf: &Hash,
    index: u64,
    size: u64,
    proof: &[Hash],
    root: &Hash,
) -> Result<(), ProofError> {
    if root_of_inclusion(leaf, index, size, proof)? == *root {
        Ok(())
    } else {
        Err(ProofError::Root)
    }
}

/// Verifies that the first `old_size` entries of the new tree are the old tree. Every tree continues the empty tree,
/// with an empty proof; and so does a tree continue itself.
pub fn verify_consistency(
    old_size: u64,
    old_root: &Hash,
    new_size: u64,
    new_root: &Hash,
    proof: &[Hash],
) -> Result<(), ProofError> {
    if old_size > new_size || new_size > MAX_SIZE {
        return Err(ProofError::Numbers);
    }
    let wrong_length = ProofError::Length { found: proof.len() };
    if new_size == 0 && *new_root != hash::EMPTY_ROOT {
        return Err(ProofError::Root);
    }
    if old_size == 0 && *old_root != hash::EMPTY_ROOT {
        return Err(ProofError::OldRoot);
    }
    if old_size == 0 || old_size == new_size {
        return match proof {
            [] if old_size == 0 || old_root == new_root => Ok(()),
            [] => Err(ProofError::Root),
            _ => Err(wrong_length),
        };
    }
    // A perfect old tree is a node of the new one, and its root is not repeated in the proof.
    let (first, rest) = if old_size.is_power_of_two() {
        (old_root, proof)
    } else {
        proof.split_first().ok_or(wrong_length)?
    };
    let levels = (old_size - 1).trailing_ones().min(63);
    let (mut at, mut last) = ((old_size - 1) >> levels, (new_size - 1) >> levels);
    let (mut old, mut new) = (*first, *first);
    for sibling in rest {
        if last == 0 {
            return Err(wrong_length);
        }
        if at % 2 == 1 || at == last {
            old = hash::node(sibling, &old);
            new = hash::node(sibling, &new);
            if at.is_multiple_of(2) {
                let levels = at.trailing_zeros().min(63);
                at >>= levels;
                last >>= levels;
            }
        } else {
            new = hash::node(&new, sibling);
        }
        at >>= 1;
        last >>= 1;
    }
    if last != 0 {
        return Err(wrong_length);
    }
    if old != *old_root {
        return Err(ProofError::OldRoot);
    }
    if new != *new_root {
        return Err(ProofError::Root);
    }
    Ok(())
}
