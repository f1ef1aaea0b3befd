//! Hash trees of RFC 4998, section 4: one timestamp over the root covers every leaf, and a leaf keeps only the hashes on
//! its way to the root.
//!
//! Our trees are binary, and a node without a partner moves up as it is. So every list but the first holds one hash, which
//! RFC 4998 and BouncyCastle read alike.

use std::collections::HashMap;

use outlast_crypto::digests::Digest;

/// A reduced hash tree: the first list holds the leaf's hashes, each further one what is hashed together with the node
/// below.
pub type Path = Vec<Vec<Vec<u8>>>;

/// A tree over groups of hashes.
pub struct Tree {
    /// The hash that the timestamp covers.
    pub root: Vec<u8>,
    /// Path of each group, in the order in which they were given; empty if the root is the group's only hash.
    pub paths: Vec<Path>,
}

impl Tree {
    /// Builds a tree over groups of one or more hashes. Equal groups share a leaf. `None` if there is no group, or an empty
    /// one.
    pub fn new(digest: &Digest, groups: &[Vec<Vec<u8>>]) -> Option<Self> {
        let mut leaf_of = Vec::with_capacity(groups.len());
        let mut leaves: Vec<Vec<Vec<u8>>> = Vec::new();
        let mut known: HashMap<Vec<Vec<u8>>, usize> = HashMap::new();
        for group in groups {
            let mut group = group.clone();
            group.sort();
            group.dedup();
            group.first()?;
            let next = leaves.len();
            let index = *known.entry(group.clone()).or_insert(next);
            if index == next {
                leaves.push(group);
            }
            leaf_of.push(index);
        }
        let bottom: Vec<_> = leaves.iter().map(|leaf| node(digest, leaf)).collect();
        let levels = levels(digest, bottom);
        let root = levels.last()?.first()?.clone();
        let path =
            |index: usize| path(&levels, leaves.get(index).map_or(&[][..], Vec::as_slice), index);
        Some(Self { root, paths: leaf_of.into_iter().map(path).collect() })
    }
}

/// All levels, from the leaves to the root.
fn levels(digest: &Digest, bottom: Vec<Vec<u8>>) -> Vec<Vec<Vec<u8>>> {
    let mut levels = vec![bottom];
    while let Some(below) = levels.last().filter(|level| level.len() > 1) {
        let above = below.chunks(2).map(|pair| node(digest, pair)).collect();
        levels.push(above);
    }
    levels
}

fn path(levels: &[Vec<Vec<u8>>], leaf: &[Vec<u8>], mut index: usize) -> Path {
    let mut path = Path::new();
    if leaf.len() > 1 {
        path.push(leaf.to_vec());
    }
    for level in levels {
        if let Some(partner) = level.get(index ^ 1) {
            match (path.is_empty(), leaf) {
                // A single hash stands in one list with its partner: alone in a list, implementations differ on whether it
                // is hashed once more.
                (true, [own]) => {
                    let mut both = vec![own.clone(), partner.clone()];
                    both.sort();
                    path.push(both);
                }
                _ => path.push(vec![partner.clone()]),
            }
        }
        index /= 2;
    }
    path
}

/// The node above some hashes: the digest of their concatenation in binary ascending order (RFC 4998, section 4.2.1); a
/// single hash is its own node.
pub fn node(digest: &Digest, hashes: &[Vec<u8>]) -> Vec<u8> {
    match hashes {
        [one] => one.clone(),
        several => hashed(digest, several.to_vec()),
    }
}

fn hashed(digest: &Digest, mut hashes: Vec<Vec<u8>>) -> Vec<u8> {
    hashes.sort();
    digest.digest(&hashes.concat())
}

/// The roots to which a path may lead (RFC 4998, section 4.3). There are two if the first list holds one hash: RFC 4998
/// hashes it, BouncyCastle takes it as it is.
pub fn roots(digest: &Digest, path: &[Vec<Vec<u8>>]) -> Vec<Vec<u8>> {
    let Some((first, rest)) = path.split_first() else { return Vec::new() };
    let mut starts = vec![hashed(digest, first.clone())];
    if let [one] = first.as_slice() {
        starts.push(one.clone());
    }
    for list in rest {
        for start in &mut starts {
            let mut with = list.clone();
            with.push(std::mem::take(start));
            *start = hashed(digest, with);
        }
    }
    starts
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail")]
mod tests {
    use super::*;

    #[test]
    fn every_path_leads_to_the_root() {
        let digest = Digest::by_name("sha256").unwrap();
        let hash = |number: usize| digest.digest(&number.to_be_bytes());
        for count in 1..40 {
            for size in [1, 2, 3] {
                let groups: Vec<Vec<_>> = (0..count)
                    .map(|index| (0..size).map(|part| hash(index * 10 + part)).collect())
                    .collect();
                let tree = Tree::new(digest, &groups).unwrap();
                for (group, path) in groups.iter().zip(&tree.paths) {
                    if path.is_empty() {
                        assert_eq!((count, size), (1, 1));
                        assert_eq!(tree.root, group[0]);
                        continue;
                    }
                    assert!(path.len() <= 7, "{}", path.len());
                    assert!(group.iter().all(|hash| path[0].contains(hash)));
                    assert_eq!(roots(digest, path), std::slice::from_ref(&tree.root));
                    // Any other hash leads elsewhere.
                    let mut changed = path.clone();
                    changed.last_mut().unwrap()[0][0] ^= 1;
                    assert!(!roots(digest, &changed).contains(&tree.root));
                }
            }
        }
        assert!(Tree::new(digest, &[]).is_none() && Tree::new(digest, &[Vec::new()]).is_none());
    }

    #[test]
    fn equal_groups_share_a_leaf() {
        let digest = Digest::by_name("sha256").unwrap();
        let group = vec![digest.digest(b"a")];
        let tree = Tree::new(digest, &[group.clone(), group.clone()]).unwrap();
        assert_eq!(tree.root, group[0]);
        assert_eq!(tree.paths, [Path::new(), Path::new()]);
    }
}
