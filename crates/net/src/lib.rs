//! The only sockets: the servers and the client connections.
//!
//! [`door`] is where a connection gets its key exchange; [`server`] speaks HTTP behind it, and [`quic`] does both over UDP;
//! [`proxy`] is the door in front of any other server; [`plain`] serves CRLs and OCSP; [`echo`] sends back what comes.
//! What a peer may hold is in `slots` and `bodies`. [`certificate`] keeps the service's own TLS chain, and
//! [`own_certificate`] reads one that the operator brings; [`tickets`] makes what sessions are resumed by;
//! [`client_auth`] verifies the certificates of clients. [`client`] connects to any endpoint and tells what was negotiated,
//! [`outbound`] logs in to SFTP servers, for the jobs of [`connectors`]; [`s3`] writes to buckets, [`post`] reaches functions and targets of events, [`local`] serves programs on the same machine, and [`fetch`] gets CRLs and OCSP responses over plain HTTP.

pub mod acme;
mod activity;
mod bodies;
mod cancelled;
pub mod certificate;
mod chain;
pub mod client;
pub mod client_auth;
mod clock;
pub mod connectors;
pub mod door;
pub mod echo;
pub mod errands;
mod exchange;
pub mod fetch;
pub mod invoke;
pub mod limits;
pub mod local;
pub mod metrics;
mod negotiated;
pub mod observed;
pub mod outbound;
pub mod own_certificate;
mod peer;
pub mod plain;
pub mod policy;
pub mod post;
pub mod providers;
pub mod proxy;
pub mod quic;
pub mod readiness;
pub mod s3;
pub mod server;
pub mod sftp;
mod slots;
pub mod ssh_agent;
pub mod tickets;
mod tsa;
mod turns;
pub mod watch;
pub mod witness;

pub use negotiated::{HandshakeKind, Negotiated};
