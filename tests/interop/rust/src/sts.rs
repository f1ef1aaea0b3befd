//! Who we are, and roles.

use aws_config::SdkConfig;
use aws_runtime::env_config::file::{EnvConfigFileKind, EnvConfigFiles};
use aws_sdk_kms::config::{Credentials, SharedCredentialsProvider};
use aws_sdk_kms::primitives::Blob;

use crate::common::{Outcome, Stop, World, equal, loader, now, present, variable};

pub async fn get_caller_identity(world: &World) -> Outcome {
    let caller = world.sts.get_caller_identity().send().await?;
    let account = present(caller.account(), "Account")?;
    check!(
        account.len() == 12 && account.bytes().all(|byte| byte.is_ascii_digit()),
        "Account {account}"
    );
    equal(account, &world.key().await?.account, "Account")?;
    let arn = caller.arn().unwrap_or_default();
    let starts = ["iam", "sts"]
        .iter()
        .any(|service| arn.starts_with(&format!("arn:aws:{service}::{account}:")));
    check!(starts, "Arn {arn}");
    check!(caller.user_id().is_some_and(|id| !id.is_empty()), "no UserId");
    Ok(())
}

fn role_arn() -> Outcome<String> {
    let given = std::env::var("OUTLAST_ROLE_ARN").ok().filter(|arn| !arn.is_empty());
    given.ok_or_else(|| Stop::Skipped("OUTLAST_ROLE_ARN is not set".to_owned()))
}

/// What a session of the role must be able to do; `name` is its own, if we gave it.
async fn as_role(world: &World, role: &SdkConfig, name: Option<&str>) -> Outcome {
    let arn = role_arn()?;
    let account = arn.split(':').nth(4).unwrap_or_default();
    let role_name = arn.rsplit('/').next().unwrap_or_default();
    let want = format!("arn:aws:sts::{account}:assumed-role/{role_name}/");
    let caller = aws_sdk_sts::Client::new(role).get_caller_identity().send().await?;
    let got = caller.arn().unwrap_or_default();
    match name {
        Some(name) => equal(got, want + name, "Arn")?,
        None => check!(got.starts_with(&want), "Arn: got {got}, want {want}..."),
    }
    let key = world.key().await?.id;
    let encrypt =
        aws_sdk_kms::Client::new(role).encrypt().key_id(key).plaintext(Blob::new("by the role"));
    let blob = present(encrypt.send().await?.ciphertext_blob, "CiphertextBlob")?;
    equal(world.decrypt(&blob).await?, "by the role", "Plaintext")
}

pub async fn assume_role(world: &World) -> Outcome {
    let name = format!("kms-whole-{}", world.run);
    let answer =
        world.sts.assume_role().role_arn(role_arn()?).role_session_name(&name).send().await?;
    let user = present(answer.assumed_role_user(), "AssumedRoleUser")?;
    check!(user.arn().ends_with(&format!("/{name}")), "AssumedRoleUser {}", user.arn());
    let given = present(answer.credentials(), "Credentials")?;
    check!(given.expiration().secs() > now(), "Expiration {}", given.expiration());
    let token = Some(given.session_token().to_owned());
    let credentials = Credentials::new(
        given.access_key_id(),
        given.secret_access_key(),
        token,
        None,
        "kms-whole",
    );
    let provider = SharedCredentialsProvider::new(credentials);
    let role = world.config.to_builder().credentials_provider(provider).build();
    as_role(world, &role, Some(&name)).await
}

pub async fn assume_role_profile(world: &World) -> Outcome {
    let arn = role_arn()?;
    let (config, source) = (variable("AWS_CONFIG_FILE")?, variable("AWS_PROFILE")?);
    let text = format!(
        "{}\n[profile kms-whole-role]\nrole_arn = {arn}\nsource_profile = {source}\nregion = {}\nendpoint_url = {}\n",
        std::fs::read_to_string(config)?,
        world.region,
        present(world.config.endpoint_url(), "endpoint_url")?,
    );
    let files = EnvConfigFiles::builder()
        .with_contents(EnvConfigFileKind::Config, text)
        .with_file(EnvConfigFileKind::Credentials, variable("AWS_SHARED_CREDENTIALS_FILE")?)
        .build();
    let role = loader()?.profile_files(files).profile_name("kms-whole-role").load().await;
    as_role(world, &role, None).await
}
