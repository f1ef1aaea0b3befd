//! Whether a thread may be kept for long: making an RSA key takes up to seconds, an SLH-DSA signature up to half a second.
//!
//! A network thread that has many to serve must not. What it runs by [`quickly`] fails with [`CryptoError::TakesLong`] where it
//! would take long, so that it can be run again where that harms nobody. The tables say what takes long; nobody has to
//! foretell it from a request, whose spelling somebody else has chosen.

use std::cell::Cell;

use crate::CryptoError;

thread_local! {
    static IS_QUICK: Cell<bool> = const { Cell::new(false) };
}

/// Ends the haste of [`quickly`], also when it panics.
struct Haste {
    before: bool,
}

impl Drop for Haste {
    fn drop(&mut self) {
        IS_QUICK.set(self.before);
    }
}

/// Runs `work`, in which whatever would take long fails with [`CryptoError::TakesLong`] before it begins.
pub fn quickly<T>(work: impl FnOnce() -> T) -> T {
    let _haste = Haste { before: IS_QUICK.replace(true) };
    work()
}

/// To be asked before what takes long.
///
/// # Errors
/// [`CryptoError::TakesLong`], in haste.
pub fn take_long() -> Result<(), CryptoError> {
    if IS_QUICK.get() { Err(CryptoError::TakesLong) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::KEY_SPECS;
    use crate::signatures::Message;

    #[test]
    fn what_takes_long_is_not_begun_in_haste() {
        let mut long = Vec::new();
        for spec in KEY_SPECS {
            match quickly(|| spec.generate()) {
                Ok(_) => {}
                Err(error) => {
                    assert_eq!(error, CryptoError::TakesLong, "{}", spec.name);
                    long.push(spec.name);
                }
            }
        }
        assert!(long.contains(&"RSA_2048") && long.contains(&"RSA_4096"), "{long:?}");
        assert!(!long.contains(&"ML_DSA_65") && !long.contains(&"ECC_NIST_P256"), "{long:?}");
        for spec in KEY_SPECS.iter().filter(|spec| spec.name.starts_with("SLH_DSA")) {
            let key = spec.load(&spec.generate().unwrap()).unwrap();
            for algorithm in spec.signing {
                let signed = quickly(|| key.sign(algorithm, Message::Raw(b"x")));
                assert_eq!(signed.unwrap_err(), CryptoError::TakesLong, "{}", spec.name);
                assert!(algorithm.slow);
            }
        }
    }

    #[test]
    fn haste_ends_with_the_work_and_nests() {
        assert_eq!(take_long(), Ok(()));
        quickly(|| {
            quickly(|| assert!(take_long().is_err()));
            assert!(take_long().is_err());
        });
        let caught = std::panic::catch_unwind(|| quickly(|| panic!("as it happens")));
        assert!(caught.is_err());
        assert_eq!(take_long(), Ok(()));
    }
}
