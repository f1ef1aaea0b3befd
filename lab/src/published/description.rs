//! Reads each file of published figures by the description beside it: `NAME.toml` says what the columns of `NAME.csv`
//! are, in which unit, of how many measurements, and where in the source they stand.
//!
//! A number without these is easily misread: the number of a row was once taken for the loss of that row.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// What a file contains.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    /// The publication.
    source: String,
    /// Which of its files or tables.
    file: String,
    /// Of what each row is a statistic.
    denominator: String,
    column: Vec<Column>,
    /// The rows: all combinations of these values, by the names of their columns.
    grid: Vec<BTreeMap<String, Vec<String>>>,
}

/// A column.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Column {
    name: String,
    /// Unit, or `name` if the column has no numbers.
    unit: String,
    /// Where in the source it stands.
    at: String,
    least: Option<f64>,
    most: Option<f64>,
    /// All values are multiples of this.
    step: Option<f64>,
    /// Another column, which is not larger in any row.
    not_below: Option<String>,
}

/// What is wrong with a file, in sentences.
fn mistakes(description: &str, data: &str) -> Vec<String> {
    let description: Description = match toml::from_str(description) {
        Ok(description) => description,
        Err(error) => return vec![format!("the description cannot be read: {error}")],
    };
    let mut mistakes = Vec::new();
    let texts = [&description.source, &description.file, &description.denominator];
    let columns = description.column.iter().flat_map(|column| [&column.unit, &column.at]);
    if texts.into_iter().chain(columns).any(|text| text.trim().is_empty()) {
        mistakes.push("the description has an empty text".to_owned());
    }
    let mut reader = csv::Reader::from_reader(data.as_bytes());
    let names: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    let described: Vec<String> =
        description.column.iter().map(|column| column.name.clone()).collect();
    if names != described {
        mistakes.push(format!("columns {names:?}, described {described:?}"));
        return mistakes;
    }
    let mut found: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    let keys: BTreeSet<&String> = description.grid.iter().flat_map(BTreeMap::keys).collect();
    for record in reader.records() {
        let record = record.unwrap();
        let row: BTreeMap<&str, &str> = names.iter().map(String::as_str).zip(&record).collect();
        mistakes.extend(description.column.iter().filter_map(|column| column.mistake(&row)));
        let key = keys.iter().map(|key| row[key.as_str()].to_owned()).collect();
        *found.entry(key).or_default() += 1;
    }
    let mut expected = BTreeSet::new();
    for grid in &description.grid {
        let mut rows = vec![Vec::new()];
        for key in &keys {
            let Some(values) = grid.get(*key) else {
                mistakes.push(format!("a grid without {key}"));
                return mistakes;
            };
            rows = rows
                .iter()
                .flat_map(|row: &Vec<String>| {
                    values
                        .iter()
                        .map(move |value| [row.as_slice(), std::slice::from_ref(value)].concat())
                })
                .collect();
        }
        expected.extend(rows);
    }
    mistakes.extend(
        expected
            .iter()
            .filter(|row| !found.contains_key(*row))
            .map(|row| format!("no row {row:?}")),
    );
    for (row, count) in &found {
        if !expected.contains(row) {
            mistakes.push(format!("row {row:?} is not described"));
        } else if *count > 1 {
            mistakes.push(format!("row {row:?} is there {count} times"));
        }
    }
    mistakes
}

impl Column {
    fn mistake(&self, row: &BTreeMap<&str, &str>) -> Option<String> {
        let text = row[self.name.as_str()];
        if self.unit == "name" {
            return text.is_empty().then(|| format!("{} is empty in {row:?}", self.name));
        }
        let Ok(value) = text.parse::<f64>() else {
            return Some(format!("{} is no number in {row:?}", self.name));
        };
        let (Some(least), Some(most)) = (self.least, self.most) else {
            return Some(format!("{} has no range", self.name));
        };
        if !(least..=most).contains(&value) {
            return Some(format!("{} is not within {least} to {most} in {row:?}", self.name));
        }
        if self.unit.starts_with('%') && !(0.0..=100.0).contains(&most) {
            return Some(format!("{} may be more than all", self.name));
        }
        if let Some(step) = self.step
            && ((value / step).round() * step - value).abs() > 1e-9
        {
            return Some(format!("{} is no multiple of {step} in {row:?}", self.name));
        }
        let other = self.not_below.as_deref()?;
        match row.get(other).and_then(|text| text.parse::<f64>().ok()) {
            Some(other) if other <= value => None,
            _ => Some(format!("{} is below {other} in {row:?}", self.name)),
        }
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("published")
}

#[test]
fn each_file_is_what_its_description_says() {
    let mut files = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "csv") {
            continue;
        }
        files += 1;
        let data = std::fs::read_to_string(&path).unwrap();
        let description = std::fs::read_to_string(path.with_extension("toml"))
            .unwrap_or_else(|error| panic!("{}: no description: {error}", path.display()));
        let mistakes = mistakes(&description, &data);
        assert!(mistakes.is_empty(), "{}: {mistakes:#?}", path.display());
    }
    assert!(files >= 3, "only {files} files");
}

#[test]
fn a_wrong_file_is_noticed() {
    let read = |name: &str| std::fs::read_to_string(folder().join(name)).unwrap();
    let (description, data) = (read("fudan2022.toml"), read("fudan2022.csv"));
    let noticed = |description: &str, data: &str, sentence: &str| {
        let mistakes = mistakes(description, data);
        assert!(mistakes.iter().any(|one| one.contains(sentence)), "{sentence}: {mistakes:#?}");
    };
    // The number of the row in place of the loss, as it once was.
    noticed(
        &description,
        &data.replace("dilithium2,10,", "dilithium2,20,"),
        "is not within 0 to 10",
    );
    noticed(&description, &data.replace("falcon512,2.5,", "falcon512,2.7,"), "no multiple of 0.5");
    noticed(&description, &data.replace("mean_ms", "average_ms"), "columns");
    let (head, _) = data.trim_end().rsplit_once('\n').unwrap();
    noticed(&description, head, "no row");
    let (_, last) = head.rsplit_once('\n').unwrap();
    noticed(&description, &format!("{data}{last}\n"), "is there 2 times");
    noticed(&description, &data.replace("near,", "far,"), "is not described");
    noticed(&description, &data.replace("23.041,26.656", "27.041,26.656"), "is below p50_ms");
    noticed(&description, &data.replace("23.041", "fast"), "is no number");
    let undescribed = description.replace("name = \"mean_ms\"", "name = \"other_ms\"");
    noticed(&undescribed, &data, "columns");
    noticed(
        &description.replace("unit = \"ms from after TCP's connect\"", "unit = \"\""),
        &data,
        "empty text",
    );
    noticed(&description.replace("most = 10.0", "most = 1000.0"), &data, "more than all");
    noticed(&description.replace("denominator", "per"), &data, "cannot be read");
}
