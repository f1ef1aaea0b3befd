//! Cost of the ledger and the metrics per handshake: the door with and without them, in memory and in turns, because
//! between two processes the difference drowns in noise. The time of the ledger's thread counts too.

use std::sync::Arc;
use std::time::Duration;

use outlast_ledger::{Ledger, Observe, Observers, Options};
use outlast_net::metrics::Metrics;
use outlast_net::server::system_clock;

use crate::Figure;
use crate::handshake::Bench;
use crate::statistics::{quantile, ratio};

pub(crate) fn measure(quick: bool) -> Result<Vec<Figure>, String> {
    let rounds: u32 = if quick { 300 } else { 6000 };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(|error| error.to_string())?;
    let _entered = runtime.enter();
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let ledger = Ledger::open(folder.path(), Options::new(system_clock))
        .map_err(|error| error.to_string())?;
    let ledger = Arc::new(ledger);
    let both: Vec<Arc<dyn Observe>> = vec![ledger.clone(), Arc::new(Metrics::new())];
    let bench = |observer| Bench::new(observer).map_err(|error| error.to_string());
    let doors =
        [bench(None)?, bench(Some(Arc::new(Observers(both)) as Arc<dyn Observe>))?, bench(None)?];
    let mut samples: [Vec<Duration>; 3] = Default::default();
    for door in &doors {
        door.door(&door.hybrid)?;
    }
    // After this its thread has started.
    ledger.flush();
    let before = writing()?;
    for round in 0..rounds as usize {
        for offset in 0..doors.len() {
            // Each round starts with another door.
            let index = (round + offset) % doors.len();
            samples[index].push(doors[index].door(&doors[index].hybrid)?);
        }
    }
    ledger.flush();
    let written = (writing()? - before) / rounds;
    let [alone, told, again] = samples.map(|mut samples| quantile(&mut samples, 0.1));
    let noise = ratio(again, alone) - 1.0;
    let alone = (alone + again) / 2;
    let added = told.saturating_sub(alone) + written;
    let share = ratio(added, alone);
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    Ok(vec![Figure {
        name: "server CPU that ledger and metrics add to a full hybrid handshake and its end",
        value: format!("{:.1} %", share * 100.0),
        limit: "< 3 %",
        met: share < 0.03,
        note: format!(
            "{:.1} µs, {:.1} of it the thread that writes, to {:.1} µs (p10 of {rounds}, in turns; two doors without them differ by {:.1} %)",
            micros(added),
            micros(written),
            micros(alone),
            noise * 100.0,
        ),
    }])
}

/// CPU time of the ledger's thread so far.
fn writing() -> Result<Duration, String> {
    let failed = |error: std::io::Error| error.to_string();
    for task in std::fs::read_dir("/proc/self/task").map_err(failed)? {
        let place = task.map_err(failed)?.path();
        if std::fs::read_to_string(place.join("comm")).is_ok_and(|name| name.trim() == "ledger") {
            let text = std::fs::read_to_string(place.join("schedstat")).map_err(failed)?;
            let nanos = text.split(' ').next().and_then(|text| text.parse().ok());
            return Ok(Duration::from_nanos(nanos.ok_or("schedstat cannot be read")?));
        }
    }
    Err("there is no thread of the ledger".into())
}
