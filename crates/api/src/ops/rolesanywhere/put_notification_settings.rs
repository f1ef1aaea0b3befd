//! `PutNotificationSettings`: sets what would be notified, and when. Nothing is sent.
//!
//! <https://docs.aws.amazon.com/rolesanywhere/latest/APIReference/API_PutNotificationSettings.html>

use outlast_domain::identity::action;
use outlast_domain::rolesanywhere;

pub use crate::aws::rolesanywhere::{
    PutNotificationSettings, PutNotificationSettingsRequest as Input,
    PutNotificationSettingsResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::rolesanywhere::{authorize_tagged, find_trust_anchor, notifications};
use crate::wire::ApiError;

impl Run for PutNotificationSettings {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let found = find_trust_anchor(call, &input.trust_anchor_id)?;
        let action = action::rolesanywhere::PutNotificationSettings;
        let allowed = authorize_tagged(call, action, &found.arn(), found.tags())?;
        let new = notifications(call, input.notification_settings);
        let found = rolesanywhere::put_notifications(&mut call.work, found, new, &allowed)?;
        Ok(Output { trust_anchor: (&found).into() })
    }
}
