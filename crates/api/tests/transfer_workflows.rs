//! Workflows: what is refused, and what a server names.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use serde_json::{Value, json};

use crate::common::{ACCOUNT, Fixture, OTHER_ACCOUNT, REGION, Who, code, policy, text, with};
use crate::workflow_support::{FUNCTION, copy, custom, delete, execution_role, tag, workflow};

#[test]
fn steps_that_make_no_sense_are_refused() {
    let fixture = Fixture::new();
    let details = |step: Value, more: Value| {
        let name = step.as_object().unwrap().keys().find(|name| *name != "Type").unwrap().clone();
        let inner = with(&step[&name], more);
        with(&step, json!({ name: inner }))
    };
    let efs = json!({ "EfsFileLocation": { "FileSystemId": "fs-01234567", "Path": "/x" } });
    let twice = json!([{ "Key": "a", "Value": "1" }, { "Key": "a", "Value": "2" }]);
    let decrypt = json!({ "Type": "PGP", "DestinationFileLocation": efs });
    for (steps, expected) in [
        (json!([]), "at least one step"),
        (json!([{ "CopyStepDetails": {} }]), "needs a Type"),
        (json!([{ "Type": "COPY" }]), "the details of this type"),
        (json!([with(&copy("x"), json!({ "DeleteStepDetails": {} }))]), "and no others"),
        (json!([{ "Type": "COPY", "CopyStepDetails": {} }]), "needs a bucket"),
        (json!([details(copy("x"), json!({ "DestinationFileLocation": efs }))]), "domain is S3"),
        (json!([copy("../x")]), "without empty names"),
        (json!([copy("${transfer:HomeFolder}/")]), "${transfer:UserName}"),
        (json!([{ "Type": "TAG", "TagStepDetails": {} }]), "needs Tags"),
        (json!([details(tag(), json!({ "Tags": twice }))]), "the key a twice"),
        (json!([delete("${other.file}")]), "${original.file}"),
        (json!([{ "Type": "DECRYPT", "DecryptStepDetails": decrypt }]), "there is no PGP"),
        (json!([{ "Type": "CUSTOM", "CustomStepDetails": {} }]), "needs a Target"),
        (
            json!([details(
                custom(1),
                json!({ "Target": FUNCTION.replace("eu-west-1", "us-east-1") })
            )]),
            "in eu-west-1",
        ),
        (
            json!([details(
                custom(1),
                json!({ "Target": FUNCTION.replace(ACCOUNT, OTHER_ACCOUNT) })
            )]),
            ACCOUNT,
        ),
    ] {
        for body in
            [json!({ "Steps": steps }), json!({ "Steps": [tag()], "OnExceptionSteps": steps })]
        {
            if body["OnExceptionSteps"] == json!([]) {
                continue;
            }
            let refused = fixture.transfer("CreateWorkflow", body).unwrap_err();
            assert_eq!(refused.code, "InvalidRequestException", "{steps}");
            assert!(refused.message.contains(expected), "{steps}: {}", refused.message);
        }
    }
    for steps in [json!(vec![tag(); 9]), json!([custom(0)]), json!([custom(1801)])] {
        let answer = fixture.transfer("CreateWorkflow", json!({ "Steps": steps }));
        assert_eq!(code(answer), "ValidationException", "{steps}");
    }
    assert_eq!(fixture.transfer("ListWorkflows", json!({})).unwrap()["Workflows"], json!([]));
    // Where the operator has named functions, there are no others.
    fixture.service.set_settings(outlast_domain::settings::Settings {
        workflow_functions: Some(Default::default()),
        ..Default::default()
    });
    let refused = fixture.transfer("CreateWorkflow", json!({ "Steps": [custom(1)] })).unwrap_err();
    assert!(refused.message.contains("operator has configured"), "{}", refused.message);
}

#[test]
fn a_workflow_is_described_as_it_was_made() {
    let fixture = Fixture::new();
    let steps = json!([
        with(&copy("in/${transfer:UserName}/"), json!({})),
        tag(),
        custom(30),
        delete("${original.file}"),
    ]);
    let new = json!({
        "Description": "all kinds", "Steps": steps, "OnExceptionSteps": [tag()],
        "Tags": [{ "Key": "team", "Value": "files" }],
    });
    let made = fixture.transfer("CreateWorkflow", new).unwrap();
    let id = text(&made["WorkflowId"]).to_owned();
    let named = json!({ "WorkflowId": id });
    let found = fixture.transfer("DescribeWorkflow", named.clone()).unwrap()["Workflow"].clone();
    let arn = format!("arn:aws:transfer:{REGION}:{ACCOUNT}:workflow/{id}");
    assert_eq!((&found["Arn"], &found["Description"]), (&json!(arn), &json!("all kinds")));
    assert_eq!(found["Tags"], json!([{ "Key": "team", "Value": "files" }]));
    let mut expected = steps;
    expected[0]["CopyStepDetails"]["OverwriteExisting"] = json!("FALSE");
    assert_eq!(found["Steps"], expected);
    assert_eq!(found["OnExceptionSteps"], json!([tag()]));
    let listed = fixture.transfer("ListWorkflows", json!({})).unwrap();
    let row = json!({ "WorkflowId": id, "Arn": arn, "Description": "all kinds" });
    assert_eq!(listed["Workflows"], json!([row]));
    // Nobody else sees it.
    for who in [Who::stranger(), Who::admin().at("us-west-2")] {
        let answer = fixture.transfer_as(&who, "DescribeWorkflow", &named);
        assert_eq!(code(answer), "ResourceNotFoundException");
        let listed = fixture.transfer_as(&who, "ListWorkflows", &json!({})).unwrap();
        assert_eq!(listed["Workflows"], json!([]));
        let answer = fixture.transfer_as(&who, "DeleteWorkflow", &named);
        assert_eq!(code(answer), "ResourceNotFoundException");
    }
    fixture.transfer("DeleteWorkflow", named.clone()).unwrap();
    assert_eq!(code(fixture.transfer("DescribeWorkflow", named)), "ResourceNotFoundException");
}

#[test]
fn a_server_names_workflows_that_exist_and_roles_that_its_administrator_may_pass() {
    let fixture = Fixture::new();
    let (one, two) = (
        workflow(&fixture, json!([tag()]), json!([])),
        workflow(&fixture, json!([tag()]), json!([])),
    );
    let role = execution_role(&fixture, "workflows");
    let attached = |id: &str, role: &str| json!([{ "WorkflowId": id, "ExecutionRole": role }]);
    let missing =
        json!({ "WorkflowDetails": { "OnUpload": attached("w-00000000000000000", &role) } });
    let refused = fixture.transfer("CreateServer", missing.clone()).unwrap_err();
    assert!(refused.message.contains("There is no workflow"), "{}", refused.message);
    assert_eq!(refused.code, "InvalidRequestException");
    let foreign = role.replace(ACCOUNT, OTHER_ACCOUNT);
    let foreign = json!({ "WorkflowDetails": { "OnUpload": attached(&one, &foreign) } });
    assert_eq!(code(fixture.transfer("CreateServer", foreign)), "AccessDeniedException");
    let details =
        json!({ "OnUpload": attached(&one, &role), "OnPartialUpload": attached(&two, &role) });
    let server = fixture.server(json!({ "WorkflowDetails": details }));
    let named = json!({ "ServerId": server });
    let shown = || fixture.transfer("DescribeServer", named.clone()).unwrap()["Server"].clone();
    assert_eq!(shown()["WorkflowDetails"], details);
    assert_eq!(
        code(fixture.transfer("UpdateServer", with(&named, missing))),
        "InvalidRequestException"
    );
    // Only who may pass the role may name it.
    let all = json!({ "Effect": "Allow", "Action": "transfer:*", "Resource": "*" });
    let pass = json!({ "Effect": "Allow", "Action": "iam:PassRole", "Resource": role });
    for (name, statements, allowed) in
        [("without", json!([all]), false), ("passer", json!([all, pass]), true)]
    {
        let who = fixture.user(ACCOUNT, name, &[policy(statements)]);
        let update =
            with(&named, json!({ "WorkflowDetails": { "OnUpload": attached(&two, &role) } }));
        let answer = fixture.transfer_as(&who, "UpdateServer", &update);
        assert_eq!(answer.is_ok(), allowed, "{answer:?}");
    }
    assert_eq!(shown()["WorkflowDetails"]["OnUpload"], attached(&two, &role));
    assert_eq!(shown()["WorkflowDetails"]["OnPartialUpload"], attached(&two, &role));
    // One that is named stays.
    fixture.transfer("DeleteWorkflow", json!({ "WorkflowId": one })).unwrap();
    let delete = json!({ "WorkflowId": two });
    let refused = fixture.transfer("DeleteWorkflow", delete.clone()).unwrap_err();
    assert_eq!(refused.code, "InvalidRequestException");
    assert_eq!(refused.message, format!("Workflow is still in use by server {server}"));
    let none = json!({ "OnUpload": [] });
    fixture.transfer("UpdateServer", with(&named, json!({ "WorkflowDetails": none }))).unwrap();
    assert!(shown()["WorkflowDetails"]["OnUpload"].is_null());
    assert_eq!(code(fixture.transfer("DeleteWorkflow", delete.clone())), "InvalidRequestException");
    let none = json!({ "OnPartialUpload": [] });
    fixture.transfer("UpdateServer", with(&named, json!({ "WorkflowDetails": none }))).unwrap();
    assert!(shown()["WorkflowDetails"].is_null());
    fixture.transfer("DeleteWorkflow", delete).unwrap();
}
