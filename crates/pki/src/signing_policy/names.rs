//! Patterns of subjects and alternative names, and the names of files.

use std::fmt;

use crate::certificate::Certificate;
use crate::general_name::GeneralName;
use crate::name::Name;
use crate::pattern::Pattern;

/// A pattern of a subject in the notation of RFC 4514, such as `CN=Release *,O=Example`. Each attribute is compared
/// by itself, so that `*` never reaches into the next one. A last part `*` after a comma stands for any further
/// attributes, or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubjectPattern {
    text: String,
    attributes: Vec<Attribute<Pattern>>,
    is_open: bool,
}

/// An attribute of a subject.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Attribute<T> {
    /// Whether it belongs to the same relative name as the one before: `+` is between them.
    is_joined: bool,
    value: T,
}

impl SubjectPattern {
    /// Parses a pattern; the error says what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = attributes(text);
        let stands_for_more = |last: &Attribute<String>| !last.is_joined && last.value == "*";
        let is_open = parts.len() > 1 && parts.last().is_some_and(stands_for_more);
        if is_open {
            parts.pop();
        }
        let named = |part: &Attribute<String>| {
            part.value.split_once('=').is_some_and(|(kind, value)| {
                !kind.contains(['*', '?']) && !kind.is_empty() && !value.is_empty()
            })
        };
        if !parts.iter().all(named) {
            return Err("a subject has attributes with values, as in CN=Release,O=Example".into());
        }
        let pattern = |part: &Attribute<String>| {
            let value = Pattern::of_text(&part.value)?;
            Ok::<_, String>(Attribute { is_joined: part.is_joined, value })
        };
        let attributes = parts.iter().map(pattern).collect::<Result<_, _>>()?;
        Ok(Self { text: text.to_owned(), attributes, is_open })
    }

    /// Whether a name has these attributes, in this order, and no others unless the pattern says so.
    pub fn matches(&self, name: &Name) -> bool {
        let found = attributes(&name.to_string());
        let Some((own, more)) = found.split_at_checked(self.attributes.len()) else { return false };
        // A relative name of several attributes is matched as a whole.
        let may_end = more.first().is_none_or(|next| self.is_open && !next.is_joined);
        let fits = |(pattern, part): (&Attribute<Pattern>, &Attribute<String>)| {
            pattern.is_joined == part.is_joined && pattern.value.matches(&part.value)
        };
        may_end && self.attributes.iter().zip(own).all(fits)
    }
}

impl fmt::Display for SubjectPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The parts between commas and plus signs that are not escaped (RFC 4514, sections 2.2 and 2.4).
fn attributes(text: &str) -> Vec<Attribute<String>> {
    let mut parts = vec![Attribute { is_joined: false, value: String::new() }];
    let mut is_escaped = false;
    for character in text.chars() {
        if matches!(character, ',' | '+') && !is_escaped {
            parts.push(Attribute { is_joined: character == '+', value: String::new() });
            continue;
        }
        is_escaped = character == '\\' && !is_escaped;
        if let Some(part) = parts.last_mut() {
            part.value.push(character);
        }
    }
    parts
}

/// Kinds of alternative names in patterns.
const KINDS: &[&str] = &["dns", "email", "uri", "ip"];

/// A pattern of an alternative name: `dns:*.example.com`, `email:*@example.com`, `uri:https://example.com/**`,
/// `ip:192.0.2.1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamePattern {
    kind: &'static str,
    pattern: Pattern,
}

impl NamePattern {
    /// Parses a pattern; the error says what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let kind = text.split_once(':').and_then(|(kind, rest)| {
            KINDS.iter().find(|known| **known == kind).map(|known| (*known, rest))
        });
        let (kind, rest) = kind.ok_or_else(|| {
            format!("it begins with one of {}: as in dns:*.example.com", KINDS.join(":, "))
        })?;
        // RFC 4343: case does not matter in host names.
        let rest = if kind == "dns" { rest.to_ascii_lowercase() } else { rest.to_owned() };
        Ok(Self { kind, pattern: Pattern::of_text(&rest)? })
    }

    /// Whether a certificate has such a name.
    pub fn matches(&self, certificate: &Certificate) -> bool {
        certificate.general_names().iter().any(|name| {
            let (kind, text) = match name {
                GeneralName::DnsName(text) => ("dns", text.to_ascii_lowercase()),
                GeneralName::Rfc822Name(text) => ("email", text.clone()),
                GeneralName::UniformResourceIdentifier(text) => ("uri", text.clone()),
                GeneralName::IpAddress(address) => ("ip", address.to_string()),
                _ => return false,
            };
            kind == self.kind && self.pattern.matches(&text)
        })
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind, self.pattern.as_str())
    }
}

/// Name of a file as policies compare it: parts with one `/` between them, without `.`.
///
/// The name that the user gives counts, not where a link leads: a link gives content another name, and the rules for
/// that name must hold. `..` is refused, because `docs/../app.bin` is not below `docs`, and with links not even in
/// the folder that it seems to be in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileName(String);

impl FileName {
    /// Parses a path; the error says what is wrong.
    pub fn parse(path: &str) -> Result<Self, String> {
        let parts: Vec<_> =
            path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        if parts.contains(&"..") {
            return Err("a policy does not judge names with ..".into());
        }
        if parts.is_empty() {
            return Err("it is not the name of a file".into());
        }
        let root = if path.starts_with('/') { "/" } else { "" };
        Ok(Self(format!("{root}{}", parts.join("/"))))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail")]
mod tests {
    use super::*;
    use crate::name;

    #[test]
    fn an_attribute_does_not_reach_into_the_next() {
        for (pattern, yes, no) in [
            (
                "CN=Release",
                &["CN=Release"][..],
                &["CN=Release 2", "CN=release", "CN=Release,O=Example", "O=Release"][..],
            ),
            (
                "CN=Release*,O=Example",
                &[
                    "CN=Release,O=Example",
                    "CN=Release 2,O=Example",
                    "CN=Release\\,O=Mallory,O=Example",
                ],
                &[
                    "CN=Release,O=Mallory,O=Example",
                    "O=Example,CN=Release",
                    "CN=Release\\,O=Example",
                    "CN=Release,O=Mallory",
                ],
            ),
            (
                "CN=Release,*",
                &["CN=Release,O=Any,C=DE", "CN=Release,O=Any", "CN=Release"],
                &["CN=Other,O=Any", "O=Any,CN=Release"],
            ),
            ("CN=*", &["CN=Release", "CN=a b"], &["O=Release", "CN=a,O=b"]),
            ("CN=x", &["CN=x"], &["CN=a/x", "CN=a/CN=x"]),
            // Nor into another attribute of the same relative name.
            (
                "CN=Release*,O=Example",
                &["CN=Release\\+O=Mallory,O=Example"],
                &["CN=Release+O=Mallory,O=Example", "CN=Release,O=Example+OU=Releases"],
            ),
            (
                "CN=Release+O=Mallory",
                &["CN=Release+O=Mallory"],
                &["CN=Release,O=Mallory", "CN=Release\\+O=Mallory", "CN=Release"],
            ),
            (
                "CN=Release,*",
                &["CN=Release,O=Example+OU=Releases"],
                &["CN=Release+O=Mallory", "CN=Release+O=Mallory,C=DE"],
            ),
        ] {
            let parsed = SubjectPattern::parse(pattern).unwrap();
            for text in yes {
                assert!(parsed.matches(&name::parse(text).unwrap()), "{pattern} {text}");
            }
            for text in no {
                assert!(!parsed.matches(&name::parse(text).unwrap()), "{pattern} {text}");
            }
        }
        for wrong in ["", "*", "Release", "*=Release", "CN=", "CN=a,,O=b", "CN=a+*", "CN=a+"] {
            assert!(SubjectPattern::parse(wrong).is_err(), "{wrong}");
        }
        assert!(NamePattern::parse("example.com").is_err() && NamePattern::parse("DNS:a").is_err());
    }

    #[test]
    fn names_of_files_have_one_form() {
        for (path, expected) in
            [("./a/./b", "a/b"), ("a//b", "a/b"), ("/a/b", "/a/b"), ("a..b", "a..b"), ("A", "A")]
        {
            assert_eq!(FileName::parse(path).unwrap().as_str(), expected);
        }
        for wrong in ["", ".", "/", "..", "../a", "a/../b", "a/..", "docs/./../app.bin"] {
            assert!(FileName::parse(wrong).is_err(), "{wrong}");
        }
    }
}
