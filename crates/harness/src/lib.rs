//! Basics of every measurement: a server as a child process, processes that are pinned to a core and end with their
//! parent, CPU time, and statistics for noisy machines. The benchmarks and the lab use it.

pub mod agent;
pub mod error;
pub mod pinned;
pub mod server;
pub mod statistics;
pub mod temporary;
pub mod time;
pub mod trusted;
