//! `CreateTrustAnchor`: trusts a CA: certificates that it has issued can authenticate.
//!
//! <https://docs.aws.amazon.com/rolesanywhere/latest/APIReference/API_CreateTrustAnchor.html>

use outlast_domain::identity::action;
use outlast_domain::rolesanywhere::{self, NewTrustAnchor, TRUST_ANCHOR};

pub use crate::aws::rolesanywhere::{
    CreateTrustAnchor, CreateTrustAnchorRequest as Input, TrustAnchorDetailResponse as Output,
};
use crate::call::{Call, Run};
use crate::model::rolesanywhere::{authorize_new, new_tags, no_fetching, notifications, source};
use crate::wire::ApiError;

impl Run for CreateTrustAnchor {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        call.notes.parameter("name", input.name.as_str());
        no_fetching(input.crl_dp_revocation_enabled)?;
        let source = source(call, input.source)?;
        let tags = new_tags(call, input.tags)?;
        let action = action::rolesanywhere::CreateTrustAnchor;
        let allowed = authorize_new(call, action, &TRUST_ANCHOR, &tags)?;
        let new = NewTrustAnchor {
            name: input.name,
            source,
            enabled: input.enabled.unwrap_or_default(),
            tags,
            notifications: notifications(call, input.notification_settings.unwrap_or_default()),
            alias: input.alias_name,
        };
        let (work, scope) = (&mut call.work, &call.scope);
        let made = rolesanywhere::create_trust_anchor(work, scope, new, &allowed)?;
        call.notes.resource(made.arn(), TRUST_ANCHOR.cloudtrail);
        call.notes.response("trustAnchorArn", made.arn());
        Ok(Output { trust_anchor: (&made).into() })
    }
}
