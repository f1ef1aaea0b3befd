//! Texts in lines.

use std::borrow::Cow;

use serde::{Deserialize, Serialize, Serializer};

/// A text; a longer one is cut after so many bytes, between characters.
#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct Text<'a, const MAX: usize>(#[serde(borrow)] pub(super) Cow<'a, str>);

impl<const MAX: usize> Serialize for Text<'_, MAX> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let end = self.0.floor_char_boundary(MAX);
        serializer.serialize_str(self.0.get(..end).unwrap_or_default())
    }
}

impl<'a, const MAX: usize> From<&'a String> for Text<'a, MAX> {
    fn from(text: &'a String) -> Self {
        Self(Cow::Borrowed(text))
    }
}

impl<const MAX: usize> From<Text<'_, MAX>> for String {
    fn from(text: Text<'_, MAX>) -> Self {
        text.0.into_owned()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
pub(super) fn is_unset(flag: &bool) -> bool {
    !flag
}
