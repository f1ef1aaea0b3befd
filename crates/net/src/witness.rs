//! Witnesses of transparency logs (c2sp.org/tlog-witness): [`server`] is one, and [`client`] calls one.

pub mod client;
pub mod server;

pub use client::{Witness, WitnessError, cosign};
pub use server::WitnessServer;
