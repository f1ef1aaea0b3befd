//! Server and client against each other in memory, and against what is hostile. Peers are in `tests/`.

mod hardware;
mod hostile;
mod keys;
mod matrix;
mod memory;
mod pair;
mod rekey;
mod session;
