//! Programs that this one starts and waits for, but not for ever.

use std::io;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// Interval between checks whether the program has ended.
const WATCH: Duration = Duration::from_millis(50);

/// Waits for a program's end, on a thread that may block. One that runs longer than `limit` is killed: then there is no status.
pub(crate) fn wait(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if begun.elapsed() > limit {
            let _ = child.kill();
            let _ = child.wait();
            return Ok(None);
        }
        std::thread::sleep(WATCH);
    }
}
