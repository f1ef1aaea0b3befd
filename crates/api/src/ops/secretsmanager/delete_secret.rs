//! `DeleteSecret`: deletes a secret after a recovery window, or at once.
//!
//! <https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_DeleteSecret.html>

use outlast_domain::identity::action;
use outlast_domain::secrets::{self, Named};

pub use crate::aws::secretsmanager::{
    DeleteSecret, DeleteSecretRequest as Input, DeleteSecretResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::secretsmanager::secret;
use crate::wire::{ApiError, Timestamp};

impl Run for DeleteSecret {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let forced = input.force_delete_without_recovery == Some(true);
        if forced && input.recovery_window_in_days.is_some() {
            return Err(ApiError::new(
                "InvalidParameterException",
                "You can't use ForceDeleteWithoutRecovery in conjunction with RecoveryWindowInDays.",
            ));
        }
        let days = input.recovery_window_in_days.unwrap_or(*secrets::RECOVERY_DAYS.end());
        call.conditions.set(
            "secretsmanager:ForceDeleteWithoutRecovery",
            if forced { "true" } else { "false" },
        );
        call.notes.parameter("forceDeleteWithoutRecovery", forced);
        if !forced {
            call.conditions.set("secretsmanager:RecoveryWindowInDays", days.to_string());
            call.notes.parameter("recoveryWindowInDays", days);
        }
        let now_ms = call.work.now_ms();
        let found = secret(call, action::secretsmanager::DeleteSecret, &input.secret_id);
        // "If you forcibly delete an already deleted or nonexistent secret, the operation does not return
        // ResourceNotFoundException."
        if let Err(error) = &found
            && forced
            && error.code == "ResourceNotFoundException"
        {
            let named = Named::parse(&call.scope, &input.secret_id)?;
            let date = Timestamp::from_ms(now_ms);
            return Ok(Output { arn: named.arn(), name: named.resource, deletion_date: date });
        }
        let (mut secret, allowed) = found?;
        let at_ms = if forced {
            secrets::force_delete(&mut call.work, &secret, &allowed)?;
            now_ms
        } else {
            secrets::delete(&mut call.work, &mut secret, days, &allowed)?;
            secret.erase_ms().unwrap_or(now_ms)
        };
        Ok(Output {
            arn: secret.arn(),
            name: secret.name().to_owned(),
            deletion_date: Timestamp::from_ms(at_ms),
        })
    }
}
