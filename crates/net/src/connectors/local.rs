//! The near end of a transfer: a file of a bucket, read or written by a thread of its own, because storage blocks.

use std::sync::Arc;

use bytes::Bytes;
use outlast_sftp::arrival::{Inspector, Reception};
use outlast_sftp::error::{Error, Result, Status};
use outlast_sftp::path::RemotePath;
use outlast_sftp::volume::{File, OpenHow, Space, Volume};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::limits;
use crate::sftp::home::Home;

/// Makes the folders of a file that may be written.
type MakeRoom = Arc<dyn Fn(&RemotePath) -> Result<()> + Send + Sync>;

/// The buckets, as the role of a connector sees them: `/bucket/key`.
pub(super) struct Local {
    volume: Arc<dyn Volume>,
    make_room: MakeRoom,
    /// Bytes of a file that is retrieved, at most.
    pub(super) max_file: u64,
}

impl Local {
    /// The buckets of a home. An inspector decides which files appear.
    pub(super) fn of(home: Home, inspector: Option<&Arc<dyn Inspector>>) -> Self {
        let home = Arc::new(home);
        let reception = Reception { inspector: inspector.cloned(), ..Reception::default() };
        let volume = reception.guard(home.clone());
        Self::new(volume, Arc::new(move |path| home.make_room(path)))
    }

    pub(super) fn new(volume: Arc<dyn Volume>, make_room: MakeRoom) -> Self {
        Self { volume, make_room, max_file: limits::MAX_CONNECTOR_FILE }
    }

    /// Opens a file. Its pieces come in order; the last one is followed by the channel's end.
    pub(super) async fn read(&self, path: &str) -> Result<mpsc::Receiver<Result<Bytes>>> {
        let path = RemotePath::parse(path.as_bytes(), &RemotePath::root())?;
        let volume = self.volume.clone();
        let file = away(move || volume.open(&path, &OpenHow::reading())).await?;
        let (sender, receiver) = mpsc::channel(limits::CONNECTOR_PIECES);
        spawn_blocking(move || {
            let mut offset = 0;
            loop {
                let mut piece = vec![0; limits::CONNECTOR_PIECE];
                let read = file.read_at(offset, &mut piece).map(|length| {
                    piece.truncate(length);
                    Bytes::from(piece)
                });
                match read {
                    Ok(piece) if piece.is_empty() => return,
                    read => {
                        offset += read.as_ref().map_or(0, |piece| piece.len() as u64);
                        let is_last = read.is_err();
                        // Nobody wants the rest if nobody receives.
                        if sender.blocking_send(read).is_err() || is_last {
                            return;
                        }
                    }
                }
            }
        });
        Ok(receiver)
    }

    /// Begins a file. Nobody sees it before [`Writing::finish`].
    pub(super) async fn write(&self, folder: &str, name: &[u8]) -> Result<Writing> {
        let folder = RemotePath::parse(folder.as_bytes(), &RemotePath::root())?;
        self.begin(folder.join(name)).await
    }

    /// The same, by its path.
    pub(super) async fn write_at(&self, path: &str) -> Result<Writing> {
        self.begin(RemotePath::parse(path.as_bytes(), &RemotePath::root())?).await
    }

    async fn begin(&self, path: RemotePath) -> Result<Writing> {
        let (volume, make_room) = (self.volume.clone(), self.make_room.clone());
        let file = away(move || {
            let how = OpenHow { write: true, create: true, truncate: true, ..OpenHow::default() };
            let file = match volume.open(&path, &how) {
                Err(error) if error.status == Status::NoSuchFile => {
                    make_room(&path)?;
                    volume.open(&path, &how)
                }
                opened => opened,
            }?;
            if !file.is_apart() {
                return Err(Error::unsupported("the storage shows files before they are complete"));
            }
            Ok(file)
        });
        Ok(Writing::of(file.await?))
    }
}

enum Step {
    Write(u64, Bytes),
    Finish,
}

/// A file that is being written. It is forgotten if this is dropped.
pub(super) struct Writing {
    steps: mpsc::Sender<Step>,
    thread: JoinHandle<Result<()>>,
}

impl Writing {
    fn of(file: Box<dyn File>) -> Self {
        let (steps, mut next) = mpsc::channel(limits::CONNECTOR_PIECES);
        let thread = spawn_blocking(move || {
            let mut unseen = limits::CONNECTOR_SPACE_STEP;
            while let Some(step) = next.blocking_recv() {
                match step {
                    Step::Write(offset, bytes) => {
                        unseen += bytes.len() as u64;
                        if unseen >= limits::CONNECTOR_SPACE_STEP {
                            unseen = 0;
                            // Storages without a size of their own do not tell.
                            if file.space().is_ok_and(|space| is_scarce(&space)) {
                                return Err(Error::failure(
                                    "the file system has too little space left",
                                ));
                            }
                        }
                        file.write_at(offset, &bytes)?;
                    }
                    Step::Finish => {
                        file.settle()?;
                        // That may have taken long: somebody else may be at this file by now.
                        if next.is_closed() {
                            break;
                        }
                        file.sync()?;
                        return file.close();
                    }
                }
            }
            Err(Error::failure("the file was abandoned"))
        });
        Self { steps, thread }
    }

    /// Writes bytes. That they could not be written may be learnt later.
    ///
    /// # Errors
    /// The bytes, or some before them, were not written.
    pub(super) async fn write(&mut self, offset: u64, bytes: Bytes) -> Result<()> {
        if self.steps.send(Step::Write(offset, bytes)).await.is_ok() {
            return Ok(());
        }
        joined((&mut self.thread).await)
    }

    /// Makes the file durable and visible. If this is dropped before the file is settled, it is forgotten.
    ///
    /// # Errors
    /// It is neither, or that is not certain.
    pub(super) async fn finish(mut self) -> Result<()> {
        // If the thread has ended, it says why.
        let _ = self.steps.send(Step::Finish).await;
        joined((&mut self.thread).await)
    }
}

/// Whether a file system has no more space than is to be left for everything else on it.
fn is_scarce(space: &Space) -> bool {
    let bytes = |blocks: u64| blocks.saturating_mul(space.fragment_size);
    let reserve = limits::CONNECTOR_RESERVE.min(bytes(space.blocks) / 20);
    bytes(space.available_blocks) < reserve
}

/// Runs what blocks on a thread.
async fn away<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    joined(spawn_blocking(work).await)
}

fn joined<T>(ended: std::result::Result<Result<T>, tokio::task::JoinError>) -> Result<T> {
    ended.unwrap_or_else(|_| Err(Error::failure("the storage has failed")))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};

    use outlast_sftp::attributes::Attributes;

    use super::*;

    /// A file whose inspection goes on until it is told to end.
    struct Inspected {
        begun: std::sync::mpsc::Sender<()>,
        end: Mutex<std::sync::mpsc::Receiver<()>>,
        is_published: Arc<AtomicBool>,
    }

    impl File for Inspected {
        fn read_at(&self, _: u64, _: &mut [u8]) -> Result<usize> {
            Ok(0)
        }

        fn write_at(&self, _: u64, _: &[u8]) -> Result<()> {
            Ok(())
        }

        fn attributes(&self) -> Result<Attributes> {
            Ok(Attributes::default())
        }

        fn set_attributes(&self, _: &Attributes) -> Result<()> {
            Ok(())
        }

        fn settle(&self) -> Result<()> {
            self.begun.send(()).unwrap();
            self.end.lock().unwrap().recv().unwrap();
            Ok(())
        }

        fn sync(&self) -> Result<()> {
            self.is_published.store(true, Ordering::SeqCst);
            Ok(())
        }

        fn close(&self) -> Result<()> {
            self.sync()
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_file_that_nobody_waits_for_does_not_appear() {
        for is_abandoned in [false, true] {
            let (begun, thread) = std::sync::mpsc::channel();
            let (end, ends) = std::sync::mpsc::channel();
            let is_published = Arc::new(AtomicBool::new(false));
            let file =
                Inspected { begun, end: Mutex::new(ends), is_published: is_published.clone() };
            let finishing = tokio::spawn(Writing::of(Box::new(file)).finish());
            let waiting = spawn_blocking(move || {
                thread.recv().unwrap();
                thread
            });
            let thread = waiting.await.unwrap();
            if is_abandoned {
                finishing.abort();
                assert!(finishing.await.unwrap_err().is_cancelled());
                end.send(()).unwrap();
            } else {
                end.send(()).unwrap();
                finishing.await.unwrap().unwrap();
            }
            // The file is gone when the thread has ended.
            assert!(spawn_blocking(move || thread.recv()).await.unwrap().is_err());
            assert_eq!(is_published.load(Ordering::SeqCst), !is_abandoned);
        }
    }

    #[test]
    fn a_reserve_of_space_is_left() {
        const GIB: u64 = 1 << 18;
        for (size, available, expected) in [
            (1000 * GIB, GIB, false),
            (1000 * GIB, GIB - 1, true),
            // A twentieth.
            (10 * GIB, GIB / 2, false),
            (10 * GIB, GIB / 2 - 1, true),
            (0, 0, false),
            (u64::MAX, u64::MAX, false),
        ] {
            let space = Space {
                block_size: 4096,
                fragment_size: 4096,
                blocks: size,
                free_blocks: size,
                available_blocks: available,
                files: 0,
                free_files: 0,
                available_files: 0,
                id: 0,
                read_only: false,
                max_name: 255,
            };
            assert_eq!(is_scarce(&space), expected, "{size} {available}");
        }
    }
}
