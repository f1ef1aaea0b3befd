//! Lines of a ledger: a parsed line is written the same way again, and reports accept everything that can be parsed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outlast_ledger::dry_run::dry_run;
use outlast_ledger::export::{Exporter, csv};
use outlast_ledger::tally::{Filter, Tally};
use outlast_ledger::{Line, plot, report};
use outlast_negotiate::{Mode, Rules};

fuzz_target!(|bytes: &[u8]| {
    let mut tally = Tally::new(Filter::default());
    let mut exporter = Exporter::new(Filter::default());
    let mut records = Vec::new();
    for text in bytes.split(|byte| *byte == b'\n') {
        let Ok(line) = Line::parse(text) else { continue };
        // A stranger's line may be longer than one written here; once written, it stays the same.
        let mut first = Vec::new();
        line.encode(&mut first);
        let again = Line::parse(&first).expect("what is written can be read");
        let mut second = Vec::new();
        again.encode(&mut second);
        assert_eq!(first, second);
        records.extend(exporter.add(line.clone()));
        tally.add(line);
    }
    records.extend(exporter.finish());
    for record in &records {
        let _ = csv(record);
    }
    let tally = tally.finish();
    let _ = serde_json::to_string(&report::summary(&tally)).expect("a summary is JSON");
    let _ = report::laggards(&tally);
    for mode in Mode::ALL {
        let _ = dry_run(&tally, &Rules { mode, ..Rules::default() }, &[]);
    }
    let _ = plot::svg(&tally);
});
