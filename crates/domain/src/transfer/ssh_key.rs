//! SSH public keys as lines of `authorized_keys` have them: `ssh-ed25519 AAAA... comment`.
//!
//! Sources: RFC 4253, section 6.6; RFC 5656, section 3.1; RFC 8709; OpenSSH's PROTOCOL.u2f; and
//! draft-miller-sshm-mldsa44-ed25519-composite-sigs. Options, certificates and `cert-authority` lines are refused: a key
//! of a user stands for itself.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use outlast_crypto::digests;

/// Characters of a line at most, as AWS has it.
const MAX_LINE: usize = 2048;
/// Bits of the shortest RSA key.
const MIN_RSA_BITS: usize = 2048;
/// Bits of the longest RSA key.
const MAX_RSA_BITS: usize = 8192;

/// A public key that was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey {
    kind: &'static str,
    blob: Vec<u8>,
    comment: String,
}

/// Why a line is not a public key that can be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SshKeyError {
    /// It is not a line with the name of an algorithm and a key in base64.
    #[error("Unsupported or invalid SSH public key format")]
    Malformed,
    /// Its algorithm is not one of those that users can have.
    #[error("Unsupported or invalid SSH public key format: the algorithm {0} is not supported")]
    Algorithm(String),
    /// The key is too weak, or too long to be verified quickly.
    #[error("RSA keys have between 2048 and 8192 bits, and an odd exponent from 65537 on")]
    Rsa,
}

/// The parts of a key after its name.
enum Form {
    /// Strings of these lengths; `None` for any text, which is the application of a security key.
    Strings(&'static [Option<usize>]),
    /// The name of a curve, and an uncompressed point of this length.
    Curve(&'static str, usize, bool),
    /// Exponent and modulus.
    Rsa,
}

/// Algorithms, and what follows their name in a key.
static ALGORITHMS: &[(&str, Form)] = &[
    ("ssh-ed25519", Form::Strings(&[Some(32)])),
    ("ecdsa-sha2-nistp256", Form::Curve("nistp256", 65, false)),
    ("ecdsa-sha2-nistp384", Form::Curve("nistp384", 97, false)),
    ("ecdsa-sha2-nistp521", Form::Curve("nistp521", 133, false)),
    ("ssh-rsa", Form::Rsa),
    ("ssh-mldsa44-ed25519", Form::Strings(&[Some(1312 + 32)])),
    ("sk-ssh-ed25519@openssh.com", Form::Strings(&[Some(32), None])),
    ("sk-ecdsa-sha2-nistp256@openssh.com", Form::Curve("nistp256", 65, true)),
];

impl PublicKey {
    /// Reads a line.
    pub fn from_line(text: &str) -> Result<Self, SshKeyError> {
        let text = text.trim();
        if text.len() > MAX_LINE || text.contains(|c: char| c.is_control() && c != '\t') {
            return Err(SshKeyError::Malformed);
        }
        let mut parts = text.splitn(2, [' ', '\t']);
        let name = parts.next().unwrap_or_default();
        let rest = parts.next().unwrap_or_default().trim_start();
        let mut parts = rest.splitn(2, [' ', '\t']);
        let encoded = parts.next().unwrap_or_default();
        let comment = parts.next().unwrap_or_default().trim();
        let known = ALGORITHMS.iter().any(|(known, _)| *known == name);
        if encoded.is_empty() {
            return Err(SshKeyError::Malformed);
        }
        if !known {
            let name = name.chars().take(64).collect();
            return Err(SshKeyError::Algorithm(name));
        }
        let blob = STANDARD
            .decode(encoded)
            .or_else(|_| STANDARD_NO_PAD.decode(encoded))
            .map_err(|_| SshKeyError::Malformed)?;
        let key = Self::parse(&blob)?;
        if key.kind != name {
            return Err(SshKeyError::Malformed);
        }
        Ok(Self { comment: comment.to_owned(), ..key })
    }

    /// Reads a key in the form in which SSH sends it.
    pub fn parse(blob: &[u8]) -> Result<Self, SshKeyError> {
        let mut reader = Reader(blob);
        let name = reader.string()?;
        let Some((kind, form)) = ALGORITHMS.iter().find(|(known, _)| known.as_bytes() == name)
        else {
            let name = String::from_utf8_lossy(name.get(..64).unwrap_or(name)).into_owned();
            return Err(SshKeyError::Algorithm(name));
        };
        match form {
            Form::Strings(lengths) => {
                for length in *lengths {
                    let found = reader.string()?;
                    if length.is_some_and(|length| found.len() != length) {
                        return Err(SshKeyError::Malformed);
                    }
                }
            }
            Form::Curve(curve, length, has_application) => {
                let (named, point) = (reader.string()?, reader.string()?);
                // RFC 5656, section 3.1: point compression may be used, but OpenSSH and AWS-LC do not.
                if named != curve.as_bytes() || point.len() != *length || point.first() != Some(&4)
                {
                    return Err(SshKeyError::Malformed);
                }
                if *has_application {
                    reader.string()?;
                }
            }
            Form::Rsa => {
                let (exponent, modulus) = (reader.integer()?, reader.integer()?);
                let bits = bits(modulus);
                let exponent_fits = (17..=64).contains(&self::bits(exponent))
                    && exponent.last().is_some_and(|last| last & 1 == 1);
                if !(MIN_RSA_BITS..=MAX_RSA_BITS).contains(&bits) || !exponent_fits {
                    return Err(SshKeyError::Rsa);
                }
            }
        }
        if !reader.0.is_empty() {
            return Err(SshKeyError::Malformed);
        }
        Ok(Self { kind, blob: blob.to_vec(), comment: String::new() })
    }

    /// Name of its algorithm, such as `ssh-ed25519`.
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// The key in the form in which SSH sends it.
    pub fn blob(&self) -> &[u8] {
        &self.blob
    }

    /// The comment of its line.
    pub fn comment(&self) -> &str {
        &self.comment
    }

    /// `SHA256:` and the digest, as `ssh-keygen -l` shows it.
    pub fn fingerprint(&self) -> String {
        fingerprint(&self.blob)
    }

    /// The line, in one spelling.
    pub fn line(&self) -> String {
        let line = format!("{} {}", self.kind, STANDARD.encode(&self.blob));
        if self.comment.is_empty() { line } else { format!("{line} {}", self.comment) }
    }
}

/// `SHA256:` and the digest of a key, as `ssh-keygen -l` shows it.
pub fn fingerprint(blob: &[u8]) -> String {
    format!("SHA256:{}", STANDARD_NO_PAD.encode(digests::sha256(blob)))
}

/// Significant bits of an unsigned integer.
fn bits(integer: &[u8]) -> usize {
    let zeros = integer.iter().take_while(|byte| **byte == 0).count();
    let significant = integer.get(zeros..).unwrap_or_default();
    significant.first().map_or(0, |first| {
        significant.len() * 8 - usize::try_from(first.leading_zeros()).unwrap_or(0)
    })
}

/// Reads the strings of RFC 4251, section 5.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn string(&mut self) -> Result<&'a [u8], SshKeyError> {
        let (length, rest) = self.0.split_first_chunk::<4>().ok_or(SshKeyError::Malformed)?;
        let length =
            usize::try_from(u32::from_be_bytes(*length)).map_err(|_| SshKeyError::Malformed)?;
        let (found, rest) = rest.split_at_checked(length).ok_or(SshKeyError::Malformed)?;
        self.0 = rest;
        Ok(found)
    }

    /// A positive `mpint` in its one spelling.
    fn integer(&mut self) -> Result<&'a [u8], SshKeyError> {
        let found = self.string()?;
        let is_canonical = match found {
            [] => false,
            [0, second, ..] => second & 0x80 != 0,
            [0] => false,
            [first, ..] => first & 0x80 == 0,
        };
        if is_canonical { Ok(found) } else { Err(SshKeyError::Malformed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `ssh-keygen -t ed25519`, OpenSSH 9.2.
    const ED25519: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ9FH3RVU3BSxqBqzhQyBn5oF1Uxsp0pHvhMU+EvhUNg";

    fn string(bytes: &[u8]) -> Vec<u8> {
        [&u32::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat()
    }

    fn blob(parts: &[&[u8]]) -> Vec<u8> {
        parts.iter().flat_map(|part| string(part)).collect()
    }

    fn line(parts: &[&[u8]]) -> String {
        let name = String::from_utf8(parts[0].to_vec()).unwrap();
        format!("{name} {}", STANDARD.encode(blob(parts)))
    }

    #[test]
    fn lines_are_read_in_all_their_spellings() {
        let key = PublicKey::from_line(ED25519).unwrap();
        assert_eq!((key.kind(), key.comment(), key.blob().len()), ("ssh-ed25519", "", 51));
        assert_eq!(key.line(), ED25519);
        assert!(key.fingerprint().starts_with("SHA256:") && key.fingerprint().len() == 50);
        let tail = ED25519.split_once(' ').unwrap().1;
        for odd in [
            format!("  {ED25519}\n"),
            format!("ssh-ed25519\t{tail}"),
            format!("ssh-ed25519   {tail}   "),
            format!("{ED25519}\r\n"),
        ] {
            assert_eq!(PublicKey::from_line(&odd).unwrap(), key, "{odd:?}");
        }
        let named = PublicKey::from_line(&format!("{ED25519} alice at work")).unwrap();
        assert_eq!((named.comment(), named.blob()), ("alice at work", key.blob()));
    }

    #[test]
    fn every_algorithm_is_read() {
        let point = |length: usize| [&[4u8][..], &vec![7; length - 1]].concat();
        let modulus = [&[0u8, 0x80][..], &[1; 255]].concat();
        for parts in [
            vec![&b"ssh-ed25519"[..], &[1; 32]],
            vec![&b"ecdsa-sha2-nistp256"[..], b"nistp256", &point(65)],
            vec![&b"ecdsa-sha2-nistp384"[..], b"nistp384", &point(97)],
            vec![&b"ecdsa-sha2-nistp521"[..], b"nistp521", &point(133)],
            vec![&b"ssh-rsa"[..], &[1, 0, 1], &modulus],
            vec![&b"ssh-mldsa44-ed25519"[..], &[1; 1344]],
            vec![&b"sk-ssh-ed25519@openssh.com"[..], &[1; 32], b"ssh:"],
            vec![&b"sk-ecdsa-sha2-nistp256@openssh.com"[..], b"nistp256", &point(65), b"ssh:"],
        ] {
            let key = PublicKey::from_line(&line(&parts)).unwrap();
            assert_eq!(key.kind().as_bytes(), parts[0]);
            assert_eq!(PublicKey::parse(key.blob()).unwrap(), key);
            // A byte more or less is no key.
            let whole = blob(&parts);
            assert!(PublicKey::parse(&whole[..whole.len() - 1]).is_err());
            assert!(PublicKey::parse(&[&whole[..], &[0]].concat()).is_err());
        }
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let weak = [&[0u8, 0x80][..], &[1; 127]].concat();
        let padded = [&[0u8, 0, 0x80][..], &[1; 255]].concat();
        let strong = [&[0u8, 0x80][..], &[1; 255]].concat();
        let tail = ED25519.split_once(' ').unwrap().1;
        for wrong in [
            String::new(),
            "ssh-ed25519".to_owned(),
            "ssh-ed25519 !!!!".to_owned(),
            format!("ssh-rsa {tail}"),
            format!("command=\"x\" {ED25519}"),
            format!("cert-authority {ED25519}"),
            format!("# {ED25519}"),
            format!("{ED25519}\n{ED25519}"),
            format!("ssh-ed25519 {}", &tail[..60]),
            format!("SSH-ED25519 {tail}"),
            line(&[b"ssh-dss", &[1; 20]]),
            line(&[b"ssh-ed25519", &[1; 31]]),
            line(&[b"ssh-ed25519", &[1; 33]]),
            line(&[b"ssh-mldsa44-ed25519", &[1; 1312]]),
            line(&[b"ssh-ed25519-cert-v01@openssh.com", &[1; 32]]),
            line(&[b"ecdsa-sha2-nistp256", b"nistp384", &[4; 97]]),
            line(&[b"ecdsa-sha2-nistp256", b"nistp256", &[2; 33]]),
            line(&[b"ssh-rsa", &[1, 0, 1], &weak]),
            line(&[b"ssh-rsa", &[3], &strong]),
            line(&[b"ssh-rsa", &[1, 0, 0], &strong]),
            line(&[b"ssh-rsa", &[0x81, 0, 1], &strong]),
            line(&[b"ssh-rsa", &[1, 0, 1], &padded]),
            "ssh-ed25519 AAAA//////8=".to_owned(),
            format!("{ED25519} {}", "x".repeat(2048)),
        ] {
            assert!(PublicKey::from_line(&wrong).is_err(), "{wrong}");
        }
    }
}
