//! Random passwords.
//!
//! Source: GetRandomPassword of the API reference.

use outlast_crypto::{Secret as Plain, random};
use zeroize::Zeroizing;

use super::SecretError;
use crate::Fault;

/// What a password is made of.
#[derive(Debug, Clone)]
pub struct Rules {
    /// Length in characters, 1 to 4096.
    pub length: usize,
    /// Characters that it must not have.
    pub exclude: String,
    /// Whether it may have uppercase letters.
    pub uppercase: bool,
    /// Whether it may have lowercase letters.
    pub lowercase: bool,
    /// Whether it may have digits.
    pub numbers: bool,
    /// Whether it may have punctuation.
    pub punctuation: bool,
    /// Whether it may have spaces.
    pub space: bool,
    /// Whether it has at least one character of each type that it may have.
    pub each_type: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            length: 32,
            exclude: String::new(),
            uppercase: true,
            lowercase: true,
            numbers: true,
            punctuation: true,
            space: false,
            each_type: true,
        }
    }
}

/// A random password.
pub fn generate(rules: &Rules) -> Result<Plain, SecretError> {
    let types = [
        (rules.uppercase, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
        (rules.lowercase, "abcdefghijklmnopqrstuvwxyz"),
        (rules.numbers, "0123456789"),
        (rules.punctuation, "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"),
        (rules.space, " "),
    ];
    let types: Vec<Vec<u8>> = types
        .iter()
        .filter(|(is_wanted, _)| *is_wanted)
        .map(|(_, all)| {
            all.bytes().filter(|byte| !rules.exclude.contains(char::from(*byte))).collect()
        })
        .collect();
    let alphabet: Vec<u8> = types.iter().flatten().copied().collect();
    if alphabet.is_empty() {
        return Err(SecretError::InvalidParameter(
            "The password has no characters left to be made of: exclude fewer.".into(),
        ));
    }
    let needed = if rules.each_type { types.len() } else { 0 };
    if rules.length < needed {
        return Err(SecretError::InvalidParameter(
            "Password length is too short based on the required types.".into(),
        ));
    }
    if rules.each_type && types.iter().any(Vec::is_empty) {
        return Err(SecretError::InvalidParameter(
            "A required character type has no characters left: exclude fewer, or set RequireEachIncludedType to false."
                .into(),
        ));
    }
    let mut password = Zeroizing::new(Vec::with_capacity(rules.length));
    if rules.each_type {
        for characters in &types {
            password.push(characters[below(characters.len())?]);
        }
    }
    while password.len() < rules.length {
        password.push(alphabet[below(alphabet.len())?]);
    }
    // Fisher and Yates: the required characters must not be known to come first.
    for last in (1..password.len()).rev() {
        password.swap(last, below(last + 1)?);
    }
    Ok(Plain::new(password.to_vec()))
}

/// A random number below `bound`, each with the same probability.
fn below(bound: usize) -> Result<usize, Fault> {
    let bound = bound as u64;
    // Numbers from the incomplete last run of `bound` numbers are drawn again.
    let limit = u64::MAX - u64::MAX % bound;
    loop {
        let number = u64::from_be_bytes(random::bytes::<8>()?);
        if number < limit {
            return Ok((number % bound) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(rules: &Rules) -> String {
        String::from_utf8(generate(rules).unwrap().expose().to_vec()).unwrap()
    }

    #[test]
    fn has_each_type_and_nothing_excluded() {
        let rules =
            Rules { exclude: "abcXYZ189".into(), length: 5, space: true, ..Rules::default() };
        for _ in 0..200 {
            let password = made(&rules);
            assert_eq!(password.len(), 5);
            let has = |is: fn(char) -> bool| password.chars().any(is);
            assert!(
                has(|c| c.is_ascii_uppercase()) && has(|c| c.is_ascii_lowercase()),
                "{password}"
            );
            assert!(has(|c| c.is_ascii_digit()) && has(|c| c.is_ascii_punctuation()), "{password}");
            assert!(
                has(|c| c == ' ') && !password.contains(|c| rules.exclude.contains(c)),
                "{password}"
            );
        }
    }

    #[test]
    fn a_required_type_is_not_always_in_the_same_place() {
        let rules = Rules { length: 4, ..Rules::default() };
        let places: std::collections::BTreeSet<_> =
            (0..500).map(|_| made(&rules).find(|c: char| c.is_ascii_digit())).collect();
        assert_eq!(places.len(), 4);
    }

    #[test]
    fn impossible_rules_are_refused() {
        let none = Rules {
            uppercase: false,
            lowercase: false,
            punctuation: false,
            exclude: "0123456789".into(),
            ..Rules::default()
        };
        for rules in [
            none.clone(),
            Rules { each_type: false, ..none },
            Rules { length: 3, ..Rules::default() },
        ] {
            assert!(matches!(generate(&rules), Err(SecretError::InvalidParameter(_))), "{rules:?}");
        }
        let digits = Rules { exclude: "0123456789".into(), ..Rules::default() };
        assert!(generate(&digits).is_err());
        assert!(
            !made(&Rules { each_type: false, ..digits }).contains(|c: char| c.is_ascii_digit())
        );
    }
}
