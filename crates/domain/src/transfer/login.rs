//! The decision of a login: who the user is, by which proof, and what the user may do.
//!
//! A refusal says nothing to the peer. For the operator it has a reason. A user who does not exist costs the same reads and
//! comparisons as one with another key.

use std::net::IpAddr;

use outlast_crypto::{Secret, hmac};
use outlast_ssh::PublicKey;

use super::home::{Directories, Home};
use super::posix::Posix;
use super::provider::{Answer, Question, Said};
use super::rights::Rights;
use super::server::{Server, find_server};
use super::ssh_key::KeyLine;
use super::user::{self, AuthorizedKey, User};
use super::{SERVICE_PRINCIPAL, TransferError, USER};
use crate::Fault;
use crate::arn::{Arn, Scope};
use crate::identity::session::{authorize_transfer, without_credentials};
use crate::identity::{Entry, IdentityError, Permit, PolicyCache, Role, action};
use crate::work::Work;

/// What a peer has shown so far.
pub struct Login<'a> {
    /// Account and Region of the server.
    pub scope: &'a Scope,
    /// Id of the server.
    pub server: &'a str,
    /// The name that the peer gives.
    pub user: &'a str,
    /// A public key: the peer has offered it, or signed with it.
    pub key: Option<&'a [u8]>,
    /// Whether the peer's signature with that key was verified, in this connection.
    pub key_is_proven: bool,
    /// Whether the key was decided upon in this connection before: it is one of the user's, and [`Step::NeedsPassword`] said so. AWS's
    /// providers name the keys of a user only when they are asked without a password ("Using multiple authentication methods").
    pub key_was_accepted: bool,
    /// A certificate of that key, which names the user and whose authority the operator trusts, in place of a key of the
    /// user's own. The caller has checked all that it says.
    pub certificate: Option<&'a Certified>,
    /// A password.
    pub password: Option<&'a Secret>,
    /// Address of the peer.
    pub source_ip: IpAddr,
    /// Id of the connection, for the name of the session.
    pub session: &'a str,
}

/// A certificate that a user has logged in with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certified {
    /// Its key id.
    pub key_id: String,
    /// Its serial number.
    pub serial: u64,
    /// Fingerprint of the authority's key.
    pub authority: String,
}

/// What comes next.
pub enum Step {
    /// The login is refused, always with the same words to the peer.
    Refused(Refusal),
    /// The key that was offered may sign.
    KeyAcceptable,
    /// The key is proven, and the server wants a password, too.
    NeedsPassword,
    /// The server's identity provider must be asked; then the login is decided again, with its answer.
    Ask(Question),
    /// The user is logged in.
    Accepted(Box<Account>),
}

/// Why a login is refused, for the operator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no such server, or it is stopped.
    #[error("the server is not online")]
    Offline,
    /// There is no such user.
    #[error("the user is unknown")]
    UnknownUser,
    /// The key is none of the user's.
    #[error("the key is none of the user's")]
    WrongKey,
    /// The signature is not one of the key that was shown, or not for this session.
    #[error("the signature is not valid")]
    Signature,
    /// A key or certificate cannot be read, or its algorithm is not allowed.
    #[error("what was shown cannot be used: {0}")]
    Unreadable(String),
    /// The password is not the user's, or the user has none.
    #[error("the password is not the user's")]
    WrongPassword,
    /// The certificate does not count.
    #[error("{0}")]
    Certificate(String),
    /// The way to authenticate is not one of the server's.
    #[error("the server takes no such proof")]
    Method,
    /// The same for a method that no server has.
    #[error("the server takes no such proof: {0}")]
    NotServed(String),
    /// The user may not come from the peer's address.
    #[error("the user may not log in from this address")]
    Address,
    /// The user's logins have ended.
    #[error("the user's logins have ended")]
    Expired,
    /// The identity provider refuses the user.
    #[error("the identity provider refuses the user")]
    Provider,
    /// The identity provider did not answer, or not what it should.
    #[error("the identity provider could not be asked; the server's log says why")]
    ProviderUnavailable,
    /// The role is not one of the server's account.
    #[error("the role {0} is not one of the account of the server")]
    ForeignRole(String),
    /// There is no such role.
    #[error("there is no role {0}")]
    UnknownRole(String),
    /// The role's trust policy does not allow the service to assume it for this login.
    #[error("the trust policy of the role {0} does not allow transfer.amazonaws.com to assume it")]
    Untrusted(String),
    /// The home or the session policy of the user cannot be used.
    #[error("{0}")]
    Unusable(String),
}

/// A user who is logged in.
pub struct Account {
    /// ARN of the user.
    pub user_arn: String,
    /// Name of the user.
    pub user: String,
    /// ARN of the server.
    pub server_arn: String,
    /// Account and Region.
    pub scope: Scope,
    /// ARN of the role.
    pub role_arn: String,
    /// Where the files are.
    pub directories: Directories,
    /// What may be done with them.
    pub rights: Rights,
    /// `PosixProfile`
    pub posix: Option<Posix>,
    /// Fingerprint and algorithm of the key that was used.
    pub key: Option<(String, &'static str)>,
    /// The certificate that was used.
    pub certificate: Option<Certified>,
    /// Text after authentication.
    pub welcome: Option<String>,
    /// Whether requests to set attributes are ignored.
    pub ignores_set_stat: bool,
}

/// What a login needs to know of a user, from wherever it comes.
struct Known {
    role: String,
    home: Home,
    policy: Option<String>,
    posix: Option<Posix>,
}

impl Known {
    /// What a provider outside has said.
    fn of(said: &Said) -> Self {
        Self {
            role: said.role.to_string(),
            home: said.home.clone(),
            policy: said.policy.clone(),
            posix: said.posix.clone(),
        }
    }
}

/// Decides a login. `answer` is that of the identity provider, once it was asked; `Some(None)` if it refuses.
///
/// # Errors
/// Failures of the service. What was read must still hold when the login is recorded.
pub fn login(
    work: &mut Work<'_>,
    policies: &PolicyCache,
    login: &Login<'_>,
    answer: Option<Option<&Answer>>,
) -> Result<Step, Fault> {
    let server = match find_server(work, login.scope, login.server) {
        Ok(server) if server.is_online() => server,
        Ok(_) | Err(TransferError::NotFound(_)) => return Ok(Step::Refused(Refusal::Offline)),
        Err(TransferError::Fault(fault)) => return Err(fault),
        Err(other) => return Err(Fault::Encoding(other.to_string())),
    };
    match server.provider().is_service_managed() {
        true => managed(work, policies, &server, login),
        false => provided(work, policies, &server, login, answer),
    }
}

/// Users of this service have public keys only.
fn managed(
    work: &mut Work<'_>,
    policies: &PolicyCache,
    server: &Server,
    login: &Login<'_>,
) -> Result<Step, Fault> {
    let found = user::look_up(work, server, login.user)?;
    let decoy = [AuthorizedKey { id: String::new(), line: DECOY.to_owned(), imported_ms: 0 }];
    let keys = found.as_ref().map_or(&decoy[..], User::keys);
    let lines = keys.iter().map(|key| key.line.as_str());
    let Some(offered) = login.key else { return Ok(Step::Refused(Refusal::Method)) };
    let matches = is_one_of(lines, offered) | login.certificate.is_some();
    let Some(user) = found else { return Ok(Step::Refused(Refusal::UnknownUser)) };
    if !matches {
        return Ok(Step::Refused(Refusal::WrongKey));
    }
    if !login.key_is_proven {
        return Ok(Step::KeyAcceptable);
    }
    let known = Known {
        role: user.role().to_owned(),
        home: user.home().clone(),
        policy: user.policy().map(str::to_owned),
        posix: user.posix().cloned(),
    };
    accept(work, policies, server, login, known)
}

/// A key that nobody has: one of Ed25519 whose bytes are its own name, and zeros.
const DECOY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHNzaC1lZDI1NTE5AAAAIHNzaC1lZDI1NTE5AAAAAAAA";

/// Whether a key is one of those in lines. All are compared.
fn is_one_of<'a>(lines: impl Iterator<Item = &'a str>, offered: &[u8]) -> bool {
    let mut found = false;
    for line in lines {
        found |= KeyLine::parse(line).is_ok_and(|line| hmac::equal(line.key.blob(), offered));
    }
    found
}

/// Users of an identity provider outside.
fn provided(
    work: &mut Work<'_>,
    policies: &PolicyCache,
    server: &Server,
    login: &Login<'_>,
    answer: Option<Option<&Answer>>,
) -> Result<Step, Fault> {
    let methods = server.provider().methods();
    // A provider that is asked without a password believes that a key was proven: nobody may choose an empty one, nor one of
    // blanks, which HTTP does not tell from an empty one.
    let says_something = |password: &&Secret| !password.expose().trim_ascii().is_empty();
    let password = login.password.filter(says_something);
    if login.password.is_some() && password.is_none() {
        return Ok(Step::Refused(Refusal::Method));
    }
    let (key, password) =
        (login.key.filter(|_| methods.takes_key()), password.filter(|_| methods.takes_password()));
    if key.is_none() && password.is_none() {
        return Ok(Step::Refused(Refusal::Method));
    }
    if !user::is_name(login.user) {
        return Ok(Step::Refused(Refusal::UnknownUser));
    }
    let both = methods == super::Methods::Both;
    if both && key.is_none() {
        return Ok(Step::Refused(Refusal::Method));
    }
    let fits =
        |answer: &&Answer| answer.is_for(server.provider(), server.id(), login.user, password);
    let answer = answer.and_then(|answer| match answer {
        None => Some(None),
        // One about another user or password counts as none.
        Some(answer) => Some(answer).filter(fits).map(Some),
    });
    let Some(answer) = answer else {
        let asked = server.provider().question(server.id(), login.user, password, login.source_ip);
        return asked
            .map(Step::Ask)
            .ok_or_else(|| Fault::Encoding("a server without a provider".into()));
    };
    let Some(Answer { said, .. }) = answer else { return Ok(Step::Refused(Refusal::Provider)) };
    // With a password alone the provider has decided; a key is one of those that it names.
    if let Some(offered) = key.filter(|_| both || password.is_none()) {
        let matches = is_one_of(said.keys.iter().map(String::as_str), offered);
        // An answer that names keys decides about them again.
        let was_accepted = login.key_was_accepted && password.is_some() && said.keys.is_empty();
        if !matches && !was_accepted && login.certificate.is_none() {
            return Ok(Step::Refused(Refusal::WrongKey));
        }
        if !login.key_is_proven {
            return Ok(Step::KeyAcceptable);
        }
        if both && password.is_none() {
            return Ok(Step::NeedsPassword);
        }
    }
    accept(work, policies, server, login, Known::of(said))
}

/// What a test of the server's identity provider asks; `None` if this service knows the users. The permit allows the test of
/// this user.
///
/// # Errors
/// The permit is for another user.
pub fn test_question(
    server: &Server,
    user: &str,
    password: Option<&Secret>,
    source_ip: IpAddr,
    permit: &Permit<action::transfer::TestIdentityProvider>,
) -> Result<Option<Question>, TransferError> {
    permit.opens(&USER.arn(server.scope(), &server.within(user)))?;
    Ok(server.provider().question(server.id(), user, password, source_ip))
}

/// Why a login with this answer would be refused, although its proof is good; `None` if it would not.
///
/// # Errors
/// Failures of the service.
pub fn test_answer(
    work: &mut Work<'_>,
    policies: &PolicyCache,
    server: &Server,
    question: &Question,
    answer: &Answer,
) -> Result<Option<Refusal>, Fault> {
    let login = Login {
        scope: server.scope(),
        server: server.id(),
        user: &question.user,
        key: None,
        key_is_proven: false,
        key_was_accepted: false,
        certificate: None,
        password: None,
        source_ip: question.source_ip,
        session: "test",
    };
    match accept(work, policies, server, &login, Known::of(&answer.said))? {
        Step::Refused(refusal) => Ok(Some(refusal)),
        _ => Ok(None),
    }
}

/// Why the user of a session that `login` has begun, with a role, could not log in now; none if the user could. An identity
/// provider is not asked again.
///
/// # Errors
/// Failures of the service.
pub fn still_admits(
    work: &mut Work<'_>,
    policies: &PolicyCache,
    login: &Login<'_>,
    role_arn: &str,
) -> Result<Option<Refusal>, Fault> {
    let server = match find_server(work, login.scope, login.server) {
        Ok(server) if server.is_online() => server,
        Ok(_) | Err(TransferError::NotFound(_)) => return Ok(Some(Refusal::Offline)),
        Err(TransferError::Fault(fault)) => return Err(fault),
        Err(other) => return Err(Fault::Encoding(other.to_string())),
    };
    if server.provider().is_service_managed() {
        return Ok(match managed(work, policies, &server, login)? {
            Step::Refused(refusal) => Some(refusal),
            Step::Accepted(account) if account.role_arn != role_arn => {
                Some(Refusal::Unusable("the user has another role now".to_owned()))
            }
            _ => None,
        });
    }
    let scope = server.scope();
    let arn = Arn::principal(role_arn);
    let Some(name) = arn.as_ref().and_then(|arn| arn.of("iam", "role/")) else {
        return Ok(Some(Refusal::ForeignRole(role_arn.to_owned())));
    };
    let role = match Role::find(work, &scope.account, name) {
        Ok(role) => role,
        Err(IdentityError::Fault(fault)) => return Err(fault),
        Err(_) => return Ok(Some(Refusal::UnknownRole(role_arn.to_owned()))),
    };
    let user_arn = USER.arn(scope, &server.within(login.user));
    let from = login.source_ip.to_string();
    let (principal, now_ms) = (SERVICE_PRINCIPAL, work.now_ms());
    let may = authorize_transfer(policies, &role, principal, &user_arn, &from, now_ms)?;
    Ok(may.is_none().then(|| Refusal::Untrusted(role_arn.to_owned())))
}

/// Begins the session of a user whose proof is good.
fn accept(
    work: &mut Work<'_>,
    policies: &PolicyCache,
    server: &Server,
    login: &Login<'_>,
    known: Known,
) -> Result<Step, Fault> {
    let scope = server.scope();
    let refused = |refusal| Ok(Step::Refused(refusal));
    let arn = Arn::principal(&known.role);
    let name = arn.as_ref().filter(|arn| arn.account() == scope.account);
    let Some(name) = name.and_then(|arn| arn.of("iam", "role/")) else {
        return refused(Refusal::ForeignRole(known.role));
    };
    let role = match Role::find(work, &scope.account, name) {
        Ok(role) => role,
        Err(IdentityError::Fault(fault)) => return Err(fault),
        Err(_) => return refused(Refusal::UnknownRole(known.role)),
    };
    let user_arn = USER.arn(scope, &server.within(login.user));
    let now_ms = work.now_ms();
    let Some(may) = authorize_transfer(
        policies,
        &role,
        SERVICE_PRINCIPAL,
        &user_arn,
        &login.source_ip.to_string(),
        now_ms,
    )?
    else {
        return refused(Refusal::Untrusted(known.role));
    };
    let directories = match known.home.resolve(login.user) {
        Ok(directories) => directories,
        Err(why) => return refused(Refusal::Unusable(why)),
    };
    let session = format!("{}.{}@{}", login.user, login.session, server.id());
    let policy = known.policy.as_deref();
    let caller = match without_credentials(policies, &role, &session, policy, &may, now_ms) {
        Ok(caller) => caller,
        Err(Fault::Damaged(_)) => {
            return refused(Refusal::Unusable("the session policy is not valid".into()));
        }
        Err(fault) => return Err(fault),
    };
    let rights = Rights::new(caller, login.user, &scope.region, &directories, login.source_ip);
    let key = login.key.filter(|_| login.key_is_proven);
    let key = key.and_then(|blob| PublicKey::parse(blob).ok());
    Ok(Step::Accepted(Box::new(Account {
        user_arn,
        user: login.user.to_owned(),
        server_arn: server.arn(),
        scope: scope.clone(),
        role_arn: role.arn(),
        directories,
        rights,
        posix: known.posix,
        certificate: login.certificate.filter(|_| key.is_some()).cloned(),
        key: key.map(|key| (key.fingerprint(), key.key_type())),
        welcome: server.welcome().map(str::to_owned),
        ignores_set_stat: server.ignores_set_stat(),
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_decoy_is_compared_as_a_key_is() {
        let decoy = KeyLine::parse(DECOY).unwrap();
        assert!(is_one_of([DECOY].into_iter(), decoy.key.blob()));
    }
}
