//! `SignSshCertificate`: issues an OpenSSH certificate for a user or a host with a KMS key. Ours; described in
//! `docs/guide/ssh-ca.md`.
//!
//! The caller needs no permission for the key, and the policies of the caller decide about what the certificate says. A call
//! that is repeated issues another certificate.

use outlast_crypto::digests::sha256;
use outlast_domain::identity::action;
use outlast_domain::ssh_ca::{self, Order, Signed};
use outlast_ssh::Certificate;
use serde_json::json;

use crate::aws::kms::SERVICE as KMS;
pub use crate::aws::outlast::{
    SignSshCertificate, SignSshCertificateRequest as Input, SignSshCertificateResponse as Output,
};
use crate::call::{Call, Forwarded, Run};
use crate::model::outlast::own_key;
use crate::model::ssh_ca::{note, said};
use crate::wire::{ApiError, Timestamp};

/// Who signs, in the events of KMS.
const BY: &str = "ssh.outlast";

impl Run for SignSshCertificate {
    const READ_ONLY: bool = false;

    fn run(call: &mut Call<'_>, input: Input) -> Result<Output, ApiError> {
        let key = own_key(call, action::outlast::SignSshCertificate, &input.key_id)?;
        let order = Order::new(said(input), &call.caller, call.work.now_ms())?;
        note(call, &order);
        ssh_ca::describe(&mut call.conditions, &order);
        let arn = ssh_ca::authority_arn(&key);
        let permit = call.authorize(action::outlast::SignSshCertificate, &arn)?;
        let (ring, policies) = (call.ring, call.policies);
        let issued = ssh_ca::issue(&mut call.work, ring, policies, &key, &order, &permit)?;
        for signed in issued.signatures {
            call.forwarded.push(event(signed, &issued.certificate));
        }
        let certificate = issued.certificate;
        let fields = certificate.fields();
        let authority = certificate.authority().fingerprint();
        call.notes.response("authorityFingerprint", authority.as_str());
        Ok(Output {
            key_id: key.arn(),
            certificate: certificate.to_openssh_line(),
            identity: fields.key_id.clone(),
            principals: fields.principals.clone(),
            serial_number: i64::try_from(fields.serial).unwrap_or(i64::MAX),
            valid_after: seconds(fields.valid_after_s),
            valid_before: seconds(fields.valid_before_s),
            public_key_fingerprint: certificate.key().fingerprint(),
            authority_fingerprint: authority,
        })
    }
}

fn seconds(at: u64) -> Timestamp {
    Timestamp::from_seconds(i64::try_from(at).unwrap_or(i64::MAX))
}

/// The event of a key's signature, by which its owner finds it ([`super::list_key_signatures`]).
fn event(signed: Signed, certificate: &Certificate) -> Forwarded {
    let mut event = Forwarded::new(&KMS, "Sign", Some(BY));
    event.region.clone_from(&signed.key.scope().region);
    event.notes.parameter("keyId", signed.key.arn());
    event.notes.parameter("signingAlgorithm", signed.algorithm.kms_name);
    event.notes.resource(signed.key.arn(), "AWS::KMS::Key");
    event.notes.additional("signatureSha256", hex::encode(sha256(&signed.signature)));
    let fields = certificate.fields();
    event.notes.additional(
        "sshCertificate",
        json!({ "serialNumber": fields.serial.to_string(), "identity": fields.key_id }),
    );
    event.key = Some(signed.key);
    event
}
