//! Flame graphs of the server's turns: classical, hybrid, and the difference.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{BASE, HYBRID, Tried, flames_cost, size, subject, tried};
use crate::error::LabError;
use crate::run::Run;
use crate::subject::Subject;
use crate::tls::profile::{self, Folded};
use crate::tls::rustls::Rustls;

#[derive(Serialize, Deserialize)]
struct Flames {
    classical: String,
    hybrid: String,
}

pub(super) fn tell(run: &mut Run<'_>, wanted: &[Subject]) -> Result<(), LabError> {
    let (settings, stop, size) = (run.settings(), run.stop_flag(), size(run.settings()));
    let both = [subject(wanted, BASE), subject(wanted, HYBRID)];
    let [Some(base), Some(hybrid)] = both else { return Ok(()) };
    let key = format!("flames rustls, {} handshakes", size.sampled);
    let flames = run.point(&key, flames_cost(settings), || {
        let sample =
            |index: usize| profile::sample(settings, &Rustls, &wanted[index], size.sampled, stop);
        tried(
            sample(base).and_then(|classical| {
                Ok(Flames { classical: classical.0, hybrid: sample(hybrid)?.0 })
            }),
        )
    })?;
    let flames = match flames {
        Tried::Done(flames) => flames,
        Tried::Not(reason) => {
            run.note(format!("There are no flame graphs: {reason}."));
            return Ok(());
        }
    };
    let (classical, hybrid) = (Folded(flames.classical), Folded(flames.hybrid));
    let micros = |folded: &Folded| Duration::from_nanos(folded.nanos()).as_secs_f64() * 1e6;
    let how = format!(
        "Samples of cpu-clock in the server's turns of {} handshakes, rustls, ECDSA P-256; they are disturbed by whatever else runs, so shares say more than times.",
        size.sampled
    );
    let pictures = [
        (
            "flame-classical.svg",
            classical.svg("Server, x25519", &how)?,
            format!(
                "Where the server's time goes with x25519: {:.0} µs a handshake. {how}",
                micros(&classical)
            ),
        ),
        (
            "flame-hybrid.svg",
            hybrid.svg("Server, X25519MLKEM768", &how)?,
            format!("The same with X25519MLKEM768: {:.0} µs a handshake.", micros(&hybrid)),
        ),
        (
            "flame-difference.svg",
            hybrid.differential(&classical, "Server, X25519MLKEM768 less x25519", &how)?,
            "X25519MLKEM768 less x25519: red where the hybrid spends more, blue where less."
                .to_owned(),
        ),
    ];
    for (file, svg, caption) in pictures {
        let path = run.folder().join(file);
        std::fs::write(&path, svg).map_err(|error| LabError::file(&path, error))?;
        run.picture(file, caption);
    }
    Ok(())
}
