//! The table of partitions compared with botocore's, where the Python peer is installed.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use std::collections::BTreeMap;
use std::process::Command;

use outlast_domain::partition::{PARTITIONS, Partition};

/// Prints each Region's partition as botocore finds it: for all Regions that it lists, and for those in the
/// arguments.
const SCRIPT: &str = "
import json, sys
import botocore.loaders
from botocore.endpoint_provider import RuleSetStandardLibrary
data = botocore.loaders.Loader().load_data('partitions')
find = RuleSetStandardLibrary(data).aws_partition
regions = list(sys.argv[1:])
for partition in data['partitions']:
    regions += partition['regions']
print(json.dumps({'ids': [p['id'] for p in data['partitions']], 'found': {r: find(r)['name'] for r in regions}}))
";

#[test]
fn regions_are_in_the_partitions_that_botocore_finds() {
    let Some(python) = outlast_testing::peer("python") else { return };
    let python = python.join("bin/python");
    let heads = [
        "us", "eu", "ap", "sa", "ca", "me", "af", "il", "mx", "cn", "us-gov", "us-iso", "us-isob",
        "us-isof", "eu-isoe", "eusc", "eusc-de", "eusc-fr", "cn-x", "us-isox", "zz", "aws",
        "local", "",
    ];
    let tails = [
        "",
        "-",
        "-east",
        "-1",
        "-east-1",
        "-east-12",
        "-east-1a",
        "-east-",
        "-e_1-1",
        "-east-1-1",
        "--1",
    ];
    let asked: Vec<_> = heads
        .iter()
        .flat_map(|head| tails.iter().map(move |tail| format!("{head}{tail}")))
        .collect();
    let output = Command::new(python).args(["-c", SCRIPT]).args(&asked).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let found: BTreeMap<String, String> = serde_json::from_value(answer["found"].clone()).unwrap();
    assert!(found.len() > asked.len());
    for (region, id) in &found {
        assert_eq!(Partition::of(region).id, id, "{region}");
    }
    let mut ids: Vec<String> = serde_json::from_value(answer["ids"].clone()).unwrap();
    ids.sort();
    assert_eq!(ids, PARTITIONS.iter().map(|row| row.id).collect::<Vec<_>>());
}
