//! The rows of Transfer Family.

use outlast_api::ops::TRANSFER;
use serde_json::{Value, json};

use super::Scene;
use super::spell::Form;
use super::table::{Case, pointer};
use crate::common::{ACCOUNT, Fixture, REGION, text, with};
use crate::transfer_support::{key, role};

/// A server with a user and a host key.
pub struct Served {
    pub server: String,
    pub host_key: String,
    pub role: String,
    pub workflow: String,
    pub execution: String,
    pub connector: String,
    pub transfer: String,
}

impl Served {
    pub fn new(fixture: &Fixture) -> Self {
        let (server, role) = (fixture.server(json!({})), role(fixture, "sftp-users"));
        fixture.sftp_user(&server, "alice", &role, json!({}));
        let listed = fixture.transfer("ListHostKeys", json!({ "ServerId": server })).unwrap();
        let host_key = text(&listed["HostKeys"][0]["HostKeyId"]).to_owned();
        let (workflow, execution) = crate::workflow_support::attach_and_upload(fixture, &server);
        // Its access role is another one, so that its record does not mention the role that is swept.
        let connector =
            fixture.connector(&crate::transfer_support::role(fixture, "sftp-others"), json!({}));
        let transfer = fixture.send_files(&connector, &["/files/a"]);
        Self { server, host_key, role, workflow, execution, connector, transfer }
    }

    fn arn(&self, resource: &str) -> String {
        format!("arn:aws:transfer:{REGION}:{ACCOUNT}:{resource}")
    }
}

/// Resources of Transfer Family under their names.
pub fn cases(scene: &Scene) -> Vec<Case> {
    let served = &scene.served;
    let server = served.arn(&format!("server/{}", served.server));
    let user = served.arn(&format!("user/{}/alice", served.server));
    let host_key = served.arn(&format!("host-key/{}/{}", served.server, served.host_key));
    let of_server = json!({});
    let of_user = json!({ "UserName": "alice" });
    let of_host_key = json!({ "HostKeyId": served.host_key });
    let new_user = json!({ "UserName": "bob", "Role": served.role });
    let import = with(&of_user, json!({ "SshPublicKeyBody": key(7) }));
    let private = outlast_ssh::PrivateKey::generate(outlast_ssh::KeyKind::Ed25519).unwrap();
    let private = private.to_openssh_pem("").unwrap();
    let private = json!({ "HostKeyBody": String::from_utf8_lossy(private.expose()) });
    let rows: Vec<(&str, &Value, &str)> = vec![
        ("DescribeServer", &of_server, &server),
        ("UpdateServer", &of_server, &server),
        ("DeleteServer", &of_server, &server),
        ("StartServer", &of_server, &server),
        ("StopServer", &of_server, &server),
        ("CreateUser", &new_user, &server),
        ("ListUsers", &of_server, &server),
        ("ListHostKeys", &of_server, &server),
        ("ImportHostKey", &private, &server),
        ("DescribeUser", &of_user, &user),
        ("UpdateUser", &of_user, &user),
        ("DeleteUser", &of_user, &user),
        ("ImportSshPublicKey", &import, &user),
        ("DescribeHostKey", &of_host_key, &host_key),
        ("UpdateHostKey", &of_host_key, &host_key),
        ("DeleteHostKey", &of_host_key, &host_key),
    ];
    let case =
        |operation: &'static str, member, body: &Value, name: &str, form, resource: &str| Case {
            service: &TRANSFER,
            operation,
            member,
            body: pointer(body, member),
            names: vec![(name.to_owned(), form)],
            deny: json!({ "Action": format!("transfer:{operation}"), "Resource": resource }),
            has_policy: false,
            names_others: false,
            fails: false,
        };
    let mut all = Vec::new();
    for (operation, body, resource) in rows {
        all.push(case(operation, "/ServerId", body, &served.server, Form::Word, resource));
        let whole = with(body, json!({ "ServerId": served.server }));
        for (member, name) in [("/UserName", "alice"), ("/HostKeyId", &served.host_key)] {
            if body.pointer(member) == Some(&json!(name)) {
                all.push(case(operation, member, &whole, name, Form::Word, resource));
            }
        }
    }
    let workflow = served.arn(&format!("workflow/{}", served.workflow));
    let of_execution = json!({ "ExecutionId": served.execution });
    let answer = with(&of_execution, json!({ "Token": "0", "Status": "SUCCESS" }));
    for (operation, body, fails) in [
        ("DescribeWorkflow", json!({}), false),
        ("DeleteWorkflow", json!({}), true),
        ("ListExecutions", json!({}), false),
        ("DescribeExecution", of_execution, false),
        ("SendWorkflowStepState", answer, true),
    ] {
        let name = &served.workflow;
        let made = case(operation, "/WorkflowId", &body, name, Form::Word, &workflow);
        all.push(Case { fails, ..made });
        if body.get("ExecutionId").is_some() {
            let whole = with(&body, json!({ "WorkflowId": name }));
            let name = &served.execution;
            let made = case(operation, "/ExecutionId", &whole, name, Form::Word, &workflow);
            all.push(Case { fails, ..made });
        }
    }
    let connector = served.arn(&format!("connector/{}", served.connector));
    let listing = json!({ "RemoteDirectoryPath": "/", "OutputDirectoryPath": "/files" });
    for (operation, body) in [
        ("DescribeConnector", json!({})),
        ("UpdateConnector", json!({})),
        ("DeleteConnector", json!({})),
        ("StartFileTransfer", json!({ "SendFilePaths": ["/files/a"] })),
        ("StartDirectoryListing", listing),
        ("StartRemoteDelete", json!({ "DeletePath": "/a" })),
        ("StartRemoteMove", json!({ "SourcePath": "/a", "TargetPath": "/b" })),
        ("ListFileTransferResults", json!({ "TransferId": served.transfer })),
    ] {
        let id = &served.connector;
        all.push(case(operation, "/ConnectorId", &body, id, Form::Word, &connector));
    }
    let of_connector = json!({ "ConnectorId": served.connector });
    let results = "ListFileTransferResults";
    let id = &served.transfer;
    all.push(case(results, "/TransferId", &of_connector, id, Form::Word, &connector));
    let id = &served.connector;
    let tested = case("TestConnection", "/ConnectorId", &json!({}), id, Form::Word, &connector);
    // The role of this connector may not read its secret: that is the result of the test, and nobody is asked.
    all.push(tested);
    let named = json!({ "ServerId": served.server, "UserName": "alice" });
    let id = scene.world.fixture.transfer("DescribeUser", named.clone()).unwrap();
    let id = &id["User"]["SshPublicKeys"][0]["SshPublicKeyId"];
    let delete = with(&of_user, json!({ "SshPublicKeyId": id }));
    all.push(case("DeleteSshPublicKey", "/ServerId", &delete, &served.server, Form::Word, &user));
    let tested =
        case("TestIdentityProvider", "/ServerId", &of_user, &served.server, Form::Word, &user);
    all.push(Case { fails: true, ..tested });
    for (operation, body) in [
        ("TagResource", json!({ "Tags": [{ "Key": "a", "Value": "b" }] })),
        ("UntagResource", json!({ "TagKeys": ["a"] })),
        ("ListTagsForResource", json!({})),
    ] {
        for arn in [&server, &user, &host_key, &workflow, &connector] {
            all.push(case(operation, "/Arn", &body, arn, Form::Arn, arn));
        }
    }
    let update = json!({ "ServerId": served.server });
    let bob = with(&update, json!({ "UserName": "bob" }));
    let url = json!({ "Url": "sftp://a.example" });
    let access = with(
        &url,
        json!({ "AccessRole": crate::transfer_support::connector_role(&scene.world.fixture, "connectors") }),
    );
    for (operation, member, body) in [
        ("CreateServer", "/LoggingRole", &of_server),
        ("UpdateServer", "/LoggingRole", &update),
        ("CreateUser", "/Role", &bob),
        ("UpdateUser", "/Role", &named),
        ("CreateConnector", "/AccessRole", &url),
        ("CreateConnector", "/LoggingRole", &access),
        ("UpdateConnector", "/AccessRole", &of_connector),
        ("UpdateConnector", "/LoggingRole", &of_connector),
    ] {
        let role = &served.role;
        let foreign = role.replacen("arn:aws:", "arn:aws-cn:", 1);
        let case = case(operation, member, body, role, Form::Arn, role);
        let deny = json!({ "Action": "iam:PassRole", "Resource": role });
        // Another name is that of another role, which need not exist yet.
        let case = Case { names_others: true, ..case };
        all.push(Case {
            names: vec![(role.clone(), Form::Arn), (foreign, Form::Arn)],
            deny,
            ..case
        });
    }
    all
}
