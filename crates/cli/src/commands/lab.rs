//! `outlast lab`: what post-quantum costs, measured.

use clap::Subcommand;
use outlast_lab::experiment::EXPERIMENTS;

use crate::failure::Failure;
use crate::output::Output;

/// Arguments of `lab`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List the experiments, what they reproduce and how long they take.
    List,
    /// A helper process of the lab itself.
    #[command(hide = true)]
    Agent {
        /// Which.
        name: String,
        /// What it is to do, in JSON.
        argument: String,
    },
}

pub(crate) fn run(arguments: &Arguments, _: Output) -> Result<(), Failure> {
    match &arguments.action {
        Action::List => {
            for row in EXPERIMENTS {
                crate::output::line(&format!("{}  {}", row.name, row.title));
            }
            Ok(())
        }
        Action::Agent { name, argument } => {
            let agent = outlast_lab::agent::AGENTS
                .iter()
                .find(|row| row.name == name)
                .ok_or_else(|| Failure::new(format!("no agent is named {name}")))?;
            (agent.run)(argument).map_err(|error| Failure::new(error.to_string()))
        }
    }
}
