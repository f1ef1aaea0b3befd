//! Names that somebody typed: which was probably meant.

/// The name of these that is most like `wanted`, if any is much like it.
pub fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = wanted.to_lowercase();
    if wanted.is_empty() {
        return None;
    }
    let scored =
        names.into_iter().map(|name| (strsim::jaro_winkler(&name.to_lowercase(), &wanted), name));
    // The first of equals: lists begin with what is preferred.
    let best = scored.reduce(|best, next| if next.0 > best.0 { next } else { best });
    best.filter(|(likeness, _)| *likeness > LIKE).map(|(_, name)| name)
}

/// From 0, nothing in common, to 1, the same.
const LIKE: f64 = 0.7;
