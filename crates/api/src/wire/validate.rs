//! Checks of members that the generated constraints do not cover, with the wording of AWS's validation errors.

use super::ApiError;

/// `KeyId` as AWS's errors spell it: `keyId`.
pub fn member_name(name: &str) -> String {
    let mut chars = name.chars();
    chars
        .next()
        .map_or_else(String::new, |first| first.to_ascii_lowercase().to_string() + chars.as_str())
}

/// Checks that a value is one of an enumeration's.
pub fn one_of(name: &str, value: &str, allowed: &[&str]) -> Result<(), ApiError> {
    if allowed.contains(&value) {
        return Ok(());
    }
    Err(violation(
        name,
        &shorten(value),
        &format!("Member must satisfy enum value set: [{}]", allowed.join(", ")),
    ))
}

/// Checks that a length (of a string in characters, of a blob in bytes, of a list in items) is within bounds.
pub fn length(name: &str, found: usize, min: usize, max: usize) -> Result<(), ApiError> {
    if found < min {
        let constraint = format!("Member must have length greater than or equal to {min}");
        return Err(violation(name, &format!("[{found} long]"), &constraint));
    }
    if found > max {
        let constraint = format!("Member must have length less than or equal to {max}");
        return Err(violation(name, &format!("[{found} long]"), &constraint));
    }
    Ok(())
}

/// Items on a page: the request's limit, within AWS's bounds.
pub fn page_limit(name: &str, given: Option<i64>) -> Result<usize, ApiError> {
    use outlast_domain::limits::{DEFAULT_PAGE, MAX_PAGE};
    page_of(name, given, DEFAULT_PAGE, MAX_PAGE)
}

/// The same for a list with bounds of its own: `default` items if the request does not say, `max` at most.
pub fn page_of(
    name: &str,
    given: Option<i64>,
    default: usize,
    max: usize,
) -> Result<usize, ApiError> {
    let Some(value) = given else { return Ok(default) };
    match usize::try_from(value) {
        Ok(limit) if (1..=max).contains(&limit) => Ok(limit),
        Ok(limit) if limit > max => {
            let constraint = format!("Member must have value less than or equal to {max}");
            Err(violation(name, &value.to_string(), &constraint))
        }
        _ => Err(violation(
            name,
            &value.to_string(),
            "Member must have value greater than or equal to 1",
        )),
    }
}

/// The error for a required member that is missing.
pub fn missing(name: &str) -> ApiError {
    ApiError::validation(format!(
        "1 validation error detected: Value null at '{}' failed to satisfy constraint: Member must \
         not be null",
        member_name(name)
    ))
}

fn violation(name: &str, value: &str, constraint: &str) -> ApiError {
    ApiError::validation(format!(
        "1 validation error detected: Value '{value}' at '{}' failed to satisfy constraint: \
         {constraint}",
        member_name(name)
    ))
}

/// At most 64 characters of what a caller sent, for errors.
pub fn shorten(value: &str) -> String {
    value.chars().take(64).collect()
}
