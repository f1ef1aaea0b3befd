//! Roots, ranges, tiles and proofs against RFC 6962's definitions, and against known answers.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use std::cell::Cell;

use outlast_tlog::hash::{self, EMPTY_ROOT};
use outlast_tlog::proof::{ProofError, verify_consistency, verify_inclusion};
use outlast_tlog::range::{CompactRange, RangeError, pieces};
use outlast_tlog::tile::{self, Resource, TileError, TileId, Tiles, Tree};
use outlast_tlog::{Hash, MAX_SIZE};
use proptest::prelude::*;

/// MTH of RFC 6962, section 2.1.
fn reference_root(leaves: &[Hash]) -> Hash {
    match leaves {
        [] => EMPTY_ROOT,
        [leaf] => *leaf,
        _ => {
            let (left, right) = leaves.split_at(split(leaves.len()));
            hash::node(&reference_root(left), &reference_root(right))
        }
    }
}

/// PATH of RFC 6962, section 2.1.1.
fn reference_path(index: usize, leaves: &[Hash]) -> Vec<Hash> {
    if leaves.len() <= 1 {
        return Vec::new();
    }
    let k = split(leaves.len());
    let (left, right) = leaves.split_at(k);
    let (mut path, other) = if index < k {
        (reference_path(index, left), reference_root(right))
    } else {
        (reference_path(index - k, right), reference_root(left))
    };
    path.push(other);
    path
}

/// SUBPROOF of RFC 6962, section 2.1.2.
fn reference_subproof(old: usize, leaves: &[Hash], whole: bool) -> Vec<Hash> {
    if old == leaves.len() {
        return if whole { Vec::new() } else { vec![reference_root(leaves)] };
    }
    let k = split(leaves.len());
    let (left, right) = leaves.split_at(k);
    let (mut proof, other) = if old <= k {
        (reference_subproof(old, left, whole), reference_root(right))
    } else {
        (reference_subproof(old - k, right, false), reference_root(left))
    };
    proof.push(other);
    proof
}

fn split(len: usize) -> usize {
    1 << (len - 1).ilog2()
}

fn leaves(count: u32) -> Vec<Hash> {
    (0..count).map(|number| hash::leaf(&number.to_be_bytes())).collect()
}

/// Tiles computed from a list of leaves by definition; counts reads.
struct Computed<'a> {
    leaves: &'a [Hash],
    reads: Cell<usize>,
}

impl<'a> Computed<'a> {
    fn new(leaves: &'a [Hash]) -> Self {
        Self { leaves, reads: Cell::new(0) }
    }
}

impl Tiles for Computed<'_> {
    type Error = String;

    fn tile(&self, level: u8, index: u64, width: u16) -> Result<Vec<Hash>, String> {
        self.reads.set(self.reads.get() + 1);
        let span = 256_usize.pow(level.into());
        (0..usize::from(width))
            .map(|i| {
                let first = (usize::try_from(index).unwrap() * 256 + i) * span;
                self.leaves
                    .get(first..first + span)
                    .map(reference_root)
                    .ok_or_else(|| format!("tile {level}/{index} is not as wide as {width}"))
            })
            .collect()
    }
}

/// The eight leaves that the tests of Certificate Transparency use.
const ENTRIES: [&str; 8] = [
    "",
    "00",
    "10",
    "2021",
    "3031",
    "40414243",
    "5051525354555657",
    "606162636465666768696a6b6c6d6e6f",
];
const ROOTS: [&str; 8] = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
];

fn hex(text: &str) -> Hash {
    hex::decode(text).unwrap().try_into().unwrap()
}

#[test]
fn known_roots_and_proofs() {
    let leaves: Vec<Hash> =
        ENTRIES.iter().map(|entry| hash::leaf(&hex::decode(entry).unwrap())).collect();
    let mut range = CompactRange::default();
    assert_eq!(range.root(), Some(EMPTY_ROOT));
    for (leaf, root) in leaves.iter().zip(ROOTS) {
        range.append(leaf).unwrap();
        assert_eq!(range.root(), Some(hex(root)));
    }
    let tree = Tree::new(Computed::new(&leaves), 8).unwrap();
    assert_eq!(tree.root(), Ok(hex(ROOTS[7])));
    // Inclusion of leaf 0 in 8, and consistency of 6 and 8.
    let inclusion = [
        "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    ]
    .map(hex);
    assert_eq!(tree.inclusion(0).unwrap(), inclusion);
    verify_inclusion(&leaves[0], 0, 8, &inclusion, &hex(ROOTS[7])).unwrap();
    let consistency = [
        "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ]
    .map(hex);
    assert_eq!(tree.consistency(6).unwrap(), consistency);
    verify_consistency(6, &hex(ROOTS[5]), 8, &hex(ROOTS[7]), &consistency).unwrap();
}

#[test]
fn every_small_tree_is_the_reference() {
    let all = leaves(70);
    let mut range = CompactRange::default();
    for size in 0..all.len() {
        let leaves = &all[..size];
        let root = reference_root(leaves);
        assert_eq!(range.root(), Some(root));
        let tree = Tree::new(Computed::new(leaves), size as u64).unwrap();
        assert_eq!(tree.root(), Ok(root));
        assert_eq!(tree.frontier().as_ref(), Ok(&range));
        for index in 0..size {
            let proof = tree.inclusion(index as u64).unwrap();
            assert_eq!(proof, reference_path(index, leaves));
            let verify = |at: u64, size: u64, proof: &[Hash]| {
                verify_inclusion(&leaves[index], at, size, proof, &root)
            };
            assert_eq!(verify(index as u64, size as u64, &proof), Ok(()));
            for at in (0..size + 2).filter(|at| *at != index) {
                assert!(verify(at as u64, size as u64, &proof).is_err(), "{index} {at} {size}");
            }
            assert!(
                verify(index as u64, size as u64, &[proof.clone(), vec![root]].concat()).is_err()
            );
            if let Some((_, shorter)) = proof.split_last() {
                assert!(verify(index as u64, size as u64, shorter).is_err());
            }
        }
        for old in 0..=size {
            let old_root = reference_root(&leaves[..old]);
            let proof = tree.consistency(old as u64).unwrap();
            let expected =
                if old == 0 { Vec::new() } else { reference_subproof(old, leaves, true) };
            assert_eq!(proof, expected);
            let verify = |old: usize, old_root, size: usize, proof: &[Hash]| {
                verify_consistency(old as u64, old_root, size as u64, &root, proof)
            };
            assert_eq!(verify(old, &old_root, size, &proof), Ok(()));
            for other in (0..size + 2).filter(|other| *other != old) {
                assert!(verify(other, &old_root, size, &proof).is_err(), "{old} {other} {size}");
            }
            assert!(verify(old, &old_root, size, &[proof.clone(), vec![root]].concat()).is_err());
            if let Some((_, shorter)) = proof.split_last() {
                assert!(verify(old, &old_root, size, shorter).is_err());
            }
        }
        range.append(&all[size]).unwrap();
    }
}

#[test]
fn the_empty_tree_is_the_beginning_of_all_and_no_other() {
    let root = reference_root(&leaves(3));
    verify_consistency(0, &EMPTY_ROOT, 3, &root, &[]).unwrap();
    verify_consistency(0, &EMPTY_ROOT, 0, &EMPTY_ROOT, &[]).unwrap();
    verify_consistency(3, &root, 3, &root, &[]).unwrap();
    let refused = [
        verify_consistency(0, &root, 3, &root, &[]),
        verify_consistency(0, &EMPTY_ROOT, 0, &root, &[]),
        verify_consistency(0, &root, 0, &root, &[]),
        verify_consistency(0, &EMPTY_ROOT, 3, &root, &[root]),
        verify_consistency(3, &root, 3, &root, &[root]),
        verify_consistency(3, &root, 3, &EMPTY_ROOT, &[]),
        verify_consistency(3, &root, 2, &root, &[]),
        verify_consistency(1, &root, u64::MAX, &root, &[root; 63]),
        verify_inclusion(&root, 0, 0, &[], &root),
        verify_inclusion(&root, u64::MAX - 1, u64::MAX, &[root; 64], &root),
    ];
    for (number, result) in refused.into_iter().enumerate() {
        assert!(result.is_err(), "{number}");
    }
}

#[test]
fn trees_of_more_levels() {
    let all = leaves(70_000);
    for size in [255, 256, 257, 511, 512, 65_535, 65_536, 65_537, 70_000] {
        let leaves = &all[..size];
        let mut range = CompactRange::default();
        leaves.iter().for_each(|leaf| range.append(leaf).unwrap());
        let root = range.root().unwrap();
        let computed = Computed::new(leaves);
        let tree = Tree::new(&computed, size as u64).unwrap();
        assert_eq!(tree.frontier().as_ref(), Ok(&range));
        assert_eq!(tree.root(), Ok(root));
        for index in [0, 1, 254, size / 2, size - 1] {
            computed.reads.set(0);
            let tree = Tree::new(&computed, size as u64).unwrap();
            let proof = tree.inclusion(index as u64).unwrap();
            assert!(computed.reads.get() <= 5, "{} tiles for one proof", computed.reads.get());
            verify_inclusion(&leaves[index], index as u64, size as u64, &proof, &root).unwrap();
            computed.reads.set(0);
            let tree = Tree::new(&computed, size as u64).unwrap();
            let proof = tree.consistency(index as u64).unwrap();
            assert!(computed.reads.get() <= 5, "{} tiles for one proof", computed.reads.get());
            let old_root = Tree::new(&computed, index as u64).unwrap().root().unwrap();
            verify_consistency(index as u64, &old_root, size as u64, &root, &proof).unwrap();
        }
    }
}

#[test]
fn what_lies_outside_is_an_error() {
    let leaves = leaves(300);
    let tree = Tree::new(Computed::new(&leaves), 300).unwrap();
    assert_eq!(tree.inclusion(300), Err(TileError::Outside { asked: 301, size: 300 }));
    assert!(tree.inclusion(u64::MAX).is_err() && tree.leaf(u64::MAX).is_err());
    assert_eq!(tree.consistency(301), Err(TileError::Outside { asked: 301, size: 300 }));
    assert!(tree.range(5, 301).is_err() && tree.range(5, 4).is_err());
    assert!(Tree::new(Computed::new(&leaves), MAX_SIZE + 1).is_err());
    assert!(matches!(
        Tree::new(Computed::new(&leaves), 301).unwrap().root(),
        Err(TileError::Read(_))
    ));
    struct Short;
    impl Tiles for Short {
        type Error = ();
        fn tile(&self, _: u8, _: u64, _: u16) -> Result<Vec<Hash>, ()> {
            Ok(vec![EMPTY_ROOT; 3])
        }
    }
    assert!(matches!(
        Tree::new(Short, MAX_SIZE).unwrap().root(),
        Err(TileError::Short { found: 3, .. })
    ));
}

#[test]
fn compact_ranges_check_their_parts() {
    assert_eq!(CompactRange::from_parts(2, 1, vec![]), Err(RangeError::Bounds));
    assert_eq!(CompactRange::from_parts(0, MAX_SIZE + 1, vec![]), Err(RangeError::Bounds));
    assert_eq!(
        CompactRange::from_parts(0, 7, vec![EMPTY_ROOT; 2]),
        Err(RangeError::Hashes { expected: 3, found: 2 })
    );
    let mut largest = CompactRange::from_parts(0, MAX_SIZE, vec![EMPTY_ROOT; 63]).unwrap();
    assert_eq!(largest.append(&EMPTY_ROOT), Err(RangeError::Bounds));
    let later = CompactRange::empty(8);
    assert_eq!(later.root(), None);
    assert_eq!(
        CompactRange::default().extend(&later),
        Err(RangeError::NotAdjacent { expected: 0, found: 8 })
    );
}

#[test]
fn paths_are_those_of_the_specification() {
    let tile = |level, index, width| TileId::new(level, index, width).unwrap();
    for (resource, path) in [
        (Resource::Tile(tile(0, 1_234_067, 256)), "tile/0/x001/x234/067"),
        (Resource::Tile(tile(0, 0, 256)), "tile/0/000"),
        (Resource::Tile(tile(2, 0, 1)), "tile/2/000.p/1"),
        (Resource::Tile(tile(1, 999, 255)), "tile/1/999.p/255"),
        (Resource::Tile(tile(1, 1000, 256)), "tile/1/x001/000"),
        (Resource::Entries(tile(0, 273, 112)), "tile/entries/273.p/112"),
    ] {
        assert_eq!(resource.to_string(), path);
        assert_eq!(path.parse(), Ok(resource));
    }
    for path in [
        "",
        "tile",
        "tile/0",
        "tile/0/",
        "tile/0/1",
        "tile/0/0001",
        "tile/0/x000/001",
        "tile/0/001/002",
        "tile/0/x001",
        "tile/0/x001/",
        "tile/00/001",
        "tile/8/000",
        "tile/64/000",
        "tile/-1/000",
        "tile/0/001.p/0",
        "tile/0/001.p/256",
        "tile/0/001.p/01",
        "tile/0/001.p/",
        "tile/0/001.p",
        "tile/0/x001.p/3/002",
        "/tile/0/001",
        "tile/0/001/",
        "tile/0/x\u{661}01/001",
        "tile/entries",
        "tile/0/../001",
        "tile/0/x999/x999/x999/x999/x999/x999/999",
        "tile/7/x001/000",
        "tile/entries/x000/000",
    ] {
        assert!(path.parse::<Resource>().is_err(), "{path}");
    }
    // 70,000 entries: 273 full tiles and one of 112, one full and one of 17, one of 1.
    let tiles: Vec<String> = tile::new_tiles(69_888, 70_000).map(|tile| tile.to_string()).collect();
    assert_eq!(tiles, ["tile/0/273.p/112"]);
    let tiles: Vec<TileId> = tile::new_tiles(0, 70_000).collect();
    assert_eq!(tiles.len(), 274 + 2 + 1);
    assert_eq!(tiles.iter().filter(|tile| tile.is_full()).count(), 274);
    assert_eq!(tiles[274].to_string(), "tile/1/000");
    assert_eq!(tiles[275].to_string(), "tile/1/001.p/17");
    assert_eq!(tiles[276].to_string(), "tile/2/000.p/1");
    let at_once: Vec<String> = tile::new_tiles(0, 256).map(|tile| tile.to_string()).collect();
    assert_eq!(at_once, ["tile/0/000", "tile/1/000.p/1"]);
    assert_eq!(tile::new_tiles(256, 256).count(), 0);
}

#[test]
fn bundles_open_as_they_were() {
    let entries = [b"".as_slice(), b"one", &[7; tile::MAX_ENTRY]];
    let bundle = tile::bundle(entries).unwrap();
    assert_eq!(tile::unbundle(&bundle).unwrap(), entries);
    assert!(tile::bundle([[0; tile::MAX_ENTRY + 1].as_slice()]).is_none());
    assert!(tile::unbundle(&bundle[..bundle.len() - 1]).is_none());
    assert!(tile::unbundle(&[]).is_none() && tile::unbundle(&[0]).is_none());
    assert!(tile::unbundle(&[0; 512]).is_some() && tile::unbundle(&[0; 514]).is_none());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn ranges_join_wherever_they_are_cut(size in 0_u32..600, cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..5)) {
        let leaves = leaves(size);
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(size as usize + 1)).collect();
        at.push(size as usize);
        at.sort_unstable();
        let mut whole = CompactRange::default();
        let mut begin = 0;
        for end in at {
            let mut part = CompactRange::empty(begin as u64);
            for leaf in &leaves[begin..end] {
                part.append(leaf).unwrap();
            }
            prop_assert_eq!(part.hashes().len(), pieces(begin as u64, end as u64).count());
            let tree = Tree::new(Computed::new(&leaves), u64::from(size)).unwrap();
            prop_assert_eq!(tree.range(begin as u64, end as u64).unwrap(), part.clone());
            let parts = (part.begin(), part.end(), part.hashes().to_vec());
            prop_assert_eq!(CompactRange::from_parts(parts.0, parts.1, parts.2).unwrap(), part.clone());
            whole.extend(&part).unwrap();
            begin = end;
        }
        prop_assert_eq!(whole.root(), Some(reference_root(&leaves)));
    }

    #[test]
    fn any_flipped_bit_of_a_proof_is_refused(size in 1_u32..600, at: prop::sample::Index, old: prop::sample::Index, bit: prop::sample::Index) {
        let leaves = leaves(size);
        let size = size as usize;
        let tree = Tree::new(Computed::new(&leaves), size as u64).unwrap();
        let root = tree.root().unwrap();
        let flipped = |proof: &[Hash]| {
            let mut proof = proof.to_vec();
            let bit = bit.index(proof.len() * 256);
            proof[bit / 256][bit % 256 / 8] ^= 1 << (bit % 8);
            proof
        };
        let index = at.index(size);
        let proof = tree.inclusion(index as u64).unwrap();
        verify_inclusion(&leaves[index], index as u64, size as u64, &proof, &root).unwrap();
        let others = [
            flipped(&[leaves[index]])[0],
            hash::node(&leaves[index], &leaves[index]),
        ];
        for other in others {
            prop_assert_eq!(verify_inclusion(&other, index as u64, size as u64, &proof, &root), Err(ProofError::Root));
        }
        if !proof.is_empty() {
            prop_assert_eq!(verify_inclusion(&leaves[index], index as u64, size as u64, &flipped(&proof), &root), Err(ProofError::Root));
        }
        prop_assert_eq!(verify_inclusion(&leaves[index], index as u64, size as u64, &proof, &flipped(&[root])[0]), Err(ProofError::Root));

        let old = old.index(size) + 1;
        let old_root = reference_root(&leaves[..old]);
        let proof = tree.consistency(old as u64).unwrap();
        verify_consistency(old as u64, &old_root, size as u64, &root, &proof).unwrap();
        if !proof.is_empty() {
            prop_assert!(verify_consistency(old as u64, &old_root, size as u64, &root, &flipped(&proof)).is_err());
        }
        prop_assert!(verify_consistency(old as u64, &flipped(&[old_root])[0], size as u64, &root, &proof).is_err());
        prop_assert!(verify_consistency(old as u64, &old_root, size as u64, &flipped(&[root])[0], &proof).is_err());
    }

    #[test]
    fn a_changed_entry_is_consistent_with_nothing(size in 2_u32..300, at: prop::sample::Index, more in 1_u32..300) {
        let honest = leaves(size + more);
        let mut forged = honest.clone();
        let at = at.index(size as usize);
        forged[at] = hash::leaf(b"another");
        let old_root = reference_root(&honest[..size as usize]);
        let tree = Tree::new(Computed::new(&forged), u64::from(size + more)).unwrap();
        let proof = tree.consistency(size.into()).unwrap();
        prop_assert!(verify_consistency(size.into(), &old_root, (size + more).into(), &tree.root().unwrap(), &proof).is_err());
    }

    #[test]
    fn proofs_of_any_numbers_never_panic(a: u64, b: u64, len in 0_usize..70) {
        let proof = vec![EMPTY_ROOT; len];
        let _ = verify_inclusion(&EMPTY_ROOT, a, b, &proof, &EMPTY_ROOT);
        let _ = verify_consistency(a, &EMPTY_ROOT, b, &EMPTY_ROOT, &proof);
        let _ = CompactRange::from_parts(a, b, proof);
    }

    #[test]
    fn paths_read_back(level in 0_u8..8, index in 0_u64..1 << 40, width in 1_u16..=256, text in "(tile/)?[0-9xp./entris]{0,30}") {
        if let Some(tile) = TileId::new(level, index, width) {
            for resource in [Resource::Tile(tile), Resource::Entries(TileId::new(0, index, width).unwrap())] {
                prop_assert_eq!(resource.to_string().parse(), Ok(resource));
            }
        }
        if let Ok(resource) = text.parse::<Resource>() {
            prop_assert_eq!(resource.to_string(), text);
        }
    }
}
