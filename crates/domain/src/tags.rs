//! Tag keys: tags distinguish case, and condition keys such as `aws:ResourceTag/team` do not.
//!
//! Two tag keys that differ only in case would be one condition key with two values, so no resource may get both.
//! Older resources that have both are evaluated by [`crate::policy::ConditionKeys::set_tags`].

use std::collections::BTreeMap;

/// Two tag keys that differ only in case: the existing one and the one to be added.
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

/// Adds the tags of `more` to `tags`; they replace tags whose keys differ only in case.
pub fn replace(tags: &mut BTreeMap<String, String>, more: BTreeMap<String, String>) {
    tags.retain(|key, _| !more.keys().any(|new| new.eq_ignore_ascii_case(key)));
    tags.extend(more);
}

/// The refusal of tags in which [`clash`] has found a clash.
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
            // Condition keys ignore case in ASCII only.
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
