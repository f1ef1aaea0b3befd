//! OCI image layouts on disk (OCI image specification 1.1, `image-layout.md`): reading blobs by their digests, and adding an
//! artifact that refers to an image.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use indicatif::ProgressBar;
use outlast_crypto::digests::{self, Digest};
use outlast_pki::strict_json;
use serde_json::{Value, json};

use crate::digest;
use crate::failure::{Failure, REFUSED, USAGE};
use crate::files;

/// Artifact type, and media type of the layer, of a signature: a detached CMS message over the image's manifest.
pub(crate) const SIGNATURE: &str = "application/pkcs7-signature";

/// Longest manifest or index, in bytes: what registries accept (OCI distribution specification, "Pushing manifests").
const MAX_MANIFEST: usize = 4 << 20;
/// Most entries of an index.
const MAX_ENTRIES: usize = 10_000;
/// Most signatures of an image that are read.
const MAX_SIGNATURES: usize = 64;
/// Most blobs of an image, each of which is read once.
const MAX_BLOBS: usize = 100_000;
/// Indexes inside indexes.
const MAX_DEPTH: usize = 4;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const EMPTY: &str = "application/vnd.oci.empty.v1+json";
const REF_NAME: &str = "org.opencontainers.image.ref.name";

/// A layout, and the image in it that is meant.
pub(crate) struct Layout {
    folder: PathBuf,
    index: Value,
    /// The image's manifest or index.
    pub(crate) image: Descriptor,
}

/// A signature's artifact: its name, and its only layer or what is wrong with it.
pub(crate) type Artifact = (String, Result<Descriptor, Failure>);

/// What names a blob.
#[derive(Debug, Clone)]
pub(crate) struct Descriptor {
    media_type: String,
    /// Algorithm, and value in hex.
    digest: (&'static Digest, String),
    size: u64,
}

impl Descriptor {
    fn parse(value: &Value) -> Option<Self> {
        let digest = value.get("digest")?.as_str()?;
        let (algorithm, hex) = digest.split_once(':')?;
        let row =
            Digest::by_name(algorithm).filter(|row| ["sha256", "sha512"].contains(&row.name))?;
        // Anything else could lead out of the folder.
        let is_hex = hex.bytes().all(|one| one.is_ascii_digit() || (b'a'..=b'f').contains(&one));
        if !is_hex || hex.len() != 2 * row.output_len {
            return None;
        }
        Some(Self {
            media_type: value.get("mediaType")?.as_str()?.to_owned(),
            digest: (row, hex.to_owned()),
            size: value.get("size")?.as_u64()?,
        })
    }

    fn of(media_type: &str, bytes: &[u8]) -> Self {
        let hex = hex::encode(digests::sha256(bytes));
        let row = Digest::by_name("sha256").unwrap_or(&digests::DIGESTS[0]);
        Self { media_type: media_type.to_owned(), digest: (row, hex), size: bytes.len() as u64 }
    }

    /// `sha256:...`
    pub(crate) fn name(&self) -> String {
        format!("{}:{}", self.digest.0.name, self.digest.1)
    }

    fn json(&self) -> Value {
        json!({ "mediaType": self.media_type, "digest": self.name(), "size": self.size })
    }
}

impl Layout {
    /// Opens `DIR`, whose only image is meant, `DIR:TAG`, or `DIR@sha256:...`.
    pub(crate) fn open(reference: &str) -> Result<Self, Failure> {
        let (folder, tag) = match (Path::new(reference).is_dir(), reference.split_once('@')) {
            (true, _) => (reference, None),
            (false, Some((folder, digest))) => (folder, Some(digest)),
            (false, None) => match reference.rsplit_once(':') {
                Some((folder, tag)) => (folder, Some(tag)),
                None => (reference, None),
            },
        };
        let folder = PathBuf::from(folder);
        let path = folder.join("index.json");
        let no_layout = |reason: &dyn std::fmt::Display| {
            Failure::file(&path, reason).hint(
                "an OCI image layout is a folder with index.json and blobs: skopeo copy docker://NAME oci:DIR:TAG",
            )
        };
        let index = read_index(&folder)?;
        let entries = entries(&index).ok_or_else(|| no_layout(&"it lists no manifests"))?;
        let is_meant = |entry: &&Value| match tag {
            Some(tag) if tag.contains(':') => {
                entry.get("digest").and_then(Value::as_str) == Some(tag)
            }
            Some(tag) => ref_name(entry) == Some(tag),
            // A signature or another artifact refers to an image, and is none.
            None => entry.get("artifactType").is_none(),
        };
        let found: Vec<_> = entries.iter().filter(is_meant).collect();
        let entry = match found[..] {
            [one] => one,
            [] => return Err(no_layout(&"the image is not in it")),
            _ => {
                let tags: Vec<_> = found.iter().filter_map(|entry| ref_name(entry)).collect();
                return Err(no_layout(&format!("there are {} such images", found.len()))
                    .hint(format!("name one, as in DIR:TAG; there are: {}", tags.join(", ")))
                    .code(USAGE));
            }
        };
        let image = Descriptor::parse(entry);
        let image = image.ok_or_else(|| no_layout(&"the image's descriptor is not valid"))?;
        Ok(Self { folder, index, image })
    }

    fn blob(&self, descriptor: &Descriptor) -> PathBuf {
        let (row, hex) = &descriptor.digest;
        self.folder.join("blobs").join(row.name).join(hex)
    }

    /// A blob of at most `max` bytes, which has its digest and size.
    pub(crate) fn read(&self, descriptor: &Descriptor, max: usize) -> Result<Vec<u8>, Failure> {
        let path = self.blob(descriptor);
        let bytes = files::read(&path, max)?;
        let (row, hex) = &descriptor.digest;
        if bytes.len() as u64 != descriptor.size || hex::encode(row.digest(&bytes)) != *hex {
            return Err(changed(&path));
        }
        Ok(bytes)
    }

    /// The image's manifest or index.
    pub(crate) fn manifest(&self) -> Result<Vec<u8>, Failure> {
        self.read(&self.image, MAX_MANIFEST)
    }

    /// Checks every blob of the image: what its manifest names, and what the manifests of its index name.
    pub(crate) fn check(&self, progress: &ProgressBar) -> Result<(), Failure> {
        self.check_manifest(&self.image, 0, &mut Checked::default(), progress)
    }

    fn check_manifest(
        &self,
        descriptor: &Descriptor,
        depth: usize,
        checked: &mut Checked,
        progress: &ProgressBar,
    ) -> Result<(), Failure> {
        let path = self.blob(descriptor);
        if !checked.is_new(descriptor, true, &path)? {
            return Ok(());
        }
        let wrong = |reason: &dyn std::fmt::Display| Failure::file(&path, reason).code(REFUSED);
        let bytes = self.read(descriptor, MAX_MANIFEST)?;
        let value = strict_json::parse(&bytes).map_err(|error| wrong(&error))?;
        let is_index = value.get("manifests").is_some();
        if is_index && value.get("layers").is_some() {
            return Err(wrong(&"it is a manifest and an index at once"));
        }
        let media_type = value.get("mediaType").and_then(Value::as_str);
        if media_type.is_some_and(|own| own != descriptor.media_type) {
            return Err(wrong(&"its media type is not that by which it is named"));
        }
        let named: Vec<&Value> = if is_index {
            entries(&value).ok_or_else(|| wrong(&"it lists too many manifests"))?.iter().collect()
        } else {
            let layers = value.get("layers").and_then(Value::as_array);
            let layers = layers.filter(|list| list.len() <= MAX_ENTRIES);
            let layers = layers.ok_or_else(|| wrong(&"it is neither a manifest nor an index"))?;
            value.get("config").into_iter().chain(layers).collect()
        };
        for entry in named {
            let inner = Descriptor::parse(entry);
            let inner = inner.ok_or_else(|| wrong(&"one of its descriptors is not valid"))?;
            if !is_index {
                if checked.is_new(&inner, false, &path)? {
                    self.check_blob(&inner, progress)?;
                }
            } else if depth < MAX_DEPTH {
                self.check_manifest(&inner, depth + 1, checked, progress)?;
            } else {
                return Err(wrong(&"indexes are nested too deeply"));
            }
        }
        Ok(())
    }

    fn check_blob(&self, descriptor: &Descriptor, progress: &ProgressBar) -> Result<(), Failure> {
        let path = self.blob(descriptor);
        let (row, hex) = &descriptor.digest;
        let found = digest::file(&path, &[row], progress)?;
        let len = std::fs::metadata(&path).map_err(|error| files::io_failure(&path, &error))?.len();
        match found.first().map(hex::encode).as_ref() == Some(hex) && len == descriptor.size {
            true => Ok(()),
            false => Err(changed(&path)),
        }
    }

    /// The artifacts of the type [`SIGNATURE`] that refer to the image: each one's name, and its only layer or what is wrong
    /// with the artifact.
    ///
    /// # Errors
    /// There are more than are read.
    pub(crate) fn signatures(&self) -> Result<Vec<Artifact>, Failure> {
        let mut out = Vec::new();
        for entry in entries(&self.index).unwrap_or_default() {
            // Programs that copy artifacts may leave the type out of the index; the manifest has it, too.
            let kind = entry.get("artifactType").and_then(Value::as_str);
            let Some(descriptor) = Descriptor::parse(entry) else { continue };
            if kind != Some(SIGNATURE) && !(kind.is_none() && descriptor.media_type == MANIFEST) {
                continue;
            }
            let path = self.blob(&descriptor);
            let read = self.read(&descriptor, MAX_MANIFEST).and_then(|bytes| {
                strict_json::parse(&bytes).map_err(|error| Failure::file(&path, &error))
            });
            let value = match (read, kind) {
                (Ok(value), _) => value,
                // Another image, which may be incomplete here.
                (Err(_), None) => continue,
                // Of whatever image: one that cannot be read must not hide those that can.
                (Err(failure), Some(_)) => {
                    out.push((descriptor.name(), Err(failure)));
                    continue;
                }
            };
            if value.get("artifactType").and_then(Value::as_str) != Some(SIGNATURE) {
                continue;
            }
            let subject = value.get("subject").and_then(Descriptor::parse);
            if subject.as_ref().map(Descriptor::name) != Some(self.image.name()) {
                continue;
            }
            let layers = value.get("layers").and_then(Value::as_array).map(Vec::as_slice);
            let layer = match layers {
                Some([only]) => Descriptor::parse(only),
                _ => None,
            };
            let layer = layer.filter(|layer| layer.media_type == SIGNATURE);
            let layer = layer.ok_or_else(|| {
                Failure::file(&path, &"the signature's manifest has not one layer with a signature")
                    .code(REFUSED)
            });
            out.push((descriptor.name(), layer));
        }
        if out.len() > MAX_SIGNATURES {
            let path = self.folder.join("index.json");
            return Err(Failure::file(&path, &"the image has too many signatures"));
        }
        Ok(out)
    }

    /// Adds a signature as an artifact that refers to the image (OCI 1.1, `subject`); returns its digest. The index is
    /// replaced last, so that an interrupted run leaves no entry without its blobs. Runs at the same time take turns, and each
    /// keeps the entries of the others.
    pub(crate) fn add(&mut self, signature: &[u8]) -> Result<String, Failure> {
        let empty = b"{}";
        let config = Descriptor::of(EMPTY, empty);
        let layer = Descriptor::of(SIGNATURE, signature);
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "artifactType": SIGNATURE,
            "config": config.json(),
            "layers": [layer.json()],
            "subject": self.image.json(),
        });
        let manifest = manifest.to_string().into_bytes();
        let descriptor = Descriptor::of(MANIFEST, &manifest);
        for (one, bytes) in [(&config, &empty[..]), (&layer, signature), (&descriptor, &manifest)] {
            let path = self.blob(one);
            let folder = path.parent().unwrap_or(&self.folder);
            std::fs::create_dir_all(folder).map_err(|error| files::io_failure(folder, &error))?;
            files::write(&path, bytes, 0o644)?;
        }
        let mut entry = descriptor.json();
        entry["artifactType"] = json!(SIGNATURE);
        // Kernels lock folders, too; the file itself is replaced.
        let held = File::open(&self.folder).and_then(|held| held.lock().map(|()| held));
        let _held = held.map_err(|error| files::io_failure(&self.folder, &error))?;
        self.index = read_index(&self.folder)?;
        let full = |reason: &str| {
            Failure::file(&self.folder.join("index.json"), &reason)
                .hint("remove what is no longer needed from the layout, and sign again")
        };
        if self.signatures().is_ok_and(|found| found.len() >= MAX_SIGNATURES) {
            return Err(full(&format!("the image has {MAX_SIGNATURES} signatures already")));
        }
        if entries(&self.index).is_none_or(|list| list.len() >= MAX_ENTRIES) {
            return Err(full("it has no room for another entry"));
        }
        if let Some(list) = self.index.get_mut("manifests").and_then(Value::as_array_mut) {
            list.push(entry);
        }
        if self.index.get("mediaType").is_none() {
            self.index["mediaType"] = json!(INDEX);
        }
        files::write(&self.folder.join("index.json"), self.index.to_string().as_bytes(), 0o644)?;
        Ok(descriptor.name())
    }
}

/// What was checked already: an index can name the same blob very often.
#[derive(Default)]
struct Checked(BTreeSet<(String, u64, bool)>);

impl Checked {
    /// Whether a blob is checked for the first time, as a manifest or as content.
    fn is_new(
        &mut self,
        descriptor: &Descriptor,
        is_manifest: bool,
        named_by: &Path,
    ) -> Result<bool, Failure> {
        let is_new = self.0.insert((descriptor.name(), descriptor.size, is_manifest));
        if self.0.len() > MAX_BLOBS {
            let reason = format!("the image has more than {MAX_BLOBS} blobs");
            return Err(Failure::file(named_by, &reason).code(REFUSED));
        }
        Ok(is_new)
    }
}

fn read_index(folder: &Path) -> Result<Value, Failure> {
    let path = folder.join("index.json");
    let hint = "an OCI image layout is a folder with index.json and blobs";
    let bytes = files::read(&path, MAX_MANIFEST).map_err(|failure| failure.hint(hint))?;
    strict_json::parse(&bytes).map_err(|error| {
        Failure::file(&path, &error).hint(format!("{hint}: skopeo copy docker://NAME oci:DIR:TAG"))
    })
}

fn entries(index: &Value) -> Option<&[Value]> {
    let list = index.get("manifests")?.as_array()?;
    (list.len() <= MAX_ENTRIES).then_some(list.as_slice())
}

fn ref_name(entry: &Value) -> Option<&str> {
    entry.get("annotations")?.get(REF_NAME)?.as_str()
}

fn changed(path: &Path) -> Failure {
    Failure::file(path, &"the blob has not the digest and size by which it is named").code(REFUSED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_do_not_lead_out_of_the_folder() {
        let parse = |digest: &str| {
            Descriptor::parse(&json!({ "mediaType": "a/b", "digest": digest, "size": 1 }))
        };
        let hex = "ab".repeat(32);
        assert_eq!(
            parse(&format!("sha256:{hex}")).map(|one| one.name()),
            Some(format!("sha256:{hex}"))
        );
        for wrong in [
            format!("sha256:{}", hex.to_uppercase()),
            format!("sha256:{}", &hex[2..]),
            format!("sha256:../{}", &hex[3..]),
            format!("shake128:{hex}"),
            hex.clone(),
        ] {
            assert!(parse(&wrong).is_none(), "{wrong}");
        }
    }
}
