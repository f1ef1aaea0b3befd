//! `outlast credentials process`: one set of credentials on stdout, as `credential_process` in a profile expects it.

use outlast_agent::imds::process_document;

use super::Machine;
use crate::failure::Failure;
use crate::output;

/// Prints credentials.
pub(super) async fn run(machine: &Machine) -> Result<(), Failure> {
    let mut sessions = machine.sessions()?;
    output::line(&process_document(sessions.current().await?));
    Ok(())
}
