//! Whether a thread may be kept busy: generating an RSA key takes up to seconds, an SLH-DSA signature up to half a
//! second.
//!
//! A network thread with many connections must not be kept busy. Inside [`quickly`] slow operations fail with
//! [`CryptoError::TakesLong`] before they begin, so that the caller can run the work again on another thread. The
//! tables of algorithms say what is slow; nobody has to predict it from a request, whose form the client chooses.

use std::cell::Cell;

use crate::CryptoError;

thread_local! {
    static IS_QUICK: Cell<bool> = const { Cell::new(false) };
}

/// Leaves [`quickly`] when it is dropped, also on a panic.
struct Haste {
    before: bool,
}

impl Drop for Haste {
    fn drop(&mut self) {
        IS_QUICK.set(self.before);
    }
}

/// Runs `work`; slow operations in it fail with [`CryptoError::TakesLong`] before they begin.
pub fn quickly<T>(work: impl FnOnce() -> T) -> T {
    let _haste = Haste { before: IS_QUICK.replace(true) };
    work()
}

/// Must be called before every slow operation.
///
/// # Errors
/// [`CryptoError::TakesLong`] inside [`quickly`].
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
