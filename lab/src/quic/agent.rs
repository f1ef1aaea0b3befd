//! Virtual runs in another process, to check that they are the same there.

use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use super::VirtualRun;
use crate::error::LabError;
use crate::link::Link;
use crate::subject::{Kind, Subject};
use crate::tls::lines;
use outlast_harness::agent::Agent;

/// Connections in virtual time.
pub const AGENT: Agent = Agent { name: "quic-virtual", run };

/// The agent's job.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Job {
    key_exchange: String,
    authentication: String,
    certificates: u8,
    kind: Kind,
    link: Link,
    seed: u64,
    count: u32,
}

fn run(argument: &str) -> Result<(), LabError> {
    let job: Job = serde_json::from_str(argument).map_err(LabError::failed)?;
    let subject = Subject::new(&job.key_exchange, &job.authentication, job.certificates)?;
    let run = super::in_virtual_time(&subject.kind(job.kind), &job.link, job.seed, job.count)?;
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, &run).map_err(LabError::failed)?;
    out.flush().map_err(LabError::failed)
}

/// The same as [`super::in_virtual_time`], in another process, which stops when told to. `program` is the lab itself.
pub fn in_another_process(
    program: &Path,
    subject: &Subject,
    link: &Link,
    seed: u64,
    count: u32,
    stop: &AtomicBool,
) -> Result<VirtualRun, LabError> {
    let job = Job {
        key_exchange: subject.key_exchange.name.to_owned(),
        authentication: subject.authentication.name.to_owned(),
        certificates: subject.certificates,
        kind: subject.kind,
        link: *link,
        seed,
        count,
    };
    let argument = serde_json::to_string(&job).map_err(LabError::failed)?;
    let mut command = Command::new(program);
    command.args(["agent", AGENT.name, &argument]);
    let mut told = String::new();
    lines(program, &command, stop, |line| {
        told.push_str(line);
        Ok(())
    })?;
    serde_json::from_str(&told).map_err(LabError::failed)
}
