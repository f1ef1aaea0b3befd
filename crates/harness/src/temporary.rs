//! Folders for temporary data: only this user may enter them, and the next start removes what a killed program left.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::process::geteuid;
use tempfile::TempDir;

use crate::error::LabError;

/// Names begin with this and the id of the process that made them.
const PREFIX: &str = "outlast-lab-tmp-";

/// A folder in the system's temporary folder; removed on drop.
pub fn folder() -> Result<TempDir, LabError> {
    folder_in(&std::env::temp_dir())
}

/// A folder in `place`; removed on drop.
pub fn folder_in(place: &Path) -> Result<TempDir, LabError> {
    sweep(place)?;
    tempfile::Builder::new()
        .prefix(&format!("{PREFIX}{}-", std::process::id()))
        .permissions(PermissionsExt::from_mode(0o700))
        .tempdir_in(place)
        .map_err(|error| LabError::file(place, error))
}

/// Removes this user's folders whose processes no longer run.
fn sweep(place: &Path) -> Result<(), LabError> {
    let entries = std::fs::read_dir(place).map_err(|error| LabError::file(place, error))?;
    for entry in entries.flatten() {
        let name = entry.file_name();
        let maker = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next());
        let Some(maker) = maker.and_then(|maker| maker.parse::<u32>().ok()) else { continue };
        // Metadata of the entry itself, not of a link's target.
        let ours =
            entry.metadata().is_ok_and(|found| found.is_dir() && found.uid() == geteuid().as_raw());
        if ours && !Path::new(&format!("/proc/{maker}")).exists() {
            // Another program may remove it at the same time.
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
        // No process has such a high id (proc(5), pid_max).
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
