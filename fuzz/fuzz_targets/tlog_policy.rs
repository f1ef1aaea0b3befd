//! Trust policies from any text, and a checkpoint that satisfies none of them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outlast_tlog::checkpoint::SignedCheckpoint;
use outlast_tlog::policy::Policy;

const CHECKPOINT: &str = "PeterNeumann\n1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n\u{2014} PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n";

fuzz_target!(|bytes: &[u8]| {
    match Policy::parse(bytes) {
        Ok(policy) => {
            let checkpoint = SignedCheckpoint::parse(CHECKPOINT.as_bytes()).unwrap();
            assert!(policy.evaluate(&checkpoint).is_err());
        }
        Err(error) => assert!(error.to_string().len() < 1024),
    }
});
