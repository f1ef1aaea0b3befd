//! Secrets Manager under load and with many secrets.

use std::time::{Duration, Instant};

use outlast_api::ops::kms::{create_key, decrypt, encrypt};
use outlast_api::ops::secretsmanager::{create_secret, get_secret_value, list_secrets};
use outlast_harness::server::Server;
use outlast_net::policy::Policy;
use serde_json::{Value, json};

use crate::Figure;
use crate::keys::{load, per_second};
use crate::statistics::{quantile, ratio};

/// Value of each secret.
const VALUE: &str = "a value of some length, as a password with its user and host would have it";

pub(crate) fn measure(quick: bool) -> Result<Vec<Figure>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let mut figures = vec![against_decrypt(quick).await?];
        figures.extend(growth(quick).await?);
        Ok(figures)
    })
}

/// GetSecretValue, which decrypts a data key, next to Decrypt of a text of the same length, with 16 clients in turns.
async fn against_decrypt(quick: bool) -> Result<Figure, String> {
    let folder = crate::process::folder()?;
    let server = folder.serve()?;
    let mut session = server.session(&Policy::default()).await?;
    let key = session.call::<create_key::CreateKey>(json!({})).await?.key_metadata.key_id;
    let text = VALUE;
    let body = json!({ "Name": "secret", "SecretString": text, "KmsKeyId": key });
    session.call::<create_secret::CreateSecret>(body).await?;
    let plaintext = serde_json::to_value(outlast_api::wire::Blob(text.as_bytes().to_vec()))
        .map_err(|error| error.to_string())?;
    let body = json!({ "KeyId": key, "Plaintext": plaintext });
    let sealed = session.call::<encrypt::Encrypt>(body).await?.ciphertext_blob;
    let sealed = serde_json::to_value(sealed).map_err(|error| error.to_string())?;
    let get = json!({ "SecretId": "secret" });
    let open = json!({ "CiphertextBlob": sealed });
    let (rounds, length) =
        if quick { (4, Duration::from_secs(1)) } else { (12, Duration::from_secs(3)) };
    let (mut ratios, mut rates) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let mut got = 0.0;
        let mut opened = 0.0;
        for turn in 0..2 {
            if (round + turn) % 2 == 0 {
                let times =
                    load::<get_secret_value::GetSecretValue>(&server, 16, length, &get, None)
                        .await?;
                got = per_second(&times, length);
            } else {
                let times = load::<decrypt::Decrypt>(&server, 16, length, &open, None).await?;
                opened = per_second(&times, length);
            }
        }
        ratios.push(got / opened);
        rates.push((got, opened));
    }
    ratios.sort_by(f64::total_cmp);
    let middle = ratios[ratios.len() / 2];
    let (got, opened) = rates[rates.len() / 2];
    Ok(Figure {
        name: "GetSecretValue, 16 clients, requests a second / Decrypt",
        value: format!("{middle:.3}"),
        limit: ">= 0.8",
        met: middle >= 0.8,
        note: format!(
            "{got:.0} against {opened:.0} in one round; median of {rounds} rounds in turns; two events on disk for \
             each GetSecretValue, one for each Decrypt"
        ),
    })
}

/// Makes `count` secrets; returns their names.
pub(crate) async fn fill(server: &Server, count: u32) -> Result<Vec<String>, String> {
    let clients = 16.min(count);
    let mut tasks = Vec::new();
    for number in 0..clients {
        let mut session = server.session(&Policy::default()).await?;
        let share = count / clients + u32::from(number < count % clients);
        tasks.push(tokio::spawn(async move {
            let mut names = Vec::new();
            for index in 0..share {
                let name = format!("app-{number}/secret-{index}");
                let body = json!({ "Name": name, "SecretString": VALUE });
                session.call::<create_secret::CreateSecret>(body).await?;
                names.push(name);
            }
            Ok::<_, String>(names)
        }));
    }
    let mut names = Vec::new();
    for task in tasks {
        names.extend(task.await.map_err(|error| error.to_string())??);
    }
    Ok(names)
}

/// The same operations on a store with 10 secrets and on one with very many, in alternating blocks.
async fn growth(quick: bool) -> Result<Vec<Figure>, String> {
    const BLOCK: u32 = 50;
    let many: u32 = if quick { 10_000 } else { 100_000 };
    let (small, large) = (crate::process::folder()?, crate::process::folder()?);
    let servers = [small.serve()?, large.serve()?];
    let names = [fill(&servers[0], 10).await?, fill(&servers[1], many).await?];
    let mut sessions = [
        servers[0].session(&Policy::default()).await?,
        servers[1].session(&Policy::default()).await?,
    ];
    let mut gets: [Vec<Duration>; 2] = Default::default();
    let mut pages: [Vec<Duration>; 2] = Default::default();
    for block in 0..if quick { 20_usize } else { 200 } {
        for turn in 0..2 {
            let index = (block + turn) % 2;
            let session = &mut sessions[index];
            let get: Value = json!({ "SecretId": names[index].last() });
            let begun = Instant::now();
            for _ in 0..BLOCK {
                session.call::<get_secret_value::GetSecretValue>(get.clone()).await?;
            }
            gets[index].push(begun.elapsed());
            let begun = Instant::now();
            for _ in 0..BLOCK {
                session.call::<list_secrets::ListSecrets>(json!({ "MaxResults": 10 })).await?;
            }
            pages[index].push(begun.elapsed());
        }
    }
    let compare = |times: [Vec<Duration>; 2]| {
        let [mut few, mut many] = times;
        ratio(quantile(&mut many, 0.5), quantile(&mut few, 0.5))
    };
    let (gets, pages) = (compare(gets), compare(pages));
    let note = || format!("median of alternating blocks of {BLOCK}, {many} secrets against 10");
    Ok(vec![
        Figure {
            name: "GetSecretValue with very many secrets in the store / with 10",
            value: format!("{gets:.3}"),
            limit: "<= 1.2",
            met: gets <= 1.2,
            note: note(),
        },
        Figure {
            name: "ListSecrets, a page of 10, with very many secrets / with 10",
            value: format!("{pages:.3}"),
            limit: "<= 1.2",
            met: pages <= 1.2,
            note: note(),
        },
    ])
}
