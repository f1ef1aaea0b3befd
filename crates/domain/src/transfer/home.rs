//! Home directories: which bucket and key a path of a user stands for.
//!
//! Source: Transfer Family User Guide, "Using logical directories". With `PATH` the first component of a path is the
//! bucket; with `LOGICAL` the mappings decide, and the longest entry that is a prefix wins. Paths have no `.` and `..`
//! once they are here: the protocol's are resolved lexically, above the root they stay at the root, and those in a
//! mapping are refused.

use serde::{Deserialize, Serialize};

use super::TransferError;
use crate::limits::MAX_HOME_MAPPINGS;

/// Kind of a mapping's target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum MappingKind {
    /// `DIRECTORY`
    #[default]
    Directory,
    /// `FILE`
    File,
}

/// A mapping as given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mapping {
    /// Path that the user sees.
    pub entry: String,
    /// `/bucket/path`
    pub target: String,
    /// What the target is, if it was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<MappingKind>,
}

/// Home of a user as given, with its variables.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Home {
    /// `HomeDirectory`: where the user begins.
    pub directory: Option<String>,
    /// `HomeDirectoryMappings`, if the type is `LOGICAL`.
    pub mappings: Option<Vec<Mapping>>,
}

/// A bucket and a path in it, for a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directory {
    entry: Vec<Vec<u8>>,
    bucket: String,
    path: Vec<Vec<u8>>,
    kind: MappingKind,
}

/// The directories of a user, with their variables replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directories {
    start: Vec<Vec<u8>>,
    /// `None` for all buckets: the type is `PATH`.
    mapped: Option<Vec<Directory>>,
}

/// What a path stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Located {
    /// A path in a bucket; empty for the bucket itself.
    Object {
        /// Name of the bucket.
        bucket: String,
        /// Path without a slash at its begin or end.
        path: Vec<u8>,
        /// Whether the path is the target of a mapping, which cannot be removed or renamed.
        is_mapped: bool,
        /// Whether that mapping is one of a file, which need not exist.
        is_file: bool,
        /// Names below it that mappings add.
        more: Vec<Vec<u8>>,
    },
    /// A directory that exists only because mappings are below it, with their names. For `PATH` the root, without names.
    Virtual(Vec<Vec<u8>>),
    /// Nothing.
    Missing,
}

impl Home {
    /// Whether the type is `LOGICAL`.
    pub fn is_logical(&self) -> bool {
        self.mappings.is_some()
    }

    /// Checks a home that a caller wants to store.
    pub fn check(&self) -> Result<(), TransferError> {
        if let Some(mappings) = &self.mappings {
            if mappings.is_empty() {
                let text = "HomeDirectoryMappings must have at least one entry when HomeDirectoryType is LOGICAL";
                return Err(TransferError::invalid(text));
            }
            if mappings.len() > MAX_HOME_MAPPINGS {
                return Err(TransferError::invalid(format!(
                    "HomeDirectoryMappings has at most {MAX_HOME_MAPPINGS} entries here"
                )));
            }
        }
        // With any name, since what is wrong with a home does not depend on it.
        self.resolve("user").map(|_| ()).map_err(TransferError::InvalidRequest)
    }

    /// Replaces the variables by what they are for a user. The error is a sentence.
    pub fn resolve(&self, user: &str) -> Result<Directories, String> {
        let expand = |text: &str| text.replace(USER_NAME, user);
        let start = match self.directory.as_deref() {
            None | Some("") => Vec::new(),
            Some(directory) => {
                plain(&expand(directory)).ok_or_else(|| wrong("HomeDirectory", directory))?
            }
        };
        let Some(mappings) = &self.mappings else {
            if let Some(bucket) = start.first().filter(|bucket| !is_bucket(bucket)) {
                return Err(format!(
                    "{} is not the name of a bucket",
                    String::from_utf8_lossy(bucket)
                ));
            }
            return Ok(Directories { start, mapped: None });
        };
        let mut mapped: Vec<Directory> = Vec::new();
        for mapping in mappings {
            let entry =
                plain(&expand(&mapping.entry)).ok_or_else(|| wrong("Entry", &mapping.entry))?;
            let target =
                plain(&expand(&mapping.target)).ok_or_else(|| wrong("Target", &mapping.target))?;
            let Some((bucket, path)) = target.split_first().filter(|(bucket, _)| is_bucket(bucket))
            else {
                return Err(wrong("Target", &mapping.target));
            };
            if mapped.iter().any(|other| other.entry == entry) {
                return Err(format!("two mappings have the Entry {}", short(&mapping.entry)));
            }
            let kind = mapping.kind.unwrap_or_default();
            if kind == MappingKind::File && (entry.is_empty() || path.is_empty()) {
                return Err(format!(
                    "the mapping of {} is not one of a file",
                    short(&mapping.entry)
                ));
            }
            let bucket = String::from_utf8_lossy(bucket).into_owned();
            mapped.push(Directory { entry, bucket, path: path.to_vec(), kind });
        }
        Ok(Directories { start, mapped: Some(mapped) })
    }
}

/// The only variable of homes.
const USER_NAME: &str = "${transfer:UserName}";

fn wrong(member: &str, text: &str) -> String {
    format!(
        "{member} {} is not an absolute path without empty components, \".\" and \"..\" (a target begins with a bucket)",
        short(text)
    )
}

fn short(text: &str) -> String {
    text.chars().take(128).collect()
}

/// The components of an absolute path, of which none has a special meaning.
pub(super) fn plain(path: &str) -> Option<Vec<Vec<u8>>> {
    let rest = path.strip_prefix('/')?;
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    if rest.is_empty() {
        return Some(Vec::new());
    }
    let is_plain = |part: &str| {
        !matches!(part, "" | "." | "..")
            && !part.contains(|c: char| c.is_control() || c == '\\')
            && !part.contains("${")
    };
    rest.split('/').map(|part| is_plain(part).then(|| part.as_bytes().to_vec())).collect()
}

/// S3 User Guide, "Bucket naming rules".
pub(super) fn is_bucket(name: &[u8]) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (3..=63).contains(&name.len())
        && name.iter().all(|byte| fits(*byte) || matches!(byte, b'.' | b'-'))
        && name.first().is_some_and(|first| fits(*first))
        && name.last().is_some_and(|last| fits(*last))
        && !name.windows(2).any(|pair| pair == b"..")
}

/// The components of a path that a peer sent, from the root on: `..` above the root stays there.
fn components(start: &[Vec<u8>], path: &[u8]) -> Vec<Vec<u8>> {
    let mut found = if path.first() == Some(&b'/') { Vec::new() } else { start.to_vec() };
    for part in path.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => {
                found.pop();
            }
            part => found.push(part.to_vec()),
        }
    }
    found
}

impl Directories {
    /// Where the user begins, as an absolute path.
    pub fn start(&self) -> Vec<u8> {
        absolute(&self.start)
    }

    /// The absolute path that a path of the user means (`realpath` without symbolic links).
    pub fn absolute(&self, path: &[u8]) -> Vec<u8> {
        absolute(&components(&self.start, path))
    }

    /// What a path of the user stands for.
    pub fn locate(&self, path: &[u8]) -> Located {
        let parts = components(&self.start, path);
        if parts.iter().any(|part| part.contains(&0)) {
            return Located::Missing;
        }
        let Some(mapped) = &self.mapped else {
            return match parts.split_first() {
                None => Located::Virtual(Vec::new()),
                Some((bucket, rest)) if is_bucket(bucket) => Located::Object {
                    bucket: String::from_utf8_lossy(bucket).into_owned(),
                    path: rest.join(&b'/'),
                    is_mapped: rest.is_empty(),
                    is_file: false,
                    more: Vec::new(),
                },
                Some(_) => Located::Missing,
            };
        };
        let mut more: Vec<Vec<u8>> = Vec::new();
        let below = mapped.iter().filter(|one| one.entry.len() > parts.len());
        for one in below.filter(|one| one.entry.starts_with(&parts)) {
            let name = &one.entry[parts.len()];
            if !more.contains(name) {
                more.push(name.clone());
            }
        }
        let above = mapped.iter().filter(|one| parts.starts_with(&one.entry));
        let Some(found) = above.max_by_key(|one| one.entry.len()) else {
            return match more.is_empty() && !parts.is_empty() {
                true => Located::Missing,
                false => Located::Virtual(more),
            };
        };
        let rest = &parts[found.entry.len()..];
        if found.kind == MappingKind::File && !rest.is_empty() {
            return Located::Missing;
        }
        Located::Object {
            bucket: found.bucket.clone(),
            path: [&found.path, rest].concat().join(&b'/'),
            is_mapped: rest.is_empty(),
            is_file: found.kind == MappingKind::File,
            more,
        }
    }
}

fn absolute(parts: &[Vec<u8>]) -> Vec<u8> {
    [&b"/"[..], &parts.join(&b'/')].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(entry: &str, target: &str) -> Mapping {
        Mapping { entry: entry.into(), target: target.into(), kind: None }
    }

    fn logical(mappings: &[(&str, &str)]) -> Home {
        let mappings = mappings.iter().map(|(entry, target)| mapping(entry, target)).collect();
        Home { directory: None, mappings: Some(mappings) }
    }

    fn found(directories: &Directories, path: &str) -> String {
        match directories.locate(path.as_bytes()) {
            Located::Object { bucket, path, .. } => {
                format!("{bucket}:{}", String::from_utf8(path).unwrap())
            }
            Located::Virtual(names) => {
                let names = names.into_iter().map(|name| String::from_utf8(name).unwrap());
                format!("[{}]", names.collect::<Vec<_>>().join(" "))
            }
            Located::Missing => "-".to_owned(),
        }
    }

    #[test]
    fn a_path_begins_with_a_bucket() {
        let home = Home { directory: Some("/files/${transfer:UserName}".into()), mappings: None };
        let directories = home.resolve("alice").unwrap();
        assert_eq!(directories.start(), b"/files/alice");
        for (path, expected) in [
            ("", "files:alice"),
            (".", "files:alice"),
            ("a/b", "files:alice/a/b"),
            ("../bob", "files:bob"),
            ("../../other/x", "other:x"),
            ("../../../..", "[]"),
            ("/", "[]"),
            ("/other", "other:"),
            ("/other//x/", "other:x"),
            ("/Other/x", "-"),
            ("/..", "[]"),
            ("/../../etc/passwd", "etc:passwd"),
            ("/a/x", "-"),
        ] {
            assert_eq!(found(&directories, path), expected, "{path}");
        }
    }

    #[test]
    fn mappings_are_the_whole_tree() {
        let home = logical(&[
            ("/", "/files/home/${transfer:UserName}"),
            ("/shared", "/public/all"),
            ("/deep/er", "/public/deep"),
        ]);
        let directories = home.resolve("alice").unwrap();
        for (path, expected) in [
            ("/", "files:home/alice"),
            ("/x", "files:home/alice/x"),
            ("/../x", "files:home/alice/x"),
            ("/shared", "public:all"),
            ("/shared/../../x", "files:home/alice/x"),
            ("/sharedx", "files:home/alice/sharedx"),
            ("/deep", "files:home/alice/deep"),
            ("/deep/er/x", "public:deep/x"),
        ] {
            assert_eq!(found(&directories, path), expected, "{path}");
        }
        let Located::Object { more, is_mapped, .. } = directories.locate(b"/") else {
            panic!("the root is mapped");
        };
        assert_eq!((more, is_mapped), (vec![b"shared".to_vec(), b"deep".to_vec()], true));
        // Without a mapping of the root there is nothing beside the entries.
        let directories = logical(&[("/in/a", "/files/in"), ("/out", "/files/out")]);
        let directories = directories.resolve("alice").unwrap();
        for (path, expected) in [
            ("/", "[in out]"),
            ("/in", "[a]"),
            ("/in/a/../../out/x", "files:out/x"),
            ("/in/b", "-"),
            ("/x", "-"),
        ] {
            assert_eq!(found(&directories, path), expected, "{path}");
        }
    }

    #[test]
    fn a_mapped_file_has_nothing_below_it() {
        let mut home = logical(&[("/notes.txt", "/files/a/notes.txt")]);
        home.mappings.as_mut().unwrap()[0].kind = Some(MappingKind::File);
        let directories = home.resolve("alice").unwrap();
        assert_eq!(found(&directories, "/notes.txt"), "files:a/notes.txt");
        assert!(matches!(
            directories.locate(b"/notes.txt"),
            Located::Object { is_mapped: true, is_file: true, .. }
        ));
        assert_eq!(found(&directories, "/notes.txt/x"), "-");
    }

    #[test]
    fn homes_that_lead_elsewhere_are_refused() {
        for directory in [
            "x",
            "/files/../x",
            "/files/./x",
            "/files//x",
            "/../x",
            "/Files",
            "/ab",
            "/a..b",
            "/files/${aws:username}",
            "/files/a\0b",
        ] {
            let home = Home { directory: Some(directory.into()), mappings: None };
            assert!(home.check().is_err(), "{directory}");
        }
        for (entry, target) in [
            ("/", "/"),
            ("/", "/files/.."),
            ("/..", "/files"),
            ("/a/../b", "/files"),
            ("x", "/files"),
            ("/", "files"),
            ("/", "/-files"),
            ("/", "/../files"),
        ] {
            assert!(logical(&[(entry, target)]).check().is_err(), "{entry} {target}");
        }
        assert!(logical(&[]).check().is_err());
        assert!(logical(&[("/a", "/files/a"), ("/a/", "/files/b")]).check().is_err());
        let many: Vec<_> = (0..=MAX_HOME_MAPPINGS)
            .map(|number| mapping(&format!("/{number}"), "/files"))
            .collect();
        assert!(Home { directory: None, mappings: Some(many) }.check().is_err());
    }

    #[test]
    fn names_need_not_be_utf8() {
        let directories = logical(&[("/", "/files")]).resolve("alice").unwrap();
        let located = directories.locate(b"/\xff\xfe/x");
        assert!(
            matches!(&located, Located::Object { path, .. } if path == b"\xff\xfe/x"),
            "{located:?}"
        );
        assert_eq!(directories.locate(b"/a\0b"), Located::Missing);
    }
}
