//! Security Token Service.

use super::Text;

/// Parameters of the request, code, status, text, source. The role may be assumed for two hours.
pub type CauseOfSts =
    (&'static [(&'static str, &'static str)], &'static str, u16, Text, &'static str);

const STS: &str = "answers of AWS STS";

pub static CAUSES: &[CauseOfSts] = &[
    (
        &[
            ("Action", "AssumeRole"),
            ("RoleArn", "{role}"),
            ("RoleSessionName", "session"),
            ("DurationSeconds", "7201"),
        ],
        "ValidationError",
        400,
        Text::Aws(
            "The requested DurationSeconds exceeds the MaxSessionDuration set for this role.",
        ),
        STS,
    ),
    (
        &[
            ("Action", "AssumeRole"),
            ("RoleArn", "{role}"),
            ("RoleSessionName", "session"),
            ("DurationSeconds", "899"),
        ],
        "ValidationError",
        400,
        Text::Aws(
            "1 validation error detected: Value '899' at 'durationSeconds' failed to satisfy constraint: Member must have value greater than or equal to 900",
        ),
        STS,
    ),
    (
        &[("Action", "AssumeRole"), ("RoleArn", "{role}"), ("RoleSessionName", "a b")],
        "ValidationError",
        400,
        Text::Aws(
            r"1 validation error detected: Value 'a b' at 'roleSessionName' failed to satisfy constraint: Member must satisfy regular expression pattern: [\w+=,.@-]*",
        ),
        STS,
    ),
    (
        &[("Action", "AssumeRole"), ("RoleArn", "{other}"), ("RoleSessionName", "session")],
        "AccessDenied",
        403,
        Text::Ours("is not authorized to perform: sts:AssumeRole on resource: {other}"),
        STS,
    ),
    (
        &[
            ("Action", "AssumeRole"),
            ("RoleArn", "{role}"),
            ("RoleSessionName", "session"),
            ("Policy", "{"),
        ],
        "MalformedPolicyDocument",
        400,
        Text::Ours("policy"),
        "https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html",
    ),
    (
        &[("Action", "NoSuchThing")],
        "InvalidAction",
        400,
        Text::Aws("Could not find operation NoSuchThing for version 2011-06-15"),
        STS,
    ),
];
