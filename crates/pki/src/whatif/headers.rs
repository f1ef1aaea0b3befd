//! Client certificates in HTTP headers: how proxies write them, and what the servers behind them accept, as rows.

use std::fmt::Write as _;

use crate::pem;

/// Approximate size of the other lines of an ordinary request's head, in bytes.
pub const OTHER_LINES: usize = 600;

/// A way to pass on a client's certificate.
#[derive(Debug)]
pub struct Encoding {
    /// Software that writes it.
    pub name: &'static str,
    /// The header's usual name.
    pub header: &'static str,
    /// Source of the row.
    pub source: &'static str,
    /// The header's value for a chain (DER, the leaf first).
    encode: fn(&[Vec<u8>]) -> String,
}

/// All encodings.
pub static ENCODINGS: &[Encoding] = &[
    Encoding {
        name: "nginx, $ssl_client_escaped_cert",
        header: "X-SSL-Client-Cert",
        source: "ngx_http_ssl_module, embedded variables: PEM, urlencoded",
        encode: |chain| escaped(&leaf_pem(chain), b""),
    },
    Encoding {
        name: "HAProxy, ssl_c_der,base64",
        header: "X-SSL-Client-DER",
        source: "HAProxy configuration manual, ssl_c_der",
        encode: |chain| base64_text(chain),
    },
    Encoding {
        name: "Envoy, XFCC with Cert",
        header: "x-forwarded-client-cert",
        source: "Envoy documentation, HTTP header x-forwarded-client-cert: Hash and Cert",
        encode: |chain| {
            let pem = escaped(&leaf_pem(chain), b"");
            format!("Hash={};Cert=\"{pem}\"", "0".repeat(64))
        },
    },
    Encoding {
        name: "Envoy, XFCC with Chain",
        header: "x-forwarded-client-cert",
        source: "Envoy documentation, HTTP header x-forwarded-client-cert: Hash and Chain",
        encode: |chain| {
            let pem = escaped(&pem::chain(chain.iter().map(Vec::as_slice)), b"");
            format!("Hash={};Chain=\"{pem}\"", "0".repeat(64))
        },
    },
    Encoding {
        name: "Apache, %{SSL_CLIENT_CERT}s",
        header: "X-SSL-Client-Cert",
        source: "mod_headers: PEM, its line ends as blanks",
        encode: |chain| leaf_pem(chain).replace('\n', " "),
    },
    Encoding {
        name: "AWS ALB, verify mode",
        header: "X-Amzn-Mtls-Clientcert-Leaf",
        source: "ALB user guide, mutual TLS headers: leaf as PEM, urlencoded, += / safe",
        encode: |chain| escaped(&leaf_pem(chain), b"+=/"),
    },
    Encoding {
        name: "AWS ALB, passthrough mode",
        header: "X-Amzn-Mtls-Clientcert",
        source: "ALB user guide, mutual TLS headers: chain as PEM, urlencoded, += / safe",
        encode: |chain| escaped(&pem::chain(chain.iter().map(Vec::as_slice)), b"+=/"),
    },
    Encoding {
        name: "Client-Cert",
        header: "Client-Cert",
        source: "RFC 9440, section 2.2: base64 between colons",
        encode: |chain| format!(":{}:", base64_text(chain)),
    },
];

impl Encoding {
    /// Length of the header's line for a chain without its root, leaf first, in bytes.
    pub fn line(&self, chain: &[Vec<u8>]) -> usize {
        self.header.len() + ": ".len() + (self.encode)(chain).len() + "\r\n".len()
    }
}

/// Largest request head or line that a server accepts.
#[derive(Debug)]
pub struct Limit {
    /// The server.
    pub name: &'static str,
    /// Name and default of its setting.
    pub setting: &'static str,
    /// Bytes by default.
    pub bytes: usize,
    /// Whether the limit is for the whole head, or for each line.
    pub whole: bool,
    /// Source of the row.
    pub source: &'static str,
}

/// All servers.
pub static LIMITS: &[Limit] = &[
    Limit {
        name: "nginx",
        setting: "large_client_header_buffers 4 8k",
        bytes: 8192,
        whole: false,
        source: "ngx_http_core_module: a field must fit one buffer",
    },
    Limit {
        name: "Apache httpd",
        setting: "LimitRequestFieldSize 8190",
        bytes: 8190,
        whole: false,
        source: "core, LimitRequestFieldSize",
    },
    Limit {
        name: "gunicorn",
        setting: "limit_request_field_size 8190",
        bytes: 8190,
        whole: false,
        source: "gunicorn settings, security",
    },
    Limit {
        name: "Tomcat",
        setting: "maxHttpRequestHeaderSize 8192",
        bytes: 8192,
        whole: true,
        source: "Tomcat configuration reference, HTTP connector",
    },
    Limit {
        name: "Jetty",
        setting: "requestHeaderSize 8192",
        bytes: 8192,
        whole: true,
        source: "HttpConfiguration.setRequestHeaderSize",
    },
    Limit {
        name: "HAProxy",
        setting: "tune.bufsize 16384 less tune.maxrewrite 1024",
        bytes: 16_384 - 1024,
        whole: true,
        source: "HAProxy configuration manual, performance tuning",
    },
    Limit {
        name: "Node.js",
        setting: "--max-http-header-size 16384",
        bytes: 16_384,
        whole: true,
        source: "Node.js command-line options",
    },
    Limit {
        name: "AWS ALB",
        setting: "single header 16 K (fixed)",
        bytes: 16_384,
        whole: false,
        source: "ALB user guide, quotas: HTTP headers",
    },
    Limit {
        name: "Envoy",
        setting: "max_request_headers_kb 60",
        bytes: 60 * 1024,
        whole: true,
        source: "HttpConnectionManager, max_request_headers_kb",
    },
    Limit {
        name: "Outlast",
        setting: "64 KiB (fixed)",
        bytes: 64 * 1024,
        whole: true,
        source: "limits::MAX_HEAD",
    },
    Limit {
        name: "Go net/http",
        setting: "MaxHeaderBytes 1 MiB",
        bytes: 1 << 20,
        whole: true,
        source: "net/http, DefaultMaxHeaderBytes",
    },
];

impl Limit {
    /// Whether a request with a line of this length is accepted.
    pub fn fits(&self, line: usize) -> bool {
        line + if self.whole { OTHER_LINES } else { 0 } <= self.bytes
    }
}

fn leaf_pem(chain: &[Vec<u8>]) -> String {
    chain.first().map(|der| pem::certificate(der)).unwrap_or_default()
}

/// The leaf's DER in base64: a PEM block without its first and last line.
fn base64_text(chain: &[Vec<u8>]) -> String {
    let pem = leaf_pem(chain);
    pem.lines().filter(|line| !line.starts_with("-----")).collect()
}

/// RFC 3986: everything except unreserved characters and those in `safe`, as %XX.
fn escaped(text: &str, safe: &[u8]) -> String {
    let mut out = String::with_capacity(text.len() * 11 / 10);
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || safe.contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_by_hand() {
        let chain = vec![vec![0xfb, 0xff, 0xfe], vec![0]];
        let value = |name: &str| {
            let row = ENCODINGS.iter().find(|row| row.name.starts_with(name)).unwrap();
            (row.encode)(&chain)
        };
        let dashes = "-----";
        assert_eq!(
            value("nginx"),
            format!(
                "{dashes}BEGIN%20CERTIFICATE{dashes}%0A%2B%2F%2F%2B%0A{dashes}END%20CERTIFICATE{dashes}%0A"
            )
        );
        assert_eq!(value("HAProxy"), "+//+");
        assert_eq!(value("Client-Cert"), ":+//+:");
        assert!(value("AWS ALB, verify").contains("%0A+//+%0A"));
        assert!(value("AWS ALB, pass").contains("AA=="));
        assert!(value("Apache").ends_with("+//+ -----END CERTIFICATE----- "));
        assert!(value("Envoy, XFCC with Cert").starts_with("Hash=000"));
    }

    #[test]
    fn a_limit_on_the_whole_head_counts_the_other_lines() {
        let row = |name: &str| LIMITS.iter().find(|row| row.name == name).unwrap();
        assert!(row("nginx").fits(8192) && !row("nginx").fits(8193));
        assert!(row("Tomcat").fits(8192 - OTHER_LINES) && !row("Tomcat").fits(8192));
    }
}
