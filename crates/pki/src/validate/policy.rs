//! Certificate policies: RFC 5280, section 6.1, with the graph of RFC 9618 instead of the tree, which a chain can
//! make grow exponentially.

use std::collections::{BTreeMap, BTreeSet};

use const_oid::ObjectIdentifier;
use const_oid::db::rfc5280::ANY_POLICY;

use super::facts::Facts;
use super::{Options, Rule};

/// A policy at one depth.
struct Node {
    /// Its names in the next certificate.
    expected: BTreeSet<ObjectIdentifier>,
    /// Policies at the depth above.
    parents: BTreeSet<ObjectIdentifier>,
}

type Level = BTreeMap<ObjectIdentifier, Node>;

/// The state of policy processing along a path of `n` certificates.
pub struct Policies {
    /// One level for each depth from 0; if the last one has no nodes, the graph is NULL.
    levels: Vec<Level>,
    explicit_policy: usize,
    policy_mapping: usize,
    inhibit_any_policy: usize,
}

impl Policies {
    /// RFC 5280, section 6.1.2 (a), (d), (e), (f).
    pub fn new(n: usize, options: &Options<'_>) -> Self {
        let initial = |inhibit: bool| if inhibit { 0 } else { n + 1 };
        let any = Node { expected: BTreeSet::from([ANY_POLICY]), parents: BTreeSet::new() };
        Self {
            levels: vec![Level::from([(ANY_POLICY, any)])],
            explicit_policy: initial(options.explicit_policy),
            policy_mapping: initial(options.inhibit_policy_mapping),
            inhibit_any_policy: initial(options.inhibit_any_policy),
        }
    }

    fn is_null(&self) -> bool {
        self.levels.last().is_none_or(Level::is_empty)
    }

    /// RFC 5280, section 6.1.3 (d) to (f); RFC 9618, section 5.3.
    pub fn process(&mut self, facts: &Facts, last: bool, self_issued: bool) -> Result<(), Rule> {
        let mut level = Level::new();
        if let (Some(policies), Some(above)) = (&facts.policies, self.levels.last()) {
            for policy in policies.iter().filter(|policy| **policy != ANY_POLICY) {
                let mut parents: BTreeSet<_> = above
                    .iter()
                    .filter(|(_, node)| node.expected.contains(policy))
                    .map(|(name, _)| *name)
                    .collect();
                if parents.is_empty() && above.contains_key(&ANY_POLICY) {
                    parents.insert(ANY_POLICY);
                }
                if !parents.is_empty() {
                    level.insert(*policy, Node { expected: BTreeSet::from([*policy]), parents });
                }
            }
            let any_allowed = self.inhibit_any_policy > 0 || (!last && self_issued);
            if any_allowed && policies.contains(&ANY_POLICY) {
                let named: BTreeSet<_> = level.keys().copied().collect();
                for (parent, node) in above {
                    for expected in node.expected.difference(&named) {
                        level
                            .entry(*expected)
                            .or_insert_with(|| Node {
                                expected: BTreeSet::from([*expected]),
                                parents: BTreeSet::new(),
                            })
                            .parents
                            .insert(*parent);
                    }
                }
            }
        }
        self.levels.push(level);
        if self.explicit_policy == 0 && self.is_null() { Err(Rule::Policy) } else { Ok(()) }
    }

    /// RFC 5280, section 6.1.4 (a), (b), (h), (i), (j), for a certificate that is not the last.
    pub fn prepare(&mut self, facts: &Facts, self_issued: bool) -> Result<(), Rule> {
        let any = |(from, to): &(ObjectIdentifier, ObjectIdentifier)| {
            *from == ANY_POLICY || *to == ANY_POLICY
        };
        if facts.mappings.iter().any(any) {
            return Err(Rule::PolicyMapping);
        }
        let mut mapped: BTreeMap<ObjectIdentifier, BTreeSet<ObjectIdentifier>> = BTreeMap::new();
        for (from, to) in &facts.mappings {
            mapped.entry(*from).or_default().insert(*to);
        }
        if let Some(level) = self.levels.last_mut() {
            for (from, to) in mapped {
                if self.policy_mapping == 0 {
                    level.remove(&from);
                } else if let Some(node) = level.get_mut(&from) {
                    node.expected = to;
                } else if level.contains_key(&ANY_POLICY) {
                    // RFC 9618, section 5.4: below the anyPolicy of the depth above.
                    let parents = BTreeSet::from([ANY_POLICY]);
                    level.insert(from, Node { expected: to, parents });
                }
            }
        }
        if !self_issued {
            for counter in
                [&mut self.explicit_policy, &mut self.policy_mapping, &mut self.inhibit_any_policy]
            {
                *counter = counter.saturating_sub(1);
            }
        }
        lower(&mut self.explicit_policy, facts.require_explicit_policy);
        lower(&mut self.policy_mapping, facts.inhibit_policy_mapping);
        lower(&mut self.inhibit_any_policy, facts.inhibit_any_policy);
        Ok(())
    }

    /// RFC 5280, section 6.1.5 (a), (b), (g): the policies under which the path is valid.
    pub fn finish(
        mut self,
        leaf: &Facts,
        acceptable: Option<&[ObjectIdentifier]>,
    ) -> Result<Vec<ObjectIdentifier>, Rule> {
        self.explicit_policy = self.explicit_policy.saturating_sub(1);
        if leaf.require_explicit_policy == Some(0) {
            self.explicit_policy = 0;
        }
        let authority = self.authority_constrained();
        let user: Vec<_> = match acceptable.filter(|list| !list.contains(&ANY_POLICY)) {
            None => authority.into_iter().collect(),
            Some(list) if authority.contains(&ANY_POLICY) => list.to_vec(),
            Some(list) => list.iter().filter(|one| authority.contains(*one)).copied().collect(),
        };
        if self.explicit_policy == 0 && user.is_empty() { Err(Rule::Policy) } else { Ok(user) }
    }

    /// RFC 9618, section 5.6: the names in the trust anchor's domain of the policies that the leaf is valid under.
    fn authority_constrained(&self) -> BTreeSet<ObjectIdentifier> {
        let mut out = BTreeSet::new();
        let Some(leaf_level) = self.levels.last() else { return out };
        if leaf_level.contains_key(&ANY_POLICY) {
            out.insert(ANY_POLICY);
        }
        // From the leaf upwards, keeps only policies with a descendant.
        let mut alive: BTreeSet<_> = leaf_level.keys().copied().collect();
        for level in self.levels.iter().rev() {
            let mut above = BTreeSet::new();
            for (policy, node) in level.iter().filter(|(policy, _)| alive.contains(*policy)) {
                if *policy != ANY_POLICY && node.parents.contains(&ANY_POLICY) {
                    out.insert(*policy);
                }
                above.extend(node.parents.iter().copied());
            }
            alive = above;
        }
        out
    }
}

fn lower(counter: &mut usize, to: Option<u32>) {
    if let Some(to) = to.and_then(|to| usize::try_from(to).ok()) {
        *counter = (*counter).min(to);
    }
}
