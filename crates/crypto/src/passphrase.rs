//! Keys from passphrases: Argon2id (RFC 9106).

use argon2::{Algorithm, Argon2, Block, Params, Version};
use zeroize::Zeroize;

use crate::{CryptoError, Secret, random};

/// Length of a new salt in bytes.
const SALT_LEN: usize = 16;
/// RFC 9106, section 4: the second recommended option, 64 MiB and three passes. No store may use less.
const MIN_MEMORY_KIB: u32 = 64 * 1024;
const MIN_PASSES: u32 = 3;
/// Most memory that a store may ask for, so that a tampered store cannot exhaust the machine.
const MAX_MEMORY_KIB: u32 = 4 * 1024 * 1024;
const MAX_PASSES: u32 = 64;
const MAX_LANES: u32 = 64;

/// Parameters of a derivation besides the passphrase; none of them is secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Costs {
    /// Salt of at least 16 random bytes.
    pub salt: Vec<u8>,
    /// Memory in KiB.
    pub memory_kib: u32,
    /// Passes over the memory.
    pub passes: u32,
    /// Parallel lanes.
    pub lanes: u32,
}

impl Costs {
    /// RFC 9106's second recommended option with a new salt.
    pub fn recommended() -> Result<Self, CryptoError> {
        let salt = random::bytes::<SALT_LEN>()?.to_vec();
        Ok(Self { salt, memory_kib: MIN_MEMORY_KIB, passes: MIN_PASSES, lanes: 4 })
    }

    /// Whether these costs are allowed: not weaker than recommended, and within the limits on memory and time.
    pub fn acceptable(&self) -> bool {
        (SALT_LEN..=64).contains(&self.salt.len())
            && (MIN_MEMORY_KIB..=MAX_MEMORY_KIB).contains(&self.memory_kib)
            && (MIN_PASSES..=MAX_PASSES).contains(&self.passes)
            && (1..=MAX_LANES).contains(&self.lanes)
    }

    /// Derives a key of `len` bytes from a passphrase. Returns an error if the costs are not [`Costs::acceptable`].
    pub fn derive(&self, passphrase: &Secret, len: usize) -> Result<Secret, CryptoError> {
        if !self.acceptable() {
            return Err(CryptoError::InvalidKey);
        }
        let failed = |_| CryptoError::InvalidKey;
        let params = Params::new(self.memory_kib, self.passes, self.lanes, Some(len));
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params.map_err(failed)?);
        let mut memory = vec![Block::default(); argon2.params().block_count()];
        let mut out = vec![0; len];
        let done = argon2.hash_password_into_with_memory(
            passphrase.expose(),
            &self.salt,
            &mut out,
            &mut memory,
        );
        memory.zeroize();
        let out = Secret::new(out);
        done.map_err(failed)?;
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of the reference implementation: `argon2 0123456789abcdef -id -k 65536 -t 3 -p 4 -l 32 -r`.
    #[test]
    fn derives_as_the_reference_implementation_does() {
        let costs = Costs { salt: b"0123456789abcdef".to_vec(), ..Costs::recommended().unwrap() };
        let key = costs.derive(&Secret::new(b"correct horse battery".to_vec()), 32).unwrap();
        assert_eq!(
            hex::encode(key.expose()),
            "5220483d4ba1637c5d5df43b377a7f6aed39a6159693d0029a3e4f76d50669ab"
        );
    }

    #[test]
    fn weak_or_monstrous_costs_are_refused() {
        let good = Costs::recommended().unwrap();
        assert!(good.acceptable());
        for bad in [
            Costs { salt: vec![0; 8], ..good.clone() },
            Costs { memory_kib: 32 * 1024, ..good.clone() },
            Costs { memory_kib: u32::MAX, ..good.clone() },
            Costs { passes: 2, ..good.clone() },
            Costs { passes: u32::MAX, ..good.clone() },
            Costs { lanes: 0, ..good.clone() },
        ] {
            assert!(!bad.acceptable());
            assert!(bad.derive(&Secret::new(b"x".to_vec()), 32).is_err(), "{bad:?}");
        }
    }
}
