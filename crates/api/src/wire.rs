//! Wire formats: AWS JSON 1.1, Smithy RPC v2 CBOR, errors, and Signature Version 4.

pub mod error;
pub mod protocol;
pub mod sigv4;
pub mod types;
pub mod validate;

pub use error::ApiError;
pub use protocol::Protocol;
pub use types::{Blob, Timestamp};
