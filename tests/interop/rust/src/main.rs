//! The program of KMS_STEPS.md by the AWS SDK for Rust, TLS by rustls with aws-lc-rs; with `secrets` as the first
//! argument, that of SECRETS_STEPS.md.
//!
//! Everything comes from AWS_CONFIG_FILE, AWS_SHARED_CREDENTIALS_FILE and AWS_PROFILE, but for the CA: the SDK
//! does not read ca_bundle, OUTLAST_CA names it (without it, SSL_CERT_FILE counts). With OUTLAST_ROLE_ARN it
//! takes on that role.

#[macro_use]
mod common;
mod agreement;
mod data;
mod grants;
mod keys;
mod last;
mod material;
mod regions;
mod secrets;
mod signatures;
mod sts;

use aws_sdk_kms::types::DataKeyPairSpec;
use common::{Outcome, Stop, World};

/// Names of the steps, and how to run the one of a name.
macro_rules! steps {
    ($steps:ident, $run:ident: $($name:literal => $call:expr),* $(,)?) => {
        const $steps: &[&str] = &[$($name),*];

        async fn $run(world: &World, name: &str) -> Outcome {
            match name {
                $($name => Box::pin($call(world)).await,)*
                _ => unreachable!("{name} is in {}", stringify!($steps)),
            }
        }
    };
}

// In the order of KMS_STEPS.md.
steps! {
    STEPS, run:
    "create-symmetric" => keys::create_symmetric,
    "describe-key" => keys::describe_key,
    "list-keys" => keys::list_keys,
    "update-key-description" => keys::update_key_description,
    "tags" => keys::tags,
    "enable-disable" => keys::enable_disable,
    "alias" => keys::alias,
    "encrypt-decrypt" => data::encrypt_decrypt,
    "re-encrypt" => data::re_encrypt,
    "generate-data-key" => data::generate_data_key,
    "generate-data-key-without-plaintext" => data::generate_data_key_without_plaintext,
    "generate-data-key-pair-rsa-2048" => |w| data::pair(w, DataKeyPairSpec::Rsa2048),
    "generate-data-key-pair-ecc-nist-p256" => |w| data::pair(w, DataKeyPairSpec::EccNistP256),
    "generate-data-key-pair-ml-kem-768" => |w| data::pair(w, DataKeyPairSpec::MlKem768),
    "generate-data-key-pair-without-plaintext-rsa-2048" => |w| data::pair_without_plaintext(w, DataKeyPairSpec::Rsa2048),
    "generate-data-key-pair-without-plaintext-ecc-nist-p256" => |w| data::pair_without_plaintext(w, DataKeyPairSpec::EccNistP256),
    "generate-data-key-pair-without-plaintext-ml-kem-768" => |w| data::pair_without_plaintext(w, DataKeyPairSpec::MlKem768),
    "generate-random" => data::generate_random,
    "get-public-key" => signatures::get_public_key,
    "sign-verify-rsa-2048-pss" => |w| signatures::sign_verify(w, &signatures::RSA_PSS),
    "sign-verify-rsa-2048-pkcs1" => |w| signatures::sign_verify(w, &signatures::RSA_PKCS1),
    "sign-verify-ecc-nist-p256" => |w| signatures::sign_verify(w, &signatures::P256),
    "sign-verify-ecc-secg-p256k1" => |w| signatures::sign_verify(w, &signatures::P256K1),
    "sign-verify-ecc-nist-edwards25519" => |w| signatures::sign_verify(w, &signatures::ED25519),
    "sign-verify-ml-dsa-44" => |w| signatures::sign_verify(w, &signatures::ML_DSA_44),
    "sign-verify-ml-dsa-65" => |w| signatures::sign_verify(w, &signatures::ML_DSA_65),
    "sign-verify-ml-dsa-87" => |w| signatures::sign_verify(w, &signatures::ML_DSA_87),
    "sign-verify-ml-dsa-65-external-mu" => signatures::external_mu,
    "mac-hmac-256" => agreement::mac_hmac_256,
    "derive-shared-secret" => agreement::derive_shared_secret,
    "derive-shared-secret-local" => agreement::derive_shared_secret_local,
    "ml-kem-768" => agreement::ml_kem_768,
    "ml-kem-768-local" => agreement::ml_kem_768_local,
    "ml-kem-768-wrong-length" => agreement::ml_kem_768_wrong_length,
    "get-parameters-for-import" => material::get_parameters_for_import,
    "import-key-material" => material::import_key_material,
    "delete-imported-key-material" => material::delete_imported_key_material,
    "import-other-key-material" => material::import_other_key_material,
    "key-rotation" => material::key_rotation,
    "rotate-key-on-demand" => material::rotate_key_on_demand,
    "create-grant" => grants::create_grant,
    "list-retirable-grants" => grants::list_retirable_grants,
    "grant-token" => grants::grant_token,
    "retire-grant" => grants::retire_grant,
    "revoke-grant" => grants::revoke_grant,
    "get-key-policy" => grants::get_key_policy,
    "put-key-policy" => grants::put_key_policy,
    "put-key-policy-lockout" => grants::put_key_policy_lockout,
    "replicate-key" => regions::replicate_key,
    "update-primary-region" => regions::update_primary_region,
    "dry-run" => last::dry_run,
    "get-key-last-usage" => last::get_key_last_usage,
    "describe-custom-key-stores" => last::describe_custom_key_stores,
    "create-custom-key-store" => last::create_custom_key_store,
    "not-found" => last::not_found,
    "validation" => last::validation,
    "foreign-arn" => last::foreign_arn,
    "schedule-key-deletion" => last::schedule_key_deletion,
    "cancel-key-deletion" => last::cancel_key_deletion,
    "get-caller-identity" => sts::get_caller_identity,
    "assume-role" => sts::assume_role,
    "assume-role-profile" => sts::assume_role_profile,
}

// In the order of SECRETS_STEPS.md.
steps! {
    SECRET_STEPS, run_secret:
    "create-secret" => secrets::create_secret,
    "get-secret-value" => secrets::get_secret_value,
    "put-secret-value" => secrets::put_secret_value,
    "previous-version" => secrets::previous_version,
    "binary-value" => secrets::binary_value,
    "update-secret-version-stage" => secrets::update_secret_version_stage,
    "replicate-secret" => secrets::replicate_secret,
    "rotate-secret" => secrets::rotate_secret,
    "rotate-secret-later" => secrets::rotate_secret_later,
    "list-secrets" => secrets::list_secrets,
    "batch-get-secret-value" => secrets::batch_get_secret_value,
    "get-random-password" => secrets::get_random_password,
    "not-found" => secrets::not_found,
    "invalid-parameter" => secrets::invalid_parameter,
    "delete-and-restore" => secrets::delete_and_restore,
    "force-delete" => secrets::force_delete,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::process::ExitCode {
    let mut wanted: Vec<String> = std::env::args().skip(1).collect();
    let of_secrets = wanted.first().is_some_and(|mode| mode == "secrets");
    if of_secrets {
        wanted.remove(0);
    }
    let steps = if of_secrets { SECRET_STEPS } else { STEPS };
    if let Some(unknown) = wanted.iter().find(|name| !steps.contains(&name.as_str())) {
        eprintln!("unknown step {unknown}");
        return 2.into();
    }
    let world = match World::connect().await {
        Ok(world) => world,
        Err(stop) => {
            eprintln!("{}", stop.text());
            return 2.into();
        }
    };
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for name in steps {
        if !wanted.is_empty() && !wanted.iter().any(|w| w == name) {
            continue;
        }
        let outcome =
            if of_secrets { run_secret(&world, name).await } else { run(&world, name).await };
        match outcome {
            Ok(()) => {
                passed += 1;
                println!("ok {name}");
            }
            Err(Stop::Skipped(reason)) => {
                skipped += 1;
                println!("skipped {name}: {reason}");
            }
            Err(Stop::Failed(reason)) => {
                failed += 1;
                let line = reason.split_whitespace().collect::<Vec<_>>().join(" ");
                println!("FAILED {name}: {}", line.chars().take(400).collect::<String>());
            }
        }
    }
    world.clean_up().await;
    let skipped = if skipped > 0 { format!(", {skipped} skipped") } else { String::new() };
    println!("{passed} steps passed, {failed} failed{skipped}");
    u8::from(failed > 0).into()
}
