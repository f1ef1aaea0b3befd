//! `outlast init`: makes a data folder.

use std::path::PathBuf;

use serde_json::json;

use crate::data::{self, NewData};
use crate::failure::Failure;
use crate::location::StoreLocation;
use crate::output::Output;
use crate::root_key::Provider;
use crate::settings::PORT;
use crate::tls::default_names;
use crate::{shell, values};

/// Arguments of `init`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Folder to make.
    #[arg(long, env = "OUTLAST_DATA")]
    data: PathBuf,
    /// Account of the administrator, 12 digits.
    #[arg(long, default_value = "123456789012", env = "OUTLAST_ACCOUNT", value_parser = values::account)]
    account: String,
    /// Access key id of the administrator; generated if absent. The secret is generated, too, unless
    /// OUTLAST_SECRET_ACCESS_KEY holds it.
    #[arg(long, value_parser = values::access_key_id)]
    access_key_id: Option<String>,
    /// Region that the AWS profile names; every other region works as well.
    #[arg(long, default_value = "us-east-1")]
    region: String,
    /// Port that the AWS profile names.
    #[arg(long, default_value_t = PORT)]
    port: u16,
    /// What wraps the store's root key: file:PATH, passphrase:SOURCE (env:NAME, file:PATH, or nothing to
    /// be asked) or pkcs11:URI; a file or a token's key is made unless it exists [default: file:root.key in
    /// the data folder].
    #[arg(long, env = "OUTLAST_ROOT_KEY", hide_env_values = true)]
    root_key: Option<String>,
    /// Where to keep the records: sqlite, or a URL such as postgres://USER@HOST/DATABASE, which several servers
    /// may share [default: sqlite, in the data folder].
    #[arg(long, env = "OUTLAST_STORE", hide_env_values = true)]
    store: Option<String>,
    /// Name of the audit log to verifiers, such as log.example.com/outlast: a host name and path of yours that no other log
    /// has [default: a random one].
    #[arg(long, value_name = "NAME")]
    audit_origin: Option<String>,
    /// Make the folder for another server on a database that has a store already; --root-key says where that
    /// store's root key is.
    #[arg(long, requires = "store", requires = "root_key")]
    join: bool,
}

/// Makes the folder and tells what is in it.
pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let secret = data::given_secret()?;
    let here = std::env::current_dir().map_err(|error| Failure::new(error.to_string()))?;
    let root_key = match &arguments.root_key {
        // Absolute, since it is written down in the settings.
        Some(text) => Some(Provider::parse(text, &here)?),
        None => None,
    };
    let database = StoreLocation::choose(&arguments.data, arguments.store.as_deref())?.database;
    if let (true, Some(url), Some(provider)) = (arguments.join, &database, &root_key) {
        return join(arguments, url, provider, output);
    }
    let keep = match &root_key {
        None => {
            let path = shell::quoted(&arguments.data.join("root.key"));
            format!("{path} (without it the store cannot be read)")
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
            names: default_names(),
            root_key,
            database,
            audit_origin: arguments.audit_origin.clone(),
        },
    )?;
    let text = format!(
        "made {folder}: store, root key, TLS chain, administrator of account {account}\n\n\
         start it:    {start}\n\
         use it with: export AWS_CONFIG_FILE={config} \
         AWS_SHARED_CREDENTIALS_FILE={credentials} AWS_PROFILE=outlast\n\
         keep safe:   {keep}",
        folder = arguments.data.display(),
        account = key.account,
        start = start(arguments),
        config = shell::quoted(&arguments.data.join("client/config")),
        credentials = shell::quoted(&arguments.data.join("client/credentials")),
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

/// The command that serves the folder at the port of its profile.
fn start(arguments: &Arguments) -> String {
    let command = format!("outlast server --data {}", shell::quoted(&arguments.data));
    if arguments.port == PORT {
        return command;
    }
    format!("{command} --listen 127.0.0.1:{}", arguments.port)
}

fn join(
    arguments: &Arguments,
    url: &str,
    provider: &Provider,
    output: Output,
) -> Result<(), Failure> {
    data::join(&arguments.data, url.to_owned(), provider, &arguments.region, arguments.port)?;
    let text = format!(
        "made {} for another server on the database\n\nstart it: {}",
        arguments.data.display(),
        start(arguments),
    );
    output.result(&text, &json!({ "data": arguments.data, "joined": true }));
    Ok(())
}
