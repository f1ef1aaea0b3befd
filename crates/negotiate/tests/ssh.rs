//! Offers of SSH clients, and what becomes of them under each policy.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use outlast_crypto::ssh::{ALGORITHMS, Algorithm, Kind, UNSERVED};
use outlast_negotiate::catalogue::POLICIES;
use outlast_negotiate::diff::diff;
use outlast_negotiate::explain::explain;
use outlast_negotiate::ssh::audit::policy_file;
use outlast_negotiate::ssh::{
    CROWD, MAX_LIST, SshChosen, SshNothingLeft, SshOffer, SshRefusal, SshRules, decide_ssh,
    decide_ssh_late, explain_ssh, is_name, served, server_lists,
};
use outlast_negotiate::{Mode, Rules, SecurityPolicy};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

fn policy(name: &str) -> &'static SecurityPolicy {
    SecurityPolicy::by_name(name).unwrap()
}

fn rules(name: &str, mode: Mode) -> SshRules {
    SshRules::new(policy(name), Some(mode), served).unwrap()
}

fn client(name: &str) -> SshOffer {
    CROWD.iter().find(|row| row.name.starts_with(name)).unwrap().offer.clone()
}

fn with_methods(methods: &str) -> SshOffer {
    let mut offer = client("OpenSSH 10.0");
    offer.key_exchanges = methods.split(',').map(str::to_owned).collect();
    offer
}

fn gets(rules: &SshRules, methods: &str) -> Result<&'static str, SshRefusal> {
    decide_ssh(rules, &with_methods(methods)).map(|chosen| chosen.key_exchange)
}

#[test]
fn a_server_that_waits_can_prefer_hybrids() {
    let classical_first = "curve25519-sha256,mlkem768x25519-sha256";
    let hybrid_first = "mlkem1024nistp384-sha384,curve25519-sha256";
    let (x25519, hybrid) = ("curve25519-sha256", "mlkem768x25519-sha256");
    let of = |mode| rules("2026-11", mode);
    assert_eq!(gets(&of(Mode::Prefer), classical_first), Ok(hybrid));
    assert_eq!(gets(&of(Mode::Require), classical_first), Ok(hybrid));
    assert_eq!(gets(&of(Mode::Allow), classical_first), Ok(x25519));
    assert_eq!(gets(&of(Mode::Off), classical_first), Ok(x25519));
    // Among hybrids the client's order counts.
    assert_eq!(gets(&of(Mode::Prefer), hybrid_first), Ok("mlkem1024nistp384-sha384"));
    assert_eq!(gets(&of(Mode::Prefer), x25519), Ok(x25519));
    assert_eq!(gets(&of(Mode::Require), x25519), Err(SshRefusal::Classical));
    assert_eq!(gets(&of(Mode::Off), hybrid), Err(SshRefusal::KeyExchange));
    // A hybrid that is not served is not a classical client.
    let sntrup = "sntrup761x25519-sha512,curve25519-sha256";
    assert_eq!(gets(&of(Mode::Require), sntrup), Err(SshRefusal::KeyExchange));
    assert_eq!(gets(&of(Mode::Prefer), sntrup), Ok(x25519));
}

#[test]
fn only_a_list_that_depends_on_the_clients_waits_for_it() {
    let waits = |name, mode| rules(name, mode).waits();
    assert!(waits("2026-11", Mode::Prefer));
    for mode in [Mode::Require, Mode::Allow, Mode::Off] {
        assert!(!waits("2026-11", mode), "{mode}");
    }
    assert!(!waits("classical-2026-11", Mode::Prefer));
    assert!(!waits("2026-11-require-pq", Mode::Prefer));
    let rules = rules("2026-11", Mode::Prefer);
    let names = |offer: Option<&SshOffer>| server_lists(&rules, offer).key_exchanges.clone();
    let hybrids = ["mlkem768x25519-sha256", "mlkem768nistp256-sha256", "mlkem1024nistp384-sha384"];
    assert_eq!(names(Some(&client("Dropbear"))), names(None));
    assert!(names(None).contains(&"ecdh-sha2-nistp384"));
    assert_eq!(names(Some(&with_methods("x,mlkem768nistp256-sha256"))), hybrids);
    // What the listener does not implement is not listed.
    assert!(names(None).iter().all(|name| !UNSERVED.contains(name)));
}

/// RFC 4253, section 7.1, by sets instead of positions: the chosen name is in both lists, and no name before it in the
/// client's list is in the server's.
fn is_first_common(client: &[String], server: &[&str], chosen: Option<&str>) -> bool {
    match chosen {
        Some(chosen) => {
            let before = client.iter().take_while(|name| *name != chosen);
            client.iter().any(|name| name == chosen)
                && server.contains(&chosen)
                && before.into_iter().all(|name| !server.contains(&name.as_str()))
        }
        None => client.iter().all(|name| !server.contains(&name.as_str())),
    }
}

fn check(rules: &SshRules, offer: &SshOffer) {
    let lists = server_lists(rules, Some(offer));
    let is_post_quantum = |name: &str| Algorithm::by_name(name).is_some_and(|row| row.post_quantum);
    match decide_ssh(rules, offer) {
        Ok(SshChosen { key_exchange, post_quantum, host_key, to_server, to_client }) => {
            assert!(is_first_common(
                &offer.key_exchanges,
                &lists.key_exchanges,
                Some(key_exchange)
            ));
            assert!(is_first_common(&offer.host_keys, &lists.host_keys, Some(host_key)));
            for (direction, ciphers, macs) in [
                (to_server, &offer.ciphers_to_server, &offer.macs_to_server),
                (to_client, &offer.ciphers_to_client, &offer.macs_to_client),
            ] {
                assert!(is_first_common(ciphers, &lists.ciphers, Some(direction.cipher)));
                let authenticates = Algorithm::by_name(direction.cipher).unwrap().authenticates();
                assert_eq!(direction.mac.is_none(), authenticates);
                assert!(authenticates || is_first_common(macs, &lists.macs, direction.mac));
            }
            assert_eq!(post_quantum, is_post_quantum(key_exchange));
            let could = offer.methods().any(|name| {
                is_post_quantum(name)
                    && rules.policy.ssh.key_exchanges.contains(&name)
                    && served(name)
            });
            match rules.mode {
                Mode::Require => assert!(post_quantum),
                Mode::Prefer => assert_eq!(post_quantum, could),
                Mode::Off => assert!(!post_quantum),
                Mode::Allow => {}
            }
        }
        Err(SshRefusal::KeyExchange | SshRefusal::Classical) => {
            assert!(is_first_common(&offer.key_exchanges, &lists.key_exchanges, None));
        }
        Err(SshRefusal::HostKey) => {
            assert!(is_first_common(&offer.host_keys, &lists.host_keys, None));
        }
        Err(SshRefusal::Cipher) => {
            let none = |names: &[String]| is_first_common(names, &lists.ciphers, None);
            assert!(none(&offer.ciphers_to_server) || none(&offer.ciphers_to_client));
        }
        Err(SshRefusal::Mac) => {
            let none = |names: &[String]| is_first_common(names, &lists.macs, None);
            assert!(none(&offer.macs_to_server) || none(&offer.macs_to_client));
        }
        Err(SshRefusal::Compression) => {
            let compresses = |names: &[String]| !names.iter().any(|name| name == "none");
            let SshOffer { compressions_to_server, compressions_to_client, .. } = offer;
            assert!(compresses(compressions_to_server) || compresses(compressions_to_client));
        }
        Err(SshRefusal::Order) => panic!("the server has the client's list"),
    }
    check_late(rules, offer);
}

/// A list that comes late gets the same as one in time, or nothing: never less than it offers.
fn check_late(rules: &SshRules, offer: &SshOffer) {
    let in_time = decide_ssh(rules, offer);
    match decide_ssh_late(rules, offer) {
        Err(SshRefusal::Order) => {
            assert!(rules.waits() && in_time.is_ok_and(|chosen| chosen.post_quantum));
            let all = &server_lists(rules, None).key_exchanges;
            let first = offer.key_exchanges.iter().find(|name| all.contains(&name.as_str()));
            let row = first.and_then(|name| Algorithm::by_name(name));
            assert!(row.is_some_and(|row| !row.post_quantum), "{first:?}");
        }
        late => assert_eq!(late, in_time),
    }
}

#[test]
fn common_clients_get_what_the_rule_says_under_every_policy() {
    let mut cases = 0;
    for policy in POLICIES.iter().filter(|row| row.has_ssh()) {
        for mode in Mode::ALL {
            let Ok(rules) = SshRules::new(policy, Some(mode), served) else { continue };
            for client in CROWD.iter() {
                check(&rules, &client.offer);
                cases += 1;
            }
        }
    }
    assert!(cases > 300, "{cases}");
}

fn names(kind: Kind) -> impl Strategy<Value = String> {
    let known: Vec<&'static str> =
        ALGORITHMS.iter().filter(|row| row.kind == kind).map(|row| row.name).collect();
    let count = known.len();
    let strange = prop::collection::vec("[a-z0-9@.-]{1,12}", 0..3);
    (subsequence(known, 0..=count).prop_shuffle(), strange).prop_map(|(mut names, strange)| {
        names.truncate(6);
        let strange = strange.iter().map(String::as_str);
        strange.chain(names.iter().copied()).collect::<Vec<_>>().join(",")
    })
}

prop_compose! {
    fn offer()(
        methods in names(Kind::KeyExchange),
        host_keys in names(Kind::HostKey),
        ciphers in [names(Kind::Cipher), names(Kind::Cipher)],
        macs in [names(Kind::Mac), names(Kind::Mac)],
        compressions in [select(vec!["none", "zlib,none", "zlib"]), select(vec!["none", "none,zlib"])],
    ) -> SshOffer {
        let [up, down] = &ciphers;
        let [mac_up, mac_down] = &macs;
        let [z_up, z_down] = compressions;
        let lists = [&methods, &host_keys, up, down, mac_up, mac_down];
        let [k, h, u, d, m, n] = lists.map(String::as_str);
        SshOffer::new("SSH-2.0-test", [k, h, u, d, m, n, z_up, z_down])
    }
}

proptest! {
    #[test]
    fn any_offer_gets_what_the_rule_says(
        offer in offer(),
        policy in select(POLICIES.iter().filter(|row| row.has_ssh()).collect::<Vec<_>>()),
        mode in select(Mode::ALL.to_vec()),
    ) {
        if let Ok(rules) = SshRules::new(policy, Some(mode), served) {
            check(&rules, &offer);
        }
    }

    /// A client decides what is in its lists.
    #[test]
    fn whatever_is_sent_an_offer_is_small_and_printable(
        identification in "\\PC{0,400}|[\u{0}-\u{9f}]{0,400}",
        list in "[\u{0}-\u{ff}]{0,3000}|([a-z\"\\\\,@]{0,90},){0,300}",
    ) {
        let offer = SshOffer::new(&identification, [&list; 8]);
        prop_assert!(offer.identification.chars().all(|c| c == ' ' || c.is_ascii_graphic()));
        prop_assert!(offer.identification.len() < 256);
        for names in offer.lists() {
            prop_assert!(names.iter().all(|name| is_name(name)));
            prop_assert!(names.join(",").len() <= MAX_LIST);
        }
        let sent = list.split(',').filter(|name| !name.is_empty()).count();
        prop_assert_eq!(offer.cut, offer.key_exchanges.len() < sent);
        prop_assert!(!offer.cut || offer.hassh().is_none());
    }
}

#[test]
fn captured_offers_are_whole_and_have_the_usual_fingerprint() {
    for client in CROWD.iter() {
        let offer = &client.offer;
        assert!(!offer.cut && offer.identification.starts_with("SSH-2.0-"), "{}", client.name);
        assert!(offer.lists().iter().all(|list| !list.is_empty()), "{}", client.name);
        assert_eq!(offer.hassh().unwrap().len(), 32);
        let same = |other: &&outlast_negotiate::ssh::SshClient| other.name == client.name;
        assert_eq!(CROWD.iter().filter(same).count(), 1, "{}", client.name);
    }
    let paramiko = client("paramiko");
    assert!(paramiko.is_strict() && paramiko.takes_ext_info());
    assert_eq!(paramiko.software(), "paramiko_5.1.0");
    assert_eq!(client("OpenSSH 9.2").software(), "OpenSSH_9.2p1");
    assert!(!client("OpenSSH 9.2").methods().any(|name| name.contains("ext-info")));
    // From the examples of its authors: `SSH-2.0-OpenSSH_7.9`.
    let lists = [
        "curve25519-sha256,curve25519-sha256@libssh.org,ecdh-sha2-nistp256,ecdh-sha2-nistp384,ecdh-sha2-nistp521,diffie-hellman-group-exchange-sha256,diffie-hellman-group16-sha512,diffie-hellman-group18-sha512,diffie-hellman-group-exchange-sha1,diffie-hellman-group14-sha256,diffie-hellman-group14-sha1,ext-info-c",
        "ssh-ed25519",
        "chacha20-poly1305@openssh.com,aes128-ctr,aes192-ctr,aes256-ctr,aes128-gcm@openssh.com,aes256-gcm@openssh.com",
        "none",
        "umac-64-etm@openssh.com,umac-128-etm@openssh.com,hmac-sha2-256-etm@openssh.com,hmac-sha2-512-etm@openssh.com,hmac-sha1-etm@openssh.com,umac-64@openssh.com,umac-128@openssh.com,hmac-sha2-256,hmac-sha2-512,hmac-sha1",
        "none",
        "none,zlib@openssh.com,zlib",
        "none",
    ];
    let old = SshOffer::new("SSH-2.0-OpenSSH_7.9", lists);
    assert_eq!(old.hassh().unwrap(), "06046964c022c6407d15a27b12a6a4fb");
}

#[test]
fn a_policy_that_leaves_nothing_is_refused() {
    let new = |name, mode| SshRules::new(policy(name), Some(mode), served).unwrap_err();
    assert_eq!(new("20251014", Mode::Prefer), SshNothingLeft::NoSsh("20251014"));
    let classical = SshNothingLeft::NoKeyExchange("classical-2026-11", Mode::Require);
    assert_eq!(new("classical-2026-11", Mode::Require), classical);
    // Its only host key algorithm is not served.
    let cnsa = SshNothingLeft::NoHostKey("cnsa2-2026-11");
    assert_eq!(new("cnsa2-2026-11", Mode::Require), cnsa);
    // A server without RSA and ECDSA keys cannot have this policy.
    let ed25519 =
        |name: &str| served(name) && !name.starts_with("ecdsa") && !name.starts_with("rsa");
    assert!(SshRules::new(policy("bsi-2026-11"), None, ed25519).is_err());
    assert!(SshRules::new(policy("2026-11"), None, ed25519).is_ok());
}

#[test]
fn explanations_say_what_becomes_of_clients() {
    for policy in POLICIES {
        for mode in Mode::ALL {
            let found = explain(&Rules { policy, mode }).ssh;
            assert_eq!(found.is_some(), policy.has_ssh(), "{}", policy.name);
            let Some(found) = found else { continue };
            assert_eq!(found.clients.len(), CROWD.len());
            assert!(found.meaning.iter().all(|sentence| sentence.ends_with('.')));
            for reason in &found.key_exchanges {
                assert!(!reason.why.starts_with("a further"), "{}", reason.key_exchange);
            }
            let rules = SshRules::new(policy, Some(mode), served);
            for (fare, client) in found.clients.iter().zip(CROWD.iter()) {
                let outcome = rules.as_ref().ok().map(|rules| decide_ssh(rules, &client.offer));
                let outcome = outcome.and_then(Result::ok);
                assert_eq!(fare.served, outcome.is_some(), "{} {}", policy.name, client.name);
                assert_eq!(fare.post_quantum, outcome.is_some_and(|chosen| chosen.post_quantum));
                match outcome {
                    Some(chosen) => assert!(fare.outcome.starts_with(chosen.key_exchange)),
                    None => assert!(fare.outcome.starts_with("refused: "), "{}", fare.outcome),
                }
            }
        }
    }
    let found = explain_ssh(policy("2026-11"), Mode::Prefer).unwrap();
    let fare =
        |name: &str| found.clients.iter().find(|fare| fare.client.starts_with(name)).unwrap();
    assert!(fare("OpenSSH 10.0").post_quantum && fare("PuTTY 0.83").post_quantum);
    assert!(fare("OpenSSH 9.2").served && !fare("OpenSSH 9.2").post_quantum);
    // It has neither AES-GCM nor MACs over the ciphertext.
    assert_eq!(fare("libssh2 1.10").outcome, "refused: no MAC in common");
    let left = ["sntrup761x25519-sha512", "sntrup761x25519-sha512@openssh.com"];
    assert_eq!(found.not_served, left);
}

#[test]
fn a_difference_names_ssh_clients_that_are_lost() {
    let found = diff(policy("2026-11"), policy("2026-11-require-pq"));
    let lost: Vec<_> =
        found.clients.iter().filter(|change| change.lost).map(|change| change.client).collect();
    for name in ["OpenSSH 9.2 (Debian 12)", "libssh 0.11", "Dropbear 2022.83"] {
        assert!(lost.contains(&name), "{lost:?}");
    }
    assert!(!lost.iter().any(|name| name.starts_with("OpenSSH 10")));
    let transfer = diff(policy("TransferSecurityPolicy-2025-03"), policy("2026-11"));
    assert!(!transfer.clients.is_empty() && transfer.clients.iter().all(|change| !change.lost));
}

#[test]
fn files_of_ssh_audit_have_what_is_served() {
    for policy in POLICIES {
        let Ok(rules) = SshRules::new(policy, None, served) else { continue };
        let text = policy_file(&rules);
        let list = |key: &str| -> Vec<String> {
            let line = text.lines().find_map(|line| line.strip_prefix(&format!("{key} = ")));
            line.unwrap().split(", ").map(str::to_owned).collect()
        };
        let methods = list("key exchanges");
        assert_eq!(methods.last().unwrap(), "kex-strict-s-v00@openssh.com");
        let known = methods[..methods.len() - 1].iter().chain(&[]);
        assert!(known.into_iter().all(|name| served(name)), "{text}");
        assert_eq!(list("ciphers"), rules.lists().ciphers);
        assert_eq!(list("macs"), rules.lists().macs);
        let host_keys = list("host keys");
        for (name, with_certificate) in [
            ("ssh-mldsa44-ed25519", "ssh-mldsa44-ed25519-cert"),
            ("ssh-ed25519", "ssh-ed25519-cert-v01@openssh.com"),
            ("rsa-sha2-512", "rsa-sha2-512-cert-v01@openssh.com"),
        ] {
            let has = |name: &str| host_keys.iter().any(|found| found == name);
            assert_eq!(has(with_certificate), rules.lists().host_keys.contains(&name), "{text}");
        }
        assert_eq!(host_keys.len(), 2 * rules.lists().host_keys.len());
    }
}
