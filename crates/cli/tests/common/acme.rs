//! ACME clients as their users run them: lego, certbot, Caddy.

use outlast_testing::PATIENCE;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::dns::Dns;
use super::peers::checkout;
use super::succeed;

/// Settings for a client, and where it may write.
pub struct Site {
    /// URL of the directory.
    pub directory: String,
    /// PEM of the root that the server's own certificate has.
    pub ca: PathBuf,
    /// External account binding: key identifier, and MAC key in base64url.
    pub binding: (String, String),
    /// Where the server looks for http-01 and tls-alpn-01.
    pub http_port: u16,
    pub tls_port: u16,
    /// Where the server looks for names.
    pub dns: Dns,
    pub folder: PathBuf,
}

/// The way in which a client proves a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Challenge {
    Http,
    TlsAlpn,
    Dns,
}

/// The files that a client got, in PEM.
pub struct Got {
    /// Leaf and chain.
    pub chain: PathBuf,
    pub key: PathBuf,
}

impl Site {
    /// lego with the options that every call needs.
    pub fn lego(&self, peer: &Path, domain: &str, challenge: Challenge) -> Command {
        let mut command = Command::new(peer.join("bin/lego"));
        command.env("LEGO_CA_CERTIFICATES", &self.ca).arg("--path").arg(self.folder.join("lego"));
        command.args(["--server", &self.directory, "--accept-tos", "--email", "a@example.com"]);
        command.args(["--eab", "--kid", &self.binding.0]);
        command.arg(format!("--hmac={}", self.binding.1));
        command.args(["--domains", domain]);
        match challenge {
            Challenge::Http => {
                let at = format!("127.0.0.1:{}", self.http_port);
                command.args(["--http", "--http.port", &at]);
            }
            Challenge::TlsAlpn => {
                let at = format!("127.0.0.1:{}", self.tls_port);
                command.args(["--tls", "--tls.port", &at]);
            }
            Challenge::Dns => {
                command.args(["--dns", "exec", "--dns.disable-cp"]);
                command.args(["--dns.resolvers", &self.dns.address.to_string()]);
                command.env("EXEC_PATH", hook()).env("DNS_RECORDS", &self.dns.records);
            }
        }
        command
    }

    /// The files that lego got.
    pub fn lego_got(&self, domain: &str) -> Got {
        let folder = self.folder.join("lego/certificates");
        let domain = domain.replace('*', "_");
        Got {
            chain: folder.join(format!("{domain}.crt")),
            key: folder.join(format!("{domain}.key")),
        }
    }

    /// certbot with the options that every call needs.
    pub fn certbot(&self, peer: &Path, verb: &str) -> Command {
        let mut command = Command::new(peer.join("bin/certbot"));
        command.arg(verb).args(["--non-interactive", "--server", &self.directory]);
        for (option, folder) in [("--config-dir", "c"), ("--work-dir", "w"), ("--logs-dir", "l")] {
            command.arg(option).arg(self.folder.join("certbot").join(folder));
        }
        command.env("REQUESTS_CA_BUNDLE", &self.ca).env("DNS_RECORDS", &self.dns.records);
        command
    }

    /// certbot with the options for a new certificate.
    pub fn certbot_new(&self, peer: &Path, domain: &str, challenge: Challenge) -> Command {
        let mut command = self.certbot(peer, "certonly");
        command.args(["--agree-tos", "--email", "b@example.com", "--domain", domain]);
        // One key in 64 begins with a hyphen, as an option does.
        command.args(["--eab-kid", &self.binding.0]);
        command.arg(format!("--eab-hmac-key={}", self.binding.1));
        if challenge == Challenge::Dns {
            let hook = hook().display().to_string();
            command.args(["--manual", "--preferred-challenges", "dns", "--manual-auth-hook"]);
            command.arg(format!("{hook} present")).arg("--manual-cleanup-hook");
            command.arg(format!("{hook} cleanup"));
        } else {
            assert_eq!(challenge, Challenge::Http, "certbot has no other");
            command.args(["--standalone", "--http-01-address", "127.0.0.1", "--http-01-port"]);
            command.arg(self.http_port.to_string());
        }
        command
    }

    /// The files that certbot got.
    pub fn certbot_got(&self, domain: &str) -> Got {
        let folder = self.folder.join("certbot/c/live").join(domain);
        Got { chain: folder.join("fullchain.pem"), key: folder.join("privkey.pem") }
    }

    /// Starts Caddy, which gets a certificate for `domain` and serves it at the port of tls-alpn-01.
    pub fn caddy(&self, peer: &Path, domain: &str) -> Caddy {
        let storage = self.folder.join("caddy");
        std::fs::create_dir_all(&storage).unwrap();
        let mut text =
            String::from("{\n\tadmin off\n\tskip_install_trust\n\tdefault_bind 127.0.0.1\n");
        for (option, value) in [
            ("storage file_system", storage.display().to_string()),
            ("http_port", self.http_port.to_string()),
            ("https_port", self.tls_port.to_string()),
            ("email", "c@example.com".to_owned()),
            ("acme_ca", self.directory.clone()),
            ("acme_ca_root", self.ca.display().to_string()),
        ] {
            writeln!(text, "\t{option} {value}").unwrap();
        }
        let (key, mac) = &self.binding;
        writeln!(text, "\tacme_eab {{\n\t\tkey_id {key}\n\t\tmac_key {mac}\n\t}}\n}}").unwrap();
        writeln!(text, "{domain} {{\n\trespond \"served by Caddy\"\n}}").unwrap();
        let config = storage.join("Caddyfile");
        std::fs::write(&config, text).unwrap();
        let log = storage.join("log");
        let mut command = Command::new(peer.join("bin/caddy"));
        command.args(["run", "--adapter", "caddyfile", "--config"]).arg(&config);
        command
            .env("HOME", &storage)
            .env("XDG_CONFIG_HOME", &storage)
            .env("XDG_DATA_HOME", &storage);
        command.stdout(Stdio::null()).stderr(std::fs::File::create(&log).unwrap());
        Caddy {
            child: command.spawn().unwrap(),
            log,
            port: self.tls_port,
            domain: domain.to_owned(),
        }
    }
}

/// A running Caddy; killed when dropped.
pub struct Caddy {
    child: Child,
    pub log: PathBuf,
    port: u16,
    domain: String,
}

impl Caddy {
    /// Waits until it serves a certificate for its name below `root`, as OpenSSL sees it.
    pub fn wait(&self, openssl: &Path, root: &Path) {
        let deadline = Instant::now() + PATIENCE;
        let address = format!("127.0.0.1:{}", self.port);
        while Instant::now() < deadline {
            let mut client = super::peers::openssl(openssl, &["s_client", "-connect", &address]);
            client.args(["-servername", &self.domain, "-verify_hostname", &self.domain]);
            client.arg("-verify_return_error").arg("-CAfile").arg(root).stdin(Stdio::null());
            let output = client.output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            if output.status.success() && text.contains("Verify return code: 0 (ok)") {
                return;
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        panic!("{}", std::fs::read_to_string(&self.log).unwrap());
    }
}

impl Drop for Caddy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Got {
    /// The leaf's serial number in hexadecimal, as OpenSSL prints it.
    pub fn serial(&self, openssl: &Path) -> String {
        let mut show = super::peers::openssl(openssl, &["x509", "-noout", "-serial", "-in"]);
        succeed(show.arg(&self.chain)).trim().trim_start_matches("serial=").to_owned()
    }

    /// A folder for `tests/interop/pki/STEPS.md`, without CRLs and OCSP responses.
    pub fn material(&self, root: &Path, folder: &Path) {
        const END: &str = "-----END CERTIFICATE-----\n";
        std::fs::create_dir_all(folder).unwrap();
        let text = std::fs::read_to_string(&self.chain).unwrap();
        let at = text.find(END).unwrap() + END.len();
        std::fs::write(folder.join("leaf.pem"), &text[..at]).unwrap();
        std::fs::write(folder.join("chain.pem"), &text[at..]).unwrap();
        std::fs::copy(root, folder.join("root.pem")).unwrap();
    }

    /// Checks that the leaf is for the name and the key, and that its chain ends at `root`.
    pub fn check(&self, openssl: &Path, root: &Path, domain: &str) {
        let run = |arguments: &[&str], file: &Path| {
            succeed(super::peers::openssl(openssl, arguments).arg(file))
        };
        let root = root.display().to_string();
        let chain = self.chain.display().to_string();
        let verify =
            ["verify", "-x509_strict", "-purpose", "sslserver", "-verify_hostname", domain];
        let verify = [&verify[..], &["-CAfile", &root, "-untrusted", &chain]].concat();
        assert!(run(&verify, &self.chain).contains(": OK"));
        let of_leaf = run(&["x509", "-noout", "-pubkey", "-in"], &self.chain);
        let of_key = run(&["pkey", "-pubout", "-in"], &self.key);
        assert_eq!(of_leaf, of_key, "another key");
    }
}

fn hook() -> PathBuf {
    checkout().join("tests/interop/acme/dns-hook.sh")
}
