//! SSH connections in the metrics.

use std::sync::Arc;

use outlast_ledger::{End, Observe, SshHandshake, SshOutcome, SshServed};
use outlast_negotiate::ssh::{SshOffer, SshRefusal};

use super::super::table::named;
use super::super::{Metrics, scrape};

pub(super) fn handshake(connection: u64, listener: &str, outcome: SshOutcome) -> SshHandshake {
    let methods = "curve25519-sha256,mlkem768x25519-sha256";
    let lists = [methods, "ssh-ed25519", "aes256-ctr", "aes256-ctr", "", "", "none", "none"];
    SshHandshake {
        connection,
        time_ms: 0,
        listener: listener.into(),
        peer: None,
        outgoing: None,
        policy: "2026-11".into(),
        mode: "prefer".into(),
        offer: Some(SshOffer::new("SSH-2.0-x", lists)),
        first_guess: None,
        blind: false,
        outcome,
        micros: 1_500,
    }
}

pub(super) fn served() -> SshOutcome {
    SshOutcome::Served(SshServed {
        key_exchange: "mlkem768x25519-sha256".into(),
        post_quantum: true,
        host_key: "ssh-ed25519-cert-v01@openssh.com".into(),
        cipher_to_server: "aes256-gcm@openssh.com".into(),
        cipher_to_client: "aes256-gcm@openssh.com".into(),
        mac_to_server: None,
        mac_to_client: None,
        strict: true,
    })
}

#[test]
fn ssh_connections_are_counted_apart_from_those_of_tls() {
    let metrics = Arc::new(Metrics::new());
    // Another test may have used up the names that an operator can choose.
    let [sftp, policy, mode, refused] =
        ["sftp", "2026-11", "prefer", "refused:host-key"].map(named);
    for connection in 1..=3 {
        metrics.ssh_handshake(&handshake(connection, "sftp", served()));
    }
    metrics.ssh_handshake(&handshake(4, "sftp", SshOutcome::Refused(SshRefusal::HostKey)));
    let unread =
        SshHandshake { offer: None, ..handshake(5, "sftp", SshOutcome::Failed("gone".into())) };
    metrics.ssh_handshake(&unread);
    metrics.end(&End { connection: 1, time_ms: 0, principal: None, received: 2, sent: 3 });
    let page = scrape::page(&metrics);
    for line in [
        format!(
            "outlast_ssh_handshakes_total{{listener=\"{sftp}\",policy=\"{policy}\",mode=\"{mode}\",outcome=\"served\",offered=\"post-quantum\",key_exchange=\"mlkem768x25519-sha256\",post_quantum=\"true\",host_key=\"ssh-ed25519\",cipher=\"aes256-gcm@openssh.com\",strict=\"true\"}} 3\n"
        ),
        format!("outcome=\"{refused}\",offered=\"post-quantum\",key_exchange=\"none\""),
        "outcome=\"failed\",offered=\"none\"".to_owned(),
        format!(
            "outlast_ssh_handshake_duration_seconds_count{{listener=\"{sftp}\",outcome=\"served\",key_exchange=\"mlkem768x25519-sha256\"}} 3\n"
        ),
        format!("outlast_ssh_open_connections{{listener=\"{sftp}\"}} 2\n"),
        format!("outlast_ssh_received_bytes_total{{listener=\"{sftp}\"}} 2\n"),
        format!("outlast_ssh_sent_bytes_total{{listener=\"{sftp}\"}} 3\n"),
    ] {
        assert!(page.contains(&line), "{line} is not in\n{page}");
    }
    assert!(!page.contains("outlast_tls_handshakes_total{"));
}

/// Names in the reports are those of rows, whatever a door reports.
#[test]
fn ssh_labels_are_rows() {
    let metrics = Arc::new(Metrics::new());
    let SshOutcome::Served(mut served) = served() else { panic!("not served") };
    served.key_exchange = "made-up".into();
    served.cipher_to_server = "made-up".into();
    metrics.ssh_handshake(&handshake(1, "sftp", SshOutcome::Served(served)));
    let page = scrape::page(&metrics);
    assert!(!page.contains("made-up") && page.contains("key_exchange=\"other\""));
}
