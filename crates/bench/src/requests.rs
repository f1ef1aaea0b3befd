//! Requests over kept connections: hybrid compared with classical, and the service's cost on top of signing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use outlast_api::ops::kms::{create_key, generate_data_key, sign};
use outlast_api::wire::Blob;
use outlast_crypto::keys::KeySpec;
use outlast_crypto::signatures::{ML_DSA_65, Message};
use outlast_harness::server::Server;
use outlast_net::policy::Policy;
use serde_json::json;

use crate::Figure;
use crate::statistics::{quantile, ratio};

const CLIENTS: u32 = 16;

pub(crate) fn measure(quick: bool) -> Result<Vec<Figure>, String> {
    let folder = crate::process::folder()?;
    let server = folder.serve()?;
    // The clients share one thread: this measures the service, not the clients' scheduling.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    runtime.block_on(async {
        Ok(vec![data_keys(&server, quick).await?, signing(&server, quick).await?])
    })
}

/// GenerateDataKey calls in sequence on one connection each, in alternating blocks.
async fn data_keys(server: &Server, quick: bool) -> Result<Figure, String> {
    const BLOCK: u32 = 20;
    let blocks = if quick { 30 } else { 400 };
    let mut hybrid = server.session(&Policy::default()).await?;
    let mut classical = server.session(&Policy::classical()).await?;
    let key = hybrid.call::<create_key::CreateKey>(json!({})).await?.key_metadata.key_id;
    let request = || json!({ "KeyId": key, "KeySpec": "AES_256" });
    let mut times: [Vec<Duration>; 2] = Default::default();
    for block in 0..blocks + 2 {
        for turn in 0..2 {
            let index = (block + turn) % 2;
            let session = if index == 0 { &mut hybrid } else { &mut classical };
            let begun = Instant::now();
            for _ in 0..BLOCK {
                session.call::<generate_data_key::GenerateDataKey>(request()).await?;
            }
            if block >= 2 {
                times[index].push(begun.elapsed());
            }
        }
    }
    let [hybrid, classical] = times.map(|mut times| quantile(&mut times, 0.5));
    let rate = ratio(classical, hybrid);
    let per_second = f64::from(BLOCK) / hybrid.as_secs_f64();
    Ok(Figure {
        name: "GenerateDataKey on one kept connection, requests a second, hybrid / classical",
        value: format!("{rate:.3}"),
        limit: ">= 0.99",
        met: rate >= 0.99,
        note: format!(
            "{per_second:.0} a second, durable; median of {blocks} alternating blocks of {BLOCK}"
        ),
    })
}

/// Sign with 16 independent clients, compared with the plain primitive in the same seconds.
async fn signing(server: &Server, quick: bool) -> Result<Figure, String> {
    let seconds = if quick { 2 } else { 15 };
    // Together 800 requests a second at even intervals, so that the clients do not queue behind each other.
    let pause = Duration::from_millis(20);
    let mut first = server.session(&Policy::default()).await?;
    let new = json!({ "KeySpec": "ML_DSA_65", "KeyUsage": "SIGN_VERIFY" });
    let key = first.call::<create_key::CreateKey>(new).await?.key_metadata.key_id;
    let message = vec![7_u8; 183];
    let body = serde_json::to_value(Blob(message.clone())).map_err(|error| error.to_string())?;
    let end = Instant::now() + Duration::from_secs(seconds);
    let request = Arc::new(json!({
        "KeyId": key, "Message": body, "SigningAlgorithm": "ML_DSA_SHAKE_256",
    }));
    let mut clients = Vec::new();
    for number in 0..CLIENTS {
        let mut session = server.session(&Policy::default()).await?;
        let request = request.clone();
        clients.push(tokio::spawn(async move {
            tokio::time::sleep(pause / CLIENTS * number).await;
            let mut ticks = tokio::time::interval(pause);
            let mut times = Vec::new();
            while Instant::now() < end {
                ticks.tick().await;
                let begun = Instant::now();
                session.call::<sign::Sign>((*request).clone()).await?;
                times.push(begun.elapsed());
            }
            Ok::<_, String>(times)
        }));
    }
    let bare = tokio::task::spawn_blocking(move || -> Result<Vec<Duration>, String> {
        let spec = KeySpec::by_name("ML_DSA_65").ok_or("no ML_DSA_65")?;
        let stored = spec.generate().map_err(|error| error.to_string())?;
        let key = spec.load(&stored).map_err(|error| error.to_string())?;
        let mut times = Vec::new();
        while Instant::now() < end {
            std::thread::sleep(Duration::from_millis(10));
            let begun = Instant::now();
            key.sign(&ML_DSA_65, Message::Raw(&message)).map_err(|error| error.to_string())?;
            times.push(begun.elapsed());
        }
        Ok(times)
    });
    let mut times = Vec::new();
    for client in clients {
        times.extend(client.await.map_err(|error| error.to_string())??);
    }
    let mut bare = bare.await.map_err(|error| error.to_string())??;
    let (service, own) = (quantile(&mut times, 0.5), quantile(&mut bare, 0.5));
    let added = service.saturating_sub(own);
    Ok(Figure {
        name: "Sign ML-DSA-65, 16 clients on kept connections, median added to AWS-LC's own signing",
        value: format!("{} µs", added.as_micros()),
        limit: "<= 500 µs",
        met: added <= Duration::from_micros(500),
        note: format!(
            "{} µs against {} µs, p99 {} µs; {} requests, 800 a second, durable audit, client's part included",
            service.as_micros(),
            own.as_micros(),
            quantile(&mut times, 0.99).as_micros(),
            times.len()
        ),
    })
}
