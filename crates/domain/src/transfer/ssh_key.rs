//! Public keys of users, as lines of `authorized_keys` have them: `ssh-ed25519 AAAA... comment`.
//!
//! Options, certificates and `cert-authority` lines are refused: a key of a user stands for itself.

use outlast_ssh::{KeyError, PublicKey};

use super::TransferError;

/// Longest line, in characters: AWS's limit.
const MAX_LINE: usize = 2048;

/// A line that was read.
pub(super) struct KeyLine {
    /// The key.
    pub key: PublicKey,
    comment: String,
}

impl KeyLine {
    /// Reads a line.
    pub fn parse(text: &str) -> Result<Self, TransferError> {
        let invalid = |why: &str| {
            TransferError::invalid(format!("Unsupported or invalid SSH public key format: {why}"))
        };
        let text = text.trim();
        if text.len() > MAX_LINE || text.contains(|c: char| c.is_control() && c != '\t') {
            return Err(invalid("it is not one line of at most 2048 characters"));
        }
        let key = PublicKey::from_openssh_line(text)
            .map_err(|error: KeyError| invalid(&error.to_string()))?;
        let rest = text.split_once([' ', '\t']).map_or("", |(_, rest)| rest.trim_start());
        let comment = rest.split_once([' ', '\t']).map_or("", |(_, comment)| comment.trim());
        Ok(Self { key, comment: comment.to_owned() })
    }

    /// The line, in one spelling.
    pub fn text(&self) -> String {
        let line = self.key.to_openssh_line();
        if self.comment.is_empty() { line } else { format!("{line} {}", self.comment) }
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    /// `ssh-keygen -t ed25519`, OpenSSH 9.2.
    const ED25519: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ9FH3RVU3BSxqBqzhQyBn5oF1Uxsp0pHvhMU+EvhUNg";

    fn string(bytes: &[u8]) -> Vec<u8> {
        [&u32::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat()
    }

    fn line(parts: &[&[u8]]) -> String {
        let name = String::from_utf8(parts[0].to_vec()).unwrap();
        let blob: Vec<u8> = parts.iter().flat_map(|part| string(part)).collect();
        format!("{name} {}", STANDARD.encode(blob))
    }

    #[test]
    fn lines_are_read_in_all_their_spellings() {
        let read = |text: &str| KeyLine::parse(text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(read(ED25519).text(), ED25519);
        let tail = ED25519.split_once(' ').unwrap().1;
        for odd in [
            format!("  {ED25519}\n"),
            format!("ssh-ed25519\t{tail}"),
            format!("ssh-ed25519   {tail}   "),
            format!("{ED25519}\r\n"),
        ] {
            assert_eq!(read(&odd).text(), ED25519, "{odd:?}");
        }
        let named = format!("{ED25519} alice at work");
        assert_eq!(read(&named).text(), named);
        assert_eq!(read(&format!("ssh-ed25519 \t {tail} \t alice at work ")).text(), named);
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
            let text = line(&parts);
            assert_eq!(KeyLine::parse(&text).unwrap_or_else(|e| panic!("{e}")).text(), text);
        }
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let weak = [&[0u8, 0x80][..], &[1; 127]].concat();
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
            format!("{ED25519}\0"),
            format!("ssh-ed25519 {}", &tail[..60]),
            format!("SSH-ED25519 {tail}"),
            line(&[b"ssh-dss", &[1; 20]]),
            line(&[b"ssh-ed25519", &[1; 31]]),
            line(&[b"ssh-ed25519", &[1; 33]]),
            line(&[b"ssh-ed25519", &[1; 32], b"more"]),
            line(&[b"ssh-mldsa44-ed25519", &[1; 1312]]),
            line(&[b"ssh-ed25519-cert-v01@openssh.com", &[1; 32]]),
            line(&[b"ecdsa-sha2-nistp256", b"nistp384", &[4; 97]]),
            line(&[b"ecdsa-sha2-nistp256", b"nistp256", &[2; 33]]),
            line(&[b"ssh-rsa", &[1, 0, 1], &weak]),
            line(&[b"ssh-rsa", &[1, 0, 0], &strong]),
            "ssh-ed25519 AAAA//////8=".to_owned(),
            format!("{ED25519} {}", "x".repeat(2048)),
        ] {
            assert!(KeyLine::parse(&wrong).is_err(), "{wrong}");
        }
    }
}
