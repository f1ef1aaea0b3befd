//! Outlast's own operations, untyped, and what the tests of approvals ask for.

use http::HeaderMap;
use outlast_crypto::digests::Digest;
use serde_json::{Value, json};

use crate::common::{ACCOUNT, Answer, Fixture, Who, allow, answer, b64};

impl Fixture {
    /// An operation of Outlast's own.
    pub fn outlast_as(&self, who: &Who, operation: &str, body: &Value) -> Answer {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", "application/x-amz-json-1.1".parse().unwrap());
        let prefix = outlast_api::ops::OUTLAST.model.target_prefix;
        headers.insert("x-amz-target", format!("{prefix}.{operation}").parse().unwrap());
        answer(&self.request(who, "outlast", headers, body.to_string().as_bytes()))
    }

    /// The same by the administrator.
    pub fn outlast(&self, operation: &str, body: &Value) -> Answer {
        self.outlast_as(&Who::admin(), operation, body)
    }
}

/// A file of a request that is itself the message, to be signed with this algorithm.
pub fn file(name: &str, contents: &[u8], algorithm: &str) -> Value {
    let digest = Digest::by_name("sha512").unwrap().digest(contents);
    json!({
        "Name": name, "DigestAlgorithm": "sha512", "Digest": b64(&digest),
        "SigningAlgorithm": algorithm, "Message": b64(contents),
    })
}

/// Signs with ECDSA on P-256.
pub const ECDSA: &str = "ECDSA_SHA_256";

/// The ARN of a user of the account.
pub fn user_arn(name: &str) -> String {
    format!("arn:aws:iam::{ACCOUNT}:user/{name}")
}

/// A rule that this many of these principals must approve.
pub fn rule(required: usize, approvers: &[String]) -> Value {
    let approvers: Vec<_> = approvers.iter().map(|arn| json!({ "PrincipalArn": arn })).collect();
    json!({ "ApproversRequired": required, "Approvers": approvers })
}

/// A key that signs what two of Alice, Bob and Carol have approved, and Rita, who asks.
pub struct Scene {
    pub fixture: Fixture,
    pub key: String,
    pub rita: Who,
    pub alice: Who,
    pub bob: Who,
    pub carol: Who,
}

impl Scene {
    /// With a key on P-256.
    pub fn new() -> Self {
        let fixture = Fixture::new();
        let key = fixture.key_of("ECC_NIST_P256", "SIGN_VERIFY");
        Self::with_key(fixture, key)
    }

    pub fn with_key(fixture: Fixture, key: String) -> Self {
        let own = allow(&["outlast:*", "kms:Sign", "kms:GetPublicKey", "sts:*"]);
        let [rita, alice, bob, carol] = ["rita", "alice", "bob", "carol"]
            .map(|name| fixture.user(ACCOUNT, name, std::slice::from_ref(&own)));
        let scene = Self { fixture, key, rita, alice, bob, carol };
        let of = rule(2, &["alice", "bob", "carol"].map(user_arn));
        assert_eq!(scene.put(&of).unwrap()["Status"], "APPLIED");
        scene
    }

    /// The administrator sets the rule.
    pub fn put(&self, rule: &Value) -> Answer {
        let body = json!({ "KeyId": self.key, "Rule": rule });
        self.fixture.outlast("PutSigningApprovalRule", &body)
    }

    /// Asks for signatures of these texts.
    pub fn asked_by(&self, who: &Who, texts: &[&str]) -> Answer {
        let files: Vec<_> =
            texts.iter().map(|text| file(&format!("{text}.txt"), text.as_bytes(), ECDSA)).collect();
        let body = json!({ "KeyId": self.key, "Files": files });
        self.fixture.outlast_as(who, "RequestSigningApproval", &body)
    }

    /// Rita asks.
    #[track_caller]
    pub fn asked(&self, texts: &[&str]) -> Value {
        self.asked_by(&self.rita, texts).unwrap()
    }

    /// Approves what a request or change has answered.
    pub fn approve(&self, who: &Who, made: &Value) -> Answer {
        let body =
            json!({ "RequestId": made["RequestId"], "RequestDigest": made["RequestDigest"] });
        self.fixture.outlast_as(who, "ApproveSigning", &body)
    }

    /// Two approve.
    #[track_caller]
    pub fn approved(&self, made: &Value) {
        assert_eq!(self.approve(&self.alice, made).unwrap()["Status"], "PENDING");
        let last = self.approve(&self.bob, made).unwrap();
        assert_eq!((&last["Status"], &last["ApprovalsCounted"]), (&json!("APPROVED"), &json!(2)));
    }

    pub fn sign_by(&self, who: &Who, text: &str) -> Answer {
        let body = json!({ "KeyId": self.key, "Message": b64(text.as_bytes()), "SigningAlgorithm": ECDSA });
        self.fixture.kms_as(who, "Sign", body)
    }

    /// Rita signs.
    pub fn sign(&self, text: &str) -> Answer {
        self.sign_by(&self.rita, text)
    }

    /// What is known of a request.
    #[track_caller]
    pub fn request(&self, made: &Value) -> Value {
        let body = json!({ "RequestId": made["RequestId"] });
        self.fixture.outlast("GetSigningRequest", &body).unwrap()["Request"].clone()
    }
}

/// Checks that signing was refused for want of approvals, with these words.
#[track_caller]
pub fn refused(answer: Answer, words: &str) {
    let refused = answer.unwrap_err();
    assert_eq!(refused.code, "AccessDeniedException", "{}", refused.message);
    assert!(refused.message.contains(words), "{}", refused.message);
}
