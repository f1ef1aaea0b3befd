//! In-toto attestations: Statements (<https://in-toto.io/Statement/v1>), and what policies ask of SLSA provenance
//! (<https://slsa.dev/provenance/v1>).

use outlast_crypto::digests::Digest;
use serde_json::{Map, Value, json};

use crate::pattern::Pattern;
use crate::strict_json;

/// Payload type of envelopes with a Statement.
pub const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";

/// `_type` of the Statements that are made.
const STATEMENT: &str = "https://in-toto.io/Statement/v1";

/// `_type` of those that are read: of the older one all members mean the same.
const STATEMENTS: &[&str] = &[STATEMENT, "https://in-toto.io/Statement/v0.1"];

/// Predicate type of SLSA provenance.
pub const SLSA_PROVENANCE: &str = "https://slsa.dev/provenance/v1";

/// Short names of predicate types, and the one that is written for each.
pub const PREDICATES: &[(&str, &str)] = &[
    ("slsa-provenance", SLSA_PROVENANCE),
    ("spdx", "https://spdx.dev/Document/v2.3"),
    ("cyclonedx", "https://cyclonedx.org/bom"),
];

/// What begins the types for which a short name stands in policies: bills of materials have versions.
const BELOW: &[(&str, &str)] =
    &[("spdx", "https://spdx.dev/Document"), ("cyclonedx", "https://cyclonedx.org/bom")];

/// Most subjects.
pub const MAX_SUBJECTS: usize = 10_000;

/// Digests of subjects: in-toto's name of each, and ours.
const SUBJECT_DIGESTS: &[(&str, &str)] = &[
    ("sha512", "sha512"),
    ("sha384", "sha384"),
    ("sha256", "sha256"),
    ("sha3_512", "sha3-512"),
    ("sha3_384", "sha3-384"),
    ("sha3_256", "sha3-256"),
];

/// Digests that are written for each subject: what everybody compares, and what CNSA 2.0 allows.
pub const WRITTEN: &[&str] = &["sha256", "sha512"];

/// Why a payload is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StatementError {
    /// The envelope contains something else.
    #[error("the payload is {0}, not an in-toto Statement ({PAYLOAD_TYPE})")]
    PayloadType(String),
    /// It is no Statement.
    #[error("not an in-toto Statement: {0}")]
    Malformed(String),
    /// It is about something else.
    #[error("the attestation is not about this file: none of its {0} subjects has its digest")]
    OtherSubject(usize),
}

/// A file that a Statement is about.
#[derive(Debug, Clone)]
pub struct Subject {
    /// Its name, for people: the digests decide.
    pub name: Option<String>,
    /// The digests that are compared, at least one: algorithm and value.
    digests: Vec<(&'static Digest, Vec<u8>)>,
}

/// A file that a Statement is to be about.
#[derive(Debug, Clone)]
pub struct Artifact {
    /// Its name, for people.
    pub name: String,
    /// Its digests, by the algorithms of [`WRITTEN`].
    pub digests: Vec<Vec<u8>>,
}

/// A Statement: a predicate about subjects.
#[derive(Debug, Clone)]
pub struct Statement {
    /// The subjects.
    pub subjects: Vec<Subject>,
    /// URI of the predicate's type.
    pub predicate_type: String,
    /// The predicate.
    pub predicate: Value,
}

/// The URI for a short name, or the URI itself.
///
/// # Errors
///
/// The text is neither.
pub fn predicate_type(text: &str) -> Result<String, String> {
    if let Some((_, uri)) = PREDICATES.iter().find(|(name, _)| *name == text) {
        return Ok((*uri).to_owned());
    }
    let is_uri = text.split_once(':').is_some_and(|(scheme, rest)| {
        scheme.starts_with(|one: char| one.is_ascii_alphabetic())
            && !rest.is_empty()
            && !text.contains(|one: char| one.is_whitespace() || one.is_control())
    });
    match is_uri {
        true => Ok(text.to_owned()),
        false => {
            let names: Vec<_> = PREDICATES.iter().map(|(name, _)| *name).collect();
            Err(format!("it is neither {} nor a URI", names.join(", ")))
        }
    }
}

impl Statement {
    /// The payload of an envelope about files.
    pub fn write(subjects: &[Artifact], predicate_type: &str, predicate: &Value) -> Vec<u8> {
        let subjects: Vec<_> = subjects
            .iter()
            .map(|artifact| {
                let digests: Map<_, _> = WRITTEN
                    .iter()
                    .zip(&artifact.digests)
                    .map(|(algorithm, value)| ((*algorithm).to_owned(), hex(value).into()))
                    .collect();
                json!({ "name": artifact.name, "digest": digests })
            })
            .collect();
        let value = json!({
            "_type": STATEMENT,
            "subject": subjects,
            "predicateType": predicate_type,
            "predicate": predicate,
        });
        value.to_string().into_bytes()
    }

    /// Reads the payload of an envelope. Members that nobody knows are ignored, as in-toto demands.
    pub fn parse(payload_type: &str, payload: &[u8]) -> Result<Self, StatementError> {
        if payload_type != PAYLOAD_TYPE {
            return Err(StatementError::PayloadType(short(payload_type)));
        }
        let malformed = |reason: &str| StatementError::Malformed(reason.to_owned());
        let value = strict_json::parse(payload).map_err(StatementError::Malformed)?;
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        if !text("_type").is_some_and(|found| STATEMENTS.contains(&found)) {
            return Err(malformed("its _type is not https://in-toto.io/Statement/v1"));
        }
        let predicate_type = text("predicateType").filter(|text| !text.is_empty());
        let predicate_type =
            predicate_type.ok_or_else(|| malformed("predicateType is not a text"))?.to_owned();
        let predicate = match value.get("predicate") {
            None | Some(Value::Null) => Value::Object(Map::new()),
            Some(found @ Value::Object(_)) => found.clone(),
            Some(_) => return Err(malformed("predicate is not an object")),
        };
        let list = value.get("subject").and_then(Value::as_array);
        let list = list.ok_or_else(|| malformed("subject is not a list"))?;
        if list.is_empty() || list.len() > MAX_SUBJECTS {
            return Err(malformed(&format!(
                "it has {} subjects, and 1 to {MAX_SUBJECTS} are accepted",
                list.len()
            )));
        }
        let subjects = list.iter().map(subject).collect::<Result<_, _>>()?;
        Ok(Self { subjects, predicate_type, predicate })
    }

    /// The digests of a file that [`Statement::about`] needs.
    pub fn digests(&self) -> Vec<&'static Digest> {
        let mut out: Vec<&'static Digest> = Vec::new();
        for (row, _) in self.subjects.iter().flat_map(|subject| &subject.digests) {
            if !out.iter().any(|known| known.oid == row.oid) {
                out.push(row);
            }
        }
        out
    }

    /// The subject that is this file, and the strongest digest by which it is: of one subject all digests that are
    /// compared must be the file's. `values` are in the order of [`Statement::digests`].
    pub fn about(&self, values: &[Vec<u8>]) -> Result<(&Subject, &'static Digest), StatementError> {
        let rows = self.digests();
        let value = |row: &Digest| {
            rows.iter().position(|known| known.oid == row.oid).and_then(|at| values.get(at))
        };
        let is_file = |subject: &&Subject| {
            subject.digests.iter().all(|(row, digest)| value(row) == Some(digest))
        };
        let found = self.subjects.iter().find(is_file);
        let found = found.and_then(|subject| Some((subject, subject.digests.first()?.0)));
        found.ok_or(StatementError::OtherSubject(self.subjects.len()))
    }

    /// Who built, of SLSA provenance.
    pub fn builder(&self) -> Option<&str> {
        self.provenance("/runDetails/builder/id")
    }

    /// How it was built, of SLSA provenance.
    pub fn build_type(&self) -> Option<&str> {
        self.provenance("/buildDefinition/buildType")
    }

    /// What it was built from, of SLSA provenance: the external parameter `source` (a text, or an object with `uri`),
    /// else `workflow.repository`, else the first of the resolved dependencies. Only one is taken, because a
    /// dependency among others says nothing about the source.
    pub fn source(&self) -> Option<&str> {
        [
            "/buildDefinition/externalParameters/source",
            "/buildDefinition/externalParameters/source/uri",
            "/buildDefinition/externalParameters/workflow/repository",
            "/buildDefinition/resolvedDependencies/0/uri",
        ]
        .into_iter()
        .find_map(|pointer| self.provenance(pointer))
    }

    fn provenance(&self, pointer: &str) -> Option<&str> {
        let is_provenance = self.predicate_type == SLSA_PROVENANCE;
        self.predicate.pointer(pointer).and_then(Value::as_str).filter(|_| is_provenance)
    }
}

fn subject(value: &Value) -> Result<Subject, StatementError> {
    let malformed = |reason: String| StatementError::Malformed(reason);
    let name = value.get("name").and_then(Value::as_str).map(str::to_owned);
    let who = || short(name.as_deref().unwrap_or("_"));
    let given = value.get("digest").and_then(Value::as_object);
    let given = given.ok_or_else(|| malformed(format!("the subject {} has no digest", who())))?;
    let mut digests = Vec::new();
    // The strongest first; other digests, such as gitCommit, are not those of a file's bytes, or weak.
    for (theirs, ours) in SUBJECT_DIGESTS {
        let (Some(value), Some(row)) = (given.get(*theirs), Digest::by_name(ours)) else {
            continue;
        };
        let bytes = value.as_str().and_then(from_hex).filter(|bytes| bytes.len() == row.output_len);
        let wrong = || malformed(format!("the {theirs} of the subject {} is not in hex", who()));
        digests.push((row, bytes.ok_or_else(wrong)?));
    }
    if digests.is_empty() {
        return Err(malformed(format!(
            "the subject {} has no digest that is compared: sha256 is one",
            who()
        )));
    }
    Ok(Subject { name, digests })
}

/// What a rule asks of attestations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attested {
    /// Predicate types: URIs, or short names of [`PREDICATES`]; one must match.
    pub predicate_types: Vec<String>,
    /// Builders: one must match, if there are any.
    pub builders: Vec<Pattern>,
    /// Sources: one must match, if there are any.
    pub sources: Vec<Pattern>,
    /// Build types: one must match, if there are any.
    pub build_types: Vec<Pattern>,
}

impl Attested {
    /// Whether it is for attestations of this type.
    pub fn is_for(&self, predicate_type: &str) -> bool {
        self.predicate_types.iter().any(|wanted| {
            let below = BELOW.iter().find(|(name, _)| name == wanted).map(|(_, uri)| uri);
            let is_below = below.is_some_and(|uri| {
                predicate_type
                    .strip_prefix(uri)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            });
            is_below || self::predicate_type(wanted).as_deref() == Ok(predicate_type)
        })
    }

    /// What in a Statement is not as the rule demands.
    pub fn against(&self, statement: &Statement) -> Vec<String> {
        let mut out = Vec::new();
        for (what, wanted, found) in [
            ("builder", &self.builders, statement.builder()),
            ("source", &self.sources, statement.source()),
            ("build type", &self.build_types, statement.build_type()),
        ] {
            let matches = |text: &str| wanted.iter().any(|pattern| pattern.matches(text));
            if !wanted.is_empty() && !found.is_some_and(matches) {
                out.push(match found {
                    Some(found) => format!("its {what} \"{}\" is none of the rule's", short(found)),
                    None => format!("it names no {what}"),
                });
            }
        }
        out
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text
        .chars()
        .map(|one| one.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect::<Option<_>>()?;
    let pairs = digits.chunks(2).map(|pair| match pair {
        [high, low] => Some(high << 4 | low),
        _ => None,
    });
    pairs.collect()
}

/// The beginning of a text, for messages.
fn short(text: &str) -> String {
    text.chars().take(200).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail")]
mod tests {
    use outlast_crypto::digests::DIGESTS;

    use super::*;

    fn statement(subject: &str, predicate: &str) -> String {
        format!(
            "{{\"_type\": \"{STATEMENT}\", \"subject\": {subject}, \"predicateType\": \"{SLSA_PROVENANCE}\", \
             \"predicate\": {predicate}}}"
        )
    }

    fn parse(text: &str) -> Result<Statement, StatementError> {
        Statement::parse(PAYLOAD_TYPE, text.as_bytes())
    }

    #[test]
    fn digests_decide_what_a_statement_is_about() {
        let row = |name: &str| Digest::by_name(name).unwrap();
        let both: Vec<_> = WRITTEN.iter().map(|name| row(name).digest(b"file")).collect();
        let written = Statement::write(
            &[Artifact { name: "a".into(), digests: both }],
            "https://x.example/1",
            &json!({}),
        );
        let read = Statement::parse(PAYLOAD_TYPE, &written).unwrap();
        assert_eq!((read.predicate_type.as_str(), read.subjects.len()), ("https://x.example/1", 1));
        let values =
            |bytes: &[u8]| read.digests().iter().map(|row| row.digest(bytes)).collect::<Vec<_>>();
        assert_eq!(read.about(&values(b"file")).unwrap().1.name, "sha512");
        assert_eq!(read.about(&values(b"other")).unwrap_err(), StatementError::OtherSubject(1));
        // One digest of two is not enough: the weaker one could be the one that collides.
        let mut mixed = values(b"file");
        mixed[0] = row("sha512").digest(b"other");
        assert!(read.about(&mixed).is_err());
        assert!(
            SUBJECT_DIGESTS.iter().all(|(_, ours)| DIGESTS.iter().any(|row| row.name == *ours))
        );
    }

    #[test]
    fn statements_that_are_none_are_named() {
        let good = r#"[{"name": "a", "digest": {"sha256": "#.to_owned()
            + &format!("\"{}\"", "ab".repeat(32))
            + "}}]";
        parse(&statement(&good, "{}")).unwrap();
        for (text, reason) in [
            (statement("[]", "{}"), "it has 0 subjects"),
            (statement("1", "{}"), "subject is not a list"),
            (statement("[{}]", "{}"), "the subject _ has no digest"),
            (
                statement(r#"[{"name": "b", "digest": {"sha1": "00"}}]"#, "{}"),
                "no digest that is compared",
            ),
            (statement(&good.replace("abab", "ab"), "{}"), "is not in hex"),
            (statement(&good.replace("abab", "xyab"), "{}"), "is not in hex"),
            (statement(&good, "[]"), "predicate is not an object"),
            (statement(&good, "{}").replace("Statement/v1", "Statement/v9"), "its _type is not"),
            (statement(&good, r#"{"a": 1, "a": 2}"#), "occurs twice"),
        ] {
            let error = parse(&text).unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
        let error = Statement::parse("text/plain", b"{}").unwrap_err();
        assert_eq!(error, StatementError::PayloadType("text/plain".into()));
    }

    #[test]
    fn rules_ask_for_builder_and_source() {
        let good = format!(r#"[{{"digest": {{"sha256": "{}"}}}}]"#, "00".repeat(32));
        let predicate = r#"{"buildDefinition": {"buildType": "https://b.example/make",
            "externalParameters": {"workflow": {"repository": "https://g.example/org/app"}},
            "resolvedDependencies": [{"uri": "git+https://g.example/evil"}]},
            "runDetails": {"builder": {"id": "https://ci.example/runner"}}}"#;
        let read = parse(&statement(&good, predicate)).unwrap();
        assert_eq!(read.source(), Some("https://g.example/org/app"));
        let pattern = |text: &str| vec![Pattern::of_text(text).unwrap()];
        let rule = Attested {
            predicate_types: vec!["slsa-provenance".into()],
            builders: pattern("https://ci.example/*"),
            sources: pattern("https://g.example/org/*"),
            build_types: pattern("https://b.example/make"),
        };
        assert!(rule.is_for(SLSA_PROVENANCE) && rule.against(&read).is_empty());
        assert!(
            !rule.is_for("https://slsa.dev/provenance/v1.1") && !rule.is_for("slsa-provenance")
        );
        let other = Attested { sources: pattern("git+https://g.example/evil"), ..rule.clone() };
        assert_eq!(other.against(&read).len(), 1);
        let bare = parse(&statement(&good, "{}")).unwrap();
        assert_eq!(rule.against(&bare).len(), 3);
        let sbom = Attested { predicate_types: vec!["cyclonedx".into()], ..Attested::default() };
        assert!(
            sbom.is_for("https://cyclonedx.org/bom/v1.6")
                && sbom.is_for("https://cyclonedx.org/bom")
        );
        assert!(!sbom.is_for("https://cyclonedx.org/bombard"));
        assert!(predicate_type("spdy").is_err() && predicate_type("urn:x y").is_err());
    }
}
