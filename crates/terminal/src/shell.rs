//! Quoting for a shell: printed commands can be pasted as they are.

use std::path::Path;

/// The path as one word of a POSIX shell.
pub fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%".contains(c);
    // A leading hyphen would make it an option; a tilde is quoted so that it is not expanded.
    if !text.is_empty() && text.chars().all(plain) && !text.starts_with('-') {
        return text;
    }
    let text = if text.starts_with('-') { format!("./{text}") } else { text };
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn words_come_through_a_shell_as_they_are() {
        for text in [
            "data",
            "/srv/out last",
            "it's",
            "a$b`c`\"d\\e",
            "~x",
            "*",
            "new\nline",
            "Daten für uns",
        ] {
            let word = quoted(Path::new(text));
            let output = Command::new("sh").arg("-c").arg(format!("printf %s {word}")).output();
            assert_eq!(String::from_utf8(output.unwrap().stdout).unwrap(), text, "{word}");
        }
        assert_eq!(quoted(Path::new("/srv/outlast")), "/srv/outlast");
        assert_eq!(quoted(Path::new("-x")), "'./-x'");
    }
}
