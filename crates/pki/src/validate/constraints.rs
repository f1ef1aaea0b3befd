//! Name constraints (RFC 5280, section 4.2.1.10), with a limit on their work.

use der::Tagged;
use x509_cert::ext::pkix::NameConstraints;
use x509_cert::ext::pkix::constraints::name::GeneralSubtree;
use x509_cert::ext::pkix::name::GeneralName;

use super::Rule;
use super::names::{Comparable, text};
use crate::certificate::Certificate;

/// `emailAddress` in a distinguished name (PKCS #9).
const EMAIL_ADDRESS: const_oid::ObjectIdentifier =
    const_oid::ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.1");

/// `commonName`.
const COMMON_NAME: const_oid::ObjectIdentifier = const_oid::ObjectIdentifier::new_unwrap("2.5.4.3");

/// `id-on-SmtpUTF8Mailbox` (RFC 9598).
const SMTP_UTF8_MAILBOX: const_oid::ObjectIdentifier =
    const_oid::ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.8.9");

/// The subtrees of one CA.
#[derive(Debug, Default)]
pub struct Constraints {
    permitted: Vec<Form>,
    excluded: Vec<Form>,
}

/// A name, or the base of a subtree.
#[derive(Debug, PartialEq)]
enum Form {
    Directory(Comparable),
    Dns(String),
    Email(String),
    Uri(String),
    Ip(Vec<u8>),
    /// Another form, by its tag, which is not compared.
    Other(der::Tag),
}

impl Constraints {
    pub fn new(constraints: &NameConstraints) -> Result<Self, String> {
        let list = |subtrees: &Option<Vec<GeneralSubtree>>| {
            let subtrees = subtrees.as_deref().unwrap_or_default();
            // RFC 5280: minimum is always zero and maximum always absent.
            if subtrees.iter().any(|subtree| subtree.minimum != 0 || subtree.maximum.is_some()) {
                return Err("minimum and maximum are not allowed".to_owned());
            }
            subtrees.iter().map(|subtree| base(&subtree.base)).collect::<Result<Vec<_>, _>>()
        };
        Ok(Self {
            permitted: list(&constraints.permitted_subtrees)?,
            excluded: list(&constraints.excluded_subtrees)?,
        })
    }
}

fn base(name: &GeneralName) -> Result<Form, String> {
    let form = form(name);
    if let Form::Ip(bytes) = &form {
        let (address, mask) = bytes.split_at(bytes.len() / 2);
        if !matches!(bytes.len(), 8 | 32) || !is_prefix(mask) {
            return Err("an address range is not an address and a mask".into());
        }
        let network = address.iter().zip(mask).map(|(byte, mask)| byte & mask);
        return Ok(Form::Ip(network.chain(mask.iter().copied()).collect()));
    }
    Ok(form)
}

/// Whether a mask is ones, then zeros (RFC 4632).
fn is_prefix(mask: &[u8]) -> bool {
    let ones: u32 = mask.iter().take_while(|byte| **byte == 0xff).count() as u32 * 8;
    let rest = mask.iter().map(|byte| byte.count_ones()).sum::<u32>() - ones;
    let next = mask.get(ones as usize / 8).copied().unwrap_or(0);
    rest == next.leading_ones() && rest == next.count_ones()
}

fn form(name: &GeneralName) -> Form {
    match name {
        GeneralName::DirectoryName(name) => Form::Directory(Comparable::new(name)),
        GeneralName::DnsName(name) => Form::Dns(name.as_str().to_ascii_lowercase()),
        GeneralName::Rfc822Name(name) => Form::Email(name.as_str().to_owned()),
        GeneralName::UniformResourceIdentifier(uri) => Form::Uri(uri.as_str().to_owned()),
        GeneralName::IpAddress(bytes) => Form::Ip(bytes.as_bytes().to_vec()),
        other => Form::Other(other.tag()),
    }
}

/// Checks all names of a certificate, with its alternative `names`, against the constraints of all CAs above it.
/// `budget` is the number of comparisons that the validation may still make.
pub fn check(
    certificate: &Certificate,
    names: &[GeneralName],
    above: &[&Constraints],
    budget: &mut u32,
) -> Result<(), Rule> {
    if above.is_empty() {
        return Ok(());
    }
    check_all(&names_of(certificate, names), above, budget)
}

/// The same as [`check`] for a certificate to be issued, and stricter: a common name that looks like a host name must
/// be permitted, too. Some clients use it if no alternative name is a host name.
pub fn check_new(
    certificate: &Certificate,
    names: &[GeneralName],
    above: &[&Constraints],
    budget: &mut u32,
) -> Result<(), Rule> {
    let has_hosts = names.iter().any(|name| matches!(name, GeneralName::DnsName(_)));
    let mut names = names_of(certificate, names);
    let is_ca = certificate.basic_constraints().is_some_and(|constraints| constraints.ca);
    if !has_hosts && !is_ca {
        let common = certificate.subject().iter().filter(|attribute| attribute.oid == COMMON_NAME);
        let hosts = common.filter_map(text).filter(|text| is_host(text));
        names.extend(hosts.map(|host| (Form::Dns(host.to_ascii_lowercase()), host)));
    }
    check_all(&names, above, budget)
}

fn is_host(text: &str) -> bool {
    text.contains('.') && crate::general_name::dns_name(text.trim_end_matches('.')).is_ok()
}

fn names_of(certificate: &Certificate, alternative: &[GeneralName]) -> Vec<(Form, String)> {
    let mut names: Vec<(Form, String)> = Vec::new();
    let subject = certificate.subject();
    if !subject.is_empty() {
        names.push((Form::Directory(Comparable::new(subject)), subject.to_string()));
    }
    for attribute in subject.iter().filter(|attribute| attribute.oid == EMAIL_ADDRESS) {
        // RFC 5280 requires this where there is no alternative name; there is no reason to exempt the others.
        let address = text(attribute).unwrap_or_default();
        names.push((Form::Email(address.clone()), address));
    }
    names.extend(alternative.iter().map(|name| (form(name), format!("{name:?}"))));
    // RFC 9598, section 6: constraints on rfc822Name apply to internationalized mailboxes, too.
    let mailboxes = alternative.iter().filter_map(internationalized_mailbox);
    names.extend(mailboxes.map(|mailbox| (Form::Email(mailbox.clone()), mailbox)));
    names
}

/// The value of a `SmtpUTF8Mailbox` (RFC 9598, section 3); empty, which never compares, if it is malformed.
fn internationalized_mailbox(name: &GeneralName) -> Option<String> {
    let GeneralName::OtherName(other) = name else { return None };
    if other.type_id != SMTP_UTF8_MAILBOX {
        return None;
    }
    Some(other.value.decode_as::<String>().unwrap_or_default())
}

fn check_all(
    names: &[(Form, String)],
    above: &[&Constraints],
    budget: &mut u32,
) -> Result<(), Rule> {
    for (name, shown) in names {
        for constraints in above {
            let spend = u32::try_from(constraints.permitted.len() + constraints.excluded.len());
            *budget = spend
                .ok()
                .and_then(|spend| budget.checked_sub(spend))
                .ok_or(Rule::Limit("too many names and name constraints"))?;
            check_one(name, constraints)
                .map_err(|reason| Rule::NameConstraints(format!("{shown} {reason}")))?;
        }
    }
    Ok(())
}

fn check_one(name: &Form, constraints: &Constraints) -> Result<(), &'static str> {
    let of_form = |base: &&Form| std::mem::discriminant(*base) == std::mem::discriminant(name);
    if let Form::Other(tag) = name {
        let mut all = constraints.permitted.iter().chain(&constraints.excluded);
        // RFC 5280, section 4.2.1.10: process it, or reject the certificate.
        return match all.any(|base| *base == Form::Other(*tag)) {
            true => Err("has a constrained form that is not supported"),
            false => Ok(()),
        };
    }
    let mut permitted = constraints.permitted.iter().filter(of_form).peekable();
    if permitted.peek().is_some() && !permitted.any(|base| within(name, base, false)) {
        return Err("is not permitted");
    }
    if constraints.excluded.iter().filter(of_form).any(|base| within(name, base, true)) {
        return Err("is excluded");
    }
    Ok(())
}

/// Whether `name` lies in the subtree. A name that cannot be compared lies in excluded subtrees and in no permitted
/// one.
fn within(name: &Form, base: &Form, excluded: bool) -> bool {
    match (name, base) {
        (Form::Directory(name), Form::Directory(base)) if excluded => name.may_be_within(base),
        (Form::Directory(name), Form::Directory(base)) => name.is_within(base),
        (Form::Dns(name), Form::Dns(base)) => {
            // A wildcard may stand for exactly the name that is excluded.
            let wild = excluded
                && name.strip_prefix("*.").is_some_and(|parent| {
                    base.split_once('.')
                        .is_some_and(|(label, rest)| !label.is_empty() && rest == parent)
                });
            wild || host_within(name, base, true)
        }
        (Form::Email(name), Form::Email(base)) => {
            // The local part may contain an @ in quotes; the host cannot.
            let Some((local, host)) = name.rsplit_once('@') else { return excluded };
            match base.rsplit_once('@') {
                Some((base_local, base_host)) => {
                    local == base_local && host.eq_ignore_ascii_case(base_host)
                }
                None => host_within(&host.to_ascii_lowercase(), &base.to_ascii_lowercase(), false),
            }
        }
        (Form::Uri(name), Form::Uri(base)) => match uri_host(name) {
            Some(host) => host_within(&host, &base.to_ascii_lowercase(), false),
            // RFC 5280: a URI without a host name, or with an address, is to be rejected.
            None => excluded,
        },
        (Form::Ip(address), Form::Ip(range)) => {
            let (network, mask) = range.split_at(range.len() / 2);
            match address.len() {
                4 | 16 => {
                    address.len() == network.len()
                        && address
                            .iter()
                            .zip(mask)
                            .map(|(byte, mask)| byte & mask)
                            .eq(network.iter().copied())
                }
                _ => excluded,
            }
        }
        _ => false,
    }
}

/// Both in lower case. With `subdomains`, hosts below the base are in it, too (dNSName); a base that begins with a
/// dot always includes them, and not itself (URI and e-mail).
fn host_within(host: &str, base: &str, subdomains: bool) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host);
    if base.is_empty() {
        return true;
    }
    if base.starts_with('.') {
        return host.len() > base.len() && host.ends_with(base);
    }
    let below = || host.strip_suffix(base).is_some_and(|rest| rest.ends_with('.'));
    host == base || (subdomains && below())
}

/// The host name in a URI's authority, in lower case; `None` if there is none or it is an address.
fn uri_host(uri: &str) -> Option<String> {
    let (_, rest) = uri.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    if host.starts_with('[') {
        return None;
    }
    let host = host.split_once(':').map_or(host, |(host, _)| host);
    if host.is_empty() || host.parse::<std::net::Ipv4Addr>().is_ok() {
        return None;
    }
    Some(host.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dns(text: &str) -> Form {
        Form::Dns(text.into())
    }
    fn email(text: &str) -> Form {
        Form::Email(text.into())
    }
    fn uri(text: &str) -> Form {
        Form::Uri(text.into())
    }

    #[test]
    fn subtrees_contain_what_rfc_5280_says() {
        let ip = |bytes: &[u8]| Form::Ip(bytes.to_vec());
        // (name, base, in it if permitted, in it if excluded)
        let cases = [
            (dns("host.example.com"), dns("example.com"), true, true),
            (dns("example.com"), dns("example.com"), true, true),
            (dns("badexample.com"), dns("example.com"), false, false),
            (dns("example.com"), dns(".example.com"), false, false),
            (dns("a.example.com"), dns(".example.com"), true, true),
            (dns("a.example.com."), dns("example.com"), true, true),
            (dns("anything"), dns(""), true, true),
            (dns("*.example.com"), dns("example.com"), true, true),
            (dns("*.example.com"), dns("a.example.com"), false, true),
            (dns("*.example.com"), dns("b.a.example.com"), false, false),
            (email("a@example.com"), email("example.com"), true, true),
            (email("a@x.example.com"), email("example.com"), false, false),
            (email("a@x.example.com"), email(".example.com"), true, true),
            (email("a@example.com"), email(".example.com"), false, false),
            (email("a@EXAMPLE.com"), email("a@example.COM"), true, true),
            (email("A@example.com"), email("a@example.com"), false, false),
            (email("no host"), email("example.com"), false, true),
            (uri("https://u@Example.com:1/x"), uri("example.com"), true, true),
            (uri("https://a.example.com"), uri("example.com"), false, false),
            (uri("https://a.example.com"), uri(".example.com"), true, true),
            (uri("urn:x"), uri("example.com"), false, true),
            (uri("https://192.0.2.1/"), uri("example.com"), false, true),
            (uri("https://[::1]/"), uri("example.com"), false, true),
            (ip(&[192, 0, 2, 7]), ip(&[192, 0, 2, 0, 255, 255, 255, 0]), true, true),
            (ip(&[192, 0, 3, 7]), ip(&[192, 0, 2, 0, 255, 255, 255, 0]), false, false),
            (ip(&[0; 16]), ip(&[192, 0, 2, 0, 255, 255, 255, 0]), false, false),
            (ip(&[1, 2, 3]), ip(&[192, 0, 2, 0, 255, 255, 255, 0]), false, true),
        ];
        for (name, base, permitted, excluded) in cases {
            assert_eq!(within(&name, &base, false), permitted, "{name:?} permitted in {base:?}");
            assert_eq!(within(&name, &base, true), excluded, "{name:?} excluded in {base:?}");
        }
    }

    #[test]
    fn masks_are_prefixes() {
        for good in [[0, 0, 0, 0], [255, 128, 0, 0], [255, 255, 255, 255], [255, 255, 254, 0]] {
            assert!(is_prefix(&good), "{good:?}");
        }
        for bad in [[0, 255, 0, 0], [255, 127, 0, 0], [255, 0, 255, 0], [254, 1, 0, 0]] {
            assert!(!is_prefix(&bad), "{bad:?}");
        }
    }
}
