//! `UpdateCrl`: changes a CRL, such as to a newer one.
//!
//! <https://docs.aws.amazon.com/rolesanywhere/latest/APIReference/API_UpdateCrl.html>

use outlast_domain::identity::action;
use outlast_domain::rolesanywhere::{self, CrlUpdate};

pub use crate::aws::rolesanywhere::{
    CrlDetailResponse as Output, UpdateCrl, UpdateCrlRequest as Input,
};
use crate::call::{Call, Run};
use crate::model::rolesanywhere::{CrlDetail, authorize_tagged, find_crl};
use crate::wire::ApiError;

impl Run for UpdateCrl {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let found = find_crl(call, &input.crl_id)?;
        let action = action::rolesanywhere::UpdateCrl;
        let allowed = authorize_tagged(call, action, &found.arn(), found.tags())?;
        let update = CrlUpdate {
            name: input.name,
            data: input.crl_data.map(|data| data.0),
            alias: input.alias_name,
        };
        let found = rolesanywhere::update_crl(&mut call.work, found, update, &allowed)?;
        Ok(Output { crl: CrlDetail::new(&found)? })
    }
}
