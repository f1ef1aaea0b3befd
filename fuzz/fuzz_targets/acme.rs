//! ACME requests: JWS, keys in JSON, and paths. Every input gets an answer.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outlast_api::acme::jwk::PublicKey;
use outlast_api::acme::jws::{Jws, Signer};
use outlast_api::acme::resource::Resource;
use outlast_domain::acme::DnsName;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = Resource::parse(text);
        if let Ok(name) = DnsName::parse(text) {
            assert_eq!(DnsName::parse(&name.to_string()), Ok(name));
        }
    }
    if let Ok(jwk) = serde_json::from_slice(bytes)
        && let Ok(key) = PublicKey::parse(&jwk)
    {
        // The stored form parses to the same key.
        assert_eq!(PublicKey::of_account(&key.account_key()).ok(), Some(key));
    }
    if let Ok(jws) = Jws::parse(bytes)
        && let Signer::Jwk(jwk) = &jws.signer
        && let Ok(key) = PublicKey::parse(jwk)
    {
        let _ = key.verify(&jws.algorithm, &jws.signed, &jws.signature);
    }
});
