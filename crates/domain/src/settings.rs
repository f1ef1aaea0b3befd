//! What the operator has set that ends up in certificates and answers.

/// Where others reach this server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Plain HTTP, for CRLs and OCSP, as `http://host:port` without a slash at the end; `None` if it is off.
    pub revocation_url: Option<String>,
    /// HTTPS, for ACME, as `https://host:port` without a slash at the end.
    pub service_url: String,
    /// Whether the operator has given that URL: then clients of ACME reach the server there and nowhere else.
    pub service_url_is_given: bool,
}
