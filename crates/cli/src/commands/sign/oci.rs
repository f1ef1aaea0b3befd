//! `outlast sign --oci`: signs the image of an OCI image layout; the signature becomes an artifact in the layout.

use outlast_net::policy::Policy;
use outlast_net::server::system_clock;
use serde_json::json;

use super::{Arguments, certificates};
use crate::endpoint::Endpoint;
use crate::evidence::Evidence;
use crate::failure::Failure;
use crate::oci::Layout;
use crate::output::{self, Output};
use crate::signing::Signers;
use crate::signing::check::before_signing;

/// Signs one image: its manifest, which names everything else by digest.
pub(super) fn run(reference: &str, arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let mut layout = Layout::open(reference)?;
    let progress = output::byte_bar(0);
    let checked = layout.check(&progress);
    progress.finish_and_clear();
    checked?;
    let manifest = layout.manifest()?;
    let given = arguments.certificate.iter().map(|path| certificates(path));
    let given = given.collect::<Result<Vec<_>, _>>()?;
    let runtime = crate::runtime::small()?;
    let signature = runtime.block_on(async {
        let mut endpoint = Endpoint::new(arguments.connection.settings()?, &Policy::default())?;
        let digest = arguments.digest;
        let mut signers = Signers::resolve(&mut endpoint, &arguments.key, given, digest).await?;
        let now = system_clock().div_euclid(1000);
        let mut evidence =
            Evidence { keeps_all: arguments.embed_revocation, ..Evidence::default() };
        for identity in signers.identities() {
            before_signing(identity, arguments.revocation, &mut evidence, now).await?;
        }
        if arguments.embed_revocation {
            signers.embed(evidence)?;
        }
        if arguments.dry_run {
            return signers.may_sign(&mut endpoint).await.map(|()| None);
        }
        let rows = signers.digests();
        let digests: Vec<_> = rows.iter().map(|row| row.digest(&manifest)).collect();
        signers.sign_digests(&mut endpoint, &rows, &digests).await.map(Some)
    })?;
    let (word, outcome, added) = match signature {
        Some(signature) => ("signed", "signed", Some(layout.add(&signature)?)),
        None => ("would sign", "would-sign", None),
    };
    let image = layout.image.name();
    let shown = added.as_deref().map(|name| format!(": {name}")).unwrap_or_default();
    let text = format!("{word} {reference} ({image}){shown}\n");
    let value =
        json!([{ "file": reference, "outcome": outcome, "image": image, "signature": added }]);
    output.result(&text, &value);
    Ok(())
}
