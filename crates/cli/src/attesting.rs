//! Makes attestations: envelopes around Statements, signed by keys of KMS.

use std::path::Path;

use indicatif::ProgressBar;
use outlast_crypto::digests::Digest;
use outlast_pki::dsse::{self, Envelope, MAX_PAYLOAD_LEN, Signature};
use outlast_pki::in_toto::{Artifact, PAYLOAD_TYPE, Statement, WRITTEN};
use serde_json::Value;

use crate::digest;
use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::signing::Signers;

/// Files with their digests, as a Statement names them. The name is the file's own, without its folder.
pub(crate) fn subjects(
    paths: &[impl AsRef<Path>],
    progress: &ProgressBar,
) -> Result<Vec<Artifact>, Failure> {
    let rows: Vec<_> = WRITTEN.iter().filter_map(|name| Digest::by_name(name)).collect();
    let mut out = Vec::with_capacity(paths.len());
    for path in paths {
        let path = path.as_ref();
        progress.set_message(path.display().to_string());
        let name = path.file_name().unwrap_or(path.as_os_str());
        let digests = digest::file(path, &rows, progress)?;
        out.push(Artifact { name: name.to_string_lossy().into_owned(), digests });
    }
    Ok(out)
}

/// Signs a Statement about subjects with all keys.
pub(crate) async fn envelope(
    signers: &Signers,
    endpoint: &mut Endpoint,
    subjects: &[Artifact],
    predicate_type: &str,
    predicate: &Value,
) -> Result<Envelope, Failure> {
    let payload = Statement::write(subjects, predicate_type, predicate);
    if payload.len() > MAX_PAYLOAD_LEN {
        return Err(Failure::new(format!(
            "the attestation would be longer than {MAX_PAYLOAD_LEN} bytes, which nobody would read"
        ))
        .hint("attest the long document as a subject, by its digest"));
    }
    let signed = dsse::pae(PAYLOAD_TYPE, &payload);
    let mut signatures = Vec::new();
    for identity in signers.identities() {
        let signature = identity.sign_bytes(endpoint, &signed).await?;
        let own = identity.certificate();
        let chain = identity.chain().iter().cloned();
        signatures.push(Signature {
            keyid: Some(dsse::keyid(&own.public_key()?)),
            signature,
            certificates: std::iter::once(own.der().to_vec()).chain(chain).collect(),
        });
    }
    Ok(Envelope { payload_type: PAYLOAD_TYPE.to_owned(), payload, signatures })
}
