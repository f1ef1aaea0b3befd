//! NIST's path validation test suite (PKITS), re-issued with ML-DSA-65, through the product's verifier.
//!
//! The data is not part of this repository: set `OUTLAST_VECTORS` to its folder, or have it beside the checkout as
//! `../shared/vectors`. Every case runs with revocation required, as the suite demands.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use outlast_pki::ObjectIdentifier;
use outlast_pki::certificate::Certificate;
use outlast_pki::crl::Crl;
use outlast_pki::validate::names::same;
use outlast_pki::validate::{Material, Options, Refusal, Revocation, Rule, validate};

/// 2026-11-21T00:00:00Z
const NOW: i64 = 1_795_219_200;

/// Cases whose outcome differs from the list, each with its reason. In all four the data is the cause.
const DEVIATIONS: &[(&str, &str)] = &[
    (
        "4.4 InvalidBadCRLSignatureTest4EE",
        "the re-issued CRL has a good signature: OpenSSL verifies it, too",
    ),
    ("4.4 ValidTwoCRLsTest7EE", "the data has one of the two CRLs, the one with the wrong issuer"),
    (
        "4.5.2 InvalidBasicSelfIssuedOldWithNewTest2EE",
        "the list leaves revocation out; NIST has it invalid, since it is revoked",
    ),
    (
        "4.5.5 InvalidBasicSelfIssuedNewWithOldTest5EE",
        "the list leaves revocation out; NIST has it invalid, since it is revoked",
    ),
];

/// Certificates of the suite that the list leaves out and whose outcome differs from their names.
const UNLISTED: &[(&str, &str)] = &[
    ("InvaliddeltaCRLTest4EE", "the delta CRL is not in the data; without one the base CRL counts"),
    ("ValidDSAParameterInheritanceTest5EE", "DSA is not supported"),
    ("ValidDSASignaturesTest4EE", "DSA is not supported"),
    ("ValidIDPwithindirectCRLTest22EE", "indirect CRLs are not supported"),
    ("ValidIDPwithindirectCRLTest24EE", "indirect CRLs are not supported"),
    ("ValidIDPwithindirectCRLTest25EE", "indirect CRLs are not supported"),
    ("ValidcRLIssuerTest28EE", "indirect CRLs are not supported"),
    ("ValidcRLIssuerTest29EE", "indirect CRLs are not supported"),
    ("ValidcRLIssuerTest30EE", "indirect CRLs are not supported"),
    ("ValidcRLIssuerTest33EE", "indirect CRLs are not supported"),
    ("ValiddeltaCRLTest5EE", "the delta CRL that ends the hold is not in the data"),
    ("ValiddeltaCRLTest8EE", "the base CRL is not in the data"),
    ("ValidonlySomeReasonsTest18EE", "the CRL for the other reasons is not in the data"),
    ("ValidonlySomeReasonsTest19EE", "the CRL for the other reasons is not in the data"),
];

/// Cases where webpki decides differently: section, its decision, and why.
const WEBPKI: &[(&str, &str, &str)] = &[
    ("4.3", "Err(UnknownIssuer)", "it compares names byte by byte"),
    ("4.6", "Err(CaUsedAsEndEntity)", "it takes no CA certificate as the leaf"),
    ("4.8", "Err(CaUsedAsEndEntity)", "it takes no CA certificate as the leaf"),
    ("4.6", "Err(InvalidSignatureForPublicKey)", "it does not follow self-issued certificates"),
    ("4.13", "Err(InvalidSignatureForPublicKey)", "it does not follow self-issued certificates"),
    ("4.7", "Ok(())", "it does not look at a CA's key usage"),
    ("4.9", "Err(UnsupportedCriticalExtension)", "it knows no policy constraints"),
    ("4.10", "Err(UnsupportedCriticalExtension)", "it knows no policy mappings"),
    ("4.11", "Err(UnsupportedCriticalExtension)", "it knows no policy constraints"),
    ("4.12", "Err(UnsupportedCriticalExtension)", "it knows no inhibitAnyPolicy"),
    ("4.13", "Err(NameConstraintViolation)", "it permits no directory, e-mail or URI subtree"),
];

struct Case {
    /// Section, number where there is one, target, settings.
    name: String,
    section: String,
    target: String,
    intermediates: Vec<String>,
    settings: String,
    valid: bool,
    reason: String,
}

struct Suite {
    root: Certificate,
    certificates: BTreeMap<String, Certificate>,
    crls: Vec<Crl>,
    cases: Vec<Case>,
}

fn suite() -> Option<Suite> {
    let folder = outlast_testing::vectors("pkits-ml-dsa-65")?;
    let mut certificates = BTreeMap::new();
    let mut unread = Vec::new();
    for (name, bytes) in files(&folder.join("certs")) {
        match Certificate::parse(&bytes) {
            Ok(certificate) => drop(certificates.insert(name, certificate)),
            Err(error) => unread.push(format!("{name}: {error}")),
        }
    }
    let mut crls = Vec::new();
    for (name, bytes) in files(&folder.join("crls")) {
        match Crl::parse(&bytes) {
            Ok(crl) => crls.push(crl),
            Err(error) => unread.push(format!("{name}: {error}")),
        }
    }
    println!("{} certificates, {} CRLs; not read: {unread:?}", certificates.len(), crls.len());
    let (_, root) = files(&folder.join("ta")).remove(0);
    let list = std::fs::read_to_string(folder.join("cases.tsv")).unwrap();
    let case = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let [section, number, target, intermediates, settings, expected, reason] = fields[..]
        else {
            panic!("{line}")
        };
        Case {
            name: format!(
                "{} {target} {settings}",
                if number.is_empty() { section } else { number }
            ),
            section: section.into(),
            target: target.into(),
            intermediates: intermediates.split_whitespace().map(str::to_owned).collect(),
            settings: settings.into(),
            valid: expected == "valid",
            reason: reason.trim().into(),
        }
    };
    Some(Suite {
        root: Certificate::parse(&root).unwrap(),
        certificates,
        crls,
        cases: list.lines().skip(1).map(case).collect(),
    })
}

fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut out: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            (
                path.file_stem().unwrap().to_string_lossy().into_owned(),
                std::fs::read(&path).unwrap(),
            )
        })
        .collect();
    out.sort();
    out
}

impl Suite {
    fn intermediates(&self, case: &Case) -> Vec<Certificate> {
        let named = case.intermediates.iter().map(|name| {
            let found = self.certificates.get(&format!("{name}CACert"));
            found
                .or_else(|| self.certificates.get(&format!("{name}Cert")))
                .unwrap_or_else(|| panic!("{name}"))
        });
        named.cloned().collect()
    }

    /// Certificates with the same names: other keys of the CAs, and their CRL signers.
    fn with_siblings(&self, list: &[Certificate]) -> Vec<Certificate> {
        let mut out = list.to_vec();
        for (name, other) in &self.certificates {
            if !name.ends_with("EE")
                && list.iter().any(|known| same(known.subject(), other.subject()))
                && out.iter().all(|known| known.der() != other.der())
            {
                out.push(other.clone());
            }
        }
        out
    }
}

/// NIST's own description of the cases that the data or the list has changed.
#[test]
fn deviations_come_out_right_where_the_data_allows() {
    let Some(mut suite) = suite() else { return };
    for (name, _) in DEVIATIONS {
        let case = suite.cases.iter().position(|case| case.name.starts_with(name)).unwrap();
        let intermediates = suite.with_siblings(&suite.intermediates(&suite.cases[case]));
        if name.contains("BadCRLSignature") {
            for crl in &mut suite.crls {
                let mut der = crl.der().to_vec();
                if same(crl.issuer(), intermediates[0].subject()) {
                    *der.last_mut().unwrap() ^= 1;
                    *crl = Crl::parse(&der).unwrap();
                }
            }
        }
        let case = &suite.cases[case];
        let required = check(&suite, case, &intermediates, Revocation::Required);
        let off = check(&suite, case, &intermediates, Revocation::Off);
        assert!(required.is_err() && off.is_ok(), "{name}: {required:?} {off:?}");
    }
}

/// With all certificates of the suite as input, the same paths are valid and no others.
#[test]
fn path_building_finds_its_way_among_all_certificates() {
    let Some(suite) = suite() else { return };
    let all: Vec<_> = suite.certificates.values().cloned().collect();
    for case in &suite.cases {
        let few = suite.with_siblings(&suite.intermediates(case));
        let few = check(&suite, case, &few, Revocation::Required);
        let outcome = check(&suite, case, &all, Revocation::Required);
        assert_eq!(outcome.is_ok(), few.is_ok(), "{}: {outcome:?} {few:?}", case.name);
    }
}

/// The end-entity certificates that the list leaves out: their names give the expected outcome.
#[test]
fn unlisted_certificates_come_out_as_their_names_say() {
    let Some(suite) = suite() else { return };
    let all: Vec<_> = suite.certificates.values().cloned().collect();
    let listed: BTreeSet<_> = suite.cases.iter().map(|case| case.target.as_str()).collect();
    let (mut count, mut other) = (0, Vec::new());
    for name in suite.certificates.keys().map(String::as_str) {
        let valid = name.starts_with("Valid");
        if !name.ends_with("EE") || listed.contains(name) || !(valid || name.starts_with("Invalid"))
        {
            continue;
        }
        let case = Case {
            name: name.into(),
            section: String::new(),
            target: name.into(),
            intermediates: Vec::new(),
            settings: "default".into(),
            valid,
            reason: String::new(),
        };
        count += 1;
        if check(&suite, &case, &all, Revocation::Required).is_ok() != valid {
            other.push(name);
        }
    }
    println!("{count} unlisted certificates, {} not as their names say", other.len());
    let known: Vec<_> = UNLISTED.iter().map(|(name, _)| *name).collect();
    assert_eq!(other, known);
}

/// rustls-webpki as a second opinion on what it supports: no policies, no revocation, any purpose.
#[test]
fn webpki_agrees_on_what_it_checks() {
    use rustls_pki_types::{CertificateDer, UnixTime};
    let Some(suite) = suite() else { return };
    let root = CertificateDer::from(suite.root.der());
    let anchor = webpki::anchor_from_trusted_cert(&root).unwrap();
    let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(NOW as u64));
    let (mut compared, mut differ) = (0, 0);
    let (mut reasons, mut unexplained) = (BTreeMap::<usize, usize>::new(), Vec::new());
    for case in suite
        .cases
        .iter()
        .filter(|case| case.settings == "default" && case.reason != "NullPolicySet")
    {
        let list = suite.intermediates(case);
        let ours = check(&suite, case, &list, Revocation::Off);
        let intermediates: Vec<_> =
            list.iter().map(|one| CertificateDer::from(one.der())).collect();
        let leaf = CertificateDer::from(suite.certificates[&case.target].der());
        let theirs = webpki::EndEntityCert::try_from(&leaf).and_then(|leaf| {
            leaf.verify_for_usage(
                webpki::ALL_VERIFICATION_ALGS,
                std::slice::from_ref(&anchor),
                &intermediates,
                now,
                webpki::KeyUsage::client_auth(),
                None,
                None,
            )
            .map(|_| ())
        });
        compared += 1;
        if ours.is_ok() == theirs.is_ok() {
            continue;
        }
        differ += 1;
        let theirs = format!("{theirs:?}");
        match WEBPKI.iter().position(|row| row.0 == case.section && row.1 == theirs) {
            Some(row) => *reasons.entry(row).or_insert(0) += 1,
            None => unexplained.push(format!("{}: ours {ours:?}, webpki {theirs}", case.name)),
        }
    }
    println!("{compared} compared with webpki, {differ} differ");
    for (row, count) in &reasons {
        let (section, _, reason) = WEBPKI[*row];
        println!("{section}: {count}, {reason}");
    }
    assert!(unexplained.is_empty(), "{unexplained:#?}");
    assert_eq!(reasons.len(), WEBPKI.len(), "a reason is not needed any more");
}

fn check(
    suite: &Suite,
    case: &Case,
    intermediates: &[Certificate],
    revocation: Revocation,
) -> Result<(), Refusal> {
    let mut policies = Vec::new();
    let mut options = Options { revocation, ..Options::at(NOW) };
    for setting in case.settings.split_whitespace() {
        match setting {
            "default" => {}
            "explicit-policy" => options.explicit_policy = true,
            "inhibit-policy-mapping" => options.inhibit_policy_mapping = true,
            "inhibit-any-policy" => options.inhibit_any_policy = true,
            other => {
                let list = other
                    .strip_prefix("initial={")
                    .and_then(|list| list.strip_suffix('}'))
                    .expect(other);
                policies = list
                    .split(',')
                    .map(|n| {
                        ObjectIdentifier::new(&format!("2.16.840.1.101.3.2.1.48.{n}")).unwrap()
                    })
                    .collect();
            }
        }
    }
    if !policies.is_empty() {
        options.policies = Some(&policies);
    }
    let material = Material {
        roots: std::slice::from_ref(&suite.root),
        intermediates,
        crls: &suite.crls,
        ..Material::default()
    };
    validate(&suite.certificates[&case.target], &material, &options).map(|_| ())
}

/// The list's word for a rule.
fn word(rule: &Rule) -> &'static str {
    match rule {
        Rule::UnknownIssuer(_) => "NameChainingFailure",
        Rule::Signature => "SignatureVerificationFailure",
        Rule::NotYetValid(_) => "InvalidNotBeforeDate",
        Rule::Expired(_) => "InvalidNotAfterDate",
        Rule::Revoked { .. } => "CertificateRevoked",
        Rule::RevocationUnknown(_) => "RevocationStatusNotDetermined",
        Rule::NameConstraints(_) => "NameConstraintsViolation",
        Rule::Policy | Rule::PolicyMapping => "NullPolicySet",
        Rule::NotCa => "InvalidBasicConstraints",
        Rule::PathLength => "InvalidPathLength",
        Rule::KeyUsage(_) => "InvalidKeyUsage",
        Rule::CriticalExtension(_) => "UnprocessedCriticalExtension",
        _ => "other",
    }
}

#[test]
fn every_case_comes_out_as_listed() {
    let Some(suite) = suite() else { return };
    let mut counts: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    let (mut wrong, mut other_reason) = (Vec::new(), Vec::new());
    for case in &suite.cases {
        let intermediates = suite.with_siblings(&suite.intermediates(case));
        let outcome = check(&suite, case, &intermediates, Revocation::Required);
        let as_listed = outcome.is_ok() == case.valid;
        counts.entry(&case.section).or_default()[usize::from(!as_listed)] += 1;
        if !as_listed {
            wrong.push(format!(
                "{}: {}",
                case.name,
                outcome.as_ref().map_or_else(ToString::to_string, |()| "valid".into())
            ));
        } else if let Err(refusal) = outcome
            && word(&refusal.rule) != case.reason
        {
            other_reason.push(format!("{}: listed {}, found {refusal}", case.name, case.reason));
        }
    }
    for (section, [right, other]) in &counts {
        println!("{section}: {right} as listed, {other} not");
    }
    println!("{} cases, {} not as listed", suite.cases.len(), wrong.len());
    println!(
        "{} refused for another reason than listed:\n  {}",
        other_reason.len(),
        other_reason.join("\n  ")
    );
    let unexplained: Vec<_> = wrong
        .iter()
        .filter(|line| !DEVIATIONS.iter().any(|(name, _)| line.starts_with(name)))
        .collect();
    assert!(unexplained.is_empty(), "{unexplained:#?}");
    for (name, reason) in DEVIATIONS {
        assert!(
            wrong.iter().any(|line| line.starts_with(name)),
            "{name} is as listed now ({reason})"
        );
    }
}
