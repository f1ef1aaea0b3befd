//! The properties of a certificate that path validation needs, parsed once.

use const_oid::ObjectIdentifier;
use const_oid::db::rfc5280 as ids;
use der::Decode;
use x509_cert::ext::Extension;
use x509_cert::ext::pkix::crl::CrlDistributionPoints;
use x509_cert::ext::pkix::crl::dp::DistributionPoint;
use x509_cert::ext::pkix::name::{DistributionPointName, GeneralNames};
use x509_cert::ext::pkix::{
    AuthorityKeyIdentifier, BasicConstraints, CertificatePolicies, ExtendedKeyUsage, KeyUsage,
    NameConstraints, PolicyConstraints, PolicyMappings, SubjectAltName, SubjectKeyIdentifier,
};

use super::constraints::Constraints;
use super::{MAX_DISTRIBUTION_POINTS, MAX_EXTENSIONS, MAX_POLICIES};
use crate::certificate::Certificate;
use crate::public_key;

/// `id-ce-noRevAvail` (RFC 9608): there will never be revocation information.
const NO_REVOCATION: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.56");
const OCSP_NO_CHECK: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.48.1.5");

/// Known extensions that must not be critical, and the section that says so. The others that must not be critical are
/// unknown here, and refused for that.
const NEVER_CRITICAL: &[(ObjectIdentifier, &str)] = &[
    (ids::ID_CE_AUTHORITY_KEY_IDENTIFIER, "RFC 5280, section 4.2.1.1,"),
    (ids::ID_CE_SUBJECT_KEY_IDENTIFIER, "RFC 5280, section 4.2.1.2,"),
];

/// The properties. Every critical extension is in here, or in [`Facts::unknown_critical`].
#[derive(Default)]
pub struct Facts {
    pub public_key: Vec<u8>,
    pub basic_constraints: Option<BasicConstraints>,
    pub key_usage: Option<KeyUsage>,
    pub purposes: Option<Vec<ObjectIdentifier>>,
    pub policies: Option<Vec<ObjectIdentifier>>,
    /// (issuer's policy, subject's policy)
    pub mappings: Vec<(ObjectIdentifier, ObjectIdentifier)>,
    pub require_explicit_policy: Option<u32>,
    pub inhibit_policy_mapping: Option<u32>,
    pub inhibit_any_policy: Option<u32>,
    pub constraints: Option<Constraints>,
    pub names: GeneralNames,
    pub key_id: Option<Vec<u8>>,
    pub authority_key_id: Option<Vec<u8>>,
    pub crl_points: Vec<DistributionPoint>,
    pub no_revocation: bool,
    pub unknown_critical: Option<ObjectIdentifier>,
}

impl Facts {
    /// Parses all extensions that path validation knows. The error is for people.
    pub fn read(certificate: &Certificate) -> Result<Self, String> {
        let mut facts = Self {
            public_key: certificate.public_key().map_err(|error| error.to_string())?,
            ..Self::default()
        };
        if public_key::has_explicit_curve(&facts.public_key) {
            return Err(
                "its key does not name its curve, which RFC 5480, section 2.1.1, requires".into()
            );
        }
        let extensions = certificate.extensions();
        if extensions.len() > MAX_EXTENSIONS {
            return Err(format!("it has more than {MAX_EXTENSIONS} extensions"));
        }
        for (index, extension) in extensions.iter().enumerate() {
            let oid = extension.extn_id;
            if let Some((_, section)) = NEVER_CRITICAL.iter().find(|(id, _)| *id == oid)
                && extension.critical
            {
                return Err(format!("extension {oid}: it is critical, which {section} forbids"));
            }
            // RFC 5280, section 4.2.
            if extensions.iter().take(index).any(|other| other.extn_id == oid) {
                return Err(format!("the extension {oid} occurs twice"));
            }
            if !facts.take(extension).map_err(|reason| format!("extension {oid}: {reason}"))?
                && extension.critical
            {
                facts.unknown_critical = Some(oid);
            }
        }
        Ok(facts)
    }

    /// Takes an extension; returns whether it is known.
    fn take(&mut self, extension: &Extension) -> Result<bool, String> {
        let value = extension.extn_value.as_bytes();
        match extension.extn_id {
            ids::ID_CE_BASIC_CONSTRAINTS => {
                self.basic_constraints = Some(read::<BasicConstraints>(value)?);
            }
            ids::ID_CE_KEY_USAGE => self.key_usage = Some(read::<KeyUsage>(value)?),
            ids::ID_CE_EXT_KEY_USAGE => self.purposes = Some(read::<ExtendedKeyUsage>(value)?.0),
            ids::ID_CE_SUBJECT_ALT_NAME => {
                self.names = read::<SubjectAltName>(value)?.0;
                if self.names.is_empty() {
                    return Err("it has no names".into());
                }
            }
            ids::ID_CE_SUBJECT_KEY_IDENTIFIER => {
                self.key_id = Some(read::<SubjectKeyIdentifier>(value)?.0.as_bytes().to_vec());
            }
            ids::ID_CE_AUTHORITY_KEY_IDENTIFIER => {
                let identifier = read::<AuthorityKeyIdentifier>(value)?.key_identifier;
                self.authority_key_id = identifier.map(|id| id.as_bytes().to_vec());
            }
            ids::ID_CE_CERTIFICATE_POLICIES => self.take_policies(value)?,
            ids::ID_CE_POLICY_MAPPINGS => {
                let list = read::<PolicyMappings>(value)?.0;
                if list.is_empty() || list.len() > MAX_POLICIES {
                    return Err(format!("it must have 1 to {MAX_POLICIES} mappings"));
                }
                let pair = |one: &x509_cert::ext::pkix::PolicyMapping| {
                    (one.issuer_domain_policy, one.subject_domain_policy)
                };
                self.mappings = list.iter().map(pair).collect();
            }
            ids::ID_CE_POLICY_CONSTRAINTS => {
                let constraints = read::<PolicyConstraints>(value)?;
                self.require_explicit_policy = constraints.require_explicit_policy;
                self.inhibit_policy_mapping = constraints.inhibit_policy_mapping;
            }
            ids::ID_CE_INHIBIT_ANY_POLICY => self.inhibit_any_policy = Some(read::<u32>(value)?),
            ids::ID_CE_NAME_CONSTRAINTS => {
                self.constraints = Some(Constraints::new(&read::<NameConstraints>(value)?)?);
            }
            ids::ID_CE_CRL_DISTRIBUTION_POINTS => {
                self.crl_points = read::<CrlDistributionPoints>(value)?.0;
                if self.crl_points.len() > MAX_DISTRIBUTION_POINTS
                    || !self.crl_points.iter().all(has_few_names)
                {
                    return Err("there are too many distribution points".into());
                }
            }
            NO_REVOCATION => self.no_revocation = true,
            OCSP_NO_CHECK => {}
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn take_policies(&mut self, value: &[u8]) -> Result<(), String> {
        let list = read::<CertificatePolicies>(value)?.0;
        if list.is_empty() || list.len() > MAX_POLICIES {
            return Err(format!("it must have 1 to {MAX_POLICIES} policies"));
        }
        let policies: Vec<_> = list.iter().map(|policy| policy.policy_identifier).collect();
        // RFC 5280, section 4.2.1.4.
        for (index, policy) in policies.iter().enumerate() {
            if policies.iter().take(index).any(|other| other == policy) {
                return Err(format!("the policy {policy} occurs twice"));
            }
        }
        self.policies = Some(policies);
        Ok(())
    }

    /// Whether it is the certificate of a CA.
    pub fn is_ca(&self) -> bool {
        self.basic_constraints.as_ref().is_some_and(|constraints| constraints.ca)
    }

    /// How many CAs may follow, if that is limited.
    pub fn path_len(&self) -> Option<usize> {
        self.basic_constraints.as_ref()?.path_len_constraint.map(usize::from)
    }
}

fn has_few_names(point: &DistributionPoint) -> bool {
    let names = match &point.distribution_point {
        Some(DistributionPointName::FullName(names)) => names.len(),
        _ => 0,
    };
    let issuers = point.crl_issuer.as_ref().map_or(0, Vec::len);
    names.max(issuers) <= MAX_DISTRIBUTION_POINTS
}

fn read<'a, T: Decode<'a, Error = der::Error>>(value: &'a [u8]) -> Result<T, String> {
    T::from_der(value).map_err(|error| error.to_string())
}
