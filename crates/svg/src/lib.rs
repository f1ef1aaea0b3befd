//! Writes pictures as SVG 1.1: shapes and texts in drawing order.
//!
//! The contents of a picture may come from strangers, such as a name in a ledger: attributes and texts are escaped,
//! and characters that XML 1.0 forbids (section 2.2) become spaces.

use std::fmt::{Display, Write};

/// Names and values of attributes.
pub type Attributes<'a> = &'a [(&'a str, &'a dyn Display)];

/// A picture in progress.
#[derive(Debug, Default, Clone)]
pub struct Picture {
    body: String,
}

impl Picture {
    /// Adds a shape, such as `rect`, `line`, `circle`, `polyline` or `polygon`.
    pub fn shape(&mut self, name: &str, attributes: Attributes<'_>) {
        self.open(name, attributes);
        self.body.push_str("/>\n");
    }

    /// Adds a shape with a tooltip.
    pub fn titled(&mut self, name: &str, attributes: Attributes<'_>, title: &str) {
        self.open(name, attributes);
        self.body.push_str("><title>");
        escape(&mut self.body, title);
        self.body.push_str("</title></");
        self.body.push_str(name);
        self.body.push_str(">\n");
    }

    /// Adds a text.
    pub fn text(&mut self, attributes: Attributes<'_>, text: &str) {
        self.open("text", attributes);
        self.body.push('>');
        escape(&mut self.body, text);
        self.body.push_str("</text>\n");
    }

    /// Returns the picture, with the attributes of its root: `viewBox`, `width`, `aria-label`.
    pub fn finish(self, attributes: Attributes<'_>) -> String {
        let mut root = Self::default();
        let namespace: (&str, &dyn Display) = ("xmlns", &"http://www.w3.org/2000/svg");
        root.open("svg", &[&[namespace], attributes].concat());
        root.body.push_str(">\n");
        root.body.push_str(&self.body);
        root.body.push_str("</svg>\n");
        root.body
    }

    fn open(&mut self, name: &str, attributes: Attributes<'_>) {
        self.body.push('<');
        self.body.push_str(name);
        for (name, value) in attributes {
            self.body.push(' ');
            self.body.push_str(name);
            self.body.push_str("=\"");
            // Writing to a string cannot fail.
            let _ = write!(Escaping(&mut self.body), "{value}");
            self.body.push('"');
        }
    }
}

/// Points in the format of `polyline` and `polygon`.
#[derive(Debug)]
pub struct Points<'a, T>(pub &'a [(T, T)]);

impl<T: Display> Display for Points<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (place, (x, y)) in self.0.iter().enumerate() {
            write!(f, "{}{x},{y}", if place > 0 { " " } else { "" })?;
        }
        Ok(())
    }
}

struct Escaping<'a>(&'a mut String);

impl Write for Escaping<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        escape(self.0, text);
        Ok(())
    }
}

fn escape(out: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push(' '),
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_strangers_name_stays_text() {
        let mut picture = Picture::default();
        picture.text(&[("x", &1.5), ("fill", &"\"/><script>")], "a <b> & \"c\"\u{0}\u{ffff}");
        picture.titled("rect", &[("width", &3)], "</title>");
        picture.shape("polyline", &[("points", &Points(&[(1, 2), (3, 4)]))]);
        assert_eq!(
            picture.finish(&[("viewBox", &"0 0 1 1")]),
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 1 1\">\n\
             <text x=\"1.5\" fill=\"&quot;/&gt;&lt;script&gt;\">a &lt;b&gt; &amp; &quot;c&quot;  </text>\n\
             <rect width=\"3\"><title>&lt;/title&gt;</title></rect>\n\
             <polyline points=\"1,2 3,4\"/>\n</svg>\n"
        );
    }
}
