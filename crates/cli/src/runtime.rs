//! The asynchronous runtime of commands that use the network.

use tokio::runtime::Runtime;

use crate::failure::Failure;

/// A runtime with a thread for each processor.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    Runtime::new().map_err(|error| cannot_start(&error))
}

/// The failure of a runtime that the system does not let start.
pub(crate) fn cannot_start(error: &std::io::Error) -> Failure {
    Failure::new(format!("the runtime cannot be started: {error}"))
}

/// A runtime on the calling thread, for a few requests.
pub(crate) fn small() -> Result<Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| cannot_start(&error))
}
