//! Mistakes of callers and AWS's answers, a table for each service.

pub mod acm;
pub mod kms;
pub mod private_ca;
pub mod rolesanywhere;
pub mod secretsmanager;
pub mod sts;
pub mod transfer;

/// What is known of AWS's text.
#[derive(Debug, Clone, Copy)]
pub enum Text {
    /// AWS sends no text.
    None,
    /// AWS's own text.
    Aws(&'static str),
    /// AWS's text is unknown, or says less: ours contains these words.
    Ours(&'static str),
}

/// Operation, request, code, status, text, source of code and text.
pub type Cause = (&'static str, &'static str, &'static str, u16, Text, &'static str);
