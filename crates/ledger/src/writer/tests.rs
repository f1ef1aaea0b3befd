//! A ledger on a disk that fails.

use super::*;

/// A disk with space for so many bytes.
#[derive(Clone, Default)]
struct Small(Arc<Mutex<SmallState>>);

#[derive(Default)]
struct SmallState {
    room: usize,
    keeps: bool,
    segments: Vec<Vec<u8>>,
}

struct SmallFile(Small, usize);

impl Disk for Small {
    fn create(&self, _: i64, _: &str, _: u32) -> io::Result<Box<dyn Append>> {
        let mut state = self.0.lock().unwrap();
        state.segments.push(Vec::new());
        Ok(Box::new(SmallFile(self.clone(), state.segments.len() - 1)))
    }

    fn prune(&self, _: i64) -> io::Result<Removed> {
        Ok(Removed::default())
    }
}

impl Append for SmallFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.0.0.lock().unwrap();
        // As on a real disk, part of it may be written.
        let fits = bytes.len().min(state.room);
        state.room -= fits;
        state.segments[self.1].extend_from_slice(&bytes[..fits]);
        if fits < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        let mut state = self.0.0.lock().unwrap();
        if state.keeps {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        state.segments[self.1].truncate(len as usize);
        Ok(())
    }

    fn sync(&mut self) {}

    fn is_gone(&self) -> bool {
        false
    }
}

fn end(connection: u64) -> End {
    End { connection, time_ms: 1_763_700_000_000, principal: None, received: 1, sent: 2 }
}

fn clock() -> i64 {
    1_763_700_000_000
}

fn lines(disk: &Small) -> Vec<Line> {
    let state = disk.0.lock().unwrap();
    let all = state.segments.concat();
    let text = String::from_utf8(all).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'), "a torn line stays: {text:?}");
    text.lines().map(|line| Line::parse(line.as_bytes()).unwrap()).collect()
}

#[test]
fn full_disk_drops_lines_and_counts_them() {
    let disk = Small::default();
    disk.0.lock().unwrap().room = 600;
    let ledger = Ledger::start(Box::new(disk.clone()), Options::new(clock)).unwrap();
    let mut connection = 0;
    while ledger.lost() == 0 {
        connection += 1;
        ledger.end(&end(connection));
        ledger.flush();
        assert!(connection < 100, "the disk was never full");
    }
    for _ in 0..5 {
        connection += 1;
        ledger.end(&end(connection));
        ledger.flush();
    }
    assert_eq!(ledger.lost(), 6);
    disk.0.lock().unwrap().room = 1 << 20;
    connection += 1;
    ledger.end(&end(connection));
    ledger.flush();
    assert_eq!(ledger.lost(), 6, "what was written now is not lost");
    drop(ledger);
    let lines = lines(&disk);
    let dropped: Vec<_> =
        lines.iter().filter(|line| matches!(line, Line::Dropped { .. })).collect();
    assert_eq!(dropped, [&Line::Dropped { time_ms: clock(), count: 6 }]);
    let ends = lines.iter().filter(|line| matches!(line, Line::End(_))).count() as u64;
    assert_eq!(ends + 6, connection);
    assert_eq!(disk.0.lock().unwrap().segments.len(), 1, "each try left a file");
    assert_eq!(lines.last(), Some(&Line::End(end(connection))));
}

#[test]
fn a_line_that_stays_torn_is_the_last_of_its_segment() {
    let disk = Small::default();
    *disk.0.lock().unwrap() = SmallState { room: 300, keeps: true, ..SmallState::default() };
    let ledger = Ledger::start(Box::new(disk.clone()), Options::new(clock)).unwrap();
    for connection in 0..20 {
        ledger.end(&end(connection));
        ledger.flush();
        if ledger.lost() > 0 {
            break;
        }
    }
    disk.0.lock().unwrap().room = 1 << 20;
    ledger.end(&end(99));
    drop(ledger);
    let state = disk.0.lock().unwrap();
    assert_eq!(state.segments.len(), 2);
    assert!(!state.segments[0].ends_with(b"\n"));
    assert!(state.segments[1].ends_with(b"\n"));
}

#[test]
fn a_full_queue_loses_lines_and_counts_them() {
    let disk = Small::default();
    disk.0.lock().unwrap().room = 1 << 20;
    let options = Options { queue_bytes: 1000, ..Options::new(clock) };
    let ledger = Ledger::start(Box::new(disk.clone()), options).unwrap();
    for connection in 0..10_000 {
        ledger.end(&end(connection));
    }
    let lost = ledger.lost();
    assert!(lost > 0);
    drop(ledger);
    let lines = lines(&disk);
    let noted: u64 = lines
        .iter()
        .map(|line| if let Line::Dropped { count, .. } = line { *count } else { 0 })
        .sum();
    let ends = lines.iter().filter(|line| matches!(line, Line::End(_))).count() as u64;
    assert_eq!((noted, noted + ends), (lost, 10_000));
}
