//! Patterns of file names: `*.tar.gz`, `linux/*.bin`, `**/*.so`.

/// Longest pattern, in characters: matching takes time in proportion to pattern and path.
pub const MAX_PATTERN_LEN: usize = 1024;

/// A pattern. `*` stands for any characters but `/`, `?` for one of them, `**/` for any number of folders, and a final
/// `**` for everything below. A pattern without `/` is compared with the last part of a path, as in `.gitignore`; but
/// one that begins with `git:`, for what is no file, with the whole name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    parts: Vec<Part>,
    is_of_name: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Character(char),
    /// `?`
    One,
    /// `*`
    Name,
    /// `**/`
    Folders,
    /// `**` at the end.
    Rest,
}

impl Pattern {
    /// Parses a pattern. The error says what is wrong, in words for its author.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("a pattern is not empty".into());
        }
        if text.chars().count() > MAX_PATTERN_LEN {
            return Err(format!("a pattern has at most {MAX_PATTERN_LEN} characters"));
        }
        let mut parts = Vec::new();
        let mut rest = text.trim_start_matches("./");
        while let Some(first) = rest.chars().next() {
            if let Some(after) = rest.strip_prefix("**/") {
                parts.push(Part::Folders);
                rest = after;
            } else if rest == "**" {
                parts.push(Part::Rest);
                rest = "";
            } else if rest.starts_with("**") {
                return Err("** is a whole part of a path, as in **/*.so".into());
            } else {
                parts.push(match first {
                    '*' => Part::Name,
                    '?' => Part::One,
                    other => Part::Character(other),
                });
                rest = rest.get(first.len_utf8()..).unwrap_or_default();
            }
        }
        let is_of_name = !text.contains('/') && !text.starts_with("git:");
        Ok(Self { text: text.to_owned(), parts, is_of_name })
    }

    /// The same for text that is no path, such as a URL: all of it is compared.
    pub fn of_text(text: &str) -> Result<Self, String> {
        Ok(Self { is_of_name: false, ..Self::parse(text)? })
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether a path with `/` between its parts matches.
    pub fn matches(&self, path: &str) -> bool {
        let compared = match path.rsplit_once('/') {
            Some((_, name)) if self.is_of_name => name,
            _ => path,
        };
        let text: Vec<char> = compared.chars().collect();
        let mut reached = vec![false; text.len() + 1];
        if let Some(first) = reached.first_mut() {
            *first = true;
        }
        for part in &self.parts {
            reached = step(*part, &reached, &text);
        }
        reached.last().copied().unwrap_or(false)
    }
}

/// The positions in `text` that are reached after `part`, from those in `before`.
fn step(part: Part, before: &[bool], text: &[char]) -> Vec<bool> {
    let mut after = Vec::with_capacity(before.len());
    // Whether a part that stands for several characters has begun at or before this position.
    let mut begun = false;
    for (at, here) in before.iter().enumerate() {
        let previous = at.checked_sub(1).and_then(|at| text.get(at)).copied();
        let from = at.checked_sub(1).and_then(|at| before.get(at)).copied().unwrap_or(false);
        after.push(match part {
            Part::Character(wanted) => from && previous == Some(wanted),
            Part::One => from && previous != Some('/'),
            Part::Name => {
                begun = *here || (begun && previous != Some('/'));
                begun
            }
            Part::Folders => {
                let below = begun && previous == Some('/');
                begun |= *here;
                *here || below
            }
            Part::Rest => {
                begun |= *here;
                begun
            }
        });
    }
    after
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    #[test]
    fn names_and_paths_match() {
        for (pattern, yes, no) in [
            ("*.bin", &["a.bin", "x/y/a.bin", ".bin"][..], &["a.bin.p7s", "a.bi", "bin"][..]),
            ("a?c", &["abc", "x/aäc"], &["ac", "abbc", "a/c"]),
            ("x/*.bin", &["x/a.bin"], &["x/y/a.bin", "a.bin", "y/x/a.bin"]),
            ("**/*.so", &["a.so", "x/a.so", "x/y/a.so"], &["a.s", "x/a.so/b"]),
            ("x/**/a", &["x/a", "x/y/a", "x/y/z/a"], &["x/ya", "a", "x/y/b"]),
            ("x/**", &["x/a", "x/y/z"], &["x", "y/a"]),
            ("./x/a", &["x/a"], &["x/b"]),
            ("*", &["a", "x/a"], &[]),
            ("git:commit", &["git:commit"], &["git:tag/v1/git:commit", "x/git:commit", "commit"]),
            ("git:*", &["git:commit", "git:push"], &["git:tag/v1", "git:tag/git:push"]),
            ("git:tag/v*", &["git:tag/v1"], &["git:tag/v1/v2", "x/git:tag/v1"]),
        ] {
            let parsed = Pattern::parse(pattern).unwrap();
            for path in yes {
                assert!(parsed.matches(path), "{pattern} {path}");
            }
            for path in no {
                assert!(!parsed.matches(path), "{pattern} {path}");
            }
        }
        assert!(Pattern::parse("").is_err() && Pattern::parse("a**b").is_err());
        assert!(Pattern::parse(&"a".repeat(2000)).is_err());
    }

    /// Backtracking would take forever.
    #[test]
    fn a_long_pattern_is_matched_in_time() {
        let pattern = Pattern::parse(&"*a".repeat(500)).unwrap();
        assert!(!pattern.matches(&("a".repeat(4000) + "b")));
    }
}
