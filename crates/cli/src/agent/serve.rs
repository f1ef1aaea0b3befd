//! Secrets for the programs of this machine, from the cache or from Secrets Manager.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};
use outlast_agent::cache::{Cache, Held};
use outlast_agent::callers::{Caller, FileId, Granted, Rule, granted};
use outlast_agent::interface::{Answer, Ask, Door, Interface, Step};
use outlast_agent::upstream::{Away, Problem, Scope, SecretValue};
use outlast_crypto::Secret;
use outlast_net::local::{Answers, Origin};
use outlast_net::metrics::AgentCounts;
use rustix::time::{ClockId, clock_gettime};

use super::upstream::Upstream;

/// Time after a failed attempt in which Secrets Manager counts as away, in milliseconds: programs do not wait for it
/// again and again.
const AWAY_MS: u64 = 5_000;
/// The same after an answer that it cannot answer now.
const BUSY_MS: u64 = 1_000;

/// The agent.
pub(super) struct Agent {
    interface: Interface,
    rules: Vec<Rule>,
    cache: Mutex<Cache>,
    /// One question at a time: those who ask for the same secret get it from the cache afterwards.
    upstream: tokio::sync::Mutex<Upstream>,
    away_until: AtomicU64,
    counts: AgentCounts,
}

/// A connection's caller.
pub(super) struct Connected {
    door: Door,
    granted: Granted,
    /// For the log.
    told: String,
}

/// Why a secret is not there.
pub(super) enum Missing {
    /// The rules do not grant it.
    Denied,
    /// Secrets Manager refused, or is away for too long.
    Problem(Problem),
}

impl Agent {
    pub(super) fn new(
        interface: Interface,
        rules: Vec<Rule>,
        cache: Cache,
        upstream: Upstream,
        counts: AgentCounts,
    ) -> Self {
        Self {
            interface,
            rules,
            cache: Mutex::new(cache),
            upstream: tokio::sync::Mutex::new(upstream),
            away_until: AtomicU64::new(0),
            counts,
        }
    }

    /// Counts of what happened.
    pub(super) fn counts(&self) -> &AgentCounts {
        &self.counts
    }

    /// A secret; `refresh` asks Secrets Manager whatever the cache has.
    pub(super) async fn get(
        &self,
        ask: &Ask,
        refresh: bool,
        granted: &Granted,
        interface: &'static str,
    ) -> Result<Held, Missing> {
        let outcome = match granted.may_ask(&ask.secret_id) {
            true => self.find(ask, refresh).await,
            false => Err(Missing::Denied),
        };
        // Only now is it certain which secret it is.
        let outcome = match outcome {
            Ok((held, _)) if !granted.covers(&held.name, &held.arn) => Err(Missing::Denied),
            other => other,
        };
        let name = match &outcome {
            Ok((_, how)) => how,
            Err(Missing::Denied) => "denied",
            Err(Missing::Problem(Problem::Refused { .. })) => "refused",
            Err(Missing::Problem(Problem::Away(_))) => "away",
        };
        self.counts.read(interface, name);
        outcome.map(|(held, _)| held)
    }

    async fn find(&self, ask: &Ask, refresh: bool) -> Result<(Held, &'static str), Missing> {
        if let Some(outcome) = self.without_asking(ask, refresh) {
            return outcome;
        }
        let mut upstream = self.upstream.lock().await;
        // Another caller may have asked meanwhile.
        if let Some(outcome) = self.without_asking(ask, refresh) {
            return outcome;
        }
        let outcome = upstream.get(ask).await;
        drop(upstream);
        let problem = match outcome {
            Ok(value) => return Ok((self.keep(ask, value), "fetched")),
            Err(problem) => problem,
        };
        let (secret, reason) = (&ask.secret_id, problem.reason());
        match &problem {
            Problem::Refused { scope, .. } => {
                self.counts.upstream("refused");
                let forgotten = self.forget(ask, *scope);
                tracing::warn!(secret, reason, forgotten, "Secrets Manager refused");
                Err(Missing::Problem(problem))
            }
            Problem::Away(away) => {
                self.counts.upstream("away");
                let pause = match away {
                    Away::Answered(..) => BUSY_MS,
                    _ => AWAY_MS,
                };
                self.away_until.store(now_ms() + pause, Ordering::Relaxed);
                tracing::warn!(secret, reason, "Secrets Manager is away");
                // `refreshNow` asks for the newest value or an error.
                match self.cache().stale(ask, now_ms()).filter(|_| !refresh) {
                    Some(held) => Ok((held, "stale")),
                    None => Err(Missing::Problem(problem)),
                }
            }
        }
    }

    /// What can be said without a question: the secret is fresh, or Secrets Manager was away a moment ago.
    fn without_asking(
        &self,
        ask: &Ask,
        refresh: bool,
    ) -> Option<Result<(Held, &'static str), Missing>> {
        if refresh {
            return None;
        }
        let now = now_ms();
        let mut cache = self.cache();
        if let Some(held) = cache.fresh(ask, now) {
            return Some(Ok((held, "fresh")));
        }
        if now >= self.away_until.load(Ordering::Relaxed) {
            return None;
        }
        let reason = "it was away a moment ago".to_owned();
        let away = || Missing::Problem(Problem::Away(Away::Connection(reason)));
        Some(cache.stale(ask, now).map(|held| (held, "stale")).ok_or_else(away))
    }

    fn keep(&self, ask: &Ask, value: SecretValue) -> Held {
        self.counts.upstream("ok");
        self.away_until.store(0, Ordering::Relaxed);
        let mut cache = self.cache();
        if let Err(error) = cache.keep(ask, &value, now_ms()) {
            tracing::warn!(secret = value.name, %error, "a secret is not kept");
        }
        self.counts.secrets(cache.len());
        let SecretValue { name, arn, version_id, body } = value;
        Held { name, arn, version_id, body }
    }

    fn forget(&self, ask: &Ask, scope: Scope) -> usize {
        let mut cache = self.cache();
        let forgotten = cache.forget(ask, scope);
        self.counts.secrets(cache.len());
        forgotten
    }

    /// Forgets everything.
    pub(super) fn forget_all(&self) {
        self.forget(&Ask::default(), Scope::Everything);
    }

    /// Forgets what may not be served any more.
    pub(super) fn purge(&self) {
        let mut cache = self.cache();
        if cache.purge(now_ms()) > 0 {
            self.counts.secrets(cache.len());
        }
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn answered(&self, caller: &Connected, ask: &Ask, refresh: bool) -> Answer {
        let interface = match caller.door {
            Door::Tcp => "http",
            Door::Unix => "unix",
        };
        match self.get(ask, refresh, &caller.granted, interface).await {
            Ok(held) => Answer::secret(held.body),
            Err(Missing::Denied) => {
                tracing::warn!(secret = ask.secret_id, caller = caller.told, "denied by the rules");
                let message = "The agent's rules do not grant this secret to this program.";
                Answer::error(403, "AccessDeniedException", message)
            }
            Err(Missing::Problem(problem)) => problem.answer(),
        }
    }
}

impl Answers for Agent {
    type Caller = Connected;

    fn connected(&self, origin: Origin) -> Connected {
        match origin {
            Origin::Tcp(_) => Connected {
                door: Door::Tcp,
                granted: Granted::everything(),
                told: "TCP".to_owned(),
            },
            Origin::Unix { uid, gid, pid } => {
                let executable =
                    (pid > 0).then(|| identity(Path::new(&format!("/proc/{pid}/exe")))).flatten();
                let caller = Caller { uid, gid, pid, executable };
                let granted = granted(&self.rules, &caller, identity);
                let told = format!("uid {uid}, gid {gid}, pid {pid}");
                tracing::debug!(caller = told, rules = ?granted.rules, "a program connected");
                Connected { door: Door::Unix, granted, told }
            }
        }
    }

    async fn answer(&self, caller: &Connected, head: Parts, over: bool) -> Response<Secret> {
        let mut answer = match self.interface.read(caller.door, &head, over) {
            Step::Answer(answer) => answer,
            Step::Fetch { ask, refresh } => self.answered(caller, &ask, refresh).await,
        };
        // Moved, not copied.
        let body = Secret::new(std::mem::take(&mut *answer.body));
        let mut response = Response::new(body);
        *response.status_mut() =
            StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let kind = if answer.is_json { "application/json" } else { "text/plain" };
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}

/// Which file a path leads to now.
fn identity(path: &Path) -> Option<FileId> {
    use std::os::unix::fs::MetadataExt as _;
    let found = std::fs::metadata(path).ok()?;
    Some(FileId { device: found.dev(), inode: found.ino() })
}

/// Milliseconds of a clock that never goes back, and goes on while the machine sleeps.
pub(crate) fn now_ms() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    let nanoseconds = u64::try_from(now.tv_nsec).unwrap_or_default();
    seconds.saturating_mul(1000).saturating_add(nanoseconds / 1_000_000)
}
