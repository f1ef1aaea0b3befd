//! Phrases that confused readers of comments and documents. A word list, not a grammar: it gets a row whenever a
//! reader stumbles again.

/// A phrase in lower case, and advice on what to write instead.
struct Phrase {
    words: &'static str,
    instead: &'static str,
}

const PHRASES: &[Phrase] = &[
    Phrase { words: "it is looked whether", instead: "say what checks whether" },
    Phrase { words: "is looked for", instead: "say what searches for it" },
    Phrase { words: "is looked whether", instead: "say what checks whether" },
    Phrase { words: "are looked for", instead: "say what searches for them" },
    Phrase { words: "be looked at", instead: "name the act: read, checked, validated, shown" },
    Phrase { words: "is looked at", instead: "name the act: read, checked, validated, shown" },
    Phrase { words: "are looked at", instead: "name the act: read, checked, validated, shown" },
    Phrase { words: "was looked at", instead: "name the act: read, checked, validated, shown" },
    Phrase { words: "were looked at", instead: "name the act: read, checked, validated, shown" },
    Phrase { words: "who has no ", instead: "name the person or program: a client without" },
    Phrase { words: "who has none", instead: "name the person or program: a client without" },
    Phrase { words: "at a time that have", instead: "connections that have ..., at most" },
    Phrase { words: "how often it is", instead: "interval between ..." },
    Phrase { words: "how often is", instead: "interval between ..." },
    Phrase { words: "rfc has it", instead: "by RFC n, section m" },
    Phrase { words: "as it has it", instead: "name what has what" },
    Phrase {
        words: "whoever",
        instead: "name the person or program: the caller, the operator, code that",
    },
    Phrase { words: "is said of", instead: "say what applies to what" },
    Phrase { words: "goes with it", instead: "say how the two belong together" },
    Phrase { words: "so many of", instead: "give the number, or say this many" },
    Phrase { words: "what comes of", instead: "result, outcome" },
    Phrase { words: "came of it", instead: "result, outcome" },
    Phrase { words: "anew", instead: "again" },
    Phrase { words: "is no error", instead: "is not an error" },
    Phrase { words: "has its way", instead: "say what takes effect" },
];

/// Comments of a field or variant that say nothing about it.
const EMPTY: &[&str] = &["which.", "how.", "why.", "who.", "where.", "when.", "what.", "whether."];

/// Phrases to improve in a file: line and advice. In source code only comments count, in other files everything.
pub fn stumbles(text: &str, is_source: bool) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let said = match (is_source, line.strip_prefix("//")) {
            (true, None) => continue,
            (true, Some(comment)) => comment.trim_start_matches(['/', '!']).trim(),
            (false, _) => line.trim_end(),
        };
        let said = said.to_lowercase();
        if is_source && EMPTY.contains(&said.as_str()) {
            found.push((
                index + 1,
                format!("{said:?} says nothing: give the meaning, or leave it out"),
            ));
        }
        if let Some(phrase) = PHRASES.iter().find(|phrase| said.contains(phrase.words)) {
            found.push((index + 1, format!("{:?}: {}", phrase.words, phrase.instead)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::stumbles;

    #[test]
    fn comments_and_documents_are_read_and_code_is_not() {
        let lines = |text: &str, is_source| {
            stumbles(text, is_source).into_iter().map(|(line, _)| line).collect::<Vec<_>>()
        };
        let source = "//! It is looked whether.\nlet x = \"it is looked\";\n    /// Which.\n    // Who has no key.";
        assert_eq!(lines(source, true), [1, 3, 4]);
        assert_eq!(lines("A page.\nTargets are looked at.", false), [2]);
        assert!(lines("/// The reason why.\n// It is looked up.", true).is_empty());
    }
}
