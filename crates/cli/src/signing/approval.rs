//! Requests for approval, from the side of those who ask and those who approve: what is to be signed, and whether what the
//! server shows is consistent.

use std::path::{Path, PathBuf};

use outlast_api::aws::outlast::{
    SigningApprovalRule, SigningApprover, SigningRequest, SigningRequestFile, SigningRequestKey,
};
use outlast_api::ops::outlast::get_signing_request;
use outlast_crypto::digests::{Digest, sha256};
use outlast_domain::kms::approval::{Approver, Rule, StatedFile, Statement, is_deceptive};
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
    check_lines(request)?;
    let lines: Vec<String> = match (&request.new_rule, request.removes_rule) {
        (Some(rule), _) => vec![Statement::rule(Some(&stated_rule(rule)))],
        (None, true) => vec![Statement::rule(None)],
        (None, false) => {
            for file in &request.files {
                check(file)?;
            }
            check_together(request)?;
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

/// Checks what is shown as it is: with a control character it could look like something else on a terminal.
fn check_lines(request: &SigningRequest) -> Result<(), Failure> {
    let others = request.other_keys.iter().flatten();
    let rules = request.rule.iter().chain(&request.new_rule);
    let rules = rules.chain(others.clone().filter_map(|other| other.rule.as_ref()));
    let approvers = rules.flat_map(|rule| &rule.approvers).map(|one| &one.principal_arn);
    let files = request.files.iter().flat_map(|file| {
        [Some(&file.digest_algorithm), Some(&file.signing_algorithm), file.key_id.as_ref()]
    });
    let approvals = request.approvals.iter().map(|one| &one.principal_arn);
    let denial = request.denial.iter().map(|one| &one.principal_arn);
    let all = [&request.request_id, &request.request_arn, &request.key_id, &request.requester_arn]
        .into_iter()
        .chain([&request.status])
        .chain(others.map(|other| &other.key_id))
        .chain(approvers)
        .chain(files.flatten())
        .chain(approvals)
        .chain(denial);
    for text in all {
        if text.chars().any(is_deceptive) {
            return Err(Failure::new(format!(
                "the server's request has control characters: {:?}",
                printable(text)
            ))
            .hint("do not approve it; tell the operator of the server"));
        }
    }
    Ok(())
}

fn stated(file: &SigningRequestFile) -> StatedFile<'_> {
    StatedFile {
        name: &file.name,
        digest_algorithm: &file.digest_algorithm,
        digest: &file.digest.0,
        key: file.key_id.as_deref(),
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

/// Checks that each key signs the same files: what is shown for one file must not be for two.
fn check_together(request: &SigningRequest) -> Result<(), Failure> {
    let keys = keys(request);
    if keys.len() < 2 {
        return Ok(());
    }
    let wrong = |name: &str, why: &str| {
        Err(Failure::new(format!("the request's keys do not sign the same files: {name:?} {why}"))
            .hint("do not approve it; deny it: outlast sign deny"))
    };
    for file in &request.files {
        let same = || request.files.iter().filter(|one| one.name == file.name);
        if keys.iter().any(|key| !same().any(|one| signed_by(request, one) == *key)) {
            return wrong(&file.name, "is not there for each key");
        }
        let differs = |one: &SigningRequestFile| {
            one.digest_algorithm == file.digest_algorithm && one.digest.0 != file.digest.0
        };
        if same().any(differs) {
            return wrong(&file.name, "has two digests");
        }
    }
    Ok(())
}

/// ARNs of the keys, the first one first.
pub(crate) fn keys(request: &SigningRequest) -> Vec<&str> {
    let mut all = vec![request.key_id.as_str()];
    for file in &request.files {
        let key = signed_by(request, file);
        if !all.contains(&key) {
            all.push(key);
        }
    }
    all
}

/// ARN of the key that is to sign a file.
pub(crate) fn signed_by<'a>(request: &'a SigningRequest, file: &'a SigningRequestFile) -> &'a str {
    file.key_id.as_deref().unwrap_or(&request.key_id)
}

/// What a request is to sign for each file: the file's name with its entries, in their order.
pub(crate) fn by_name(request: &SigningRequest) -> Vec<(&str, Vec<&SigningRequestFile>)> {
    let mut out: Vec<(&str, Vec<&SigningRequestFile>)> = Vec::new();
    for file in &request.files {
        match out.iter_mut().find(|(name, _)| *name == file.name) {
            Some((_, entries)) => entries.push(file),
            None => out.push((&file.name, vec![file])),
        }
    }
    out
}

/// The request for people: who asks, the key, what for, and every file with its digest.
pub(crate) fn text(request: &SigningRequest) -> String {
    let time = |ms: i64| rfc3339(ms.div_euclid(1000));
    let keys = keys(request);
    let others = request.other_keys.as_deref().unwrap_or_default();
    let mut out = format!(
        "request:  {}\nkey:      {}\nasked by: {}\nasked at: {}\nends at:  {}\n",
        request.request_id,
        keys.join(", together with\n          "),
        request.requester_arn,
        time(request.created_at.ms),
        time(request.ends_at.ms),
    );
    if let Some(reason) = &request.reason {
        out.push_str(&format!("reason:   {}\n", printable(reason)));
    }
    for file in &request.files {
        let by = match &keys[..] {
            [_] => String::new(),
            _ => format!(" by {}{}", signed_by(request, file), company(file)),
        };
        out.push_str(&format!(
            "file:     {}\n          {} {}\n          {}{by}{}\n",
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
    if let (Some(old), Some(new)) = (&request.rule, &request.new_rule) {
        for change in changes(old, new) {
            out.push_str(&format!("change:   {change}\n"));
        }
    }
    for other in others {
        let rule = other.rule.as_ref().map_or_else(|| "none".to_owned(), rule_text);
        out.push_str(&format!("rule:     of {}: {rule}\n", other.key_id));
    }
    for approval in &request.approvals {
        let at = time(approval.approved_at.ms);
        let counts = match (&approval.counts_for, approval.counts) {
            (_, false) => ", does not count".to_owned(),
            (Some(some), true) if some.len() < keys.len() => {
                format!(", counts for {}", some.join(", "))
            }
            (_, true) => String::new(),
        };
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
        ("PENDING", Some(required)) => format!(
            "PENDING, {} of {required} approvals{}",
            request.approvals_counted,
            of_others(request.other_keys.as_deref())
        ),
        (status, _) => status.to_owned(),
    }
}

/// The approvals by the rules of the other keys, if there are some.
pub(crate) fn of_others(others: Option<&[SigningRequestKey]>) -> String {
    let one = |key: &SigningRequestKey| {
        let required = key.approvers_required.map_or_else(|| "-".into(), |count| count.to_string());
        format!(", {} of {required} for {}", key.approvals_counted, key.key_id)
    };
    others.unwrap_or_default().iter().map(one).collect()
}

/// The same for programs.
pub(crate) fn others_value(others: Option<&[SigningRequestKey]>) -> Value {
    let one = |key: &SigningRequestKey| {
        json!({
            "key": key.key_id,
            "approvals_required": key.approvers_required,
            "approvals_counted": key.approvals_counted,
        })
    };
    others.unwrap_or_default().iter().map(one).collect()
}

/// Whether a signature of a request for several keys belongs to the others, or stands alone.
fn company(file: &SigningRequestFile) -> &'static str {
    match SignedAttributes::parse(&file.message.0) {
        Ok(signed) if signed.is_joint => ", together",
        _ => ", alone",
    }
}

/// A rule for people.
pub(crate) fn rule_text(rule: &SigningApprovalRule) -> String {
    let names: Vec<_> = rule
        .approvers
        .iter()
        .map(|one| match one.public_key {
            Some(_) => format!("{} (signed by the key {})", one.principal_arn, key_text(one)),
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

/// An approver's public key for people: the SHA-256 of its SubjectPublicKeyInfo in DER.
fn key_text(approver: &SigningApprover) -> String {
    let key = approver.public_key.as_ref();
    key.map_or_else(|| "none".to_owned(), |key| format!("sha256:{}", hex::encode(sha256(&key.0))))
}

/// What a new rule changes, for people: two rules can look alike and differ in a key.
fn changes(old: &SigningApprovalRule, new: &SigningApprovalRule) -> Vec<String> {
    let mut out = Vec::new();
    let mut number = |what: &str, old: String, new: String| {
        if old != new {
            out.push(format!("{what}: {old} becomes {new}"));
        }
    };
    number("approvals", old.approvers_required.to_string(), new.approvers_required.to_string());
    let minutes =
        |rule: &SigningApprovalRule| rule.valid_for_minutes.unwrap_or_default().to_string();
    number("minutes", minutes(old), minutes(new));
    let requester = |rule: &SigningApprovalRule| match rule.requester_may_approve {
        Some(true) => "counts".to_owned(),
        _ => "does not count".to_owned(),
    };
    number("the requester", requester(old), requester(new));
    let find = |rule: &SigningApprovalRule, arn: &str| {
        rule.approvers.iter().find(|one| one.principal_arn == arn).map(key_text)
    };
    for one in &new.approvers {
        match find(old, &one.principal_arn) {
            None => out.push(format!(
                "{} becomes an approver, key: {}",
                one.principal_arn,
                key_text(one)
            )),
            Some(key) if key != key_text(one) => {
                out.push(format!("{}, key: {key} becomes {}", one.principal_arn, key_text(one)));
            }
            Some(_) => {}
        }
    }
    for one in &old.approvers {
        if find(new, &one.principal_arn).is_none() {
            out.push(format!("{} is no approver any more", one.principal_arn));
        }
    }
    out
}

/// A rule for programs.
fn rule_value(rule: &SigningApprovalRule) -> Value {
    let approvers: Vec<_> = rule
        .approvers
        .iter()
        .map(|one| {
            let key = one.public_key.as_ref().map(|_| key_text(one));
            json!({ "principal": one.principal_arn, "public_key": key })
        })
        .collect();
    json!({
        "approvals_required": rule.approvers_required,
        "approvers": approvers,
        "valid_for_minutes": rule.valid_for_minutes,
        "requester_may_approve": rule.requester_may_approve,
    })
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
                "key": signed_by(request, file),
                "signing_algorithm": file.signing_algorithm,
                "signed": file.signed_at.is_some(),
            })
        })
        .collect();
    let approvals: Vec<_> = request
        .approvals
        .iter()
        .map(|one| json!({ "principal": one.principal_arn, "counts": one.counts, "counts_for": one.counts_for }))
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
        "other_keys": others_value(request.other_keys.as_deref()),
        "approvals": approvals,
        "files": files,
        "rule": request.rule.as_ref().map(rule_value),
        "new_rule": request.new_rule.as_ref().map(rule_value),
        "changes_rule": request.new_rule.is_some() || request.removes_rule,
    })
}

/// The signing time in the message, if it has one.
pub(crate) fn signing_time(file: &SigningRequestFile) -> Option<i64> {
    SignedAttributes::parse(&file.message.0).ok()?.signing_time
}

/// What others have written, without characters that a terminal would obey, or that make a text look like another one.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if is_deceptive(c) { '\u{fffd}' } else { c }).collect()
}

/// Where the signature of a file of a request goes.
pub(crate) fn target(name: &str, folder: Option<&Path>) -> PathBuf {
    let file = Path::new(name);
    match (folder, file.file_name()) {
        (Some(folder), Some(name)) => super::signature_path(&folder.join(name)),
        _ => super::signature_path(file),
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine;

    use super::*;

    /// A request for two keys, as a server shows it.
    fn shown() -> Value {
        let b64 = |bytes: &[u8]| base64::engine::general_purpose::STANDARD.encode(bytes);
        let file = |digest: &str, algorithm: &str| {
            let sum = Digest::by_name(digest).map(|row| row.digest(b"content"));
            json!({
                "Name": "app", "DigestAlgorithm": digest, "Digest": b64(&sum.unwrap_or_default()),
                "SigningAlgorithm": algorithm, "Message": b64(b"content"),
            })
        };
        let mut second = file("sha384", "ECDSA_SHA_384");
        second["KeyId"] = json!("arn:second");
        let text = "outlast signing request, version 1\nrequest arn:request\nkey arn:first\nrequester arn:rita\n\
                    expires 2000\nreason \"why\"\n";
        let line = |digest: &str, algorithm: &str, more: &str| {
            let sum = Digest::by_name(digest).map(|row| row.digest(b"content"));
            let message = hex::encode(sha256(b"content"));
            let sum = hex::encode(sum.unwrap_or_default());
            format!("sign {algorithm} sha256:{message} as \"app\" {digest}:{sum}{more}\n")
        };
        let text = format!(
            "{text}{}{}",
            line("sha512", "ML_DSA_SHAKE_256", ""),
            line("sha384", "ECDSA_SHA_384", " with arn:second")
        );
        json!({
            "RequestId": "id", "RequestArn": "arn:request", "KeyId": "arn:first",
            "RequestDigest": hex::encode(sha256(text.as_bytes())),
            "RequesterArn": "arn:rita", "Reason": "why", "CreatedAt": 1000, "ExpiresAt": 2000,
            "EndsAt": 2000, "Status": "PENDING", "ApprovalsCounted": 0, "Approvals": [],
            "Files": [file("sha512", "ML_DSA_SHAKE_256"), second], "RemovesRule": false,
        })
    }

    fn judged(value: Value) -> Result<String, Failure> {
        digest(&serde_json::from_value(value).expect("a request"))
    }

    /// Each part of what an approver sees, changed by a server that wants an approval of something else.
    #[test]
    fn a_server_that_shows_something_else_gets_no_approval() {
        assert!(judged(shown()).is_ok_and(|digest| digest == shown()["RequestDigest"]));
        let other = json!("YW5vdGhlcg==");
        for (member, value) in [
            ("/RequestArn", json!("arn:other")),
            ("/KeyId", json!("arn:other")),
            ("/RequesterArn", json!("arn:other")),
            ("/Reason", json!("other")),
            ("/Reason", json!("why\"\nkey arn:other")),
            ("/ExpiresAt", json!(3000)),
            ("/RemovesRule", json!(true)),
            ("/Files/0/Name", json!("other")),
            ("/Files/0/Digest", other.clone()),
            ("/Files/0/Message", other.clone()),
            ("/Files/0/DigestAlgorithm", json!("sha3-512")),
            ("/Files/0/SigningAlgorithm", json!("ECDSA_SHA_512")),
            ("/Files/1/Message", other),
            ("/Files/1/KeyId", json!("arn:other")),
            ("/Files/1/KeyId", Value::Null),
            ("/Files/1/SigningAlgorithm", json!("ECDSA_SHA_384\u{1b}[2J")),
            ("/Files", json!([])),
            ("/RequestId", json!("id\u{1b}[A")),
            ("/Status", json!("PENDING\nrule: none")),
        ] {
            let mut changed = shown();
            if let Some(place) = changed.pointer_mut(member) {
                *place = value.clone();
            }
            assert_ne!(changed, shown(), "{member}");
            assert!(judged(changed).is_err(), "{member} {value}");
        }
        let mut swapped = shown();
        if let Some(files) = swapped["Files"].as_array_mut() {
            files.reverse();
        }
        assert!(judged(swapped).is_err());
    }

    #[test]
    fn what_others_have_written_moves_nothing_on_a_terminal() {
        let mut request = shown();
        request["Reason"] = json!("\u{1b}[2Jnothing\r\nstatus:   APPROVED");
        request["Files"][0]["Name"] = json!("app\u{9b}1A");
        let request = serde_json::from_value(request).expect("a request");
        let shown = text(&request);
        let is_control = |c: char| c.is_control() && c != '\n';
        assert!(!shown.contains(is_control) && !shown.contains("\nstatus:   APPROVED"), "{shown}");
    }

    /// The same approvers with another key: nothing else shows whose signature would count.
    #[test]
    fn a_new_rule_shows_whose_keys_it_names() {
        let b64 = |bytes: &[u8]| base64::engine::general_purpose::STANDARD.encode(bytes);
        let rule = |key: &[u8], required: u8| {
            json!({
                "ApproversRequired": required, "ValidForMinutes": 60,
                "Approvers": [
                    { "PrincipalArn": "arn:alice", "PublicKey": b64(key) },
                    { "PrincipalArn": "arn:bob" },
                ],
            })
        };
        let mut request = shown();
        request["Files"] = json!([]);
        request["Rule"] = rule(b"alice's", 2);
        request["NewRule"] = rule(b"a thief's", 2);
        let request: SigningRequest = serde_json::from_value(request).expect("a request");
        let [own, other] = [&b"alice's"[..], b"a thief's"]
            .map(|key| format!("sha256:{}", hex::encode(sha256(key))));
        let shown = text(&request);
        for words in [
            format!("new rule: 2 of arn:alice (signed by the key {other}), arn:bob;"),
            format!("rule:     2 of arn:alice (signed by the key {own}), arn:bob;"),
            format!("change:   arn:alice, key: {own} becomes {other}\n"),
        ] {
            assert!(shown.contains(&words), "{words}: {shown}");
        }
        assert_eq!(shown.matches("change: ").count(), 1, "{shown}");
        let value = value(&request);
        assert_eq!(value["rule"]["approvers"][0]["public_key"], own.as_str());
        assert_eq!(value["new_rule"]["approvers"][0]["public_key"], other.as_str());
        assert_eq!(value["new_rule"]["approvers"][1]["public_key"], Value::Null);
        let parsed = |value: Value| serde_json::from_value(value).expect("a rule");
        let mut less = rule(b"alice's", 1);
        less["Approvers"][1]["PrincipalArn"] = json!("arn:mallory");
        assert_eq!(
            changes(&parsed(rule(b"alice's", 2)), &parsed(less)),
            [
                "approvals: 2 becomes 1",
                "arn:mallory becomes an approver, key: none",
                "arn:bob is no approver any more",
            ]
        );
    }

    /// The name "app-\u{202e}fdp.exe" is shown as if it ended in ".pdf".
    #[test]
    fn what_others_have_written_looks_like_nothing_else() {
        let mut request = shown();
        request["Reason"] = json!("app-\u{202e}fdp.exe\u{200b}\u{2066}\u{feff}");
        let request = serde_json::from_value(request).expect("a request");
        assert!(text(&request).contains("app-\u{fffd}fdp.exe\u{fffd}\u{fffd}\u{fffd}\n"));
    }
}
