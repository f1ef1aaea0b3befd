//! `ImportCrl`: imports a CRL for a trust anchor: certificates that it lists do not authenticate any more.
//!
//! <https://docs.aws.amazon.com/rolesanywhere/latest/APIReference/API_ImportCrl.html>

use outlast_domain::identity::action;
use outlast_domain::rolesanywhere::{self, CRL, NewCrl};

pub use crate::aws::rolesanywhere::{
    CrlDetailResponse as Output, ImportCrl, ImportCrlRequest as Input,
};
use crate::call::{Call, Run};
use crate::model::rolesanywhere::{CrlDetail, authorize_new, find_trust_anchor, new_tags};
use crate::wire::ApiError;

impl Run for ImportCrl {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        call.notes.parameter("name", input.name.as_str());
        let tags = new_tags(call, input.tags)?;
        let allowed = authorize_new(call, action::rolesanywhere::ImportCrl, &CRL, &tags)?;
        // AWS's model has no ResourceNotFoundException here.
        let anchor = find_trust_anchor(call, &input.trust_anchor_arn).map_err(|error| {
            if error.code == "ResourceNotFoundException" {
                ApiError::new("ValidationException", error.message)
            } else {
                error
            }
        })?;
        let new = NewCrl {
            name: input.name,
            data: input.crl_data.0,
            enabled: input.enabled.unwrap_or_default(),
            tags,
            alias: input.alias_name,
        };
        let made = rolesanywhere::import_crl(&mut call.work, anchor, new, &allowed)?;
        call.notes.resource(made.arn(), CRL.cloudtrail);
        call.notes.response("crlArn", made.arn());
        Ok(Output { crl: CrlDetail::new(&made)? })
    }
}
