//! Suggestions for mistyped names.

/// The name most similar to `wanted`, if any is similar enough.
pub fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = wanted.to_lowercase();
    if wanted.is_empty() {
        return None;
    }
    let names: Vec<&str> = names.into_iter().collect();
    let part = |name: &&&str| wanted.len() >= PART && name.to_lowercase().contains(&wanted);
    let whole = names.iter().find(part).copied();
    let scored =
        names.into_iter().map(|name| (strsim::jaro_winkler(&name.to_lowercase(), &wanted), name));
    // The first of equals: lists begin with the preferred.
    let best = scored.reduce(|best, next| if next.0 > best.0 { next } else { best });
    best.filter(|(likeness, _)| *likeness > LIKE).map(|(_, name)| name).or(whole)
}

/// Least similarity, from 0 for nothing in common to 1 for equal.
const LIKE: f64 = 0.7;

/// Least length of a part of a name that stands for it, such as 1.3 for TLSv1.3, if no name is similar.
const PART: usize = 3;
