//! `outlast store check` on records that belong to keys, users and audit events: each kind of damage is named.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::common;

use common::{Folder, outlast, run, runtime, stderr, stdout, succeed};
use outlast_api::ops::kms::{
    create_grant, create_key, encrypt, get_parameters_for_import, rotate_key_on_demand,
};
use serde_json::{Value, json};

const SCOPE: &str = "123456789012/us-east-1";

/// A store with a grant, a key that was rotated and used, one that waits for its import, a user and a role.
fn filled() -> Folder {
    let folder = Folder::new();
    let mut server = folder.serve();
    runtime().block_on(async {
        let mut session = server.session().await.unwrap();
        let made = session.call::<create_key::CreateKey>(json!({})).await.unwrap().unwrap();
        let key = made.key_metadata.key_id;
        let administrator = "arn:aws:iam::123456789012:user/administrator";
        let request = json!({
            "KeyId": key, "GranteePrincipal": administrator, "RetiringPrincipal": administrator,
            "Operations": ["Decrypt"],
        });
        session.call::<create_grant::CreateGrant>(request).await.unwrap().unwrap();
        let request = json!({ "KeyId": key });
        session.call::<rotate_key_on_demand::RotateKeyOnDemand>(request).await.unwrap().unwrap();
        let request = json!({ "KeyId": key, "Plaintext": "aGVsbG8=" });
        session.call::<encrypt::Encrypt>(request).await.unwrap().unwrap();
        let request = json!({ "Origin": "EXTERNAL" });
        let made = session.call::<create_key::CreateKey>(request).await.unwrap().unwrap();
        let request = json!({
            "KeyId": made.key_metadata.key_id, "WrappingAlgorithm": "RSAES_OAEP_SHA_256",
            "WrappingKeySpec": "RSA_2048",
        });
        type Parameters = get_parameters_for_import::GetParametersForImport;
        session.call::<Parameters>(request).await.unwrap().unwrap();
    });
    assert_eq!(server.terminate(), Some(0));
    succeed(outlast().args(["principal", "create", "alice", "--data"]).arg(&folder.data));
    folder
}

fn report(folder: &Folder, expected: i32, after: &str) -> Value {
    let output =
        run(outlast().args(["store", "check", "--output", "json", "--data"]).arg(&folder.data));
    let said = stdout(&output) + &stderr(&output);
    assert_eq!(output.status.code(), Some(expected), "{after}: {said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn what_does_not_belong_together_is_named() {
    let folder = filled();
    let good = report(&folder, 0, "");
    assert_eq!((&good["keys"], &good["problem_count"]), (&json!(2), &json!(0)), "{good}");
    let database = rusqlite::Connection::open(folder.data.join("store.db")).unwrap();
    let one =
        |prefix: &str| format!("key = (SELECT min(key) FROM record WHERE key LIKE '{prefix}%')");
    let delete = |prefix: &str| format!("DELETE FROM record WHERE {}", one(prefix));
    let insert = |key: &str, value: &str| {
        format!("INSERT INTO record VALUES ('{key}', 99999, CAST('{value}' AS BLOB))")
    };
    let replace = |prefix: &str, from: &str, to: &str| {
        format!(
            "UPDATE record SET value = CAST(replace(CAST(value AS TEXT), '{from}', '{to}') AS BLOB) \
             WHERE {}",
            one(prefix)
        )
    };
    let orphan = format!("{SCOPE}/00000000-0000-4000-8000-000000000000");
    // The key with two materials.
    let rotated = "key LIKE 'kms/key/%' AND \
                   instr(value, CAST('\"rotation_type\":\"ON_DEMAND\"' AS BLOB)) > 0";
    // The JSON follows 49 bytes that authenticate it.
    let (head, json) = ("substr(value, 1, 49)", "CAST(substr(value, 50) AS TEXT)");
    let absent = "{\"present\":false,\"form\":\"raw\",\"description\":\"\"}";
    let gone = format!(
        "UPDATE record SET value = CAST({head} || json_set({json}, '$.materials[0].import', json('{absent}')) AS BLOB) \
         WHERE {rotated}"
    );
    let unlisted = format!(
        "UPDATE record SET value = CAST({head} || json_remove({json}, '$.materials[0]') AS BLOB) WHERE {rotated}"
    );
    for (sql, place, what) in [
        (delete("kms/material/"), "kms/key/", "key material is missing"),
        (gone, "kms/material/", "this material was deleted"),
        (unlisted, "kms/material/", "does not list this material"),
        (delete("kms/grant/"), "kms/grant-of/", "no such grant"),
        (insert(&format!("kms/grant/{orphan}/x"), "{}"), "kms/grant/", "its key is missing"),
        (insert(&format!("kms/last-use/{orphan}"), "{}"), "kms/last-use/", "its key is missing"),
        (insert(&format!("kms/import/{orphan}/x"), "{}"), "kms/import/", "its key is missing"),
        (delete("kms/import-secret/"), "kms/import/", "secret is missing"),
        (delete("kms/import/"), "kms/import-secret/", "the record that this secret"),
        (delete("iam/access-key/"), "iam/user/", "lists an access key that does not exist"),
        (delete("iam/user/"), "iam/access-key/", "its user does not list it"),
        (replace("iam/user/", "\"access_keys\":[\"", "\"access_keys\":[\"X"), "iam/user/", "lists"),
        (replace("iam/user/", "{", "["), "iam/user/", "neither sealed nor JSON"),
        (replace("iam/user/", "\"policies\"", "\"other\""), "iam/user/", "cannot be read"),
        (delete("audit/head"), "audit/head", "missing"),
        (delete("audit/log-key"), "audit/signed-head", "key that signs the log is missing"),
        (delete("audit/signed-head"), "audit/signed-head", "missing"),
        ("DELETE FROM event WHERE sequence >= 5".into(), "audit/head", "signed and are missing"),
    ] {
        database
            .execute_batch(
                "CREATE TABLE r AS SELECT * FROM record; CREATE TABLE e AS SELECT * FROM event;",
            )
            .unwrap();
        assert!(database.execute(&sql, []).unwrap() > 0, "{sql}");
        let found = report(&folder, 1, &sql);
        let problems = found["problems"].as_array().unwrap();
        let named = problems.iter().any(|problem| {
            problem["place"].as_str().unwrap().starts_with(place)
                && problem["what"].as_str().unwrap().contains(what)
        });
        assert!(named && problems.len() <= 6, "{sql}: {found}");
        database
            .execute_batch(
                "DELETE FROM record; INSERT INTO record SELECT * FROM r; DROP TABLE r;
                 DELETE FROM event; INSERT INTO event SELECT * FROM e; DROP TABLE e;",
            )
            .unwrap();
    }
    assert_eq!(report(&folder, 0, ""), good);
}
