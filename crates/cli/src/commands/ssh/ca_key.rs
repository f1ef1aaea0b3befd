//! `outlast ssh ca-key`: prints the public key of an authority.

use outlast_api::ops::kms::{get_public_key, list_resource_tags};
use outlast_domain::ssh_ca::{KINDS_TAG, SECOND_KEY_TAG};
use outlast_net::policy::Policy;
use outlast_ssh::PublicKey;
use serde_json::json;

use crate::endpoint::Endpoint;
use crate::failure::{Failure, USAGE};
use crate::output::Output;
use crate::profile::Connection;

/// Arguments of `ssh ca-key`.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The authority: alias/NAME, key id or ARN.
    #[arg(long, env = "OUTLAST_SSH_CA_KEY")]
    key: String,
    /// Print a line for known_hosts, for the hosts that match these patterns, such as '*.example.com'.
    #[arg(long, value_name = "PATTERNS")]
    known_hosts: Option<String>,
    #[command(flatten)]
    connection: Connection,
}

/// Runs the command.
pub(super) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let is_plain = |text: &String| !text.is_empty() && !text.contains(char::is_whitespace);
    if arguments.known_hosts.as_ref().is_some_and(|patterns| !is_plain(patterns)) {
        return Err(
            Failure::new("patterns of hosts are separated by commas, without spaces").code(USAGE)
        );
    }
    let mut endpoint = Endpoint::new(arguments.connection.settings()?, &Policy::default())?;
    let (arn, key) = crate::runtime::small()?.block_on(read(&mut endpoint, &arguments.key))?;
    let key_line = key.to_openssh_line();
    let line = match &arguments.known_hosts {
        Some(patterns) => format!("@cert-authority {patterns} {key_line}"),
        None => format!("{key_line} {arn}"),
    };
    let value = json!({
        "keyId": arn, "type": key.key_type(), "fingerprint": key.fingerprint(), "publicKey": key_line, "line": line,
    });
    output.result(&line, &value);
    Ok(())
}

/// ARN and public key of an authority.
async fn read(endpoint: &mut Endpoint, name: &str) -> Result<(String, PublicKey), Failure> {
    let first = public_key(endpoint, name).await?;
    let arn = first.key_id;
    let unusable = |error| {
        Failure::new(format!("{arn} cannot be an SSH certificate authority: {error}"))
            .hint("use a key for ECDSA, Ed25519 or RSA, or an ML_DSA_44 key with a second one")
    };
    let tags = list_resource_tags::Input { key_id: arn.clone(), limit: None, marker: None };
    let tags = endpoint.call::<list_resource_tags::ListResourceTags>(&tags).await;
    // A host that trusts the key of something else trusts nothing that this service signs.
    let is_authority =
        |tags: &list_resource_tags::Output| tags.tags.iter().any(|tag| tag.tag_key == KINDS_TAG);
    if tags.as_ref().is_ok_and(|tags| !is_authority(tags)) {
        return Err(Failure::new(format!("{arn} is not an SSH certificate authority"))
            .hint(format!("its owner makes it one by the tag {KINDS_TAG}: user, host or both")));
    }
    if first.key_spec != "ML_DSA_44" {
        let key = PublicKey::from_spki(&first.public_key.0).map_err(unusable)?;
        return Ok((arn, key));
    }
    let tags = tags?.tags;
    let second = tags.into_iter().find(|tag| tag.tag_key == SECOND_KEY_TAG).ok_or_else(|| {
        Failure::new(format!("{arn} signs for SSH only together with an Ed25519 key"))
            .hint(format!("name one, by its ARN, in the tag {SECOND_KEY_TAG}"))
    })?;
    let second = public_key(endpoint, &second.tag_value).await?;
    let key = PublicKey::composite_from_spki(&first.public_key.0, &second.public_key.0);
    Ok((arn.clone(), key.map_err(unusable)?))
}

async fn public_key(
    endpoint: &mut Endpoint,
    name: &str,
) -> Result<get_public_key::Output, Failure> {
    let wanted = get_public_key::Input { key_id: name.to_owned(), grant_tokens: None };
    Ok(endpoint.call::<get_public_key::GetPublicKey>(&wanted).await?)
}
