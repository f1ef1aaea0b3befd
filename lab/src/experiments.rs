//! The experiments, one file each.

pub mod cpu;
pub mod handshake_cost;
pub mod idle;
pub mod plan;
pub mod play;
pub mod pool;
pub mod quic_rate;
pub mod requests;
pub mod served;
pub mod sizes;
pub mod tables;
pub mod tls_matrix;
pub mod validation;
