//! Requests as clients send them and as the backend receives them.

use super::*;

fn origin() -> Origin<'static> {
    Origin {
        client: Some("192.0.2.7".parse().unwrap()),
        trusted: false,
        transparent: true,
        tls: None,
        tls_headers: false,
    }
}

fn request(method: &str, uri: &str, version: Version, fields: &[(&str, &str)]) -> request::Parts {
    let mut builder = http::Request::builder().method(method).uri(uri).version(version);
    for (name, value) in fields {
        builder = builder.header(*name, *value);
    }
    builder.body(()).unwrap().into_parts().0
}

fn fields(headers: &HeaderMap) -> Vec<String> {
    let text = |(name, value): (&HeaderName, &HeaderValue)| {
        format!("{name}: {}", String::from_utf8_lossy(value.as_bytes()))
    };
    let mut all: Vec<_> = headers.iter().map(text).collect();
    all.sort();
    all
}

/// The forwarded request, or the status that the client gets.
fn check(origin: &Origin<'_>, mut head: request::Parts, expected: Result<(&str, &[&str]), u16>) {
    let outcome = outward(&mut head, origin).map_err(|status| status.as_u16());
    let left = outcome.map(|()| (head.uri.to_string(), fields(&head.headers)));
    let expected = expected.map(|(uri, fields)| {
        (uri.to_owned(), fields.iter().map(|field| (*field).to_owned()).collect())
    });
    assert_eq!(left, expected);
}

#[test]
fn hosts() {
    let with = |uri, version, fields: &[_]| request("GET", uri, version, fields);
    let h1 = Version::HTTP_11;
    let host = ("host", "a.example");
    check(&origin(), with("/x?y", h1, &[host]), Ok(("/x?y", &["host: a.example"])));
    // The target takes precedence over the field.
    check(&origin(), with("http://b.example/x", h1, &[host]), Ok(("/x", &["host: b.example"])));
    let h2 = Version::HTTP_2;
    check(&origin(), with("https://c.example:1/", h2, &[]), Ok(("/", &["host: c.example:1"])));
    check(&origin(), with("/", h1, &[]), Err(400));
    check(&origin(), with("/", h1, &[host, host]), Err(400));
    check(&origin(), with("/", h1, &[("host", "a b")]), Err(400));
    check(&origin(), with("http://user@c.example/", h1, &[host]), Err(400));
    check(&origin(), with("/", h1, &[("host", "user@c.example")]), Err(400));
    check(&origin(), with("/", Version::HTTP_10, &[]), Ok(("/", &["host: "])));
    let asterisk = request("OPTIONS", "*", h1, &[host]);
    check(&origin(), asterisk, Ok(("*", &["host: a.example"])));
    check(&origin(), request("CONNECT", "a.example:443", h1, &[host]), Err(405));
}

#[test]
fn fields_of_one_connection_stay_on_it() {
    let head = request(
        "POST",
        "/",
        Version::HTTP_11,
        &[
            ("host", "a"),
            ("connection", "keep-alive, X-Secret, Host, Content-Length"),
            ("keep-alive", "timeout=5"),
            ("proxy-connection", "keep-alive"),
            ("x-secret", "1"),
            ("te", "gzip"),
            ("trailer", "x"),
            ("content-length", "3"),
            ("expect", "100-continue"),
            ("upgrade", "websocket"),
            ("authorization", "kept"),
            ("proxy-authorization", "Basic eDp5"),
            ("x-hidden", "1"),
            ("connection", "\u{e9}, x-hidden"),
        ],
    );
    // Without `upgrade` in Connection it is not a request to switch protocols.
    let left = &["authorization: kept", "content-length: 3", "expect: 100-continue", "host: a"];
    check(&origin(), head, Ok(("/", left)));
}

#[test]
fn smuggling_is_refused() {
    let fields = [("host", "a"), ("transfer-encoding", "chunked"), ("content-length", "3")];
    check(&origin(), request("POST", "/", Version::HTTP_11, &fields), Err(400));
    check(&origin(), request("POST", "/", Version::HTTP_10, &fields[..2]), Err(400));
    let left = &["host: a"];
    check(&origin(), request("POST", "/", Version::HTTP_11, &fields[..2]), Ok(("/", left)));
}

#[test]
fn switching() {
    let ask = |version, protocol| {
        let fields = [("host", "a"), ("connection", "Upgrade"), ("upgrade", protocol)];
        request("GET", "/", version, &fields)
    };
    let left = &["connection: upgrade", "host: a", "upgrade: websocket"];
    check(&origin(), ask(Version::HTTP_11, "websocket"), Ok(("/", left)));
    for refused in
        ["h2c", "H2C", "h2c, websocket", "websocket, h2c", "h2c,", "", "a b", "websocket;x"]
    {
        check(&origin(), ask(Version::HTTP_11, refused), Ok(("/", &["host: a"])));
    }
    let mut twice = ask(Version::HTTP_11, "websocket");
    twice.headers.append(UPGRADE, HeaderValue::from_static("h2c"));
    check(&origin(), twice, Ok(("/", &["host: a"])));
    // HTTP2-Settings is never forwarded, whether Connection names it or not.
    let mut settings = ask(Version::HTTP_11, "websocket");
    settings.headers.insert("http2-settings", HeaderValue::from_static("AAMAAABk"));
    check(&origin(), settings, Ok(("/", left)));
    for (said, expected) in [("WebSocket", true), ("h2c", false), ("websocket, h2c", false)] {
        let mut answer = HeaderMap::new();
        answer.insert(UPGRADE, HeaderValue::from_static(said));
        assert_eq!(switches_to(&HeaderValue::from_static("websocket"), &answer), expected);
    }
    assert!(!switches_to(&HeaderValue::from_static("websocket"), &HeaderMap::new()));
    check(&origin(), ask(Version::HTTP_10, "websocket"), Ok(("/", &["host: a"])));
    let mut answer = HeaderMap::new();
    answer.insert(UPGRADE, HeaderValue::from_static("websocket"));
    answer.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    homeward(&mut answer, true);
    assert_eq!(fields(&answer), ["connection: upgrade", "upgrade: websocket"]);
    homeward(&mut answer, false);
    assert!(answer.is_empty());
}

#[test]
fn cookies_become_one() {
    let crumbs = [("cookie", "a=1"), ("cookie", "b=2")];
    let head = request("GET", "https://a/", Version::HTTP_2, &crumbs);
    check(&origin(), head, Ok(("/", &["cookie: a=1; b=2", "host: a"])));
}

#[test]
fn who_the_client_is() {
    let lies: &[(&str, &str)] = &[
        ("host", "a"),
        ("x-forwarded-for", "10.0.0.1"),
        ("X_Forwarded_For", "10.0.0.1"),
        ("x-forwarded-proto", "http"),
        ("x-real-ip", "10.0.0.1"),
        ("x-ssl-client-verify", "SUCCESS"),
        ("forwarded", "for=10.0.0.1"),
        ("x-outlast-tls-client-subject", "CN=admin"),
        ("x_outlast_tls_group", "X25519MLKEM768"),
    ];
    let head = || request("GET", "/", Version::HTTP_11, lies);
    let tls = Negotiated {
        version: "TLSv1.3".into(),
        cipher_suite: "TLS_AES_256_GCM_SHA384".into(),
        group: Some("X25519MLKEM768".into()),
        post_quantum: true,
        handshake: crate::HandshakeKind::Full,
        client_certificate: None,
    };
    let base = Origin { transparent: false, tls: Some(&tls), ..origin() };
    let left = &[
        "forwarded: for=192.0.2.7;proto=https;host=\"a\"",
        "host: a",
        "via: 1.1 outlast",
        "x-forwarded-for: 192.0.2.7",
        "x-forwarded-host: a",
        "x-forwarded-proto: https",
    ];
    check(&base, head(), Ok(("/", left)));
    let told = Origin { tls_headers: true, ..base };
    let mut more: Vec<_> = left.to_vec();
    more.extend([
        "x-outlast-tls-cipher: TLS_AES_256_GCM_SHA384",
        "x-outlast-tls-group: X25519MLKEM768",
        "x-outlast-tls-post-quantum: true",
        "x-outlast-tls-version: TLSv1.3",
    ]);
    check(&told, head(), Ok(("/", &more)));
    // A trusted proxy's fields are kept; fields that only this proxy may set are removed from its requests too.
    let before = Origin {
        client: Some("2001:db8::1".parse().unwrap()),
        trusted: true,
        tls_headers: false,
        ..told
    };
    let left = &[
        "forwarded: for=10.0.0.1, for=\"[2001:db8::1]\";proto=https;host=\"a\"",
        "host: a",
        "via: 1.1 outlast",
        "x-forwarded-for: 10.0.0.1, 2001:db8::1",
        "x-forwarded-host: a",
        "x-forwarded-proto: http",
        "x-real-ip: 10.0.0.1",
        "x-ssl-client-verify: SUCCESS",
        "x_forwarded_for: 10.0.0.1",
    ];
    check(&before, head(), Ok(("/", left)));
}

#[test]
fn fields_about_certificates_are_not_believed() {
    let named = outlast_pki::whatif::headers::ENCODINGS.iter().map(|row| row.header);
    let others = ["Client-Cert-Chain", "True-Client-IP", "X-Cluster-Client-Ip", "X-Original-URL"];
    for name in named.chain(others).chain(["x-client-ip", "x_amzn_mtls_clientcert"]) {
        let head = || request("GET", "/", Version::HTTP_11, &[("host", "a"), (name, "x")]);
        let base = Origin { transparent: false, ..origin() };
        let mut left = head();
        outward(&mut left, &base).unwrap();
        assert!(!left.headers.contains_key(name), "{name}");
        let mut left = head();
        outward(&mut left, &Origin { trusted: true, ..base }).unwrap();
        assert!(left.headers.contains_key(name), "{name}");
    }
}

#[test]
fn lengths_that_agree_are_one() {
    let with = |second| {
        let lengths = [("content-length", "3"), ("content-length", second)];
        request("POST", "https://a/", Version::HTTP_2, &lengths)
    };
    check(&origin(), with("3"), Ok(("/", &["content-length: 3", "host: a"])));
    check(&origin(), with("4"), Err(400));
}

#[test]
fn authentication_of_connections() {
    let rows = [
        ("authorization", "NTLM TlRMTVNTUAAB", true),
        ("authorization", "negotiate YII=", true),
        ("authorization", "Basic eDp5", false),
        ("www-authenticate", "Basic realm=\"x\", Negotiate", true),
        ("www-authenticate", "NTLM", true),
        ("www-authenticate", "Bearer", false),
    ];
    for (name, value, expected) in rows {
        let headers = request("GET", "/", Version::HTTP_11, &[(name, value)]).headers;
        assert_eq!(binds(&headers), expected, "{name}: {value}");
    }
}

#[test]
fn hosts_that_are_served() {
    let hosts = ["localhost".to_owned(), "[::1]".to_owned(), "far.example".to_owned()];
    for (host, expected) in [
        ("localhost:8080", true),
        ("LOCALHOST", true),
        ("[::1]:1", true),
        ("far.example", true),
        ("", true),
        ("localhost.evil.example", false),
        ("evil.example:8080", false),
    ] {
        assert_eq!(is_for(&HeaderValue::from_static(host), &hosts), expected, "{host}");
    }
}
