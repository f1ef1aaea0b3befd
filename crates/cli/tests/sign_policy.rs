//! `outlast verify --policy`: files of policies, built-in policies, dry runs, and the form of the output.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::common::{fail, outlast, run, stderr, stdout, succeed};
use crate::sign_dual::{Dual, dual};

fn scene() -> Dual {
    let dual = dual(("ECC_NIST_P256", "EC_prime256v1", "SHA256WITHECDSA"));
    let file = dual.folder.write("release.bin", b"release");
    succeed(dual.sign().arg(&file).arg("--classical-copy"));
    dual
}

fn verify(dual: &Dual, policy: &str, file: &str) -> Command {
    let mut command = outlast();
    let policy = if policy.starts_with("builtin:") {
        policy.into()
    } else {
        dual.folder.write("release.toml", policy.as_bytes()).into_os_string()
    };
    command.arg("verify").arg(dual.folder.path(file)).arg("--policy").arg(policy);
    command
}

fn rule(text: &str) -> String {
    format!("[[rule]]\nname = \"releases\"\nfiles = \"*.bin\"\ntrust = \"roots.pem\"\n{text}\n")
}

#[test]
fn a_policy_says_who_counts_and_why_others_do_not() {
    let scene = scene();
    let said =
        succeed(&mut verify(&scene, &rule("algorithms = \"ml-dsa-65 or better\""), "release.bin"));
    assert!(
        said.contains("verified ") && said.contains("ML_DSA_65 by \"CN=Release ML_DSA_65\""),
        "{said}"
    );
    assert!(said.contains("; rule \"releases\""), "{said}");
    assert!(
        said.contains("ignored ") && said.contains("ecdsa-p256 is not ml-dsa-65 or better"),
        "{said}"
    );
    // Each signer is named where nobody counts.
    let strict = rule("algorithms = \"ml-dsa-87\"\nsubject = \"CN=Release EC*\"");
    let text = fail(&mut verify(&scene, &strict, "release.bin"), 3);
    assert!(
        text.contains("rule \"releases\" of release.toml lacks a signer with ml-dsa-87"),
        "{text}"
    );
    assert!(
        text.contains("\"CN=Release ML_DSA_65\" does not count: its subject is none of the rule"),
        "{text}"
    );
    assert!(
        text.contains("\"CN=Release EC_prime256v1\" does not count: its algorithm ecdsa-p256"),
        "{text}"
    );
    assert!(text.contains("hint: outlast verify --explain --policy "), "{text}");
    let both = rule("algorithms = { all_of = [\"classical\", \"ml-dsa-65 or better\"] }");
    let said = succeed(&mut verify(&scene, &both, "release.bin"));
    assert_eq!(said.lines().filter(|line| line.starts_with("verified ")).count(), 2, "{said}");
    let copy = scene.folder.path("release.bin.classical.p7s");
    let text = fail(verify(&scene, &both, "release.bin").arg("--signature").arg(&copy), 3);
    assert!(
        text.contains("lacks a signer with ml-dsa-65 or better") && text.contains("\" counts"),
        "{text}"
    );
    // The rule's roots, not those of the command line.
    let other = rule("").replace("roots.pem", "other.pem");
    let text = fail(&mut verify(&scene, &other, "release.bin"), 1);
    assert!(text.contains("rule \"releases\": ") && text.contains("other.pem"), "{text}");
    let trust = "[[rule]]\nfiles = \"*.bin\"\n";
    let text = fail(&mut verify(&scene, trust, "release.bin"), 1);
    assert!(
        text.contains("names no root, no certificate and no key") && text.contains("--trust"),
        "{text}"
    );
    succeed(verify(&scene, trust, "release.bin").arg("--trust").arg(&scene.roots));
    // What a rule does not relax.
    let text = fail(verify(&scene, &rule(""), "release.bin").args(["--revocation", "required"]), 3);
    assert!(text.contains("its revocation status cannot be determined"), "{text}");
    let mut explain = outlast();
    explain
        .args(["verify", "--explain", "--policy"])
        .arg(scene.folder.write("p.toml", both.as_bytes()));
    let said = succeed(&mut explain);
    assert!(
        said.contains("2 signers with different keys: one with classical; one with ml-dsa-65"),
        "{said}"
    );
}

#[test]
fn a_name_or_a_mistake_gets_around_no_rule() {
    let scene = scene();
    let folder = |name: &str| scene.folder.path(name);
    let lax = format!(
        "[[rule]]\nfiles = \"docs/**\"\ntrust = \"roots.pem\"\n{}",
        rule("algorithms = \"ml-dsa-87\"").replace("*.bin", "app/*.bin")
    );
    let policy = scene.folder.write("release.toml", lax.as_bytes());
    for name in ["docs", "app"] {
        std::fs::create_dir(folder(name)).unwrap();
        for part in ["release.bin", "release.bin.p7s"] {
            std::fs::copy(folder(part), folder(name).join(part)).unwrap();
        }
    }
    std::os::unix::fs::symlink("../docs/release.bin", folder("app/link.bin")).unwrap();
    std::fs::copy(folder("release.bin.p7s"), folder("app/link.bin.p7s")).unwrap();
    std::os::unix::fs::symlink("app", folder("docs/app")).unwrap();
    let from_here = |name: &str| {
        let mut command = outlast();
        command.current_dir(folder("")).arg("verify").arg(name).arg("--policy").arg(&policy);
        command
    };
    succeed(&mut from_here("docs/release.bin"));
    succeed(&mut from_here("./docs//release.bin"));
    for (name, reason) in [
        ("app/release.bin", "lacks a signer with ml-dsa-87"),
        ("app/link.bin", "lacks a signer with ml-dsa-87"),
        ("docs/../app/release.bin", "does not judge names with .."),
        ("release.bin", "no rule of release.toml is for this file"),
        ("Docs/release.bin", "no rule of release.toml is for this file"),
    ] {
        let text = fail(&mut from_here(name), 3);
        assert!(text.contains(reason) && text.contains("hint: "), "{name}: {text}");
    }
    for (text, reason, hint) in [
        ("algorithm = \"any\"", "has no key algorithm", "did you mean algorithms?"),
        ("algorithms = \"ml-dsa-66\"", "is no algorithm", "did you mean ml-dsa-65?"),
        ("timestamp = \"yes\"", "is not known", "there are: required, if-available, off"),
        ("revocation = \"require\"", "is not known", "did you mean required?"),
    ] {
        let said = fail(&mut verify(&scene, &rule(text), "release.bin"), 1);
        assert!(said.contains(reason) && said.contains(hint), "{said}");
    }
}

#[test]
fn built_in_policies_have_dates_and_dry_runs_refuse_nothing() {
    let scene = scene();
    let text = fail(&mut verify(&scene, "builtin:nist-ir-8547", "release.bin"), 1);
    assert!(text.contains("--trust"), "{text}");
    let text = fail(&mut verify(&scene, "builtin:cnsa-2", "release.bin"), 2);
    assert!(text.contains("did you mean builtin:cnsa-2.0?"), "{text}");
    let copy = scene.folder.path("release.bin.classical.p7s");
    let judged = |policy: &str, date: &str| {
        let mut command = verify(&scene, policy, "release.bin");
        command.args(["--as-of", date, "--signature"]).arg(&copy).arg("--trust").arg(&scene.roots);
        command
    };
    succeed(&mut judged("builtin:nist-ir-8547", "2035-12-31"));
    let text = fail(&mut judged("builtin:nist-ir-8547", "2036-01-01"), 3);
    assert!(text.contains("ecdsa-p256 is not post-quantum"), "{text}");
    let text = fail(&mut judged("builtin:cnsa-2.0", "2029-12-31"), 3);
    assert!(text.contains("ecdsa-p256 is not ml-dsa-87, or rsa-3072"), "{text}");

    let tree = scene.folder.path("old");
    std::fs::create_dir_all(tree.join("linux")).unwrap();
    for (name, signature) in
        [("dual.bin", "release.bin.p7s"), ("linux/classical.bin", "release.bin.classical.p7s")]
    {
        std::fs::copy(scene.folder.path("release.bin"), tree.join(name)).unwrap();
        std::fs::copy(scene.folder.path(signature), tree.join(format!("{name}.p7s"))).unwrap();
    }
    std::fs::write(tree.join("unsigned.txt"), "x").unwrap();
    let all = |policy: &str| {
        let mut command = outlast();
        command.arg("verify").arg("--recursive").arg(&tree).args([
            "--policy",
            policy,
            "--as-of",
            "2036-01-01",
        ]);
        command.arg("--trust").arg(&scene.roots);
        command
    };
    let output = run(all("builtin:nist-ir-8547").arg("--dry-run"));
    let said = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{said}{}", stderr(&output));
    assert!(said.contains("would accept ") && said.contains("dual.bin"), "{said}");
    assert!(said.contains("would refuse ") && said.contains("classical.bin"), "{said}");
    assert!(
        said.contains("would fail for ") && said.contains("2 of 3 files would not be accepted"),
        "{said}"
    );
    fail(&mut all("builtin:nist-ir-8547"), 3);
    // Names are those below the folder.
    let policy = scene.folder.write("tree.toml", rule("").replace("*.bin", "linux/*").as_bytes());
    let said = succeed(all(policy.to_str().unwrap()).arg("--dry-run"));
    assert!(said.contains("would accept ") && said.contains("linux/classical.bin"), "{said}");
    assert!(said.contains("no rule of tree.toml is for this file"), "{said}");

    let sarif = scene.folder.path("report.sarif");
    fail(all("builtin:nist-ir-8547").arg("--sarif").arg(&sarif), 3);
    let report: Value = serde_json::from_slice(&std::fs::read(&sarif).unwrap()).unwrap();
    assert_eq!(report["version"], "2.1.0");
    let results = report["runs"][0]["results"].as_array().unwrap();
    assert_eq!(results.len(), 2, "{report}");
    assert_eq!(results[0]["ruleId"], "refused");
    assert_eq!(results[1]["ruleId"], "failed");
    let location = &results[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
    assert!(location.as_str().unwrap().ends_with("linux/classical.bin"), "{report}");
}

#[test]
fn json_is_as_its_schema_says() {
    let schema = schema();
    let scene = scene();
    let changed = scene.folder.write("changed.bin", b"other");
    std::fs::copy(scene.folder.path("release.bin.p7s"), scene.folder.path("changed.bin.p7s"))
        .unwrap();
    let strict = rule("algorithms = \"ml-dsa-65\"");
    let hybrid = rule("algorithms = \"ml-dsa-87\"");
    let mut plain = outlast();
    plain
        .arg("verify")
        .arg(scene.folder.path("release.bin"))
        .arg(&changed)
        .arg("--trust")
        .arg(&scene.roots);
    let json = |command: &mut Command| -> Value {
        let said = stdout(&run(command.args(["--output", "json"])));
        serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"))
    };
    let no_rule = rule("").replace("*.bin", "*.exe");
    let outcomes = [
        (json(&mut plain), "verified"),
        (json(&mut verify(&scene, &no_rule, "release.bin")), "refused"),
        (json(&mut verify(&scene, &strict, "release.bin")), "verified"),
        (json(verify(&scene, &hybrid, "release.bin").args(["--at", "now"])), "refused"),
        (json(&mut verify(&scene, &rule(""), "absent.bin")), "failed"),
    ];
    for (value, outcome) in &outcomes {
        assert_eq!(value[0]["outcome"], *outcome, "{value:#}");
        conforms(&schema, &schema, value, "$").unwrap_or_else(|fault| panic!("{fault}\n{value:#}"));
    }
    // A refused file names its signers, too.
    let (plain, _) = &outcomes[0];
    assert_eq!(plain[1]["outcome"], "refused");
    assert_eq!(plain[1]["signers"].as_array().unwrap().len(), 2, "{plain:#}");
    let (judged, _) = &outcomes[3];
    assert!(judged[0]["signers"].as_array().unwrap().iter().all(|one| one["counts"] == false));
    // The checker notices what the schema does not allow.
    let mut wrong = outcomes[2].0.clone();
    wrong[0]["signers"][0]["counts"] = "yes".into();
    assert!(conforms(&schema, &schema, &wrong, "$").is_err());
    wrong = outcomes[2].0.clone();
    wrong[0]["more"] = 1.into();
    assert!(conforms(&schema, &schema, &wrong, "$").is_err());
}

fn schema() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas/verify.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Asserts that what `verify` prints is as its schema says.
pub fn conforms_to_schema(value: &Value) {
    let schema = schema();
    conforms(&schema, &schema, value, "$").unwrap_or_else(|fault| panic!("{fault}\n{value:#}"));
}

/// Checks that what a command prints as JSON is as the schema of `outlast verify` says.
pub fn check_schema(command: &mut Command) {
    let said = stdout(&run(command.args(["--output", "json"])));
    let value = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
    conforms_to_schema(&value);
}

/// Checks a value by the keywords of JSON Schema that the schemas use; any other keyword is a fault.
pub fn conforms(root: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    for (keyword, wanted) in schema.as_object().unwrap() {
        match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" => {}
            "$ref" => {
                let target =
                    root.pointer(wanted.as_str().unwrap().trim_start_matches('#')).unwrap();
                conforms(root, target, value, at)?;
            }
            "enum" if wanted.as_array().unwrap().contains(value) => {}
            "type" => {
                let name = match value {
                    Value::Null => "null",
                    Value::Bool(_) => "boolean",
                    Value::Number(number) if number.is_u64() => "integer",
                    Value::Number(_) => "number",
                    Value::String(_) => "string",
                    Value::Array(_) => "array",
                    Value::Object(_) => "object",
                };
                let fits = wanted == name
                    || wanted.as_array().is_some_and(|list| list.contains(&name.into()));
                fits.then_some(()).ok_or_else(|| format!("{at} is a {name}, not {wanted}"))?;
            }
            "required" => {
                for name in wanted.as_array().unwrap() {
                    let found = value.get(name.as_str().unwrap());
                    found.ok_or_else(|| format!("{at} lacks {name}"))?;
                }
            }
            "properties" => {
                for (name, below) in value.as_object().unwrap() {
                    if let Some(schema) = wanted.get(name) {
                        conforms(root, schema, below, &format!("{at}.{name}"))?;
                    }
                }
            }
            "additionalProperties" => {
                let known = schema["properties"].as_object().unwrap();
                let more =
                    value.as_object().unwrap().keys().find(|name| !known.contains_key(*name));
                more.map_or(Ok(()), |name| Err(format!("{at} has {name}")))?;
            }
            "items" => {
                for (index, below) in value.as_array().unwrap().iter().enumerate() {
                    conforms(root, wanted, below, &format!("{at}[{index}]"))?;
                }
            }
            _ => return Err(format!("{at}: {keyword} {wanted} does not hold")),
        }
    }
    Ok(())
}
