//! Temporary credentials in AWS's credentials file. Everything else in the file, comments too, stays as it is.

use outlast_crypto::Secret;

/// Keys that belong together: one set of credentials.
const KEYS: [&str; 3] = ["aws_access_key_id", "aws_secret_access_key", "aws_session_token"];

/// Credentials to write.
pub struct Written<'a> {
    /// Access key id.
    pub access_key_id: &'a str,
    /// Secret access key.
    pub secret: &'a Secret,
    /// Session token.
    pub token: &'a Secret,
}

/// The file's text with these credentials in the section of a profile.
pub fn with(text: &Secret, profile: &str, written: &Written<'_>) -> Secret {
    let title = format!("[{profile}]");
    let id = written.access_key_id.as_bytes();
    let values = [id, written.secret.expose(), written.token.expose()];
    let room = values.iter().map(|value| value.len() + 32).sum::<usize>();
    // Long enough from the start: a buffer that grows leaves copies behind.
    let mut out = Vec::with_capacity(text.len() + title.len() + room + 8);
    let put = |out: &mut Vec<u8>| {
        for (key, value) in KEYS.iter().zip(values) {
            for part in [key.as_bytes(), b" = ", value, b"\n"] {
                out.extend_from_slice(part);
            }
        }
    };
    let (mut is_inside, mut is_done) = (false, false);
    for line in text.expose().split_inclusive(|byte| *byte == b'\n') {
        let trimmed = line.trim_ascii();
        if trimmed.starts_with(b"[") {
            is_inside = trimmed == title.as_bytes();
            out.extend_from_slice(line);
            if is_inside && !is_done {
                end_line(&mut out);
                put(&mut out);
                is_done = true;
            }
            continue;
        }
        let key = trimmed.split(|byte| *byte == b'=').next().unwrap_or_default().trim_ascii();
        let is_old = KEYS.iter().any(|name| key.eq_ignore_ascii_case(name.as_bytes()));
        if !(is_inside && is_old) {
            out.extend_from_slice(line);
        }
    }
    if !is_done {
        end_line(&mut out);
        out.extend_from_slice(title.as_bytes());
        out.push(b'\n');
        put(&mut out);
    }
    Secret::new(out)
}

fn end_line(out: &mut Vec<u8>) {
    if out.last().is_some_and(|byte| *byte != b'\n') {
        out.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        let secret = |text: &str| Secret::new(text.into());
        let written = Written { access_key_id: "ID", secret: &secret("S=1"), token: &secret("T") };
        let out = with(&secret(text), "web", &written);
        String::from_utf8(out.expose().to_vec()).unwrap()
    }

    const NEW: &str =
        "[web]\naws_access_key_id = ID\naws_secret_access_key = S=1\naws_session_token = T\n";

    #[test]
    fn only_the_profile_changes() {
        assert_eq!(written(""), NEW);
        assert_eq!(written("# mine\n[default]\na = b"), format!("# mine\n[default]\na = b\n{NEW}"));
        let old = "[web]\n# note\nAWS_ACCESS_KEY_ID=old\naws_secret_access_key = old\nregion = x\n\n[other]\naws_access_key_id = kept\n";
        let expected = format!("{NEW}# note\nregion = x\n\n[other]\naws_access_key_id = kept\n");
        assert_eq!(written(old), expected);
        assert_eq!(written(&expected), expected);
        assert_eq!(written("[web]"), NEW);
        assert_eq!(written("[webs]\nx = 1\n"), format!("[webs]\nx = 1\n{NEW}"));
    }
}
