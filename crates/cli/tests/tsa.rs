//! Time-stamping authorities of a server, asked by our client, by curl's way over plain HTTP, and by other
//! implementations, which also verify the timestamps.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use std::path::{Path, PathBuf};
use std::process::Command;

use outlast_pki::timestamp::{Failure, REQUEST_MEDIA_TYPE, Request, Response, Token};
use serde_json::Value;

use crate::common::peers::{java, openssl, peer};
use crate::common::{Folder, Server, fail, outlast, runtime, succeed};

const FILE: &[u8] = b"the file to be stamped";
const POLICY: &str = "1.3.6.1.4.1.99999.1";

/// A server with an ML-DSA authority at `/tsa` and a classical one at `/tsa/classical`.
pub struct Scene {
    pub folder: Folder,
    pub server: Server,
    /// URL of plain HTTP.
    pub plain: String,
    pub file: PathBuf,
}

impl Scene {
    pub fn new() -> Self {
        let folder = Folder::new();
        let server = folder.serve();
        let setup = |name: &str, algorithm: &str| {
            let mut command =
                folder.client(&["tsa", "setup", "--name", name, "--algorithm", algorithm]);
            command.args(["--create-ca", "--output", "json", "--endpoint-url"]);
            command.arg(format!("https://localhost:{}", server.port));
            let said = succeed(command.current_dir(folder.temporary.path()));
            let value: Value = serde_json::from_str(&said).unwrap();
            assert!(value["settings"].as_str().unwrap().contains("authorities = {"), "{value}");
            value["key"].as_str().unwrap().to_owned()
        };
        let (key, classical) = (setup("pq", "ml-dsa-65"), setup("classical", "ecdsa-p256"));
        drop(server);
        let settings = format!(
            "[tsa]\ndefault_authority = 'pq'\naccuracy_ms = 1500\nper_address = 1000\nper_second = 1000\n\
             authorities = {{ pq = {{ key = '{key}', policies = '{POLICY}' }}, \
             classical = {{ key = '{classical}', policies = '{POLICY}' }} }}\n"
        );
        std::fs::write(folder.data.join("outlast.toml"), settings).unwrap();
        let server = folder.serve();
        let plain = format!("http://127.0.0.1:{}", server.revocation.unwrap());
        let file = folder.write("file", FILE);
        Self { folder, server, plain, file }
    }

    pub fn root(&self, name: &str) -> PathBuf {
        self.folder.path(&format!("{name}-root.pem"))
    }

    /// `outlast tsa` about the file.
    fn tsa(&self, verb: &str) -> Command {
        let mut command = outlast();
        command.args(["tsa", verb]).arg(&self.file);
        command
    }

    fn verify(&self, token: &Path, root: &str) -> Command {
        let mut command = self.tsa("verify");
        command.arg("--token").arg(token).arg("--trust").arg(self.root(root));
        command
    }

    /// The response to a request in a file, over plain HTTP.
    fn respond(&self, path: &str, request: &Path, out: &str) -> PathBuf {
        let body = std::fs::read(request).unwrap();
        self.folder.write(out, &self.post(path, body))
    }

    fn post(&self, path: &str, body: Vec<u8>) -> Vec<u8> {
        let url = format!("{}{path}", self.plain);
        let posted = outlast_net::fetch::post(&url, REQUEST_MEDIA_TYPE, body);
        runtime().block_on(posted).unwrap()
    }
}

#[test]
fn a_file_is_timestamped_and_verified() {
    let scene = Scene::new();
    let url = format!("https://localhost:{}/tsa", scene.server.port);
    let request = |url: &str| {
        let mut command = scene.tsa("request");
        command.args(["--url", url, "--ca-bundle"]).arg(scene.folder.data.join("client/ca.pem"));
        command
    };
    let said = succeed(request(&url).args(["--policy", POLICY]));
    assert!(said.contains("by \"CN=pq\" (not verified against a root)"), "{said}");
    let token = scene.folder.path("file.tsr");
    let text = fail(&mut request(&url), 1);
    assert!(text.contains("file.tsr"), "an existing timestamp is not replaced: {text}");
    let said = succeed(&mut scene.verify(&token, "pq"));
    assert!(
        said.contains("it existed at ") && said.contains(", within 1.5 s, as \"CN=pq\" says"),
        "{said}"
    );
    assert!(
        said.contains(&format!("policy {POLICY}")) && said.contains("revocation not checked"),
        "{said}"
    );
    let json = succeed(scene.verify(&token, "pq").args(["--output", "json", "--policy", POLICY]));
    let value: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&value["verified"], &value["digest"]), (&true.into(), &"sha512".into()));
    assert_eq!(value["accuracy_us"], 1_500_000);
    assert_eq!(value["chain"].as_array().unwrap().len(), 3);
    // Over plain HTTP, from the other authority.
    let out = scene.folder.path("classical.tsr");
    let plain = format!("{}/tsa/classical", scene.plain);
    succeed(request(&plain).args(["--digest", "sha256", "--out"]).arg(&out));
    succeed(&mut scene.verify(&out, "classical"));
    // Refusals.
    for (command, code, words) in [
        (&mut scene.verify(&out, "pq"), 3, "no path from"),
        (scene.verify(&out, "classical").args(["--policy", "1.2.3"]), 3, "which is not accepted"),
        (scene.verify(&scene.file, "pq").arg("--output").arg("json"), 3, "not a timestamp"),
        (request(&url).args(["--force", "--policy", "1.2.3"]), 1, "unacceptedPolicy"),
        (request(&format!("{url}/none")).arg("--force"), 1, "the path of the authority"),
        (&mut request("ftp://localhost/"), 2, "begins with http:// or https://"),
    ] {
        let text = fail(command, code);
        assert!(text.contains(words) && text.contains("hint: "), "{words}: {text}");
    }
    scene.folder.write("file", b"the file to be stampeD");
    let text = fail(&mut scene.verify(&token, "pq"), 3);
    assert!(text.contains("is for other data"), "{text}");
    // The trail has each token.
    let tail = ["audit", "tail", "--output", "json", "--data"];
    let trail = succeed(outlast().args(tail).arg(&scene.folder.data));
    let found = trail.matches("OutlastServiceRoleForTimestamping").count();
    assert!(found >= 2, "{trail}");
}

#[test]
fn a_query_is_answered_with_its_nonce_only() {
    let scene = Scene::new();
    let (one, two) = (scene.folder.path("one.tsq"), scene.folder.path("two.tsq"));
    for query in [&one, &two] {
        succeed(scene.tsa("request").arg("--query").arg(query));
    }
    let response = scene.respond("/tsa", &one, "one.tsr");
    succeed(scene.verify(&response, "pq").arg("--query").arg(&one));
    let text = fail(scene.verify(&response, "pq").arg("--query").arg(&two), 3);
    assert!(text.contains("answers another request"), "{text}");
    let failure =
        |body: &[u8]| Response::parse(&scene.post("/tsa", body.to_vec())).unwrap().failure;
    assert_eq!(failure(b"garbage"), Some(Failure::BadDataFormat));
    assert_eq!(failure(&[0x30; 5000]), Some(Failure::BadRequest));
}

#[test]
fn other_implementations_ask_and_verify() {
    let (Some(new), Some(bouncy), Some(go)) = (peer("openssl"), peer("java"), peer("go127")) else {
        return;
    };
    let scene = Scene::new();
    let path = |name: &str| scene.folder.path(name);
    let text = |path: &Path| path.display().to_string();
    let file = text(&scene.file);
    // Requests of each.
    let queries = [path("openssl.tsq"), path("bouncy.tsq"), path("go.tsq")];
    let [by_openssl, by_bouncy, by_go] = &queries;
    let ask = ["ts", "-query", "-data", &file, "-sha384", "-cert", "-tspolicy", POLICY, "-out"];
    succeed(openssl(&new, &ask).arg(by_openssl));
    succeed(java(&bouncy, "outlast.interop.Main", &["tsp", "query", &file]).arg(by_bouncy));
    let tsp_check = || Command::new(go.join("bin/tsp-check"));
    succeed(tsp_check().args(["query", &file]).arg(by_go));
    for (number, query) in queries.iter().enumerate() {
        let parsed = Request::parse(&std::fs::read(query).unwrap()).unwrap();
        assert!(parsed.wants_certificates);
        for (url, name) in [("/tsa", "pq"), ("/tsa/classical", "classical")] {
            let response = scene.respond(url, query, &format!("{name}-{number}.tsr"));
            succeed(scene.verify(&response, name).arg("--query").arg(query));
            let root = text(&scene.root(name));
            // BouncyCastle verifies both kinds.
            let words = ["tsp", "verify", &root, &file, &text(&response), &text(query)];
            succeed(&mut java(&bouncy, "outlast.interop.Main", &words));
            if name == "classical" {
                let words = ["verify", &root, &file, &text(&response), &text(query)];
                succeed(tsp_check().args(words));
                let verify = ["ts", "-verify", "-in", &text(&response), "-CAfile", &root];
                succeed(openssl(&new, &verify).args(["-data", &file]));
                succeed(openssl(&new, &verify).arg("-queryfile").arg(query));
                succeed(Command::new("openssl").args(verify).arg("-queryfile").arg(query));
                continue;
            }
            // `openssl ts -verify` does not know ML-DSA; its CMS does.
            let token = path(&format!("{name}-{number}.der"));
            let out = ["ts", "-reply", "-token_out", "-in", &text(&response), "-out"];
            succeed(openssl(&new, &out).arg(&token));
            let content = path("content.der");
            let verify = ["cms", "-verify", "-inform", "DER", "-purpose", "timestampsign", "-in"];
            succeed(
                openssl(&new, &verify).arg(&token).args(["-CAfile", &root, "-out"]).arg(&content),
            );
            let parsed = Token::parse(&std::fs::read(&token).unwrap()).unwrap();
            assert!(!parsed.certificates().is_empty());
        }
    }
    // They refuse what is for another file.
    let other = text(&scene.folder.write("other", b"another file"));
    let response = text(&path("classical-0.tsr"));
    let (root, query) = (text(&scene.root("classical")), text(by_openssl));
    let words = ["tsp", "verify", &root, &other, &response, &query];
    fail(&mut java(&bouncy, "outlast.interop.Main", &words), 1);
    fail(tsp_check().args(["verify", &root, &other, &response, &query]), 1);
}
