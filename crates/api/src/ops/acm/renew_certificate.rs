//! `RenewCertificate`: renews a certificate from a private CA now.
//!
//! <https://docs.aws.amazon.com/acm/latest/APIReference/API_RenewCertificate.html>

use outlast_domain::acm::renew;
use outlast_domain::identity::action;
use serde::{Deserialize, Serialize};

use crate::model::acm::{authorize_certificate, find_certificate};
use crate::ops::{ACM, Call, Empty, Operation, ServiceRow};
use crate::wire::ApiError;

/// The operation.
pub struct RenewCertificate;

/// Request body.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct Input {
    pub certificate_arn: String,
}

impl Operation for RenewCertificate {
    const NAME: &'static str = "RenewCertificate";
    const READ_ONLY: bool = false;
    const SERVICE: &'static ServiceRow = &ACM;
    type Input = Input;
    type Output = Empty;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Empty, ApiError> {
        let certificate = find_certificate(call, &input.certificate_arn)?;
        let allowed = authorize_certificate(call, action::acm::RenewCertificate, &certificate)?;
        renew::renew(&mut call.work, call.ring, certificate, &allowed)?;
        Ok(Empty {})
    }
}
