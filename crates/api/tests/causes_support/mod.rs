//! What callers do wrong and what AWS says, a table for each service.

pub mod acm;
pub mod kms;
pub mod private_ca;
pub mod sts;

/// What is known of a text.
#[derive(Debug, Clone, Copy)]
pub enum Text {
    /// AWS sends none.
    None,
    /// AWS's own.
    Aws(&'static str),
    /// AWS's is not known, or says less: ours, which has these words.
    Ours(&'static str),
}

/// Operation, request, code, status, text, source of code and text.
pub type Cause = (&'static str, &'static str, &'static str, u16, Text, &'static str);
