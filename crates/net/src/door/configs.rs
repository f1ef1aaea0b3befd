//! rustls configurations, one for each possible decision. They are made together with the door, because a handshake
//! has no time for it.

use std::collections::HashMap;
use std::sync::Arc;

use outlast_crypto::schemes::{Kind, Scheme};
use outlast_crypto::versions::Version;
use outlast_negotiate::decide::CertificateFacts;
use outlast_negotiate::{Choice, Rules, Transport};
use rustls::server::{NoServerSessionStorage, ProducesTickets, StoresServerSessions};
use rustls::{Error, ServerConfig};

use super::Settings;
use super::shown::{Always, ServerCertificate};
use crate::client_auth::ClientAuth;
use crate::policy::{decided, supported};

/// State that is replaced as a whole while connections are open.
pub(crate) struct Current {
    pub(super) certificates: Vec<ServerCertificate>,
    pub(super) facts: Vec<CertificateFacts>,
    pub(super) clients: Option<ClientAuth>,
    configs: HashMap<Key, Configs>,
}

/// Version, group, certificate, signature scheme of the handshake.
type Key = (Version, u16, usize, u16);

struct Configs {
    tcp: Arc<ServerConfig>,
    quic: Option<Arc<ServerConfig>>,
}

/// State that outlives a replacement.
pub(super) struct Kept<'a> {
    pub(super) settings: &'a Settings,
    pub(super) tickets: &'a Arc<dyn ProducesTickets>,
    pub(super) sessions: &'a Arc<dyn StoresServerSessions>,
}

impl Current {
    pub(super) fn new(
        kept: &Kept<'_>,
        certificates: Vec<ServerCertificate>,
        clients: Option<ClientAuth>,
    ) -> Result<Self, Error> {
        let rules = &kept.settings.rules;
        let facts: Vec<_> = certificates.iter().map(ServerCertificate::facts).collect();
        let mut configs = HashMap::new();
        for version in rules.versions() {
            let versions: Vec<_> =
                supported(rules, version).into_iter().map(Version::rustls).collect();
            let verifier = match &clients {
                Some(clients) => Some(clients.verifier(rules, version)?),
                None => None,
            };
            for group in rules.groups() {
                if version == Version::Tls12 && group.strength.is_post_quantum() {
                    continue;
                }
                let provider = decided(rules, version, group);
                for (index, (certificate, facts)) in certificates.iter().zip(&facts).enumerate() {
                    for scheme in usable(rules, version, facts) {
                        let builder = ServerConfig::builder_with_provider(provider.clone())
                            .with_protocol_versions(&versions)?;
                        let builder = match &verifier {
                            Some(verifier) => builder.with_client_cert_verifier(verifier.clone()),
                            None => builder.with_no_client_auth(),
                        };
                        let resolver = Arc::new(Always::new(certificate, scheme));
                        let mut config = builder.with_cert_resolver(resolver);
                        kept.finish(&mut config, version, clients.is_some());
                        let quic = kept.quic(version, &config);
                        let key = (version, group.code_point, index, scheme.code_point);
                        configs.insert(key, Configs { tcp: Arc::new(config), quic });
                    }
                }
            }
        }
        Ok(Self { certificates, facts, clients, configs })
    }

    pub(super) fn config(
        &self,
        choice: &Choice,
        transport: Transport,
    ) -> Option<Arc<ServerConfig>> {
        let key =
            (choice.version, choice.group.code_point, choice.certificate, choice.scheme.code_point);
        let configs = self.configs.get(&key)?;
        match transport {
            Transport::Tcp => Some(configs.tcp.clone()),
            Transport::Quic => configs.quic.clone(),
        }
    }
}

/// The schemes that [`outlast_negotiate::decide()`] may choose for a certificate.
fn usable(
    rules: &Rules,
    version: Version,
    facts: &CertificateFacts,
) -> impl Iterator<Item = &'static Scheme> {
    let unfit = if version == Version::Tls13 { Kind::RsaPkcs1 } else { Kind::MlDsa };
    rules
        .handshake_schemes()
        .filter(move |row| row.kind != unfit && facts.schemes.contains(&row.code_point))
}

impl Kept<'_> {
    fn finish(&self, config: &mut ServerConfig, version: Version, asks_clients: bool) {
        // The policy's order counts, and the client's order must not override it.
        config.ignore_client_order = true;
        config.alpn_protocols = self.settings.protocols.clone();
        // RFC 8446, section 8: early data can be replayed, and nobody needs it here.
        config.max_early_data_size = 0;
        if asks_clients {
            // A resumed session carries the client's certificate of the first handshake, and nobody would check
            // whether it has expired or been revoked since.
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
        } else {
            // Shared by all configurations, so that a session can be resumed with any of them.
            config.session_storage = self.sessions.clone();
            // In TLS 1.2 a ticket contains the master secret, so a leaked ticket key would decrypt recorded traffic,
            // and a resumed session gets a new ticket with the same secret, without end. So its sessions are kept in
            // memory only.
            if version == Version::Tls13 {
                config.ticketer = self.tickets.clone();
            }
        }
    }

    /// The same for QUIC, which has only TLS 1.3 (RFC 9001, section 4.2) and other ALPN names.
    fn quic(&self, version: Version, config: &ServerConfig) -> Option<Arc<ServerConfig>> {
        let protocols = &self.settings.quic_protocols;
        if protocols.is_empty() || version != Version::Tls13 {
            return None;
        }
        let mut config = config.clone();
        config.alpn_protocols = protocols.clone();
        Some(Arc::new(config))
    }
}
