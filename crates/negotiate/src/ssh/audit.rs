//! Policy files of ssh-audit (`ssh-audit -P FILE`), from the SSH part of a policy.

use super::decide::with_certificate;
use super::rules::SshRules;

/// Marker of a server with strict key exchange, which every server here sends.
const STRICT: &str = "kex-strict-s-v00@openssh.com";

/// The policy as a file of ssh-audit.
///
/// It demands strict key exchange, and nothing beyond the policy: what a listener sends depends on its host keys and,
/// in the mode `prefer`, on the client's offer, so that the file allows subsets of the policy's lists.
pub fn policy_file(rules: &SshRules) -> String {
    let lists = rules.lists();
    let mut methods = lists.key_exchanges.clone();
    methods.push(STRICT);
    // A host key's algorithm allows its certificates, too.
    let certificates = lists.host_keys.iter().map(|name| with_certificate(name));
    let host_keys: Vec<_> =
        lists.host_keys.iter().map(|name| (*name).to_owned()).chain(certificates).collect();
    let (policy, mode) = (rules.policy.name, rules.mode);
    format!(
        "# Made by `outlast policy ssh-audit {policy} --mode {mode}`.\n\
         # Algorithms that are not served here are left out.\n\
         \n\
         name = \"Outlast {policy} in the mode {mode}\"\n\
         version = 1\n\
         \n\
         # A server without a key of each kind offers fewer host key algorithms. To a client that offers a post-quantum\n\
         # key exchange method, a server in the mode prefer offers no classical one.\n\
         allow_algorithm_subset_and_reordering = true\n\
         allow_larger_keys = true\n\
         \n\
         compressions = none\n\
         host keys = {}\n\
         key exchanges = {}\n\
         ciphers = {}\n\
         macs = {}\n",
        host_keys.join(", "),
        methods.join(", "),
        lists.ciphers.join(", "),
        lists.macs.join(", "),
    )
}
