//! Folders for what is needed while something runs: only this user may look into them, and the next start removes what a kill left.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::process::geteuid;
use tempfile::TempDir;

use crate::error::LabError;

/// Names begin with this and the number of the process that made them.
const PREFIX: &str = "outlast-lab-tmp-";

/// A folder where the system keeps such; removed when dropped.
pub fn folder() -> Result<TempDir, LabError> {
    folder_in(&std::env::temp_dir())
}

/// A folder in `place`; removed when dropped.
pub fn folder_in(place: &Path) -> Result<TempDir, LabError> {
    sweep(place)?;
    tempfile::Builder::new()
        .prefix(&format!("{PREFIX}{}-", std::process::id()))
        .permissions(PermissionsExt::from_mode(0o700))
        .tempdir_in(place)
        .map_err(|error| LabError::file(place, error))
}

/// Removes this user's folders whose programs were killed.
fn sweep(place: &Path) -> Result<(), LabError> {
    let entries = std::fs::read_dir(place).map_err(|error| LabError::file(place, error))?;
    for entry in entries.flatten() {
        let name = entry.file_name();
        let maker = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next());
        let Some(maker) = maker.and_then(|maker| maker.parse::<u32>().ok()) else { continue };
        // The metadata of the entry itself, not of what a link names.
        let ours =
            entry.metadata().is_ok_and(|found| found.is_dir() && found.uid() == geteuid().as_raw());
        if ours && !Path::new(&format!("/proc/{maker}")).exists() {
            // Another program may do the same.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_one_s_own_and_those_of_the_dead_go() {
        let place = tempfile::tempdir().unwrap();
        // No process has so high a number (proc(5), pid_max).
        let dead = place.path().join(format!("{PREFIX}4294967295-x"));
        let other = place.path().join("outlast-lab-else-4294967295-x");
        std::fs::create_dir_all(dead.join("data")).unwrap();
        std::fs::create_dir(&other).unwrap();
        let first = folder_in(place.path()).unwrap();
        let second = folder_in(place.path()).unwrap();
        assert!(!dead.exists() && other.exists() && first.path().exists());
        assert_eq!(second.path().metadata().unwrap().mode() & 0o777, 0o700);
    }
}
