//! Writes files: whole or not at all, under names that stay inside their folder.

use std::io::Write;
use std::path::Path;

use crate::error::LabError;

/// Writes a file under a temporary name first, so that a full disk or a kill leaves the old one.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), LabError> {
    // A device or a pipe is written to directly: replacing it by a file would be a surprise.
    if std::fs::metadata(path).is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) {
        return std::fs::write(path, bytes).map_err(|error| LabError::file(path, error));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let write = || -> std::io::Result<()> {
        let mut file = tempfile::Builder::new().prefix(".writing-").tempfile_in(folder)?;
        file.write_all(bytes)?;
        file.as_file().sync_data()?;
        // A temporary file is private; results may be read by anybody who can see the folder.
        let mode = rustix::fs::Mode::from_raw_mode(0o644);
        rustix::fs::fchmod(file.as_file(), mode)?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    };
    write().map_err(|error| LabError::file(path, error))
}

/// The name reduced to letters, digits and hyphens: results may come from another machine.
pub(super) fn plain(name: &str) -> String {
    let kept = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' };
    let name: String = name.chars().take(100).map(kept).collect();
    if name.is_empty() { "unnamed".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_in_their_folder() {
        assert_eq!(plain("median-by-rtt"), "median-by-rtt");
        assert_eq!(plain("../../etc/passwd"), "------etc-passwd");
        assert_eq!(plain(""), "unnamed");
    }

    #[test]
    fn a_file_that_cannot_be_written_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        write_whole(&path, b"one").unwrap();
        write_whole(&path, b"two").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        let missing = folder.path().join("missing").join("a.csv");
        assert!(
            matches!(write_whole(&missing, b"x"), Err(LabError::File { path, .. }) if path == missing)
        );
        // A full disk is reported, and a device stays a device.
        let full = write_whole(Path::new("/dev/full"), b"x");
        assert!(
            matches!(full, Err(LabError::File { error, .. }) if error.kind() == std::io::ErrorKind::StorageFull)
        );
        // A folder with the name is not replaced, and the temporary file is removed.
        std::fs::create_dir(folder.path().join("b.csv")).unwrap();
        assert!(write_whole(&folder.path().join("b.csv"), b"x").is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
