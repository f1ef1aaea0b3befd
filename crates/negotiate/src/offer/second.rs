//! Compares the ClientHello after a HelloRetryRequest with the first one.
//!
//! rustls only checks the share, the suite and the server name (and drops the connection without an alert for the
//! last).

use super::reader::Reader;
use super::{COOKIE, EARLY_DATA, KEY_SHARE, OfferError, PRE_SHARED_KEY};

/// RFC 7685.
const PADDING: u16 = 21;
/// RFC 9849: the outer message is new.
const ENCRYPTED_CLIENT_HELLO: u16 = 0xfe0d;

/// Checks that `second` is a permitted change of `first` after a request for a share of `group` (RFC 8446, section
/// 4.1.2). Both are whole messages. The section does not mention the order of extensions, except that the message is
/// the same; it is not checked, since nothing depends on it.
pub fn check_second(first: &[u8], second: &[u8], group: u16) -> Result<(), OfferError> {
    let (first, second) = (Hello::read(first)?, Hello::read(second)?);
    if first.fixed != second.fixed {
        return Err(OfferError::Changed("its version, random, session or cipher suites"));
    }
    for (kind, content) in &second.extensions {
        let before = first.extension(*kind);
        match *kind {
            KEY_SHARE => only_share(content, group)?,
            PADDING => {}
            // Section 4.2.2: it repeats the server's, and there was none.
            COOKIE => return Err(OfferError::Changed("a cookie that the server did not send")),
            // Section 4.2.10.
            EARLY_DATA => return Err(OfferError::Changed("early data after the retry")),
            PRE_SHARED_KEY | ENCRYPTED_CLIENT_HELLO if before.is_some() => {}
            _ if before == Some(content) => {}
            _ => return Err(OfferError::Changed("an extension")),
        }
    }
    let may_go = |kind: u16| matches!(kind, PADDING | EARLY_DATA | PRE_SHARED_KEY);
    match first.extensions.iter().find(|(kind, _)| second.extension(*kind).is_none()) {
        Some((kind, _)) if !may_go(*kind) => Err(OfferError::Changed("an extension")),
        _ => Ok(()),
    }
}

/// Section 4.1.2: a list with one share, of the group that was asked for.
fn only_share(content: &[u8], group: u16) -> Result<(), OfferError> {
    let mut shares = Reader(content).vector16()?;
    let found = shares.u16()?;
    shares.filled16()?;
    if found != group || !shares.is_empty() {
        return Err(OfferError::Changed("shares other than the one requested"));
    }
    Ok(())
}

struct Hello<'a> {
    /// Everything before the extensions.
    fixed: &'a [u8],
    extensions: Vec<(u16, &'a [u8])>,
}

impl<'a> Hello<'a> {
    fn read(message: &'a [u8]) -> Result<Self, OfferError> {
        let body = message.get(4..).ok_or(OfferError::Malformed)?;
        let mut reader = Reader(body);
        reader.take(2 + 32)?;
        reader.vector8()?;
        reader.vector16()?;
        reader.vector8()?;
        let (fixed, rest) = body.split_at(body.len() - reader.0.len());
        let mut list = if rest.is_empty() { Reader(rest) } else { reader.vector16()? };
        let mut extensions = Vec::with_capacity(24);
        while !list.is_empty() {
            extensions.push((list.u16()?, list.vector16()?.0));
            // Each is searched for among the others. The first message may have any number, but a client that is
            // asked to retry sends no more than this.
            if extensions.len() > MAX_EXTENSIONS {
                return Err(OfferError::TooLong);
            }
        }
        Ok(Self { fixed, extensions })
    }

    fn extension(&self, kind: u16) -> Option<&&'a [u8]> {
        self.extensions.iter().find(|(known, _)| *known == kind).map(|(_, content)| content)
    }
}

/// More than IANA has registered.
const MAX_EXTENSIONS: usize = 256;
