//! `ResetNotificationSettings`: puts notification settings back to the default.
//!
//! <https://docs.aws.amazon.com/rolesanywhere/latest/APIReference/API_ResetNotificationSettings.html>

use outlast_domain::identity::action;
use outlast_domain::rolesanywhere;

pub use crate::aws::rolesanywhere::{
    ResetNotificationSettings, ResetNotificationSettingsRequest as Input,
    ResetNotificationSettingsResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::rolesanywhere::{authorize_tagged, find_trust_anchor};
use crate::wire::ApiError;

impl Run for ResetNotificationSettings {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let found = find_trust_anchor(call, &input.trust_anchor_id)?;
        let action = action::rolesanywhere::ResetNotificationSettings;
        let allowed = authorize_tagged(call, action, &found.arn(), found.tags())?;
        let keys = input.notification_setting_keys.into_iter();
        let keys: Vec<_> = keys.map(|key| (key.event, key.channel)).collect();
        let found = rolesanywhere::reset_notifications(&mut call.work, found, &keys, &allowed)?;
        Ok(Output { trust_anchor: (&found).into() })
    }
}
