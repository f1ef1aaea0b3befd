//! `CreateGrant`: lets a principal use a key, in addition to the key's policy.
//!
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_CreateGrant.html>

use outlast_domain::identity::action;
use outlast_domain::kms;
use outlast_domain::kms::GRANT_OPERATIONS;

pub use crate::aws::kms::{
    CreateGrant, CreateGrantRequest as Input, CreateGrantResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::kms::{dry_run, grant_tokens, key_by_id};
use crate::wire::{ApiError, validate};

impl Run for CreateGrant {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        grant_tokens(call, input.grant_tokens);
        validate::length("Operations", input.operations.len(), 1, GRANT_OPERATIONS.len())?;
        let constraints = input.constraints.unwrap_or_default();
        let grantee = principal(call, "GranteePrincipal", input.grantee_principal)?;
        let retiring = principal(call, "RetiringPrincipal", input.retiring_principal)?;
        call.notes.parameter("operations", input.operations.clone());
        call.conditions.set_many("kms:GrantOperations", input.operations.clone());
        if constraints.encryption_context_equals.is_some() {
            call.conditions.set("kms:GrantConstraintType", "EncryptionContextEquals");
        } else if constraints.encryption_context_subset.is_some() {
            call.conditions.set("kms:GrantConstraintType", "EncryptionContextSubset");
        }
        call.conditions.set("kms:GrantIsForAWSResource", "false");
        let key = key_by_id(call, &input.key_id)?;
        // Policies see the context that the grant is bound to.
        let context = constraints
            .encryption_context_equals
            .as_ref()
            .or(constraints.encryption_context_subset.as_ref());
        let allowed = call.authorize_key(action::kms::CreateGrant, &key, context)?;
        let new = kms::NewGrant {
            name: input.name,
            grantee,
            grantee_service: input.grantee_service_principal,
            retiring,
            retiring_service: input.retiring_service_principal,
            operations: input.operations.into_iter().collect(),
            constraints: kms::Constraints {
                subset: constraints.encryption_context_subset,
                equals: constraints.encryption_context_equals,
                source_arn: constraints.source_arn,
            },
        };
        let (work, access) = call.split();
        let grant = kms::create_grant(work, access, &key, new, &allowed)?;
        dry_run(input.dry_run)?;
        call.notes.response("grantId", grant.id.as_str());
        Ok(Output { grant_token: grant.token(), grant_id: grant.id })
    }
}

/// Reads the ARN of a principal, notes it for the audit record, and sets its condition key.
fn principal(
    call: &mut Call<'_>,
    member: &str,
    given: Option<String>,
) -> Result<Option<String>, ApiError> {
    let Some(given) = given else { return Ok(None) };
    call.notes.parameter(&validate::member_name(member), given.as_str());
    let arn = kms::principal_of(member, &given)?;
    call.conditions.set(&format!("kms:{member}"), arn.as_str());
    Ok(Some(arn))
}
