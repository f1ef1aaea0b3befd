//! `outlast sign --format jws`: detached JSON Web Signatures.

use std::path::PathBuf;

use outlast_net::policy::Policy;
use outlast_net::server::system_clock;
use outlast_pki::jws::{MAX_PAYLOAD_LEN, Unsigned};
use serde_json::json;

use super::{Arguments, certificates, readable};
use crate::endpoint::Endpoint;
use crate::evidence::Evidence;
use crate::failure::{Failure, USAGE};
use crate::files;
use crate::output::Output;
use crate::signing::check::before_signing;
use crate::signing::jobs::{DASH, check_places};
use crate::signing::{Signers, SigningIdentity};

/// Signs each file into `FILE.jws`.
pub(super) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let usage = |text: &str, hint: &str| Failure::new(text).hint(hint).code(USAGE);
    let cms_only = [
        ("--recursive", arguments.recursive.is_some()),
        ("--classical-copy", arguments.classical_copy),
        ("--embed-revocation", arguments.embed_revocation),
        ("--digest", arguments.digest.is_some()),
        ("--output-dir", arguments.output_dir.is_some()),
        ("--log", arguments.additions.log),
        ("--timestamp", !arguments.additions.timestamp.is_empty()),
        ("--timestamp-trust", arguments.additions.timestamps.timestamp_trust.is_some()),
        ("--timestamp-ca", arguments.additions.timestamps.timestamp_ca.is_some()),
    ];
    if let Some((option, _)) = cms_only.iter().find(|(_, is_given)| *is_given) {
        return Err(usage(
            &format!("{option} is for CMS signatures, not for --format jws"),
            "leave one of them out",
        ));
    }
    if arguments.files.iter().any(|file| file.as_os_str() == DASH) {
        return Err(usage("standard input is not signed as JWS", "name a file"));
    }
    if arguments.signature.is_some() && arguments.files.len() > 1 {
        return Err(usage("--signature is for a single file", "sign the files one by one"));
    }
    let target = |file: &PathBuf| match &arguments.signature {
        Some(path) => path.clone(),
        None => {
            let mut name = file.as_os_str().to_owned();
            name.push(".jws");
            PathBuf::from(name)
        }
    };
    let jobs: Vec<_> = arguments.files.iter().map(|file| (file, target(file))).collect();
    let written: Vec<_> =
        jobs.iter().map(|(file, path)| (path.as_path(), file.as_path())).collect();
    let signed: Vec<_> = arguments.files.iter().map(PathBuf::as_path).collect();
    check_places(&written, &signed)?;
    for (file, path) in &jobs {
        readable(file)?;
        if !arguments.force && files::exists(path)? {
            return Err(files::exists_already(path).prefixed("nothing is signed"));
        }
    }
    let given = arguments.certificate.iter().map(|path| certificates(path));
    let given = given.collect::<Result<Vec<_>, _>>()?;
    let runtime = crate::runtime::small()?;
    let (word, outcome) = match arguments.dry_run {
        true => ("would sign", "would-sign"),
        false => ("signed", "signed"),
    };
    let mut text = String::new();
    let mut list = Vec::new();
    runtime.block_on(async {
        let mut endpoint = Endpoint::new(arguments.connection.settings()?, &Policy::default())?;
        let signers = Signers::resolve(&mut endpoint, &arguments.key, given, None).await?;
        let [identity] = signers.identities() else {
            return Err(usage(
                "a JWS in the compact form has one signer",
                "name one key, or sign with both in CMS: leave --format jws out",
            ));
        };
        let mut evidence = Evidence::default();
        let now = system_clock().div_euclid(1000);
        before_signing(identity, arguments.revocation, &mut evidence, now).await?;
        if arguments.dry_run {
            signers.may_sign(&mut endpoint).await?;
        }
        for (file, path) in &jobs {
            if !arguments.dry_run {
                let signature = sign(identity, &mut endpoint, file).await?;
                match arguments.force {
                    true => files::write(path, signature.as_bytes(), 0o644)?,
                    false => files::write_absent(path, signature.as_bytes(), 0o644)?,
                }
            }
            text.push_str(&format!("{word} {}: {}\n", file.display(), path.display()));
            let (file, path) = (files::json_path(file), files::json_path(path));
            list.push(json!({ "file": file, "outcome": outcome, "signature": path }));
        }
        Ok(())
    })?;
    output.result(&text, &list);
    Ok(())
}

async fn sign(
    identity: &SigningIdentity,
    endpoint: &mut Endpoint,
    file: &std::path::Path,
) -> Result<String, Failure> {
    let content = files::read(file, MAX_PAYLOAD_LEN)?;
    let (own, chain) = (identity.certificate(), identity.chain());
    let unsigned = Unsigned::new(own, chain, identity.algorithm())?;
    let signature = identity.sign_bytes(endpoint, &unsigned.to_be_signed(&content)).await?;
    Ok(unsigned.assemble(&signature)? + "\n")
}
