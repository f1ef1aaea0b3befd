//! `outlast store limits`: the quotas of accounts, and their use.

use outlast_domain::quotas::{self, QUOTAS, Quota, Quotas, Used};
use serde_json::{Value, json};

use crate::data::StoreArguments;
use crate::failure::Failure;
use crate::limits_options;
use crate::output::Output;
use crate::tables::Table;

/// Longest ARN of a private CA, which is shown whole, in characters.
const MAX_ARN: usize = 128;

/// Runs the command.
pub(super) fn run(arguments: &StoreArguments, output: Output) -> Result<(), Failure> {
    let location = arguments.location()?;
    location.require_initialised()?;
    let limits = limits_options::choose(&arguments.settings()?.limits)?;
    let store = location.open_read_only()?;
    let used = quotas::used(store.as_ref()).map_err(crate::data::store_failure)?;
    let all: Vec<Value> = QUOTAS.iter().map(|quota| shown(quota, &limits, &used)).collect();
    output.result(&describe(&limits, &used), &json!({ "limits": all }));
    Ok(())
}

fn shown(quota: &Quota, limits: &Quotas, used: &[Used]) -> Value {
    let used: Vec<_> = used.iter().filter(|used| used.limit == quota.name).collect();
    json!({
        "name": quota.name,
        "limit": limits.get(quota),
        "default": quota.default,
        "what": format!("{} {}", quota.what, quota.of),
        "awsQuota": Some(quota.aws).filter(|name| !name.is_empty()),
        // Counts per key are not added up.
        "used": (!quota.kind.is_empty()).then_some(used),
    })
}

fn describe(limits: &Quotas, used: &[Used]) -> String {
    let mut table = Table::new(&["limit", "at most", "what"], &[1]);
    for quota in QUOTAS {
        let what = format!("{} {}", quota.what, quota.of);
        table.row(vec![quota.name.to_owned(), limits.get(quota).to_string(), what]);
    }
    let mut text = table.render(0);
    let mut table = Table::new(&["limit", "used", "at most", "by"], &[1, 2]).longest(MAX_ARN);
    for used in used {
        let quota = QUOTAS.iter().find(|quota| quota.name == used.limit);
        let most = quota.map(|quota| limits.get(quota).to_string()).unwrap_or_default();
        table.row(vec![used.limit.to_owned(), used.used.to_string(), most, used.of.clone()]);
    }
    if !table.is_empty() {
        text = format!("{text}\n{}", table.render(0));
    }
    text
}
