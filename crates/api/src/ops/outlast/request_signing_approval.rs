//! `RequestSigningApproval`: asks the approvers of a key for signatures. Ours; described in `docs/guide/approvals.md`.

use std::collections::{BTreeMap, BTreeSet};

use outlast_domain::identity::action;
use outlast_domain::kms::approval::{self, Wanted};

pub use crate::aws::outlast::{
    RequestSigningApproval, RequestSigningApprovalRequest as Input,
    RequestSigningApprovalResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::outlast::{note_files, note_request, other_keys, own_key, required};
use crate::wire::{ApiError, Timestamp};

impl Run for RequestSigningApproval {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let first = own_key(call, action::outlast::RequestSigningApproval, &input.key_id)?;
        note_files(call, &input.files);
        let mut wanted = vec![(first, Vec::new())];
        let mut known = BTreeMap::from([(input.key_id.clone(), 0)]);
        for file in input.files {
            let name = file.key_id.clone().unwrap_or_else(|| input.key_id.clone());
            let index = match known.get(&name) {
                Some(index) => *index,
                None => {
                    let key = own_key(call, action::outlast::RequestSigningApproval, &name)?;
                    let arn = key.arn();
                    let index = wanted.iter().position(|(one, _)| one.arn() == arn);
                    let index = index.unwrap_or_else(|| {
                        wanted.push((key, Vec::new()));
                        wanted.len() - 1
                    });
                    known.insert(name, index);
                    index
                }
            };
            if let Some((_, files)) = wanted.get_mut(index) {
                files.push(file);
            }
        }
        // Not that of the last key that was found.
        call.notes.parameter("keyId", input.key_id.as_str());
        let mut permits = Vec::with_capacity(wanted.len());
        for (key, _) in &wanted {
            let arn = approval::approval_arn(key);
            permits.push(call.authorize(action::outlast::RequestSigningApproval, &arn)?);
        }
        // Who may not sign has nothing to ask for.
        call.conditions.set("kms:MessageType", "RAW");
        for (key, files) in &wanted {
            let algorithms: BTreeSet<_> =
                files.iter().map(|file| file.signing_algorithm.clone()).collect();
            for algorithm in algorithms {
                call.conditions.set("kms:SigningAlgorithm", algorithm);
                call.authorize_key(action::kms::Sign, key, None)?;
            }
        }
        let reason = input.reason.unwrap_or_default();
        if !reason.is_empty() {
            call.notes.parameter("reason", reason.as_str());
        }
        let (keys, files): (Vec<_>, Vec<_>) = wanted.into_iter().unzip();
        let asked = keys.iter().zip(files).zip(&permits);
        let asked = asked.map(|((key, files), permit)| Wanted {
            key,
            files: files.into_iter().map(Into::into).collect(),
            permit,
        });
        let asked = asked.collect();
        let (work, access) = call.split();
        let request = approval::request_approval(work, asked, access.caller, reason)?;
        let scope = call.scope.clone();
        let verdict = approval::judge(&mut call.work, &scope, &request)?;
        let digest = note_request(call, &scope, &request);
        Ok(Output {
            request_id: request.id,
            request_digest: digest,
            key_id: request.key,
            expires_at: Timestamp::from_ms(request.expires_ms),
            approvers_required: required(&verdict).unwrap_or_default(),
            other_keys: other_keys(&verdict, false),
        })
    }
}
