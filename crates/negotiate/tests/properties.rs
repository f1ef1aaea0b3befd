//! Properties of every offer under every policy in every mode.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use outlast_crypto::groups::{GROUPS, Group};
use outlast_crypto::schemes::{Kind, SCHEMES};
use outlast_crypto::suites::{Authentication, SUITES};
use outlast_crypto::versions::Version;
use outlast_negotiate::catalogue::POLICIES;
use outlast_negotiate::decide::CertificateFacts;
use outlast_negotiate::{Choice, Decision, Mode, Offer, Refusal, Rules, Transport, decide, ja4};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

fn codes(known: Vec<u16>) -> impl Strategy<Value = Vec<u16>> {
    let len = known.len();
    // GREASE, a finite-field group, and any value.
    let noise = vec(prop_oneof![Just(0x2a2a), Just(0x0100), any::<u16>()], 0..3);
    (subsequence(known, 0..=len).prop_shuffle(), noise).prop_flat_map(|(mut known, noise)| {
        known.extend(noise);
        Just(known).prop_shuffle()
    })
}

fn offers() -> impl Strategy<Value = Offer> {
    let groups = GROUPS.iter().map(|row| row.code_point).collect();
    let suites = SUITES.iter().map(|row| row.code_point).collect();
    let schemes: Vec<_> = SCHEMES.iter().map(|row| row.code_point).collect();
    (
        prop_oneof![Just(Transport::Tcp), Just(Transport::Quic)],
        subsequence(vec![0x0304, 0x0303, 0x0302], 1..=3).prop_shuffle(),
        codes(groups),
        codes(suites),
        codes(schemes.clone()),
        option::of(codes(schemes)),
        // Shares: of any of the groups.
        vec(any::<bool>(), 16),
        any::<bool>(),
    )
        .prop_map(|(transport, versions, groups, suites, schemes, cert, sent, modern)| {
            let sent = sent.into_iter().chain([false].into_iter().cycle());
            let shares = groups.iter().zip(sent).filter(|(_, sent)| *sent).map(|(group, _)| *group);
            Offer {
                transport,
                shares: modern.then(|| shares.collect()),
                extensions: if modern { vec![43, 10, 13, 51] } else { vec![10, 13] },
                versions: if modern { versions } else { vec![0x0303] },
                suites,
                groups,
                schemes,
                certificate_schemes: cert,
                sni: None,
                protocols: vec![],
                resumes: false,
            }
        })
}

fn certificates() -> impl Strategy<Value = Vec<CertificateFacts>> {
    let kinds: Vec<(&str, Vec<u16>, Vec<u16>)> = vec![
        ("ecdsa-p256", vec![0x0403], vec![]),
        ("ecdsa-p384", vec![0x0503], vec![]),
        ("ml-dsa-65", vec![0x0905], vec![0x0905]),
        ("ml-dsa-87", vec![0x0906], vec![0x0906]),
        ("rsa-2048", vec![0x0806, 0x0805, 0x0804, 0x0601, 0x0501, 0x0401], vec![]),
        ("ed25519", vec![0x0807], vec![]),
    ];
    let facts = |(kind, schemes, chain): (&str, Vec<u16>, Vec<u16>)| CertificateFacts {
        kind: kind.to_owned(),
        schemes,
        chain,
    };
    subsequence(kinds.clone(), 1..=kinds.len())
        .prop_shuffle()
        .prop_map(move |kinds| kinds.into_iter().map(facts).collect())
}

fn is_post_quantum(code: &u16) -> bool {
    Group::by_code_point(*code).is_some_and(|row| row.strength.is_post_quantum())
}

fn serves(decision: Decision) -> Option<Choice> {
    match decision {
        Decision::Serve(choice) => Some(choice),
        Decision::Refuse(_) => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn what_is_given_was_offered_and_is_in_the_policy(
        offer in offers(),
        certificates in certificates(),
        row in select(POLICIES.iter().collect::<Vec<_>>()),
    ) {
        for mode in Mode::ALL {
            let rules = Rules { policy: row, mode };
            let Some(choice) = serves(decide(&rules, &offer, &certificates)) else { continue };
            let name = row.name;
            prop_assert!(row.tls.versions.contains(&choice.version), "{name}");
            prop_assert!(row.tls.groups.contains(&choice.group.name), "{name}");
            prop_assert!(row.tls.suites.contains(&choice.suite.name), "{name}");
            prop_assert!(row.tls.handshake_schemes.contains(&choice.scheme.name), "{name}");
            prop_assert!(offer.suites.contains(&choice.suite.code_point));
            prop_assert!(offer.schemes.contains(&choice.scheme.code_point));
            prop_assert!(offer.versions.contains(&choice.version.code_point()));
            prop_assert!(certificates[choice.certificate].schemes.contains(&choice.scheme.code_point));
            prop_assert_eq!(choice.suite.version, choice.version);
            match choice.version {
                Version::Tls13 => {
                    prop_assert!(offer.groups.contains(&choice.group.code_point));
                    prop_assert_ne!(choice.scheme.kind, Kind::RsaPkcs1);
                    // A share is requested exactly if it was not sent.
                    let sent = offer.shares.iter().flatten().any(|code| *code == choice.group.code_point);
                    prop_assert_eq!(choice.hello_retry, !sent);
                }
                Version::Tls12 => {
                    prop_assert!(offer.groups.is_empty() || offer.groups.contains(&choice.group.code_point));
                    prop_assert!(!choice.group.strength.is_post_quantum());
                    prop_assert!(!choice.hello_retry);
                    prop_assert_ne!(choice.scheme.kind, Kind::MlDsa);
                    prop_assert_ne!(choice.suite.authentication, Authentication::Any);
                    let curve = match choice.scheme.code_point {
                        0x0403 => Some(0x0017),
                        0x0503 => Some(0x0018),
                        0x0603 => Some(0x0019),
                        _ => None,
                    };
                    prop_assert!(curve.is_none_or(|curve| offer.groups.contains(&curve)));
                    prop_assert_eq!(offer.transport, Transport::Tcp);
                }
            }
            match mode {
                Mode::Require => prop_assert!(choice.group.strength.is_post_quantum()),
                Mode::Off => prop_assert!(!choice.group.strength.is_post_quantum()),
                Mode::Prefer | Mode::Allow => {}
            }
        }
    }

    #[test]
    fn a_common_post_quantum_group_is_always_used(
        offer in offers(),
        certificates in certificates(),
        row in select(POLICIES.iter().collect::<Vec<_>>()),
    ) {
        let common = offer.groups.iter().any(|code| {
            row.groups().any(|row| row.code_point == *code && row.strength.is_post_quantum())
        });
        for mode in [Mode::Prefer, Mode::Require] {
            let rules = Rules { policy: row, mode };
            let Some(choice) = serves(decide(&rules, &offer, &certificates)) else { continue };
            if choice.version == Version::Tls13 {
                prop_assert_eq!(choice.group.strength.is_post_quantum(), common, "{} {}", row.name, mode);
            }
        }
        // In the mode that lets clients choose, a client that sent a suitable share is not asked for another.
        let rules = Rules { policy: row, mode: Mode::Allow };
        if let Some(choice) = serves(decide(&rules, &offer, &certificates)) {
            let usable = |code: &u16| {
                offer.groups.contains(code) && row.groups().any(|row| row.code_point == *code)
            };
            let sent = offer.shares.iter().flatten().any(usable);
            if choice.version == Version::Tls13 {
                prop_assert_eq!(choice.hello_retry, !sent);
            }
        }
    }

    #[test]
    fn refusals_say_why(
        offer in offers(),
        certificates in certificates(),
        row in select(POLICIES.iter().filter(|row| row.has_tls()).collect::<Vec<_>>()),
    ) {
        for mode in Mode::ALL {
            let rules = Rules { policy: row, mode };
            let Decision::Refuse(refusal) = decide(&rules, &offer, &certificates) else { continue };
            match refusal {
                Refusal::Classical => prop_assert!(!offer.groups.iter().any(is_post_quantum)),
                Refusal::Group => prop_assert!(
                    !rules.groups().any(|row| offer.groups.contains(&row.code_point))
                        || !offer.versions.contains(&0x0304)
                        || rules.groups().all(|row| row.strength.is_post_quantum())
                ),
                Refusal::Version | Refusal::Suite | Refusal::Scheme => {}
            }
        }
    }

    #[test]
    fn fingerprints_are_always_whole(offer in offers()) {
        let found = ja4::ja4(&offer);
        prop_assert_eq!(found.len(), ja4::LEN);
        prop_assert!(found.is_ascii());
    }
}
