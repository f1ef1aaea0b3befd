//! What the ledger and the metrics cost: the same server with and without them, and each part by itself.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use outlast_ledger::{End, Handshake, Ledger, Observe, Options};
use outlast_net::certificate::KINDS;
use outlast_net::metrics::Metrics;
use outlast_net::policy::Policy;
use outlast_net::server::system_clock;

use crate::handshake::Bench;
use crate::identity::Identity;
use crate::load::{client, handshakes};
use crate::pinned::{Pinned, SERVER_CORE, free_address, in_turns};
use crate::statistics::{quantile, ratio, thread_cpu};
use crate::{Figure, serve};

pub(crate) fn measure(quick: bool) -> Result<Vec<Figure>, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let identity = Identity::make(folder.path(), &KINDS[0], "ECC_NIST_P256")?;
    let start = |what: &str| {
        let address = free_address()?;
        Pinned::start(&serve::command(what, address, &identity)?, SERVER_CORE, address)
    };
    let (without, with) = (start("door")?, start("observed")?);
    let hybrid = client(&Policy::default())?;
    let (rounds, time) = if quick { (5, 200) } else { (60, 300) };
    let [alone, told] = in_turns(
        [
            (&without, &|time| handshakes(without.address, &hybrid, time)),
            (&with, &|time| handshakes(with.address, &hybrid, time)),
        ],
        rounds,
        Duration::from_millis(time),
    )?;
    let parts = parts(&folder.path().join("parts"))?;
    let share = ratio(told, alone) - 1.0;
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    Ok(vec![Figure {
        name: "server CPU that ledger and metrics add to a full handshake and its connection",
        value: format!("{:.1} %", share * 100.0),
        limit: "< 3 %",
        met: share < 0.03,
        note: format!(
            "{:.1} against {:.1} µs, the thread that writes included; median of {rounds} turns; by themselves, in the handshake's thread: {parts}",
            micros(told),
            micros(alone),
        ),
    }])
}

/// Keeps what it was told last.
#[derive(Default)]
struct Last(Mutex<Option<Handshake>>);

impl Observe for Last {
    fn handshake(&self, handshake: &Handshake) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(handshake.clone());
    }

    fn end(&self, _: &End) {}
}

/// The time of each part for the same handshake and the end of its connection.
fn parts(folder: &std::path::Path) -> Result<String, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(|error| error.to_string())?;
    let _entered = runtime.enter();
    let last = Arc::new(Last::default());
    let bench = Bench::new(Some(last.clone())).map_err(|error| error.to_string())?;
    bench.door(&bench.hybrid)?;
    let handshake = last.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    let handshake = handshake.ok_or("the door did not report")?;
    let end = End {
        connection: handshake.connection,
        time_ms: handshake.time_ms,
        principal: None,
        received: 2000,
        sent: 3000,
    };
    let ledger =
        Ledger::open(folder, Options::new(system_clock)).map_err(|error| error.to_string())?;
    let metrics = Metrics::new();
    let offer = handshake.offer.as_ref().ok_or("the report has no offer")?;
    let ja4 = cost(|| drop(std::hint::black_box(outlast_negotiate::ja4::ja4(offer))));
    let copy = cost(|| drop(std::hint::black_box(handshake.clone())));
    let told = |observer: &dyn Observe| {
        cost(|| {
            observer.handshake(&handshake);
            observer.end(&end);
        })
    };
    let (ledger, metrics) = (told(&ledger), told(&metrics));
    Ok(format!(
        "JA4 {ja4:.1} µs, ledger {ledger:.1}, metrics {metrics:.1}, a copy of the report {copy:.1}"
    ))
}

/// Microseconds of a call.
fn cost(call: impl Fn()) -> f64 {
    let mut samples: Vec<_> = (0..300)
        .map(|_| {
            let begun = thread_cpu();
            (0..20).for_each(|_| call());
            (thread_cpu() - begun) / 20
        })
        .collect();
    quantile(&mut samples, 0.1).as_secs_f64() * 1e6
}
