//! Callers with credentials who repeatedly ask for long-running work.

use std::sync::atomic::{AtomicUsize, Ordering};

use outlast_net::limits::SLOW_WAITING;
use serde_json::{Value, json};

use super::*;

/// A request by one of the test's administrators.
fn by(fixture: &mut Fixture, key: &str, operation: &str, body: &Value) -> Request<Vec<u8>> {
    fixture.client = common::client(key, common::REGION);
    let target = format!("TrentService.{operation}");
    fixture.raw("kms", &target, body.to_string().as_bytes())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_makes_many_keys_leaves_the_others_their_turn() {
    let mut fixture = Fixture::new();
    fixture.now.set(system_clock() / 1000);
    let create = json!({ "KeySpec": "RSA_3072", "KeyUsage": "SIGN_VERIFY" });
    let theirs = by(&mut fixture, "AKIAOTHER", "CreateKey", &create);
    let ours = by(&mut fixture, common::ACCESS_KEY, "CreateKey", &create);
    let setting = serve_on(fixture, |server| server).await;
    let mut good = setting.client(GOOD).await;
    let (made, refused) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let at_a_time = std::thread::available_parallelism().unwrap().get().saturating_sub(1).max(1);
    // More than may wait, in addition to those that are running.
    let mut clients = Vec::new();
    for _ in 0..SLOW_WAITING + at_a_time + 36 {
        clients.push(setting.client(BAD).await);
    }
    let calls = clients.len();
    let mut attackers = Vec::new();
    for mut client in clients {
        let request = theirs.clone().map(|body| Full::new(Bytes::from(body)));
        let (made, refused) = (made.clone(), refused.clone());
        attackers.push(tokio::spawn(async move {
            let answer = soon(client.send_request(request)).await.unwrap();
            let status = answer.status();
            let body = answer.into_body().collect().await.unwrap().to_bytes();
            if status == 200 {
                made.fetch_add(1, Ordering::SeqCst);
            } else {
                let text = String::from_utf8_lossy(&body);
                assert!(status == 400 && text.contains("ThrottlingException"), "{status} {text}");
                refused.fetch_add(1, Ordering::SeqCst);
            }
        }));
    }
    // All have been sent: as many as allowed wait, and the others were told to come later.
    soon(async {
        while refused.load(Ordering::SeqCst) == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
    // A quick call needs no turn; a long one gets the next turn, however many calls came before.
    assert_eq!(setting.asks(&mut good).await, 200);
    let before = made.load(Ordering::SeqCst);
    let request = ours.map(|body| Full::new(Bytes::from(body)));
    soon(good.ready()).await.unwrap();
    let answer = soon(good.send_request(request)).await.unwrap();
    assert_eq!(answer.status(), 200);
    let meanwhile = made.load(Ordering::SeqCst) - before;
    println!("{meanwhile} of {calls} keys of the attacker were made meanwhile");
    // The running calls, and those that these let pass while one key is made, but not the queue.
    assert!(meanwhile <= 8 * at_a_time, "{meanwhile} of the attacker's came first");
    assert_eq!(setting.limited("slow_calls_by_principal"), refused.load(Ordering::SeqCst) as u64);
    for attacker in &attackers {
        attacker.abort();
    }
    setting.is_served(GOOD).await;
}
