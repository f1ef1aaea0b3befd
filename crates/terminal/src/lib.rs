//! Shared by all programs that users start: how they print, fail and write files, and with which credentials they
//! call.

pub mod completions;
pub mod credentials_file;
pub mod failure;
pub mod files;
pub mod output;
pub mod profile;
pub mod shell;
pub mod temporary;
