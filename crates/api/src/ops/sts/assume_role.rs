//! `AssumeRole`: starts a session of a role.
//!
//! <https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html>

use std::collections::{BTreeMap, BTreeSet};

use outlast_domain::arn::{Arn, assumed_role, shown_in};
use outlast_domain::identity::action::{self, Action};
use outlast_domain::identity::directory::is_name;
use outlast_domain::identity::session::{self, NewSession};
use outlast_domain::identity::{Caller, Entry, Identity, IdentityError, Permit, Role};
use outlast_domain::limits::MAX_CHAINED_SESSION_SECONDS;
use outlast_domain::policy::{Kind, Policy};

pub use crate::aws::sts::{
    AssumeRole, AssumeRoleRequest as Input, AssumeRoleResponse as Output, AssumedRoleUser,
    Credentials, Tag,
};
use crate::call::{Call, Run};
use crate::wire::{ApiError, Timestamp, validate};

impl Run for AssumeRole {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        if !is_name(&input.role_session_name) {
            return Err(ApiError::validation(
                "RoleSessionName may contain only letters, digits and +=,.@_-.",
            ));
        }
        call.notes.parameter("roleArn", input.role_arn.as_str());
        call.notes.parameter("roleSessionName", input.role_session_name.as_str());
        if let Some(text) = &input.policy {
            validate::length("Policy", text.chars().count(), 1, 2048)?;
            let policy = Policy::parse(text, Kind::Identity).map_err(|error| {
                ApiError::new("MalformedPolicyDocumentException", error.to_string())
            })?;
            call.notes.policy_findings(&policy);
        }
        let given = input.tags.unwrap_or_default();
        let (tags, transitive) =
            session_tags(call, given, input.transitive_tag_keys.unwrap_or_default())?;
        conditions(
            call,
            &input.role_session_name,
            input.external_id.as_deref(),
            input.source_identity.as_deref(),
        )?;
        // Authorizes the attributes that the session will have, whether given or inherited.
        let source_identity = source_identity(&call.caller, input.source_identity)?;
        if let Some(name) = &source_identity {
            call.conditions.set("sts:SourceIdentity", name.as_str());
        }
        crate::model::kms::request_tags(call, &tags);
        if !transitive.is_empty() {
            let names = transitive.iter().cloned().collect();
            call.conditions.set_many("sts:TransitiveTagKeys", names);
        }
        let role = role(call, &input.role_arn)?;
        let mut may = session::MayAssume {
            role: authorize(call, action::sts::AssumeRole, &role)?,
            tags: None,
            source_identity: None,
        };
        // Other policies rely on tags and the source identity, so setting them takes a permission of its own.
        if !tags.is_empty() {
            may.tags = Some(authorize(call, action::sts::TagSession, &role)?);
        }
        if source_identity.is_some() {
            may.source_identity = Some(authorize(call, action::sts::SetSourceIdentity, &role)?);
        }
        let is_chained = matches!(call.caller.principal.identity, Identity::Session { .. });
        let seconds = seconds(input.duration_seconds, role.max_session_seconds, is_chained)?;
        call.notes.parameter("durationSeconds", seconds);
        let new = NewSession {
            name: input.role_session_name,
            seconds,
            policy: input.policy,
            tags,
            transitive,
            source_identity: source_identity.clone(),
            started_by: Some(call.caller.origin().to_owned()),
            managed: Vec::new(),
            // What ends with a certificate cannot be prolonged by another session.
            certificate: call.certificate.clone(),
        };
        let name = new.name.clone();
        let issued = session::assume(&mut call.work, &role, new, &may)?;
        call.notes.response("accessKeyId", issued.access_key_id.as_str());
        let text =
            |secret: &outlast_crypto::Secret| String::from_utf8_lossy(secret.expose()).into_owned();
        Ok(Output {
            credentials: Credentials {
                access_key_id: issued.access_key_id,
                secret_access_key: text(&issued.secret),
                session_token: text(&issued.token),
                // In whole seconds, as the answer writes it.
                expiration: Timestamp::from_seconds(issued.expires_ms.div_euclid(1000)),
            },
            assumed_role_user: AssumedRoleUser {
                assumed_role_id: format!("{}:{name}", role.id),
                arn: shown_in(&call.scope.region, &assumed_role(&role.account, &role.name, &name)),
            },
            source_identity,
        })
    }
}

fn authorize<A: Action>(call: &Call<'_>, action: A, role: &Role) -> Result<Permit<A>, ApiError> {
    let (caller, conditions) = (&call.caller, &call.conditions);
    session::authorize_assume(caller, conditions, call.policies, action, role)
        .map_err(|error| unexplained(error, &call.scope.account, role))
}

/// Finds the role. A role that does not exist gets the same error as one that must not be assumed.
fn role(call: &mut Call<'_>, text: &str) -> Result<Role, ApiError> {
    let arn = Arn::principal(text);
    let name = arn.as_ref().and_then(|arn| Some((arn, arn.of("iam", "role/")?)));
    let Some((arn, name)) = name else {
        return Err(ApiError::validation("RoleArn is not the ARN of a role."));
    };
    match Role::find(&mut call.work, arn.account(), name) {
        Ok(role) => Ok(role),
        Err(IdentityError::Fault(fault)) => Err(fault.into()),
        Err(_) => Err(refusal(&call.caller.principal.arn(), "sts:AssumeRole", &arn.to_string())),
    }
}

/// The refusal, which gives no reason.
fn refusal(principal: &str, action: &str, role: &str) -> ApiError {
    ApiError::new(
        "AccessDeniedException",
        format!("User: {principal} is not authorized to perform: {action} on resource: {role}"),
    )
}

/// A reason would tell callers whether another account has a role of this name.
fn unexplained(error: session::AssumeError, account: &str, role: &Role) -> ApiError {
    match error {
        session::AssumeError::Denied(denied) if role.account != account => {
            refusal(&denied.principal, &denied.action, &denied.resource)
        }
        other => other.into(),
    }
}

fn conditions(
    call: &mut Call<'_>,
    session: &str,
    external_id: Option<&str>,
    source_identity: Option<&str>,
) -> Result<(), ApiError> {
    call.conditions.set("sts:RoleSessionName", session);
    if let Some(id) = external_id {
        call.conditions.set("sts:ExternalId", id);
    }
    if let Some(name) = source_identity {
        call.notes.parameter("sourceIdentity", name);
        call.conditions.set("sts:SourceIdentity", name);
    }
    Ok(())
}

/// The source identity of the new session: once set, it stays the same in every session that follows.
fn source_identity(caller: &Caller, given: Option<String>) -> Result<Option<String>, ApiError> {
    match (&caller.source_identity, given) {
        (Some(known), Some(given)) if *known != given => Err(ApiError::new(
            "AccessDeniedException",
            "The calling session has a source identity, and the new session cannot have another one.",
        )),
        (known, given) => Ok(given.or_else(|| known.clone())),
    }
}

/// The tags of the new session and the names of those that are transitive, including the tags that the caller's
/// session inherited.
fn session_tags(
    call: &mut Call<'_>,
    list: Vec<Tag>,
    transitive: Vec<String>,
) -> Result<(BTreeMap<String, String>, BTreeSet<String>), ApiError> {
    let pairs = list.into_iter().map(|tag| (tag.key, tag.value));
    let mut tags = crate::model::unique_tags(pairs, "ValidationException")?;
    crate::model::kms::request_tags(call, &tags);
    let mut transitive: BTreeSet<_> = transitive.into_iter().collect();
    if !transitive.iter().all(|name| tags.contains_key(name)) {
        return Err(ApiError::validation(
            "The specified transitive tag key must be included in the requested tags.",
        ));
    }
    if !transitive.is_empty() {
        let names = transitive.iter().cloned().collect();
        call.conditions.set_many("sts:TransitiveTagKeys", names);
    }
    for (name, value) in &call.caller.transitive_tags {
        if tags.keys().any(|given| given.eq_ignore_ascii_case(name)) {
            return Err(ApiError::validation(
                "One of the specified tag keys is already a transitive tag of the calling session.",
            ));
        }
        tags.insert(name.clone(), value.clone());
        transitive.insert(name.clone());
    }
    Ok((tags, transitive))
}

fn seconds(given: Option<i64>, max: i64, is_chained: bool) -> Result<i64, ApiError> {
    match given {
        None => Ok(3600),
        Some(seconds) if is_chained && seconds > MAX_CHAINED_SESSION_SECONDS => {
            Err(ApiError::validation(
                "The requested DurationSeconds exceeds the 1 hour session limit for roles assumed by \
                 role chaining.",
            ))
        }
        Some(seconds) if seconds <= max => Ok(seconds),
        Some(_) => Err(ApiError::validation(
            "The requested DurationSeconds exceeds the MaxSessionDuration set for this role.",
        )),
    }
}
