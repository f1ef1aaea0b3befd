//! Connectors of Transfer Family: their settings, who may change and use them, and requests.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use outlast_api::service::Room;
use outlast_store::Store;
use serde_json::{Value, json};

use crate::common::{
    self, ACCOUNT, Fixture, OTHER_ACCOUNT, REGION, Who, allow, code, policy, with,
};
use crate::transfer_support::{connector_role, key};

#[test]
fn a_connector_is_made_shown_changed_and_deleted() {
    let fixture = Fixture::new();
    let role = connector_role(&fixture, "files");
    let tags = json!([{ "Key": "team", "Value": "a" }]);
    let id = fixture.connector(&role, json!({ "Tags": tags, "LoggingRole": role }));
    let of = json!({ "ConnectorId": id });
    let arn = format!("arn:aws:transfer:{REGION}:{ACCOUNT}:connector/{id}");
    let shown = fixture.transfer("DescribeConnector", of.clone()).unwrap()["Connector"].clone();
    let secret = shown["SftpConfig"]["UserSecretId"].clone();
    assert!(common::text(&secret).contains(":secret:connector"), "{shown}");
    let expected = json!({
        "Arn": arn, "ConnectorId": id, "Url": "sftp://sftp.example.com:2222", "AccessRole": role, "LoggingRole": role,
        "SftpConfig": { "UserSecretId": secret, "TrustedHostKeys": [key(9)], "MaxConcurrentConnections": 1 },
        "SecurityPolicyName": "TransferSecurityPolicy-2025-03", "EgressType": "SERVICE_MANAGED", "Status": "ACTIVE",
        "IpAddressType": "IPV4", "Tags": tags,
    });
    assert_eq!(shown, expected);

    let commented = format!("{} sftp.example.com", key(7));
    let more = json!({
        "Url": "sftp://[2001:db8::1]", "SecurityPolicyName": "TransferSecurityPolicy-FIPS-2025-03", "IpAddressType": "DUALSTACK",
        "SftpConfig": { "TrustedHostKeys": [commented, key(7), key(8)], "MaxConcurrentConnections": 5 },
    });
    fixture.transfer("UpdateConnector", with(&of, more)).unwrap();
    let shown = fixture.transfer("DescribeConnector", of.clone()).unwrap()["Connector"].clone();
    let changed = with(
        &expected,
        json!({
            "Url": "sftp://[2001:db8::1]", "SecurityPolicyName": "TransferSecurityPolicy-FIPS-2025-03", "IpAddressType": "DUALSTACK",
            "SftpConfig": { "UserSecretId": secret, "TrustedHostKeys": [key(7), key(8)], "MaxConcurrentConnections": 5 },
        }),
    );
    assert_eq!(shown, changed, "what is not said stays; a key is there once, without its comment");

    let second = fixture.connector(&role, json!({}));
    let page = fixture.transfer("ListConnectors", json!({ "MaxResults": 1 })).unwrap();
    let next = json!({ "MaxResults": 1, "NextToken": page["NextToken"] });
    let last = fixture.transfer("ListConnectors", next).unwrap();
    assert_eq!(last.get("NextToken"), None);
    let mut listed = [&page, &last].map(|page| page["Connectors"][0]["ConnectorId"].clone());
    listed.sort_by_key(ToString::to_string);
    let mut both = [json!(id), json!(second)];
    both.sort_by_key(ToString::to_string);
    assert_eq!(listed, both);

    let tag = json!({ "Arn": arn, "Tags": [{ "Key": "team", "Value": "b" }] });
    fixture.transfer("TagResource", tag).unwrap();
    let tags = fixture.transfer("ListTagsForResource", json!({ "Arn": arn })).unwrap();
    assert_eq!(tags["Tags"], json!([{ "Key": "team", "Value": "b" }]));
    fixture.transfer("UntagResource", json!({ "Arn": arn, "TagKeys": ["team"] })).unwrap();

    fixture.transfer("DeleteConnector", of.clone()).unwrap();
    let gone = fixture.transfer("DescribeConnector", of).unwrap_err();
    assert_eq!(
        (gone.code.as_str(), gone.message.as_str()),
        ("ResourceNotFoundException", "Unknown connector")
    );
    let left = fixture.transfer("ListConnectors", json!({})).unwrap();
    assert_eq!(left["Connectors"].as_array().unwrap().len(), 1);
}

#[test]
fn a_connector_that_cannot_be_used_is_refused() {
    let fixture = Fixture::new();
    let role = connector_role(&fixture, "files");
    let foreign = role.replace(ACCOUNT, OTHER_ACCOUNT);
    let good = json!({ "Url": "sftp://a.example", "AccessRole": role });
    let sftp = |config: Value| json!({ "SftpConfig": config });
    let eleven: Vec<_> = (0..11).map(key).collect();
    for (more, code, says) in [
        (json!({ "Url": "https://a.example" }), "InvalidRequestException", "Url must be sftp://"),
        (json!({ "Url": "sftp://u@a.example" }), "InvalidRequestException", "without a user"),
        (json!({ "Url": null }), "InvalidRequestException", "Url is required"),
        (json!({ "AccessRole": foreign }), "AccessDeniedException", "iam:PassRole"),
        (json!({ "LoggingRole": foreign }), "AccessDeniedException", "iam:PassRole"),
        (
            json!({ "AccessRole": role.replace("role/", "role/../role/") }),
            "InvalidRequestException",
            "role",
        ),
        (
            sftp(json!({ "UserSecretId": "arn:aws:kms:eu-west-1:123456789012:key/1" })),
            "InvalidRequestException",
            "UserSecretId",
        ),
        (
            sftp(
                json!({ "UserSecretId": "arn:aws:secretsmanager:us-east-1:123456789012:secret:s-abcdef" }),
            ),
            "InvalidRequestException",
            "UserSecretId",
        ),
        (
            sftp(json!({ "TrustedHostKeys": ["ssh-ed25519 AAAA"] })),
            "InvalidRequestException",
            "TrustedHostKeys",
        ),
        (
            sftp(json!({ "TrustedHostKeys": [format!("sftp.example.com {}", key(1))] })),
            "InvalidRequestException",
            "TrustedHostKeys",
        ),
        (sftp(json!({ "TrustedHostKeys": eleven })), "ValidationException", "10"),
        (
            sftp(json!({ "MaxConcurrentConnections": 6 })),
            "InvalidRequestException",
            "between 1 and 5",
        ),
        (sftp(json!({ "MaxConcurrentConnections": 0 })), "ValidationException", "1"),
        (
            sftp(json!({ "OrderedUserSecretVersionStages": ["AWSPENDING"] })),
            "InvalidRequestException",
            "OrderedUserSecretVersionStages",
        ),
        (
            json!({ "SecurityPolicyName": "Nobody-2020-01" }),
            "ResourceNotFoundException",
            "security policy",
        ),
        (
            json!({ "SecurityPolicyName": "TLS13-1-2-2021-06" }),
            "ResourceNotFoundException",
            "security policy",
        ),
        (json!({ "IpAddressType": "IPV6" }), "ValidationException", "IPV4"),
        (json!({ "As2Config": {} }), "InvalidRequestException", "As2Config"),
        (
            json!({ "EgressConfig": { "VpcLattice": { "ResourceConfigurationArn": "x" } } }),
            "InvalidRequestException",
            "EgressConfig",
        ),
    ] {
        let body = with(&good, more);
        let refused = fixture.transfer("CreateConnector", body.clone()).unwrap_err();
        assert_eq!(refused.code, code, "{body}: {}", refused.message);
        assert!(refused.message.contains(says), "{body}: {}", refused.message);
    }
    assert_eq!(fixture.store.scan("transfer/connector", "", 10).unwrap().len(), 0);
    // Each change is judged like the first settings.
    let id = fixture.connector(&role, json!({}));
    for more in [
        json!({ "Url": "ftp://a.example" }),
        sftp(json!({ "UserSecretId": "no secret" })),
        sftp(json!({ "MaxConcurrentConnections": 6 })),
    ] {
        let body = with(&json!({ "ConnectorId": id }), more);
        assert_eq!(code(fixture.transfer("UpdateConnector", body)), "InvalidRequestException");
    }
}

#[test]
fn roles_are_passed_only_by_those_who_may() {
    let fixture = Fixture::new();
    let (role, other) = (connector_role(&fixture, "files"), connector_role(&fixture, "other"));
    let id = fixture.connector(&role, json!({}));
    let passes = policy(json!([
        { "Effect": "Allow", "Action": "transfer:*", "Resource": "*" },
        { "Effect": "Allow", "Action": "iam:PassRole", "Resource": role,
          "Condition": { "StringEquals": { "iam:PassedToService": "transfer.amazonaws.com" } } },
    ]));
    let eve = fixture.user(ACCOUNT, "eve", &[passes]);
    let create = |role: &str, more: Value| {
        let body = with(&json!({ "Url": "sftp://a.example", "AccessRole": role }), more);
        fixture.transfer_as(&eve, "CreateConnector", &body)
    };
    create(&role, json!({ "LoggingRole": role })).unwrap();
    assert_eq!(code(create(&other, json!({}))), "AccessDeniedException");
    assert_eq!(code(create(&role, json!({ "LoggingRole": other }))), "AccessDeniedException");
    let update = |more: Value| {
        fixture.transfer_as(&eve, "UpdateConnector", &with(&json!({ "ConnectorId": id }), more))
    };
    update(json!({ "Url": "sftp://b.example" })).unwrap();
    update(json!({ "AccessRole": role })).unwrap();
    assert_eq!(code(update(json!({ "AccessRole": other }))), "AccessDeniedException");
    // One who may start transfers may not change where they go.
    let mallory = fixture.user(ACCOUNT, "mallory", &[allow(&["transfer:Start*"])]);
    let of = json!({ "ConnectorId": id });
    let start = with(&of, json!({ "SendFilePaths": ["/files/a"] }));
    fixture.transfer_as(&mallory, "StartFileTransfer", &start).unwrap();
    let url = with(&of, json!({ "Url": "sftp://evil.example" }));
    assert_eq!(
        code(fixture.transfer_as(&mallory, "UpdateConnector", &url)),
        "AccessDeniedException"
    );
}

#[test]
fn another_account_sees_no_connector_and_no_result() {
    let fixture = Fixture::new();
    let id = fixture.connector(&connector_role(&fixture, "files"), json!({}));
    let transfer = fixture.send_files(&id, &["/files/a"]);
    let of = json!({ "ConnectorId": id });
    let path = |name: &str| with(&of, json!({ name: "/x" }));
    let arn = format!("arn:aws:transfer:{REGION}:{ACCOUNT}:connector/{id}");
    for who in [Who::stranger(), Who::admin().at("us-east-1")] {
        for (operation, body) in [
            ("DescribeConnector", of.clone()),
            ("UpdateConnector", of.clone()),
            ("DeleteConnector", of.clone()),
            ("TestConnection", of.clone()),
            ("StartFileTransfer", with(&of, json!({ "SendFilePaths": ["/files/a"] }))),
            (
                "StartDirectoryListing",
                with(&of, json!({ "RemoteDirectoryPath": "/", "OutputDirectoryPath": "/files" })),
            ),
            ("StartRemoteDelete", path("DeletePath")),
            ("StartRemoteMove", with(&path("SourcePath"), json!({ "TargetPath": "/y" }))),
            ("ListFileTransferResults", with(&of, json!({ "TransferId": transfer }))),
        ] {
            let answer = fixture.transfer_as(&who, operation, &body);
            assert_eq!(code(answer), "ResourceNotFoundException", "{operation}");
        }
        let tags = fixture.transfer_as(&who, "ListTagsForResource", &json!({ "Arn": arn }));
        assert_eq!(tags.unwrap_err().message, "Unknown resource");
        let listed = fixture.transfer_as(&who, "ListConnectors", &json!({})).unwrap();
        assert_eq!(listed["Connectors"], json!([]));
    }
}

#[test]
fn requests_that_cannot_be_done_are_refused() {
    let fixture = Fixture::new();
    let role = connector_role(&fixture, "files");
    let id = fixture.connector(&role, json!({}));
    let eleven = vec!["/files/a"; 11];
    let listing = json!({ "RemoteDirectoryPath": "/", "OutputDirectoryPath": "/files" });
    for (operation, more, code, says) in [
        ("StartFileTransfer", json!({}), "InvalidRequestException", "either"),
        (
            "StartFileTransfer",
            json!({ "SendFilePaths": ["/files/a"], "RetrieveFilePaths": ["a"] }),
            "InvalidRequestException",
            "either",
        ),
        ("StartFileTransfer", json!({ "SendFilePaths": [] }), "ValidationException", "1"),
        ("StartFileTransfer", json!({ "SendFilePaths": eleven }), "ValidationException", "10"),
        (
            "StartFileTransfer",
            json!({ "SendFilePaths": ["/files"] }),
            "InvalidRequestException",
            "/BUCKET/KEY",
        ),
        (
            "StartFileTransfer",
            json!({ "SendFilePaths": ["/files/"] }),
            "InvalidRequestException",
            "/BUCKET/KEY",
        ),
        (
            "StartFileTransfer",
            json!({ "SendFilePaths": ["/files/a/"] }),
            "InvalidRequestException",
            "/BUCKET/KEY",
        ),
        (
            "StartFileTransfer",
            json!({ "SendFilePaths": ["/files/a", "/Files/a"] }),
            "InvalidRequestException",
            "BUCKET",
        ),
        (
            "StartFileTransfer",
            json!({ "SendFilePaths": ["/files/../other/a"] }),
            "InvalidRequestException",
            "BUCKET",
        ),
        (
            "StartFileTransfer",
            json!({ "SendFilePaths": ["/files//a"] }),
            "InvalidRequestException",
            "BUCKET",
        ),
        (
            "StartFileTransfer",
            json!({ "SendFilePaths": ["/files/a"], "LocalDirectoryPath": "/files" }),
            "InvalidRequestException",
            "LocalDirectoryPath",
        ),
        (
            "StartFileTransfer",
            json!({ "SendFilePaths": ["/files/a"], "RemoteDirectoryPath": "/in\u{7}" }),
            "InvalidRequestException",
            "control",
        ),
        (
            "StartFileTransfer",
            json!({ "SendFilePaths": ["/files/a"], "CustomHttpHeaders": [] }),
            "InvalidRequestException",
            "CustomHttpHeaders",
        ),
        (
            "StartFileTransfer",
            json!({ "RetrieveFilePaths": ["a"] }),
            "InvalidRequestException",
            "LocalDirectoryPath",
        ),
        (
            "StartFileTransfer",
            json!({ "RetrieveFilePaths": ["a"], "LocalDirectoryPath": "/" }),
            "InvalidRequestException",
            "BUCKET",
        ),
        (
            "StartFileTransfer",
            json!({ "RetrieveFilePaths": ["a"], "LocalDirectoryPath": "/files/.." }),
            "InvalidRequestException",
            "BUCKET",
        ),
        (
            "StartFileTransfer",
            json!({ "RetrieveFilePaths": ["a"], "LocalDirectoryPath": "/files", "RemoteDirectoryPath": "/" }),
            "InvalidRequestException",
            "RemoteDirectoryPath",
        ),
        (
            "StartDirectoryListing",
            with(&listing, json!({ "MaxItems": 200_001 })),
            "InvalidRequestException",
            "200000",
        ),
        (
            "StartDirectoryListing",
            with(&listing, json!({ "MaxItems": 0 })),
            "ValidationException",
            "1",
        ),
        (
            "StartDirectoryListing",
            with(&listing, json!({ "OutputDirectoryPath": "/" })),
            "InvalidRequestException",
            "BUCKET",
        ),
        (
            "StartRemoteDelete",
            json!({ "DeletePath": "/a\u{0}" }),
            "InvalidRequestException",
            "control",
        ),
        ("StartRemoteMove", json!({ "SourcePath": "/a" }), "ValidationException", "targetPath"),
        (
            "ListFileTransferResults",
            json!({ "TransferId": "1" }),
            "ResourceNotFoundException",
            "Unknown transfer",
        ),
        (
            "ListFileTransferResults",
            json!({ "TransferId": "../c-0/1" }),
            "ResourceNotFoundException",
            "Unknown transfer",
        ),
    ] {
        let body = with(&json!({ "ConnectorId": id }), more);
        let refused = fixture.transfer(operation, body.clone()).unwrap_err();
        assert_eq!(refused.code, code, "{operation} {body}: {}", refused.message);
        assert!(refused.message.contains(says), "{operation} {body}: {}", refused.message);
    }
    // A connector without a secret or a host key cannot log in anywhere, or not safely.
    let bare = json!({ "Url": "sftp://a.example", "AccessRole": role });
    let bare = fixture.transfer("CreateConnector", bare).unwrap()["ConnectorId"].clone();
    let of = json!({ "ConnectorId": bare });
    let start = with(&of, json!({ "SendFilePaths": ["/files/a"] }));
    let refused = fixture.transfer("StartFileTransfer", start.clone()).unwrap_err();
    assert!(refused.message.contains("UserSecretId"), "{}", refused.message);
    let secret = with(&of, json!({ "SftpConfig": { "UserSecretId": "later" } }));
    fixture.transfer("UpdateConnector", secret).unwrap();
    let refused = fixture.transfer("StartFileTransfer", start).unwrap_err();
    assert!(refused.message.contains("TestConnection"), "{}", refused.message);
    let due = fixture.service.connector_jobs(&|| fixture.now.get() * 1000, &Room::of(10)).unwrap();
    assert_eq!(due, []);
}
