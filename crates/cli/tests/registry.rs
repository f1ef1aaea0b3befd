//! Images in a registry: cosign signs and verifies them with keys of our KMS, and the signatures of `outlast sign --oci` are
//! found there as OCI 1.1 wants it, and come back with the image.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::common::peers::peer;
use crate::common::{Folder, Server, fail, outlast, run, stderr, succeed};
use crate::cosign::cosign;
use crate::oci::image;

/// A registry on a loopback address; killed when dropped.
struct Registry {
    child: Child,
    place: PathBuf,
    address: String,
}

impl Registry {
    fn start(place: PathBuf) -> Self {
        let mut command = Command::new(place.join("bin/crane"));
        command.args(["registry", "serve", "--address", "127.0.0.1:0"]).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let port = lines.find_map(|line| {
            let line = line.unwrap();
            line.split("serving on port ").nth(1).map(str::to_owned)
        });
        // It logs every request.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, place, address: format!("127.0.0.1:{}", port.unwrap()) }
    }

    fn name(&self, tag: &str) -> String {
        format!("{}/app:{tag}", self.address)
    }

    fn crane(&self, folder: &Folder, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.place.join("bin/crane"));
        command.args(arguments).env("HOME", folder.temporary.path());
        folder.here(command)
    }

    fn oras(&self, folder: &Folder, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.place.join("bin/oras"));
        command.args(arguments).env("HOME", folder.temporary.path());
        folder.here(command)
    }

    /// Copies an image with what refers to it from a layout.
    fn push(&self, folder: &Folder, layout: &str, tag: &str) {
        let copy = ["cp", "-r", "--from-oci-layout", layout, "--to-plain-http", &self.name(tag)];
        succeed(&mut self.oras(folder, &copy));
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server with a key `alias/ci`, and a layout `app` with two images.
fn scene() -> (Folder, Server, [String; 2]) {
    let folder = Folder::new();
    let server = folder.serve();
    let setup = ["sign", "setup", "--name", "ci", "--algorithm", "ecdsa-p256", "--create-ca"];
    succeed(&mut folder.client_at(&server, &setup));
    let layout = folder.path("app");
    let digests = [("v1", b"layer 1"), ("v2", b"layer 2")];
    let digests = digests.map(|(tag, content)| image(&layout, tag, content));
    (folder, server, digests)
}

#[test]
fn cosign_signs_images_with_kms() {
    let (Some(own), Some(place)) = (peer("cosign"), peer("registry")) else { return };
    let (folder, server, [good, evil]) = scene();
    let registry = Registry::start(place);
    registry.push(&folder, "app:v1", "v1");
    registry.push(&folder, "app:v2", "v2");
    let cosign = |arguments: &[&str]| cosign(&folder, &own, arguments);
    let key = format!("awskms://localhost:{}/alias/ci", server.port);
    let public = succeed(&mut cosign(&["public-key", "--key", &key]));
    folder.write("ci.pub", public.as_bytes());
    let verify = |known: &str, tag: &str| {
        let ignored = "--insecure-ignore-tlog=true";
        cosign(&["verify", "--key", known, ignored, &registry.name(tag)])
    };
    let refused = |tag: &str| {
        for known in [key.as_str(), "ci.pub"] {
            let output = run(&mut verify(known, tag));
            assert!(!output.status.success(), "{tag} with {known}: {}", stderr(&output));
        }
    };
    refused("v1");
    let by_digest = format!("{}/app@{good}", registry.address);
    let sign = ["sign", "--yes", "--key", &key, "--tlog-upload=false", &by_digest];
    succeed(&mut cosign(&sign));
    for known in [key.as_str(), "ci.pub"] {
        let said = succeed(&mut verify(known, "v1"));
        let value: Value = serde_json::from_str(&said).unwrap();
        let digest = &value[0]["critical"]["image"]["docker-manifest-digest"];
        assert_eq!(*digest, Value::from(good.as_str()), "{said}");
    }
    // Another image: without a signature, with the signature of the first, and under its tag.
    refused("v2");
    let of = |digest: &str| registry.name(&format!("{}.sig", digest.replace(':', "-")));
    succeed(&mut registry.crane(&folder, &["copy", &of(&good), &of(&evil)]));
    refused("v2");
    succeed(&mut registry.crane(&folder, &["copy", &registry.name("v2"), &registry.name("v1")]));
    refused("v1");
    // A key that is not the signer's.
    let other = ["sign", "setup", "--name", "other", "--algorithm", "ecdsa-p256", "--create-ca"];
    succeed(&mut folder.client_at(&server, &other));
    let other = format!("awskms://localhost:{}/alias/other", server.port);
    let ignored = "--insecure-ignore-tlog=true";
    let output = run(&mut cosign(&["verify", "--key", &other, ignored, &by_digest]));
    assert!(!output.status.success(), "{}", stderr(&output));
    succeed(&mut cosign(&["verify", "--key", &key, ignored, &by_digest]));
}

#[test]
fn our_signature_of_an_image_is_found_in_a_registry() {
    let Some(place) = peer("registry") else { return };
    let (folder, server, [digest, _]) = scene();
    let registry = Registry::start(place);
    let sign = ["sign", "--oci", "app:v1", "--key", "alias/ci"];
    let said = succeed(&mut folder.client_at(&server, &sign));
    let signature = said.trim().rsplit(' ').next().unwrap();
    registry.push(&folder, "app:v1", "v1");
    registry.push(&folder, "app:v2", "v2");
    let found = |tag: &str| {
        let discover = ["discover", "--plain-http", "--format", "json", &registry.name(tag)];
        succeed(&mut registry.oras(&folder, &discover))
    };
    let listed = found("v1");
    assert!(
        listed.contains(signature) && listed.contains("application/pkcs7-signature"),
        "{listed}"
    );
    assert!(listed.contains(&digest), "{listed}");
    assert!(!found("v2").contains("application/pkcs7-signature"));
    // Back into a folder, where the certificate alone is needed.
    for tag in ["v1", "v2"] {
        let name = registry.name(tag);
        let back = format!("back:{tag}");
        let copy = ["cp", "-r", "--from-plain-http", &name, "--to-oci-layout", &back];
        succeed(&mut registry.oras(&folder, &copy));
    }
    let verify = |reference: &str| {
        let mut command = outlast();
        command.args(["verify", "--oci", reference, "--trust", "ci-root.pem"]);
        folder.here(command)
    };
    let said = succeed(&mut verify("back:v1"));
    assert!(said.contains("verified back:v1: "), "{said}");
    let text = fail(&mut verify("back:v2"), 3);
    assert!(text.contains("the image has no signature"), "{text}");
    // The registry changes a layer.
    let layer = std::fs::read_dir(folder.path("back/blobs/sha256")).unwrap();
    let is_layer = |path: &PathBuf| std::fs::read(path).unwrap() == b"layer 1";
    let layer: Vec<_> = layer.map(|one| one.unwrap().path()).filter(is_layer).collect();
    assert_eq!(layer.len(), 1);
    change(&layer[0]);
    let text = fail(&mut verify("back:v1"), 3);
    assert!(text.contains("not the digest and size"), "{text}");
}

/// Files of copied layouts can be read-only.
fn change(path: &Path) {
    std::fs::remove_file(path).unwrap();
    std::fs::write(path, b"layer X").unwrap();
}
