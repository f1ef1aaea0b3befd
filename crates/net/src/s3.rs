//! Buckets behind an endpoint that speaks S3, with path-style URLs: `https://endpoint/bucket/key`. [`S3`] writes reports and CRLs;
//! the files of SFTP users are in [`objects`].

mod client;
pub(crate) mod objects;
mod xml;

use bytes::Bytes;
use outlast_api::service::Sink;
use outlast_api::wire::sigv4::Credentials;
use tokio::runtime::Handle;
use tokio::time::timeout;

pub(crate) use client::Only;
pub use client::{Client, Failure};

use crate::client::Connector;
use crate::limits;

/// Settings of an endpoint.
pub struct Settings {
    /// `https://host[:port]`, or `http://host[:port]`.
    pub endpoint: String,
    /// Whether plain HTTP to another machine is allowed.
    pub allow_plain: bool,
    /// Region in the requests' signatures.
    pub region: String,
    /// Credentials for signing requests.
    pub credentials: Credentials,
    /// How to connect over TLS.
    pub connector: Connector,
}

/// An endpoint to whose buckets objects are written.
pub struct S3 {
    client: Client,
    handle: Handle,
}

impl S3 {
    /// Objects are written through `client`, on the runtime of `handle`.
    #[must_use]
    pub fn new(client: Client, handle: Handle) -> Self {
        Self { client, handle }
    }
}

impl Sink for S3 {
    /// Must not be called on a thread that runs futures.
    fn put(&self, bucket: &str, key: &str, content_type: &str, bytes: &[u8]) -> Result<(), String> {
        let bucket = objects::Bucket::new(self.client.clone(), bucket.trim_matches('/'));
        let body = Bytes::copy_from_slice(bytes);
        let write = bucket.write_as(key, content_type, body);
        self.handle.block_on(async {
            match timeout(limits::OBJECT, write).await {
                Ok(outcome) => outcome.map_err(|failure| failure.to_string()),
                Err(_) => Err(format!("{} does not answer", self.client.endpoint())),
            }
        })
    }
}
