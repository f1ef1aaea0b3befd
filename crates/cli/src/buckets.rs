//! Storage of audit reports and CRLs: folders below the data folder, or buckets behind an S3 endpoint.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outlast_api::service::Sink;
use outlast_api::wire::sigv4::Credentials;
use outlast_crypto::Secret;
use outlast_net::client::Connector;
use outlast_net::policy::Policy;
use outlast_net::s3::{self, Client, S3};
use outlast_net::server::system_clock;
use outlast_pki::pem;
use tokio::runtime::Handle;

use crate::failure::Failure;
use crate::files;
use crate::settings::Buckets;
use crate::trust;

type Allow = BTreeMap<String, BTreeSet<String>>;

/// A sink that only lets an account write to its own buckets.
struct Allowed {
    allow: Allow,
    inner: Arc<dyn Sink>,
}

impl Sink for Allowed {
    fn put(&self, bucket: &str, key: &str, content_type: &str, bytes: &[u8]) -> Result<(), String> {
        self.inner.put(bucket, key, content_type, bytes)
    }

    fn may_use(&self, account: &str, bucket: &str) -> bool {
        self.allow.get(account).is_some_and(|buckets| buckets.contains(bucket))
    }
}

/// The sink for the settings; `client` is that of their S3 endpoint. Must be called inside a tokio runtime.
pub(crate) fn sink(settings: Buckets, client: Option<Client>, data: &Path) -> Arc<dyn Sink> {
    let inner: Arc<dyn Sink> = match client {
        Some(client) => Arc::new(S3::new(client, Handle::current())),
        None => Arc::new(Folder(settings.folder.unwrap_or_else(|| data.join("buckets")))),
    };
    match settings.allow {
        Some(allow) => Arc::new(Allowed { allow, inner }),
        None => inner,
    }
}

/// A client for the S3 endpoint of the settings, if they name one. Make one and clone it: each reads and tries the CAs to trust.
pub(crate) fn client(settings: &Buckets) -> Result<Option<Client>, Failure> {
    let Some(endpoint) = endpoint(settings)? else { return Ok(None) };
    let unusable = unusable(&endpoint.endpoint);
    Client::new(endpoint, system_clock).map(Some).map_err(unusable)
}

fn unusable(endpoint: &str) -> impl Fn(String) -> Failure + use<> {
    let endpoint = endpoint.to_owned();
    move |reason| {
        Failure::new(format!("the endpoint {endpoint} of [buckets] cannot be used: {reason}"))
            .about("buckets")
    }
}

fn endpoint(settings: &Buckets) -> Result<Option<s3::Settings>, Failure> {
    let Some(endpoint) = settings.endpoint.clone() else { return Ok(None) };
    let missing = |what: &str| Failure::new(format!("[buckets] has no {what}")).about("buckets");
    let secret = match &settings.secret_access_key_file {
        Some(path) => files::read(path, 4096)?.trim_ascii().to_vec(),
        None => std::env::var("OUTLAST_BUCKETS_SECRET_ACCESS_KEY")
            .map_err(|_| {
                missing("secret access key").hint(
                    "name a file with secret_access_key_file, or set OUTLAST_BUCKETS_SECRET_ACCESS_KEY",
                )
            })?
            .into_bytes(),
    };
    let roots = match &settings.ca_bundle {
        Some(path) => pem::read_certificates(&files::read(path, 4 << 20)?)
            .map_err(|error| Failure::file(path, &error))?,
        None if endpoint.starts_with("https://") => trust::system_roots()
            .map_err(|failure| failure.prefixed("[buckets] has no ca_bundle").about("buckets"))?,
        None => Vec::new(),
    };
    let connector = Connector::new(&Policy::default(), &roots)
        .map_err(|error| unusable(&endpoint)(error.to_string()))?;
    let access_key_id = settings.access_key_id.clone().ok_or_else(|| missing("access_key_id"))?;
    Ok(Some(s3::Settings {
        endpoint,
        allow_plain: settings.allow_plain(),
        region: settings.region(),
        credentials: Credentials { access_key_id, secret: Secret::new(secret), token: None },
        connector,
    }))
}

/// A folder whose subfolders are the buckets.
pub(crate) struct Folder(PathBuf);

impl Sink for Folder {
    fn put(&self, bucket: &str, key: &str, _: &str, bytes: &[u8]) -> Result<(), String> {
        let path = self.path(bucket, key).ok_or("its bucket or name cannot be a file path")?;
        let folder = path.parent().unwrap_or(&self.0);
        DirBuilder::new()
            .recursive(true)
            .mode(0o750)
            .create(folder)
            .map_err(|error| format!("{}: {error}", folder.display()))?;
        files::write(&path, bytes, 0o640).map_err(|failure| failure.message().to_owned())
    }
}

impl Folder {
    /// A path below this folder, whatever bucket and key contain.
    fn path(&self, bucket: &str, key: &str) -> Option<PathBuf> {
        let mut path = self.0.clone();
        let parts: Vec<_> = bucket.split('/').chain(key.split('/')).collect();
        for part in parts {
            let plain = !part.is_empty()
                && part.len() <= 255
                && !part.starts_with('.')
                && !part.contains(['\0', '\\']);
            if !plain {
                return None;
            }
            path.push(part);
        }
        Some(path)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn accounts_use_the_buckets_that_they_are_allowed() {
        let place = tempfile::tempdir().unwrap();
        let sink = |text: &str| sink(toml::from_str(text).unwrap(), None, place.path());
        let any = sink("");
        assert!(any.may_use("111111111111", "a"));
        let some = sink("allow = { 111111111111 = ['a', 'b'], \"222222222222\" = [] }");
        for (account, bucket, may) in [
            ("111111111111", "a", true),
            ("111111111111", "b", true),
            ("111111111111", "c", false),
            ("222222222222", "a", false),
            ("333333333333", "a", false),
        ] {
            assert_eq!(some.may_use(account, bucket), may, "{account} {bucket}");
        }
        some.put("a", "x", "", b"x").unwrap();
        assert!(place.path().join("buckets/a/x").exists());
    }

    #[test]
    fn files_stay_below_the_folder() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder(place.path().join("buckets"));
        for (bucket, key) in [
            ("..", "x"),
            ("a", "../x"),
            ("a", "b/../../x"),
            ("/etc", "x"),
            ("a", "/x"),
            ("a", ""),
            ("", "x"),
            ("a", "x\0"),
            ("a", ".hidden"),
            ("a/../..", "x"),
        ] {
            assert!(folder.put(bucket, key, "", b"x").is_err(), "{bucket} {key}");
        }
        folder.put("a/b", "c/d.json", "", b"first").unwrap();
        folder.put("a/b", "c/d.json", "", b"second").unwrap();
        let path = place.path().join("buckets/a/b/c/d.json");
        assert_eq!(std::fs::read(&path).unwrap(), b"second");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
    }
}
