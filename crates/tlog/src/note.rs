//! Signed notes (c2sp.org/signed-note): a text, an empty line, and lines with signatures.

use std::fmt;
use std::str::FromStr;

use crate::VerifierKey;
use crate::text;

/// The longest note, in bytes.
pub const MAX_NOTE: usize = 1 << 20;
/// The most signatures that a note may have; at least 16 must be accepted.
pub const MAX_SIGNATURES: usize = 100;

const DASH: &str = "\u{2014} ";

/// Why a note was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoteError {
    /// It is longer than [`MAX_NOTE`].
    #[error("the note is longer than {MAX_NOTE} bytes")]
    TooLong,
    /// It is not UTF-8, or has control characters.
    #[error("the note is not UTF-8 text without control characters")]
    Characters,
    /// It is not a text, an empty line and signatures.
    #[error("the note is not a text, an empty line and lines of signatures")]
    Form,
    /// A line of the signatures is malformed.
    #[error("line {0} of the note's signatures is not a signature")]
    Signature(usize),
    /// There are more than [`MAX_SIGNATURES`].
    #[error("the note has more than {MAX_SIGNATURES} signatures")]
    TooMany,
    /// A signature that names a known key is invalid.
    #[error("the signature of {0} is not valid")]
    Invalid(String),
    /// No signature is by a known key.
    #[error("the note is not signed by a known key")]
    Unsigned,
}

/// A signature line of a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoteSignature {
    name: String,
    id: [u8; 4],
    bytes: Vec<u8>,
}

impl NoteSignature {
    /// A signature by the key with this name and id. `None` if the name is invalid, or nothing follows the id.
    pub fn new(name: &str, id: [u8; 4], bytes: Vec<u8>) -> Option<Self> {
        (text::is_key_name(name) && !bytes.is_empty()).then(|| Self {
            name: name.to_owned(),
            id,
            bytes,
        })
    }

    /// The key's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The key's id, which proves nothing.
    pub fn id(&self) -> [u8; 4] {
        self.id
    }

    /// The bytes after the id: the signature, preceded by a time if its type has one.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Parses lines of signatures, as in a witness's answer.
    pub fn parse_lines(lines: &str) -> Result<Vec<Self>, NoteError> {
        if lines.len() > MAX_NOTE {
            return Err(NoteError::TooLong);
        }
        let lines = lines.strip_suffix('\n').ok_or(NoteError::Form)?;
        let mut signatures = Vec::new();
        for (number, line) in lines.split('\n').enumerate() {
            if number >= MAX_SIGNATURES {
                return Err(NoteError::TooMany);
            }
            signatures.push(parse_line(line).ok_or(NoteError::Signature(number + 1))?);
        }
        Ok(signatures)
    }
}

fn parse_line(line: &str) -> Option<NoteSignature> {
    let (name, signature) = line.strip_prefix(DASH)?.split_once(' ')?;
    let bytes = text::base64(signature)?;
    let (id, bytes) = bytes.split_first_chunk()?;
    NoteSignature::new(name, *id, bytes.to_vec())
}

/// The line with its newline.
impl fmt::Display for NoteSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = [self.id.as_slice(), &self.bytes].concat();
        writeln!(f, "{DASH}{} {}", self.name, text::to_base64(&bytes))
    }
}

/// A note with its signatures, which need not be valid: see [`SignedNote::verify`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedNote {
    text: String,
    signatures: Vec<NoteSignature>,
}

/// A valid signature by a known key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verified<'k> {
    /// The key.
    pub key: &'k VerifierKey,
    /// The time in the signature, in seconds since 1970; `None` if its type has none, or if it is 0, which means
    /// none.
    pub time: Option<u64>,
}

impl SignedNote {
    /// A note with this text, which ends in a newline, and no signature yet.
    pub fn new(text: &str) -> Result<Self, NoteError> {
        if text.len() > MAX_NOTE {
            return Err(NoteError::TooLong);
        }
        if text::has_control_characters(text) {
            return Err(NoteError::Characters);
        }
        if !text.ends_with('\n') {
            return Err(NoteError::Form);
        }
        Ok(Self { text: text.to_owned(), signatures: Vec::new() })
    }

    /// Parses a note, which must have at least one signature.
    pub fn parse(bytes: &[u8]) -> Result<Self, NoteError> {
        if bytes.len() > MAX_NOTE {
            return Err(NoteError::TooLong);
        }
        let whole = std::str::from_utf8(bytes).map_err(|_| NoteError::Characters)?;
        if text::has_control_characters(whole) {
            return Err(NoteError::Characters);
        }
        // The text may contain empty lines: the last one ends it.
        let split = whole.rfind("\n\n").ok_or(NoteError::Form)?;
        let (text, signatures) = (&whole[..=split], &whole[split + 2..]);
        let signatures = NoteSignature::parse_lines(signatures)?;
        Ok(Self { text: text.to_owned(), signatures })
    }

    /// The text, including its last newline.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The signatures in the order of their lines.
    pub fn signatures(&self) -> &[NoteSignature] {
        &self.signatures
    }

    /// Adds a signature; replaces one by the same key.
    pub fn add(&mut self, signature: NoteSignature) -> Result<(), NoteError> {
        let same =
            |other: &&mut NoteSignature| other.name == signature.name && other.id == signature.id;
        if let Some(old) = self.signatures.iter_mut().find(same) {
            *old = signature;
            return Ok(());
        }
        if self.signatures.len() >= MAX_SIGNATURES {
            return Err(NoteError::TooMany);
        }
        self.signatures.push(signature);
        Ok(())
    }

    /// The valid signatures by the known keys, at least one. Signatures by other keys are ignored; an invalid one
    /// that names a known key makes the whole note invalid.
    pub fn verify<'k>(&self, known: &'k [VerifierKey]) -> Result<Vec<Verified<'k>>, NoteError> {
        let mut verified = Vec::new();
        for signature in &self.signatures {
            // Two known keys may share name and id, and then either may have signed.
            let mut named = known.iter().filter(|key| key.is_named_by(signature)).peekable();
            if named.peek().is_none() {
                continue;
            }
            let valid = named.find_map(|key| {
                let time = key.verify(&self.text, signature).ok()?;
                Some(Verified { key, time })
            });
            verified.push(valid.ok_or_else(|| NoteError::Invalid(signature.name.clone()))?);
        }
        if verified.is_empty() { Err(NoteError::Unsigned) } else { Ok(verified) }
    }
}

/// The whole note in its text form.
impl fmt::Display for SignedNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        f.write_str("\n")?;
        self.signatures.iter().try_for_each(|signature| signature.fmt(f))
    }
}

impl FromStr for SignedNote {
    type Err = NoteError;

    fn from_str(text: &str) -> Result<Self, NoteError> {
        Self::parse(text.as_bytes())
    }
}
