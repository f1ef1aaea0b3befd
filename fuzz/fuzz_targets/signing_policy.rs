//! Signing policies from any text; the name of a file, and what a policy says in words.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outlast_pki::signing_policy::file;
use outlast_pki::signing_policy::log::Log;
use outlast_pki::signing_policy::names::FileName;
use outlast_pki::signing_policy::words::explain;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(name) = FileName::parse(text) {
        assert!(!name.as_str().split('/').any(|part| part == ".." || part == "."));
        assert_eq!(FileName::parse(name.as_str()).as_ref(), Ok(&name));
    }
    match file::parse("fuzz", text) {
        Ok(policy) => {
            assert!(
                !policy.rules.is_empty() && policy.rules.iter().all(|rule| !rule.files.is_empty())
            );
            assert!(explain(&policy).contains("every other file is refused"));
            for rule in &policy.rules {
                if let Some(Log::Inline { policy, witnesses }) = &rule.log {
                    let mut keys: Vec<_> =
                        policy.witnesses().map(|witness| witness.key.public_key()).collect();
                    keys.sort_unstable();
                    keys.dedup();
                    assert!(!policy.logs().is_empty() && *witnesses <= keys.len());
                }
            }
            let name = FileName::parse("dist/release.bin").unwrap();
            if let Some(rule) = policy.rule_for(&name) {
                assert!(rule.phase(0).is_some_and(|phase| !phase.all_of.is_empty()));
            }
        }
        Err(error) => assert_eq!(error.unknown.is_none(), error.possible.is_empty()),
    }
});
