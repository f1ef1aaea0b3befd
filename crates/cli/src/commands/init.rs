//! `outlast init`: makes a data folder.

use std::path::PathBuf;

use outlast_crypto::Secret;
use serde_json::json;

use crate::data::{self, NewData};
use crate::failure::Failure;
use crate::output::Output;
use crate::root_key::Provider;

/// Arguments of `init`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Folder to make.
    #[arg(long, env = "OUTLAST_DATA")]
    data: PathBuf,
    /// Account of the administrator, 12 digits.
    #[arg(long, default_value = "123456789012", env = "OUTLAST_ACCOUNT")]
    account: String,
    /// Access key id of the administrator; generated if absent. The secret is generated, too, unless
    /// OUTLAST_SECRET_ACCESS_KEY holds it.
    #[arg(long)]
    access_key_id: Option<String>,
    /// Region that the AWS profile names; every other region works as well.
    #[arg(long, default_value = "us-east-1")]
    region: String,
    /// Port that the AWS profile names.
    #[arg(long, default_value_t = 8443)]
    port: u16,
    /// What shall wrap the store's root key: file:PATH, passphrase:SOURCE (env:NAME, file:PATH, or nothing to
    /// be asked) or pkcs11:URI; a file or a token's key is made unless it exists [default: file:root.key in
    /// the data folder].
    #[arg(long, env = "OUTLAST_ROOT_KEY", hide_env_values = true)]
    root_key: Option<String>,
}

/// Makes the folder and tells what is in it.
pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let secret = match std::env::var("OUTLAST_SECRET_ACCESS_KEY") {
        Ok(text) if text.len() < 16 || !text.bytes().all(|byte| byte.is_ascii_graphic()) => {
            return Err(Failure::new("OUTLAST_SECRET_ACCESS_KEY is not a secret access key")
                .hint("it needs 16 or more visible ASCII characters; AWS's have 40"));
        }
        Ok(text) => Some(Secret::new(text.into_bytes())),
        Err(_) => None,
    };
    let here = std::env::current_dir().map_err(|error| Failure::new(error.to_string()))?;
    let root_key = match &arguments.root_key {
        // Absolute, since it is written down in the settings.
        Some(text) => Some(Provider::parse(text, &here)?),
        None => None,
    };
    let keep = match &root_key {
        None => {
            format!("{}/root.key (without it the store cannot be read)", arguments.data.display())
        }
        Some(given) => format!("what {given} names (without it the store cannot be read)"),
    };
    let key = data::create(
        &arguments.data,
        NewData {
            account: arguments.account.clone(),
            access_key_id: arguments.access_key_id.clone(),
            secret,
            region: arguments.region.clone(),
            port: arguments.port,
            names: data::default_names(),
            root_key,
        },
    )?;
    let folder = arguments.data.display();
    let text = format!(
        "made {folder}: store, root key, TLS chain, administrator of account {account}\n\n\
         start it:    outlast server --data {folder}\n\
         use it with: export AWS_CONFIG_FILE={folder}/client/config \
         AWS_SHARED_CREDENTIALS_FILE={folder}/client/credentials AWS_PROFILE=outlast\n\
         keep safe:   {keep}",
        account = key.account,
    );
    output.result(
        &text,
        &json!({
            "data": arguments.data,
            "account": key.account,
            "access_key_id": key.id,
            "aws_config_file": arguments.data.join("client/config"),
            "aws_shared_credentials_file": arguments.data.join("client/credentials"),
            "aws_profile": crate::profile::NAME,
            "ca_bundle": arguments.data.join("client/ca.pem"),
        }),
    );
    Ok(())
}
