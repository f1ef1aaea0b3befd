//! The rows of Roles Anywhere.

use outlast_api::ops::ROLES_ANYWHERE;
use serde_json::{Value, json};

use super::Scene;
use super::spell::Form;
use super::table::{Case, pointer};
use crate::common::with;

/// A resource of Roles Anywhere under its names.
pub fn cases(scene: &Scene) -> Vec<Case> {
    let id = |arn: &str| arn.rsplit('/').next().unwrap().to_owned();
    let named = |arn: &str| vec![(id(arn), Form::Word), (arn.to_owned(), Form::Arn)];
    let mut profile = named(&scene.profile);
    let alias = scene.profile.replace(&id(&scene.profile), "sweep/profile");
    profile.push((alias.replace(":profile/", ":alias/profile/"), Form::Arn));
    let (anchor, crl) = (named(&scene.anchor), named(&scene.crl));
    let word = |arn: &str| vec![(id(arn), Form::Word)];
    let arn = |arn: &str| vec![(arn.to_owned(), Form::Arn)];
    let field = json!({ "certificateField": "x509SAN" });
    let rules = with(&field, json!({ "mappingRules": [] }));
    let rows: Vec<(&str, &str, Value, Vec<_>, &str)> = vec![
        ("GetTrustAnchor", "/trustAnchorId", json!({}), anchor.clone(), &scene.anchor),
        ("UpdateTrustAnchor", "/trustAnchorId", json!({}), anchor.clone(), &scene.anchor),
        ("EnableTrustAnchor", "/trustAnchorId", json!({}), anchor.clone(), &scene.anchor),
        ("DisableTrustAnchor", "/trustAnchorId", json!({}), anchor.clone(), &scene.anchor),
        ("DeleteTrustAnchor", "/trustAnchorId", json!({}), anchor, &scene.anchor),
        (
            "PutNotificationSettings",
            "/trustAnchorId",
            json!({ "notificationSettings": [] }),
            word(&scene.anchor),
            &scene.anchor,
        ),
        (
            "ResetNotificationSettings",
            "/trustAnchorId",
            json!({ "notificationSettingKeys": [] }),
            word(&scene.anchor),
            &scene.anchor,
        ),
        ("GetProfile", "/profileId", json!({}), profile.clone(), &scene.profile),
        ("UpdateProfile", "/profileId", json!({}), profile.clone(), &scene.profile),
        ("EnableProfile", "/profileId", json!({}), profile.clone(), &scene.profile),
        ("DisableProfile", "/profileId", json!({}), profile.clone(), &scene.profile),
        ("DeleteProfile", "/profileId", json!({}), profile.clone(), &scene.profile),
        ("PutAttributeMapping", "/profileId", rules, profile.clone(), &scene.profile),
        ("DeleteAttributeMapping", "/profileId", field, profile, &scene.profile),
        ("GetCrl", "/crlId", json!({}), crl.clone(), &scene.crl),
        ("UpdateCrl", "/crlId", json!({}), crl.clone(), &scene.crl),
        ("EnableCrl", "/crlId", json!({}), crl.clone(), &scene.crl),
        ("DisableCrl", "/crlId", json!({}), crl.clone(), &scene.crl),
        ("DeleteCrl", "/crlId", json!({}), crl, &scene.crl),
        ("GetSubject", "/subjectId", json!({}), word(&scene.subject), &scene.subject),
        ("TagResource", "/resourceArn", json!({ "tags": [] }), arn(&scene.anchor), &scene.anchor),
        (
            "UntagResource",
            "/resourceArn",
            json!({ "tagKeys": [] }),
            arn(&scene.subject),
            &scene.subject,
        ),
        ("ListTagsForResource", "/resourceArn", json!({}), arn(&scene.crl), &scene.crl),
        (
            "ImportCrl",
            "/trustAnchorArn",
            json!({ "name": "c", "crlData": scene.crl_data }),
            arn(&scene.anchor),
            "*",
        ),
    ];
    let case = |(operation, member, body, names, resource): (_, _, Value, _, &str)| Case {
        service: &ROLES_ANYWHERE,
        operation,
        member,
        body: pointer(&body, member),
        names,
        deny: json!({ "Action": format!("rolesanywhere:{operation}"), "Resource": resource }),
        has_policy: false,
        names_others: false,
        fails: false,
    };
    rows.into_iter().map(case).collect()
}
