//! What a request for an SSH certificate says, and what the audit trail has of it.

use outlast_domain::ssh_ca::{Order, Said};
use outlast_pki::time::rfc3339;
use outlast_ssh::CertificateKind;

use crate::aws::outlast::SignSshCertificateRequest;
use crate::call::Call;
use crate::wire::Timestamp;

/// The request in the domain's words.
pub fn said(input: SignSshCertificateRequest) -> Said {
    let at = |time: Option<Timestamp>| time.map(|time| time.ms.div_euclid(1000));
    Said {
        public_key: input.public_key,
        // The model allows no other type.
        kind: match input.certificate_type.as_str() {
            "HOST" => CertificateKind::Host,
            _ => CertificateKind::User,
        },
        principals: input.principals.unwrap_or_default(),
        identity: input.identity,
        serial: input.serial_number.and_then(|serial| u64::try_from(serial).ok()),
        valid_after: at(input.valid_after),
        valid_before: at(input.valid_before),
        critical_options: input.critical_options.unwrap_or_default().into_iter().collect(),
        extensions: input.extensions.unwrap_or_default().into_iter().collect(),
    }
}

/// Notes a certificate for the audit record, before anything decides about it.
pub fn note(call: &mut Call<'_>, order: &Order) {
    let fields = &order.fields;
    let time = |at: u64| rfc3339(i64::try_from(at).unwrap_or(i64::MAX));
    let kind = outlast_domain::ssh_ca::kind_name(fields.kind);
    call.notes.parameter("certificateType", kind);
    call.notes.parameter("principals", fields.principals.clone());
    call.notes.parameter("identity", fields.key_id.as_str());
    // In JSON, numbers beyond 2^53 lose digits.
    call.notes.parameter("serialNumber", fields.serial.to_string());
    call.notes.parameter("validAfter", time(fields.valid_after_s));
    call.notes.parameter("validBefore", time(fields.valid_before_s));
    call.notes.parameter("publicKeyFingerprint", order.subject.fingerprint());
    let (critical, extensions) = order.shown();
    call.notes.parameter("criticalOptions", critical.to_vec());
    call.notes.parameter("extensions", extensions.to_vec());
}
