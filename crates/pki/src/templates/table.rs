//! The rows.

use const_oid::ObjectIdentifier;
use x509_cert::ext::pkix::KeyUsages;

use super::{
    CA_KEY_USAGE, CLIENT_AUTH, CODE_SIGNING, IPSEC_IKE, Kind, OCSP_SIGNING, Passthrough,
    SERVER_AUTH, TIME_STAMPING, Template,
};

/// All templates. The first row is AWS's default.
pub static TEMPLATES: &[Template] = &[
    base("EndEntityCertificate", END_ENTITY),
    base("EndEntityClientAuthCertificate", CLIENT),
    base("EndEntityServerAuthCertificate", SERVER),
    base("CodeSigningCertificate", CODE_SIGNER),
    base("OCSPSigningCertificate", OCSP_SIGNER),
    base("RootCACertificate", ROOT),
    base("SubordinateCACertificate_PathLen0", sub(0)),
    base("SubordinateCACertificate_PathLen1", sub(1)),
    base("SubordinateCACertificate_PathLen2", sub(2)),
    base("SubordinateCACertificate_PathLen3", sub(3)),
    // With the request's extensions.
    csr("EndEntityCertificate_CSRPassthrough", END_ENTITY),
    csr("EndEntityClientAuthCertificate_CSRPassthrough", CLIENT),
    csr("EndEntityServerAuthCertificate_CSRPassthrough", SERVER),
    csr("CodeSigningCertificate_CSRPassthrough", CODE_SIGNER),
    csr("OCSPSigningCertificate_CSRPassthrough", OCSP_SIGNER),
    csr("SubordinateCACertificate_PathLen0_CSRPassthrough", sub(0)),
    csr("SubordinateCACertificate_PathLen1_CSRPassthrough", sub(1)),
    csr("SubordinateCACertificate_PathLen2_CSRPassthrough", sub(2)),
    csr("SubordinateCACertificate_PathLen3_CSRPassthrough", sub(3)),
    csr("BlankEndEntityCertificate_CSRPassthrough", BLANK),
    csr("BlankEndEntityCertificate_CriticalBasicConstraints_CSRPassthrough", BLANK_CRITICAL),
    csr("BlankSubordinateCACertificate_PathLen0_CSRPassthrough", blank_sub(0)),
    csr("BlankSubordinateCACertificate_PathLen1_CSRPassthrough", blank_sub(1)),
    csr("BlankSubordinateCACertificate_PathLen2_CSRPassthrough", blank_sub(2)),
    csr("BlankSubordinateCACertificate_PathLen3_CSRPassthrough", blank_sub(3)),
    // With the call's extensions.
    api("EndEntityCertificate_APIPassthrough", END_ENTITY),
    api("EndEntityClientAuthCertificate_APIPassthrough", CLIENT),
    api("EndEntityServerAuthCertificate_APIPassthrough", SERVER),
    api("CodeSigningCertificate_APIPassthrough", CODE_SIGNER),
    api("OCSPSigningCertificate_APIPassthrough", OCSP_SIGNER),
    api("SubordinateCACertificate_PathLen0_APIPassthrough", sub(0)),
    api("SubordinateCACertificate_PathLen1_APIPassthrough", sub(1)),
    api("SubordinateCACertificate_PathLen2_APIPassthrough", sub(2)),
    api("SubordinateCACertificate_PathLen3_APIPassthrough", sub(3)),
    api("BlankEndEntityCertificate_APIPassthrough", BLANK),
    api("BlankEndEntityCertificate_CriticalBasicConstraints_APIPassthrough", BLANK_CRITICAL),
    api("BlankSubordinateCACertificate_PathLen0_APIPassthrough", blank_sub(0)),
    api("BlankSubordinateCACertificate_PathLen1_APIPassthrough", blank_sub(1)),
    api("BlankSubordinateCACertificate_PathLen2_APIPassthrough", blank_sub(2)),
    api("BlankSubordinateCACertificate_PathLen3_APIPassthrough", blank_sub(3)),
    api("RootCACertificate_APIPassthrough", ROOT),
    api("BlankRootCACertificate_APIPassthrough", blank_root(None)),
    api("BlankRootCACertificate_PathLen0_APIPassthrough", blank_root(Some(0))),
    api("BlankRootCACertificate_PathLen1_APIPassthrough", blank_root(Some(1))),
    api("BlankRootCACertificate_PathLen2_APIPassthrough", blank_root(Some(2))),
    api("BlankRootCACertificate_PathLen3_APIPassthrough", blank_root(Some(3))),
    // With both.
    both("EndEntityCertificate_APICSRPassthrough", END_ENTITY),
    both("EndEntityClientAuthCertificate_APICSRPassthrough", CLIENT),
    both("EndEntityServerAuthCertificate_APICSRPassthrough", SERVER),
    both("CodeSigningCertificate_APICSRPassthrough", CODE_SIGNER),
    both("OCSPSigningCertificate_APICSRPassthrough", OCSP_SIGNER),
    both("SubordinateCACertificate_PathLen0_APICSRPassthrough", sub(0)),
    both("SubordinateCACertificate_PathLen1_APICSRPassthrough", sub(1)),
    both("SubordinateCACertificate_PathLen2_APICSRPassthrough", sub(2)),
    both("SubordinateCACertificate_PathLen3_APICSRPassthrough", sub(3)),
    both("BlankEndEntityCertificate_APICSRPassthrough", BLANK),
    both("BlankEndEntityCertificate_CriticalBasicConstraints_APICSRPassthrough", BLANK_CRITICAL),
    both("BlankSubordinateCACertificate_PathLen0_APICSRPassthrough", blank_sub(0)),
    both("BlankSubordinateCACertificate_PathLen1_APICSRPassthrough", blank_sub(1)),
    both("BlankSubordinateCACertificate_PathLen2_APICSRPassthrough", blank_sub(2)),
    both("BlankSubordinateCACertificate_PathLen3_APICSRPassthrough", blank_sub(3)),
    // Beyond AWS.
    base("IPSecEndEntityCertificate", IPSEC),
    csr("IPSecEndEntityCertificate_CSRPassthrough", IPSEC),
    api("IPSecEndEntityCertificate_APIPassthrough", IPSEC),
    both("IPSecEndEntityCertificate_APICSRPassthrough", IPSEC),
    base("KeyEncapsulationCertificate", ENCAPSULATION),
    csr("KeyEncapsulationCertificate_CSRPassthrough", ENCAPSULATION),
    api("KeyEncapsulationCertificate_APIPassthrough", ENCAPSULATION),
    both("KeyEncapsulationCertificate_APICSRPassthrough", ENCAPSULATION),
    base("TimeStampingCertificate", TIME_STAMPER),
    csr("TimeStampingCertificate_CSRPassthrough", TIME_STAMPER),
    api("TimeStampingCertificate_APIPassthrough", TIME_STAMPER),
    both("TimeStampingCertificate_APICSRPassthrough", TIME_STAMPER),
];

const NONE: Template = Template {
    name: "",
    kind: Kind::EndEntity,
    passthrough: Passthrough::None,
    aws: true,
    root_path_len: None,
    critical_constraints: false,
    key_usage: &[],
    extended_key_usage: &[],
    extended_key_usage_critical: false,
    named: false,
};

const END_ENTITY: Template = tls(&[SERVER_AUTH, CLIENT_AUTH]);
const CLIENT: Template = tls(&[CLIENT_AUTH]);
const SERVER: Template = tls(&[SERVER_AUTH]);
const CODE_SIGNER: Template = signer(&[CODE_SIGNING]);
const OCSP_SIGNER: Template = signer(&[OCSP_SIGNING]);
const BLANK: Template = NONE;
const BLANK_CRITICAL: Template = Template { critical_constraints: true, ..NONE };
const ROOT: Template = Template { kind: Kind::Root, key_usage: CA_KEY_USAGE, ..NONE };
/// An IPsec peer, which IKEv2 identifies by one of its alternative names: RFC 4945, sections 3.1 and 5.1.3. Key usage
/// has digitalSignature or nonRepudiation (5.1.3.2); the extended key usage is not critical (5.1.3.12).
const IPSEC: Template = Template {
    aws: false,
    key_usage: &[KeyUsages::DigitalSignature],
    extended_key_usage: &[IPSEC_IKE],
    named: true,
    ..NONE
};
/// RFC 9935, section 5: keyEncipherment and nothing else.
const ENCAPSULATION: Template =
    Template { aws: false, key_usage: &[KeyUsages::KeyEncipherment], ..NONE };
/// RFC 3161, section 2.3: one extended key usage, and it is critical.
const TIME_STAMPER: Template = Template { aws: false, ..signer(&[TIME_STAMPING]) };

const fn tls(extended_key_usage: &'static [ObjectIdentifier]) -> Template {
    Template {
        key_usage: &[KeyUsages::DigitalSignature, KeyUsages::KeyEncipherment],
        extended_key_usage,
        ..NONE
    }
}

const fn signer(purpose: &'static [ObjectIdentifier]) -> Template {
    Template {
        key_usage: &[KeyUsages::DigitalSignature],
        extended_key_usage: purpose,
        extended_key_usage_critical: true,
        ..NONE
    }
}

const fn sub(path_len: u8) -> Template {
    Template { key_usage: CA_KEY_USAGE, ..blank_sub(path_len) }
}

const fn blank_sub(path_len: u8) -> Template {
    Template { kind: Kind::Subordinate(path_len), ..NONE }
}

const fn blank_root(root_path_len: Option<u8>) -> Template {
    Template { kind: Kind::Root, root_path_len, ..NONE }
}

const fn base(name: &'static str, row: Template) -> Template {
    Template { name, ..row }
}

const fn csr(name: &'static str, row: Template) -> Template {
    Template { name, passthrough: Passthrough::Request, ..row }
}

const fn api(name: &'static str, row: Template) -> Template {
    Template { name, passthrough: Passthrough::Call, ..row }
}

const fn both(name: &'static str, row: Template) -> Template {
    Template { name, passthrough: Passthrough::Both, ..row }
}
