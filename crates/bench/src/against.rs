//! Compares two builds of `outlast` in one run: the cost of a change.

use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use outlast_api::aws::Operation;
use outlast_api::ops::kms::{
    create_key, describe_key, encrypt, generate_data_key, list_keys, sign,
};
use outlast_harness::server::{Folder, Server};
use outlast_net::policy::Policy;
use serde_json::{Value, json};

use crate::Figure;
use crate::keys::{load, per_second};
use crate::load::{client, handshakes};

/// Concurrent clients.
const CLIENTS: u32 = 16;

type Loading<'a> = Pin<Box<dyn Future<Output = Result<f64, String>> + 'a>>;

/// One kind of request, which both servers answer as fast as they can.
struct Row {
    name: &'static str,
    /// Measures the requests per second over the given time.
    rate: for<'a> fn(&'a Side, Duration) -> Loading<'a>,
}

const ROWS: &[Row] = &[
    Row {
        name: "GenerateDataKey, 16 clients on kept connections, requests a second, this build / the other",
        rate: |side, length| {
            let request = json!({ "KeyId": side.key, "KeySpec": "AES_256" });
            calls::<generate_data_key::GenerateDataKey>(side, request, length)
        },
    },
    Row {
        name: "Encrypt of 1 KiB with a context, the same",
        rate: |side, length| {
            let text = "QUFB".repeat(341);
            let context = json!({ "purpose": "bench", "tenant": "0042" });
            let request =
                json!({ "KeyId": side.key, "Plaintext": text, "EncryptionContext": context });
            calls::<encrypt::Encrypt>(side, request, length)
        },
    },
    Row {
        name: "DescribeKey, the same",
        rate: |side, length| {
            calls::<describe_key::DescribeKey>(side, json!({ "KeyId": side.key }), length)
        },
    },
    Row {
        name: "ListKeys, the same",
        rate: |side, length| calls::<list_keys::ListKeys>(side, json!({ "Limit": 10 }), length),
    },
    Row {
        name: "Sign with ML-DSA-65, the same",
        rate: |side, length| {
            let request = json!({
                "KeyId": side.signing_key, "Message": "bWVzc2FnZQ==", "SigningAlgorithm": "ML_DSA_SHAKE_256",
            });
            calls::<sign::Sign>(side, request, length)
        },
    },
    Row {
        name: "full hybrid handshakes a second, six at a time, this build / the other",
        rate: |side, length| {
            Box::pin(async move {
                let config = client(&Policy::default())?;
                let address = side.server.address;
                let making = move || handshakes(address, &config, length);
                let count = tokio::task::spawn_blocking(making).await;
                let count = count.map_err(|error| error.to_string())??;
                let count = u32::try_from(count).map_err(|error| error.to_string())?;
                Ok(f64::from(count) / length.as_secs_f64())
            })
        },
    },
];

/// A server and the keys that requests use.
struct Side {
    server: Server,
    key: String,
    signing_key: String,
}

fn calls<'a, O>(side: &'a Side, request: Value, length: Duration) -> Loading<'a>
where
    O: Operation<Input: Send + Sync, Output: Send> + 'static,
{
    Box::pin(async move {
        let times = load::<O>(&side.server, CLIENTS, length, &request, None).await?;
        Ok(per_second(&times, length))
    })
}

/// Compares this build with the program `other`, in turns. Two processes of the same program already differ by some
/// per cent, depending on their memory layout, so several pairs of processes are measured.
pub(crate) fn measure(other: &Path, quick: bool) -> Result<Vec<Figure>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let (starts, rounds, length) = match quick {
        true => (6, 2, Duration::from_millis(500)),
        false => (12, 4, Duration::from_secs(2)),
    };
    runtime.block_on(async {
        let mut pairs: Vec<Vec<[f64; 2]>> = vec![Vec::new(); ROWS.len()];
        for start in 0..starts {
            let folders = [crate::process::folder()?, crate::process::folder_of(other)?];
            let [own, others] = &folders;
            // Neither build always starts first.
            let sides = if start % 2 == 0 {
                let own = begin(own).await?;
                [own, begin(others).await?]
            } else {
                let others = begin(others).await?;
                [begin(own).await?, others]
            };
            for (row, pairs) in ROWS.iter().zip(&mut pairs) {
                pairs.extend(turns(row, &sides, rounds, length).await?);
            }
        }
        Ok(ROWS.iter().zip(pairs).map(|(row, pairs)| figure(row, &pairs, starts)).collect())
    })
}

/// Requests per second of both servers, in turns.
async fn turns(
    row: &Row,
    sides: &[Side; 2],
    rounds: usize,
    length: Duration,
) -> Result<Vec<[f64; 2]>, String> {
    let mut pairs = Vec::new();
    for round in 0..=rounds {
        let mut pair = [0.0; 2];
        for turn in 0..2 {
            let index = (round + turn) % 2;
            pair[index] = (row.rate)(&sides[index], length).await?;
        }
        // The first round warms both servers up.
        if round > 0 {
            pairs.push(pair);
        }
    }
    Ok(pairs)
}

fn figure(row: &Row, pairs: &[[f64; 2]], starts: usize) -> Figure {
    let sorted = |of: fn(&[f64; 2]) -> f64| {
        let mut values: Vec<f64> = pairs.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let (ratios, own, others) =
        (sorted(|pair| pair[0] / pair[1]), sorted(|pair| pair[0]), sorted(|pair| pair[1]));
    let (middle, quarter) = (ratios.len() / 2, ratios.len() / 4);
    let (ratio, low, high) = (ratios[middle], ratios[quarter], ratios[ratios.len() - 1 - quarter]);
    Figure {
        name: row.name,
        value: format!("{ratio:.3}"),
        limit: ">= 0.97",
        met: ratio >= 0.97,
        note: format!(
            "{:.0} against {:.0}; median of {} pairs in turns, in {starts} processes each, half of them between {low:.3} and {high:.3}",
            own[middle],
            others[middle],
            ratios.len()
        ),
    }
}

/// Starts a server with the keys that the requests use.
async fn begin(folder: &Folder) -> Result<Side, String> {
    let server = folder.serve()?;
    let mut session = server.session(&Policy::default()).await?;
    let signing = json!({ "KeySpec": "ML_DSA_65", "KeyUsage": "SIGN_VERIFY" });
    let mut keys = Vec::new();
    for request in [json!({}), signing] {
        let made = session.call::<create_key::CreateKey>(request).await?;
        keys.push(made.key_metadata.key_id);
    }
    let [key, signing_key] = keys.try_into().map_err(|_| "two keys were wanted")?;
    Ok(Side { server, key, signing_key })
}
