//! External code (libraries, loaders, programs) is taken only from folders that nobody else may write.
//!
//! The lab may run as root in a folder that somebody else prepared. So it loads nothing from the current folder or
//! from folders above a file: only what the user names, what the system's loader and path find, and `target/peers`
//! next to the build itself.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

/// Folders of builds in cargo's `target`.
const PROFILES: &[&str] = &["debug", "release"];
/// Writable by others than the owner.
const WRITABLE: u32 = 0o022;
/// In such a folder only the owner may replace a file.
const STICKY: u32 = 0o1000;

/// Why a file or folder is not used.
#[derive(Debug, thiserror::Error)]
pub enum Untrusted {
    /// It does not exist.
    #[error("{}: {error}", .place.display())]
    Missing {
        /// Path that was looked up.
        place: PathBuf,
        /// Error of the operating system.
        error: std::io::Error,
    },
    /// Others may change it.
    #[error("{} is not used: others may write {}", .place.display(), .by.display())]
    Writable {
        /// Path that was looked up.
        place: PathBuf,
        /// The path, or a folder above it, that others may write.
        by: PathBuf,
    },
}

/// Peers that `cargo xtask peers` installed next to this build: `…/target/peers` for `…/target/release/outlast`.
pub fn peers(executable: &Path) -> Option<PathBuf> {
    let built = executable.parent()?;
    // Test programs are one folder deeper.
    let profile = if built.file_name()? == "deps" { built.parent()? } else { built };
    let name = profile.file_name()?.to_str()?;
    let place = PROFILES.contains(&name).then(|| profile.parent())??.join("peers");
    place.is_dir().then_some(place)
}

/// Peers next to the running program.
pub fn own_peers() -> Option<PathBuf> {
    peers(&std::env::current_exe().ok()?)
}

/// Real path of `place`, if only root, this user and the owner of this program may change it.
pub fn trusted(place: &Path) -> Result<PathBuf, Untrusted> {
    let missing = |error| Untrusted::Missing { place: place.to_owned(), error };
    let real = place.canonicalize().map_err(missing)?;
    let program = std::env::current_exe().and_then(std::fs::metadata);
    let owners = [Some(0), Some(geteuid().as_raw()), program.ok().map(|of| of.uid())];
    // The path of a link counts as much as the path of its target.
    let named = std::path::absolute(place).map_err(missing)?;
    for step in real.ancestors().chain(named.ancestors()) {
        let found = std::fs::metadata(step).map_err(missing)?;
        let shared = found.is_dir() && found.mode() & STICKY != 0 && step != real;
        if !owners.contains(&Some(found.uid())) || (found.mode() & WRITABLE != 0 && !shared) {
            return Err(Untrusted::Writable { place: place.to_owned(), by: step.to_owned() });
        }
    }
    Ok(real)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn only_a_build_has_peers_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("target");
        std::fs::create_dir_all(target.join("peers")).unwrap();
        let found = Some(target.join("peers"));
        for program in ["release/outlast", "debug/outlast", "debug/deps/lab-0123"] {
            assert_eq!(peers(&target.join(program)), found, "{program}");
        }
        for program in ["outlast", "other/outlast", "release/a/b/outlast", "release/a/outlast"] {
            assert_eq!(peers(&target.join(program)), None, "{program}");
        }
        assert_eq!(peers(Path::new("outlast")), None);
        std::fs::remove_dir(target.join("peers")).unwrap();
        assert_eq!(peers(&target.join("release/outlast")), None);
    }

    #[test]
    fn what_others_may_write_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        let file = inner.join("libssl.so.3");
        std::fs::create_dir(&inner).unwrap();
        std::fs::write(&file, "").unwrap();
        let mode = |path: &Path, mode| {
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        };
        mode(&inner, 0o755);
        mode(&file, 0o644);
        let real = file.canonicalize().unwrap();
        assert_eq!(trusted(&file).unwrap(), real);
        for (path, open, closed) in [(&file, 0o664, 0o644), (&file, 0o646, 0o644)]
            .into_iter()
            .chain([(&inner, 0o775, 0o755), (&inner, 0o757, 0o755)])
        {
            mode(path, open);
            let error = trusted(&file).unwrap_err().to_string();
            assert!(error.ends_with(&path.display().to_string()), "{error}");
            mode(path, closed);
        }
        // A folder like /tmp: others may add files but not replace ours. A library directly in it is not trusted.
        mode(&inner, 0o1777);
        assert_eq!(trusted(&file).unwrap(), real);
        assert!(trusted(&inner).is_err());
        // A link in a folder that others may write.
        mode(&inner, 0o755);
        let open = folder.path().join("open");
        std::fs::create_dir(&open).unwrap();
        symlink(&file, open.join("link")).unwrap();
        mode(&open, 0o777);
        assert!(trusted(&open.join("link")).is_err());
        let missing = trusted(&inner.join("nothing"));
        assert!(matches!(missing, Err(Untrusted::Missing { .. })));
    }
}
