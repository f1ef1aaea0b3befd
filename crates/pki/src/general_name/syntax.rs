//! The syntax of names that are text. An error is the second half of a sentence that begins with the name.

/// A DNS name in the preferred syntax (RFC 1034, 3.5, as changed by RFC 1123, 2.1). Underscores are accepted, because
/// private networks use them; a wildcard may be the whole leftmost label (RFC 9525, section 6.3).
pub fn dns_name(text: &str) -> Result<(), &'static str> {
    if text.is_empty() || text.len() > 253 {
        return Err("does not have 1 to 253 characters");
    }
    let labels = text.strip_prefix("*.").unwrap_or(text);
    for label in labels.split('.') {
        if label.is_empty() || label.len() > 63 {
            return Err("has a label that does not have 1 to 63 characters");
        }
        if label.contains('*') {
            return Err("has a wildcard that is not its whole leftmost label");
        }
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if !label.bytes().all(allowed) {
            return Err("has a character that is neither a letter, a digit nor a hyphen");
        }
        if label.starts_with('-') || label.ends_with('-') {
            return Err("has a label that begins or ends with a hyphen");
        }
    }
    Ok(())
}

/// A `Mailbox` (RFC 5280, section 4.2.1.6: `local-part@domain` without name, comment or brackets). The local part is
/// a dot-string (RFC 5321, section 4.1.2) or quoted.
pub fn mailbox(text: &str) -> Result<(), &'static str> {
    if text.is_empty() || text.len() > 256 || !text.is_ascii() {
        return Err("does not have 1 to 256 ASCII characters");
    }
    let Some((local, host)) = text.rsplit_once('@') else {
        return Err("has no @");
    };
    let quoted = local.len() > 2
        && local.starts_with('"')
        && local.ends_with('"')
        && !local[1..local.len() - 1].contains('"')
        && local.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    let atom = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~".contains(&byte);
    let dotted = local.split('.').all(|part| !part.is_empty() && part.bytes().all(atom));
    if local.len() > 64 || !(quoted || dotted) {
        return Err("has an invalid local part");
    }
    let literal =
        host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).is_some_and(|address| {
            address.parse::<std::net::Ipv4Addr>().is_ok()
                || address
                    .strip_prefix("IPv6:")
                    .is_some_and(|address| address.parse::<std::net::Ipv6Addr>().is_ok())
        });
    if literal || (!host.starts_with("*.") && dns_name(host).is_ok()) {
        Ok(())
    } else {
        Err("has an invalid domain")
    }
}

/// An absolute URI (RFC 5280, section 4.2.1.6: a scheme and a scheme-specific part; RFC 3986). If it has an
/// authority, the host must be a name or an address.
pub fn uri(text: &str) -> Result<(), &'static str> {
    let Some((scheme, rest)) = text.split_once(':') else {
        return Err("has no scheme");
    };
    let letter = scheme.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic());
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    if !letter || !scheme.bytes().all(allowed) {
        return Err("has no scheme");
    }
    let allowed =
        |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=%".contains(&byte);
    if rest.is_empty() || !rest.bytes().all(allowed) {
        return Err("has a character that must be percent-encoded, or nothing after the scheme");
    }
    let mut parts = rest.split('%');
    parts.next();
    let escaped =
        |part: &str| part.len() >= 2 && part.bytes().take(2).all(|byte| byte.is_ascii_hexdigit());
    if !parts.all(escaped) {
        return Err("has a percent sign without two hexadecimal digits");
    }
    let Some(authority) = rest.strip_prefix("//") else { return Ok(()) };
    let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    // RFC 3986, section 3.3: file:///path has an empty one.
    if host.is_empty() {
        return if scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https") {
            Err("has no host")
        } else {
            Ok(())
        };
    }
    if let Some(literal) = host.strip_prefix('[') {
        return match literal.split_once(']') {
            Some((address, port)) if address.parse::<std::net::Ipv6Addr>().is_ok() => {
                is_port(port.strip_prefix(':').unwrap_or(port))
            }
            _ => Err("has an invalid address in brackets"),
        };
    }
    let (host, port) = host.split_once(':').unwrap_or((host, ""));
    is_port(port)?;
    // The path in a URI of another scheme (urn, spiffe) need not be a DNS name; its characters are checked above.
    if scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https") {
        return dns_name(host).map_err(|_| "has an invalid host");
    }
    Ok(())
}

fn is_port(text: &str) -> Result<(), &'static str> {
    if text.is_empty() || text.parse::<u16>().is_ok() { Ok(()) } else { Err("has an invalid port") }
}
