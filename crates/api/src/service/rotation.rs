//! Rotation of secrets: the calls of rotation functions that are due, and their outcomes.

use outlast_domain::Fault;
use outlast_domain::arn::Arn;
use outlast_domain::identity::session::{self, Issued, NewSession};
use outlast_domain::identity::{Entry, IdentityError, Role};
use outlast_domain::secrets::SecretError;
use outlast_domain::secrets::rotation::{self, Call, Outcome};
use outlast_store::StoreError;

use super::Service;
use crate::ops::{SECRETS_MANAGER, STS};

/// Tasks read in one step of the search.
const PAGE: usize = 100;

/// Length of the session of a function, seconds: the shortest that STS has.
const SESSION_SECONDS: i64 = 900;

impl Service {
    /// Takes on up to `room` calls that are due. `lease_ms` is how long a call of a function may take; when it is over,
    /// any server may make the call again.
    ///
    /// # Errors
    /// The store cannot be read. A task that is damaged does not hold up the others.
    pub fn rotation_calls(
        &self,
        now_ms: i64,
        room: usize,
        lease_ms: &dyn Fn(&str) -> i64,
    ) -> Result<Vec<Call>, Fault> {
        let mut calls = Vec::new();
        let mut after = Some(String::new());
        while let Some(from) = after {
            let due = rotation::due(&self.work(now_ms), &from, PAGE)?;
            for record_key in &due.damaged {
                tracing::warn!(record_key, "a rotation cannot be read");
            }
            for record_key in &due.record_keys {
                if calls.len() >= room {
                    return Ok(calls);
                }
                let claimed = self.do_once(&SECRETS_MANAGER, now_ms, |work, swept| {
                    let claimed = rotation::claim(work, record_key, lease_ms).map_err(fault)?;
                    let Some(claimed) = claimed else { return Ok(None) };
                    swept.done.extend(claimed.event);
                    Ok(Some(claimed.call))
                });
                match claimed {
                    Ok(did) => calls.extend(did.value),
                    // Another server took it first.
                    Err(Fault::Store(StoreError::Conflict)) => {}
                    Err(fault) => tracing::warn!(record_key, %fault, "a rotation cannot be begun"),
                }
            }
            after = due.next;
        }
        Ok(calls)
    }

    /// Temporary credentials of the role with which a function runs. Its trust policy must allow `sts:AssumeRole` to
    /// `lambda.amazonaws.com`, as for the role of a function at AWS.
    ///
    /// # Errors
    /// Why there are none, for the log.
    pub fn function_credentials(
        &self,
        role: &str,
        call: &Call,
        now_ms: i64,
    ) -> Result<Issued, String> {
        let arn = Arn::parse(role).filter(|arn| arn.account() == call.scope.account);
        let name = arn.as_ref().and_then(|arn| arn.of("iam", "role/"));
        let (Some(arn), Some(name)) = (&arn, name) else {
            return Err(format!("{role} is not a role of account {}", call.scope.account));
        };
        let refused = std::cell::RefCell::new(String::new());
        let did = self.do_at_last(&STS, now_ms, |work, swept| {
            let role = match Role::find(work, arn.account(), name) {
                Ok(role) => role,
                Err(IdentityError::Fault(fault)) => return Err(fault),
                Err(error) => {
                    *refused.borrow_mut() = error.to_string();
                    return Ok(None);
                }
            };
            let may = session::authorize_function(self.policies(), &role, &call.function, now_ms)?;
            let Some(may) = may else {
                *refused.borrow_mut() = format!(
                    "the trust policy of {} does not allow sts:AssumeRole to lambda.amazonaws.com",
                    role.arn()
                );
                return Ok(None);
            };
            let new = NewSession {
                name: call.token.clone(),
                seconds: SESSION_SECONDS,
                policy: None,
                tags: Default::default(),
                transitive: Default::default(),
                started_by: None,
                source_identity: None,
                managed: Vec::new(),
                certificate: None,
            };
            match session::assume(work, &role, new, &may) {
                Ok(issued) => {
                    swept.done(&call.scope, role.arn(), "AssumeRole");
                    Ok(Some(issued))
                }
                Err(session::AssumeError::Fault(fault)) => Err(fault),
                Err(error) => {
                    *refused.borrow_mut() = error.to_string();
                    Ok(None)
                }
            }
        });
        match did {
            Ok(did) => did.value.ok_or_else(|| refused.into_inner()),
            Err(fault) => Err(fault.to_string()),
        }
    }

    /// Records the outcome of a call.
    pub fn rotation_outcome(
        &self,
        call: &Call,
        outcome: &Outcome,
        now_ms: i64,
    ) -> Result<(), Fault> {
        let (step, function, secret) = (call.step.name(), &call.function, &call.secret_arn);
        if let Outcome::Failed(reason) = outcome {
            tracing::warn!(secret, function, step, reason, "a rotation function failed");
        }
        let did = self.do_at_last(&SECRETS_MANAGER, now_ms, |work, swept| {
            swept.done.extend(rotation::complete(work, call, outcome).map_err(fault)?);
            Ok(())
        })?;
        for done in &did.swept.done {
            tracing::info!(secret, event = done.event, "a rotation has ended");
        }
        Ok(())
    }
}

/// What a rotation stored is valid, so that anything else than a fault is damage.
fn fault(error: SecretError) -> Fault {
    match error {
        SecretError::Fault(fault) => fault,
        other => Fault::Damaged(other.to_string()),
    }
}
