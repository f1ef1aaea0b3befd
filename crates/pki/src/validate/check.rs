//! Checks one path as a whole: RFC 5280, section 6.1.2 to 6.1.5. The search that found it has checked names and
//! signatures.

use const_oid::ObjectIdentifier;
use const_oid::db::rfc5280::ANY_EXTENDED_KEY_USAGE;

use super::facts::Facts;
use super::policy::Policies;
use super::pool::Pool;
use super::rules::{may_issue, validity};
use super::{Options, Revocation, Rule, Standing, constraints};

/// Results for a valid path.
#[derive(Default)]
pub struct Holds {
    /// Policies under which it is valid.
    pub policies: Vec<ObjectIdentifier>,
    /// Certificates whose revocation status is unknown, leaf first, and why.
    pub undetermined: Vec<(usize, String)>,
    /// What is known of each certificate below the trust anchor, leaf first.
    pub standings: Vec<Standing>,
}

/// Refuses a revoked certificate, given by its position on a path; otherwise says what is known of it. The last argument holds the CRL signers whose own path is being built.
pub type Status = fn(&Pool<'_>, &Options<'_>, &[usize], usize, &[usize]) -> Result<Standing, Rule>;

/// Checks `path`, from the leaf to the trust anchor. An error names the certificate that fails.
pub fn path(
    pool: &Pool<'_>,
    options: &Options<'_>,
    path: &[usize],
    status: Status,
    busy: &[usize],
) -> Result<Holds, (usize, Rule)> {
    let Some((anchor, below)) = path.split_last() else {
        return Ok(Holds::default());
    };
    let trusted = pool.facts(*anchor).map_err(|rule| (*anchor, rule))?;
    purposes(trusted, options).map_err(|rule| (*anchor, rule))?;
    let mut policies = Policies::new(below.len(), options);
    let mut above: Vec<_> = trusted.constraints.iter().collect();
    let mut path_len = trusted.path_len().unwrap_or(usize::MAX).min(below.len());
    for (place, index) in below.iter().enumerate().rev() {
        let (index, last) = (*index, place == 0);
        let fail = |rule| (index, rule);
        let facts = pool.facts(index).map_err(fail)?;
        let self_issued = pool.is_self_issued(index);
        validity(pool.certificates[index], options.at).map_err(fail)?;
        if let Some(oid) = facts.unknown_critical {
            return Err(fail(Rule::CriticalExtension(oid)));
        }
        // RFC 5280, section 6.1.3 (b), (c): self-issued CA certificates, for a change of key, are exempt from their
        // own constraints.
        if last || !self_issued {
            let mut left = pool.comparisons_left.get();
            let outcome =
                constraints::check(pool.certificates[index], &facts.names, &above, &mut left);
            pool.comparisons_left.set(left);
            outcome.map_err(fail)?;
        }
        policies.process(facts, last, self_issued).map_err(fail)?;
        purposes(facts, options).map_err(fail)?;
        if last {
            continue;
        }
        policies.prepare(facts, self_issued).map_err(fail)?;
        above.extend(&facts.constraints);
        may_issue(facts).map_err(fail)?;
        if !self_issued {
            path_len = path_len.checked_sub(1).ok_or(fail(Rule::PathLength))?;
        }
        path_len = path_len.min(facts.path_len().unwrap_or(usize::MAX));
    }
    let Some(leaf) = below.first().copied() else { return Ok(Holds::default()) };
    let facts = pool.facts(leaf).map_err(|rule| (leaf, rule))?;
    check_leaf(facts, options).map_err(|rule| (leaf, rule))?;
    let policies = policies.finish(facts, options.policies).map_err(|rule| (leaf, rule))?;
    let (mut undetermined, mut standings) = (Vec::new(), Vec::new());
    if options.revocation != Revocation::Off {
        for (place, index) in below.iter().enumerate().rev() {
            let standing =
                status(pool, options, path, place, busy).map_err(|rule| (*index, rule))?;
            if let Standing::Unknown(why) = &standing {
                undetermined.push((*index, why.clone()));
            }
            standings.push(standing);
        }
    }
    undetermined.reverse();
    standings.reverse();
    Ok(Holds { policies, undetermined, standings })
}

/// Every requested purpose must be allowed wherever purposes are restricted: RFC 5280 says so for the leaf, and
/// verifiers agree to treat a CA's extended key usage in the same way.
fn purposes(facts: &Facts, options: &Options<'_>) -> Result<(), Rule> {
    let Some(allowed) = &facts.purposes else { return Ok(()) };
    if allowed.contains(&ANY_EXTENDED_KEY_USAGE) {
        return Ok(());
    }
    match options.purposes.iter().find(|wanted| !allowed.contains(wanted)) {
        Some(missing) => Err(Rule::Purpose(
            crate::oid_name(*missing).map_or_else(|| missing.to_string(), str::to_owned),
        )),
        None => Ok(()),
    }
}

fn check_leaf(facts: &Facts, options: &Options<'_>) -> Result<(), Rule> {
    if let (Some(wanted), Some(usage)) = (options.key_usage, &facts.key_usage)
        && !usage.0.contains(wanted)
    {
        return Err(Rule::KeyUsage("what it is used for"));
    }
    match &options.name {
        Some(name) if !name.is_among(&facts.names) => Err(Rule::Identity(name.to_string())),
        _ => Ok(()),
    }
}
