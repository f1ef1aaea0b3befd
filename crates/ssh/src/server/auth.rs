//! Authentication as a server (RFC 4252, RFC 4256, RFC 8332).

use outlast_crypto::Secret;

use super::{Attempt, AuthDecision, KeyOffer, Method, Prompt, Signed};
use crate::certificate::Certificate;
use crate::config::ServerConfig;
use crate::error::{Error, Reason, printable};
use crate::limits::{MAX_PASSWORD_LEN, MAX_PROMPTS, MAX_USER_LEN};
use crate::message;
use crate::public_key::PublicKey;
use crate::signature::{self, Algorithm};
use crate::transport::Transport;
use crate::wire::{Reader, Writer};

pub(crate) const USERAUTH: &[u8] = b"ssh-userauth";
pub(crate) const CONNECTION: &[u8] = b"ssh-connection";
pub(crate) const HOST_BOUND_METHOD: &[u8] = b"publickey-hostbound-v00@openssh.com";

/// Requests for each failure that a connection may have: offers of keys that are accepted fail only later.
const REQUESTS_BY_FAILURE: u32 = 4;

/// What waits for the caller's decision.
enum Pending {
    None,
    /// Something that succeeds if the caller says so.
    Provable,
    Interactive,
    /// An offered key: its algorithm's name and its blob, which the answer repeats.
    Offered(String, Vec<u8>),
    /// What fails, whatever the caller says.
    Failed,
}

pub(super) struct Authentication {
    banner: Option<String>,
    user_keys: Vec<&'static str>,
    tries: u32,
    /// Whether the service `ssh-userauth` was requested.
    requested: bool,
    done: bool,
    user: Option<String>,
    /// Methods that can continue.
    methods: Vec<&'static str>,
    failures: u32,
    requests: u32,
    pending: Option<Pending>,
    /// Number of questions that the client has to answer, in `keyboard-interactive`.
    asked: Option<usize>,
}

impl Authentication {
    pub(super) fn new(config: &ServerConfig) -> Self {
        Self {
            banner: config.banner.clone(),
            user_keys: config.user_keys.clone(),
            tries: config.limits.auth_tries,
            requested: false,
            done: false,
            user: None,
            methods: config.methods.clone(),
            failures: 0,
            requests: 0,
            pending: None,
            asked: None,
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    pub(super) fn has_question(&self) -> bool {
        self.pending.is_some()
    }

    /// `SSH_MSG_SERVICE_REQUEST` (RFC 4253, section 10).
    pub(super) fn on_service(
        &mut self,
        transport: &mut Transport,
        payload: &[u8],
    ) -> Result<(), Error> {
        let mut reader = Reader::new(payload);
        reader.byte()?;
        let name = reader.string()?;
        reader.end()?;
        let first = !std::mem::replace(&mut self.requested, true);
        if name != USERAUTH {
            return Err(Error::new(Reason::ServiceNotAvailable, "there is no such service"));
        }
        if !first {
            return Err(Error::protocol("the service was requested twice"));
        }
        let mut out = vec![message::SERVICE_ACCEPT];
        out.put_string(name);
        transport.send(&[&out])?;
        match self.banner.take() {
            Some(banner) => self.show(transport, &banner),
            None => Ok(()),
        }
    }

    /// `SSH_MSG_USERAUTH_BANNER`, which may come at any time before authentication has succeeded.
    pub(super) fn show(&self, transport: &mut Transport, text: &str) -> Result<(), Error> {
        if self.done {
            return Ok(());
        }
        let mut out = vec![message::USERAUTH_BANNER];
        // Clients show it as it is, and go on in the same line.
        let end = if text.ends_with('\n') { "" } else { "\r\n" };
        out.put_string(format!("{text}{end}").as_bytes());
        out.put_string(b"");
        transport.send(&[&out])
    }

    /// Handles a message from 50 to 79.
    pub(super) fn handle(
        &mut self,
        transport: &mut Transport,
        payload: &[u8],
    ) -> Result<Option<Attempt>, Error> {
        if self.done {
            // RFC 4252, section 5.1: further requests are ignored.
            return Ok(None);
        }
        if !self.requested {
            return Err(Error::protocol("authentication begins before its service was requested"));
        }
        let mut reader = Reader::new(payload);
        match reader.byte()? {
            message::USERAUTH_REQUEST => self.on_request(transport, payload, reader).map(Some),
            message::USERAUTH_INFO_RESPONSE => self.on_responses(reader).map(Some),
            _ => Err(Error::protocol("a message does not belong into authentication")),
        }
    }

    fn on_request(
        &mut self,
        transport: &Transport,
        payload: &[u8],
        mut reader: Reader<'_>,
    ) -> Result<Attempt, Error> {
        self.requests += 1;
        if self.requests > self.tries.saturating_mul(REQUESTS_BY_FAILURE) {
            return Err(Error::new(Reason::NoMoreAuthMethods, "too many requests to authenticate"));
        }
        let user = reader.text()?;
        let service = reader.string()?;
        if service != CONNECTION {
            return Err(Error::new(Reason::ServiceNotAvailable, "there is no such service"));
        }
        if user.len() > MAX_USER_LEN || user.chars().any(char::is_control) {
            return Err(Error::protocol("the user name is too long, or has control characters"));
        }
        // As OpenSSH: who changes its name in between wants to find something out.
        if self.user.get_or_insert_with(|| user.to_owned()) != user {
            return Err(Error::protocol("the user name changed between requests"));
        }
        self.asked = None;
        let name = reader.string()?;
        let (pending, method) = match name {
            b"none" => (Pending::None, Method::None),
            b"password" if self.allows("password") => password(reader)?,
            b"keyboard-interactive" if self.allows("keyboard-interactive") => {
                (Pending::Interactive, Method::KeyboardInteractive(None))
            }
            b"publickey" if self.allows("publickey") => {
                self.public_key(transport, payload, reader, false)?
            }
            HOST_BOUND_METHOD if self.allows("publickey") => {
                self.public_key(transport, payload, reader, true)?
            }
            other => (Pending::Failed, Method::Other(printable(other))),
        };
        self.pending = Some(pending);
        Ok(Attempt { user: user.to_owned(), method })
    }

    fn allows(&self, method: &str) -> bool {
        self.methods.contains(&method)
    }

    /// RFC 4252, section 7; OpenSSH's PROTOCOL, 1.11, for the method with the host's key.
    fn public_key(
        &self,
        transport: &Transport,
        payload: &[u8],
        mut reader: Reader<'_>,
        host_bound: bool,
    ) -> Result<(Pending, Method), Error> {
        let has_signature = reader.bool()?;
        let name = reader.text()?;
        let blob = reader.string()?;
        // The key of this session, so that a server in between cannot pass the signature on.
        let bound = !host_bound || reader.string()? == transport.host_key();
        let signed_len = payload.len() - reader.rest().len();
        let signature = if has_signature { Some(reader.string()?) } else { None };
        reader.end()?;
        let allowed =
            Algorithm::by_name(name).filter(|(row, _)| self.user_keys.contains(&row.name));
        let Some((row, with_certificate)) = allowed else {
            return Ok(unusable(KEY, format!("key algorithm {}", printable(name.as_bytes()))));
        };
        let (key, certificate) = if with_certificate {
            match Certificate::parse(blob) {
                Ok(certificate) => (certificate.key().clone(), Some(certificate)),
                Err(error) => return Ok(unusable(KEY, error.to_string())),
            }
        } else {
            match PublicKey::parse(blob) {
                Ok(key) => (key, None),
                Err(error) => return Ok(unusable(KEY, error.to_string())),
            }
        };
        if key.key_type() != row.key_type {
            return Ok(unusable(KEY, "a key of another type than its algorithm".to_owned()));
        }
        let signed = match signature {
            None => Signed::No,
            Some(signature) => {
                let mut message = Vec::new();
                message.put_string(transport.session_id());
                message.put(payload.get(..signed_len).unwrap_or_default());
                let touch = signature::verify(&key, row, &message, signature);
                let issued = certificate.as_ref();
                let enough = |touch: signature::Touch| {
                    (touch.present || issued.is_some_and(|issued| !issued.needs_touch()))
                        && (touch.verified || !issued.is_some_and(Certificate::needs_verified_user))
                };
                match touch {
                    Some(touch) if bound && touch.is_none_or(enough) => Signed::Valid,
                    _ => Signed::Invalid,
                }
            }
        };
        let pending = match signed {
            Signed::No => Pending::Offered(name.to_owned(), blob.to_vec()),
            Signed::Valid => Pending::Provable,
            Signed::Invalid => Pending::Failed,
        };
        let algorithm = if with_certificate { row.with_certificate } else { row.name };
        let offer = KeyOffer { algorithm, key, certificate, signed };
        Ok((pending, Method::PublicKey(Box::new(offer))))
    }

    /// RFC 4256, section 3.4.
    fn on_responses(&mut self, mut reader: Reader<'_>) -> Result<Attempt, Error> {
        let asked = self.asked.take().ok_or(Error::protocol("responses without questions"))?;
        let count = reader.u32()? as usize;
        if count != asked {
            return Err(Error::protocol("there are more or fewer responses than questions"));
        }
        let mut responses = Vec::new();
        for _ in 0..count {
            responses.push(secret(reader.string()?)?);
        }
        reader.end()?;
        self.pending = Some(Pending::Interactive);
        let user = self.user.clone().unwrap_or_default();
        Ok(Attempt { user, method: Method::KeyboardInteractive(Some(responses)) })
    }

    pub(super) fn answer(
        &mut self,
        transport: &mut Transport,
        decision: AuthDecision,
    ) -> Result<(), Error> {
        let Some(pending) = self.pending.take() else { return Ok(()) };
        let provable = matches!(pending, Pending::None | Pending::Provable | Pending::Interactive);
        match (decision, pending) {
            (AuthDecision::Accept, _) if provable => {
                self.done = true;
                transport.send(&[&[message::USERAUTH_SUCCESS]])?;
                transport.early = false;
                Ok(())
            }
            (AuthDecision::AcceptKey, Pending::Offered(name, blob)) => {
                let mut out = vec![message::USERAUTH_PK_OK];
                out.put_string(name.as_bytes());
                out.put_string(&blob);
                transport.send(&[&out])
            }
            (AuthDecision::Partial(methods), _) if provable => {
                self.methods = methods;
                self.failure(transport, true)
            }
            (AuthDecision::Prompt(prompt), Pending::Interactive) => self.ask(transport, &prompt),
            (_, Pending::None) if self.requests == 1 => self.failure(transport, false),
            _ => {
                self.failures += 1;
                if self.failures >= self.tries {
                    return Err(Error::new(
                        Reason::NoMoreAuthMethods,
                        "too many authentication failures",
                    ));
                }
                self.failure(transport, false)
            }
        }
    }

    fn failure(&self, transport: &mut Transport, partial: bool) -> Result<(), Error> {
        let mut out = vec![message::USERAUTH_FAILURE];
        out.put_string(self.methods.join(",").as_bytes());
        out.put_bool(partial);
        transport.send(&[&out])
    }

    fn ask(&mut self, transport: &mut Transport, prompt: &Prompt) -> Result<(), Error> {
        let questions = &prompt.questions[..prompt.questions.len().min(MAX_PROMPTS)];
        self.asked = Some(questions.len());
        let mut out = vec![message::USERAUTH_INFO_REQUEST];
        out.put_string(prompt.name.as_bytes());
        out.put_string(prompt.instruction.as_bytes());
        out.put_string(b"");
        out.put_u32(u32::try_from(questions.len()).unwrap_or_default());
        for (question, echo) in questions {
            out.put_string(question.as_bytes());
            out.put_bool(*echo);
        }
        transport.send(&[&out])
    }
}

const KEY: &str = "publickey";

fn unusable(method: &'static str, why: String) -> (Pending, Method) {
    (Pending::Failed, Method::Unusable { method, why })
}

fn secret(bytes: &[u8]) -> Result<Secret, Error> {
    if bytes.len() > MAX_PASSWORD_LEN {
        return Err(Error::protocol("a password is too long"));
    }
    Ok(Secret::new(bytes.to_vec()))
}

/// RFC 4252, section 8. Changing a password is not supported.
fn password(mut reader: Reader<'_>) -> Result<(Pending, Method), Error> {
    if reader.bool()? {
        return Ok(unusable("password", "a change of the password".to_owned()));
    }
    let password = secret(reader.string()?)?;
    reader.end()?;
    Ok((Pending::Provable, Method::Password(password)))
}
