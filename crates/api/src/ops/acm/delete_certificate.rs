//! `DeleteCertificate`: deletes a certificate and its key.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_DeleteCertificate.html>

use outlast_domain::acm::certificate;
use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};

use crate::model::acm::{authorize_certificate, find_certificate};
use crate::ops::{ACM, Call, Empty, Operation, ServiceRow};
use crate::wire::ApiError;

/// The operation.
pub struct DeleteCertificate;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub certificate_arn: String,
}

impl Operation for DeleteCertificate {
    const NAME: &'static str = "DeleteCertificate";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &ACM;
    type Input = Input;
    type Output = Empty;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let certificate = find_certificate(call, &input.certificate_arn)?;
        let allowed = authorize_certificate(call, action::acm::DeleteCertificate, &certificate)?;
        certificate::delete(&mut call.work, &certificate, &allowed)?;
        Ok(Empty {})
    }
}
