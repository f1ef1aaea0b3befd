//! AWS Signature Version 4: signs requests and verifies signatures.
//!
//! Source: "Create a signed AWS API request", AWS IAM user guide. Only the header form is accepted; presigned URLs,
//! unsigned and chunked payloads are refused by name, because a service that holds keys must know that its caller
//! sent the whole request.

use http::{HeaderMap, HeaderValue};
use outlast_crypto::{Secret, digests, hmac};
use time::OffsetDateTime;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;

use super::ApiError;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
/// How far a request's clock may differ, in seconds either way.
pub const MAX_SKEW_SECONDS: i64 = 300;
/// Headers that must be signed if they are present: they decide what the request does.
const MUST_BE_SIGNED: &[&str] =
    &["x-amz-date", "x-amz-target", "x-amz-content-sha256", "x-amz-security-token"];
/// `20261121T020000Z`
const BASIC: &[BorrowedFormatItem<'static>] =
    format_description!("[year][month][day]T[hour][minute][second]Z");

/// The request, as far as it is signed.
pub struct Parts<'a> {
    /// Method.
    pub method: &'a str,
    /// Path, as sent.
    pub path: &'a str,
    /// Query string, as sent, without the question mark.
    pub query: &'a str,
    /// Host and port, from the `Host` header or HTTP/2's `:authority`.
    pub host: &'a str,
    /// Headers.
    pub headers: &'a HeaderMap,
    /// Body.
    pub body: &'a [u8],
}

impl<'a> Parts<'a> {
    /// A header that is there once, in ASCII.
    pub(super) fn header(&self, name: &str) -> Option<&'a str> {
        let mut values = self.headers.get_all(name).iter();
        let value = values.next().and_then(|value| value.to_str().ok());
        if values.next().is_some() { None } else { value }
    }
}

/// The contents of an `Authorization` header, not verified yet.
#[derive(Debug, PartialEq, Eq)]
pub struct Claim {
    /// Access key id.
    pub access_key_id: String,
    /// Region of the credential scope.
    pub region: String,
    /// Service of the credential scope.
    pub service: String,
    date: String,
    signed_headers: Vec<String>,
    signature: Vec<u8>,
    timestamp: String,
}

fn incomplete(message: impl Into<String>) -> ApiError {
    ApiError::new("IncompleteSignatureException", message)
}

fn mismatch(message: impl Into<String>) -> ApiError {
    ApiError::new("InvalidSignatureException", message)
}

impl Claim {
    /// Reads the signature's headers and checks everything that needs neither the body nor the secret: form, date,
    /// scope, kind of payload.
    pub fn parse(parts: &Parts<'_>, now: i64) -> Result<Self, ApiError> {
        let text = |name: &str| parts.header(name);
        if parts.query.contains("X-Amz-Algorithm") || parts.query.contains("X-Amz-Signature") {
            return Err(incomplete(
                "Presigned URLs are not supported; sign with the Authorization header.",
            ));
        }
        if !parts.headers.contains_key("authorization") {
            return Err(ApiError::new(
                "MissingAuthenticationTokenException",
                "Missing Authentication Token",
            ));
        }
        let authorization = text("authorization")
            .ok_or_else(|| incomplete("There must be one Authorization header, in ASCII."))?;
        let fields = authorization.strip_prefix(ALGORITHM).ok_or_else(|| {
            incomplete(format!(
                "Authorization must begin with {ALGORITHM}; no other algorithm is supported."
            ))
        })?;
        let field = |name: &str| {
            fields
                .split(',')
                .find_map(|part| part.trim().strip_prefix(name)?.strip_prefix('='))
                .ok_or_else(|| {
                    incomplete(format!("Authorization header requires '{name}' parameter."))
                })
        };
        let scope: Vec<_> = field("Credential")?.split('/').collect();
        let [access_key_id, date, region, service, "aws4_request"] = scope.as_slice() else {
            return Err(incomplete(
                "Credential must have 5 slash-separated parts and end with aws4_request.",
            ));
        };
        if !outlast_domain::arn::is_region(region) {
            return Err(incomplete("The region of the credential scope is not valid."));
        }
        let signed_headers: Vec<String> =
            field("SignedHeaders")?.split(';').map(str::to_ascii_lowercase).collect();
        let signature = hex::decode(field("Signature")?)
            .map_err(|_| incomplete("Signature must be hexadecimal."))?;
        let timestamp = text("x-amz-date").ok_or_else(|| {
            incomplete("Authorization header requires existence of one 'X-Amz-Date' header.")
        })?;
        check_clock(timestamp, date, now)?;
        for name in MUST_BE_SIGNED {
            if parts.headers.contains_key(*name) && !signed_headers.iter().any(|s| s == name) {
                return Err(incomplete(format!("The header {name} must be signed.")));
            }
        }
        if !signed_headers.iter().any(|name| name == "host") {
            return Err(incomplete("The header host must be signed."));
        }
        check_payload_kind(parts)?;
        Ok(Self {
            access_key_id: (*access_key_id).to_owned(),
            region: (*region).to_owned(),
            service: (*service).to_owned(),
            date: (*date).to_owned(),
            timestamp: timestamp.to_owned(),
            signed_headers,
            signature,
        })
    }

    /// The service in the credential scope of an `Authorization` header.
    pub fn service_of(authorization: &str) -> Option<&str> {
        let (_, rest) = authorization.split_once("Credential=")?;
        rest.split([',', ' ']).next()?.split('/').nth(3)
    }

    /// Verifies payload and signature with the access key's secret.
    pub fn verify(&self, parts: &Parts<'_>, secret: &Secret) -> Result<(), ApiError> {
        check_digest(parts)?;
        let wrong = || {
            mismatch(
                "The request signature we calculated does not match the signature you provided. \
                 Check your AWS Secret Access Key and signing method. Consult the service \
                 documentation for details.",
            )
        };
        let canonical = canonical_request(parts, &canonical_path(parts.path), &self.signed_headers)
            .ok_or_else(wrong)?;
        let scope = format!("{}/{}/{}/aws4_request", self.date, self.region, self.service);
        let expected = signature(
            secret,
            &self.date,
            &self.region,
            &self.service,
            &string_to_sign(ALGORITHM, &self.timestamp, &scope, &canonical),
        );
        if hmac::equal(&expected, &self.signature) { Ok(()) } else { Err(wrong()) }
    }
}

/// The credentials of a client.
pub struct Credentials {
    /// Access key id.
    pub access_key_id: String,
    /// Secret access key.
    pub secret: Secret,
    /// Session token, with temporary credentials.
    pub token: Option<Secret>,
}

/// The request to be signed.
pub struct Target<'a> {
    /// Path.
    pub path: &'a str,
    /// Host and port.
    pub host: &'a str,
    /// Body.
    pub body: &'a [u8],
    /// Region.
    pub region: &'a str,
    /// Service's signing name.
    pub service: &'a str,
}

/// Adds `X-Amz-Date` and `Authorization` to `headers`, all of which are signed together with the host.
pub fn sign(
    headers: &mut HeaderMap,
    target: &Target<'_>,
    credentials: &Credentials,
    now: i64,
) -> Result<(), ApiError> {
    sign_as(headers, ("POST", ""), target, &canonical_path(target.path), credentials, now)
}

/// The same for any method, with this query string.
pub fn sign_rest(
    headers: &mut HeaderMap,
    method: &str,
    query: &str,
    target: &Target<'_>,
    credentials: &Credentials,
    now: i64,
) -> Result<(), ApiError> {
    sign_as(headers, (method, query), target, &canonical_path(target.path), credentials, now)
}

/// The same for a GET.
pub fn sign_get(
    headers: &mut HeaderMap,
    target: &Target<'_>,
    credentials: &Credentials,
    now: i64,
) -> Result<(), ApiError> {
    sign_as(headers, ("GET", ""), target, &canonical_path(target.path), credentials, now)
}

/// The same for a request to S3, with a path from [`encode_path`] and a query whose names and values are from
/// [`encode_component`]. Only S3 does not encode the path again, and it requires `X-Amz-Content-SHA256`.
pub fn sign_s3(
    headers: &mut HeaderMap,
    method: &str,
    query: &str,
    target: &Target<'_>,
    credentials: &Credentials,
    now: i64,
) -> Result<(), ApiError> {
    let digest = hex::encode(digests::sha256(target.body));
    let invalid = |_| ApiError::validation("a header value is not valid");
    headers.insert("x-amz-content-sha256", digest.parse().map_err(invalid)?);
    sign_as(headers, (method, query), target, target.path, credentials, now)
}

fn sign_as(
    headers: &mut HeaderMap,
    (method, query): (&str, &str),
    target: &Target<'_>,
    canonical_path: &str,
    credentials: &Credentials,
    now: i64,
) -> Result<(), ApiError> {
    let Target { path, host, body, region, service } = *target;
    let invalid = || ApiError::validation("a header value is not valid");
    let timestamp = OffsetDateTime::from_unix_timestamp(now)
        .ok()
        .and_then(|time| time.format(BASIC).ok())
        .ok_or_else(invalid)?;
    headers.insert("x-amz-date", timestamp.parse().map_err(|_| invalid())?);
    if let Some(token) = &credentials.token {
        let mut value = HeaderValue::from_bytes(token.expose()).map_err(|_| invalid())?;
        value.set_sensitive(true);
        headers.insert("x-amz-security-token", value);
    }
    let mut names: Vec<String> = headers.keys().map(|name| name.as_str().to_owned()).collect();
    names.push("host".into());
    names.sort_unstable();
    let date = &timestamp[..8];
    let scope = format!("{date}/{region}/{service}/aws4_request");
    let parts = Parts { method, path, query, host, headers, body };
    let canonical = canonical_request(&parts, canonical_path, &names).ok_or_else(invalid)?;
    let to_sign = string_to_sign(ALGORITHM, &timestamp, &scope, &canonical);
    let signature = signature(&credentials.secret, date, region, service, &to_sign);
    let authorization = format!(
        "{ALGORITHM} Credential={}/{scope}, SignedHeaders={}, Signature={}",
        credentials.access_key_id,
        names.join(";"),
        hex::encode(signature)
    );
    headers.insert("authorization", authorization.parse().map_err(|_| invalid())?);
    Ok(())
}

/// Checks the time of a signature.
pub(super) fn check_clock(timestamp: &str, date: &str, now: i64) -> Result<(), ApiError> {
    let at = time::PrimitiveDateTime::parse(timestamp, BASIC)
        .map_err(|_| incomplete("X-Amz-Date must be in ISO-8601 'basic format'."))?
        .assume_utc();
    if timestamp.get(..8) != Some(date) {
        return Err(mismatch("Date in Credential scope does not match the date of X-Amz-Date."));
    }
    let text = |seconds: i64| {
        OffsetDateTime::from_unix_timestamp(seconds)
            .ok()
            .and_then(|time| time.format(BASIC).ok())
            .unwrap_or_default()
    };
    let at = at.unix_timestamp();
    if at < now - MAX_SKEW_SECONDS {
        return Err(mismatch(format!(
            "Signature expired: {timestamp} is now earlier than {} ({} - 5 min.)",
            text(now - MAX_SKEW_SECONDS),
            text(now)
        )));
    }
    if at > now + MAX_SKEW_SECONDS {
        return Err(mismatch(format!(
            "Signature not yet current: {timestamp} is still later than {} ({} + 5 min.)",
            text(now + MAX_SKEW_SECONDS),
            text(now)
        )));
    }
    Ok(())
}

/// Refuses payloads that a signature does not cover.
pub(super) fn check_payload_kind(parts: &Parts<'_>) -> Result<(), ApiError> {
    if parts
        .headers
        .get("content-encoding")
        .is_some_and(|value| value.as_bytes().windows(11).any(|w| w == b"aws-chunked"))
    {
        return Err(incomplete("Chunked payloads (aws-chunked) are not supported."));
    }
    let Some(claimed) = parts.headers.get("x-amz-content-sha256") else { return Ok(()) };
    let claimed = claimed.as_bytes();
    if claimed == b"UNSIGNED-PAYLOAD" {
        return Err(incomplete("UNSIGNED-PAYLOAD is not supported; sign the payload."));
    }
    if claimed.starts_with(b"STREAMING-") {
        return Err(incomplete(
            "Chunked payloads (STREAMING-*) are not supported; sign the payload.",
        ));
    }
    Ok(())
}

/// Compares the payload with its digest in a header, if there is one.
pub(super) fn check_digest(parts: &Parts<'_>) -> Result<(), ApiError> {
    let Some(claimed) = parts.headers.get("x-amz-content-sha256") else { return Ok(()) };
    if claimed.as_bytes() != hex::encode(digests::sha256(parts.body)).as_bytes() {
        return Err(mismatch(
            "The provided 'x-amz-content-sha256' header does not match what was computed.",
        ));
    }
    Ok(())
}

/// The request in its canonical form; `None` if a header that is signed is not there, or the list is not sorted.
pub(super) fn canonical_request(
    parts: &Parts<'_>,
    canonical_path: &str,
    signed_headers: &[String],
) -> Option<String> {
    let mut out = format!("{}\n{canonical_path}\n{}\n", parts.method, canonical_query(parts.query));
    let sorted = signed_headers.is_sorted();
    for name in signed_headers {
        out.push_str(name);
        out.push(':');
        if name == "host" {
            out.push_str(parts.host);
        } else {
            let mut first = true;
            for value in parts.headers.get_all(name.as_str()) {
                if !first {
                    out.push(',');
                }
                first = false;
                let words: Vec<_> =
                    value.to_str().ok()?.split(' ').filter(|word| !word.is_empty()).collect();
                out.push_str(&words.join(" "));
            }
            if first {
                return None;
            }
        }
        out.push('\n');
    }
    out.push('\n');
    out.push_str(&signed_headers.join(";"));
    out.push('\n');
    out.push_str(&hex::encode(digests::sha256(parts.body)));
    sorted.then_some(out)
}

/// A path in S3's encoding: each octet but the unreserved ones and slashes is encoded.
pub fn encode_path(path: &str) -> String {
    percent_encode(path, b"/")
}

/// A name or value of a query string: each octet but the unreserved ones is encoded.
pub fn encode_component(text: &str) -> String {
    percent_encode(text, b"")
}

/// Every service except S3 encodes the path again.
pub(super) fn canonical_path(path: &str) -> String {
    if path.is_empty() { "/".into() } else { percent_encode(path, b"/") }
}

fn canonical_query(query: &str) -> String {
    let mut pairs: Vec<_> = query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .collect();
    pairs.sort_unstable();
    let pairs: Vec<_> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join("&")
}

fn percent_encode(text: &str, keep: &[u8]) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || keep.contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// The text that is signed.
pub(super) fn string_to_sign(
    algorithm: &str,
    timestamp: &str,
    scope: &str,
    canonical_request: &str,
) -> String {
    let digest = hex::encode(digests::sha256(canonical_request.as_bytes()));
    format!("{algorithm}\n{timestamp}\n{scope}\n{digest}")
}

fn signature(
    secret: &Secret,
    date: &str,
    region: &str,
    service: &str,
    string_to_sign: &str,
) -> [u8; 32] {
    let secret = Secret::new([b"AWS4", secret.expose()].concat());
    let key = hmac::sha256(secret.expose(), date.as_bytes());
    let key = hmac::sha256(&key, region.as_bytes());
    let key = hmac::sha256(&key, service.as_bytes());
    let key = hmac::sha256(&key, b"aws4_request");
    hmac::sha256(&key, string_to_sign.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the IAM user guide, "Signature Version 4 signing process": GET iam ListUsers.
    #[test]
    fn the_documented_example() {
        let mut headers = HeaderMap::new();
        headers.insert(
            "content-type",
            "application/x-www-form-urlencoded; charset=utf-8".parse().unwrap(),
        );
        headers.insert("x-amz-date", "20150830T123600Z".parse().unwrap());
        let parts = Parts {
            method: "GET",
            path: "/",
            query: "Action=ListUsers&Version=2010-05-08",
            host: "iam.amazonaws.com",
            headers: &headers,
            body: b"",
        };
        let names = ["content-type", "host", "x-amz-date"].map(String::from);
        let canonical = canonical_request(&parts, "/", &names).unwrap();
        assert_eq!(
            hex::encode(digests::sha256(canonical.as_bytes())),
            "f536975d06c0309214f805bb90ccff089219ecd68b2577efef23edd43b7e1a59"
        );
        let scope = "20150830/us-east-1/iam/aws4_request";
        let to_sign = string_to_sign(ALGORITHM, "20150830T123600Z", scope, &canonical);
        let secret = Secret::new(b"wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".to_vec());
        assert_eq!(
            hex::encode(signature(&secret, "20150830", "us-east-1", "iam", &to_sign)),
            "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
        );
    }

    /// The example of the S3 API reference, "Signature Calculations for the Authorization Header", "PUT Object".
    #[test]
    fn the_documented_put_of_s3() {
        let mut headers = HeaderMap::new();
        headers.insert("date", "Fri, 24 May 2013 00:00:00 GMT".parse().unwrap());
        headers.insert("x-amz-storage-class", "REDUCED_REDUNDANCY".parse().unwrap());
        let path = encode_path("/test$file.text");
        assert_eq!(path, "/test%24file.text");
        let target = Target {
            path: &path,
            host: "examplebucket.s3.amazonaws.com",
            body: b"Welcome to Amazon S3.",
            region: "us-east-1",
            service: "s3",
        };
        let credentials = Credentials {
            access_key_id: "AKIAIOSFODNN7EXAMPLE".into(),
            secret: Secret::new(b"wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_vec()),
            token: None,
        };
        sign_s3(&mut headers, "PUT", "", &target, &credentials, 1_369_353_600).unwrap();
        let authorization = headers["authorization"].to_str().unwrap();
        assert!(
            authorization.ends_with(
                "Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"
            ),
            "{authorization}"
        );
    }
}
