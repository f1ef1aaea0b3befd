//! Evidence records (RFC 4998): parsed, compared with data, and verified without trusted authorities.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outlast_pki::evidence_record::EvidenceRecord;
use outlast_pki::trusted_time::{Authority, Trust, due};
use outlast_pki::validate::Revocation;

fuzz_target!(|bytes: &[u8]| {
    let Ok(record) = EvidenceRecord::parse(bytes) else { return };
    assert_eq!(record.to_der().as_deref(), Ok(bytes));
    let objects: Vec<_> = record
        .digests()
        .iter()
        .map(|digest| vec![digest.digest(b"a"), digest.digest(b"b")])
        .collect();
    let _ = record.links(&objects);
    let _ = record.tokens_to_cover();
    let _ = due::of_record(&record);
    let now = 1_800_000_000;
    let authorities = [Authority::Roots(Vec::new()), Authority::PublicKey(vec![0; 32])];
    let trust = Trust {
        authorities: &authorities,
        least: 1,
        policies: &[],
        certificates: &[],
        now,
        holds_at: now,
        revocation: Revocation::IfPresent,
        crls: &[],
        ocsp: &[],
        seen: None,
        suits: &|_, _| None,
    };
    let _ = trust.evidence(&record, &objects);
});
