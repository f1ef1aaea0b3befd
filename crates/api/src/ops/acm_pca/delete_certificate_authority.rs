//! `DeleteCertificateAuthority`: deletes a CA that is not active; it can be restored for some days.
//!
//! <https://docs.aws.amazon.com/privateca/latest/APIReference/API_DeleteCertificateAuthority.html>

use outlast_domain::ca;
use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::model::acm_pca::find_authority;
use crate::ops::{ACM_PCA, Call, Empty, Operation, ServiceRow};
use crate::wire::ApiError;

/// The operation.
pub struct DeleteCertificateAuthority;

/// Request body.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub certificate_authority_arn: String,
    pub permanent_deletion_time_in_days: Option<i64>,
}

impl Operation for DeleteCertificateAuthority {
    const NAME: &'static str = "DeleteCertificateAuthority";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &ACM_PCA;
    type Input = Input;
    type Output = Empty;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let days = input.permanent_deletion_time_in_days.unwrap_or(30);
        let authority = find_authority(call, &input.certificate_authority_arn)?;
        call.notes.parameter("permanentDeletionTimeInDays", days);
        let action = action::acm_pca::DeleteCertificateAuthority;
        let allowed = call.authorize_authority(action, &authority)?;
        ca::delete(&mut call.work, authority, days, &allowed)?;
        Ok(Empty {})
    }
}
