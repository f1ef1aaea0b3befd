//! KMS under load and with many keys: rate, tail latency, growth, start-up.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use outlast_api::aws::Operation;
use outlast_api::ops::kms::{create_key, describe_key, generate_data_key, list_keys};
use outlast_harness::server::{Server, status_kib};
use outlast_net::policy::Policy;
use serde_json::{Value, json};

use crate::Figure;
use crate::statistics::{quantile, ratio};

pub(crate) fn measure(quick: bool) -> Result<Vec<Figure>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let mut figures = rates(quick).await?;
        figures.extend(growth(quick).await?);
        Ok(figures)
    })
}

/// Requests of several clients over the given time, each sent when the previous one is answered, or one every
/// `pause`.
pub(crate) async fn load<O>(
    server: &Server,
    clients: u32,
    length: Duration,
    request: &Value,
    pause: Option<Duration>,
) -> Result<Vec<Duration>, String>
where
    O: Operation<Input: Send + Sync, Output: Send> + 'static,
{
    let request = Arc::new(request.clone());
    let mut sessions = Vec::new();
    for _ in 0..clients {
        sessions.push(server.session(&Policy::default()).await?);
    }
    let end = Instant::now() + length;
    let mut tasks = Vec::new();
    for (number, mut session) in (0..clients).zip(sessions) {
        let request = request.clone();
        tasks.push(tokio::spawn(async move {
            let mut times = Vec::new();
            let mut due = Instant::now() + pause.unwrap_or_default() / clients * number;
            while Instant::now() < end {
                if let Some(pause) = pause {
                    tokio::time::sleep_until(due.into()).await;
                    due += pause;
                }
                let begun = Instant::now();
                session.call::<O>((*request).clone()).await?;
                times.push(begun.elapsed());
            }
            Ok::<_, String>(times)
        }));
    }
    let mut times = Vec::new();
    for task in tasks {
        times.extend(task.await.map_err(|error| error.to_string())??);
    }
    Ok(times)
}

/// Synced writes of 4 KiB per second on the disk that holds `folder`.
fn syncs_per_second(folder: &Path, length: Duration) -> Result<f64, String> {
    let failed = |error: std::io::Error| error.to_string();
    let mut file = File::create(folder.join("sync-test")).map_err(failed)?;
    let begun = Instant::now();
    let mut count = 0_u32;
    while begun.elapsed() < length {
        file.write_all(&[0; 4096]).map_err(failed)?;
        file.sync_data().map_err(failed)?;
        count += 1;
    }
    Ok(f64::from(count) / begun.elapsed().as_secs_f64())
}

/// Requests per second, from their durations.
#[expect(clippy::cast_precision_loss, reason = "counts of requests fit 53 bits")]
pub(crate) fn per_second(times: &[Duration], length: Duration) -> f64 {
    times.len() as f64 / length.as_secs_f64()
}

/// GenerateDataKey with 1, 16 and 64 clients, interleaved, then at half the highest rate.
async fn rates(quick: bool) -> Result<Vec<Figure>, String> {
    let folder = crate::process::folder()?;
    let server = folder.serve()?;
    let mut first = server.session(&Policy::default()).await?;
    let key = first.call::<create_key::CreateKey>(json!({})).await?.key_metadata.key_id;
    let request = json!({ "KeyId": key, "KeySpec": "AES_256" });
    let (rounds, length) =
        if quick { (2, Duration::from_secs(1)) } else { (6, Duration::from_secs(4)) };
    let mut rates: [Vec<f64>; 3] = Default::default();
    let mut syncs = Vec::new();
    for _ in 0..rounds {
        for (slot, clients) in [1, 16, 64].into_iter().enumerate() {
            let times = load::<generate_data_key::GenerateDataKey>(
                &server, clients, length, &request, None,
            )
            .await?;
            rates[slot].push(per_second(&times, length));
        }
        syncs.push(syncs_per_second(&folder.data(), length / 4)?);
    }
    let median = |values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let [one, sixteen, sixty_four] = rates.map(|mut rates| median(&mut rates));
    let disk = median(&mut syncs);
    // 16 clients at even intervals, together at half of the highest rate.
    let pause = Duration::from_secs_f64(16.0 / (sixteen / 2.0));
    let mut times = load::<generate_data_key::GenerateDataKey>(
        &server,
        16,
        length * rounds,
        &request,
        Some(pause),
    )
    .await?;
    let (p50, p99) = (quantile(&mut times, 0.5), quantile(&mut times, 0.99));
    let tail = ratio(p99, p50);
    Ok(vec![
        Figure {
            name: "GenerateDataKey, 16 clients on kept connections, durable audit, requests a second",
            value: format!("{sixteen:.0}"),
            limit: "-",
            met: true,
            note: format!(
                "1 client: {one:.0}, 64 clients: {sixty_four:.0}; median of {rounds} interleaved rounds; the \
                 clients share the two cores"
            ),
        },
        Figure {
            name: "the same with 64 clients, requests for each sync that the disk could do alone",
            value: format!("{:.2}", sixty_four / disk),
            limit: "-",
            met: true,
            note: format!("the disk syncs {disk:.0} times a second when it does nothing else"),
        },
        Figure {
            name: "p99 / p50 at half of the rate of 16 clients",
            value: format!("{tail:.1}"),
            limit: "< 5",
            met: tail < 5.0,
            note: format!(
                "p50 {} µs, p99 {} µs over {} requests",
                p50.as_micros(),
                p99.as_micros(),
                times.len()
            ),
        },
    ])
}

/// Creates keys until there are `count`; returns the id of one.
async fn fill(server: &Server, count: u32) -> Result<String, String> {
    let clients = 16.min(count);
    let mut tasks = Vec::new();
    for number in 0..clients {
        let mut session = server.session(&Policy::default()).await?;
        let share = count / clients + u32::from(number < count % clients);
        tasks.push(tokio::spawn(async move {
            let mut last = String::new();
            for _ in 0..share {
                last = session.call::<create_key::CreateKey>(json!({})).await?.key_metadata.key_id;
            }
            Ok::<_, String>(last)
        }));
    }
    let mut id = String::new();
    for task in tasks {
        id = task.await.map_err(|error| error.to_string())??;
    }
    Ok(id)
}

/// The same operations on a store with 10 keys and on one with very many, in alternating blocks.
async fn growth(quick: bool) -> Result<Vec<Figure>, String> {
    const BLOCK: u32 = 50;
    let many: u32 = if quick { 10_000 } else { 100_000 };
    let (small, large) = (crate::process::folder()?, crate::process::folder()?);
    let ids = [fill(&small.serve()?, 10).await?, fill(&large.serve()?, many).await?];
    let mut starts = Vec::new();
    let mut server = None;
    for _ in 0..if quick { 3 } else { 7 } {
        drop(server.take());
        let begun = Instant::now();
        let started = large.serve()?;
        let mut session = started.session(&Policy::default()).await?;
        session.call::<describe_key::DescribeKey>(json!({ "KeyId": ids[1] })).await?;
        starts.push(begun.elapsed());
        server = Some(started);
    }
    let large_server = server.ok_or("no server")?;
    let small_server = small.serve()?;
    let mut sessions = [
        small_server.session(&Policy::default()).await?,
        large_server.session(&Policy::default()).await?,
    ];
    let mut pages: [Vec<Duration>; 2] = Default::default();
    let mut uses: [Vec<Duration>; 2] = Default::default();
    for block in 0..if quick { 20_usize } else { 200 } {
        for turn in 0..2 {
            let index = (block + turn) % 2;
            let session = &mut sessions[index];
            let request = json!({ "KeyId": ids[index], "KeySpec": "AES_256" });
            let begun = Instant::now();
            for _ in 0..BLOCK {
                session.call::<generate_data_key::GenerateDataKey>(request.clone()).await?;
            }
            uses[index].push(begun.elapsed());
            // Pages of the same length; in the large store from anywhere in the list.
            let after = json!({ "Limit": 10 });
            let begun = Instant::now();
            for _ in 0..BLOCK {
                session.call::<list_keys::ListKeys>(after.clone()).await?;
            }
            pages[index].push(begun.elapsed());
        }
    }
    let compare = |times: [Vec<Duration>; 2]| {
        let [mut few, mut many] = times;
        ratio(quantile(&mut many, 0.5), quantile(&mut few, 0.5))
    };
    let (uses, pages) = (compare(uses), compare(pages));
    let resident = status_kib(large_server.child.id(), "VmRSS")? / 1024;
    let start = quantile(&mut starts, 0.5);
    let note = || format!("median of alternating blocks of {BLOCK}, {many} keys against 10");
    Ok(vec![
        Figure {
            name: "GenerateDataKey with very many keys in the store / with 10",
            value: format!("{uses:.3}"),
            limit: "<= 1.2",
            met: uses <= 1.2,
            note: note(),
        },
        Figure {
            name: "ListKeys, a page of 10, with very many keys / with 10",
            value: format!("{pages:.3}"),
            limit: "<= 1.2",
            met: pages <= 1.2,
            note: note(),
        },
        Figure {
            name: "start to the first answered call with very many keys",
            value: format!("{} ms", start.as_millis()),
            limit: "< 1 s",
            met: start < Duration::from_secs(1),
            note: format!("{many} keys; median of {} starts", starts.len()),
        },
        Figure {
            name: "resident memory with very many keys, after the load",
            value: format!("{resident} MiB"),
            limit: "< 150 MiB",
            met: resident < 150,
            note: format!("{many} keys; VmRSS"),
        },
    ])
}
