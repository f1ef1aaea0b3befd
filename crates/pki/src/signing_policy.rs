//! Signing policies: who may sign which files, for `outlast verify --policy`.
//!
//! [`file`] reads a policy, [`judge`] evaluates it, [`words`] explains it. The first rule whose patterns match a file
//! decides; a file that no rule matches is refused. Every requirement of a rule is asked of one signer as a whole: one
//! signer's algorithm and another one's subject do not add up.
//!
//! No file is read here: a rule names its roots, and the caller reads them.

pub mod algorithms;
pub mod builtin;
pub mod file;
pub mod judge;
pub mod log;
pub mod names;
mod reader;
pub mod rule;
pub mod words;
