//! Wire formats: AWS JSON 1.1, Smithy RPC v2 CBOR, the query protocol, REST JSON, errors, and Signature Version 4 with its form for
//! certificates.

pub mod constraints;
pub mod error;
pub mod protocol;
pub mod query;
pub mod read;
pub mod rest;
pub mod sigv4;
pub mod types;
pub mod validate;
pub mod x509;

pub use error::ApiError;
pub use protocol::{Payload, Protocol};
pub use types::{Blob, Discarded, Timestamp};
