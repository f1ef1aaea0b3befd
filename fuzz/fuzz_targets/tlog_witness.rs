//! Requests to witnesses and their answers.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outlast_tlog::VerifierKey;
use outlast_tlog::checkpoint::SignedCheckpoint;
use outlast_tlog::witness::{
    AddCheckpoint, Decision, Head, Known, decide, parse_cosignatures, parse_size,
};

const CHECKPOINT: &str =
    "example.com/log\n1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n\u{2014} a AAAAAAA=\n";

fuzz_target!(|bytes: &[u8]| {
    let keys = ["PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"]
        .map(|key| key.parse::<VerifierKey>().unwrap());
    if let Ok(request) = AddCheckpoint::parse(bytes) {
        assert_eq!(request.to_string().as_bytes(), bytes);
        let known = Known { keys: keys.to_vec(), head: Head::default() };
        assert!(!matches!(decide(&request, Some(&known)), Decision::Cosign(_)));
        assert_eq!(decide(&request, None), Decision::UnknownOrigin);
    }
    let _ = parse_size(bytes);
    let checkpoint = SignedCheckpoint::parse(CHECKPOINT.as_bytes()).unwrap();
    assert!(parse_cosignatures(bytes, &checkpoint, &keys).is_err());
});
