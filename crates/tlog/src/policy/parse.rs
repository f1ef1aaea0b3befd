//! Parses a policy.

use super::{Log, Member, MemberKind, Policy, Witness};
use crate::key::KeyError;
use crate::{VerifierKey, text};

/// The longest policy, in bytes: a few hundred keys of ML-DSA-44.
pub const MAX_POLICY: usize = 1 << 20;
/// The most lines with content; at least 32 logs, witnesses and groups each should be accepted.
pub const MAX_LINES: usize = 1024;

/// Why a policy was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the policy: {problem}")]
pub struct PolicyError {
    /// Line number, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Too many bytes or lines.
    #[error("the policy is too long")]
    TooLong,
    /// A control character, or no newline at the end.
    #[error("a line must end in a newline and contain no control characters but tabs")]
    Characters,
    /// An unknown keyword.
    #[error("a line must begin with log, witness, group, quorum or #")]
    Keyword,
    /// Too few words, or too many.
    #[error("this line should read: {0}")]
    Form(&'static str),
    /// An invalid key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A type of key that logs or witnesses cannot have.
    #[error("a {0} cannot have a key for signatures of kind \"{1}\"")]
    Kind(&'static str, &'static str),
    /// The same public key in an earlier line.
    #[error("this public key is in an earlier line")]
    DuplicateKey,
    /// A name that is taken, or is `none`.
    #[error("the name is taken")]
    Name,
    /// A name that no earlier line defines.
    #[error("\"{0}\" is not defined in an earlier line")]
    Unknown(String),
    /// A name in two groups, or twice in one.
    #[error("\"{0}\" is already a member of a group")]
    Member(String),
    /// Not `any`, `all` or a number from 1 to the number of members.
    #[error("a threshold must be any, all or a number from 1 to the number of members")]
    Threshold,
    /// A second quorum line, or no quorum line.
    #[error("a policy must have one quorum line")]
    Quorum,
}

/// Which part of [`Policy::of_keys`] is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The log with this index.
    Log(usize),
    /// The witness with this index.
    Witness(usize),
    /// The number of witnesses.
    Quorum,
}

/// Why keys make no policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct KeysError {
    /// The part.
    pub part: Part,
    /// What is wrong with it.
    pub problem: Problem,
}

impl Policy {
    /// The policy of these logs, one of which must have signed, and these witnesses, `quorum` of which must have
    /// cosigned; with 0 none of them need have. All are verifier keys (`name+id+key`), and a witness is named as its key
    /// is. Keys are refused as in the lines of a policy.
    pub fn of_keys(
        logs: &[String],
        witnesses: &[String],
        quorum: usize,
    ) -> Result<Self, KeysError> {
        let mut reader = Reader::default();
        let wrong = |part| move |problem| KeysError { part, problem };
        if logs.len().saturating_add(witnesses.len()) > MAX_LINES {
            return Err(KeysError { part: Part::Quorum, problem: Problem::TooLong });
        }
        for (index, vkey) in logs.iter().enumerate() {
            reader.log(&[vkey.as_bytes()]).map_err(wrong(Part::Log(index)))?;
        }
        for (index, vkey) in witnesses.iter().enumerate() {
            let wrong = wrong(Part::Witness(index));
            let key: VerifierKey = vkey.parse().map_err(|error: KeyError| wrong(error.into()))?;
            let words = [key.name().as_bytes(), vkey.as_bytes()];
            reader.witness(&words).map_err(wrong)?;
        }
        let members: Vec<_> = (0..reader.members.len()).collect();
        if quorum > members.len() {
            return Err(KeysError { part: Part::Quorum, problem: Problem::Threshold });
        }
        reader.quorum = Some((quorum > 0).then_some(members.len()));
        let kind = MemberKind::Group { threshold: quorum, members };
        // No key has an empty name.
        reader.members.push(Member { name: Vec::new(), kind });
        reader.finish().map_err(wrong(Part::Quorum))
    }

    /// Parses a policy.
    pub fn parse(bytes: &[u8]) -> Result<Self, PolicyError> {
        if bytes.len() > MAX_POLICY {
            return Err(PolicyError { line: 1, problem: Problem::TooLong });
        }
        let mut reader = Reader::default();
        let mut number = 0;
        let mut rest = bytes;
        while !rest.is_empty() {
            number += 1;
            let at = |problem| PolicyError { line: number, problem };
            let end = rest.iter().position(|byte| *byte == b'\n');
            let end = end.ok_or_else(|| at(Problem::Characters))?;
            let (line, following) = rest.split_at(end);
            reader.line(line).map_err(at)?;
            rest = following.get(1..).unwrap_or_default();
        }
        reader.finish().map_err(|problem| PolicyError { line: number + 1, problem })
    }
}

#[derive(Default)]
struct Reader {
    lines: usize,
    logs: Vec<Log>,
    members: Vec<Member>,
    /// Indexes in `members` of those that are in a group.
    grouped: Vec<usize>,
    /// From the quorum line.
    quorum: Option<Option<usize>>,
}

impl Reader {
    fn line(&mut self, line: &[u8]) -> Result<(), Problem> {
        if line.iter().any(|byte| (*byte < b' ' && *byte != b'\t') || *byte == 0x7f) {
            return Err(Problem::Characters);
        }
        let space = |byte: &u8| *byte == b' ' || *byte == b'\t';
        let words: Vec<&[u8]> = line.split(space).filter(|word| !word.is_empty()).collect();
        let Some((keyword, rest)) = words.split_first() else { return Ok(()) };
        if keyword.starts_with(b"#") {
            return Ok(());
        }
        self.lines += 1;
        if self.lines > MAX_LINES {
            return Err(Problem::TooLong);
        }
        match *keyword {
            b"log" => self.log(rest),
            b"witness" => self.witness(rest),
            b"group" => self.group(rest),
            b"quorum" => self.quorum(rest),
            _ => Err(Problem::Keyword),
        }
    }

    fn log(&mut self, words: &[&[u8]]) -> Result<(), Problem> {
        let ([vkey], url) = with_url(words).ok_or(Problem::Form("log <vkey> [<url>]"))?;
        let key = self.key(vkey)?;
        if !key.algorithm().of_logs {
            return Err(Problem::Kind("log", key.algorithm().name));
        }
        self.logs.push(Log { key, url });
        Ok(())
    }

    fn witness(&mut self, words: &[&[u8]]) -> Result<(), Problem> {
        let ([name, vkey], url) =
            with_url(words).ok_or(Problem::Form("witness <name> <vkey> [<url>]"))?;
        let key = self.key(vkey)?;
        if !key.algorithm().of_witnesses {
            return Err(Problem::Kind("witness", key.algorithm().name));
        }
        let witness = Witness { name: lossy(name), key, url };
        self.define(name, MemberKind::Witness(witness))
    }

    fn group(&mut self, words: &[&[u8]]) -> Result<(), Problem> {
        let form = Problem::Form("group <name> all|any|<k> <name>...");
        let [name, threshold, listed @ ..] = words else { return Err(form) };
        if listed.is_empty() {
            return Err(form);
        }
        let mut members = Vec::with_capacity(listed.len());
        for member in listed {
            let at = self.find(member)?;
            if self.grouped.contains(&at) {
                return Err(Problem::Member(lossy(member)));
            }
            self.grouped.push(at);
            members.push(at);
        }
        let threshold = match *threshold {
            b"all" => members.len(),
            b"any" => 1,
            number => std::str::from_utf8(number)
                .ok()
                .and_then(text::decimal)
                .and_then(|k| usize::try_from(k).ok())
                .filter(|k| (1..=members.len()).contains(k))
                .ok_or(Problem::Threshold)?,
        };
        self.define(name, MemberKind::Group { threshold, members })
    }

    fn quorum(&mut self, words: &[&[u8]]) -> Result<(), Problem> {
        let [name] = words else { return Err(Problem::Form("quorum <name>|none")) };
        if self.quorum.is_some() {
            return Err(Problem::Quorum);
        }
        self.quorum = Some(if *name == b"none" { None } else { Some(self.find(name)?) });
        Ok(())
    }

    /// Checks that a key is in no earlier line, for a log or a witness, under any name and for any type of signature.
    /// A log that is its own witness would be no witness.
    fn key(&self, vkey: &[u8]) -> Result<VerifierKey, Problem> {
        let vkey = std::str::from_utf8(vkey).map_err(|_| KeyError::Form)?;
        let key: VerifierKey = vkey.parse()?;
        if self.keys().any(|other| other.public_key() == key.public_key()) {
            return Err(Problem::DuplicateKey);
        }
        Ok(key)
    }

    fn keys(&self) -> impl Iterator<Item = &VerifierKey> {
        let witnesses = self.members.iter().filter_map(|member| match &member.kind {
            MemberKind::Witness(witness) => Some(&witness.key),
            MemberKind::Group { .. } => None,
        });
        self.logs.iter().map(|log| &log.key).chain(witnesses)
    }

    fn define(&mut self, name: &[u8], kind: MemberKind) -> Result<(), Problem> {
        if name == b"none" || self.members.iter().any(|member| member.name == name) {
            return Err(Problem::Name);
        }
        self.members.push(Member { name: name.to_vec(), kind });
        Ok(())
    }

    fn find(&self, name: &[u8]) -> Result<usize, Problem> {
        let at = self.members.iter().position(|member| member.name == name);
        at.ok_or_else(|| Problem::Unknown(lossy(name)))
    }

    fn finish(self) -> Result<Policy, Problem> {
        let quorum = self.quorum.ok_or(Problem::Quorum)?;
        let keys = self.keys().cloned().collect();
        Ok(Policy { keys, logs: self.logs, members: self.members, quorum })
    }
}

/// The required words, and a URL if there is one more.
fn with_url<'w, const N: usize>(words: &[&'w [u8]]) -> Option<([&'w [u8]; N], Option<String>)> {
    let (must, may) = words.split_first_chunk::<N>()?;
    match may {
        [] => Some((*must, None)),
        [url] => Some((*must, Some(String::from_utf8_lossy(url).into_owned()))),
        _ => None,
    }
}

/// For messages: names are bytes.
fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.get(..200).unwrap_or(bytes)).into_owned()
}
