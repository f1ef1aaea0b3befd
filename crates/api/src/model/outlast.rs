//! Structures of Outlast's own operations.

use outlast_domain::identity::action::Action;
use outlast_domain::kms::Key;
use outlast_domain::kms::approval::NewFile;
use serde_json::{Value, json};

pub use crate::aws::outlast::SigningFile;
use crate::call::Call;
use crate::model::kms::find_key;
use crate::wire::ApiError;

impl From<SigningFile> for NewFile {
    fn from(file: SigningFile) -> Self {
        Self {
            name: file.name,
            digest_algorithm: file.digest_algorithm,
            digest: file.digest.0,
            algorithm: file.signing_algorithm,
            message: file.message.0,
        }
    }
}

/// Finds a key of the caller's own account by any of its names: approvals do not work across accounts.
pub fn own_key<A: Action>(call: &mut Call<'_>, _: A, name: &str) -> Result<Key, ApiError> {
    let key = find_key(call, name)?;
    if key.account() == call.scope.account {
        return Ok(key);
    }
    Err(ApiError::new(
        "AccessDeniedException",
        format!(
            "User: {} is not authorized to perform: {} on resource: {} because approvals do not work across accounts",
            call.caller.principal.arn(),
            A::NAME,
            key.arn()
        ),
    ))
}

/// Notes the files of a request for the audit record.
pub fn note_files(call: &mut Call<'_>, files: &[SigningFile]) {
    let shown = |file: &SigningFile| {
        json!({
            "name": file.name,
            "digestAlgorithm": file.digest_algorithm,
            "digest": hex::encode(&file.digest.0),
            "signingAlgorithm": file.signing_algorithm,
        })
    };
    let files: Vec<Value> = files.iter().map(shown).collect();
    call.notes.parameter("files", files);
}
