//! The paths below `/acme/`: from paths to resources, and from resources to URLs.

use http::Method;
use outlast_domain::acme::{Authorization, ChallengeKind, Order};

/// Prefix of every ACME path.
pub const PREFIX: &str = "/acme/";

/// What a path below an endpoint names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource<'a> {
    /// The directory.
    Directory,
    /// A new nonce.
    NewNonce,
    /// Makes an account, or finds one.
    NewAccount,
    /// Makes an order.
    NewOrder,
    /// Revokes a certificate.
    RevokeCert,
    /// Changes the key of an account.
    KeyChange,
    /// An account.
    Account(&'a str),
    /// The orders of an account.
    Orders(&'a str),
    /// An order: account and id.
    Order(&'a str, &'a str),
    /// Finalizes an order.
    Finalize(&'a str, &'a str),
    /// An authorization: account and id.
    Authorization(&'a str, &'a str),
    /// A challenge: account, authorization and kind.
    Challenge(&'a str, &'a str, ChallengeKind),
    /// A certificate.
    Certificate(&'a str),
    /// When to renew a certificate.
    RenewalInfo(&'a str),
}

impl<'a> Resource<'a> {
    /// Reads a path: the id of the endpoint, and the resource; `None` if the path names none.
    pub fn parse(path: &'a str) -> Option<(&'a str, Self)> {
        let mut parts = path.strip_prefix(PREFIX)?.split('/');
        let endpoint = parts.next().filter(|id| !id.is_empty())?;
        let parts: Vec<_> = parts.collect();
        let resource = match *parts.as_slice() {
            ["directory"] => Self::Directory,
            ["new-nonce"] => Self::NewNonce,
            ["new-account"] => Self::NewAccount,
            ["new-order"] => Self::NewOrder,
            ["revoke-cert"] => Self::RevokeCert,
            ["key-change"] => Self::KeyChange,
            ["account", id] => Self::Account(id),
            ["account", id, "orders"] => Self::Orders(id),
            ["order", account, id] => Self::Order(account, id),
            ["order", account, id, "finalize"] => Self::Finalize(account, id),
            ["authorization", account, id] => Self::Authorization(account, id),
            ["challenge", account, id, kind] => {
                Self::Challenge(account, id, ChallengeKind::by_name(kind)?)
            }
            ["certificate", id] => Self::Certificate(id),
            ["renewal-info", id] => Self::RenewalInfo(id),
            _ => return None,
        };
        Some((endpoint, resource))
    }

    /// Methods that the resource takes: GET and HEAD where a request may be unsigned, POST where it can be signed
    /// (RFC 8555, section 6.3).
    pub fn takes(&self, method: &Method) -> bool {
        match self {
            Self::Directory | Self::NewNonce => {
                matches!(*method, Method::GET | Method::HEAD | Method::POST)
            }
            Self::RenewalInfo(_) => matches!(*method, Method::GET | Method::HEAD),
            _ => *method == Method::POST,
        }
    }

    /// Name of the CloudTrail event that records a change of this resource.
    pub fn event(&self) -> &'static str {
        match self {
            Self::NewAccount => "AcmeNewAccount",
            Self::NewOrder => "AcmeNewOrder",
            Self::RevokeCert => "AcmeRevokeCertificate",
            Self::KeyChange => "AcmeKeyChange",
            Self::Account(_) => "AcmeUpdateAccount",
            Self::Finalize(..) => "AcmeFinalizeOrder",
            Self::Authorization(..) => "AcmeDeactivateAuthorization",
            Self::Challenge(..) => "AcmeRespondToChallenge",
            Self::Certificate(_) => "AcmeGetCertificate",
            Self::Orders(_) => "AcmeListOrders",
            Self::Order(..) => "AcmeGetOrder",
            Self::Directory => "AcmeGetDirectory",
            Self::NewNonce => "AcmeNewNonce",
            Self::RenewalInfo(_) => "AcmeGetRenewalInfo",
        }
    }
}

/// Makes the URLs of an endpoint.
#[derive(Debug, Clone)]
pub struct Urls {
    /// URL of the endpoint: `https://host:port/acme/id/`.
    base: String,
}

impl Urls {
    /// The URLs of an endpoint that clients reach at `origin`, such as `https://host:port`.
    pub fn new(origin: &str, endpoint: &str) -> Self {
        Self { base: format!("{}{PREFIX}{endpoint}/", origin.trim_end_matches('/')) }
    }

    /// The URL of a path below the endpoint.
    pub fn below(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// The directory's URL, which operators give to clients.
    pub fn directory(&self) -> String {
        self.below("directory")
    }

    /// An account's URL.
    pub fn account(&self, id: &str) -> String {
        self.below(&format!("account/{id}"))
    }

    /// The id of an account from its URL.
    pub fn account_id<'a>(&self, url: &'a str) -> Option<&'a str> {
        url.strip_prefix(&self.base)?.strip_prefix("account/")
    }

    /// An order's URL.
    pub fn order(&self, order: &Order) -> String {
        self.below(&format!("order/{}/{}", order.account(), order.id()))
    }

    /// An authorization's URL.
    pub fn authorization(&self, account: &str, id: &str) -> String {
        self.below(&format!("authorization/{account}/{id}"))
    }

    /// A challenge's URL.
    pub fn challenge(&self, authorization: &Authorization, kind: ChallengeKind) -> String {
        let (account, id) = (authorization.account(), authorization.id());
        self.below(&format!("challenge/{account}/{id}/{}", kind.name()))
    }

    /// A certificate's URL.
    pub fn certificate(&self, id: &str) -> String {
        self.below(&format!("certificate/{id}"))
    }
}
