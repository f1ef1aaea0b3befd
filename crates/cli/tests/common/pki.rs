//! A hierarchy whose keys the test has: authorities, certificates, CRLs and OCSP responses, made with the crates.

#![allow(dead_code, reason = "each test file uses its own part")]

use outlast_crypto::keys::{Key, KeySpec};
use outlast_crypto::signatures::{Message, SignatureAlgorithm};
use outlast_crypto::{Secret, random};
use outlast_pki::certificate::{Certificate, Content};
use outlast_pki::crl;
use outlast_pki::crl::reason::UNSPECIFIED;
use outlast_pki::extensions::subject_alternative_names;
use outlast_pki::general_name::GeneralName;
use outlast_pki::name::common_name;
use outlast_pki::templates::{Requested, Template};
use outlast_pki::{csr, ocsp, pem, whatif};
use x509_cert::ext::Extension;

const DAY: i64 = 86_400;

/// A key with its certificate.
pub struct Party {
    pub key: Box<dyn Key>,
    pub stored: Secret,
    pub spec: &'static KeySpec,
    pub certificate: Certificate,
}

/// Properties of a certificate that differ between tests.
pub struct New<'a> {
    pub template: &'a str,
    pub name: &'a str,
    pub dns: &'a [&'a str],
    /// CRL distribution points, authority information access.
    pub authority: Vec<Extension>,
    pub not_before: i64,
    pub days: i64,
}

impl<'a> New<'a> {
    pub fn of(template: &'a str, name: &'a str, now: i64) -> Self {
        Self { template, name, dns: &[], authority: Vec::new(), not_before: now - 3600, days: 30 }
    }
}

/// A new key of this type and its public half.
pub fn new_key(spec: &str) -> (&'static KeySpec, Secret, Box<dyn Key>) {
    let spec = KeySpec::by_name(spec).unwrap();
    let stored = spec.generate().unwrap();
    let key = spec.load(&stored).unwrap();
    (spec, stored, key)
}

/// A certificate request in PEM.
pub fn request(spec: &KeySpec, key: &dyn Key, name: &str, dns: &[&str]) -> String {
    let algorithm = whatif::signing(spec).unwrap();
    let extensions = names(dns);
    let unsigned =
        csr::Unsigned::new(common_name(name).unwrap(), key.public_key().unwrap(), extensions)
            .unwrap();
    let signature = key.sign(algorithm, Message::Raw(&unsigned.to_be_signed)).unwrap();
    pem::certificate_request(&unsigned.assemble(algorithm, &signature).unwrap())
}

fn names(dns: &[&str]) -> Vec<Extension> {
    let names: Vec<_> = dns
        .iter()
        .map(|name| match name.parse() {
            Ok(address) => GeneralName::IpAddress(address),
            Err(_) => GeneralName::DnsName((*name).to_owned()),
        })
        .collect();
    match names.is_empty() {
        true => Vec::new(),
        false => vec![subject_alternative_names(&names, false).unwrap()],
    }
}

/// A certificate for a new key of this type, by `issuer` or by itself.
pub fn issue(spec: &str, new: New<'_>, issuer: Option<&Party>) -> Party {
    let (spec, stored, key) = new_key(spec);
    let public_key = key.public_key().unwrap().to_vec();
    let (signer, signer_spec) =
        issuer.map_or((key.as_ref(), spec), |issuer| (issuer.key.as_ref(), issuer.spec));
    let above = issuer.map(|issuer| &issuer.certificate);
    let certificate = certificate(public_key, new, signer, signer_spec, above);
    Party { key, stored, spec, certificate }
}

/// A certificate for somebody else's key.
pub fn certify(public_key: Vec<u8>, new: New<'_>, issuer: &Party) -> Certificate {
    certificate(public_key, new, issuer.key.as_ref(), issuer.spec, Some(&issuer.certificate))
}

fn certificate(
    public_key: Vec<u8>,
    new: New<'_>,
    signer: &dyn Key,
    signer_spec: &'static KeySpec,
    issuer: Option<&Certificate>,
) -> Certificate {
    let subject = common_name(new.name).unwrap();
    let template = format!("arn:aws:acm-pca:::template/{}/V1", new.template);
    let issuer_key_id = issuer.and_then(Certificate::subject_key_identifier);
    let extensions = Template::by_arn(&template)
        .unwrap()
        .extensions(&Requested {
            public_key: &public_key,
            issuer_key_id: issuer_key_id.as_deref(),
            csr: &names(new.dns),
            api: &[],
            authority: &new.authority,
        })
        .unwrap();
    let algorithm = whatif::signing(signer_spec).unwrap();
    let unsigned = Content {
        serial: random::bytes().unwrap(),
        issuer: issuer.map_or(subject.clone(), |issuer| issuer.subject().clone()),
        subject,
        public_key,
        not_before: new.not_before,
        not_after: new.not_before + new.days * DAY,
        extensions,
    }
    .prepare(algorithm, signer.public_key().unwrap())
    .unwrap();
    let signature = signer.sign(algorithm, Message::Raw(&unsigned.to_be_signed)).unwrap();
    Certificate::parse(&unsigned.assemble(&signature).unwrap()).unwrap()
}

impl Party {
    pub fn algorithm(&self) -> &'static SignatureAlgorithm {
        whatif::signing(self.spec).unwrap()
    }

    pub fn der(&self) -> Vec<u8> {
        self.certificate.der().to_vec()
    }

    pub fn pem(&self) -> String {
        pem::certificate(self.certificate.der())
    }

    /// The private key as PKCS #8.
    pub fn pkcs8(&self) -> Secret {
        self.spec.to_pkcs8(&self.stored).unwrap()
    }

    pub fn key_pem(&self) -> String {
        let object = outlast_pki::object::Object {
            kind: outlast_pki::object::Kind::PrivateKey,
            der: self.pkcs8(),
        };
        String::from_utf8(object.to_pem().unwrap().expose().to_vec()).unwrap()
    }

    /// A CRL that revokes these serial numbers, valid from `now` for a day.
    pub fn crl(&self, number: u64, revoked: &[&[u8]], now: i64) -> Vec<u8> {
        let entries = revoked.iter().map(|serial| crl::Entry {
            serial: *serial,
            revoked_at: now - 120,
            reason: UNSPECIFIED,
        });
        self.crl_of(number, entries, now)
    }

    /// A CRL with these entries, valid from `now` for a day.
    pub fn crl_of<'s>(
        &self,
        number: u64,
        entries: impl IntoIterator<Item = crl::Entry<&'s [u8]>>,
        now: i64,
    ) -> Vec<u8> {
        let content = crl::Content {
            issuer: self.certificate.subject().clone(),
            issuer_key_id: self.certificate.subject_key_identifier().unwrap(),
            number,
            this_update: now - 60,
            next_update: now - 60 + DAY,
            distribution_points: Vec::new(),
            scope: crl::Scope::All,
        };
        let unsigned = content.prepare(self.algorithm(), entries).unwrap();
        let to_be_signed = Message::Raw(&unsigned.to_be_signed);
        let signature = self.key.sign(self.algorithm(), to_be_signed).unwrap();
        unsigned.assemble(&signature).unwrap()
    }

    /// This issuer's OCSP response about a certificate.
    pub fn ocsp(&self, certificate: &Certificate, status: ocsp::Status, now: i64) -> Vec<u8> {
        let key = self.certificate.public_key().unwrap();
        let hash = &outlast_crypto::digests::SHA1_FOR_IDENTIFIERS;
        let id = ocsp::CertId::new(hash, self.certificate.subject(), &key, certificate.serial());
        let content = ocsp::Content {
            responder_key: &key,
            produced_at: now - 60,
            responses: vec![ocsp::Single {
                id: id.unwrap(),
                status,
                this_update: now - 60,
                next_update: Some(now - 60 + DAY),
            }],
            nonce: None,
        };
        let unsigned = content.prepare(self.algorithm()).unwrap();
        let to_be_signed = Message::Raw(&unsigned.to_be_signed);
        let signature = self.key.sign(self.algorithm(), to_be_signed).unwrap();
        unsigned.assemble(&signature, &[]).unwrap()
    }
}
