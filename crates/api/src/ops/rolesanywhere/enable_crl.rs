//! `EnableCrl`: enables a CRL.
//!
//! <https://docs.aws.amazon.com/rolesanywhere/latest/APIReference/API_EnableCrl.html>

use outlast_domain::identity::action;
use outlast_domain::rolesanywhere;

pub use crate::aws::rolesanywhere::{
    CrlDetailResponse as Output, EnableCrl, ScalarCrlRequest as Input,
};
use crate::call::{Call, Run};
use crate::model::rolesanywhere::{CrlDetail, authorize_tagged, find_crl};
use crate::wire::ApiError;

impl Run for EnableCrl {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let found = find_crl(call, &input.crl_id)?;
        let action = action::rolesanywhere::EnableCrl;
        let allowed = authorize_tagged(call, action, &found.arn(), found.tags())?;
        let found = rolesanywhere::set_crl_enabled(&mut call.work, found, true, &allowed)?;
        Ok(Output { crl: CrlDetail::new(&found)? })
    }
}
