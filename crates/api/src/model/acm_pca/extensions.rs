//! Certificate extensions of AWS's API (`ApiPassthrough`, `CsrExtensions`) as X.509 extensions.

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
    /// Converts to the X.509 form.
    pub fn read(self) -> Result<ca::Passthrough, ApiError> {
        let extensions = self.extensions.map_or(Ok(Vec::new()), Extensions::read)?;
        Ok(ca::Passthrough { subject: self.subject.map(Into::into), extensions })
    }
}

impl Extensions {
    fn read(self) -> Result<Vec<Extension>, ApiError> {
        let mut out = Vec::new();
        if let Some(policies) = self.certificate_policies {
            let policies: Vec<_> =
                policies.into_iter().map(PolicyInformation::read).collect::<Result<_, _>>()?;
            out.push(build::certificate_policies(&policies).map_err(invalid)?);
        }
        if let Some(purposes) = self.extended_key_usage {
            let purposes: Vec<_> =
                purposes.into_iter().map(ExtendedKeyUsage::read).collect::<Result<_, _>>()?;
            out.push(build::extended_key_usage(&purposes, false).map_err(invalid)?);
        }
        if let Some(usage) = self.key_usage {
            out.push(usage.read()?);
        }
        if let Some(names) = self.subject_alternative_names {
            let names: Vec<_> =
                names.into_iter().map(GeneralName::read).collect::<Result<_, _>>()?;
            out.push(build::subject_alternative_names(&names, false).map_err(invalid)?);
        }
        if let Some(custom) = self.custom_extensions {
            for extension in custom {
                let extension = extension.read()?;
                if out.iter().any(|known: &Extension| known.extn_id == extension.extn_id) {
                    return Err(invalid(format!(
                        "the extension {} occurs twice",
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
        let mut cps = Vec::new();
        for qualifier in qualifiers {
            cps.push(qualifier.qualifier.cps_uri);
        }
        Ok(Policy { id: oid("CertPolicyId", &self.cert_policy_id)?, cps })
    }
}

impl ExtendedKeyUsage {
    fn read(self) -> Result<ObjectIdentifier, ApiError> {
        match (self.extended_key_usage_type, self.extended_key_usage_object_identifier) {
            (Some(name), None) => Purpose::by_name(&name)
                .map(|row| row.oid)
                .ok_or_else(|| invalid("the extended key usage is unknown")),
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

/// Extensions that Private CA always sets itself.
const OWN: &[(&str, &str)] =
    &[("2.5.29.19", "basic constraints"), ("2.5.29.14", "the subject key identifier")];

impl CustomExtension {
    fn read(self) -> Result<Extension, ApiError> {
        use base64::Engine;
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
            let name = Name::other_name(oid("TypeId", &other.type_id)?, &other.value);
            found.push(name.map_err(invalid)?);
        }
        found.extend(self.rfc822_name.map(Name::Rfc822Name));
        found.extend(self.dns_name.map(Name::DnsName));
        if let Some(subject) = self.directory_name {
            found.push(Name::DirectoryName(ca::Subject::from(subject).to_name()?));
        }
        if let Some(party) = self.edi_party_name {
            let EdiPartyName { party_name, name_assigner } = party;
            found.push(Name::EdiPartyName { party_name, name_assigner });
        }
        found.extend(self.uniform_resource_identifier.map(Name::UniformResourceIdentifier));
        if let Some(address) = self.ip_address {
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
    /// Converts to the X.509 form.
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
            (Some(name), None) => build::access_method_by_name(name)
                .ok_or_else(|| invalid("the access method is unknown")),
            (None, Some(text)) => oid("CustomObjectIdentifier", text),
            _ => Err(invalid(
                "an AccessMethod has either AccessMethodType or CustomObjectIdentifier",
            )),
        }
    }
}

fn oid(member: &str, text: &str) -> Result<ObjectIdentifier, ApiError> {
    ObjectIdentifier::new(text).map_err(|_| {
        invalid(format!("{} is not an object identifier ({member})", validate::shorten(text)))
    })
}

fn invalid(reason: impl std::fmt::Display) -> ApiError {
    ApiError::new("InvalidArgsException", reason.to_string())
}
