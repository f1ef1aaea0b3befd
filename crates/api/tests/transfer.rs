//! Transfer Family: the operations.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use outlast_store::Store;
use serde_json::{Value, json};

use crate::common::{ACCOUNT, Fixture, NOW, OTHER_ACCOUNT, REGION, Who, code, policy, text, with};
use crate::transfer_support::{key, role, trust};

fn described(fixture: &Fixture, server: &str) -> Value {
    let mut answer = fixture.transfer("DescribeServer", json!({ "ServerId": server })).unwrap();
    answer["Server"].take()
}

fn user(fixture: &Fixture, server: &str, name: &str) -> Value {
    let body = json!({ "ServerId": server, "UserName": name });
    fixture.transfer("DescribeUser", body).unwrap()["User"].take()
}

#[test]
fn a_server_lives() {
    let fixture = Fixture::new();
    let server = fixture.server(json!({}));
    assert!(server.starts_with("s-") && server.len() == 19, "{server}");
    let first = described(&fixture, &server);
    let arn = format!("arn:aws:transfer:{REGION}:{ACCOUNT}:server/{server}");
    for (member, expected) in [
        ("Arn", json!(arn)),
        ("Domain", json!("S3")),
        ("EndpointType", json!("PUBLIC")),
        ("IdentityProviderType", json!("SERVICE_MANAGED")),
        ("Protocols", json!(["SFTP"])),
        ("SecurityPolicyName", json!("TransferSecurityPolicy-2025-03")),
        ("State", json!("ONLINE")),
        ("UserCount", json!(0)),
        ("IpAddressType", json!("IPV4")),
        ("S3StorageOptions", json!({ "DirectoryListingOptimization": "DISABLED" })),
    ] {
        assert_eq!(first[member], expected, "{member}");
    }
    assert!(text(&first["HostKeyFingerprint"]).starts_with("SHA256:"));
    let of = json!({ "ServerId": server });
    for (operation, state) in [("StopServer", "OFFLINE"), ("StartServer", "ONLINE")] {
        fixture.transfer(operation, of.clone()).unwrap();
        assert_eq!(described(&fixture, &server)["State"], state);
    }
    let logging = fixture.role(ACCOUNT, "logging", &trust(&json!({})), &[]);
    let group = format!("arn:aws:logs:{REGION}:{ACCOUNT}:log-group:sftp:*");
    let change = json!({
        "LoggingRole": logging, "StructuredLogDestinations": [group], "PreAuthenticationLoginBanner": "Hello",
        "PostAuthenticationLoginBanner": "Welcome", "SecurityPolicyName": "TransferSecurityPolicy-FIPS-2025-03",
        "ProtocolDetails": { "SetStatOption": "ENABLE_NO_OP", "PassiveIp": "AUTO" },
        "S3StorageOptions": { "DirectoryListingOptimization": "ENABLED" },
        "EndpointType": "VPC", "EndpointDetails": { "VpcId": "vpc-1", "SubnetIds": ["subnet-1"] },
        "IpAddressType": "DUALSTACK", "Protocols": ["SFTP"],
        "WorkflowDetails": { "OnUpload": [] },
    });
    fixture.transfer("UpdateServer", with(&of, change.clone())).unwrap();
    let second = described(&fixture, &server);
    let members = [
        "LoggingRole",
        "StructuredLogDestinations",
        "PreAuthenticationLoginBanner",
        "PostAuthenticationLoginBanner",
        "SecurityPolicyName",
        "ProtocolDetails",
        "S3StorageOptions",
        "EndpointType",
        "EndpointDetails",
        "IpAddressType",
    ];
    for member in members {
        assert_eq!(second[member], change[member], "{member}");
    }
    assert_eq!(second["HostKeyFingerprint"], first["HostKeyFingerprint"]);
    // What is not mentioned stays, and an empty text removes.
    let removal = json!({ "LoggingRole": "", "PreAuthenticationLoginBanner": "" });
    fixture.transfer("UpdateServer", with(&of, removal)).unwrap();
    let third = described(&fixture, &server);
    assert_eq!(third["PostAuthenticationLoginBanner"], "Welcome");
    assert!(third["LoggingRole"].is_null() && third["PreAuthenticationLoginBanner"].is_null());

    let listed = fixture.transfer("ListServers", json!({})).unwrap();
    assert_eq!(listed["Servers"][0]["ServerId"], json!(server));
    fixture.sftp_user(&server, "alice", &role(&fixture, "users"), json!({}));
    assert_eq!(described(&fixture, &server)["UserCount"], 1);
    fixture.transfer("DeleteServer", of.clone()).unwrap();
    assert_eq!(code(fixture.transfer("DescribeServer", of)), "ResourceNotFoundException");
    assert!(fixture.store.scan("transfer/", "", 10).unwrap().is_empty(), "it leaves nothing");
}

#[test]
fn servers_are_made_as_asked_or_not_at_all() {
    let fixture = Fixture::new();
    let theirs = fixture.role(OTHER_ACCOUNT, "theirs", &trust(&json!({})), &[]);
    let url = "https://idp.example/prod";
    let function = format!("arn:aws:lambda:{REGION}:{ACCOUNT}:function:idp");
    let elsewhere = format!("arn:aws:lambda:{REGION}:{OTHER_ACCOUNT}:function:idp");
    for wrong in [
        json!({ "Domain": "EFS" }),
        json!({ "Protocols": ["SFTP", "FTP"] }),
        json!({ "EndpointType": "VPC_ENDPOINT" }),
        json!({ "LoggingRole": format!("arn:aws:iam::{ACCOUNT}:role/../x") }),
        json!({ "HostKeyStorageType": "SECRETS_MANAGER" }),
        json!({ "IdentityProviderType": "AWS_DIRECTORY_SERVICE", "IdentityProviderDetails": { "DirectoryId": "d-0123456789" } }),
        json!({ "IdentityProviderType": "API_GATEWAY" }),
        json!({ "IdentityProviderType": "API_GATEWAY", "IdentityProviderDetails": { "Url": "http://idp.example" } }),
        json!({ "IdentityProviderType": "API_GATEWAY", "IdentityProviderDetails": { "Url": url, "Function": function } }),
        json!({ "IdentityProviderType": "AWS_LAMBDA" }),
        json!({ "IdentityProviderType": "AWS_LAMBDA", "IdentityProviderDetails": { "Function": function.replace(":function:", ":layer:") } }),
        json!({ "IdentityProviderType": "AWS_LAMBDA", "IdentityProviderDetails": { "Url": url } }),
        json!({ "IdentityProviderDetails": { "Url": url } }),
        json!({ "ProtocolDetails": { "As2Transports": ["HTTP"] } }),
        json!({ "ProtocolDetails": { "SftpPorts": [{ "SftpPort": 2222 }] } }),
        json!({ "ProtocolDetails": { "ProxyConfig": { "SftpMode": "PROXY_PROTOCOL_V2_ENFORCED" } } }),
        json!({ "HostKey": "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n" }),
        json!({ "Certificate": "arn:aws:acm:eu-west-1:123456789012:certificate/x" }),
    ] {
        let refused = fixture.transfer("CreateServer", wrong.clone()).unwrap_err();
        assert_eq!(refused.code, "InvalidRequestException", "{wrong}: {}", refused.message);
    }
    for wrong in ["TransferSecurityPolicy-2000-01", "AWS-ELBSecurityPolicy-TLS13-1-2-2021-06", "x"]
    {
        let body = json!({ "SecurityPolicyName": wrong });
        assert_eq!(
            code(fixture.transfer("CreateServer", body)),
            "ResourceNotFoundException",
            "{wrong}"
        );
    }
    // It has none of the host keys that a server can have.
    let refused =
        fixture.transfer("CreateServer", json!({ "SecurityPolicyName": "cnsa2-2026-11" }));
    let refused = refused.unwrap_err();
    assert_eq!(refused.code, "InvalidRequestException");
    assert!(refused.message.contains("no client could connect"), "{}", refused.message);
    // What belongs to another account cannot be used or passed on.
    let body = json!({ "IdentityProviderType": "AWS_LAMBDA", "IdentityProviderDetails": { "Function": elsewhere } });
    assert_eq!(code(fixture.transfer("CreateServer", body)), "AccessDeniedException");
    let details =
        json!({ "OnUpload": [{ "WorkflowId": "w-0123456789abcdef0", "ExecutionRole": theirs }] });
    let body = json!({ "WorkflowDetails": details });
    assert_eq!(code(fixture.transfer("CreateServer", body)), "AccessDeniedException");
    let body = json!({ "LoggingRole": theirs });
    assert_eq!(code(fixture.transfer("CreateServer", body)), "AccessDeniedException");
    assert!(fixture.store.scan("transfer/", "", 10).unwrap().is_empty());
    let invoking = fixture.role(ACCOUNT, "invoking", &trust(&json!({})), &[]);
    for details in [
        json!({ "Url": url, "InvocationRole": invoking, "SftpAuthenticationMethods": "PASSWORD" }),
        json!({ "Function": function, "SftpAuthenticationMethods": "PUBLIC_KEY_AND_PASSWORD" }),
    ] {
        let kind = if details["Url"].is_null() { "AWS_LAMBDA" } else { "API_GATEWAY" };
        let body = json!({ "IdentityProviderType": kind, "IdentityProviderDetails": details });
        let server = fixture.server(body);
        assert_eq!(described(&fixture, &server)["IdentityProviderDetails"], details);
        let more = json!({ "ServerId": server, "IdentityProviderDetails": { "SftpAuthenticationMethods": "PUBLIC_KEY" } });
        fixture.transfer("UpdateServer", more).unwrap();
        let after = described(&fixture, &server);
        assert_eq!(after["IdentityProviderDetails"]["SftpAuthenticationMethods"], "PUBLIC_KEY");
        assert_eq!(after["IdentityProviderDetails"]["Url"], details["Url"]);
        // Its users are those of the provider.
        let body = json!({ "ServerId": server, "UserName": "alice", "Role": invoking });
        assert_eq!(code(fixture.transfer("CreateUser", body)), "InvalidRequestException");
    }
    // The operator has said which functions there are.
    let settings = outlast_domain::settings::Settings {
        login_functions: Some(std::collections::BTreeSet::new()),
        ..Default::default()
    };
    fixture.service.set_settings(settings);
    let body = json!({ "IdentityProviderType": "AWS_LAMBDA", "IdentityProviderDetails": { "Function": function } });
    assert_eq!(code(fixture.transfer("CreateServer", body)), "InvalidRequestException");
}

#[test]
fn a_user_lives() {
    let fixture = Fixture::new();
    let server = fixture.server(json!({}));
    let (first, second) = (role(&fixture, "one"), role(&fixture, "two"));
    let of = json!({ "ServerId": server, "UserName": "alice" });
    let session = policy(json!([
        { "Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::${transfer:HomeDirectory}/*" },
    ]))
    .to_string();
    let new = json!({
        "Role": first, "HomeDirectory": "/files/home/alice", "SshPublicKeyBody": format!("{} alice", key(1)), "Policy": session,
        "PosixProfile": { "Uid": 1000, "Gid": 1000, "SecondaryGids": [7] },
        "Tags": [{ "Key": "team", "Value": "x" }],
    });
    let made = fixture.transfer("CreateUser", with(&of, new.clone())).unwrap();
    assert_eq!(made, of);
    let alice = user(&fixture, &server, "alice");
    assert_eq!(alice["Arn"], format!("arn:aws:transfer:{REGION}:{ACCOUNT}:user/{server}/alice"));
    for member in ["Role", "HomeDirectory", "Policy", "PosixProfile", "Tags"] {
        assert_eq!(alice[member], new[member], "{member}");
    }
    assert_eq!(alice["HomeDirectoryType"], "PATH");
    let keys = alice["SshPublicKeys"].as_array().unwrap();
    assert_eq!((keys.len(), &keys[0]["SshPublicKeyBody"]), (1, &new["SshPublicKeyBody"]));
    assert_eq!(keys[0]["DateImported"], NOW);
    // Keys.
    let import = |line: &str| {
        fixture.transfer("ImportSshPublicKey", with(&of, json!({ "SshPublicKeyBody": line })))
    };
    let imported = import(&key(2)).unwrap();
    assert_eq!(code(import(&format!("{} again", key(2)))), "ResourceExistsException");
    for wrong in ["ssh-dss AAAA", "ssh-ed25519 AAAA", "nonsense"] {
        assert_eq!(code(import(wrong)), "InvalidRequestException", "{wrong}");
    }
    let id = json!({ "SshPublicKeyId": imported["SshPublicKeyId"] });
    fixture.transfer("DeleteSshPublicKey", with(&of, id.clone())).unwrap();
    assert_eq!(
        code(fixture.transfer("DeleteSshPublicKey", with(&of, id))),
        "ResourceNotFoundException"
    );
    // Changes.
    let mappings =
        json!([{ "Entry": "/", "Target": "/files/${transfer:UserName}", "Type": "DIRECTORY" }]);
    let update = |more: Value| fixture.transfer("UpdateUser", with(&of, more));
    assert_eq!(
        code(update(json!({ "HomeDirectoryMappings": mappings }))),
        "InvalidRequestException"
    );
    update(json!({
        "HomeDirectoryType": "LOGICAL", "HomeDirectoryMappings": mappings, "HomeDirectory": "/", "Role": second, "Policy": "",
    }))
    .unwrap();
    let alice = user(&fixture, &server, "alice");
    assert_eq!((&alice["HomeDirectoryMappings"], &alice["Role"]), (&mappings, &json!(second)));
    assert!(alice["Policy"].is_null());
    let directory = json!({ "HomeDirectoryType": "PATH", "HomeDirectory": "/files" });
    update(directory).unwrap();
    assert!(user(&fixture, &server, "alice")["HomeDirectoryMappings"].is_null());
    for wrong in [
        json!({ "HomeDirectory": "/files/../x" }),
        json!({ "Policy": "{}" }),
        json!({ "HomeDirectoryType": "LOGICAL" }),
        json!({ "HomeDirectoryType": "LOGICAL", "HomeDirectoryMappings": [{ "Entry": "/..", "Target": "/files" }] }),
        json!({ "Role": format!("arn:aws:iam::{ACCOUNT}:user/admin/role/x") }),
    ] {
        assert_eq!(code(update(wrong.clone())), "InvalidRequestException", "{wrong}");
    }
    let theirs = json!({ "Role": format!("arn:aws:iam::{OTHER_ACCOUNT}:role/theirs") });
    assert_eq!(code(update(theirs)), "AccessDeniedException");
    let listed = fixture.transfer("ListUsers", json!({ "ServerId": server })).unwrap();
    assert_eq!(listed["Users"][0]["UserName"], "alice");
    assert_eq!(listed["Users"][0]["SshPublicKeyCount"], 1);
    assert_eq!(code(fixture.transfer("CreateUser", with(&of, new))), "ResourceExistsException");
    fixture.transfer("DeleteUser", of.clone()).unwrap();
    assert_eq!(code(fixture.transfer("DescribeUser", of)), "ResourceNotFoundException");
}

#[test]
fn a_host_key_lives_and_is_never_shown() {
    let fixture = Fixture::new();
    let server = fixture.server(json!({}));
    let of = json!({ "ServerId": server });
    let listed = fixture.transfer("ListHostKeys", of.clone()).unwrap();
    let kinds = |listed: &Value| -> Vec<String> {
        let keys = listed["HostKeys"].as_array().unwrap().iter();
        keys.map(|key| text(&key["Type"]).to_owned()).collect()
    };
    let mut first = kinds(&listed);
    first.sort_unstable();
    assert_eq!(first, ["ecdsa-sha2-nistp256", "ssh-ed25519", "ssh-mldsa44-ed25519"]);
    let private = private_key();
    let import = json!({ "HostKeyBody": private, "Description": "second", "Tags": [{ "Key": "a", "Value": "b" }] });
    let made = fixture.transfer("ImportHostKey", with(&of, import.clone())).unwrap();
    assert_eq!(
        code(fixture.transfer("ImportHostKey", with(&of, import))),
        "ResourceExistsException"
    );
    let named = with(&of, json!({ "HostKeyId": made["HostKeyId"] }));
    let shown = fixture.transfer("DescribeHostKey", named.clone()).unwrap();
    let key = &shown["HostKey"];
    assert_eq!(
        key["Arn"],
        format!(
            "arn:aws:transfer:{REGION}:{ACCOUNT}:host-key/{server}/{}",
            text(&made["HostKeyId"])
        )
    );
    assert_eq!(
        (&key["Description"], &key["StorageType"]),
        (&json!("second"), &json!("SERVICE_MANAGED"))
    );
    fixture.transfer("UpdateHostKey", with(&named, json!({ "Description": "third" }))).unwrap();
    let shown = fixture.transfer("DescribeHostKey", named.clone()).unwrap();
    assert_eq!(shown["HostKey"]["Description"], "third");
    for wrong in [
        "",
        "nonsense",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n",
    ] {
        let body = with(&of, json!({ "HostKeyBody": wrong }));
        assert_eq!(
            code(fixture.transfer("ImportHostKey", body)),
            "InvalidRequestException",
            "{wrong}"
        );
    }
    for member in [
        json!({ "StorageType": "SECRETS_MANAGER" }),
        json!({ "KmsKey": format!("arn:aws:kms:{REGION}:{ACCOUNT}:key/x") }),
    ] {
        let body = with(&with(&of, json!({ "HostKeyBody": private })), member);
        assert_eq!(code(fixture.transfer("ImportHostKey", body)), "InvalidRequestException");
    }
    // What the listener gets is what was imported, the oldest first; the others get nothing of it.
    let facts = fixture.service.sftp_server(None, NOW * 1000).unwrap();
    assert_eq!(facts.host_keys.len(), 4);
    let inner: String = private.lines().filter(|line| !line.starts_with('-')).collect();
    let (secret, _) = inner.split_at(inner.len() - 4);
    for (record_key, record) in fixture.store.scan("", "", 10_000).unwrap() {
        assert!(!String::from_utf8_lossy(&record.value).contains(secret), "{record_key}");
    }
    let events = serde_json::to_string(&fixture.events()).unwrap();
    assert!(!events.contains(&secret[40..80]) && !events.contains("PRIVATE KEY"));
    fixture.transfer("DeleteHostKey", named.clone()).unwrap();
    assert_eq!(code(fixture.transfer("DescribeHostKey", named)), "ResourceNotFoundException");
    // Facts are kept for a second, and read again after it.
    assert_eq!(fixture.service.sftp_server(None, NOW * 1000 + 999).unwrap().host_keys.len(), 4);
    let later = fixture.service.sftp_server(None, NOW * 1000 + 1000).unwrap();
    assert_eq!(later.host_keys.len(), 3);
    assert_ne!(later.version, facts.version);
    // UpdateServer leaves one, also of as many as there may be.
    let more = || json!({ "HostKeyBody": private_key() });
    while fixture.transfer("ImportHostKey", with(&of, more())).is_ok() {}
    assert_eq!(kinds(&fixture.transfer("ListHostKeys", of.clone()).unwrap()).len(), 10);
    fixture.transfer("UpdateServer", with(&of, json!({ "HostKey": private }))).unwrap();
    assert_eq!(kinds(&fixture.transfer("ListHostKeys", of).unwrap()).len(), 1);
}

/// A new private key, as `ssh-keygen` writes it.
fn private_key() -> String {
    let key = outlast_ssh::PrivateKey::generate(outlast_ssh::KeyKind::EcdsaP256).unwrap();
    String::from_utf8(key.to_openssh_pem("").unwrap().expose().to_vec()).unwrap()
}

#[test]
fn security_policies_are_those_of_the_catalogue() {
    let fixture = Fixture::new();
    let listed = fixture.transfer("ListSecurityPolicies", json!({})).unwrap();
    let names: Vec<_> =
        listed["SecurityPolicyNames"].as_array().unwrap().iter().map(text).collect();
    assert!(names.contains(&"TransferSecurityPolicy-2025-03") && names.len() > 5, "{names:?}");
    let mut paged = Vec::new();
    let mut token = Value::Null;
    loop {
        let mut body = json!({ "MaxResults": 3 });
        if !token.is_null() {
            body["NextToken"] = token;
        }
        let page = fixture.transfer("ListSecurityPolicies", body).unwrap();
        paged.extend(
            page["SecurityPolicyNames"]
                .as_array()
                .unwrap()
                .iter()
                .map(|name| text(name).to_owned()),
        );
        token = page["NextToken"].clone();
        if token.is_null() {
            break;
        }
    }
    assert_eq!(paged, names);
    for name in names {
        let body = json!({ "SecurityPolicyName": name });
        let policy = &fixture.transfer("DescribeSecurityPolicy", body).unwrap()["SecurityPolicy"];
        if name.starts_with("Transfer") {
            assert_eq!(policy["Fips"], name.contains("FIPS"), "{name}");
        }
        for exchange in policy["SshKexs"].as_array().unwrap() {
            assert!(outlast_ssh::supported(text(exchange)), "{name} {exchange}");
        }
        assert!(!policy["SshKexs"].as_array().unwrap().is_empty(), "{name}");
        assert_eq!(policy["SecurityPolicyName"], name);
        assert_eq!(policy["Protocols"], json!(["SFTP"]));
    }
}

#[test]
fn servers_take_the_policies_of_aws() {
    let fixture = Fixture::new();
    for name in [
        "TransferSecurityPolicy-2018-11",
        "TransferSecurityPolicy-2020-06",
        "TransferSecurityPolicy-2022-03",
        "TransferSecurityPolicy-2023-05",
        "TransferSecurityPolicy-2024-01",
        "TransferSecurityPolicy-2025-03",
        "TransferSecurityPolicy-AS2Restricted-2025-07",
        "TransferSecurityPolicy-FIPS-2020-06",
        "TransferSecurityPolicy-FIPS-2024-01",
        "TransferSecurityPolicy-FIPS-2024-05",
        "TransferSecurityPolicy-FIPS-2025-03",
        "TransferSecurityPolicy-Restricted-2018-11",
        "TransferSecurityPolicy-Restricted-2020-06",
        "TransferSecurityPolicy-SshAuditCompliant-2025-02",
    ] {
        let named = json!({ "SecurityPolicyName": name });
        let server = fixture.server(named.clone());
        assert_eq!(described(&fixture, &server)["SecurityPolicyName"], name);
        let policy = &fixture.transfer("DescribeSecurityPolicy", named).unwrap()["SecurityPolicy"];
        assert_eq!(policy["Type"], "SERVER", "{name}");
    }
    // A server with the first could serve nobody, and AWS does not document the lists of the others.
    for name in [
        "TransferSecurityPolicy-FIPS-2023-05",
        "TransferSecurityPolicy-Restricted-2024-06",
        "TransferSecurityPolicy-PQ-SSH-Experimental-2023-04",
        "TransferSecurityPolicy-PQ-SSH-FIPS-Experimental-2023-04",
    ] {
        let named = json!({ "SecurityPolicyName": name });
        let refused = code(fixture.transfer("CreateServer", named));
        assert_eq!(refused, "ResourceNotFoundException", "{name}");
    }
}

#[test]
fn lists_have_pages() {
    let fixture = Fixture::new();
    let server = fixture.server(json!({}));
    let role = role(&fixture, "users");
    for number in 0..7 {
        fixture.sftp_user(&server, &format!("user{number}"), &role, json!({}));
    }
    let mut names = Vec::new();
    let mut body = json!({ "ServerId": server, "MaxResults": 3 });
    loop {
        let page = fixture.transfer("ListUsers", body.clone()).unwrap();
        let users = page["Users"].as_array().unwrap();
        names.extend(users.iter().map(|user| text(&user["UserName"]).to_owned()));
        if page["NextToken"].is_null() {
            break;
        }
        body["NextToken"] = page["NextToken"].clone();
    }
    assert_eq!(names.len(), 7);
    body["NextToken"] = json!("!");
    assert_eq!(code(fixture.transfer("ListUsers", body)), "InvalidNextTokenException");
}

#[test]
fn a_role_is_passed_on_by_those_who_may() {
    let fixture = Fixture::new();
    let server = fixture.server(json!({}));
    let role = role(&fixture, "users");
    let all = json!({ "Effect": "Allow", "Action": "transfer:*", "Resource": "*" });
    let pass = |resource: &str, service: &str| {
        json!({
            "Effect": "Allow", "Action": "iam:PassRole", "Resource": resource,
            "Condition": { "StringEquals": { "iam:PassedToService": service } },
        })
    };
    let new = json!({ "ServerId": server, "Role": role });
    for (number, (statement, allowed)) in [
        (None, false),
        (Some(pass(&role, "acm.amazonaws.com")), false),
        (Some(pass(&role.replace("users", "other"), "transfer.amazonaws.com")), false),
        (Some(pass(&role, "transfer.amazonaws.com")), true),
    ]
    .into_iter()
    .enumerate()
    {
        let statements: Vec<_> = [Some(all.clone()), statement].into_iter().flatten().collect();
        let who = fixture.user(ACCOUNT, &format!("passer{number}"), &[policy(json!(statements))]);
        let body = with(&new, json!({ "UserName": format!("user{number}") }));
        let answer = fixture.transfer_as(&who, "CreateUser", &body);
        assert_eq!(answer.is_ok(), allowed, "{answer:?}");
        let logging = json!({ "ServerId": server, "LoggingRole": role });
        assert_eq!(fixture.transfer_as(&who, "UpdateServer", &logging).is_ok(), allowed);
    }
}

#[test]
fn a_function_is_chosen_by_those_who_may_invoke_it() {
    let fixture = Fixture::new();
    let function = |name: &str| format!("arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}");
    let (wanted, other) = (function("idp"), function("other"));
    let of = |function: &str| json!({ "IdentityProviderType": "AWS_LAMBDA", "IdentityProviderDetails": { "Function": function } });
    let server = fixture.server(of(&other));
    let all = json!({ "Effect": "Allow", "Action": "transfer:*", "Resource": "*" });
    let invoke = |resource: &str| json!({ "Effect": "Allow", "Action": "lambda:InvokeFunction", "Resource": resource });
    for (number, (statement, allowed)) in
        [(None, false), (Some(invoke(&other)), false), (Some(invoke(&wanted)), true)]
            .into_iter()
            .enumerate()
    {
        let statements: Vec<_> = [Some(all.clone()), statement].into_iter().flatten().collect();
        let who = fixture.user(ACCOUNT, &format!("chooser{number}"), &[policy(json!(statements))]);
        let made = fixture.transfer_as(&who, "CreateServer", &of(&wanted));
        let change = with(&of(&wanted), json!({ "ServerId": server }));
        let changed = fixture.transfer_as(&who, "UpdateServer", &change);
        for answer in [made, changed] {
            assert_eq!(answer.is_ok(), allowed, "{answer:?}");
            if let Err(refused) = answer {
                assert_eq!(refused.code, "AccessDeniedException");
                assert!(refused.message.contains("lambda:InvokeFunction"), "{}", refused.message);
            }
        }
        let now = if allowed { &wanted } else { &other };
        assert_eq!(described(&fixture, &server)["IdentityProviderDetails"]["Function"], *now);
    }
}

#[test]
fn accounts_and_regions_do_not_see_each_other() {
    let fixture = Fixture::new();
    let server = fixture.server(json!({}));
    fixture.sftp_user(&server, "alice", &role(&fixture, "users"), json!({}));
    let there = Who::admin().at("us-west-2");
    for who in [&Who::stranger(), &there] {
        let listed = fixture.transfer_as(who, "ListServers", &json!({})).unwrap();
        assert_eq!(listed["Servers"], json!([]));
        for (operation, more) in [
            ("DescribeServer", json!({})),
            ("StopServer", json!({})),
            ("DeleteServer", json!({})),
            ("ListUsers", json!({})),
            ("ListHostKeys", json!({})),
            ("DescribeUser", json!({ "UserName": "alice" })),
            ("DeleteUser", json!({ "UserName": "alice" })),
            ("ImportSshPublicKey", json!({ "UserName": "alice", "SshPublicKeyBody": key(9) })),
        ] {
            let body = with(&json!({ "ServerId": server }), more);
            let answer = fixture.transfer_as(who, operation, &body);
            assert_eq!(code(answer), "ResourceNotFoundException", "{operation}");
        }
        let arn = format!("arn:aws:transfer:{REGION}:{ACCOUNT}:server/{server}");
        let body = json!({ "Arn": arn });
        let answer = fixture.transfer_as(who, "ListTagsForResource", &body);
        assert_eq!(code(answer), "InvalidRequestException");
    }
}

/// AWS's console, CDK and Terraform keep the host name of a server in tags whose keys AWS reserves otherwise.
#[test]
fn tags_may_name_the_host_of_a_server() {
    let fixture = Fixture::new();
    let host = |key: &str| json!([{ "Key": key, "Value": "sftp.example" }]);
    let name = host("aws:transfer:customHostname");
    let server = fixture.server(json!({ "Tags": name }));
    let arn = format!("arn:aws:transfer:{REGION}:{ACCOUNT}:server/{server}");
    let zone = host("aws:transfer:route53HostedZoneId");
    fixture.transfer("TagResource", json!({ "Arn": arn, "Tags": zone })).unwrap();
    let found = fixture.transfer("ListTagsForResource", json!({ "Arn": arn })).unwrap();
    assert_eq!(found["Tags"].as_array().unwrap().len(), 2);
    for key in ["aws:transfer:other", "AWS:transfer:customHostname", "aws:cloudformation:stack-id"]
    {
        let error = fixture.transfer("TagResource", json!({ "Arn": arn, "Tags": host(key) }));
        assert_eq!(error.unwrap_err().code, "InvalidRequestException", "{key}");
    }
}
