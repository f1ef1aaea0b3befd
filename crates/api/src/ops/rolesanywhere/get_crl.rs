//! `GetCrl`: describes a CRL.
//!
//! <https://docs.aws.amazon.com/rolesanywhere/latest/APIReference/API_GetCrl.html>

use outlast_domain::identity::action;

pub use crate::aws::rolesanywhere::{
    CrlDetailResponse as Output, GetCrl, ScalarCrlRequest as Input,
};
use crate::call::{Call, Run};
use crate::model::rolesanywhere::{CrlDetail, authorize_tagged, find_crl};
use crate::wire::ApiError;

impl Run for GetCrl {
    const READ_ONLY: bool = true;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let found = find_crl(call, &input.crl_id)?;
        let action = action::rolesanywhere::GetCrl;
        let _ = authorize_tagged(call, action, &found.arn(), found.tags())?;
        Ok(Output { crl: CrlDetail::new(&found)? })
    }
}
