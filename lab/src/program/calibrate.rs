//! `outlast lab calibrate`: the running kernel as a profile for plans.

use outlast_lab::model::{PROFILES, running};

use super::failure;
use outlast_terminal::failure::Failure;
use outlast_terminal::output::Output;

/// Arguments of `lab calibrate`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Name of the profile.
    #[arg(long, default_value = "this-machine")]
    name: String,
}

pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    if PROFILES.iter().any(|row| row.name.eq_ignore_ascii_case(&arguments.name)) {
        let what = format!("{} is a profile of the table", arguments.name);
        return Err(Failure::new(what).hint("choose another --name").code(2));
    }
    let kernel = running(&arguments.name).map_err(|error| failure(&error))?;
    let text = format!(
        "# Into a plan, with profiles = [\"{}\"]. \"outlast lab selftest --only real\" compares the model with this kernel\'s TCP.\n{}",
        arguments.name,
        kernel.toml().map_err(|error| failure(&error))?
    );
    output.result(text.trim_end(), &kernel);
    Ok(())
}
