//! Charts of every kind: drawn, with text, and without a panic.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use crate::common;

use std::path::PathBuf;

use outlast_lab::plot::{self, Look};
use outlast_lab::result::{Axis, Chart, Fan, Marks, Rule, Series};
use proptest::prelude::*;

/// Folder for the pictures, for people to look at.
fn folder() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("lab-charts");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn every_kind_is_drawn_for_files_pages_and_phones() {
    for chart in common::usual().into_iter().chain(common::odd()) {
        let svg = plot::svg(&chart).unwrap();
        std::fs::write(folder().join(format!("{}.svg", chart.name)), &svg).unwrap();
        std::fs::write(folder().join(format!("{}.png", chart.name)), plot::png(&svg).unwrap())
            .unwrap();
        let narrow = plot::draw(&chart, Look::NARROW).unwrap();
        let png = plot::png(&narrow).unwrap();
        std::fs::write(folder().join(format!("{}-narrow.png", chart.name)), png).unwrap();
    }
}

/// Without an embedded font all text silently vanishes from PNGs.
#[test]
fn png_has_text() {
    let mut chart = common::usual().remove(0);
    let ink = |chart: &Chart| -> usize {
        let svg = plot::svg(chart).unwrap();
        let png = plot::png(&svg).unwrap();
        let pixels = resvg::tiny_skia::Pixmap::decode_png(&png).unwrap();
        assert_eq!(pixels.width(), 1920);
        // The heading's lines, at twice the size, where there is nothing else.
        let heading = pixels.pixels().iter().take(1920 * 60);
        heading.filter(|pixel| pixel.red() < 100 && pixel.green() < 100).count()
    };
    let with = ink(&chart);
    assert!(with > 5_000, "{with} dark pixels");
    chart.title = " ".repeat(40);
    let without = ink(&chart);
    assert!(without < with / 4, "{without} dark pixels without a heading, {with} with one");
}

#[test]
fn pictures_say_what_they_show_and_their_text_is_escaped() {
    let mut chart = common::usual().remove(0);
    chart.title = "a <script>alert(\"x\")</script> & b".into();
    let svg = plot::svg(&chart).unwrap();
    assert!(svg.contains("role=\"img\"") && svg.contains("aria-label=\"a &lt;script&gt;"));
    assert!(!svg.contains("<script") && svg.contains("X25519MLKEM768 + ECDSA P-256"));
    assert!(
        !plot::draw(&chart, Look::WIDE)
            .unwrap()
            .contains("alert(&quot;x&quot;)&lt;/script&gt; &amp; b\n<")
    );
    let left_out = common::odd().into_iter().find(|chart| chart.name == "odd-zero-log").unwrap();
    assert!(plot::svg(&left_out).unwrap().contains("cannot be drawn on this axis"));
}

fn figure() -> impl Strategy<Value = f64> {
    prop_oneof![
        3 => -1000.0..1000.0,
        1 => proptest::num::f64::ANY,
        1 => Just(0.0),
        1 => Just(f64::NAN),
        1 => Just(f64::INFINITY),
        1 => 1.0..1.000_000_1,
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[ -~]{0,80}", "\\PC{0,20}", Just("X25519MLKEM768 + ML-DSA-65 x2".to_owned())]
}

fn figures(most: usize) -> impl Strategy<Value = Vec<f64>> {
    proptest::collection::vec(figure(), 0..most)
}

fn pairs(most: usize) -> impl Strategy<Value = Vec<[f64; 2]>> {
    proptest::collection::vec([figure(), figure()], 0..most)
}

fn series() -> impl Strategy<Value = Vec<Series>> {
    let one = (text(), pairs(12), pairs(12)).prop_map(|(name, points, band)| Series {
        name,
        points,
        band,
    });
    proptest::collection::vec(one, 0..14)
}

fn marks() -> impl Strategy<Value = Marks> {
    let fan = (
        text(),
        proptest::collection::vec(text(), 0..4),
        figures(6),
        figures(6),
        proptest::collection::vec(proptest::collection::vec(figures(6), 0..6), 0..4),
    )
        .prop_map(|(title, names, x, shares, values)| Fan { title, names, x, shares, values });
    prop_oneof![
        series().prop_map(|series| Marks::Lines { series }),
        series().prop_map(|series| Marks::Steps { series }),
        proptest::collection::vec(fan, 0..5).prop_map(|panels| Marks::Fans { panels }),
        (
            proptest::collection::vec(text(), 0..20),
            proptest::collection::vec(text(), 0..20),
            proptest::collection::vec(
                proptest::collection::vec(proptest::option::of(figure()), 0..20),
                0..20
            )
        )
            .prop_map(|(rows, columns, values)| Marks::Heat { rows, columns, values }),
        (
            proptest::collection::vec(text(), 0..20),
            proptest::collection::vec((text(), figures(20)), 0..5),
            any::<bool>()
        )
            .prop_map(|(categories, parts, grouped)| Marks::Bars {
                categories,
                parts,
                grouped
            }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn whatever_the_data_a_chart_comes_of_it(
        marks in marks(), title in text(), label in text(), log in any::<[bool; 2]>(),
        rules in proptest::collection::vec((text(), figure()), 0..4)
    ) {
        let chart = Chart {
            name: "any".into(),
            title,
            x: Axis { label: label.clone(), log: log[0] },
            y: Axis { label, log: log[1] },
            marks,
            rules: rules.into_iter().map(|(label, at)| Rule { label, at }).collect(),
            caption: String::new(),
        };
        for look in [Look::FILE, Look::WIDE, Look::NARROW] {
            let svg = plot::draw(&chart, look).unwrap();
            prop_assert!(!svg.contains("=\"NaN") && !svg.contains("=\"inf"));
            let tree = resvg::usvg::Tree::from_str(&svg, &resvg::usvg::Options::default());
            prop_assert!(tree.is_ok(), "{:?}", tree.err());
        }
    }
}
