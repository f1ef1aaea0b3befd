//! Certificates whose requests name no CA, according to the settings.

use outlast_domain::acme::DnsName;
use outlast_domain::arn::{Arn, is_account_id};
use outlast_domain::settings::PublicCertificates;

use crate::failure::Failure;
use crate::settings::Acm;

/// Checks the settings. Whether the CAs exist is known when somebody requests a certificate.
pub(crate) fn choose(said: Acm) -> Result<PublicCertificates, Failure> {
    let authorities = said.default_authority.unwrap_or_default();
    let approved = said.approved_domains.unwrap_or_default();
    let refuse = |key: &'static str, what: String, hint: &'static str| {
        Err(Failure::new(what).hint(hint).about(key))
    };
    let named = [("acm.default_authority", authorities.keys().collect::<Vec<_>>())];
    let named = named.into_iter().chain([("acm.approved_domains", approved.keys().collect())]);
    for (key, accounts) in named {
        if let Some(account) = accounts.into_iter().find(|account| !is_account_id(account)) {
            return refuse(
                key,
                format!("{account} is not an account"),
                "an account id has 12 digits",
            );
        }
    }
    for (region, arn) in authorities.values().flatten() {
        let parsed = Arn::parse(arn);
        let is_one = parsed.is_some_and(|arn| {
            arn.of("acm-pca", "certificate-authority/").is_some() && arn.region() == region
        });
        if !is_one {
            return refuse(
                "acm.default_authority",
                format!("{arn} is not the ARN of a private CA in {region}"),
                "write { \"123456789012\" = { us-east-1 = \"arn:aws:acm-pca:us-east-1:...\" } }",
            );
        }
    }
    for domain in approved.values().flatten() {
        if !DnsName::parse(domain).is_ok_and(|name| !name.is_wildcard()) {
            return refuse(
                "acm.approved_domains",
                format!("{domain} is not a domain"),
                "write a domain as corp.example: it covers what is below it, wildcards included",
            );
        }
    }
    Ok(PublicCertificates { authorities, approved })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_regions_and_domains_are_checked() {
        let parse = |text: &str| choose(toml::from_str(text).unwrap());
        let arn = "arn:aws:acm-pca:us-east-1:123456789012:certificate-authority/00000000-0000-4000-8000-000000000000";
        let good = parse(&format!(
            "approved_domains = {{ 123456789012 = ['corp.example'] }}\n\
             [default_authority.123456789012]\nus-east-1 = '{arn}'\n"
        ));
        assert_eq!(good.unwrap().authorities["123456789012"]["us-east-1"], arn);
        for (text, part) in [
            (format!("default_authority = {{ 1 = {{ us-east-1 = '{arn}' }} }}"), "not an account"),
            (
                format!("default_authority = {{ 123456789012 = {{ eu-west-1 = '{arn}' }} }}"),
                "not the ARN of a private CA in eu-west-1",
            ),
            ("approved_domains = { 123456789012 = ['*.a.example'] }".to_owned(), "not a domain"),
            ("approved_domains = { 123456789012 = ['a b'] }".to_owned(), "not a domain"),
        ] {
            let failure = parse(&text).err().unwrap();
            assert!(failure.message().contains(part), "{text}: {}", failure.message());
        }
    }
}
