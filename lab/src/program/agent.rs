//! `outlast-lab agent`: a helper process of the lab itself.

use outlast_lab::agent::AGENTS;

use outlast_terminal::failure::Failure;

/// Arguments of `lab agent`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Name of the agent.
    name: String,
    /// Its argument, in JSON.
    argument: String,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let agent = AGENTS
        .iter()
        .find(|row| row.name == arguments.name)
        .ok_or_else(|| Failure::new(format!("no agent is named {}", arguments.name)))?;
    (agent.run)(&arguments.argument).map_err(|error| super::failure(&error))
}
