//! Policies in messages.

/// Text of the document for messages: its beginning, without control characters.
pub(super) fn short(text: &str) -> String {
    let mut shown: String =
        text.chars().take(60).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if text.chars().nth(60).is_some() {
        shown.push_str("...");
    }
    format!("\"{shown}\"")
}
