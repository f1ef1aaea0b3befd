//! The only sockets: the HTTPS server, and the client connection that the command line uses.
//!
//! [`door`] is where a connection gets its key exchange; [`server`] speaks HTTP behind it; [`certificate`]
//! keeps the service's own TLS chain; [`quic`] does both over UDP; [`proxy`] is the door in front of any other server;
//! [`plain`] serves CRLs and OCSP; [`s3`] writes to buckets; [`client`] connects to any endpoint and tells what was
//! negotiated; [`client_auth`] verifies the certificates of clients, and [`fetch`] gets CRLs and OCSP responses over plain
//! HTTP.
//! negotiated; [`client_auth`] verifies the certificates of clients, and [`fetch`] gets
//! keeps the service's own TLS chain, and [`own_certificate`] reads one that the operator brings; [`tickets`] makes what
//! sessions are resumed by; [`quic`] is the door and HTTP over UDP, [`echo`] sends back what comes; [`plain`] serves CRLs and
//! OCSP; [`s3`] writes to buckets; [`client`] connects to any endpoint and tells what was negotiated; [`client_auth`]
//! verifies the certificates of clients, and [`fetch`] gets
//! CRLs and OCSP responses over plain HTTP.

mod accept;
pub mod acme;
pub mod certificate;
pub mod client;
pub mod client_auth;
pub mod door;
pub mod echo;
pub mod fetch;
pub mod limits;
pub mod metrics;
mod negotiated;
pub mod observed;
pub mod own_certificate;
pub mod plain;
pub mod policy;
pub mod proxy;
pub mod quic;
pub mod s3;
pub mod server;
pub mod tickets;
pub mod watch;
pub mod witness;

pub use negotiated::{HandshakeKind, Negotiated};
