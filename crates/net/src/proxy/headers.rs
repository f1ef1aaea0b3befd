//! Header fields of a request on its way to the backend, and of a response on its way to the client.
//!
//! Functions on heads; nothing here reads or writes a socket.

use std::net::IpAddr;

use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, COOKIE, FORWARDED, HOST, HeaderMap, HeaderName,
    HeaderValue, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, VIA, WWW_AUTHENTICATE,
};
use http::uri::{Authority, PathAndQuery, Uri};
use http::{Method, StatusCode, Version, request};

use crate::Negotiated;

/// Fields that concern only one connection (RFC 9110, section 7.6.1), in addition to those that `Connection` names.
const HOP_BY_HOP: [HeaderName; 10] = [
    CONNECTION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("proxy-authenticate"),
    // For the first proxy on the path (RFC 9110, section 11.7.2), which is this one.
    HeaderName::from_static("proxy-authorization"),
    // Upgrading to HTTP/2 is obsolete (RFC 9113, section 3.1).
    HeaderName::from_static("http2-settings"),
];

/// Prefixes of fields in which proxies describe the client. Some servers treat `_` like `-`.
const OF_PROXIES: [&str; 11] = [
    "x-forwarded-",
    "x-real-ip",
    "x-client-cert",
    "x-client-ip",
    "x-cluster-client-ip",
    "true-client-ip",
    "x-original-",
    "x-ssl-",
    "ssl-client-",
    // RFC 9440: Client-Cert and Client-Cert-Chain.
    "client-cert",
    "x-amzn-mtls-",
];

/// Prefix of the fields with the negotiated parameters.
const OF_TLS: &str = "x-outlast-tls-";

/// The client and its connection, for the backend.
pub(crate) struct Origin<'a> {
    /// Address of the client.
    pub(crate) client: Option<IpAddr>,
    /// Whether its statements about earlier clients are trusted.
    pub(crate) trusted: bool,
    /// Whether fields that proxies add are left as they are, and none is added.
    pub(crate) transparent: bool,
    /// Negotiated parameters; `None` if the connection is not TLS.
    pub(crate) tls: Option<&'a Negotiated>,
    /// Whether the backend is told the negotiated parameters.
    pub(crate) tls_headers: bool,
}

/// Prepares a client's request for forwarding. The error is the response to the client.
pub(crate) fn outward(head: &mut request::Parts, origin: &Origin<'_>) -> Result<(), StatusCode> {
    // CONNECT asks for a tunnel to anywhere.
    if head.method == Method::CONNECT {
        return Err(StatusCode::METHOD_NOT_ALLOWED);
    }
    // RFC 9112, section 6.1: an attempt at request smuggling, or as bad as one. hyper has refused unparsable requests
    // and removed a length that does not count.
    if head.headers.contains_key(TRANSFER_ENCODING)
        && (head.headers.contains_key(CONTENT_LENGTH) || head.version == Version::HTTP_10)
    {
        return Err(StatusCode::BAD_REQUEST);
    }
    one_length(&mut head.headers)?;
    let host = host(head)?;
    let via = if head.version >= Version::HTTP_2 { "2.0 outlast" } else { "1.1 outlast" };
    let upgrade = upgrade(head.version, &head.headers);
    let keep_trailers = names(&head.headers, &TE, "trailers");
    remove_hop_by_hop(&mut head.headers);
    if keep_trailers {
        head.headers.insert(TE, HeaderValue::from_static("trailers"));
        head.headers.append(CONNECTION, HeaderValue::from_static("te"));
    }
    if let Some(protocol) = upgrade {
        head.headers.append(CONNECTION, HeaderValue::from_static("upgrade"));
        head.headers.insert(UPGRADE, protocol);
    }
    join_cookies(&mut head.headers);
    remove(&mut head.headers, |name| name.starts_with(OF_TLS));
    if !origin.transparent {
        forwarded(&mut head.headers, origin, &host);
        head.headers.append(VIA, HeaderValue::from_static(via));
    }
    if let (true, Some(tls)) = (origin.tls_headers, origin.tls) {
        tell_of_tls(&mut head.headers, tls);
    }
    head.headers.insert(HOST, host);
    let root = || PathAndQuery::from_static("/");
    head.uri = Uri::from(head.uri.path_and_query().cloned().unwrap_or_else(root));
    head.version = Version::HTTP_11;
    Ok(())
}

/// Prepares a backend's response for forwarding.
pub(crate) fn homeward(headers: &mut HeaderMap, switching: bool) {
    let upgrade = headers.get(UPGRADE).cloned().filter(|_| switching);
    remove_hop_by_hop(headers);
    if let Some(protocol) = upgrade {
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, protocol);
    }
}

/// The one protocol to which an HTTP/1.1 client asks to switch (RFC 9110, section 7.8), not a choice of several.
pub(crate) fn upgrade(version: Version, headers: &HeaderMap) -> Option<HeaderValue> {
    let asks = version == Version::HTTP_11 && names(headers, &CONNECTION, "upgrade");
    let mut values = headers.get_all(UPGRADE).iter();
    let value = values.next().filter(|_| asks && values.next().is_none())?;
    // A token, possibly followed by a slash and a version.
    let one = value.to_str().ok()?.split('/').all(|part| HeaderName::try_from(part).is_ok());
    // Upgrading to HTTP/2 is obsolete (RFC 9113, section 3.1), and the backend must not begin it.
    (one && !value.as_bytes().eq_ignore_ascii_case(b"h2c")).then(|| value.clone())
}

/// Whether a response switches to exactly the requested protocol.
pub(crate) fn switches_to(asked: &HeaderValue, answer: &HeaderMap) -> bool {
    let mut said = answer.get_all(UPGRADE).iter();
    let same = said.next().is_some_and(|said| {
        said.as_bytes().trim_ascii().eq_ignore_ascii_case(asked.as_bytes().trim_ascii())
    });
    same && said.next().is_none()
}

/// Whether this authentication binds the connection to its client, because it applies to everything later on the
/// connection (RFC 4559, section 6).
pub(crate) fn binds(headers: &HeaderMap) -> bool {
    let values = [AUTHORIZATION, WWW_AUTHENTICATE].map(|field| headers.get_all(field));
    let mut elements = values.iter().flatten().flat_map(|value| value.as_bytes().split(list_comma));
    elements.any(|element| {
        let scheme = element.trim_ascii().split(u8::is_ascii_whitespace).next().unwrap_or_default();
        [&b"ntlm"[..], b"negotiate"].iter().any(|bound| scheme.eq_ignore_ascii_case(bound))
    })
}

/// Whether `Host` is one of these, with any port. A request without `Host` was not routed by name.
pub(crate) fn is_for(host: &HeaderValue, hosts: &[String]) -> bool {
    let authority = Authority::try_from(host.as_bytes());
    host.is_empty()
        || authority.is_ok_and(|said| hosts.iter().any(|of| of.eq_ignore_ascii_case(said.host())))
}

/// Several equal lengths become one (RFC 9110, section 8.6).
fn one_length(headers: &mut HeaderMap) -> Result<(), StatusCode> {
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
    let Some(first) = lengths.next().cloned() else { return Ok(()) };
    if lengths.any(|length| *length != first) {
        return Err(StatusCode::BAD_REQUEST);
    }
    headers.insert(CONTENT_LENGTH, first);
    Ok(())
}

/// Host of a request: the target takes precedence over the field (RFC 9112, section 3.2.2).
fn host(head: &request::Parts) -> Result<HeaderValue, StatusCode> {
    let mut fields = head.headers.get_all(HOST).iter();
    let field = fields.next();
    // RFC 9112, section 3.2.
    if fields.next().is_some() {
        return Err(StatusCode::BAD_REQUEST);
    }
    if let Some(authority) = head.uri.authority() {
        // RFC 9110, section 4.2.4: a URL with user information is refused because it is used to disguise the host.
        let odd = has_user(authority.as_str().as_bytes());
        let value = HeaderValue::from_str(authority.as_str());
        return value.ok().filter(|_| !odd).ok_or(StatusCode::BAD_REQUEST);
    }
    match field {
        Some(value) if has_user(value.as_bytes()) => Err(StatusCode::BAD_REQUEST),
        Some(value) if value.is_empty() || Authority::try_from(value.as_bytes()).is_ok() => {
            Ok(value.clone())
        }
        None if head.version <= Version::HTTP_10 => Ok(HeaderValue::from_static("")),
        Some(_) | None => Err(StatusCode::BAD_REQUEST),
    }
}

fn has_user(authority: &[u8]) -> bool {
    authority.contains(&b'@')
}

/// Whether a list field contains this element.
fn names(headers: &HeaderMap, field: &HeaderName, element: &str) -> bool {
    elements(headers, field).any(|found| found.eq_ignore_ascii_case(element.as_bytes()))
}

/// As bytes: an element that is not text must not hide the others.
fn elements<'a>(headers: &'a HeaderMap, field: &HeaderName) -> impl Iterator<Item = &'a [u8]> {
    let values = headers.get_all(field).into_iter().map(HeaderValue::as_bytes);
    values.flat_map(|value| value.split(list_comma)).map(<[u8]>::trim_ascii)
}

fn list_comma(byte: &u8) -> bool {
    *byte == b','
}

fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = elements(headers, &CONNECTION)
        .filter_map(|name| HeaderName::from_bytes(name).ok())
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        // A client must not remove the host or the length of a request.
        if *name != HOST && *name != CONTENT_LENGTH {
            headers.remove(name);
        }
    }
}

fn remove(headers: &mut HeaderMap, which: impl Fn(&str) -> bool) {
    let matches = |name: &&HeaderName| which(&name.as_str().replace('_', "-"));
    let names: Vec<HeaderName> = headers.keys().filter(matches).cloned().collect();
    for name in names {
        headers.remove(name);
    }
}

/// HTTP/2 may send cookies in several fields; HTTP/1.1 has one (RFC 9113, section 8.2.3).
fn join_cookies(headers: &mut HeaderMap) {
    let crumbs: Vec<_> = headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if crumbs.len() > 1
        && let Ok(whole) = HeaderValue::from_bytes(&crumbs.join(&b"; "[..]))
    {
        headers.insert(COOKIE, whole);
    }
}

/// `X-Forwarded-*` and `Forwarded` (RFC 7239).
fn forwarded(headers: &mut HeaderMap, origin: &Origin<'_>, host: &HeaderValue) {
    if !origin.trusted {
        remove(headers, |name| {
            name == FORWARDED.as_str() || OF_PROXIES.iter().any(|of| name.starts_with(of))
        });
    }
    let scheme = if origin.tls.is_some() { "https" } else { "http" };
    let client = origin.client.map_or("unknown".into(), |client| client.to_canonical().to_string());
    append(headers, HeaderName::from_static("x-forwarded-for"), &client);
    for (name, value) in [
        ("x-forwarded-proto", HeaderValue::from_static(scheme)),
        ("x-forwarded-host", host.clone()),
    ] {
        let field = HeaderName::from_static(name);
        if !headers.contains_key(&field) {
            headers.insert(field, value);
        }
    }
    // RFC 7239, section 6: an IPv6 address is in brackets, and a colon requires quotes.
    let node = if client.contains(':') { format!("\"[{client}]\"") } else { client };
    let mut element = format!("for={node};proto={scheme}");
    if let Some(host) = host.to_str().ok().filter(|host| !host.is_empty()) {
        element.push_str(&format!(";host=\"{host}\""));
    }
    append(headers, FORWARDED, &element);
}

/// Appends an element to a list field, on one line.
fn append(headers: &mut HeaderMap, name: HeaderName, element: &str) {
    let before: Vec<_> = headers.get_all(&name).iter().map(HeaderValue::as_bytes).collect();
    let mut all = before.join(&b", "[..]);
    if !all.is_empty() {
        all.extend(b", ");
    }
    all.extend(element.as_bytes());
    if let Ok(value) = HeaderValue::from_bytes(&all) {
        headers.insert(name, value);
    }
}

fn tell_of_tls(headers: &mut HeaderMap, tls: &Negotiated) {
    let client = tls.client_certificate.as_ref();
    let rows = [
        ("x-outlast-tls-version", Some(tls.version.as_str())),
        ("x-outlast-tls-cipher", Some(tls.cipher_suite.as_str())),
        ("x-outlast-tls-group", tls.group.as_deref()),
        ("x-outlast-tls-post-quantum", Some(if tls.post_quantum { "true" } else { "false" })),
        ("x-outlast-tls-client-subject", client.map(|shown| shown.subject.as_str())),
        ("x-outlast-tls-client-serial", client.map(|shown| shown.serial_number.as_str())),
        ("x-outlast-tls-client-issuer", client.map(|shown| shown.issuer.as_str())),
    ];
    for (name, text) in rows {
        // A name may contain letters outside ASCII; they stay UTF-8, which `HeaderValue` accepts.
        if let Some(Ok(value)) = text.map(|text| HeaderValue::from_bytes(text.as_bytes())) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
}

#[cfg(test)]
mod tests;
