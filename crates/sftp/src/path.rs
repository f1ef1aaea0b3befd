//! Paths as clients write them, made absolute and normal before anything is opened.
//!
//! `.` and `..` are removed by their text, before symbolic links are followed: `link/..` is the folder that contains
//! the link, as in a shell's `cd`. The result names nothing above `/`, however many `..` a client writes. That is
//! convenience, not confinement: the volume confines what it opens.

use crate::error::{Error, Result, Status};
use crate::limits::MAX_PATH;

/// A normal absolute path: it begins with `/`, has no empty, `.` or `..` component, and ends with `/` only if it is `/`. Its
/// bytes need not be UTF-8, and none is zero.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RemotePath(Vec<u8>);

impl RemotePath {
    /// The path `/`.
    #[must_use]
    pub fn root() -> Self {
        Self(b"/".to_vec())
    }

    /// Makes a client's path absolute, from `home` if it is relative, and normal.
    ///
    /// # Errors
    /// It is too long or contains a zero byte.
    pub fn parse(text: &[u8], home: &Self) -> Result<Self> {
        if text.contains(&0) {
            return Err(Error::new(Status::BadMessage, "the path contains a zero byte"));
        }
        let is_absolute = text.first() == Some(&b'/');
        let mut path = if is_absolute { Self::root() } else { home.clone() };
        for component in text.split(|byte| *byte == b'/') {
            match component {
                b"" | b"." => {}
                b".." => path.leave(),
                name => path.enter(name),
            }
            if path.0.len() > MAX_PATH {
                return Err(Error::failure("the path is too long"));
            }
        }
        Ok(path)
    }

    fn enter(&mut self, name: &[u8]) {
        if self.0.len() > 1 {
            self.0.push(b'/');
        }
        self.0.extend_from_slice(name);
    }

    fn leave(&mut self) {
        let end = self.0.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        self.0.truncate(end.max(1));
    }

    /// The bytes, beginning with `/`.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The path from `/`, without the slash at the beginning; `.` is `/` itself.
    #[must_use]
    pub fn relative(&self) -> &[u8] {
        if self.is_root() { b"." } else { &self.0[1..] }
    }

    /// Whether this is `/`.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.0.len() == 1
    }

    /// The names of the path, from `/` on.
    pub fn components(&self) -> impl Iterator<Item = &[u8]> {
        self.0[1..].split(|byte| *byte == b'/').filter(|name| !name.is_empty())
    }

    /// The last name; `/` has none.
    #[must_use]
    pub fn name(&self) -> Option<&[u8]> {
        self.components().last()
    }

    /// The folder that contains it; that of `/` is `/`.
    #[must_use]
    pub fn parent(&self) -> Self {
        let mut parent = self.clone();
        parent.leave();
        parent
    }

    /// The path of an entry of this folder. `name` is one component that is neither `.` nor `..`.
    #[must_use]
    pub fn join(&self, name: &[u8]) -> Self {
        let mut path = self.clone();
        path.enter(name);
        path
    }

    /// The rest of this path below a folder, as a path of its own; none if it is not in it. A folder is in itself.
    #[must_use]
    pub fn below(&self, folder: &Self) -> Option<Self> {
        if folder.is_root() {
            return Some(self.clone());
        }
        match self.0.strip_prefix(&*folder.0)? {
            b"" => Some(Self::root()),
            rest if rest[0] == b'/' => Some(Self(rest.to_vec())),
            _ => None,
        }
    }

    /// This path with another one below it.
    #[must_use]
    pub fn append(&self, rest: &Self) -> Self {
        rest.components().fold(self.clone(), |path, name| path.join(name))
    }
}

impl std::fmt::Debug for RemotePath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(&self.0))
    }
}
