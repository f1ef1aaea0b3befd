//! Keys that Certificate Manager makes, and their certificates from a private CA, or from two that are partners.

use outlast_crypto::Secret;
use outlast_crypto::keys::KeySpec;
use outlast_crypto::signatures::{Family, Message};
use outlast_pki::certificate::Certificate as X509;
use outlast_pki::extensions::subject_alternative_names;
use outlast_pki::general_name::GeneralName;
use outlast_pki::templates::Template;
use outlast_pki::{csr, name};

use super::certificate::{Certificate, Paired, Text, file};
use super::details::Details;
use crate::ca::{self, Authority, CaError, Issued, Requester, Validity, ValidityType, permission};
use crate::identity::{Permit, action};
use crate::keyring::KeyRing;
use crate::work::Work;
use crate::{Fault, ids, limits};

type MayIssue = Permit<action::acm_pca::IssueCertificate>;

/// The issuer of a certificate, and the issuer of its partner, if it has one.
#[derive(Clone, Copy)]
pub struct Issuers<'a> {
    /// The authority, with the permit to issue from it.
    pub authority: (&'a Authority, &'a MayIssue),
    /// Its partner, with the permit to issue from it.
    pub partner: Option<(&'a Authority, &'a MayIssue)>,
    /// The template that both issue by: [`private_template`], or that of certificates whose requests name no CA.
    pub template: &'static Template,
}

/// A new key with its certificate.
pub(super) struct Leaf {
    /// The key in its stored form.
    pub(super) stored: Secret,
    pub(super) certificate: X509,
    pub(super) text: Text,
}

/// A leaf and its partner, if it has one.
pub(super) struct Leaves {
    pub(super) own: Leaf,
    pub(super) paired: Option<Leaf>,
}

impl Issuers<'_> {
    /// End of a new certificate from these issuers, seconds since 1970.
    pub(super) fn end(&self, work: &Work<'_>) -> i64 {
        let partner = self.partner.map(|(partner, _)| end(work, partner, None));
        let own = end(work, self.authority.0, None);
        partner.map_or(own, |partner| partner.min(own))
    }

    /// Checks that both can issue now.
    pub(super) fn check_active(&self) -> Result<(), CaError> {
        let authority = self.authority.0;
        if authority.status() != ca::Status::Active {
            return Err(authority.state_error("cannot issue this certificate"));
        }
        match self.partner {
            Some((partner, _)) if partner.status() != ca::Status::Active => {
                Err(partner.state_error("cannot issue the paired certificate"))
            }
            _ => Ok(()),
        }
    }

    /// Makes keys and has them certified for these names. The partner's key has the type `paired`.
    pub(super) fn certify(
        &self,
        work: &mut Work<'_>,
        ring: &KeyRing,
        (spec, paired): (&KeySpec, Option<&KeySpec>),
        names: &[String],
        account: &str,
    ) -> Result<Leaves, CaError> {
        // Making keys takes long, so check before.
        self.check_active()?;
        let (authority, allowed) = self.authority;
        let until = Validity { value: self.end(work), kind: ValidityType::Absolute };
        let stored = spec.generate()?;
        let request = request_for(spec, &stored, names)?;
        let Some(((partner, at_partner), paired)) = self.partner.zip(paired) else {
            let new = new(authority, self.template, &request, (None, until));
            let arn =
                ca::issue_for(work, ring, authority, new, requester(authority, account), allowed)?;
            let issued = ca::issued(work, authority, &arn)?;
            return Ok(Leaves { own: Leaf::new(authority, stored, issued)?, paired: None });
        };
        let paired_stored = paired.generate()?;
        let paired_request = request_for(paired, &paired_stored, names)?;
        let new = new(authority, self.template, &request, (None, until));
        let both = (authority, partner);
        let requester = requester(authority, account);
        let allowed_both = (allowed, at_partner);
        let pair = ca::issue_pair(work, ring, both, new, &paired_request, requester, allowed_both)?;
        let issued = ca::issued(work, authority, &pair.certificate)?;
        let paired = ca::issued(work, partner, &pair.paired)?;
        Ok(Leaves {
            own: Leaf::new(authority, stored, issued)?,
            paired: Some(Leaf::new(partner, paired_stored, paired)?),
        })
    }
}

impl Certificate {
    /// Replaces key and certificate, and files the new ones.
    pub(super) fn take(
        &mut self,
        work: &mut Work<'_>,
        leaves: Leaves,
        issuers: &Issuers<'_>,
    ) -> Result<(), Fault> {
        self.release(work);
        self.record.authority = Some(issuers.authority.0.arn());
        self.record.details = Details::of(&leaves.own.certificate);
        self.record.material = Some(ids::hex::<8>()?);
        let mut text = leaves.own.text;
        let mut keys = vec![leaves.own.stored];
        self.record.paired = None;
        if let Some((leaf, (partner, _))) = leaves.paired.zip(issuers.partner) {
            self.record.paired = Some(Paired {
                authority: partner.arn(),
                material: ids::hex::<8>()?,
                details: Details::of(&leaf.certificate),
            });
            text.paired = Some(Box::new(leaf.text));
            keys.push(leaf.stored);
        }
        let (own, paired) = self.material_record_keys();
        for (record_key, key) in own.into_iter().chain(paired).zip(&keys) {
            work.put_secret(&record_key, key)?;
        }
        file(work, self, &text)
    }
}

impl Leaf {
    fn new(authority: &Authority, stored: Secret, issued: Issued) -> Result<Self, Fault> {
        let (certificate, text) = read(authority, issued)?;
        Ok(Self { stored, certificate, text })
    }
}

/// The default key type for certificates of an authority: AWS's default for a classical one, a post-quantum type for
/// a post-quantum CA.
pub fn default_key(authority: &Authority) -> &'static str {
    match authority.algorithm().family {
        Family::Rsa | Family::Ec => "RSA_2048",
        Family::MlDsa => authority.spec().pca_name.unwrap_or("ML_DSA_65"),
        _ => "ML_DSA_65",
    }
}

/// The template of certificates whose requests name their CA: for servers and for clients.
pub fn private_template() -> &'static Template {
    Template::default_row()
}

/// The template of certificates whose requests name no CA: for servers alone, as those of Amazon's public CA have been
/// since June 2025.
pub(super) fn public_template() -> Result<&'static Template, Fault> {
    let name = "EndEntityServerAuthCertificate";
    Template::by_name(name).ok_or_else(|| Fault::Encoding(format!("no template {name}")))
}

/// ARN of [`private_template`], which policies of a CA can name.
pub fn template_arn() -> String {
    ca::template_arn(private_template())
}

/// Has an authority issue a certificate by [`private_template`] for a request, with other names than the request's if any
/// are given, and returns it with its chain.
pub(super) fn issue(
    work: &mut Work<'_>,
    ring: &KeyRing,
    authority: &Authority,
    (request, named): (&[u8], Option<ca::Named>),
    period: (Option<Validity>, Validity),
    account: &str,
    allowed: &MayIssue,
) -> Result<Issued, CaError> {
    let new = ca::NewCertificate { named, ..new(authority, private_template(), request, period) };
    let requester = requester(authority, account);
    let arn = ca::issue_for(work, ring, authority, new, requester, allowed)?;
    ca::issued(work, authority, &arn)
}

fn new<'a>(
    authority: &Authority,
    template: &'static Template,
    request: &'a [u8],
    (not_before, validity): (Option<Validity>, Validity),
) -> ca::NewCertificate<'a> {
    ca::NewCertificate {
        request,
        algorithm: authority.algorithm(),
        template,
        passthrough: ca::Passthrough::default(),
        named: None,
        validity,
        not_before,
        token: None,
        request_digest: String::new(),
    }
}

fn requester<'a>(authority: &Authority, account: &'a str) -> Requester<'a> {
    Requester {
        account: (account != authority.scope().account).then_some(account),
        service: Some(permission::CERTIFICATE_MANAGER),
    }
}

/// End of a certificate from this authority, seconds since 1970: as `asked` or in 13 months, but not after the
/// authority's own end, and within its limit if its certificates are short-lived.
pub(super) fn end(work: &Work<'_>, authority: &Authority, asked: Option<i64>) -> i64 {
    let mut end = asked.unwrap_or(work.now() + limits::MANAGED_SECONDS);
    if authority.usage_mode() == "SHORT_LIVED_CERTIFICATE" {
        end = end.min(work.now() + limits::SHORT_LIVED_SECONDS);
    }
    authority.certificate().map_or(end, |own| end.min(own.not_after()))
}

/// Parses a certificate that its authority has issued.
pub(super) fn read(authority: &Authority, issued: Issued) -> Result<(X509, Text), Fault> {
    let certificate = X509::parse_one(issued.certificate.as_bytes())
        .map_err(|_| Fault::Damaged(authority.arn()))?;
    Ok((certificate, Text { certificate: issued.certificate, chain: issued.chain, paired: None }))
}

/// A certificate request in DER for these names, signed with its own key.
fn request_for(spec: &KeySpec, stored: &Secret, names: &[String]) -> Result<Vec<u8>, Fault> {
    let unusable = || Fault::Encoding(format!("{} keys cannot sign requests", spec.name));
    let key = spec.load(stored)?;
    let algorithm =
        *spec.signing.iter().find(|algorithm| algorithm.oid.is_some()).ok_or_else(unusable)?;
    let public_key = key.public_key().ok_or_else(unusable)?;
    let common_name = names.first().map(String::as_str).unwrap_or_default();
    let subject = name::common_name(common_name)?;
    let alternatives: Vec<_> = names.iter().cloned().map(GeneralName::DnsName).collect();
    let extension = subject_alternative_names(&alternatives, false)?;
    let unsigned = csr::Unsigned::new(subject, public_key, vec![extension])?;
    let signature = key.sign(algorithm, Message::Raw(&unsigned.to_be_signed))?;
    Ok(unsigned.assemble(algorithm, &signature)?)
}
