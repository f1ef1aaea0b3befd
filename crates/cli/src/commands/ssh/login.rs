//! `outlast ssh login`: a new key with a short-lived certificate, in the SSH agent.
//!
//! The private key is in the memory of this process and of the agent, never in a file.

use std::path::PathBuf;

use outlast_net::policy::Policy;
use outlast_net::server::system_clock;
use outlast_net::ssh_agent::Agent;
use outlast_ssh::agent::{Constraints, add_identity};
use outlast_ssh::{KeyKind, PrivateKey};

use super::certificate::{Issued, Said};
use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::output::Output;
use crate::profile::Connection;

/// Arguments of `ssh login`. `-V` is ssh-keygen's.
#[derive(clap::Args)]
#[command(disable_version_flag = true)]
pub(super) struct Arguments {
    #[command(flatten)]
    said: Said,
    /// Type of the key: ssh-ed25519, or ssh-mldsa44-ed25519 for OpenSSH 10.6 and later.
    #[arg(long, value_enum, default_value_t = Algorithm::SshEd25519)]
    algorithm: Algorithm,
    /// Socket of the SSH agent.
    #[arg(long, value_name = "SOCKET", env = "SSH_AUTH_SOCK")]
    agent: Option<PathBuf>,
    /// Let the agent ask before it uses the key.
    #[arg(long)]
    confirm: bool,
    #[command(flatten)]
    connection: Connection,
}

/// Type of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Algorithm {
    /// Ed25519.
    SshEd25519,
    /// ML-DSA-44 with Ed25519.
    #[value(name = "ssh-mldsa44-ed25519")]
    SshMlDsa44Ed25519,
}

/// Runs the command.
pub(super) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let socket = arguments.agent.as_ref().ok_or_else(|| {
        Failure::new("there is no SSH agent").hint("start one: eval \"$(ssh-agent)\"")
    })?;
    let now = system_clock().div_euclid(1000);
    let request = arguments.said.request(false, None, now)?;
    let mut endpoint = Endpoint::new(arguments.connection.settings()?, &Policy::default())?;
    let kind = match arguments.algorithm {
        Algorithm::SshEd25519 => KeyKind::Ed25519,
        Algorithm::SshMlDsa44Ed25519 => KeyKind::MlDsa44Ed25519,
    };
    let key = PrivateKey::generate(kind).map_err(|error| Failure::new(error.to_string()))?;
    let issued = crate::runtime::small()?.block_on(async {
        let unreachable = |error: std::io::Error| {
            Failure::file(socket, &error)
                .hint("start an agent: eval \"$(ssh-agent)\", or name its socket with --agent")
        };
        // Before a certificate is issued that nobody could use.
        let mut agent = Agent::connect(socket).await.map_err(unreachable)?;
        let issued = Issued::get(&mut endpoint, &request, key.public_key()).await?;
        let fields = issued.certificate.fields();
        let now = u64::try_from(system_clock().div_euclid(1000)).unwrap_or_default();
        let left = fields.valid_before_s.saturating_sub(now);
        let constraints = Constraints {
            lifetime_s: Some(u32::try_from(left).unwrap_or(u32::MAX).max(1)),
            confirm: arguments.confirm,
        };
        let message = add_identity(&key, Some(&issued.certificate), &fields.key_id, constraints)
            .map_err(|error| Failure::new(error.to_string()))?;
        match agent.ask(&message).await.map_err(unreachable)? {
            true => Ok(issued),
            false => Err(Failure::new("the SSH agent has refused the key").hint(
                "it may not know the type of the key: try --algorithm ssh-ed25519, without --confirm",
            )),
        }
    })?;
    let mut value = issued.value();
    value["type"] = issued.certificate.type_name().into();
    output
        .result(&format!("The SSH agent has a key and its certificate: {}", issued.text()), &value);
    Ok(())
}
