//! What the programs share that people start: how they print, how they fail, how they write files, and whom they call as.

pub mod completions;
pub mod failure;
pub mod files;
pub mod output;
pub mod profile;
pub mod shell;
pub mod temporary;
