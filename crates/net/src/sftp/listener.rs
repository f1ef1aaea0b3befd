//! What a listener serves now: the facts of its Transfer server as the configuration of SSH connections.

use std::sync::{Arc, PoisonError};

use outlast_api::service::sftp::{ServerFacts, Unserved};
use outlast_crypto::ssh::{Algorithm, Kind};
use outlast_negotiate::ssh::{SshRules, served};
use outlast_negotiate::{Mode, SecurityPolicy};
use outlast_ssh::{Algorithms, Certificate, HostKey, Limits, PrivateKey, ServerConfig};

use super::SftpServer;
use super::certified::Authorities;
use crate::limits;

/// A Transfer server, ready for connections.
pub(super) struct Listening {
    pub(super) facts: Arc<ServerFacts>,
    pub(super) config: Arc<ServerConfig>,
    pub(super) rules: SshRules,
    /// Signature algorithms that authorities of certificates may use: those of the policy.
    pub(super) signatures: &'static [&'static str],
    /// The authorities and host certificates that it was made with.
    authorities: Option<Arc<Authorities>>,
}

impl Listening {
    /// Tells the operator what is served from now on.
    fn tell(&self) {
        let certificates = self.authorities.as_ref().map_or(0, |all| all.host_certificates.len());
        let shown = self.config.host_keys.iter().filter(|key| key.certificate.is_some()).count();
        if shown < certificates {
            let unused = certificates - shown;
            tracing::warn!(
                unused,
                "host certificates are not shown: they are for keys that the server does not have, or that have one already"
            );
        }
        let keys: Vec<_> =
            self.facts.host_keys.iter().map(|key| key.fingerprint.as_str()).collect();
        let (policy, mode) = (&self.facts.security_policy, self.rules.mode);
        tracing::info!(server = self.facts.id, policy, %mode, host_keys = keys.join(" "), "SFTP is served");
    }
}

impl SftpServer {
    /// What is served now. The store is read at most once a second.
    ///
    /// # Errors
    /// Why nothing is served, for the operator.
    pub(super) fn listening(&self) -> Result<Arc<Listening>, String> {
        // A thread that may block gives its other connections to another one, which costs more than most of this.
        match self.known() {
            Some(listening) => Ok(listening),
            None => tokio::task::block_in_place(|| self.read_listening()),
        }
    }

    /// Warns the operator if every client is refused.
    pub fn tell(&self) {
        if let Err(error) = self.listening() {
            tracing::warn!(error, "SFTP clients are refused until there is something to serve");
        }
    }

    /// What is served, if nothing has to be read to know it.
    fn known(&self) -> Option<Arc<Listening>> {
        if self.settings.authorities.is_some() {
            return None;
        }
        let facts = match self.roster() {
            Some(roster) => roster.facts.clone(),
            None => self.service.kept_sftp_server(self.wanted().as_deref(), (self.clock)())?,
        };
        self.made(&facts, None).filter(|_| facts.is_online)
    }

    fn read_listening(&self) -> Result<Arc<Listening>, String> {
        let facts = match self.roster() {
            Some(roster) => roster.facts.clone(),
            None => self.transfer_server().map_err(|error| error.to_string())?,
        };
        if !facts.is_online {
            return Err(format!("the Transfer server {} is not online", facts.id));
        }
        // While they cannot be read, the connection's logins say so; its host keys have no certificates.
        let authorities = self.settings.authorities.as_ref().and_then(|read| read().ok());
        if let Some(made) = self.made(&facts, authorities.as_ref()) {
            return Ok(made);
        }
        let hosts = authorities.as_ref().map_or(&[][..], |all| &all.host_certificates);
        let (config, rules, signatures) = config(&facts, self.settings.mode, hosts)?;
        let config = Arc::new(config);
        let listening = Arc::new(Listening { config, rules, facts, signatures, authorities });
        listening.tell();
        *self.listening.write().unwrap_or_else(PoisonError::into_inner) = Some(listening.clone());
        Ok(listening)
    }

    /// The last configuration, if it was made of these.
    fn made(
        &self,
        facts: &ServerFacts,
        authorities: Option<&Arc<Authorities>>,
    ) -> Option<Arc<Listening>> {
        let made = self.listening.read().unwrap_or_else(PoisonError::into_inner).clone()?;
        let is_it = made.facts.version == facts.version
            && made.authorities.as_ref().map(Arc::as_ptr) == authorities.map(Arc::as_ptr);
        is_it.then_some(made)
    }

    /// Id of the Transfer server to serve: the one that the operator names, or the one that was chosen before.
    fn wanted(&self) -> Option<String> {
        let kept = || {
            let kept = self.listening.read().unwrap_or_else(PoisonError::into_inner);
            kept.as_ref().map(|kept| kept.facts.id.clone())
        };
        self.settings.server.clone().or_else(kept)
    }

    /// The Transfer server that is served. One that was chosen stays as long as it exists, also when another one is made: nothing else ends what
    /// is served, and when it is stopped, its clients do not get to another one.
    fn transfer_server(&self) -> Result<Arc<ServerFacts>, Unserved> {
        let now_ms = (self.clock)();
        let wanted = self.wanted();
        let found = self.service.sftp_server(wanted.as_deref(), now_ms);
        match found {
            Err(Unserved::Unknown(_)) if self.settings.server.is_none() => {
                self.service.sftp_server(None, now_ms)
            }
            found => found,
        }
    }
}

type Configured = (ServerConfig, SshRules, &'static [&'static str]);

/// Refuses what no listener could serve.
///
/// # Errors
/// A host key or the security policy cannot be used.
pub fn check(facts: &ServerFacts, mode: Option<Mode>) -> Result<(), String> {
    config(facts, mode, &[]).map(|_| ())
}

/// The configuration of a server's connections, the rules that it follows, and the policy's algorithms for signatures of
/// certificates: those of its host keys, of which the server need not have one.
fn config(
    facts: &ServerFacts,
    mode: Option<Mode>,
    certificates: &[Certificate],
) -> Result<Configured, String> {
    let policy =
        SecurityPolicy::by_name(&facts.security_policy).map_err(|error| error.to_string())?;
    let mut host_keys: Vec<HostKey> = Vec::new();
    for key in &facts.host_keys {
        let read = std::str::from_utf8(key.private.expose())
            .map_err(|error| error.to_string())
            .and_then(|text| PrivateKey::from_pem(text).map_err(|error| error.to_string()));
        let read =
            read.map_err(|error| format!("the host key {} cannot be read: {error}", key.id))?;
        let certificate = certificates.iter().find(|one| one.key() == read.public_key()).cloned();
        host_keys.push(HostKey { key: Arc::new(read), certificate });
    }
    // A host key algorithm without a key would serve nobody.
    let has_key = |name: &str| {
        let is_host_key = Algorithm::by_name(name).is_some_and(|row| row.kind == Kind::HostKey);
        !is_host_key || host_keys.iter().any(|host: &HostKey| host.key.signs_with(name))
    };
    let rules = SshRules::new(policy, mode, |name| served(name) && has_key(name))
        .map_err(|error| error.to_string())?;
    let lists = rules.lists();
    let mut config = ServerConfig::new(host_keys);
    config.algorithms =
        Algorithms::of(&lists.key_exchanges, &lists.ciphers, &lists.macs, &lists.host_keys);
    if rules.waits() {
        let post_quantum =
            |name: &&&'static str| Algorithm::by_name(name).is_some_and(|row| row.post_quantum);
        let methods = config.algorithms.key_exchanges.iter();
        config.preferred = methods.filter(post_quantum).copied().collect();
    }
    config.banner.clone_from(&facts.banner);
    config.methods = match (facts.methods.takes_key(), facts.methods.takes_password()) {
        (true, true) => vec!["publickey", "password"],
        (false, _) => vec!["password"],
        (true, false) => vec!["publickey"],
    };
    config.limits = Limits {
        channels: limits::MAX_SFTP_CHANNELS,
        packet: limits::MAX_SFTP_PACKET,
        window: limits::SFTP_WINDOW,
        first_window: limits::SFTP_FIRST_WINDOW,
        ..Limits::default()
    };
    Ok((config, rules, policy.ssh.host_keys))
}
