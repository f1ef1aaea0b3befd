//! The AWS surface: wire formats, signatures, and one file for each operation. No I/O.
//!
//! [`aws`] is AWS's: generated from its models. [`ops`] is ours: what each operation does.
//! [`service::Service`] turns a request into a response and a store transaction; who owns the socket commits
//! the transaction and only then sends the response. [`client::Client`] makes requests and reads responses.
//! This is the only crate that knows AWS names and JSON.

pub mod acme;
pub mod audit;
pub mod aws;
pub mod call;
pub mod client;
pub mod model;
pub mod ops;
pub mod outside;
pub mod provider;
pub mod service;
pub mod table;
pub mod wire;
