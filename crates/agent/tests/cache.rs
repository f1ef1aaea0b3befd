//! Fresh, stale, refused, too many: what the cache may serve, with a clock of the test.

use std::num::NonZeroUsize;

use outlast_agent::cache::{Cache, Limits};
use outlast_agent::interface::Ask;
use outlast_agent::memory::Locking;
use outlast_agent::upstream::{Scope, SecretValue};
use zeroize::Zeroizing;

const TTL: u64 = 300_000;
const STALE: u64 = 3_600_000;

fn cache(secrets: usize, bytes: usize) -> Cache {
    Cache::new(Limits {
        secrets: NonZeroUsize::new(secrets).unwrap(),
        bytes,
        ttl_ms: TTL,
        stale_ms: STALE,
        locking: Locking::Prefer,
    })
    .unwrap()
}

fn ask(id: &str) -> Ask {
    Ask { secret_id: id.into(), ..Ask::default() }
}

fn arn(name: &str) -> String {
    format!("arn:aws:secretsmanager:eu-central-1:123456789012:secret:{name}-AbCdEf")
}

fn value(name: &str, body: &str) -> SecretValue {
    SecretValue {
        name: name.into(),
        arn: arn(name),
        version_id: "v1".into(),
        body: Zeroizing::new(body.into()),
    }
}

fn fresh(cache: &mut Cache, id: &str, now: u64) -> Option<String> {
    cache.fresh(&ask(id), now).map(|held| String::from_utf8(held.body.to_vec()).unwrap())
}

fn stale(cache: &mut Cache, id: &str, now: u64) -> Option<String> {
    cache.stale(&ask(id), now).map(|held| String::from_utf8(held.body.to_vec()).unwrap())
}

#[test]
fn a_secret_is_fresh_then_stale_then_gone() {
    let mut cache = cache(10, 1 << 20);
    let begun = 1_000_000;
    cache.keep(&ask("a"), &value("a", "one"), begun).unwrap();
    assert_eq!(fresh(&mut cache, "a", begun).as_deref(), Some("one"));
    assert_eq!(fresh(&mut cache, "a", begun + TTL - 1).as_deref(), Some("one"));
    assert_eq!(fresh(&mut cache, "a", begun + TTL), None);
    assert_eq!(stale(&mut cache, "a", begun + TTL).as_deref(), Some("one"));
    assert_eq!(stale(&mut cache, "a", begun + TTL + STALE - 1).as_deref(), Some("one"));
    assert_eq!(stale(&mut cache, "a", begun + TTL + STALE), None);
    assert_eq!(cache.purge(begun + TTL + STALE - 1), 0);
    assert_eq!(cache.purge(begun + TTL + STALE), 1);
    assert!(cache.is_empty());
    assert_eq!(cache.vault().used(), 0);
}

/// A clock that goes back makes nothing younger.
#[test]
fn a_secret_from_the_future_is_not_served() {
    let mut cache = cache(10, 1 << 20);
    cache.keep(&ask("a"), &value("a", "one"), 5_000).unwrap();
    assert_eq!(fresh(&mut cache, "a", 4_999), None);
    assert_eq!(stale(&mut cache, "a", 4_999), None);
    assert_eq!(cache.purge(4_999), 1);
}

#[test]
fn a_new_answer_replaces_the_old_one_and_its_age() {
    let mut cache = cache(10, 1 << 20);
    cache.keep(&ask("a"), &value("a", "one"), 0).unwrap();
    cache.keep(&ask("a"), &value("a", "two"), TTL).unwrap();
    assert_eq!(fresh(&mut cache, "a", 2 * TTL - 1).as_deref(), Some("two"));
    assert_eq!(cache.len(), 1);
}

#[test]
fn versions_and_stages_are_kept_apart() {
    let mut cache = cache(10, 1 << 20);
    let previous = Ask { version_stage: Some("AWSPREVIOUS".into()), ..ask("a") };
    let first = Ask { version_id: Some("v0".into()), ..ask("a") };
    cache.keep(&ask("a"), &value("a", "now"), 0).unwrap();
    cache.keep(&previous, &value("a", "before"), 0).unwrap();
    cache.keep(&first, &value("a", "first"), 0).unwrap();
    assert_eq!(fresh(&mut cache, "a", 1).as_deref(), Some("now"));
    assert_eq!(cache.fresh(&previous, 1).unwrap().body.as_slice(), b"before");
    // A version that is gone takes no other with it; a secret takes all.
    assert_eq!(cache.forget(&first, Scope::Version), 1);
    assert!(cache.fresh(&first, 1).is_none());
    assert_eq!(cache.len(), 2);
    assert_eq!(cache.forget(&ask("a"), Scope::Secret), 2);
}

#[test]
fn a_refusal_ends_a_secret_under_all_its_names() {
    let mut cache = cache(10, 1 << 20);
    let fill = |cache: &mut Cache| {
        cache.keep(&ask("a"), &value("a", "one"), 0).unwrap();
        cache.keep(&ask(&arn("a")), &value("a", "one"), 0).unwrap();
        cache.keep(&ask("b"), &value("b", "two"), 0).unwrap();
    };
    fill(&mut cache);
    assert_eq!(cache.forget(&ask("a"), Scope::Secret), 2);
    assert_eq!(stale(&mut cache, &arn("a"), 1), None);
    assert_eq!(fresh(&mut cache, "b", 1).as_deref(), Some("two"));
    fill(&mut cache);
    assert_eq!(cache.forget(&ask(&arn("a")), Scope::Secret), 2);
    assert_eq!(stale(&mut cache, "a", 1), None);
    fill(&mut cache);
    assert_eq!(cache.forget(&ask("a"), Scope::Everything), 3);
    assert_eq!(cache.vault().used(), 0);
}

#[test]
fn the_secret_that_was_not_read_for_longest_makes_room() {
    let mut cache = cache(2, 1 << 20);
    for name in ["a", "b"] {
        cache.keep(&ask(name), &value(name, name), 0).unwrap();
    }
    assert!(fresh(&mut cache, "a", 1).is_some());
    cache.keep(&ask("c"), &value("c", "c"), 1).unwrap();
    assert_eq!(fresh(&mut cache, "b", 1), None);
    assert!(fresh(&mut cache, "a", 1).is_some() && fresh(&mut cache, "c", 1).is_some());
}

#[test]
fn memory_is_limited_too() {
    let mut cache = cache(100, 256 * 1024);
    let long = "x".repeat(100_000);
    for name in ["a", "b", "c"] {
        cache.keep(&ask(name), &value(name, &long), 0).unwrap();
    }
    assert_eq!(cache.len(), 2);
    assert_eq!(fresh(&mut cache, "c", 1), Some(long));
    // What never has room is not kept, and the old value is gone all the same.
    let longer = "x".repeat(300_000);
    assert!(cache.keep(&ask("c"), &value("c", &longer), 1).is_err());
    assert_eq!(fresh(&mut cache, "c", 1), None);
    assert!(fresh(&mut cache, "b", 1).is_some());
}

#[test]
fn without_a_time_to_live_nothing_is_kept() {
    let limits = Limits {
        secrets: NonZeroUsize::MIN,
        bytes: 1 << 20,
        ttl_ms: 0,
        stale_ms: STALE,
        locking: Locking::Prefer,
    };
    let mut cache = Cache::new(limits).unwrap();
    cache.keep(&ask("a"), &value("a", "one"), 0).unwrap();
    assert!(cache.is_empty());
    assert_eq!(stale(&mut cache, "a", 0), None);
}
