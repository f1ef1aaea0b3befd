//! `outlast cert whatif`: the cost of a chain in a TLS 1.3 handshake, and in headers behind proxies.

use std::fmt::Write as _;
use std::path::PathBuf;

use outlast_crypto::keys::{KEY_SPECS, KeySpec};
use outlast_net::client::client_hello_len;
use outlast_net::policy::Policy;
use outlast_net::server::system_clock;
use outlast_pki::certificate::Certificate;
use outlast_pki::describe;
use outlast_pki::whatif::flight::{self, Flight, Request, Shape};
use outlast_pki::whatif::headers::{ENCODINGS, LIMITS};
use outlast_pki::whatif::{self, MAX_LEN};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::objects;
use crate::output::Output;
use crate::tables::table;

/// The classical chain for comparison.
const CLASSICAL: &[&str] = &["ECC_NIST_P256", "RSA_2048"];

/// Arguments of `cert whatif`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// PEM file with a chain [default: a chain is made from the key types in the options].
    #[arg(conflicts_with_all = ["root", "sub", "leaf"])]
    file: Option<PathBuf>,
    /// Key type of the root, such as ML_DSA_87.
    #[arg(long, value_name = "KEY_SPEC", required_unless_present = "file")]
    root: Option<String>,
    /// Key type of a subordinate CA, from the root downwards; may be repeated.
    #[arg(long, value_name = "KEY_SPEC")]
    sub: Vec<String>,
    /// Key type of the leaf.
    #[arg(long, value_name = "KEY_SPEC", required_unless_present = "file")]
    leaf: Option<String>,
    /// DNS name in the leaf; may be repeated.
    #[arg(long = "name", value_name = "DNS", default_value = "server.example.com")]
    names: Vec<String>,
}

/// Costs of a chain.
struct Costs {
    /// From the leaf to the root, if the root is known.
    chain: Vec<Certificate>,
    /// The certificates that are sent: without the root.
    sent: Vec<Vec<u8>>,
    signature: usize,
    staple: usize,
}

/// Computes and prints.
pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let now = system_clock().div_euclid(1000);
    let costs = match &arguments.file {
        Some(path) => {
            let read = objects::certificates(path)?;
            let chain = whatif::ordered(&read)?;
            Costs::of(chain).map_err(|failure| failure.prefixed(&path.display().to_string()))?
        }
        None => {
            let names = arguments.root.iter().chain(&arguments.sub).chain(&arguments.leaf);
            let specs = names.map(|name| spec(name)).collect::<Result<Vec<_>, _>>()?;
            made(&specs, &arguments.names, now)?
        }
    };
    let hello = arguments.names.first().map_or("server.example.com", String::as_str);
    let hybrid_hello = client_hello_len(&Policy::default(), hello)
        .map_err(|error| Failure::new(error.to_string()).code(2))?;
    let depth = costs.sent.len() + 1;
    let mut others = Vec::new();
    for name in CLASSICAL {
        others.push((
            *name,
            made(&vec![spec(name)?; depth.clamp(2, MAX_LEN)], &arguments.names, now)?,
        ));
    }
    let value = json!({
        "certificates": costs.certificates(),
        "server_flight": parts(&flight::server(&costs.shape(false, false))),
        "client_flight": parts(&costs.client()),
        "client_hello_bytes": hybrid_hello,
        "handshakes": costs.handshakes(hybrid_hello),
        "headers": costs.headers(),
        "beside": others
            .iter()
            .map(|(name, other)| json!({
                "chain": name,
                "handshakes": other.handshakes(hybrid_hello),
                "certificate_bytes": other.sent.iter().map(Vec::len).sum::<usize>(),
            }))
            .collect::<Vec<_>>(),
    });
    output.result(&text(&value), &value);
    Ok(())
}

/// The row of a key type that can occur in a chain.
fn spec(name: &str) -> Result<&'static KeySpec, Failure> {
    let usable = |spec: &&KeySpec| whatif::signing(spec).is_some();
    KeySpec::by_name(name).filter(|spec| usable(spec)).ok_or_else(|| {
        let known: Vec<_> = KEY_SPECS.iter().filter(usable).map(|spec| spec.name).collect();
        Failure::new(format!("{name} is not a key type of certificates"))
            .hint(format!("choose one of {}", known.join(", ")))
            .code(2)
    })
}

fn made(specs: &[&'static KeySpec], names: &[String], now: i64) -> Result<Costs, Failure> {
    let made = whatif::build(specs, names, now)?;
    Costs::of(whatif::ordered(&made.certificates)?)
}

impl Costs {
    fn of(chain: Vec<Certificate>) -> Result<Self, Failure> {
        let leaf = chain.first().ok_or_else(|| Failure::new("there is no certificate in it"))?;
        let is_root = |certificate: &&Certificate| certificate.issuer() == certificate.subject();
        let sent: Vec<_> = chain
            .iter()
            .enumerate()
            .filter(|(index, certificate)| *index == 0 || !is_root(certificate))
            .map(|(_, certificate)| certificate.der().to_vec())
            .collect();
        let signature = describe::signature_bytes(&leaf.public_key()?)
            .ok_or_else(|| Failure::new("the leaf's key cannot sign TLS handshakes"))?;
        // Signed by the issuer itself; a delegated responder's certificate would be added.
        let staple = flight::OCSP_BASE + describe::signature_len(leaf.der());
        Ok(Self { chain, sent, signature, staple })
    }

    fn shape(&self, mutual: bool, staple: bool) -> Shape<'_> {
        // Outlast names the CAs that it trusts: here one, as long as this chain's root.
        let last = self.chain.last();
        let authorities = last.map_or(0, |root| 2 + describe::name_len(root.issuer()));
        let schemes = Policy::default().provider().signature_verification_algorithms;
        Shape {
            chain: &self.sent,
            signature: self.signature,
            share: flight::HYBRID_SERVER_SHARE,
            protocol: Some(2),
            staple: staple.then_some(self.staple),
            request: mutual
                .then(|| Request { schemes: schemes.supported_schemes().len(), authorities }),
        }
    }

    fn client(&self) -> Flight {
        flight::client(&self.sent, self.signature)
    }

    fn certificates(&self) -> Vec<Value> {
        self.chain
            .iter()
            .map(|found| {
                let key = found.public_key().and_then(|spki| describe::public_key(&spki));
                json!({
                    "subject": found.subject().to_string(),
                    "key": key.map(|key| key.name).unwrap_or_default(),
                    "signature": describe::algorithm_name(found.signature_algorithm()),
                    "bytes": found.der().len(),
                    "sent": self.sent.iter().any(|der| der == found.der()),
                })
            })
            .collect()
    }

    /// Handshakes of a server alone, with an OCSP response, and with clients that have such a chain, too.
    fn handshakes(&self, hello: usize) -> Vec<Value> {
        let received = flight::quic_client_bytes(hello);
        [
            ("server only", false, false),
            ("with OCSP staple", false, true),
            ("mutual TLS", true, false),
        ]
        .into_iter()
        .map(|(name, mutual, staple)| {
            let server = flight::server(&self.shape(mutual, staple));
            let client = if mutual { self.client().bytes() } else { 0 };
            let (tcp, quic) = (server.bytes(), server.quic_bytes());
            json!({
                "handshake": name,
                "server_bytes": tcp,
                "client_bytes": hello + client,
                "initial_window": flight::INITIAL_SEGMENTS * flight::TCP_SEGMENT,
                "extra_tcp_round_trips": flight::extra_tcp_round_trips(tcp),
                "extra_tcp_round_trips_client": flight::extra_tcp_round_trips(client),
                "quic_bytes": quic,
                "quic_limit_1200": flight::AMPLIFICATION * flight::QUIC_DATAGRAM,
                "extra_quic_round_trips_1200":
                    flight::extra_quic_round_trips(quic, flight::QUIC_DATAGRAM),
                "quic_limit": flight::AMPLIFICATION * received,
                "extra_quic_round_trips": flight::extra_quic_round_trips(quic, received),
            })
        })
        .collect()
    }

    fn headers(&self) -> Vec<Value> {
        ENCODINGS
            .iter()
            .map(|row| {
                let line = row.line(&self.sent);
                let fits: Vec<_> = LIMITS
                    .iter()
                    .map(|limit| {
                        json!({
                            "server": limit.name,
                            "setting": limit.setting,
                            "limit": limit.bytes,
                            "fits": limit.fits(line),
                            "source": limit.source,
                        })
                    })
                    .collect();
                json!({
                    "encoding": row.name,
                    "header": row.header,
                    "bytes": line,
                    "source": row.source,
                    "read_by": fits,
                })
            })
            .collect()
    }
}

fn parts(flight: &Flight) -> Value {
    let parts: Vec<_> =
        flight.parts.iter().map(|part| json!({ "part": part.name, "bytes": part.bytes })).collect();
    json!({ "parts": parts, "bytes": flight.bytes(), "quic_bytes": flight.quic_bytes() })
}

fn text(value: &Value) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "certificates");
    out.push_str(&table_of(
        &["subject", "key", "signature", "bytes", "sent"],
        value["certificates"].as_array(),
        &["subject", "key", "signature", "bytes", "sent"],
    ));
    for (title, name) in [
        ("server's first flight, TLS 1.3 with X25519MLKEM768", "server_flight"),
        ("client's answer with a certificate from such a chain", "client_flight"),
    ] {
        let flight = &value[name];
        let _ = writeln!(out, "\n{title}: {} bytes", flight["bytes"]);
        out.push_str(&table_of(&["part", "bytes"], flight["parts"].as_array(), &["part", "bytes"]));
    }
    let _ = writeln!(
        out,
        "\nhandshakes (ClientHello {} bytes; round trips beyond the usual one)",
        value["client_hello_bytes"]
    );
    let head = [
        "chain",
        "handshake",
        "server",
        "client",
        "TCP +RTT",
        "client +RTT",
        "QUIC",
        "QUIC +RTT",
        "(3 x 1200)",
    ];
    let mut rows = handshake_rows("this one", &value["handshakes"]);
    for other in value["beside"].as_array().into_iter().flatten() {
        rows.extend(handshake_rows(
            other["chain"].as_str().unwrap_or_default(),
            &other["handshakes"],
        ));
    }
    out.push_str(&table(&head, rows));
    let first = &value["handshakes"][0];
    let _ = writeln!(
        out,
        "limits: TCP initial window {} (RFC 6928); QUIC {} here and {} at least (RFC 9000, 8.1)",
        first["initial_window"], first["quic_limit"], first["quic_limit_1200"]
    );
    out.push_str("\nclient certificate in a header\n");
    let mut rows = Vec::new();
    for row in value["headers"].as_array().into_iter().flatten() {
        let refused: Vec<_> = row["read_by"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|limit| limit["fits"] == false)
            .filter_map(|limit| limit["server"].as_str())
            .collect();
        rows.push(vec![
            row["encoding"].as_str().unwrap_or_default().to_owned(),
            row["bytes"].to_string(),
            if refused.is_empty() { "-".to_owned() } else { refused.join(", ") },
        ]);
    }
    out.push_str(&table(&["written by", "bytes", "too long for the defaults of"], rows));
    out
}

fn handshake_rows(chain: &str, handshakes: &Value) -> Vec<Vec<String>> {
    let row = |found: &Value| {
        let number = |name: &str| found[name].to_string();
        vec![
            chain.to_owned(),
            found["handshake"].as_str().unwrap_or_default().to_owned(),
            number("server_bytes"),
            number("client_bytes"),
            number("extra_tcp_round_trips"),
            number("extra_tcp_round_trips_client"),
            number("quic_bytes"),
            number("extra_quic_round_trips"),
            number("extra_quic_round_trips_1200"),
        ]
    };
    handshakes.as_array().into_iter().flatten().map(row).collect()
}

fn table_of(head: &[&str], rows: Option<&Vec<Value>>, members: &[&str]) -> String {
    let cell = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        other => other.to_string(),
    };
    let line = |row: &Value| members.iter().map(|name| cell(&row[*name])).collect();
    let rows: Vec<Vec<String>> = rows.into_iter().flatten().map(line).collect();
    table(head, rows)
}
