//! The AWS surface: wire formats, signatures, and one file for each operation. No I/O.
//!
//! [`service::Service`] turns a request into a response and a store transaction; who owns the socket commits
//! the transaction and only then sends the response. [`client::Client`] makes requests and reads responses.
//! This is the only crate that knows AWS names and JSON.

pub mod acme;
pub mod audit;
pub mod client;
pub mod model;
pub mod ops;
pub mod service;
pub mod wire;
