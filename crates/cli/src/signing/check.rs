//! Checks a signer's certificate before anything is signed: verifiers would refuse the signatures later, when nobody
//! can repair them.

use outlast_pki::certificate::Certificate;
use outlast_pki::path::check_code_signing_leaf;
use outlast_pki::templates::CODE_SIGNING;
use outlast_pki::time::rfc3339;
use outlast_pki::validate::{Material, Options, Rule, validate};

use super::SigningIdentity;
use crate::evidence::{Check, Evidence};
use crate::failure::{Failure, REFUSED};
use crate::output;

/// Refuses a certificate that has expired, is not valid yet, is not for code signing, is revoked, or whose chain is
/// not valid; warns if its status is not known and need not be. `now` is in seconds since 1970. CRLs and OCSP
/// responses are fetched from the URLs in the certificates and added to `evidence`.
pub(crate) async fn before_signing(
    identity: &SigningIdentity,
    check: Check,
    evidence: &mut Evidence,
    now: i64,
) -> Result<(), Failure> {
    let certificate = identity.certificate();
    of_leaf(certificate, now)?;
    let subject = certificate.subject();
    let authorities = identity.authorities();
    let (roots, between) = split(authorities);
    if roots.is_empty() {
        if certificate.issuer() != subject {
            output::warning(&format!(
                "no CA's certificate comes with that of \"{subject}\": unless a root issued it, verifiers need those \
                 in between (outlast verify --certificates)"
            ));
        }
        return match check {
            Check::Off => Ok(()),
            Check::IfAvailable => {
                output::warning(&format!(
                    "whether \"{subject}\" is revoked is not known: no certificate of its issuer is there"
                ));
                Ok(())
            }
            Check::Required => Err(refused(format!(
                "whether \"{subject}\" is revoked is not known: no certificate of its issuer is there"
            ))
            .hint("put the CAs' certificates behind the signer's in the --certificate file")),
        };
    }
    // What is to be embedded is fetched in any case.
    if check != Check::Off || evidence.keeps_all {
        evidence.fetch_all(certificate, &between, &roots, now).await;
    }
    let material = Material {
        roots: &roots,
        intermediates: &between,
        crls: &evidence.crls,
        ocsp: &evidence.ocsp,
        ..Material::default()
    };
    let options =
        Options { purposes: &[CODE_SIGNING], revocation: check.rule(), ..Options::at(now) };
    let validated = validate(certificate, &material, &options).map_err(|refusal| {
        let failure = refused(refusal.to_string());
        match refusal.rule {
            Rule::Revoked { .. } => {
                failure.hint("get a new certificate: outlast cert request makes the request")
            }
            Rule::RevocationUnknown(_) => failure.hint(
                "start the CA's server, or sign without its answer: --revocation if-available",
            ),
            _ => failure.hint("outlast cert verify FILE --purpose code shows the whole path"),
        }
    })?;
    if !validated.undetermined.is_empty() {
        let unknown: Vec<_> = validated
            .undetermined
            .iter()
            .map(|(one, why)| format!("\"{}\" ({why})", one.subject()))
            .collect();
        output::warning(&format!("not known to be revoked or not: {}", unknown.join(", ")));
    }
    Ok(())
}

fn of_leaf(certificate: &Certificate, now: i64) -> Result<(), Failure> {
    let subject = certificate.subject();
    let (begin, end) = (certificate.not_before(), certificate.not_after());
    if now > end {
        let end = rfc3339(end);
        return Err(refused(format!("the certificate of \"{subject}\" expired on {end}"))
            .hint("get a new one for the same key: outlast cert request makes the request"));
    }
    if now < begin {
        let begin = rfc3339(begin);
        return Err(refused(format!(
            "the certificate of \"{subject}\" is not valid before {begin}"
        ))
        .hint("check this machine's clock, or sign later"));
    }
    check_code_signing_leaf(certificate).map_err(|error| {
        refused(format!("\"{subject}\": {error}"))
            .hint("issue one from the template CodeSigningCertificate/V1")
    })
}

/// The certificate is refused, and nothing is signed.
fn refused(reason: String) -> Failure {
    Failure::new(format!("nothing is signed: {reason}")).code(REFUSED)
}

/// Roots, and the CAs between. Without a self-signed certificate the last one stands for the root: nothing above it
/// is known.
fn split(authorities: &[Certificate]) -> (Vec<Certificate>, Vec<Certificate>) {
    let (mut roots, mut between): (Vec<_>, Vec<_>) =
        authorities.iter().cloned().partition(|found| found.issuer() == found.subject());
    if roots.is_empty() {
        roots.extend(between.pop());
    }
    (roots, between)
}
