//! OCSP: which authority a question is for, and what is answered.

use outlast_pki::certificate::Extension;
use outlast_pki::extensions;

use super::CaError;
use super::authority::Authority;
use crate::Fault;
use crate::settings::Settings;

/// What [`super::Ocsp::url`] shall be for this `OcspCustomCname`. `None` without a name if the server has no
/// listener for plain HTTP.
pub fn url(settings: &Settings, custom_cname: Option<&str>) -> Option<String> {
    match custom_cname {
        Some(name) => Some(format!("http://{name}")),
        None => Some(format!("{}/ocsp", settings.revocation_url.as_ref()?)),
    }
}

/// The extension that says in certificates where the authority answers, as it is configured.
pub fn access(authority: &Authority) -> Result<Option<Extension>, CaError> {
    let Some(ocsp) = &authority.revocation().ocsp else { return Ok(None) };
    let extension =
        extensions::authority_information_access(&[&ocsp.url], &[]).map_err(Fault::from)?;
    Ok(Some(extension))
}
