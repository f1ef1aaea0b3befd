//! What measuring needs, whatever is measured: a server as a child process, processes that are kept on a core and end with their parent,
//! CPU time, statistics that hold on noisy machines. The benchmarks and the lab stand on it.

pub mod agent;
pub mod error;
pub mod pinned;
pub mod server;
pub mod statistics;
pub mod temporary;
pub mod time;
pub mod trusted;
