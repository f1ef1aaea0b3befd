//! `outlast log proof`: replaces a proof by one with the newest cosignatures.

use std::path::PathBuf;

use outlast_net::policy::Policy;
use outlast_tlog::proof_file::{MAX_FILE, ProofFile};
use serde_json::json;

use crate::artifact_log;
use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::files;
use crate::output::Output;
use crate::profile::Connection;

/// Arguments of `log proof`.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Proof to replace: a .tlog-proof file.
    file: PathBuf,
    #[command(flatten)]
    connection: Connection,
}

/// Runs the command.
pub(super) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let path = &arguments.file;
    let parse = |bytes: &[u8]| ProofFile::parse(bytes).map_err(|error| Failure::file(path, &error));
    let old = parse(&files::read(path, MAX_FILE)?)?;
    let mut endpoint = Endpoint::new(arguments.connection.settings()?, &Policy::default())?;
    let asked = artifact_log::proof(&mut endpoint, old.index);
    let (text, is_cosigned) = crate::runtime::small()?.block_on(asked)?;
    let new = parse(text.as_bytes())?;
    let origin = |proof: &ProofFile| proof.checkpoint.checkpoint().origin().to_owned();
    if new.extra != old.extra || origin(&new) != origin(&old) {
        return Err(Failure::file(path, &"the service's log has another entry at this index")
            .hint("the proof is of another service's log, or the log was rewritten: compare with outlast log monitor"));
    }
    files::write(path, text.as_bytes(), 0o644)?;
    let head = new.checkpoint.checkpoint();
    let by = new.checkpoint.note().signatures().len();
    let text =
        format!("proof of entry {} in a log of {}, with {by} signatures", new.index, head.size());
    let value = json!({ "file": files::json_path(path), "index": new.index, "size": head.size(), "cosigned": is_cosigned });
    output.result(&text, &value);
    if is_cosigned {
        return Ok(());
    }
    Err(Failure::new("too few witnesses have cosigned the log yet")
        .hint("wait some seconds and try again; if it stays so, the server's log says why"))
}
