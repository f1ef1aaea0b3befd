//! SFTP: a session fed with a client's bytes in pieces, requests and replies by themselves. Nothing is opened: operations
//! act on an empty view, or are refused.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use outlast_sftp::error::Error;
use outlast_sftp::limits::MAX_REPLY_BYTES;
use outlast_sftp::reply::{Reply, read_version};
use outlast_sftp::request::{Request, write_hello};
use outlast_sftp::session::Session;
use outlast_sftp::view::View;

fuzz_target!(|bytes: &[u8]| {
    let whole = Bytes::copy_from_slice(bytes);
    if let Ok(numbered) = Request::parse(whole.clone())
        && let Ok(request) = numbered.request
    {
        let written = Bytes::from(request.write(numbered.id)).slice(4..);
        // An unknown extension and extended attributes are not kept.
        let again = Request::parse(written).expect("what was written has an identifier");
        assert!(again.request.is_err() || again.request == Ok(request));
    }
    let _ = (Reply::parse(whole.clone()), read_version(whole));

    let view = View::new(|| 0);
    let mut session = Session::new(3);
    let (first, rest) = bytes.split_at(bytes.len().min(1));
    let size = usize::from(first.first().copied().unwrap_or(0)) + 1;
    if size % 2 == 0 {
        let _ = session.receive(&write_hello(3));
    }
    let mut queued = 0;
    for piece in rest.chunks(size) {
        if !session.wants_input() || session.receive(piece).is_err() {
            break;
        }
        let mut running: Vec<_> = std::iter::from_fn(|| session.next_operation()).take(9).collect();
        if let Some(after) = running.last().and_then(|first| session.next_after(first)) {
            running.push(after);
        }
        for operation in running.into_iter().rev() {
            let _ = (operation.kind(), operation.path(&view), operation.to(&view));
            let outcome = if operation.changes() {
                operation.refuse(&view, Error::denied("fuzzed"))
            } else {
                operation.run(&view)
            };
            session.complete(outcome);
        }
        if size % 3 == 0 {
            queued = 0;
            while session.next_output().is_some() {}
        }
        queued += 1;
        assert!(queued < MAX_REPLY_BYTES);
    }
    session.end();
});
