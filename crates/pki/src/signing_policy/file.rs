//! Reads policies in TOML.

use const_oid::ObjectIdentifier;
use toml::{Table, Value};

use super::algorithms::{AnyOf, vocabulary};
use super::log;
use super::names::{NamePattern, SubjectPattern};
use super::reader::{self, Reader, Step, short};
use super::rule::{NEEDS, Phase, Policy, Rule, Scope, Timestamps, VALIDITIES, Validity};
use crate::in_toto::{self, Attested};
use crate::pattern::Pattern;
use crate::templates::CODE_SIGNING;
use crate::trusted_time::Authority;
use crate::validate::Revocation;

pub use super::reader::{FileError, MAX_VALUES};

/// Longest policy, in bytes.
pub const MAX_LEN: usize = 1 << 20;
/// Most rules.
pub const MAX_RULES: usize = 256;
/// Most time-stamping authorities that a policy can ask for together.
pub const MAX_AUTHORITIES: usize = 8;
/// Most signers that a rule can ask for together.
pub const MAX_TOGETHER: usize = 4;

const RULE: &str = "rule";
const TIMESTAMP: &str = "timestamp";

/// Keys of a policy.
const KEYS: &[&str] = &[RULE, TIMESTAMP];

/// Keys of `[timestamp]`.
const TIMESTAMP_KEYS: &[&str] =
    &["trust", "certificates", "public_keys", "policies", "algorithms", "least"];

/// Keys of a rule.
const RULE_KEYS: &[&str] = &[
    "name",
    "files",
    "trust",
    "certificates",
    "public_keys",
    "subject",
    "san",
    "eku",
    "algorithms",
    "ca_algorithms",
    "revocation",
    "validity",
    "timestamp",
    "log",
    "not_before",
    "until",
    "predicate_type",
    "builder",
    "source",
    "build_type",
];

const REVOCATIONS: &[(&str, Revocation)] = &[
    ("required", Revocation::Required),
    ("if-available", Revocation::IfPresent),
    ("off", Revocation::Off),
];

/// Names of extended key usages. Document signing: RFC 9336.
const PURPOSES: &[(&str, ObjectIdentifier)] = &[
    ("code-signing", CODE_SIGNING),
    ("document-signing", ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.36")),
];

/// Parses a policy; `name` is for people. Errors name the line.
pub fn parse(name: &str, text: &str) -> Result<Policy, FileError> {
    read(name, text).map_err(|error| error.in_text(text))
}

fn read(name: &str, text: &str) -> Result<Policy, FileError> {
    if text.len() > MAX_LEN {
        return Err(FileError::new(format!("it is longer than {MAX_LEN} bytes")));
    }
    let table: Table = text
        .parse()
        .map_err(|error: toml::de::Error| FileError::new(error.to_string().trim_end()))?;
    Reader::of(&table).known(KEYS)?;
    let no_rule = || {
        FileError::new("there is no rule in it").hint(
            "each rule is a table [[rule]] with files, and with trust, certificates or public_keys",
        )
    };
    let rules = match table.get(RULE) {
        Some(Value::Array(rules)) if !rules.is_empty() => rules,
        _ => return Err(no_rule()),
    };
    if rules.len() > MAX_RULES {
        return Err(FileError::new(format!("it has more than {MAX_RULES} rules")));
    }
    let timestamps = timestamps(&table)?;
    let mut out: Vec<Rule> = Vec::new();
    for (index, value) in rules.iter().enumerate() {
        let table = value.as_table().ok_or_else(no_rule)?;
        let mut rule = rule(index, table)?;
        rule.timestamps.clone_from(&timestamps);
        if out.iter().any(|known| known.name == rule.name) {
            let message = format!("two rules have the name \"{}\"", rule.name);
            return Err(FileError::new(message).at(of_rule(index)));
        }
        out.push(rule);
    }
    Ok(Policy { name: name.to_owned(), rules: out })
}

/// `[timestamp]`: whose timestamps count, for all rules.
fn timestamps(policy: &Table) -> Result<Timestamps, FileError> {
    let Some(value) = policy.get(TIMESTAMP) else { return Ok(Timestamps::default()) };
    let at = vec![Step::Key(TIMESTAMP.to_owned())];
    let Some(table) = value.as_table() else {
        return Err(FileError::new("timestamp is a table [timestamp]").at(at));
    };
    let reader = Reader { table, name: "[timestamp]".to_owned(), at };
    reader.known(TIMESTAMP_KEYS)?;
    let trust = reader.texts("trust")?;
    let certificates =
        reader.parsed("certificates", sha256)?.into_iter().map(Authority::Certificate);
    let keys = reader.parsed("public_keys", sha256)?.into_iter().map(Authority::PublicKey);
    let authorities: Vec<_> = certificates.chain(keys).collect();
    let policy =
        |text: &str| ObjectIdentifier::new(text).map_err(|_| "it is not an OID".to_owned());
    let named = trust.len() + authorities.len();
    let least = reader.number("least", MAX_AUTHORITIES)?.unwrap_or(1);
    if least > named.max(1) {
        return Err(reader
            .wrong("least", &format!("{least} authorities are needed, and {named} are named"))
            .hint("each entry of trust, certificates and public_keys is one authority"));
    }
    Ok(Timestamps {
        policies: reader.parsed("policies", policy)?,
        algorithms: reader.one_of("algorithms")?,
        by_phases: false,
        trust,
        authorities,
        least,
    })
}

/// The steps to a rule.
fn of_rule(index: usize) -> Vec<Step> {
    vec![Step::Key(RULE.to_owned()), Step::Element(index)]
}

fn rule(index: usize, table: &Table) -> Result<Rule, FileError> {
    let name = match table.get("name") {
        None => format!("rule {}", index + 1),
        Some(Value::String(text)) if !text.is_empty() && text.len() <= 128 => text.clone(),
        Some(_) => {
            let error = FileError::new("the name of a rule is a text of 1 to 128 bytes");
            return Err(error.at(of_rule(index)));
        }
    };
    let reader = Reader { table, name: format!("rule \"{name}\""), at: of_rule(index) };
    reader.known(RULE_KEYS)?;
    let files = reader.parsed("files", Pattern::parse)?;
    if files.is_empty() {
        return Err(reader
            .wrong("files", "it is missing")
            .hint("name files: files = [\"*.tar.gz\"]"));
    }
    let rule = Rule {
        files,
        scope: reader.scope()?,
        trust: reader.texts("trust")?,
        roots: Vec::new(),
        certificates: reader.parsed("certificates", sha256)?,
        public_keys: reader.parsed("public_keys", sha256)?,
        subjects: reader.parsed("subject", SubjectPattern::parse)?,
        names: reader.parsed("san", NamePattern::parse)?,
        purpose: reader.purpose()?,
        phases: vec![Phase {
            from: i64::MIN,
            all_of: reader.algorithms()?,
            authorities: reader.one_of("ca_algorithms")?,
            digests: Vec::new(),
            deprecated: Vec::new(),
        }],
        revocation: reader.word("revocation", REVOCATIONS)?,
        validity: reader.word("validity", VALIDITIES)?.unwrap_or(Validity::SigningTime),
        timestamp: reader.word("timestamp", NEEDS)?.unwrap_or_default(),
        timestamps: Timestamps::default(),
        log: log::read(&reader)?,
        not_before: reader.date("not_before", "T00:00:00Z")?,
        until: reader.date("until", "T23:59:59Z")?,
        name,
    };
    if rule.trust.is_empty() && rule.has_pins() && rule.revocation == Some(Revocation::Required) {
        return Err(reader
            .wrong(
                "revocation",
                "it cannot be required without a root, whose CAs say what is revoked",
            )
            .hint("name the root of the pinned certificates with trust"));
    }
    if rule.log.is_some() && matches!(rule.scope, Scope::Attestations(_)) {
        return Err(reader
            .wrong("log", "logs have signatures of files, and no attestations")
            .hint("leave log out of rules with predicate_type; a rule for the file's signature can have it"));
    }
    if rule.not_before.zip(rule.until).is_some_and(|(first, last)| first > last) {
        return Err(reader.wrong("until", "it is before not_before"));
    }
    Ok(rule)
}

impl Reader<'_> {
    /// A rule with `predicate_type` is for attestations, every other one for signatures.
    fn scope(&self) -> Result<Scope, FileError> {
        let known = |text: &str| in_toto::predicate_type(text).map(|_| text.to_owned());
        let predicate_types = self.parsed("predicate_type", known)?;
        let only = ["builder", "source", "build_type"];
        if predicate_types.is_empty() {
            return match only.into_iter().find(|key| self.table.contains_key(*key)) {
                None => Ok(Scope::Signatures),
                Some(key) => Err(self
                    .wrong(key, "only attestations have one")
                    .hint("a rule is for attestations if it names their type: predicate_type = \"slsa-provenance\"")),
            };
        }
        let [builders, sources, build_types] = only.map(|key| self.parsed(key, Pattern::of_text));
        let attested = Attested {
            predicate_types,
            builders: builders?,
            sources: sources?,
            build_types: build_types?,
        };
        Ok(Scope::Attestations(attested))
    }

    fn purpose(&self) -> Result<ObjectIdentifier, FileError> {
        let text = self.table.get("eku").and_then(Value::as_str);
        if let Some(oid) = text.and_then(|text| ObjectIdentifier::new(text).ok()) {
            return Ok(oid);
        }
        Ok(self.word("eku", PURPOSES)?.unwrap_or(CODE_SIGNING))
    }

    fn terms(&self, key: &str, value: &Value) -> Result<AnyOf, FileError> {
        let list = reader::texts(value).ok_or_else(|| {
            self.wrong(
                key,
                "it is a text, a list of texts, or { all_of = [...] } of 1 to 4 of these",
            )
        })?;
        AnyOf::parse(list.iter().map(String::as_str)).map_err(|term| {
            let reason = format!("\"{}\" is no algorithm", short(&term));
            let name = term.trim().trim_end_matches(" or better").to_owned();
            self.wrong(key, &reason).unknown(&name, vocabulary().collect())
        })
    }

    fn one_of(&self, key: &str) -> Result<Option<AnyOf>, FileError> {
        self.table.get(key).map(|value| self.terms(key, value)).transpose()
    }

    fn algorithms(&self) -> Result<Vec<AnyOf>, FileError> {
        let key = "algorithms";
        let Some(Value::Table(table)) = self.table.get(key) else {
            return Ok(vec![self.one_of(key)?.unwrap_or_else(AnyOf::any)]);
        };
        self.below(key, table).known(&["all_of"])?;
        match table.get("all_of") {
            Some(Value::Array(list)) if (1..=MAX_TOGETHER).contains(&list.len()) => {
                list.iter().map(|value| self.terms(key, value)).collect()
            }
            _ => Err(self.wrong(key, "all_of is a list of 1 to 4 terms")),
        }
    }
}

/// `sha256:` and 64 hexadecimal digits, which may have colons between them.
fn sha256(text: &str) -> Result<Vec<u8>, String> {
    let wrong = || "it is sha256: and 64 hexadecimal digits".to_owned();
    let digits: Vec<u8> = text
        .strip_prefix("sha256:")
        .ok_or_else(wrong)?
        .chars()
        .filter(|character| *character != ':')
        .map(|character| character.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect::<Option<_>>()
        .ok_or_else(wrong)?;
    if digits.len() != 64 {
        return Err(wrong());
    }
    Ok(digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail")]
mod tests {
    use super::*;
    use crate::signing_policy::log::Log;

    #[test]
    fn a_rule_has_all_of_its_keys() {
        let pin = "ab".repeat(32);
        let text = format!(
            "[[rule]]\nname = \"releases\"\nfiles = [\"*.tar.gz\", \"dist/**\"]\ntrust = \"root.pem\"\n\
             certificates = [\"sha256:{pin}\"]\npublic_keys = \"sha256:AB:{}\"\nsubject = \"CN=Release*\"\n\
             san = \"dns:*.example.com\"\neku = \"document-signing\"\n\
             algorithms = {{ all_of = [\"classical\", [\"ml-dsa-65\", \"ml-dsa-87\"]] }}\nca_algorithms = \"any\"\n\
             revocation = \"required\"\nvalidity = \"now\"\ntimestamp = \"off\"\nlog = \"log.policy\"\nnot_before = 2026-01-01\n\
             until = \"2026-12-31\"\n[[rule]]\nfiles = \"*\"\ntrust = \"other\"\n",
            "ab".repeat(31)
        );
        let policy = parse("p", &text).unwrap();
        let [one, two] = policy.rules.as_slice() else { panic!("two rules") };
        assert_eq!((one.name.as_str(), two.name.as_str()), ("releases", "rule 2"));
        assert_eq!(one.certificates, [vec![0xab; 32]]);
        assert_eq!(one.public_keys, one.certificates);
        assert_eq!((&one.log, &two.log), (&Some(Log::File("log.policy".into())), &None));
        assert_eq!((one.not_before, one.until), (Some(1_767_225_600), Some(1_798_761_599)));
        assert_eq!(one.phases[0].all_of.len(), 2);
        assert_eq!(one.phases[0].all_of[1].to_string(), "ml-dsa-65, or ml-dsa-87");
        assert_eq!((two.purpose, two.validity), (CODE_SIGNING, Validity::SigningTime));
        assert_eq!((two.revocation, one.revocation), (None, Some(Revocation::Required)));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let in_rule = |text: &str| format!("[[rule]]\nfiles = \"*\"\n{text}\n");
        for (text, reason, unknown) in [
            (String::new(), "there is no rule", None),
            ("rule = 1".into(), "there is no rule", None),
            ("rule = [1]".into(), "there is no rule", None),
            ("rules = []".into(), "a policy has no key rules", Some("rules")),
            ("[[rule]]\n".into(), "files: it is missing", None),
            ("[[rule]]\nfiles = []\n".into(), "files: it is a text", None),
            (in_rule("algorithm = \"any\""), "has no key algorithm", Some("algorithm")),
            (in_rule("algorithms = \"ml-dsa-66 or better\""), "is no algorithm", Some("ml-dsa-66")),
            (in_rule("algorithms = { any_of = [\"any\"] }"), "has no key any_of", Some("any_of")),
            (in_rule("algorithms = { all_of = [] }"), "all_of is a list", None),
            (in_rule("algorithms = []"), "it is a text", None),
            (in_rule("revocation = \"on\""), "\"on\" is not known", Some("on")),
            (in_rule("revocation = true"), "it is a text", None),
            (in_rule("eku = \"server\""), "is not known", Some("server")),
            (in_rule("certificates = \"sha256:00\""), "64 hexadecimal digits", None),
            (in_rule("public_keys = \"00\""), "64 hexadecimal digits", None),
            ("timestamp = 1\n[[rule]]\nfiles = \"*\"\n".into(), "is a table [timestamp]", None),
            (in_rule("[timestamp]\nroots = \"a\""), "[timestamp] has no key roots", Some("roots")),
            (in_rule("[timestamp]\npolicies = \"x\""), "it is not an OID", None),
            (in_rule("[timestamp]\nleast = 9"), "it is a number from 1 to 8", None),
            (
                in_rule("[timestamp]\ntrust = \"a\"\nleast = 2"),
                "2 authorities are needed, and 1 are named",
                None,
            ),
            (in_rule("timestamp = \"maybe\""), "is not known", Some("maybe")),
            (in_rule("log = true"), "it is the name of a file", None),
            (in_rule("log = \"\""), "it is the name of a file", None),
            (in_rule("builder = \"https://ci.example\""), "only attestations have one", None),
            (in_rule("predicate_type = \"slsa\""), "neither slsa-provenance, spdx", None),
            (
                in_rule("predicate_type = \"spdx\"\nlog = \"log.policy\""),
                "logs have signatures of files",
                None,
            ),
            (in_rule("until = 2026-13-01"), "TOML parse error", None),
            (in_rule("until = 2026-12-31T00:00:00"), "neither a date", None),
            (in_rule("until = 5"), "neither a date", None),
            (in_rule("not_before = 2026-02-01\nuntil = 2026-01-01"), "before not_before", None),
            (in_rule("name = \"\""), "the name of a rule", None),
            (in_rule("subject = \"Release\""), "a subject has attributes", None),
            (format!("{0}{0}", in_rule("name = \"a\"")), "two rules have the name", None),
            (
                in_rule(&format!(
                    "certificates = \"sha256:{}\"\nrevocation = \"required\"",
                    "0".repeat(64)
                )),
                "without a root",
                None,
            ),
            ("[[rule]]\nfiles = \"a**b\"\n".into(), "** is a whole part", None),
            (in_rule("").repeat(MAX_RULES + 1), "more than 256 rules", None),
            (" ".repeat(MAX_LEN + 1), "longer than", None),
        ] {
            let error = parse("p", &text).unwrap_err();
            assert!(error.message.contains(reason), "{text}: {error}");
            assert_eq!(error.unknown.as_deref(), unknown, "{text}");
            assert_eq!(error.unknown.is_none(), error.possible.is_empty(), "{text}");
        }
    }
}
