//! Unusual plans.

use proptest::prelude::*;

use super::*;

const SMALL: &str = r#"
title = "Our links"
rtt_ms = [1, 30.5]
loss = [0, 0.01]
groups = ["x25519", "x25519mlkem768"]
signatures = ["ecdsa p-256", "ML-DSA-65"]
bodies = [1000, 100_000]
count = 200
"#;

fn message(text: &str) -> String {
    Plan::parse(text).expect_err(text).to_string()
}

#[test]
fn small_plan_gets_defaults_and_canonical_names() {
    let plan = Plan::parse(SMALL).unwrap();
    assert_eq!(plan.rtt_us, [1000, 30_500]);
    assert_eq!(plan.groups, ["x25519", "X25519MLKEM768"]);
    assert_eq!(plan.signatures, ["ECDSA P-256", "ML-DSA-65"]);
    assert_eq!(plan.baseline, ("x25519".to_owned(), "ECDSA P-256".to_owned()));
    assert_eq!(plan.bodies, [1000, 100_000]);
    assert_eq!(plan.points(), 2 * 2 * 2 * 2 * 2);
    assert_eq!(plan.shape(), "2 RTTs x 2 losses x 2 groups x 2 signatures x 2 bodies");
    assert_eq!(plan.links().len(), 4);
    let subjects = plan.subjects(Kind::Full, 2).unwrap();
    assert_eq!(subjects.len(), 4);
    assert_eq!(subjects[0].key_exchange.name, "x25519");
    assert!(plan.estimate(false) > Duration::ZERO);
    let stored = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&stored).unwrap(), plan, "run.json keeps a plan");
}

#[test]
fn what_is_wrong_is_said_with_its_line_and_the_nearest_name() {
    let cases: &[(&str, &[&str])] = &[
        (
            "titel = \"x\"",
            &["line 1", "no key is named `titel`", "did you mean `title`?", "rtt_ms"],
        ),
        (
            "title = \"x\"\nrtt_ms = [1]\ngroups = [\"x25519\",\n  \"X25519MLKEM786\"]",
            &["line 4, `groups`", "X25519MLKEM786", "did you mean `X25519MLKEM768`?", "known: "],
        ),
        (
            "title = \"x\"\nrtt_ms = [1]\nsignatures = [\"MLDSA65\"]",
            &["line 3, `signatures`", "did you mean `ML-DSA-65`?"],
        ),
        ("title = \"x\"\nrtt_ms = [1]\nloss = [1.5]", &["line 3, `loss`", "1.5", "0 and 0.5"]),
        ("title = \"x\"\nrtt_ms = [1]\nloss = [nan]", &["line 3, `loss`", "NaN"]),
        ("title = \"x\"\nrtt_ms = [1]\nloss = [-0.1]", &["line 3, `loss`"]),
        ("title = \"x\"\nrtt_ms = [0]", &["line 2, `rtt_ms`", "0 is not between 0.05"]),
        ("title = \"x\"\nrtt_ms = 30", &["line 2, `rtt_ms`", "must be a list", "an integer"]),
        ("title = \"x\"\nrtt_ms = []", &["line 2, `rtt_ms`", "empty"]),
        ("title = \"x\"\nrtt_ms = [1, 1.0]", &["line 2, `rtt_ms`", "twice"]),
        ("title = \"x\"\nrtt_ms = [\"1\"]", &["line 2, `rtt_ms`", "must be a number"]),
        ("title = \"x\"", &["`rtt_ms` is missing"]),
        ("rtt_ms = [1]", &["`title` is missing"]),
        ("title = 1\nrtt_ms = [1]", &["line 1, `title`", "must be a text"]),
        ("title = \"x\"\nrtt_ms = [1]\ncount = 10", &["line 3, `count`", "100 and 1000000"]),
        ("title = \"x\"\nrtt_ms = [1]\ncount = -1", &["line 3, `count`"]),
        ("title = \"x\"\nrtt_ms = [1]\ncount = 99999999999999999999", &["line 3"]),
        ("title = \"x\"\nrtt_ms = [1]\nkinds = [\"half\"]", &["line 3, `kinds`", "hello-retry"]),
        ("title = \"x\"\nrtt_ms = [1]\nengines = [\"lives\"]", &["did you mean `live`?"]),
        ("title = \"x\"\nrtt_ms = [1]\nprofiles = [\"windows\"]", &["kernel profile", "linux-"]),
        ("title = \"x\"\nrtt_ms = [1]\ncertificates = [6]", &["line 3, `certificates`", "1 and 5"]),
        ("title = \"x\"\nrtt_ms = [1]\njitter_ms = 0.5", &["`jitter_ms` 0.5", "RTT of 1 ms"]),
        ("title = \"x\"\nrtt_ms = [1]\nbaseline = { group = \"secp256r1\" }", &["secp256r1"]),
        ("title = \"x\"\nrtt_ms = [1]\nbaseline = 1", &["line 3, `baseline`", "must be a table"]),
        (
            "title = \"x\"\nrtt_ms = [1]\n[[trace]]\nname = \"a\"",
            &["line 3", "needs `client_hello` and `server_flight`, or `flights`"],
        ),
        (
            "title = \"x\"\nrtt_ms = [1]\n[[trace]]\nclient_hello = 1\nserver_flight = 1",
            &["needs `name`"],
        ),
        ("title = \"x\"\nrtt_ms = [1]\n[[trace]]\nname = \"a\"\nclient_hello = 1", &["needs both"]),
        (
            "title = \"x\"\nrtt_ms = [1]\n[[trace]]\nname = \"a\"\nclient_hello = 1\nserver_flight = 1\nflights = [{ from = \"client\", bytes = 1 }]",
            &["only one of the two"],
        ),
        (
            "title = \"x\"\nrtt_ms = [1]\n[[trace]]\nname = \"a\"\nflights = [{ from = \"server\", bytes = 1 }]",
            &["must begin with the client's"],
        ),
        (
            "title = \"x\"\nrtt_ms = [1]\n[[trace]]\nname = \"a\"\nflights = [{ from = \"client\", bites = 1 }]",
            &["line 5", "did you mean `bytes`?"],
        ),
        (
            "title = \"x\"\nrtt_ms = [1]\n[[trace]]\nname = \"a\"\nflights = [{ from = \"client\" }]",
            &["a flight needs `bytes`"],
        ),
        (
            "title = \"x\"\nrtt_ms = [1]\n[[trace]]\nname = \"a\"\nclient_hello = 0\nserver_flight = 1",
            &["line 5, `client_hello`", "0 is not between 1"],
        ),
        (
            "title = \"x\"\nrtt_ms = [1]\n[[trace]]\nname = \"a\"\nclient_hello = 99999999\nserver_flight = 1",
            &["line 5, `client_hello`"],
        ),
        (
            "title = \"x\"\nrtt_ms = [1]\n[[trace]]\nname = \"a\"\nclient_hello = 1\nserver_flight = 1\nclient_cpu_us = [1, 2, 3]",
            &["line 7, `client_cpu_us`", "list of two"],
        ),
        (
            "title = \"x\"\nrtt_ms = [1]\n[[trace]]\nname = \"a\"\nclient_hello = 1\nserver_flight = 1\ncpu_us_quantiles = [[0.5, 2], [0.4, 3]]",
            &["line 7", "must increase"],
        ),
        (
            "title = \"x\"\nrtt_ms = [1]\n[[trace]]\nname = \"a\"\nclient_hello = 1\nserver_flight = 1\ncpu_us_quantiles = [[0.5]]",
            &["[share, microseconds]"],
        ),
        (
            "title = \"x\"\nrtt_ms = [1]\n[[trace]]\nname = \"a\"\nclient_hello = 1\nserver_flight = 1\nserver_cpu_us = 5\ncpu_us_quantiles = [[0.5, 20]]",
            &["the median is 20 microseconds", "5 together"],
        ),
        (
            "title = \"x\"\nrtt_ms = [1]\n[[trace]]\nname = \"a\"\nclient_hello = 1\nserver_flight = 1\n[[trace]]\nname = \"a\"\nclient_hello = 1\nserver_flight = 1",
            &["named a already"],
        ),
        (
            "title = \"x\"\nrtt_ms = [1]\n[[kernel]]\nname = \"linux-5.4\"",
            &["there is a kernel named linux-5.4 already"],
        ),
        ("title = \"x\"\nrtt_ms = [1]\n[[kernel]]\nhz = 100", &["a kernel needs `name`"]),
        (
            "title = \"x\"\nrtt_ms = [1]\n[[kernel]]\nname = \"a\"\nhz = 1",
            &["line 5, `hz`", "100 and 1000"],
        ),
        ("title = \"x\"\nrtt_ms = [1]\n[[kernel]]\nname = \"a\"\npieces = 1", &["true or false"]),
        (
            "title = \"x\"\nrtt_ms = [1]\n[[kernel]]\nname = \"a\"\nlike = \"linux-5.5\"",
            &["did you mean"],
        ),
        (
            "title = \"x\"\nrtt_ms = [1]\nengines = [\"live\"]\n[[trace]]\nname = \"a\"\nclient_hello = 1\nserver_flight = 1",
            &["leave `live` out"],
        ),
        ("title = \"x\"\nrtt_ms = [1]\nbaseline = { trace = \"z\" }", &["no [[trace]] is named z"]),
        ("title = \"x\"\ntitle = \"y\"", &["line 2", "not TOML"]),
        ("title = ", &["line 1", "not TOML"]),
        (
            "title = \"x\"\nrtt_ms = [1]\nengines=[\"live\"]\nrate_mbps = 5000",
            &["`rate_mbps`", "1000 Mbit/s"],
        ),
        ("title = \"x\"\n[endpoint]\naddress = \"a:1\"", &["line 2, `endpoint`", "`server_name`"]),
        (
            "title = \"x\"\n[endpoint]\nserver_name = \"a\"\nca_file = \"b\"",
            &["`address` or `command`"],
        ),
        (
            "title = \"x\"\n[endpoint]\naddress = \"a\"\nserver_name = \"a\"\nca_file = \"b\"",
            &["line 3, `address`", "host:port"],
        ),
        ("title = \"x\"\n[endpoint]\naddress = \"a:0\"", &["line 3, `address`", "host:port"]),
        (
            "title = \"x\"\n[endpoint]\naddress = \"a:1\"\ncommand = [\"b\"]\nport = 1",
            &["only one of the two"],
        ),
        (
            "title = \"x\"\n[endpoint]\ncommand = [\"b\"]\nserver_name = \"a\"\nca_file = \"c\"",
            &["[endpoint] needs `port`"],
        ),
        (
            "title = \"x\"\n[endpoint]\ncommand=[\"b\"]\nport=1\nserver_name=\"a\"\nca_file=\"c\"",
            &["`rtt_ms` is missing", "needs a link"],
        ),
        (
            "title=\"x\"\nkinds=[\"mutual\"]\n[endpoint]\naddress=\"a:1\"\nserver_name=\"a\"\nca_file=\"c\"",
            &["cannot be measured with `mutual`"],
        ),
        ("title = \"x\"\nrtt_ms = [1]\n[request]\npath = \"a b\"", &["line 4, `path`"]),
    ];
    for (text, wanted) in cases {
        let said = message(text);
        for part in *wanted {
            assert!(said.contains(part), "{text}\n{said}\nlacks {part}");
        }
    }
}

#[test]
fn an_impossible_grid_says_how_large_it_is() {
    let list = |count: usize| (1..=count).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
    let text = format!("title = \"x\"\nrtt_ms = [{}]\nbodies = [{}]", list(200), list(200));
    assert!(
        message(&text).contains("the grid has 80000 points (200 RTTs x 2 groups x 200 bodies)")
    );
    let long = format!(
        "title = \"x\"\nrtt_ms = [{}]\nengines = [\"live\"]\nloss = [0.2]\nlive_count = 100000",
        list(20)
    );
    assert!(message(&long).contains("hours"), "{}", message(&long));
    let text = format!("title = \"x\"\nrtt_ms = [{}]", list(1001));
    assert!(message(&text).contains("more than 1000"));
    assert!(message(&"#".repeat(70_000)).contains("longer than"));
}

#[test]
fn quick_runs_are_shorter() {
    let plan = Plan::parse("title = \"x\"\nrtt_ms = [1]\ngroups=[\"x25519\"]").unwrap();
    assert_eq!(plan.shape(), "one point");
    assert!(plan.estimate(true) < plan.estimate(false));
    assert_eq!(plan.connections(true), 500);
}

#[test]
fn an_endpoint_with_an_address_needs_no_link() {
    let text = "title = \"x\"\n[endpoint]\naddress = \"[::1]:443\"\nserver_name = \"a.example\"\n\
                ca_file = \"ca.pem\"\n[request]\npath = \"/ping?x=1\"\nbytes = 50";
    let plan = Plan::parse(text).unwrap();
    assert_eq!(plan.endpoint.as_ref().unwrap().at, Target::Address("[::1]:443".into()));
    assert_eq!((plan.path.as_str(), plan.request), ("/ping?x=1", 50));
    assert!(plan.links().is_empty() && plan.estimate(true) > Duration::ZERO);
    assert_eq!(plan.points(), 0);
}

#[test]
fn files_are_read_from_the_plans_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.toml");
    let said = |error: LabError| error.to_string();
    assert!(said(Plan::load(&path, false).unwrap_err()).contains("plan.toml"));
    std::fs::write(
        &path,
        "title = \"x\"\n[endpoint]\naddress = \"a:1\"\nserver_name = \"a\"\nca_file = \"ca.pem\"",
    )
    .unwrap();
    assert!(said(Plan::load(&path, false).unwrap_err()).contains("ca.pem"));
    std::fs::write(folder.path().join("ca.pem"), "x").unwrap();
    let plan = Plan::load(&path, false).unwrap();
    assert_eq!(plan.endpoint.unwrap().ca_file, folder.path().join("ca.pem"));
    std::fs::write(&path, [0xff, 0xfe]).unwrap();
    assert!(said(Plan::load(&path, false).unwrap_err()).contains("plan.toml"));
}

#[test]
fn every_key_has_help() {
    let help = Plan::help();
    assert!(help.iter().any(|(key, _)| key == "endpoint.ca_file"));
    assert!(help.iter().all(|(_, help)| help.len() > 10));
}

/// Lines that a plan may consist of, right and wrong.
fn line() -> impl Strategy<Value = String> {
    let keys: Vec<String> = Plan::help()
        .into_iter()
        .map(|(key, _)| key)
        .chain(["[endpoint]".into(), "x".into()])
        .collect();
    let value = prop_oneof![
        any::<f64>().prop_map(|number| format!("{number:e}")),
        any::<i64>().prop_map(|number| number.to_string()),
        prop::collection::vec(-1.0..2000.0_f64, 0..4).prop_map(|list| format!("{list:?}")),
        prop::collection::vec("[ -~]{0,12}", 0..3).prop_map(|list| format!("{list:?}")),
        "[ -~]{0,20}",
        Just("0x7fffffffffffffff".to_owned()),
        Just("{ group = \"x25519\" }".to_owned()),
        Just("[[1]]".to_owned()),
        Just("1979-05-27".to_owned()),
    ];
    (prop::sample::select(keys), value).prop_map(|(key, value)| {
        if key.starts_with('[') { key } else { format!("{key} = {value}") }
    })
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,200}") {
        let _ = Plan::parse(&text);
    }

    #[test]
    fn nor_do_lines_that_look_like_a_plan(lines in prop::collection::vec(line(), 0..12)) {
        let text = format!("title = \"x\"\nrtt_ms = [1]\n{}", lines.join("\n"));
        if let Ok(plan) = Plan::parse(&text) {
            prop_assert!(plan.points() <= MAX_POINTS && plan.estimate(false) <= MAX_TIME);
        } else {
            let said = Plan::parse(&text).unwrap_err().to_string();
            prop_assert!(!said.contains('\n'), "one line: {said}");
        }
    }
}

#[test]
fn the_example_plans_are_plans() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/plans");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "toml") {
            let text = std::fs::read_to_string(&path).unwrap();
            let plan =
                Plan::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assert!(plan.estimate(true) < Duration::from_secs(300), "{}", path.display());
            count += 1;
        }
    }
    assert!(count >= 5);
}

/// Kernels of a plan are known to its profiles, and are kept with its results.
#[test]
fn own_kernels_are_profiles() {
    let text = "title = \"x\"\nrtt_ms = [1]\nprofiles = [\"mine\", \"linux-5.4\"]\n\
                [[kernel]]\nname = \"mine\"\nlike = \"linux-5.4\"\nhz = 1000";
    let plan = Plan::parse(text).unwrap();
    let kernels = plan.kernels().unwrap();
    assert_eq!((kernels[0].name, kernels[0].tcp.hz, kernels[0].tcp.linear_syns), ("mine", 1000, 0));
    assert_eq!((kernels[1].name, kernels[1].tcp.hz), ("linux-5.4", 250));
    let stored = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&stored).unwrap(), plan);
}

/// A plan reads what `lab calibrate` writes.
#[test]
fn a_written_kernel_is_read() {
    let own = Kernel { source: "a \"quoted\" text".into(), ..Kernel::like_the_default("mine") };
    let text =
        format!("title = \"x\"\nrtt_ms = [1]\nprofiles = [\"mine\"]\n{}", own.toml().unwrap());
    assert_eq!(Plan::parse(&text).unwrap().own_kernels, [own]);
}
