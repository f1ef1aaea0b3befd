//! Requests for approval, from the side of those who ask and those who approve: what is to be signed, and whether what the
//! server shows is consistent.

use std::path::{Path, PathBuf};

use outlast_api::aws::outlast::{SigningApprovalRule, SigningRequest, SigningRequestFile};
use outlast_api::ops::outlast::get_signing_request;
use outlast_crypto::digests::Digest;
use outlast_domain::kms::approval::{Approver, Rule, StatedFile, Statement};
use outlast_pki::cms::attributes::{NotAttributes, SignedAttributes};
use outlast_pki::time::rfc3339;
use serde_json::{Value, json};

use crate::endpoint::Endpoint;
use crate::failure::Failure;

/// Reads a request.
pub(crate) async fn read(endpoint: &mut Endpoint, id: &str) -> Result<SigningRequest, Failure> {
    let input = get_signing_request::Input { request_id: id.to_owned() };
    Ok(endpoint.call::<get_signing_request::GetSigningRequest>(&input).await?.request)
}

/// The digest of what the request says, computed here: what its reader approves.
///
/// # Errors
/// If a message does not stand for its file, or the server's digest is another one.
pub(crate) fn digest(request: &SigningRequest) -> Result<String, Failure> {
    let lines: Vec<String> = match (&request.new_rule, request.removes_rule) {
        (Some(rule), _) => vec![Statement::rule(Some(&stated_rule(rule)))],
        (None, true) => vec![Statement::rule(None)],
        (None, false) => {
            for file in &request.files {
                check(file)?;
            }
            request.files.iter().map(|file| Statement::file(stated(file))).collect()
        }
    };
    let digest = Statement {
        request: &request.request_arn,
        key: &request.key_id,
        requester: &request.requester_arn,
        expires: request.expires_at.ms.div_euclid(1000),
        reason: request.reason.as_deref().unwrap_or_default(),
        lines: &lines,
    }
    .digest();
    if digest != request.request_digest {
        return Err(Failure::new(
            "the server's digest of the request is not that of what it shows",
        )
        .hint("do not approve it; tell the operator of the server"));
    }
    Ok(digest)
}

fn stated(file: &SigningRequestFile) -> StatedFile<'_> {
    StatedFile {
        name: &file.name,
        digest_algorithm: &file.digest_algorithm,
        digest: &file.digest.0,
        algorithm: &file.signing_algorithm,
        message: &file.message.0,
    }
}

fn stated_rule(rule: &SigningApprovalRule) -> Rule {
    let approvers = rule.approvers.iter().map(|one| Approver {
        principal: one.principal_arn.clone(),
        id: String::new(),
        public_key: one.public_key.as_ref().map(|key| hex::encode(&key.0)),
    });
    Rule {
        required: usize::try_from(rule.approvers_required).unwrap_or_default(),
        approvers: approvers.collect(),
        valid_minutes: rule.valid_for_minutes.unwrap_or_default(),
        requester_may_approve: rule.requester_may_approve.unwrap_or_default(),
    }
}

/// Checks that the message stands for the file.
fn check(file: &SigningRequestFile) -> Result<(), Failure> {
    let wrong = || {
        Failure::new(format!("the message for {:?} is not for a file with this digest", file.name))
            .hint("do not approve it; tell the operator of the server")
    };
    let row = Digest::by_name(&file.digest_algorithm).ok_or_else(wrong)?;
    let is_right = match SignedAttributes::parse(&file.message.0) {
        Ok(signed) => {
            signed.message_digest == file.digest.0
                && signed.digest.is_none_or(|digest| digest.oid == row.oid)
        }
        Err(NotAttributes::Other) => row.digest(&file.message.0) == file.digest.0,
        Err(NotAttributes::Invalid(_)) => false,
    };
    if is_right { Ok(()) } else { Err(wrong()) }
}

/// The request for people: who asks, the key, what for, and every file with its digest.
pub(crate) fn text(request: &SigningRequest) -> String {
    let time = |ms: i64| rfc3339(ms.div_euclid(1000));
    let mut out = format!(
        "request:  {}\nkey:      {}\nasked by: {}\nasked at: {}\nends at:  {}\n",
        request.request_id,
        request.key_id,
        request.requester_arn,
        time(request.created_at.ms),
        time(request.ends_at.ms),
    );
    if let Some(reason) = &request.reason {
        out.push_str(&format!("reason:   {}\n", printable(reason)));
    }
    for file in &request.files {
        out.push_str(&format!(
            "file:     {}\n          {} {}\n          {}{}\n",
            printable(&file.name),
            file.digest_algorithm,
            hex::encode(&file.digest.0),
            file.signing_algorithm,
            match (signing_time(file), file.signed_at) {
                (_, Some(at)) => format!(", signed at {}", time(at.ms)),
                (Some(at), None) => format!(", with the time {}", rfc3339(at)),
                (None, None) => String::new(),
            }
        ));
    }
    if let Some(rule) = &request.new_rule {
        out.push_str(&format!("new rule: {}\n", rule_text(rule)));
    }
    if request.removes_rule {
        out.push_str("new rule: none: the key would sign without approvals\n");
    }
    if let Some(rule) = &request.rule {
        out.push_str(&format!("rule:     {}\n", rule_text(rule)));
    }
    for approval in &request.approvals {
        let at = time(approval.approved_at.ms);
        let counts = if approval.counts { "" } else { ", does not count" };
        let signed = if approval.signature.is_some() { ", signed" } else { "" };
        out.push_str(&format!("approved: {} at {at}{signed}{counts}\n", approval.principal_arn));
    }
    if let Some(denial) = &request.denial {
        let reason = denial.reason.as_deref().map(printable);
        let reason = reason.map(|text| format!(": {text}")).unwrap_or_default();
        out.push_str(&format!(
            "denied:   {} at {}{reason}\n",
            denial.principal_arn,
            time(denial.denied_at.ms)
        ));
    }
    out.push_str(&format!("status:   {}\n", status(request)));
    out
}

/// The status in words.
pub(crate) fn status(request: &SigningRequest) -> String {
    let required = request.rule.as_ref().map(|rule| rule.approvers_required);
    match (request.status.as_str(), required) {
        ("PENDING", Some(required)) => {
            format!("PENDING, {} of {required} approvals", request.approvals_counted)
        }
        (status, _) => status.to_owned(),
    }
}

/// A rule for people.
pub(crate) fn rule_text(rule: &SigningApprovalRule) -> String {
    let names: Vec<_> = rule
        .approvers
        .iter()
        .map(|one| match one.public_key {
            Some(_) => format!("{} (signed)", one.principal_arn),
            None => one.principal_arn.clone(),
        })
        .collect();
    let requester = match rule.requester_may_approve {
        Some(true) => "; the requester counts",
        _ => "",
    };
    format!(
        "{} of {}; for {} minutes{requester}",
        rule.approvers_required,
        names.join(", "),
        rule.valid_for_minutes.unwrap_or_default()
    )
}

/// A request for programs.
pub(crate) fn value(request: &SigningRequest) -> Value {
    let files: Vec<_> = request
        .files
        .iter()
        .map(|file| {
            json!({
                "name": file.name,
                "digest_algorithm": file.digest_algorithm,
                "digest": hex::encode(&file.digest.0),
                "signing_algorithm": file.signing_algorithm,
                "signed": file.signed_at.is_some(),
            })
        })
        .collect();
    let approvals: Vec<_> = request
        .approvals
        .iter()
        .map(|one| json!({ "principal": one.principal_arn, "counts": one.counts }))
        .collect();
    json!({
        "id": request.request_id,
        "digest": request.request_digest,
        "key": request.key_id,
        "requester": request.requester_arn,
        "reason": request.reason,
        "ends": rfc3339(request.ends_at.ms.div_euclid(1000)),
        "status": request.status,
        "approvals_required": request.rule.as_ref().map(|rule| rule.approvers_required),
        "approvals_counted": request.approvals_counted,
        "approvals": approvals,
        "files": files,
        "changes_rule": request.new_rule.is_some() || request.removes_rule,
    })
}

/// The signing time in the message, if it has one.
pub(crate) fn signing_time(file: &SigningRequestFile) -> Option<i64> {
    SignedAttributes::parse(&file.message.0).ok()?.signing_time
}

/// What others have written, without characters that a terminal would obey.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// Where the signature of a file of a request goes.
pub(crate) fn target(name: &str, folder: Option<&Path>) -> PathBuf {
    let file = Path::new(name);
    match (folder, file.file_name()) {
        (Some(folder), Some(name)) => super::signature_path(&folder.join(name)),
        _ => super::signature_path(file),
    }
}
