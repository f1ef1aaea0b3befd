//! The font: embedded, so that PNGs have text on any machine, and measured, so that text fits.
//!
//! DejaVu Sans 2.37 (Bitstream Vera's licence, changes in the public domain). Browsers without it use another font;
//! nearly all are narrower, so text that fits here fits there.

use std::sync::{Arc, LazyLock};

use resvg::usvg::fontdb::Database;
use skrifa::instance::{LocationRef, Size};
use skrifa::{FontRef, MetadataProvider};

/// The fonts of the pictures.
pub(super) fn database() -> Arc<Database> {
    static FONTS: LazyLock<Arc<Database>> = LazyLock::new(|| {
        let mut fonts = Database::new();
        fonts.load_font_data(dejavu::sans::regular().to_vec());
        fonts.load_font_data(dejavu::sans::bold().to_vec());
        fonts.set_sans_serif_family("DejaVu Sans");
        Arc::new(fonts)
    });
    FONTS.clone()
}

/// Advance widths of the most frequent characters, in thousandths of the size; others are looked up.
struct Widths {
    ascii: [f64; 128],
    bytes: &'static [u8],
}

impl Widths {
    fn new(bytes: &'static [u8]) -> Self {
        let mut ascii = [0.6; 128];
        for (code, width) in (0_u8..).zip(&mut ascii) {
            *width = advance(bytes, char::from(code));
        }
        Self { ascii, bytes }
    }

    fn of(&self, character: char) -> f64 {
        let code = usize::try_from(u32::from(character)).unwrap_or(usize::MAX);
        self.ascii.get(code).copied().unwrap_or_else(|| advance(self.bytes, character))
    }
}

fn advance(bytes: &[u8], character: char) -> f64 {
    let Ok(font) = FontRef::new(bytes) else { return 0.65 };
    let glyphs = font.glyph_metrics(Size::new(1.0), LocationRef::default());
    let width = font.charmap().map(character).and_then(|glyph| glyphs.advance_width(glyph));
    width.map_or(1.0, f64::from)
}

/// Width of a text in pixels.
pub(super) fn width(text: &str, size: f64, bold: bool) -> f64 {
    static REGULAR: LazyLock<Widths> = LazyLock::new(|| Widths::new(dejavu::sans::regular()));
    static BOLD: LazyLock<Widths> = LazyLock::new(|| Widths::new(dejavu::sans::bold()));
    let widths: &Widths = if bold { &BOLD } else { &REGULAR };
    text.chars().map(|character| widths.of(character)).sum::<f64>() * size
}

/// The text in at most so many lines of this width; if it does not fit, it ends in an ellipsis.
pub(super) fn wrap(text: &str, room: f64, size: f64, bold: bool, most: usize) -> Vec<String> {
    let fits = |text: &str| width(text, size, bold) <= room;
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let longer = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
        if fits(&longer) {
            line = longer;
            continue;
        }
        if !line.is_empty() {
            lines.push(std::mem::take(&mut line));
        }
        // A word that is longer than a line is broken at its end.
        for character in word.chars() {
            line.push(character);
            if !fits(&line) && line.chars().count() > 1 {
                line.pop();
                lines.push(std::mem::take(&mut line));
                line.push(character);
            }
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    if lines.len() > most {
        lines.truncate(most.max(1));
        if let Some(last) = lines.last_mut() {
            while !last.is_empty() && !fits(&format!("{last}…")) {
                last.pop();
            }
            last.push('…');
        }
    }
    lines
}

/// Width of the widest of these.
pub(super) fn widest<T: AsRef<str>>(texts: &[T], size: f64) -> f64 {
    texts.iter().map(|text| width(text.as_ref(), size, false)).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_measured_by_the_font() {
        assert!((width("mmmm", 10.0, false) - 4.0 * 9.74).abs() < 0.1);
        assert!(width("iiii", 10.0, false) < width("mmmm", 10.0, false) / 3.0);
        assert!(width("bold", 10.0, true) > width("bold", 10.0, false));
        assert!(width("Ünï→…", 10.0, false) > 0.0);
    }

    #[test]
    fn lines_fit_and_say_when_something_is_missing() {
        let name = "SecP384r1MLKEM1024 + ML-DSA-87 x3, HelloRetryRequest";
        let lines = wrap(name, 160.0, 12.0, false, 4);
        assert!(lines.len() > 1 && lines.iter().all(|line| width(line, 12.0, false) <= 160.0));
        assert_eq!(lines.concat().replace(' ', ""), name.replace(' ', ""));
        let cut = wrap(name, 60.0, 12.0, false, 2);
        assert_eq!(cut.len(), 2);
        assert!(cut[1].ends_with('…') && width(&cut[1], 12.0, false) <= 60.0);
        assert!(wrap("", 60.0, 12.0, false, 2).is_empty());
        assert!(wrap("wide", 0.0, 12.0, false, 9).len() == 4);
    }
}
