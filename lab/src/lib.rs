//! What post-quantum costs, measured so that one can believe it.
//!
//! Experiments ([`experiment`]) measure by engines ([`tls`], [`model`], [`live`], [`quic`]), leave points and results in a folder
//! ([`run`]), and are read as one page ([`report`]). Nothing here is part of the service, and nothing here prints.

pub mod agent;
pub mod client;
pub mod compare;
pub mod experiment;
pub mod experiments;
#[cfg(feature = "legacy")]
pub mod legacy;
pub mod link;
pub mod live;
pub mod model;
pub mod plan;
pub mod plot;
pub mod published;
pub mod quic;
pub mod report;
pub mod result;
pub mod run;
pub mod selftest;
pub mod siege;
pub mod site;
pub mod state;
pub mod subject;
pub mod tls;
pub mod trace;

pub use outlast_harness::{error, pinned, server, statistics, temporary, time, trusted};
