//! A DNS server for the tests: every host is at 127.0.0.1, and TXT and CNAME records are lines of files
//! `TYPE.name` in its folder, which hooks of ACME clients write.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};

use outlast_testing::PATIENCE;

const A: u16 = 1;
const CNAME: u16 = 5;
const TXT: u16 = 16;

/// Runs until the tests end, by UDP and TCP.
pub struct Dns {
    pub address: SocketAddr,
    pub records: PathBuf,
    asked: Arc<Asked>,
}

/// How often each name was asked for.
#[derive(Default)]
struct Asked {
    counts: Mutex<HashMap<String, usize>>,
    changed: Condvar,
}

impl Dns {
    pub fn start(records: PathBuf) -> Self {
        std::fs::create_dir_all(&records).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let socket = UdpSocket::bind(address).unwrap();
        let asked = Arc::new(Asked::default());
        let (folder, counted) = (records.clone(), asked.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (folder, counted) = (folder.clone(), counted.clone());
                std::thread::spawn(move || by_tcp(stream.ok()?, &folder, &counted));
            }
        });
        let dns = Self { address, records: records.clone(), asked: asked.clone() };
        std::thread::spawn(move || {
            let mut query = [0; 1500];
            while let Ok((len, peer)) = socket.recv_from(&mut query) {
                if let Some(answer) = answer(&query[..len], &records, &asked) {
                    let _ = socket.send_to(&answer, peer);
                }
            }
        });
        dns
    }

    /// Sets a record.
    pub fn set(&self, kind: &str, name: &str, value: &str) {
        std::fs::write(self.records.join(format!("{kind}.{name}")), value).unwrap();
    }

    /// How often a name was asked for. What is set before is in the answer to each later question.
    pub fn asked(&self, name: &str) -> usize {
        self.asked.counts.lock().unwrap().get(name).copied().unwrap_or_default()
    }

    /// Waits until a name was asked for more often than so many times.
    pub fn wait_until_asked(&self, name: &str, more_than: usize) {
        let counts = self.asked.counts.lock().unwrap();
        let waits = |counts: &mut HashMap<String, usize>| {
            counts.get(name).copied().unwrap_or_default() <= more_than
        };
        let (counts, timeout) =
            self.asked.changed.wait_timeout_while(counts, PATIENCE, waits).unwrap();
        drop(counts);
        assert!(!timeout.timed_out(), "{name} is not looked up");
    }
}

/// RFC 1035, section 4.2.2: each message after its length.
fn by_tcp(mut stream: TcpStream, records: &Path, asked: &Asked) -> Option<()> {
    loop {
        let mut len = [0; 2];
        stream.read_exact(&mut len).ok()?;
        let mut query = vec![0; usize::from(u16::from_be_bytes(len))];
        stream.read_exact(&mut query).ok()?;
        let answer = answer(&query, records, asked)?;
        stream.write_all(&u16::try_from(answer.len()).ok()?.to_be_bytes()).ok()?;
        stream.write_all(&answer).ok()?;
    }
}

/// RFC 1035, section 4.1: one question, and the records for it.
fn answer(query: &[u8], records: &Path, asked: &Asked) -> Option<Vec<u8>> {
    let mut at = 12;
    let mut labels = Vec::new();
    loop {
        let len = usize::from(*query.get(at)?);
        let label = query.get(at + 1..at + 1 + len)?;
        at += 1 + len;
        if len == 0 {
            break;
        }
        labels.push(String::from_utf8(label.to_ascii_lowercase()).ok()?);
    }
    let kind = u16::from_be_bytes(query.get(at..at + 2)?.try_into().ok()?);
    let question = query.get(12..at + 4)?;
    let name = labels.join(".");
    // Counted before the records are read.
    *asked.counts.lock().unwrap().entry(name.clone()).or_default() += 1;
    asked.changed.notify_all();
    let lines = |kind: &str| {
        let text = std::fs::read_to_string(records.join(format!("{kind}.{name}")));
        text.unwrap_or_default().lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let alias = lines("CNAME");
    let (kind, values): (u16, Vec<Vec<u8>>) = match kind {
        _ if !alias.is_empty() => (CNAME, alias.iter().map(|name| encoded(name)).collect()),
        A => (A, vec![vec![127, 0, 0, 1]]),
        TXT => (TXT, lines("TXT").iter().map(|text| counted(text.as_bytes())).collect()),
        other => (other, Vec::new()),
    };
    let mut out = query[..2].to_vec();
    // A response with recursion desired and available, without an error, authority or additional records.
    out.extend([0x81, 0x80, 0, 1]);
    out.extend(u16::try_from(values.len()).ok()?.to_be_bytes());
    out.extend([0; 4]);
    out.extend(question);
    for value in values {
        // The question's name; class IN; time to live 0.
        out.extend([0xc0, 12]);
        out.extend(kind.to_be_bytes());
        out.extend([0, 1, 0, 0, 0, 0]);
        out.extend(u16::try_from(value.len()).ok()?.to_be_bytes());
        out.extend(value);
    }
    Some(out)
}

fn counted(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![u8::try_from(bytes.len()).unwrap()];
    out.extend(bytes);
    out
}

fn encoded(name: &str) -> Vec<u8> {
    let mut out: Vec<u8> =
        name.trim_end_matches('.').split('.').flat_map(|label| counted(label.as_bytes())).collect();
    out.push(0);
    out
}
