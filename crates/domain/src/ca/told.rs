//! What Private CA tells about what authorities have done, or could not do.

use crate::Fault;
use crate::arn::{Arn, Scope};
use crate::events::{self, Fact, Kind, Told};
use crate::work::Work;

/// Tells what an authority has done. `also` are resources beside it.
pub(super) fn tell_success(
    work: &mut Work<'_>,
    kind: &'static Kind,
    authority: &str,
    also: Option<String>,
) -> Result<(), Fault> {
    tell_result(work, kind, authority, also, [(Fact::Result, "success".into())])
}

/// Tells what an authority could not do, and AWS's reason, if there is one.
pub(super) fn tell_failure(
    work: &mut Work<'_>,
    kind: &'static Kind,
    authority: &str,
    also: Option<String>,
    reason: Option<&str>,
) -> Result<(), Fault> {
    let facts = [(Fact::Result, "failure".into())].into_iter();
    let facts = facts.chain(reason.map(|reason| (Fact::Reason, reason.into())));
    tell_result(work, kind, authority, also, facts)
}

fn tell_result(
    work: &mut Work<'_>,
    kind: &'static Kind,
    authority: &str,
    also: Option<String>,
    facts: impl IntoIterator<Item = (Fact, Told)>,
) -> Result<(), Fault> {
    // Issuing is frequent: nothing is parsed for nobody.
    if !events::is_wanted(work, &[kind]) {
        return Ok(());
    }
    let arn = Arn::parse(authority).ok_or_else(|| Fault::Damaged(authority.to_owned()))?;
    let scope = Scope { account: arn.account().to_owned(), region: arn.region().to_owned() };
    let resources = [authority.to_owned()].into_iter().chain(also).collect();
    events::tell(work, kind, &scope, resources, facts)
}
