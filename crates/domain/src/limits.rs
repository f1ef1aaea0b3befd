//! Every limit on what a caller controls, in one place. Numbers are AWS's unless said otherwise.

/// Tags on one resource.
pub const MAX_TAGS: usize = 50;
/// Characters of a tag key.
pub const MAX_TAG_KEY: usize = 128;
/// Characters of a tag value.
pub const MAX_TAG_VALUE: usize = 256;
/// Aliases for one key (KMS quota "Aliases per KMS key").
pub const MAX_ALIASES_PER_KEY: usize = 50;
/// Items on one page of a list.
pub const MAX_PAGE: usize = 1000;
/// Items on a page when the caller does not say.
pub const DEFAULT_PAGE: usize = 100;
/// Entries of an encryption context. Ours; AWS limits the whole to 8192 characters.
pub const MAX_CONTEXT_ENTRIES: usize = 128;
/// Characters of an encryption context, keys and values together.
pub const MAX_CONTEXT_CHARS: usize = 8192;
/// Loaded keys that are kept in memory. Ours.
pub const MAX_LOADED_KEYS: usize = 1024;
/// Days before a key is deleted.
pub const DELETION_WINDOW_DAYS: std::ops::RangeInclusive<i64> = 7..=30;
/// How long an idempotency token of Private CA is remembered, in seconds.
pub const IDEMPOTENCY_SECONDS: i64 = 300;
/// Longest life of a certificate from a short-lived-certificate CA, in seconds.
pub const SHORT_LIVED_SECONDS: i64 = 7 * 86_400;
/// How long before its issue a certificate begins to be valid, in seconds: clocks differ.
pub const BACKDATE_SECONDS: i64 = 3600;
/// Certificates in an imported chain. Ours.
pub const MAX_CHAIN: usize = 16;
