//! lint
use crate::failure::Failure;
use crate::output::Output;
#[derive(clap::Args)]
pub(crate) struct Arguments {}
pub(crate) fn run(_: &Arguments, _: Output) -> Result<(), Failure> {
    Ok(())
}
