//! Reads numbers back: JSON has no NaN and no infinity, `serde_json` writes them as `null`, and one such number must
//! not make a whole result unreadable.

use serde::{Deserialize, Deserializer};

use super::Value;

/// A value made of numbers, each of which may be `null`.
pub(super) trait Figures: Sized {
    /// The same with `Option` for each number.
    type Stored: for<'de> Deserialize<'de>;
    /// Turns `null` into NaN.
    fn from_stored(stored: Self::Stored) -> Self;
}

impl Figures for f64 {
    type Stored = Option<f64>;
    fn from_stored(stored: Self::Stored) -> Self {
        stored.unwrap_or(f64::NAN)
    }
}

impl Figures for [f64; 2] {
    type Stored = [Option<f64>; 2];
    fn from_stored(stored: Self::Stored) -> Self {
        stored.map(f64::from_stored)
    }
}

impl<T: Figures> Figures for Vec<T> {
    type Stored = Vec<T::Stored>;
    fn from_stored(stored: Self::Stored) -> Self {
        stored.into_iter().map(T::from_stored).collect()
    }
}

impl<T: Figures> Figures for (String, T) {
    type Stored = (String, T::Stored);
    fn from_stored((name, stored): Self::Stored) -> Self {
        (name, T::from_stored(stored))
    }
}

/// For `#[serde(deserialize_with)]`.
pub(super) fn read<'de, T: Figures, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    T::Stored::deserialize(from).map(T::from_stored)
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Stored {
            Number(f64),
            Text(String),
            Nothing(()),
        }
        Ok(match Stored::deserialize(from)? {
            Stored::Number(number) => Self::Number(number),
            Stored::Text(text) => Self::Text(text),
            Stored::Nothing(()) => Self::Number(f64::NAN),
        })
    }
}
