//! Reads S3's answers, which are XML.

use quick_xml::Reader;
use quick_xml::events::{BytesRef, Event};

/// An element without elements in it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Leaf {
    /// Name of the element that contains it.
    pub(super) parent: String,
    /// Number of that element within the answer.
    pub(super) group: usize,
    /// Name.
    pub(super) name: String,
    /// Content.
    pub(super) text: String,
}

/// The leaves of an answer in their order; none if it is not XML.
pub(super) fn leaves(body: &[u8]) -> Option<Vec<Leaf>> {
    let mut reader = Reader::from_str(std::str::from_utf8(body).ok()?);
    let mut found = Vec::new();
    let mut open: Vec<(String, usize)> = Vec::new();
    let (mut text, mut is_leaf, mut elements) = (String::new(), false, 0);
    let mut leaf = |open: &[(String, usize)], name: String, text: String| {
        let (parent, group) = open.last().cloned().unwrap_or_default();
        found.push(Leaf { parent, group, name, text });
    };
    loop {
        match reader.read_event().ok()? {
            Event::Start(tag) => {
                elements += 1;
                open.push((name(tag.local_name().as_ref())?, elements));
                text.clear();
                is_leaf = true;
            }
            Event::Empty(tag) => {
                leaf(&open, name(tag.local_name().as_ref())?, String::new());
                is_leaf = false;
            }
            Event::End(_) => {
                let (name, _) = open.pop()?;
                if std::mem::take(&mut is_leaf) {
                    leaf(&open, name, std::mem::take(&mut text));
                }
            }
            Event::Text(part) => text.push_str(&part.decode().ok()?),
            Event::CData(part) => text.push_str(&part.decode().ok()?),
            Event::GeneralRef(reference) => text.push(character(&reference)?),
            Event::Eof => break,
            _ => {}
        }
    }
    open.is_empty().then_some(found)
}

/// The text of the first leaf with this name.
pub(super) fn first(body: &[u8], name: &str) -> Option<String> {
    leaves(body)?.into_iter().find(|leaf| leaf.name == name).map(|leaf| leaf.text)
}

fn name(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).ok().map(str::to_owned)
}

fn character(reference: &BytesRef<'_>) -> Option<char> {
    if let Some(found) = reference.resolve_char_ref().ok()? {
        return Some(found);
    }
    let name: &[u8] = reference;
    match name {
        b"amp" => Some('&'),
        b"lt" => Some('<'),
        b"gt" => Some('>'),
        b"quot" => Some('"'),
        b"apos" => Some('\''),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_know_the_element_that_contains_them() {
        let body = b"<?xml version=\"1.0\"?><R xmlns=\"x\"><A><K>a&amp;&#x62;</K><E/></A><A><K>c</K></A></R>";
        let found = leaves(body).unwrap();
        let found: Vec<_> = found
            .iter()
            .map(|leaf| (&*leaf.parent, leaf.group, &*leaf.name, &*leaf.text))
            .collect();
        assert_eq!(found, [("A", 2, "K", "a&b"), ("A", 2, "E", ""), ("A", 4, "K", "c")]);
        assert_eq!(first(body, "K").unwrap(), "a&b");
        for broken in [&b"<A><B>"[..], b"<A></B>", b"<A>&nothing;</A>", b"\xff"] {
            assert_eq!(leaves(broken), None);
        }
    }
}
