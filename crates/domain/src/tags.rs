//! Tag keys: resources keep their case, and condition keys such as `aws:ResourceTag/team` have none.
//!
//! Two keys that differ in case only would be one condition key with two values, so nothing may be given both.
//! Resources that have both from before are judged by [`crate::policy::ConditionKeys::set_tags`].

use std::collections::BTreeMap;

/// Of two tag keys that differ in case only, the one that is there and the one that is to be added.
pub fn clash<'a>(
    there: &'a BTreeMap<String, String>,
    added: impl IntoIterator<Item = &'a String>,
) -> Option<(&'a str, &'a str)> {
    let clashes = |key: &&str, other: &str| *key != other && key.eq_ignore_ascii_case(other);
    added.into_iter().find_map(|new| {
        let old = there.keys().map(String::as_str).find(|old| clashes(old, new))?;
        Some((old, new.as_str()))
    })
}

/// Gives `tags` those of `more`, which replace what they differ from in case only.
pub fn replace(tags: &mut BTreeMap<String, String>, more: BTreeMap<String, String>) {
    tags.retain(|key, _| !more.keys().any(|new| new.eq_ignore_ascii_case(key)));
    tags.extend(more);
}

/// Why tags are refused that [`clash`] has found.
pub fn refusal((old, new): (&str, &str)) -> String {
    let short = |key: &str| key.chars().take(64).collect::<String>();
    let (old, new) = (short(old), short(new));
    format!(
        "The tag key {new} differs from {old} in case only: policies could not tell them apart."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_clash_by_ascii_case() {
        let tags = |keys: &[&str]| -> BTreeMap<_, _> {
            keys.iter().map(|key| ((*key).to_owned(), "x".to_owned())).collect()
        };
        for (there, added, expected) in [
            (&["team"][..], &["Team"][..], true),
            (&["Team", "team"], &["team"], true),
            (&["team"], &["team"], false),
            (&["team"], &["teams", "TEA"], false),
            // Condition keys have no case in ASCII only.
            (&["\u{e9}"], &["\u{c9}"], false),
        ] {
            let (there, added) = (tags(there), tags(added));
            assert_eq!(clash(&there, added.keys()).is_some(), expected, "{there:?} {added:?}");
        }
        let mut role = tags(&["Team", "cost"]);
        replace(&mut role, tags(&["team"]));
        assert_eq!(role.into_keys().collect::<Vec<_>>(), ["cost", "team"]);
    }
}
