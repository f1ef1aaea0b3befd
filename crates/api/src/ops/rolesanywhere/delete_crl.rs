//! `DeleteCrl`: deletes a CRL.
//!
//! <https://docs.aws.amazon.com/rolesanywhere/latest/APIReference/API_DeleteCrl.html>

use outlast_domain::identity::action;
use outlast_domain::rolesanywhere;

pub use crate::aws::rolesanywhere::{
    CrlDetailResponse as Output, DeleteCrl, ScalarCrlRequest as Input,
};
use crate::call::{Call, Run};
use crate::model::rolesanywhere::{CrlDetail, authorize_tagged, find_crl};
use crate::wire::ApiError;

impl Run for DeleteCrl {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let found = find_crl(call, &input.crl_id)?;
        let action = action::rolesanywhere::DeleteCrl;
        let allowed = authorize_tagged(call, action, &found.arn(), found.tags())?;
        let found = rolesanywhere::delete_crl(&mut call.work, found, &allowed)?;
        Ok(Output { crl: CrlDetail::new(&found)? })
    }
}
