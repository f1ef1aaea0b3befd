//! Writes the ledger: reports are appended to a queue in memory, and one thread writes the queue to disk.
//!
//! The ledger is evidence, but not the audit trail: lines are passed to the system within a second and synced when a
//! segment is full, and nothing ever waits for that. What does not fit into the queue, or cannot be written, is lost
//! and counted, and the count is written as soon as that is possible again.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::event::{End, Handshake, Observe, SshHandshake};
use crate::limits::{KEEP_DAYS, MAX_QUEUE, SEGMENT_BYTES, TOTAL_BYTES};
use crate::line::{Line, encode_end, encode_handshake, encode_ssh};
use crate::segments::{self, Removed};

/// How long a line waits for more.
const DELAY: Duration = Duration::from_millis(250);
/// Interval between scans for segments that are too old, even if nobody connects.
const PRUNE: Duration = Duration::from_secs(3600);

/// Settings of a ledger.
#[derive(Debug, Clone)]
pub struct Options {
    /// Size of a segment in bytes, after which the next one is begun. A new day begins one, too.
    pub segment_bytes: u64,
    /// Size of all segments of the folder in bytes, including other processes': the oldest are removed first.
    pub total_bytes: u64,
    /// Days to keep segments.
    pub keep_days: u32,
    /// Bytes of lines that may wait to be written.
    pub queue_bytes: usize,
    /// The time, milliseconds since 1970.
    pub clock: fn() -> i64,
}

impl Options {
    /// The default limits.
    pub fn new(clock: fn() -> i64) -> Self {
        Self {
            segment_bytes: SEGMENT_BYTES,
            total_bytes: TOTAL_BYTES,
            keep_days: KEEP_DAYS,
            queue_bytes: MAX_QUEUE,
            clock,
        }
    }
}

/// An open ledger. Dropping it writes everything that was reported.
pub struct Ledger {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    queue: Mutex<Queue>,
    /// Signals that there is work.
    wake: Condvar,
    /// Signals that work was done.
    done: Condvar,
    lost: AtomicU64,
    queue_bytes: usize,
}

#[derive(Default)]
struct Queue {
    bytes: Vec<u8>,
    lines: u64,
    /// Lines that did not fit, and are not recorded yet.
    dropped: u64,
    /// Batches that were taken, and that are finished.
    taken: u64,
    written: u64,
    hurry: bool,
    stop: bool,
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, line: &[u8]) {
        let mut queue = self.queue();
        if queue.bytes.len() + line.len() > self.queue_bytes {
            queue.dropped += 1;
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        // The thread sleeps without limit while there is nothing to do, and for a moment when there is.
        let wake = queue.lines == 0 || (!queue.hurry && queue.bytes.len() > self.queue_bytes / 4);
        queue.hurry |= queue.bytes.len() > self.queue_bytes / 4;
        queue.bytes.extend_from_slice(line);
        queue.lines += 1;
        drop(queue);
        if wake {
            self.wake.notify_one();
        }
    }
}

impl Ledger {
    /// Opens a ledger in a folder, which is created if it is missing, and removes segments that are too old.
    pub fn open(folder: &Path, options: Options) -> io::Result<Self> {
        let disk = Folder { path: folder.to_owned(), options: options.clone() };
        // A folder that cannot be written to is better known at once.
        disk.prepare()?;
        Self::start(Box::new(disk), options)
    }

    fn start(disk: Box<dyn Disk>, options: Options) -> io::Result<Self> {
        let process = random_name()?;
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            wake: Condvar::new(),
            done: Condvar::new(),
            lost: AtomicU64::new(0),
            queue_bytes: options.queue_bytes,
        });
        let writer = Writer {
            shared: shared.clone(),
            disk,
            options,
            process,
            sequence: 0,
            segment: None,
            unnoted: 0,
            failing: false,
        };
        let thread =
            std::thread::Builder::new().name("ledger".into()).spawn(move || writer.run())?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Waits until everything that was reported is written, or lost.
    pub fn flush(&self) {
        let mut queue = self.shared.queue();
        let batch = queue.taken + u64::from(queue.lines > 0 || queue.dropped > 0);
        queue.hurry = true;
        self.shared.wake.notify_one();
        while queue.written < batch && !queue.stop {
            queue = self.shared.done.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Events lost since the ledger was opened.
    pub fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }

    fn push(&self, encode: impl FnOnce(&mut Vec<u8>)) {
        thread_local! {
            static LINE: std::cell::RefCell<Vec<u8>> = const { std::cell::RefCell::new(Vec::new()) };
        }
        LINE.with_borrow_mut(|line| {
            line.clear();
            encode(line);
            self.shared.push(line);
        });
    }
}

/// 12 hexadecimal digits.
fn random_name() -> io::Result<String> {
    let random = outlast_crypto::random::bytes::<6>().map_err(io::Error::other)?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

impl Observe for Ledger {
    fn handshake(&self, handshake: &Handshake) {
        self.push(|line| encode_handshake(handshake, line));
    }

    fn ssh_handshake(&self, handshake: &SshHandshake) {
        self.push(|line| encode_ssh(handshake, line));
    }

    fn end(&self, end: &End) {
        self.push(|line| encode_end(end, line));
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        self.shared.queue().stop = true;
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Logs what was removed: evidence that is gone should not be missed silently.
fn tell(removed: Removed, options: &Options) {
    let Removed { old, excess } = removed;
    if old > 0 {
        let keep_days = options.keep_days;
        tracing::info!(segments = old, keep_days, "the ledger removed segments that are too old");
    }
    if excess > 0 {
        let total_bytes = options.total_bytes;
        tracing::info!(
            segments = excess,
            total_bytes,
            "the ledger removed its oldest segments to stay within its size"
        );
    }
}

/// The storage of segments: a folder, or in tests something that fails.
trait Disk: Send {
    fn create(&self, day: i64, process: &str, sequence: u32) -> io::Result<Box<dyn Append>>;
    fn prune(&self, today: i64) -> io::Result<Removed>;
}

/// A segment that is being written.
trait Append: Send {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Removes everything beyond `len`.
    fn cut(&mut self, len: u64) -> io::Result<()>;
    fn sync(&mut self);
    /// Whether the file was removed: nobody would find what is written to it.
    fn is_gone(&self) -> bool;
}

struct Folder {
    path: PathBuf,
    options: Options,
}

impl Folder {
    fn prepare(&self) -> io::Result<()> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.path)?;
        if std::fs::metadata(&self.path)?.mode() & 0o022 != 0 {
            tracing::warn!(
                folder = %self.path.display(),
                "users other than its owner can write to the ledger's folder"
            );
        }
        // Follows no file or link that somebody has put there.
        let probe = self.path.join(format!(".probe-{}", random_name()?));
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&probe)?;
        std::fs::remove_file(&probe)?;
        let removed = self.prune(segments::day_of((self.options.clock)()))?;
        tell(removed, &self.options);
        Ok(())
    }
}

impl Disk for Folder {
    fn create(&self, day: i64, process: &str, sequence: u32) -> io::Result<Box<dyn Append>> {
        let (_, file) = segments::create(&self.path, day, process, sequence)?;
        Ok(Box::new(file))
    }

    fn prune(&self, today: i64) -> io::Result<Removed> {
        segments::prune(&self.path, today, self.options.keep_days, self.options.total_bytes)
    }
}

impl Append for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }

    fn sync(&mut self) {
        let _ = self.sync_data();
    }

    fn is_gone(&self) -> bool {
        self.metadata().is_ok_and(|metadata| metadata.nlink() == 0)
    }
}

struct Writer {
    shared: Arc<Shared>,
    disk: Box<dyn Disk>,
    options: Options,
    process: String,
    sequence: u32,
    segment: Option<Open>,
    /// Lines that were lost and are not recorded yet.
    unnoted: u64,
    failing: bool,
}

struct Open {
    file: Box<dyn Append>,
    day: i64,
    len: u64,
    /// It ends with part of a line that cannot be removed: what follows would be read as its rest.
    is_torn: bool,
}

impl Writer {
    fn run(mut self) {
        let mut batch = Vec::new();
        loop {
            let (lines, stop) = self.take(&mut batch);
            if lines > 0 || self.unnoted > 0 {
                self.write(&batch, lines);
            }
            let mut queue = self.shared.queue();
            queue.written = queue.taken;
            drop(queue);
            self.shared.done.notify_all();
            if stop {
                if let Some(mut segment) = self.segment.take() {
                    segment.file.sync();
                }
                return;
            }
            if lines == 0 {
                self.prune();
            }
        }
    }

    /// Waits for lines, for an hour at most, and takes all of them.
    fn take(&mut self, batch: &mut Vec<u8>) -> (u64, bool) {
        batch.clear();
        // The memory of a burst must be freed.
        batch.shrink_to(1 << 16);
        let mut queue = self.shared.queue();
        let idle = |queue: &mut Queue| {
            queue.lines == 0 && queue.dropped == 0 && !queue.stop && !queue.hurry
        };
        let waited = self.shared.wake.wait_timeout_while(queue, PRUNE, idle);
        queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        let calm = |queue: &mut Queue| queue.lines > 0 && !queue.stop && !queue.hurry;
        let waited = self.shared.wake.wait_timeout_while(queue, DELAY, calm);
        queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        std::mem::swap(&mut queue.bytes, batch);
        let lines = std::mem::take(&mut queue.lines);
        self.unnoted += std::mem::take(&mut queue.dropped);
        queue.hurry = false;
        queue.taken += 1;
        (lines, queue.stop)
    }

    fn write(&mut self, batch: &[u8], lines: u64) {
        let now_ms = (self.options.clock)();
        match self.try_write(batch, now_ms) {
            Ok(()) => {
                if self.failing {
                    tracing::info!("the ledger can be written again");
                }
                self.failing = false;
                self.unnoted = 0;
            }
            Err(error) => {
                self.unnoted += lines;
                self.shared.lost.fetch_add(lines, Ordering::Relaxed);
                if !self.failing {
                    tracing::error!(%error, "the ledger cannot be written: lost events are counted");
                }
                self.failing = true;
            }
        }
    }

    fn try_write(&mut self, batch: &[u8], now_ms: i64) -> io::Result<()> {
        let day = segments::day_of(now_ms);
        let mut note = Vec::new();
        if self.unnoted > 0 {
            Line::Dropped { time_ms: now_ms, count: self.unnoted }.encode(&mut note);
        }
        let full = self.options.segment_bytes;
        let ended = |open: &Open| {
            open.day != day || open.len >= full || open.is_torn || open.file.is_gone()
        };
        if self.segment.as_ref().is_some_and(ended) {
            if let Some(mut before) = self.segment.take() {
                before.file.sync();
            }
            // The lock is free now, and the segment that just ended counts, too.
            self.prune();
        }
        if self.segment.is_none() {
            // Numbers are not reused: a segment that could not be written may exist.
            self.sequence = self.sequence.saturating_add(1);
            let file = self.disk.create(day, &self.process, self.sequence)?;
            self.segment = Some(Open { file, day, len: 0, is_torn: false });
            // Age is counted by days with segments, and now this one exists.
            self.prune();
        }
        let Some(open) = &mut self.segment else { return Ok(()) };
        if open.len == 0 {
            let mut line = Vec::new();
            Line::Open { time_ms: now_ms, process: self.process.clone() }.encode(&mut line);
            open.append(&line)?;
        }
        if note.is_empty() {
            return open.append(batch);
        }
        note.extend_from_slice(batch);
        open.append(&note)
    }

    fn prune(&self) {
        let today = segments::day_of((self.options.clock)());
        match self.disk.prune(today) {
            Ok(removed) => tell(removed, &self.options),
            Err(error) => tracing::debug!(%error, "the ledger's segments cannot be listed"),
        }
    }
}

impl Open {
    /// Appends all or nothing, as far as the disk allows.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Err(error) = self.file.append(bytes) {
            self.is_torn = self.file.cut(self.len).is_err();
            return Err(error);
        }
        self.len += bytes.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
