//! What AWS's API says of certificate extensions, made into those of X.509: `ApiPassthrough`, `CsrExtensions`.

use outlast_domain::ca;
use outlast_pki::ObjectIdentifier;
use outlast_pki::certificate::Extension;
use outlast_pki::extensions::{self as build, Policy, Purpose};
use outlast_pki::general_name::{GeneralName as Name, ip_address};

pub use crate::aws::acm_pca::{
    AccessDescription, AccessMethod, ApiPassthrough, CsrExtensions, CustomExtension, EdiPartyName,
    ExtendedKeyUsage, Extensions, GeneralName, KeyUsage, OtherName, PolicyInformation,
    PolicyQualifierInfo, Qualifier,
};
use crate::wire::{ApiError, validate};

impl ApiPassthrough {
    /// The X.509 form.
    pub fn read(self) -> Result<ca::Passthrough, ApiError> {
        let extensions = self.extensions.map_or(Ok(Vec::new()), Extensions::read)?;
        Ok(ca::Passthrough { subject: self.subject.map(Into::into), extensions })
    }
}

impl Extensions {
    fn read(self) -> Result<Vec<Extension>, ApiError> {
        let mut out = Vec::new();
        if let Some(policies) = self.certificate_policies {
            validate::length("CertificatePolicies", policies.len(), 1, 20)?;
            let policies: Vec<_> =
                policies.into_iter().map(PolicyInformation::read).collect::<Result<_, _>>()?;
            out.push(build::certificate_policies(&policies).map_err(invalid)?);
        }
        if let Some(purposes) = self.extended_key_usage {
            validate::length("ExtendedKeyUsage", purposes.len(), 1, 20)?;
            let purposes: Vec<_> =
                purposes.into_iter().map(ExtendedKeyUsage::read).collect::<Result<_, _>>()?;
            out.push(build::extended_key_usage(&purposes, false).map_err(invalid)?);
        }
        if let Some(usage) = self.key_usage {
            out.push(usage.read()?);
        }
        if let Some(names) = self.subject_alternative_names {
            validate::length("SubjectAlternativeNames", names.len(), 1, 150)?;
            let names: Vec<_> =
                names.into_iter().map(GeneralName::read).collect::<Result<_, _>>()?;
            out.push(build::subject_alternative_names(&names, false).map_err(invalid)?);
        }
        if let Some(custom) = self.custom_extensions {
            validate::length("CustomExtensions", custom.len(), 1, 150)?;
            for extension in custom {
                let extension = extension.read()?;
                if out.iter().any(|known: &Extension| known.extn_id == extension.extn_id) {
                    return Err(invalid(format!(
                        "the extension {} is there twice",
                        extension.extn_id
                    )));
                }
                out.push(extension);
            }
        }
        Ok(out)
    }
}

impl PolicyInformation {
    fn read(self) -> Result<Policy, ApiError> {
        let qualifiers = self.policy_qualifiers.unwrap_or_default();
        validate::length("PolicyQualifiers", qualifiers.len(), 0, 20)?;
        let mut cps = Vec::new();
        for qualifier in qualifiers {
            validate::one_of("PolicyQualifierId", &qualifier.policy_qualifier_id, &["CPS"])?;
            let uri = qualifier.qualifier.cps_uri;
            validate::length("CpsUri", uri.chars().count(), 0, 256)?;
            cps.push(uri);
        }
        Ok(Policy { id: oid("CertPolicyId", &self.cert_policy_id)?, cps })
    }
}

impl ExtendedKeyUsage {
    fn read(self) -> Result<ObjectIdentifier, ApiError> {
        match (self.extended_key_usage_type, self.extended_key_usage_object_identifier) {
            (Some(name), None) => match Purpose::by_name(&name) {
                Some(row) => Ok(row.oid),
                None => {
                    let known: Vec<_> = build::PURPOSES.iter().map(|row| row.name).collect();
                    validate::one_of("ExtendedKeyUsageType", &name, &known)?;
                    Err(invalid("the extended key usage is not known"))
                }
            },
            (None, Some(text)) => oid("ExtendedKeyUsageObjectIdentifier", &text),
            _ => Err(invalid(
                "an ExtendedKeyUsage has either ExtendedKeyUsageType or ExtendedKeyUsageObjectIdentifier",
            )),
        }
    }
}

impl KeyUsage {
    fn read(&self) -> Result<Extension, ApiError> {
        let bits = [
            self.digital_signature,
            self.non_repudiation,
            self.key_encipherment,
            self.data_encipherment,
            self.key_agreement,
            self.key_cert_sign,
            self.crl_sign,
            self.encipher_only,
            self.decipher_only,
        ];
        let flags: Vec<_> = build::KEY_USAGES
            .iter()
            .zip(bits)
            .filter_map(|((_, flag), bit)| bit.then_some(*flag))
            .collect();
        build::key_usage(&flags).map_err(invalid)
    }
}

/// Extensions that Private CA sets itself, whatever is asked for.
const OWN: &[(&str, &str)] =
    &[("2.5.29.19", "basic constraints"), ("2.5.29.14", "the subject key identifier")];

impl CustomExtension {
    fn read(self) -> Result<Extension, ApiError> {
        use base64::Engine;
        validate::length("Value", self.value.len(), 1, 4096)?;
        let id = oid("ObjectIdentifier", &self.object_identifier)?;
        if let Some((_, name)) = OWN.iter().find(|(own, _)| *own == self.object_identifier) {
            return Err(invalid(format!(
                "{name} cannot be a custom extension: the template sets it"
            )));
        }
        let value =
            base64::engine::general_purpose::STANDARD.decode(&self.value).map_err(|_| {
                invalid(format!("the value of the custom extension {id} is not base64"))
            })?;
        build::custom(id, self.critical.unwrap_or(false), &value).map_err(invalid)
    }
}

impl GeneralName {
    fn read(self) -> Result<Name, ApiError> {
        let mut found = Vec::new();
        if let Some(other) = self.other_name {
            validate::length("Value", other.value.chars().count(), 0, 256)?;
            let name = Name::other_name(oid("TypeId", &other.type_id)?, &other.value);
            found.push(name.map_err(invalid)?);
        }
        found.extend(text("Rfc822Name", self.rfc822_name, 256)?.map(Name::Rfc822Name));
        found.extend(text("DnsName", self.dns_name, 253)?.map(Name::DnsName));
        if let Some(subject) = self.directory_name {
            found.push(Name::DirectoryName(ca::Subject::from(subject).to_name()?));
        }
        if let Some(party) = self.edi_party_name {
            let party_name = text("PartyName", Some(party.party_name), 256)?.unwrap_or_default();
            let name_assigner = text("NameAssigner", party.name_assigner, 256)?;
            found.push(Name::EdiPartyName { party_name, name_assigner });
        }
        let uri = text("UniformResourceIdentifier", self.uniform_resource_identifier, 253)?;
        found.extend(uri.map(Name::UniformResourceIdentifier));
        if let Some(address) = text("IpAddress", self.ip_address, 39)? {
            found.push(ip_address(&address).map_err(invalid)?);
        }
        if let Some(id) = self.registered_id {
            found.push(Name::RegisteredId(oid("RegisteredId", &id)?));
        }
        match (found.pop(), found.is_empty()) {
            (Some(name), true) => {
                name.check().map_err(invalid)?;
                Ok(name)
            }
            _ => Err(invalid("a GeneralName has exactly one member")),
        }
    }
}

impl CsrExtensions {
    /// The X.509 form.
    pub fn read(&self) -> Result<Vec<Extension>, ApiError> {
        let mut out = Vec::new();
        if let Some(usage) = &self.key_usage {
            out.push(usage.read()?);
        }
        if let Some(access) = &self.subject_information_access {
            validate::length("SubjectInformationAccess", access.len(), 1, 150)?;
            let descriptions: Vec<_> = access
                .iter()
                .map(|one| Ok((one.access_method.read()?, one.access_location.clone().read()?)))
                .collect::<Result<_, ApiError>>()?;
            out.push(build::subject_information_access(&descriptions).map_err(invalid)?);
        }
        Ok(out)
    }
}

impl AccessMethod {
    fn read(&self) -> Result<ObjectIdentifier, ApiError> {
        match (&self.access_method_type, &self.custom_object_identifier) {
            (Some(name), None) => {
                let known: Vec<_> = build::ACCESS_METHODS.iter().map(|(name, _)| *name).collect();
                validate::one_of("AccessMethodType", name, &known)?;
                build::access_method_by_name(name)
                    .ok_or_else(|| invalid("the access method is not known"))
            }
            (None, Some(text)) => oid("CustomObjectIdentifier", text),
            _ => Err(invalid(
                "an AccessMethod has either AccessMethodType or CustomObjectIdentifier",
            )),
        }
    }
}

fn text(member: &str, given: Option<String>, max: usize) -> Result<Option<String>, ApiError> {
    if let Some(text) = &given {
        validate::length(member, text.chars().count(), 0, max)?;
    }
    Ok(given)
}

fn oid(member: &str, text: &str) -> Result<ObjectIdentifier, ApiError> {
    validate::length(member, text.chars().count(), 0, 64)?;
    ObjectIdentifier::new(text).map_err(|_| {
        invalid(format!("{} is not an object identifier ({member})", validate::shorten(text)))
    })
}

fn invalid(reason: impl std::fmt::Display) -> ApiError {
    ApiError::new("InvalidArgsException", reason.to_string())
}
