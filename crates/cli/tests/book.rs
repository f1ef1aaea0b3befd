//! The book builds, its words are spelled right, and its commands and examples run.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use outlast_testing::{checkout, free_port, peer};

use crate::common::dns::Dns;
use crate::common::peers::java;
use crate::common::{Folder, Server, run, stderr, stdout, succeed};

/// Pages with commands, each run in an empty folder.
const PAGES: &[&str] = &[
    "README.md",
    "docs/guide/server.md",
    "docs/guide/endpoints.md",
    "docs/guide/pki.md",
    "docs/guide/secrets.md",
    "docs/guide/transfer.md",
    "docs/guide/workflows.md",
    "docs/guide/connectors.md",
    "docs/guide/ssh-ca.md",
    "docs/guide/signing.md",
    "docs/guide/signing-start.md",
    "docs/guide/approvals.md",
    "docs/guide/git.md",
    "docs/guide/attestations.md",
    "docs/guide/timestamps.md",
    "docs/guide/evidence.md",
    "docs/guide/operations.md",
    "docs/guide/log.md",
];

/// Pages whose commands need one more peer in the path.
const PAGES_OF_PEERS: &[(&str, &str)] = &[("docs/guide/cosign.md", "cosign")];

/// What an example prints when its last step succeeds.
const VALID: &str = "a signature of 3309 bytes, valid: true";

/// A folder with the programs that users have, and with no others that were built here: `sftp` in a page is OpenSSH's, and not the
/// fuzz target of that name.
fn programs() -> PathBuf {
    static MAKING: Mutex<()> = Mutex::new(());
    let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("programs");
    std::fs::create_dir_all(&folder).unwrap();
    let built = Path::new(env!("CARGO_BIN_EXE_outlast")).parent().unwrap();
    for name in ["outlast", "outlast-lab"] {
        let link = folder.join(name);
        if link.symlink_metadata().is_err() {
            std::os::unix::fs::symlink(built.join(name), link).unwrap();
        }
    }
    folder
}

/// A shell with `outlast` and the programs of these peers in its path, and no variables of AWS or Outlast.
fn shell(peers: &[&Path]) -> Command {
    let mut command = outlast_testing::program::command("bash");
    let path = std::env::var_os("PATH").unwrap();
    let folders = peers.iter().map(|peer| peer.join("bin"));
    let all = std::iter::once(programs()).chain(folders).chain(std::env::split_paths(&path));
    command.env("PATH", std::env::join_paths(all).unwrap());
    command
}

/// The blocks that are marked as runnable, as one script. `<!-- run: server -->` marks one that runs in the
/// background until `<!-- run: stop -->` or the end.
fn script(text: &str) -> Option<String> {
    let mut out =
        String::from("set -euo pipefail\ntrap 'kill ${server:-} 2>/dev/null || true; wait' EXIT\n");
    let mut lines = text.lines();
    let mut blocks = 0;
    while let Some(line) = lines.next() {
        let Some(mark) = line.strip_prefix("<!-- run") else { continue };
        let mark = mark.trim_end_matches(" -->").trim_start_matches(": ");
        if mark == "stop" {
            out.push_str("kill $server; wait $server || true; server=\n");
            continue;
        }
        assert_eq!(lines.next(), Some("```sh"), "a block follows the mark");
        let block: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
        let block = block.join("\n");
        blocks += 1;
        match mark {
            "" => out.push_str(&format!("{block}\n")),
            "server" => out.push_str(&format!(
                "rm -f server.log\n{block} >server.log 2>&1 &\nserver=$!\n\
                 until grep -qs 'listening on' server.log; do\n\
                 kill -0 $server || {{ cat server.log; exit 1; }}\nsleep 0.1\ndone\n"
            )),
            other => panic!("{other} is no way to run a block"),
        }
    }
    (blocks > 0).then_some(out)
}

#[test]
fn the_commands_of_every_page_run() {
    let (Some(book), Some(openssl)) = (peer("book"), peer("openssl")) else { return };
    for page in PAGES {
        run_page(page, &[&book, &openssl]);
    }
}

#[test]
fn the_commands_of_pages_with_other_tools_run() {
    let (Some(book), Some(openssl)) = (peer("book"), peer("openssl")) else { return };
    for (page, tool) in PAGES_OF_PEERS {
        let Some(tool) = peer(tool) else { return };
        run_page(page, &[&book, &openssl, &tool]);
    }
}

/// Runs a page's commands in an empty folder.
fn run_page(page: &str, peers: &[&Path]) {
    let text = std::fs::read_to_string(checkout().join(page)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let script = script(&text).unwrap_or_else(|| panic!("{page} has no command that runs"));
    // Paths in a page that do not exist on this machine.
    let script = script.replace("/srv/", &format!("{}/srv/", folder.path().display()));
    let mut command = shell(peers);
    command.current_dir(folder.path()).env("OUTLAST_LISTEN", "127.0.0.1:0");
    command.env("HOME", folder.path());
    let output = run(command.arg("-c").arg(format!("mkdir srv\n{script}")));
    let said = || format!("{page}: {}\n{}", stdout(&output), stderr(&output));
    assert!(output.status.success(), "{}", said());
}

/// Otherwise nobody would notice a page whose commands never run.
#[test]
fn pages_with_marked_commands_are_all_listed() {
    let guides = std::fs::read_dir(checkout().join("docs/guide")).unwrap();
    for guide in guides.map(|entry| entry.unwrap().path()) {
        let text = std::fs::read_to_string(&guide).unwrap();
        let of_peers = PAGES_OF_PEERS.iter().map(|(page, _)| page);
        let listed = PAGES.iter().chain(of_peers).any(|page| checkout().join(page) == guide);
        assert_eq!(script(&text).is_some(), listed, "{}", guide.display());
    }
}

#[test]
fn the_book_builds_and_no_link_is_dead() {
    let Some(book) = peer("book") else { return };
    let site = tempfile::tempdir().unwrap();
    let mut build = Command::new(book.join("bin/mkdocs"));
    build.args(["build", "--strict", "--quiet", "--site-dir"]).arg(site.path());
    succeed(build.current_dir(checkout()));
    assert!(site.path().join("guide/server.html").exists());
}

#[test]
fn words_are_spelled_right() {
    let Some(book) = peer("book") else { return };
    let mut check = Command::new(book.join("bin/codespell"));
    check.args(["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]);
    check.args(["docs", "examples", "--skip", "*.json,*.sum,*.lock"]);
    // A misspelling in the table of mistakes, and the extension of attestations.
    check.args(["--ignore-words-list", "polcy,intoto"]);
    succeed(check.current_dir(checkout()));
}

fn example(name: &str, more: &[(&str, String)], tools: Option<&Path>) {
    let (Some(book), Some(openssl)) = (peer("book"), peer("openssl")) else { return };
    let mut command = shell(&[&book, &openssl]);
    if let Some(tools) = tools {
        let path = command.get_envs().find(|(name, _)| *name == "PATH").unwrap().1.unwrap();
        // Before the machine's own programs of the same name.
        let folders: Vec<PathBuf> =
            [tools.join("bin")].into_iter().chain(std::env::split_paths(path)).collect();
        command.env("PATH", std::env::join_paths(folders).unwrap());
    }
    command.envs(more.iter().map(|(name, value)| (*name, value.as_str())));
    let output = run(command.arg(checkout().join("examples").join(name)));
    let text = format!("{}\n{}", stdout(&output), stderr(&output));
    assert!(output.status.success(), "{name}: {text}");
    println!("{text}");
}

#[test]
fn example_private_pki() {
    example("private-pki.sh", &[], None);
}

#[test]
fn example_code_signing() {
    example("code-signing.sh", &[], None);
}

#[test]
fn example_mutual_tls() {
    example("mutual-tls.sh", &[], None);
}

#[test]
fn example_machine_secrets() {
    example("machine-secrets.sh", &[], None);
}

#[test]
fn example_post_quantum_sftp() {
    let Some(openssh) = peer("openssh") else { return };
    // The machine's own OpenSSH has none of RFC 10042.
    let old = [("OLD_SSH", "/usr/bin/ssh".to_owned())];
    let more = if Path::new(&old[0].1).exists() { &old[..] } else { &[] };
    example("post-quantum-sftp.sh", more, Some(&openssh.join("10.0")));
}

#[test]
fn example_acme() {
    let Some(lego) = peer("lego") else { return };
    let folder = tempfile::tempdir().unwrap();
    let dns = Dns::start(folder.path().join("dns"));
    let more = [
        ("OUTLAST_ACME_DNS", dns.address.to_string()),
        ("OUTLAST_ACME_HTTP_PORT", free_port().to_string()),
        ("OUTLAST_ACME_NETWORKS", "127.0.0.0/8".to_owned()),
    ];
    example("acme.sh", &more, Some(&lego));
}

/// Runs a program as a user of an SDK would, with the profile that `init` made.
fn sdk(language: &str, mut command: Command) {
    let folder = Folder::new();
    let mut server = Server::start(&folder.data, &[]);
    let client = folder.data.join("client");
    command.env("AWS_PROFILE", "outlast").env("AWS_CONFIG_FILE", client.join("config"));
    command.env("AWS_SHARED_CREDENTIALS_FILE", client.join("credentials"));
    // Node and the example for Rust do not take the CA from the profile.
    command.env("NODE_EXTRA_CA_CERTS", client.join("ca.pem"));
    let output = run(command.env("OUTLAST_CA", client.join("ca.pem")));
    let text = stdout(&output);
    assert!(text.contains(VALID), "{language}: {text}{}", stderr(&output));
    assert_eq!(server.terminate(), Some(0));
}

/// A program with nothing of AWS or Outlast in its environment.
fn clean(program: &Path) -> Command {
    outlast_testing::program::command(program.to_str().unwrap())
}

#[test]
fn sdk_python() {
    let Some(peer) = peer("python") else { return };
    let mut command = clean(&peer.join("bin/python"));
    command.arg(checkout().join("examples/sdk/python/sign.py"));
    sdk("Python", command);
}

#[test]
fn sdk_javascript() {
    let Some(peer) = peer("javascript") else { return };
    // Node searches for packages beside the program.
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("sign.mjs");
    std::fs::copy(checkout().join("examples/sdk/javascript/sign.mjs"), &program).unwrap();
    std::os::unix::fs::symlink(peer.join("node_modules"), folder.path().join("node_modules"))
        .unwrap();
    let mut command = clean(&peer.join("bin/node"));
    command.arg(&program);
    sdk("JavaScript", command);
}

#[test]
fn sdk_go() {
    let Some(peer) = peer("go") else { return };
    sdk("Go", clean(&peer.join("bin/sign")));
}

#[test]
fn sdk_java() {
    let Some(peer) = peer("java") else { return };
    let source = checkout().join("examples/sdk/java/Sign.java");
    let started = java(&peer, source.to_str().unwrap(), &[]);
    // The CRT client only trusts the system's CA file; the script gives it another one.
    let mut command = clean(Path::new("sh"));
    let script = checkout().join("tests/interop/java/run-with-ca.sh");
    command.args(["-c", "exec \"$0\" \"$OUTLAST_CA\" \"$@\""]).arg(script);
    command.arg(started.get_program()).args(started.get_args());
    sdk("Java", command);
}

#[test]
fn sdk_rust() {
    let Some(peer) = peer("rust") else { return };
    sdk("Rust", clean(&peer.join("bin/sign")));
}
