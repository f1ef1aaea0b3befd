//! The catalogue compared with its snapshot, and each row with what its name promises.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use std::fmt::Write as _;
use std::path::PathBuf;

use outlast_crypto::groups::{Group, Strength};
use outlast_crypto::schemes::{Kind, Scheme};
use outlast_crypto::ssh::{Algorithm, Kind as SshKind};
use outlast_crypto::suites::Suite;
use outlast_crypto::versions::Version;
use outlast_negotiate::catalogue::POLICIES;
use outlast_negotiate::policy::NothingLeft;
use outlast_negotiate::{Mode, Rules, SecurityPolicy};

fn policy(name: &str) -> &'static SecurityPolicy {
    SecurityPolicy::by_name(name).unwrap()
}

fn written(row: &SecurityPolicy) -> String {
    let mut out = String::new();
    writeln!(out, "[{}]\n{}", row.name, row.summary).unwrap();
    for source in row.sources {
        writeln!(out, "source: {source}").unwrap();
    }
    for difference in row.differences {
        writeln!(out, "difference: {difference}").unwrap();
    }
    writeln!(out, "mode: {}", row.mode).unwrap();
    for list in row.lists() {
        for value in list.values {
            writeln!(out, "{}: {value}", list.name).unwrap();
        }
    }
    out
}

#[test]
fn released_rows_are_as_they_were() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/catalogue.txt");
    let now: Vec<_> = POLICIES.iter().map(written).collect();
    let now = now.join("\n");
    if std::env::var_os("OUTLAST_BLESS").is_some() {
        std::fs::write(&path, &now).unwrap();
    }
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    if before == now {
        return;
    }
    let first = before.lines().zip(now.lines()).position(|(before, now)| before != now);
    let line = first.unwrap_or_else(|| before.lines().count().min(now.lines().count()));
    panic!(
        "the catalogue is not that of tests/catalogue.txt, from line {} on:\n  was {:?}\n  is  {:?}\n\
         Rows that have been released must not be changed: make a new row with a new date instead. \
         For a new row, run this test with OUTLAST_BLESS=1 and look at the difference.",
        line + 1,
        before.lines().nth(line).unwrap_or_default(),
        now.lines().nth(line).unwrap_or_default(),
    );
}

#[test]
fn every_name_has_its_row() {
    for row in POLICIES {
        let tls = &row.tls;
        for name in tls.groups {
            assert_eq!(Group::by_name(name).map(|found| found.name), Some(*name), "{}", row.name);
        }
        for name in tls.suites {
            let suite = Suite::by_name(name).unwrap_or_else(|| panic!("{}: {name}", row.name));
            assert!(tls.versions.contains(&suite.version), "{}: {name}", row.name);
        }
        for name in tls.handshake_schemes.iter().chain(tls.certificate_schemes) {
            assert!(Scheme::by_name(name).is_some(), "{}: {name}", row.name);
        }
        for (kind, names) in [
            (SshKind::KeyExchange, row.ssh.key_exchanges),
            (SshKind::Cipher, row.ssh.ciphers),
            (SshKind::Mac, row.ssh.macs),
            (SshKind::HostKey, row.ssh.host_keys),
        ] {
            for name in names {
                let found = Algorithm::by_name(name);
                assert_eq!(found.map(|found| found.kind), Some(kind), "{}: {name}", row.name);
            }
        }
    }
}

#[test]
fn lists_repeat_nothing_and_rows_are_complete() {
    for (index, row) in POLICIES.iter().enumerate() {
        assert!(!POLICIES[..index].iter().any(|other| other.name == row.name), "{}", row.name);
        assert!(!row.sources.is_empty() && row.summary.ends_with('.'), "{}", row.name);
        assert!(row.has_tls() || row.has_ssh(), "{}", row.name);
        let tls = &row.tls;
        let ssh = &row.ssh;
        for list in [
            tls.groups,
            tls.suites,
            tls.handshake_schemes,
            tls.certificate_schemes,
            ssh.key_exchanges,
            ssh.ciphers,
            ssh.macs,
            ssh.host_keys,
        ] {
            for (index, name) in list.iter().enumerate() {
                assert!(!list[..index].contains(name), "{} has {name} twice", row.name);
            }
        }
        for text in row.differences.iter().chain(row.sources).chain([&row.summary]) {
            assert!(!text.contains("  ") && !text.contains('\n'), "{}: {text:?}", row.name);
        }
        if row.has_tls() {
            let rules = Rules::new(row, None).unwrap();
            for version in row.tls.versions {
                assert!(rules.suites(*version).next().is_some(), "{} {version:?}", row.name);
            }
            assert!(!tls.handshake_schemes.is_empty() && !tls.certificate_schemes.is_empty());
            // RFC 8446, section 4.2.3: PKCS #1 v1.5 signs no handshake of TLS 1.3.
            let pkcs1 = rules.handshake_schemes().any(|row| row.kind == Kind::RsaPkcs1);
            if pkcs1 && row.tls.versions == [Version::Tls13] {
                assert!(row.name.contains("ELB"), "{}", row.name);
            }
        }
    }
}

#[test]
fn post_quantum_comes_first_everywhere() {
    for row in POLICIES {
        let strengths: Vec<_> =
            row.groups().map(|row| row.strength == Strength::Classical).collect();
        assert!(strengths.is_sorted(), "{}: {:?}", row.name, row.tls.groups);
        let ssh: Vec<_> = row
            .ssh
            .key_exchanges
            .iter()
            .map(|name| !Algorithm::by_name(name).unwrap().post_quantum)
            .collect();
        assert!(ssh.is_sorted(), "{}: {:?}", row.name, row.ssh.key_exchanges);
    }
}

#[test]
fn fips_rows_have_only_what_fips_allows() {
    for row in POLICIES {
        let promised = row.name.to_lowercase().contains("fips") || row.name == "20251015";
        // They are stricter.
        let stricter =
            ["cnsa2-2026-11", "20260219", "bsi-2026-11", "sftp-strict-2026-11"].contains(&row.name);
        assert_eq!(row.is_fips(), promised || stricter, "{}", row.name);
        if promised {
            assert!(!row.tls.groups.contains(&"x25519"), "{}", row.name);
            assert!(row.tls.suites.iter().all(|name| !name.contains("CHACHA20")), "{}", row.name);
        }
    }
    let first: Vec<_> = policy("fips-2026-11").groups().map(|row| row.name).take(2).collect();
    assert_eq!(first, ["SecP256r1MLKEM768", "SecP384r1MLKEM1024"]);
}

#[test]
fn cnsa2_rows_are_of_the_highest_level_only() {
    for (name, groups) in
        [("cnsa2-2026-11", &["MLKEM1024", "SecP384r1MLKEM1024"][..]), ("20260219", &["MLKEM1024"])]
    {
        let row = policy(name);
        assert_eq!(row.tls.groups, groups);
        assert_eq!(row.tls.versions, [Version::Tls13]);
        assert_eq!(row.tls.suites, ["TLS_AES_256_GCM_SHA384"]);
        assert_eq!(row.tls.handshake_schemes, ["mldsa87"]);
        assert_eq!(row.tls.certificate_schemes, ["mldsa87"]);
        assert!(row.is_post_quantum_only());
        assert_eq!(row.mode, Mode::Require);
    }
    let ssh = &policy("cnsa2-2026-11").ssh;
    assert!(ssh.key_exchanges.iter().all(|name| name.contains("mlkem1024")));
    assert!(ssh.ciphers.iter().all(|name| name.contains("aes256")));
}

#[test]
fn rows_that_require_post_quantum_have_nothing_else() {
    let required: Vec<_> =
        POLICIES.iter().filter(|row| row.mode == Mode::Require).map(|row| row.name).collect();
    let expected = ["2026-11-require-pq", "cnsa2-2026-11", "20260219", "sftp-strict-2026-11"];
    assert_eq!(required, expected);
    for row in POLICIES.iter().filter(|row| row.has_tls()) {
        assert_eq!(row.is_post_quantum_only(), row.mode == Mode::Require, "{}", row.name);
        let off = Rules::new(row, Some(Mode::Off));
        let nothing = NothingLeft::NoGroups(row.name, Mode::Off);
        assert_eq!(off.err(), row.is_post_quantum_only().then_some(nothing), "{}", row.name);
    }
    let classical = policy("classical-2026-11");
    assert!(classical.groups().all(|row| row.strength == Strength::Classical));
    let nothing = Rules::new(classical, Some(Mode::Require)).unwrap_err();
    assert_eq!(
        nothing.to_string(),
        "the security policy \"classical-2026-11\" has no post-quantum groups, and the mode require allows no others"
    );
    assert_eq!(POLICIES[0].name, "2026-11");
    assert_eq!(Rules::default().mode, Mode::Prefer);
}

#[test]
fn rows_for_ssh_serve_no_tls() {
    let is_for_ssh = |name: &str| name.starts_with("Transfer") || name.starts_with("sftp-");
    for row in POLICIES.iter().filter(|row| is_for_ssh(row.name)) {
        assert!(row.has_ssh() && !row.has_tls());
        assert_eq!(Rules::new(row, None).unwrap_err(), NothingLeft::NoTls(row.name));
    }
    for row in POLICIES.iter().filter(|row| row.name.contains("2026-11")) {
        assert!(row.has_ssh(), "{}", row.name);
        assert_eq!(row.has_tls(), !is_for_ssh(row.name), "{}", row.name);
        assert!(
            !row.ssh.ciphers.is_empty()
                && !row.ssh.macs.is_empty()
                && !row.ssh.host_keys.is_empty()
        );
    }
}

/// As read in s2n-tls 0.3.47; CBC, RSA key transport, `rsa_pss_pss_*`, SHA-1 and SHA-224 taken away.
#[test]
fn rows_of_aws_are_what_s2n_tls_has() {
    const PQ_2025_07: [&str; 3] = ["X25519MLKEM768", "SecP256r1MLKEM768", "SecP384r1MLKEM1024"];
    const CURVES_20240603: [&str; 4] = ["x25519", "secp256r1", "secp384r1", "secp521r1"];
    const CURVES_20201021: [&str; 3] = ["secp256r1", "secp384r1", "secp521r1"];
    const CURVES_20240501: [&str; 4] = ["secp256r1", "x25519", "secp384r1", "secp521r1"];
    const CURVES_20200310: [&str; 3] = ["x25519", "secp256r1", "secp384r1"];
    let both = &[Version::Tls13, Version::Tls12][..];
    let tls13 = &[Version::Tls13][..];
    for (name, versions, hybrids, curves) in [
        ("ELBSecurityPolicy-TLS13-1-2-Res-PQ-2025-09", both, &PQ_2025_07[..], &CURVES_20240603[..]),
        ("ELBSecurityPolicy-TLS13-1-2-PQ-2025-09", both, &PQ_2025_07, &CURVES_20240603),
        ("ELBSecurityPolicy-TLS13-1-3-PQ-2025-09", tls13, &PQ_2025_07, &CURVES_20240603),
        ("ELBSecurityPolicy-TLS13-1-2-Res-FIPS-PQ-2025-09", both, &PQ_2025_07, &CURVES_20201021),
        ("ELBSecurityPolicy-TLS13-1-3-FIPS-PQ-2025-09", tls13, &PQ_2025_07, &CURVES_20201021),
        (
            "ELBSecurityPolicy-TLS13-1-3-CNSA2-INTEROP1-FIPS-PQ-2026-07",
            tls13,
            &["MLKEM1024"],
            &["secp384r1"],
        ),
        ("PQ-TLS-1-2-2024-10-07", both, &PQ_2025_07[..2], &CURVES_20200310),
        ("20250721", both, &PQ_2025_07, &CURVES_20240501),
        ("20251014", both, &PQ_2025_07, &CURVES_20240501),
        ("20251015", both, &PQ_2025_07, &CURVES_20201021),
        ("20260219", tls13, &["MLKEM1024"], &[]),
    ] {
        let row = policy(name);
        assert_eq!(row.tls.groups, [hybrids, curves].concat(), "{name}");
        assert_eq!(row.tls.versions, versions, "{name}");
        assert!(row.sources.iter().any(|source| source.contains("s2n-tls 0.3.47")), "{name}");
        assert!(row.differences.iter().all(|text| text.ends_with('.')), "{name}");
        // AES-128 before AES-256, as AWS prefers it, where there are both.
        let bits: Vec<_> = row
            .tls
            .suites
            .iter()
            .take(2)
            .map(|name| Suite::by_name(name).unwrap().key_bits)
            .collect();
        assert!(bits == [128, 256] || bits == [256], "{name}");
    }
}

#[test]
fn an_unknown_name_is_an_error_with_the_nearest_one() {
    for (given, nearest) in [
        ("2026-10", Some("2026-11")),
        ("2026-11-require", Some("2026-11-require-pq")),
        ("cnsa2-2026-1", Some("cnsa2-2026-11")),
        ("CNSA2-2026-11", Some("cnsa2-2026-11")),
        ("ELBSecurityPolicy-TLS13-1-3-PQ-2025-9", Some("ELBSecurityPolicy-TLS13-1-3-PQ-2025-09")),
        ("fips", Some("fips-2026-11")),
        ("default_pq", Some("20250721")),
        ("cnsa_2", Some("20260219")),
        ("xyzzy", None),
        ("", None),
    ] {
        let error = SecurityPolicy::by_name(given).unwrap_err();
        assert_eq!(error.nearest().map(|row| row.name), nearest, "{given}");
        assert!(Rules::named(given).is_err());
    }
}
