//! Private CA under load: issuing with few and with many certificates, and validating a chain.

use std::sync::Arc;
use std::time::{Duration, Instant};

use outlast_api::ops::acm_pca::{
    create_certificate_authority, get_certificate, get_certificate_authority_certificate,
    get_certificate_authority_csr, import_certificate_authority_certificate, issue_certificate,
    revoke_certificate, update_certificate_authority,
};
use outlast_api::wire::Blob;
use outlast_crypto::keys::KeySpec;
use outlast_crypto::signatures::{ML_DSA_65, Message};
use outlast_harness::server::{Server, Session, cpu_time, status_kib};
use outlast_harness::statistics::quantile_of;
use outlast_harness::time::thread_cpu;
use outlast_net::policy::Policy;
use outlast_net::server::system_clock;
use outlast_pki::certificate::Certificate;
use outlast_pki::extensions::SERVER_AUTH;
use outlast_pki::validate::{Material, Options, validate};
use outlast_pki::{csr, name};
use serde_json::{Value, json};

use crate::Figure;
use crate::statistics::{quantile, ratio};

const CLIENTS: u32 = 16;
const ROOT: &str = "arn:aws:acm-pca:::template/RootCACertificate/V1";
const SUBORDINATE: &str = "arn:aws:acm-pca:::template/SubordinateCACertificate_PathLen0/V1";
const LEAF: &str = "arn:aws:acm-pca:::template/EndEntityServerAuthCertificate/V1";
/// Requests on one connection before the other's turn.
const BLOCK: u32 = 20;

pub(crate) fn measure(quick: bool) -> Result<Vec<Figure>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let folder = crate::process::folder()?;
        let server = folder.serve()?;
        let authority = Hierarchy::new(&server).await?;
        let mut figures = issuing(&server, &authority, quick).await?;
        figures.push(validation(&server, &authority, quick).await?);
        figures.extend(many(&server, &authority, quick).await?);
        Ok(figures)
    })
}

/// A root CA and a subordinate CA with ML-DSA-65 keys; the subordinate has CRLs and OCSP enabled.
struct Hierarchy {
    root_pem: String,
    sub: String,
    sub_pem: String,
}

impl Hierarchy {
    async fn new(server: &Server) -> Result<Self, String> {
        let mut session = server.session(&Policy::default()).await?;
        let root = create(&mut session, "ROOT", "bench root").await?;
        let root_pem = certify(&mut session, &root, &root, ROOT, None).await?;
        let sub = create(&mut session, "SUBORDINATE", "bench sub").await?;
        let sub_pem = certify(&mut session, &root, &sub, SUBORDINATE, Some(&root_pem)).await?;
        let update = json!({
            "CertificateAuthorityArn": sub,
            "RevocationConfiguration": {
                "CrlConfiguration": { "Enabled": true, "ExpirationInDays": 7 },
                "OcspConfiguration": { "Enabled": true },
            },
        });
        session.call::<update_certificate_authority::UpdateCertificateAuthority>(update).await?;
        Ok(Self { root_pem, sub, sub_pem })
    }

    fn request(&self, csr: &[u8]) -> Result<Value, String> {
        Ok(json!({
            "CertificateAuthorityArn": self.sub,
            "Csr": blob(csr)?,
            "SigningAlgorithm": "ML_DSA_65",
            "TemplateArn": LEAF,
            "Validity": { "Type": "DAYS", "Value": 90 },
        }))
    }
}

async fn create(session: &mut Session, kind: &str, name: &str) -> Result<String, String> {
    let new = json!({
        "CertificateAuthorityType": kind,
        "CertificateAuthorityConfiguration": {
            "KeyAlgorithm": "ML_DSA_65",
            "SigningAlgorithm": "ML_DSA_65",
            "Subject": { "CommonName": name },
        },
    });
    let made = session.call::<create_certificate_authority::CreateCertificateAuthority>(new);
    Ok(made.await?.certificate_authority_arn)
}

/// Has `issuer` sign the authority's certificate and imports it.
async fn certify(
    session: &mut Session,
    issuer: &str,
    authority: &str,
    template: &str,
    chain: Option<&str>,
) -> Result<String, String> {
    let arn = json!({ "CertificateAuthorityArn": authority });
    let csr = session
        .call::<get_certificate_authority_csr::GetCertificateAuthorityCsr>(arn.clone())
        .await?
        .csr;
    let issued = session
        .call::<issue_certificate::IssueCertificate>(json!({
            "CertificateAuthorityArn": issuer,
            "Csr": blob(csr.as_bytes())?,
            "SigningAlgorithm": "ML_DSA_65",
            "TemplateArn": template,
            "Validity": { "Type": "YEARS", "Value": if chain.is_none() { 10 } else { 5 } },
        }))
        .await?;
    let got = session
        .call::<get_certificate::GetCertificate>(json!({
            "CertificateAuthorityArn": issuer,
            "CertificateArn": issued.certificate_arn,
        }))
        .await?;
    let certificate = got.certificate;
    let mut import = json!({
        "CertificateAuthorityArn": authority,
        "Certificate": blob(certificate.as_bytes())?,
    });
    if let Some(chain) = chain {
        import["CertificateChain"] = blob(chain.as_bytes())?;
    }
    session
        .call::<import_certificate_authority_certificate::ImportCertificateAuthorityCertificate>(
            import,
        )
        .await?;
    let own = session
        .call::<get_certificate_authority_certificate::GetCertificateAuthorityCertificate>(arn)
        .await?;
    Ok(own.certificate)
}

fn blob(bytes: &[u8]) -> Result<Value, String> {
    serde_json::to_value(Blob(bytes.to_vec())).map_err(|error| error.to_string())
}

/// A certificate request with a new key of this type.
pub(crate) fn new_request(spec: &str) -> Result<Vec<u8>, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let spec = KeySpec::by_name(spec).ok_or("no such key type")?;
    let stored = spec.generate().map_err(|error| text(&error))?;
    let key = spec.load(&stored).map_err(|error| text(&error))?;
    let algorithm =
        spec.signing.iter().find(|row| row.oid.is_some()).ok_or("it signs no requests")?;
    let public_key = key.public_key().ok_or("no public key")?;
    let subject = name::common_name("leaf.bench.example").map_err(|error| text(&error))?;
    let request =
        csr::Unsigned::new(subject, public_key, Vec::new()).map_err(|error| text(&error))?;
    let signature =
        key.sign(algorithm, Message::Raw(&request.to_be_signed)).map_err(|error| text(&error))?;
    request.assemble(algorithm, &signature).map_err(|error| text(&error))
}

/// IssueCertificate with 16 clients, in turns with plain AWS-LC signatures over as many bytes.
async fn issuing(
    server: &Server,
    authority: &Hierarchy,
    quick: bool,
) -> Result<Vec<Figure>, String> {
    let (rounds, length) =
        if quick { (2, Duration::from_secs(1)) } else { (8, Duration::from_secs(3)) };
    let requests = [
        Arc::new(authority.request(&new_request("ML_DSA_65")?)?),
        Arc::new(authority.request(&new_request("RSA_2048")?)?),
    ];
    let mut rates: [Vec<f64>; 2] = Default::default();
    let mut costs: [Vec<f64>; 2] = Default::default();
    let (mut bare_rates, mut bare_costs) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        for (slot, request) in requests.iter().enumerate() {
            let before = cpu_time(server.child.id())?;
            let count = issue_for(server, request, length).await?;
            let used = cpu_time(server.child.id())?.saturating_sub(before);
            rates[slot].push(f64::from(count) / length.as_secs_f64());
            costs[slot].push(used.as_secs_f64() / f64::from(count));
        }
        let (rate, cost) = bare_signing(length)?;
        bare_rates.push(rate);
        bare_costs.push(cost);
    }
    let [rate, rate_rsa] = rates.map(|rates| quantile_of(&rates, 0.5));
    let [cost, cost_rsa] = costs.map(|costs| quantile_of(&costs, 0.5));
    let (bare_rate, bare_cost) = (quantile_of(&bare_rates, 0.5), quantile_of(&bare_costs, 0.5));
    let share = bare_cost / cost;
    let share_rsa = bare_cost / cost_rsa;
    Ok(vec![
        Figure {
            name: "IssueCertificate ML-DSA-65, 16 clients, durable: certificates for each server CPU second / bare AWS-LC signatures",
            value: format!("{share:.3}"),
            limit: ">= 0.6",
            met: share >= 0.6,
            note: format!(
                "{:.0} µs against {:.0} µs of signing; verifying the request's own ML-DSA-65 signature is part of \
                 it; with RSA-2048 requests {share_rsa:.3}",
                cost * 1e6,
                bare_cost * 1e6
            ),
        },
        Figure {
            name: "the same, certificates a second",
            value: format!("{rate:.0}"),
            limit: "-",
            met: true,
            note: format!(
                "the clients share the two cores; RSA-2048 requests {rate_rsa:.0}; two threads of bare signing \
                 alone {bare_rate:.0}"
            ),
        },
    ])
}

async fn issue_for(server: &Server, request: &Arc<Value>, length: Duration) -> Result<u32, String> {
    let mut sessions = Vec::new();
    for _ in 0..CLIENTS {
        sessions.push(server.session(&Policy::default()).await?);
    }
    let end = Instant::now() + length;
    let mut tasks = Vec::new();
    for mut session in sessions {
        let request = request.clone();
        tasks.push(tokio::spawn(async move {
            let mut count = 0_u32;
            while Instant::now() < end {
                session.call::<issue_certificate::IssueCertificate>((*request).clone()).await?;
                count += 1;
            }
            Ok::<_, String>(count)
        }));
    }
    let mut total = 0;
    for task in tasks {
        total += task.await.map_err(|error| error.to_string())??;
    }
    Ok(total)
}

/// Signatures per second of two threads, and CPU seconds per signature.
fn bare_signing(length: Duration) -> Result<(f64, f64), String> {
    // As long as the to-be-signed part of a leaf certificate.
    let message = vec![7_u8; 2300];
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let message = message.clone();
            std::thread::spawn(move || -> Result<(f64, f64), String> {
                let spec = KeySpec::by_name("ML_DSA_65").ok_or("no ML_DSA_65")?;
                let stored = spec.generate().map_err(|error| error.to_string())?;
                let key = spec.load(&stored).map_err(|error| error.to_string())?;
                let (begun, cpu) = (Instant::now(), thread_cpu());
                let mut count = 0.0;
                while begun.elapsed() < length {
                    key.sign(&ML_DSA_65, Message::Raw(&message))
                        .map_err(|error| error.to_string())?;
                    count += 1.0;
                }
                Ok((count, thread_cpu().saturating_sub(cpu).as_secs_f64()))
            })
        })
        .collect();
    let (mut count, mut cpu) = (0.0, 0.0);
    for thread in threads {
        let (signed, used) = thread.join().map_err(|_| "a thread died")??;
        count += signed;
        cpu += used;
    }
    Ok((count / length.as_secs_f64(), cpu / count))
}

/// Issues a certificate and fetches it.
async fn issue_one(
    session: &mut Session,
    authority: &Hierarchy,
    request: &Value,
) -> Result<Certificate, String> {
    let issued = session.call::<issue_certificate::IssueCertificate>(request.clone()).await?;
    let got = session
        .call::<get_certificate::GetCertificate>(json!({
            "CertificateAuthorityArn": authority.sub,
            "CertificateArn": issued.certificate_arn,
        }))
        .await?;
    parse(&got.certificate)
}

fn parse(pem: &str) -> Result<Certificate, String> {
    Certificate::parse_one(pem.as_bytes()).map_err(|error| error.to_string())
}

/// Validates leaf, subordinate and root from DER to the result, without revocation.
async fn validation(server: &Server, authority: &Hierarchy, quick: bool) -> Result<Figure, String> {
    let mut session = server.session(&Policy::default()).await?;
    let request = authority.request(&new_request("ML_DSA_65")?)?;
    let leaf = issue_one(&mut session, authority, &request).await?;
    let (root, sub) = (parse(&authority.root_pem)?, parse(&authority.sub_pem)?);
    let ders = [leaf.der().to_vec(), sub.der().to_vec(), root.der().to_vec()];
    let now = system_clock().div_euclid(1000);
    let mut times = Vec::new();
    for _ in 0..if quick { 200 } else { 3000 } {
        let begun = thread_cpu();
        let [leaf, sub, root] = [&ders[0], &ders[1], &ders[2]]
            .map(|der| Certificate::parse(der).map_err(|error| error.to_string()));
        let (leaf, sub, root) = (leaf?, [sub?], [root?]);
        let material = Material { roots: &root, intermediates: &sub, ..Material::default() };
        let options = Options { purposes: &[SERVER_AUTH], ..Options::at(now) };
        validate(&leaf, &material, &options).map_err(|refusal| refusal.to_string())?;
        times.push(thread_cpu().saturating_sub(begun));
    }
    let median = quantile(&mut times, 0.5);
    Ok(Figure {
        name: "validation of a three-certificate ML-DSA-65 chain, CPU",
        value: format!("{} µs", median.as_micros()),
        limit: "< 400 µs",
        met: median < Duration::from_micros(400),
        note: format!("from DER to the verdict; median of {}", times.len()),
    })
}

/// A CA with very many certificates and revocations: whether issuing stays as fast.
async fn many(server: &Server, authority: &Hierarchy, quick: bool) -> Result<Vec<Figure>, String> {
    let (certificates, revocations) = if quick { (4_000, 400) } else { (100_000, 10_000) };
    let small = crate::process::folder()?;
    let small_server = small.serve()?;
    let small_authority = Hierarchy::new(&small_server).await?;
    let request = new_request("RSA_2048")?;
    fill(server, authority, &request, certificates, revocations).await?;
    fill(&small_server, &small_authority, &request, 10, 1).await?;

    // Issuing, in alternating blocks.
    let mut sessions = [
        small_server.session(&Policy::default()).await?,
        server.session(&Policy::default()).await?,
    ];
    let requests = [small_authority.request(&request)?, authority.request(&request)?];
    let mut times: [Vec<Duration>; 2] = Default::default();
    for block in 0..if quick { 10_usize } else { 100 } {
        for turn in 0..2 {
            let index = (block + turn) % 2;
            let begun = Instant::now();
            for _ in 0..BLOCK {
                let issued = sessions[index]
                    .call::<issue_certificate::IssueCertificate>(requests[index].clone());
                issued.await?;
            }
            times[index].push(begun.elapsed());
        }
    }
    let [mut few, mut lots] = times;
    let growth = ratio(quantile(&mut lots, 0.5), quantile(&mut few, 0.5));

    let resident = status_kib(server.child.id(), "VmRSS")? / 1024;
    Ok(vec![
        Figure {
            name: "IssueCertificate with very many certificates in the CA / with 10",
            value: format!("{growth:.3}"),
            limit: "<= 1.2",
            met: growth <= 1.2,
            note: format!(
                "{certificates} certificates and {revocations} revocations against 10 and 1; alternating blocks of {BLOCK}"
            ),
        },
        Figure {
            name: "resident memory with very many certificates, after the load",
            value: format!("{resident} MiB"),
            limit: "-",
            met: true,
            note: format!("{certificates} certificates, {revocations} of them revoked; VmRSS"),
        },
    ])
}

/// Issues and revokes the given numbers of certificates.
async fn fill(
    server: &Server,
    authority: &Hierarchy,
    csr: &[u8],
    certificates: u32,
    revocations: u32,
) -> Result<(), String> {
    let clients = CLIENTS.min(certificates);
    let mut tasks = Vec::new();
    for _ in 0..clients {
        let mut session = server.session(&Policy::default()).await?;
        let request = authority.request(csr)?;
        let arn = authority.sub.clone();
        let (issue, revoke) = (certificates / clients, revocations.div_ceil(clients));
        tasks.push(tokio::spawn(async move {
            for number in 0..issue {
                let issued =
                    session.call::<issue_certificate::IssueCertificate>(request.clone()).await?;
                if number < revoke {
                    let serial = issued.certificate_arn.rsplit('/').next().unwrap_or_default();
                    let input = json!({
                        "CertificateAuthorityArn": arn,
                        "CertificateSerial": serial,
                        "RevocationReason": "SUPERSEDED",
                    });
                    session.call::<revoke_certificate::RevokeCertificate>(input).await?;
                }
            }
            Ok::<_, String>(())
        }));
    }
    for task in tasks {
        task.await.map_err(|error| error.to_string())??;
    }
    Ok(())
}
