//! Two builds of `outlast` beside each other in one run: what a change costs.

use std::path::Path;
use std::time::Duration;

use outlast_api::ops::kms::create_key;
use outlast_harness::server::{Folder, Server};
use outlast_net::policy::Policy;
use serde_json::{Value, json};

use crate::Figure;
use crate::keys::{load, per_second};

/// Clients that call at a time.
const CLIENTS: u32 = 16;

/// Compares this build with the one whose program is `other`, in turns.
pub(crate) fn measure(other: &Path, quick: bool) -> Result<Vec<Figure>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    runtime.block_on(data_keys(other, quick))
}

/// GenerateDataKey with 16 clients on kept connections.
async fn data_keys(other: &Path, quick: bool) -> Result<Vec<Figure>, String> {
    let (rounds, length) =
        if quick { (5, Duration::from_secs(1)) } else { (31, Duration::from_secs(4)) };
    let folders = [crate::process::folder()?, crate::process::folder_of(other)?];
    let [own, others] = &folders;
    let (own, others) = (begin(own).await?, begin(others).await?);
    let mut ratios = Vec::new();
    let mut rates: [Vec<f64>; 2] = Default::default();
    for round in 0..=rounds {
        let mut pair = [0.0; 2];
        for turn in 0..2 {
            let index = (round + turn) % 2;
            let (server, request) = if index == 0 { &own } else { &others };
            let times = load(server, CLIENTS, length, request, None).await?;
            pair[index] = per_second(&times, length);
        }
        // The first round warms both up.
        if round > 0 {
            ratios.push(pair[0] / pair[1]);
            rates.iter_mut().zip(pair).for_each(|(rates, rate)| rates.push(rate));
        }
    }
    let median = |values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let ratio = median(&mut ratios);
    let quarter = ratios.len() / 4;
    let (low, high) = (ratios[quarter], ratios[ratios.len() - 1 - quarter]);
    let [own, others] = rates.map(|mut rates| median(&mut rates));
    Ok(vec![Figure {
        name: "GenerateDataKey, 16 clients on kept connections, requests a second, this build / the other",
        value: format!("{ratio:.3}"),
        limit: ">= 0.97",
        met: ratio >= 0.97,
        note: format!(
            "{own:.0} against {others:.0}; median of {rounds} pairs in turns, half of them between {low:.3} and {high:.3}"
        ),
    }])
}

/// Starts a server with one key, and gives what it is asked.
async fn begin(folder: &Folder) -> Result<(Server, Value), String> {
    let server = folder.serve()?;
    let mut session = server.session(&Policy::default()).await?;
    let key = session.call::<create_key::CreateKey>(json!({})).await?.key_metadata.key_id;
    Ok((server, json!({ "KeyId": key, "KeySpec": "AES_256" })))
}
