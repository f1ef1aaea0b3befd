//! Programs that the interop tests talk to; scripts in `tests/interop/peers` install them below `target/peers`.
//!
//! Run by hand, the scripts may use the user's caches. CI gives them an empty home folder in each run, so that a
//! cached archive cannot hide a broken installation. The machine's registry settings are configuration: they are
//! passed on, and this file names no registry.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Peers of the main code paths, with which every test run works.
const MAIN: &[&str] = &[
    "openssl",
    "python",
    "book",
    "java",
    "go",
    "javascript",
    "postgresql",
    "softhsm",
    "go127",
    "jdk",
    "pkilint",
    "lego",
    "s2n",
    "nginx",
    "chromium",
    "openssh",
    "openssh-regress",
    "putty",
    "rclone",
    "ssh-go",
    "moto",
    "versitygw",
    "sshd",
    "vectors",
];

/// Peers that take minutes to build or are a second implementation of a kind: installed only with all peers.
const OTHERS: &[&str] = &[
    "rust",
    "certbot",
    "caddy",
    "aioquic",
    "quicgo",
    "pqmagic",
    "aws-agent",
    "cosign",
    "registry",
    "openssl4",
    "ssh-java",
];

/// A selection of peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// Peers of the main code paths.
    Main,
    /// All peers.
    All,
}

impl Which {
    /// Names of the peers.
    pub fn names(self) -> Vec<&'static str> {
        let others = if self == Self::All { OTHERS } else { &[] };
        MAIN.iter().chain(others).copied().collect()
    }
}

/// Peers that the benchmark compares with.
const MEASURED: &[&str] = &["openssl", "s2n", "nginx", "openssh", "sshd", "ssh-go"];

/// Installs peers, and PostgreSQL where it is missing.
pub fn install(root: &Path, which: Which) -> Result<(), String> {
    install_each(root, &which.names(), &Environment::default())
}

/// Installs what the benchmark needs.
pub fn install_measured(root: &Path) -> Result<(), String> {
    install_each(root, MEASURED, &Environment::default())
}

/// Installs peers with empty caches.
pub fn install_afresh(root: &Path, which: Which) -> Result<(), String> {
    let home = root.join("target/ci-home");
    remove(&home)?;
    let user = std::env::home_dir().ok_or("the user has no home directory")?;
    for file in CONFIGURATION {
        link(&user.join(file), &home.join(file))?;
    }
    let environment = Environment::fresh(&home, &user, |name| std::env::var_os(name));
    install_each(root, &which.names(), &environment)?;
    remove(&home)
}

fn install_each(root: &Path, names: &[&str], environment: &Environment) -> Result<(), String> {
    let place = root.join("target/peers");
    std::fs::create_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))?;
    for name in names {
        let script = root.join(format!("tests/interop/peers/{name}.sh"));
        let mut command = Command::new(script);
        command.arg(place.join(name));
        environment.apply(&mut command);
        let start = Instant::now();
        crate::ci::command(&mut command)?;
        println!("{name}: {} s", start.elapsed().as_secs());
    }
    Ok(())
}

/// Files in a home folder with the machine's registry settings; folders contain nothing else.
const CONFIGURATION: &[&str] = &[
    ".config/go/env",
    ".config/git",
    ".config/pip",
    ".gitconfig",
    ".m2/settings-security.xml",
    ".m2/settings.xml",
    ".m2/toolchains.xml",
    ".mavenrc",
    ".netrc",
    ".npmrc",
    ".pip",
];

/// Folders in the user's home that hold installations and not caches, with the variable that overrides each.
const INSTALLATIONS: &[(&str, &str)] =
    &[("CARGO_HOME", ".cargo"), ("PYENV_ROOT", ".pyenv"), ("RUSTUP_HOME", ".rustup")];

/// Cache folders, with the variable of each: a variable set by the user would lead back to the user's cache.
const CACHES: &[(&str, &str)] = &[
    ("GOCACHE", ".cache/go-build"),
    ("GOMODCACHE", "go/pkg/mod"),
    ("GOPATH", "go"),
    ("PIP_CACHE_DIR", ".cache/pip"),
    ("XDG_CACHE_HOME", ".cache"),
    ("XDG_DATA_HOME", ".local/share"),
    ("npm_config_cache", ".npm"),
];

/// Environment of the scripts.
#[derive(Default)]
struct Environment {
    set: Vec<(&'static str, OsString)>,
    remove: &'static [&'static str],
}

impl Environment {
    /// Empty caches below `home`, and everything else as the user has it.
    fn fresh(home: &Path, user: &Path, variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let mut set = vec![("HOME", home.into())];
        for (name, folder) in INSTALLATIONS {
            if variable(name).is_none() && user.join(folder).is_dir() {
                set.push((*name, user.join(folder).into()));
            }
        }
        set.extend(CACHES.iter().map(|(name, folder)| (*name, home.join(folder).into())));
        // Java takes the home folder from the list of users, so Maven finds the user's settings without help.
        let mut options = variable("MAVEN_OPTS").unwrap_or_default();
        options.push(" -Dmaven.repo.local=");
        options.push(home.join(".m2/repository"));
        set.push(("MAVEN_OPTS", options));
        // CI does not measure.
        set.push(("OUTLAST_PEERS_QUICK", "1".into()));
        Self { set, remove: &["NPM_CONFIG_CACHE"] }
    }

    fn apply(&self, command: &mut Command) {
        for name in self.remove {
            command.env_remove(name);
        }
        command.envs(self.set.iter().map(|(name, value)| (name, value)));
    }
}

/// Links a configuration file or folder if it exists; its contents are not copied.
fn link(from: &Path, to: &Path) -> Result<(), String> {
    if !from.exists() {
        return Ok(());
    }
    let folder = to.parent().unwrap_or(to);
    std::fs::create_dir_all(folder)
        .and_then(|()| std::os::unix::fs::symlink(from, to))
        .map_err(|error| format!("{}: {error}", to.display()))
}

/// Removes a folder, including Go's read-only module folders.
fn remove(folder: &Path) -> Result<(), String> {
    fn writable(folder: &Path) -> std::io::Result<()> {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))?;
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            // The type of the link itself; its target belongs to the user.
            if entry.file_type()?.is_dir() {
                writable(&entry.path())?;
            }
        }
        Ok(())
    }
    let exists = folder.symlink_metadata().is_ok();
    let outcome = if exists {
        writable(folder).and_then(|()| std::fs::remove_dir_all(folder))
    } else {
        Ok(())
    };
    outcome.map_err(|error| format!("{}: {error}", folder.display()))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("xtask-{name}-{}", std::process::id()));
        remove(&folder).unwrap();
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn caches_of_the_user_are_out_of_reach() {
        let user = scratch("user");
        std::fs::create_dir_all(user.join(".cargo")).unwrap();
        let home = Path::new("/fresh");
        let theirs = |name: &str| (name != "CARGO_HOME").then(|| OsString::from("-Xtheirs"));
        let environment = Environment::fresh(home, &user, theirs);
        let mut command = Command::new("true");
        environment.apply(&mut command);
        let set: Vec<_> = command.get_envs().collect();
        let value = |name: &str| {
            let found = set.iter().find(|(key, _)| *key == name).unwrap();
            found.1.map(|value| value.to_string_lossy().into_owned())
        };
        for (name, _) in CACHES {
            assert!(value(name).unwrap().starts_with("/fresh/"), "{name}");
        }
        assert_eq!(value("HOME").unwrap(), "/fresh");
        assert_eq!(value("NPM_CONFIG_CACHE"), None);
        let options = value("MAVEN_OPTS").unwrap();
        assert_eq!(options, "-Xtheirs -Dmaven.repo.local=/fresh/.m2/repository");
        // An installation in its usual place gets its variable; a variable that is set is kept.
        assert_eq!(value("CARGO_HOME").unwrap(), user.join(".cargo").to_string_lossy());
        assert!(!set.iter().any(|(key, _)| *key == "PYENV_ROOT"));
        remove(&user).unwrap();
    }

    #[test]
    fn removal_keeps_what_links_lead_to() {
        use std::os::unix::fs::PermissionsExt as _;
        let (user, home) = (scratch("config"), scratch("home"));
        std::fs::create_dir_all(user.join(".config/pip")).unwrap();
        std::fs::write(user.join(".config/pip/pip.conf"), "[global]").unwrap();
        for file in CONFIGURATION {
            link(&user.join(file), &home.join(file)).unwrap();
        }
        assert_eq!(std::fs::read(home.join(".config/pip/pip.conf")).unwrap(), b"[global]");
        assert!(!home.join(".npmrc").exists());
        let module = home.join("go/pkg/mod");
        std::fs::create_dir_all(module.join("inner")).unwrap();
        std::fs::set_permissions(&module, std::fs::Permissions::from_mode(0o500)).unwrap();
        remove(&home).unwrap();
        assert!(!home.exists());
        assert!(user.join(".config/pip/pip.conf").exists());
        remove(&user).unwrap();
    }
}
