//! The cost of post-quantum cryptography, measured so that the results can be trusted.
//!
//! Experiments ([`experiment`]) measure by engines ([`tls`], [`model`], [`live`], [`quic`]), write points and results
//! into a folder ([`run`]), and are shown as one page ([`report`]). Nothing here is part of the service, and nothing
//! here prints.

pub mod agent;
pub mod archive;
pub mod client;
pub mod compare;
pub mod effect;
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
