//! Digests of files of any size in constant memory: one thread reads while another hashes.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::mpsc;

use indicatif::ProgressBar;
use outlast_crypto::digests::{Digest, DigestContext};

use crate::failure::Failure;
use crate::files;

/// Bytes of one read: enough that waking the other thread costs little.
const CHUNK: usize = 1 << 20;
/// Bytes of one read of a small file.
const SMALL_CHUNK: usize = 16 << 10;
/// Chunks in flight: with the one being hashed, memory stays below five chunks.
const DEPTH: usize = 3;

/// The file's digest under each of the algorithms, reading it once.
pub(crate) fn file(
    path: &Path,
    digests: &[&'static Digest],
    progress: &ProgressBar,
) -> Result<Vec<Vec<u8>>, Failure> {
    let failed = |error: std::io::Error| files::io_failure(path, &error);
    let input = File::open(path).map_err(failed)?;
    let metadata = input.metadata().map_err(failed)?;
    if metadata.is_dir() {
        return Err(Failure::file(path, &"it is a folder"));
    }
    progress.inc_length(metadata.len());
    let is_small = metadata.is_file() && metadata.len() < CHUNK as u64;
    let read =
        if is_small { small(input, digests, progress) } else { reader(input, digests, progress) };
    read.map_err(failed)
}

/// The same on this thread alone: a second one, and its buffers, cost more than a small file takes.
fn small(
    mut input: impl Read,
    digests: &[&'static Digest],
    progress: &ProgressBar,
) -> std::io::Result<Vec<Vec<u8>>> {
    let mut contexts: Vec<_> = digests.iter().map(|digest| digest.start()).collect();
    let mut buffer = vec![0; SMALL_CHUNK];
    loop {
        let read = read_full(&mut input, &mut buffer)?;
        for context in &mut contexts {
            context.update(&buffer[..read]);
        }
        progress.inc(read as u64);
        // It may have grown meanwhile: only the end ends it.
        if read < buffer.len() {
            return Ok(contexts.into_iter().map(DigestContext::finish).collect());
        }
    }
}

/// The digest of all that `input` yields under each of the algorithms.
pub(crate) fn reader(
    mut input: impl Read + Send,
    digests: &[&'static Digest],
    progress: &ProgressBar,
) -> std::io::Result<Vec<Vec<u8>>> {
    let mut contexts: Vec<_> = digests.iter().map(|digest| digest.start()).collect();
    let (full, to_hash) = mpsc::sync_channel::<(Vec<u8>, usize)>(DEPTH);
    let (empty, to_fill) = mpsc::channel::<Vec<u8>>();
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || -> std::io::Result<()> {
            for round in 0_usize.. {
                let fresh = round < DEPTH;
                let mut buffer = match to_fill.try_recv() {
                    Ok(buffer) => buffer,
                    Err(_) if fresh => vec![0; CHUNK],
                    Err(_) => match to_fill.recv() {
                        Ok(buffer) => buffer,
                        Err(_) => break,
                    },
                };
                let read = read_full(&mut input, &mut buffer)?;
                if read == 0 || full.send((buffer, read)).is_err() {
                    break;
                }
            }
            Ok(())
        });
        for (buffer, len) in to_hash {
            for context in &mut contexts {
                context.update(&buffer[..len]);
            }
            progress.inc(len as u64);
            // The reader may have finished already.
            let _ = empty.send(buffer);
        }
        reader.join().unwrap_or_else(|_| Err(std::io::ErrorKind::Other.into()))
    })?;
    Ok(contexts.into_iter().map(DigestContext::finish).collect())
}

/// Fills the buffer, unless the file ends before.
fn read_full(input: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match input.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_of_reading_agree_at_every_border() {
        let rows: Vec<_> =
            ["sha512", "sha256"].iter().filter_map(|name| Digest::by_name(name)).collect();
        let folder = tempfile::tempdir().unwrap();
        for len in
            [0, 1, SMALL_CHUNK - 1, SMALL_CHUNK, SMALL_CHUNK + 1, CHUNK - 1, CHUNK, CHUNK + 1]
        {
            let bytes: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
            let path = folder.path().join("file");
            std::fs::write(&path, &bytes).unwrap();
            let expected: Vec<_> = rows.iter().map(|row| row.digest(&bytes)).collect();
            let bar = ProgressBar::hidden();
            assert_eq!(file(&path, &rows, &bar).unwrap(), expected, "{len}");
            assert_eq!(reader(&*bytes, &rows, &bar).unwrap(), expected, "{len}");
            assert_eq!(bar.position(), 2 * len as u64, "{len}");
        }
    }
}
