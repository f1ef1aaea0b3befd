//! A loop of handshakes on one thread: accept, handshake, close.

use std::net::TcpListener;
use std::time::SystemTime;

use s2n_tls::config::{Builder, Config};
use s2n_tls::enums::Mode;
use s2n_tls::security::Policy;

use crate::socket::Socket;

type Failure = Box<dyn std::error::Error>;

pub fn run(arguments: &[String]) -> Result<(), Failure> {
    let value = |name: &str| -> Result<&str, Failure> {
        let place = arguments.iter().position(|text| text == name);
        let value = place.and_then(|place| arguments.get(place + 1));
        Ok(value.ok_or_else(|| format!("{name} is missing"))?)
    };
    let config = config(
        &std::fs::read(value("--cert")?)?,
        &std::fs::read(value("--key")?)?,
        value("--policy")?,
        arguments.iter().any(|text| text == "--tickets"),
    )?;
    let listener = TcpListener::bind(value("--listen")?)?;
    println!("listening on {}", listener.local_addr()?);
    for stream in listener.incoming() {
        let stream = stream?;
        stream.set_nodelay(true)?;
        let mut socket = Socket::new(Mode::Server, config.clone(), stream)?;
        if let Err(error) = socket.handshake() {
            eprintln!("handshake: {error}");
            continue;
        }
        socket.close();
    }
    Ok(())
}

/// With a key for tickets, s2n-tls sends one ticket after each handshake.
fn config(certificate: &[u8], key: &[u8], policy: &str, tickets: bool) -> Result<Config, Failure> {
    let mut config = Builder::new();
    config.set_security_policy(&Policy::from_version(policy)?)?;
    config.with_system_certs(false)?;
    config.load_pem(certificate, key)?;
    if tickets {
        config.add_session_ticket_key(b"benchmark", &[7; 32], SystemTime::now())?;
    }
    Ok(config.build()?)
}
