//! What `h3` leaves to the transport: where HTTP/3 frames end, how long and how many they may be, and their order.
//!
//! `h3` asks for more bytes before it looks at those it has, and collects each frame except DATA completely, whatever
//! its announced length. If pieces end at the end of a frame's header or content, it never holds more than it uses.

use crate::limits;

/// Watches the bytes of a stream from the peer.
#[derive(Debug)]
pub(super) struct Frames {
    state: State,
    /// Longest frame in bytes, except DATA.
    max: u64,
    /// Whether the stream carries requests.
    is_request: bool,
    /// HEADERS frames so far: those after the first are trailers.
    headers: u8,
    /// Frames that no other limit counts.
    empty: u32,
}

#[derive(Debug)]
enum State {
    /// In the type of a unidirectional stream (RFC 9114, section 6.2).
    Stream(Number),
    /// In a frame's type (RFC 9114, section 7.1).
    Kind(Number),
    /// In the length of a frame of this type.
    Length(u64, Number),
    /// Inside a frame with this many bytes left.
    Content(u64),
    /// Does not consist of frames, and `h3` does not collect it.
    Other,
    /// The error is permanent: later reads get it again.
    Refused(Wrong),
}

/// Why reading a stream ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wrong {
    /// A frame is too long.
    TooLong,
    /// Too many frames without effect.
    TooMany,
    /// The stream ends inside a frame (RFC 9114, section 7.1).
    Cut,
    /// A frame is not allowed here (RFC 9114, section 4.1).
    Unexpected,
}

const DATA: u64 = 0;
const HEADERS: u64 = 1;
const CONTROL: u64 = 0;

impl Frames {
    /// Of a stream of requests.
    pub(super) fn of_request(max: u64) -> Self {
        let state = State::Kind(Number::default());
        Self { state, max, is_request: true, headers: 0, empty: 0 }
    }

    /// Of a unidirectional stream.
    pub(super) fn of_unidirectional(max: u64) -> Self {
        let state = State::Stream(Number::default());
        Self { state, max, is_request: false, headers: 0, empty: 0 }
    }

    /// How many of the next bytes to pass on at once: up to the end of a frame's header or content. The caller asks
    /// again about the rest.
    pub(super) fn next(&mut self, bytes: &[u8]) -> Result<usize, Wrong> {
        let outcome = self.advance(bytes);
        if let Err(wrong) = outcome {
            self.state = State::Refused(wrong);
        }
        outcome
    }

    /// Why reading the stream ends, if it does.
    pub(super) fn refused(&self) -> Option<Wrong> {
        match self.state {
            State::Refused(wrong) => Some(wrong),
            _ => None,
        }
    }

    fn advance(&mut self, bytes: &[u8]) -> Result<usize, Wrong> {
        for (at, byte) in bytes.iter().enumerate() {
            let (state, is_boundary) = match &mut self.state {
                State::Other => return Ok(bytes.len()),
                State::Refused(wrong) => return Err(*wrong),
                State::Content(left) => {
                    // The first of these bytes: a boundary precedes it.
                    let here = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                    *left -= here as u64;
                    if *left == 0 {
                        self.state = State::Kind(Number::default());
                    }
                    return Ok(here);
                }
                State::Stream(number) => match number.push(*byte) {
                    None => continue,
                    Some(CONTROL) => (State::Kind(Number::default()), true),
                    Some(_) => (State::Other, true),
                },
                State::Kind(number) => match number.push(*byte) {
                    None => continue,
                    Some(kind) => (State::Length(kind, Number::default()), false),
                },
                State::Length(kind, number) => match number.push(*byte) {
                    None => continue,
                    Some(len) => {
                        let kind = *kind;
                        self.begin(kind, len)?;
                        let state = match len {
                            0 => State::Kind(Number::default()),
                            len => State::Content(len),
                        };
                        (state, true)
                    }
                },
            };
            self.state = state;
            if is_boundary {
                return Ok(at + 1);
            }
        }
        Ok(bytes.len())
    }

    /// A frame begins.
    fn begin(&mut self, kind: u64, len: u64) -> Result<(), Wrong> {
        if kind != DATA && len > self.max {
            return Err(Wrong::TooLong);
        }
        if self.is_request && matches!(kind, DATA | HEADERS) && self.headers > 1 {
            return Err(Wrong::Unexpected);
        }
        if kind == HEADERS {
            self.headers = self.headers.saturating_add(1);
        }
        // The limit on bodies counts DATA. On the control stream there may be as many as there are requests.
        if len == 0 || (self.is_request && kind != DATA) {
            self.empty += 1;
            if self.empty > limits::EMPTY_FRAMES {
                return Err(Wrong::TooMany);
            }
        }
        Ok(())
    }

    /// The stream ends here.
    pub(super) fn end(&self) -> Result<(), Wrong> {
        match &self.state {
            // RFC 9114, section 6.2: a stream may end before its type.
            State::Stream(_) | State::Other => Ok(()),
            State::Kind(number) if number.left.is_none() => Ok(()),
            State::Kind(_) | State::Length(..) | State::Content(_) => Err(Wrong::Cut),
            State::Refused(wrong) => Err(*wrong),
        }
    }
}

/// A variable-length integer, as far as it has arrived (RFC 9000, section 16).
#[derive(Debug, Default)]
struct Number {
    value: u64,
    /// Missing bytes, once the first has arrived.
    left: Option<u8>,
}

impl Number {
    fn push(&mut self, byte: u8) -> Option<u64> {
        let left = match self.left {
            None => {
                self.value = u64::from(byte & 0x3f);
                (1 << (byte >> 6)) - 1
            }
            Some(left) => {
                self.value = self.value << 8 | u64::from(byte);
                left - 1
            }
        };
        self.left = Some(left);
        (left == 0).then_some(self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces in which the bytes are passed on, and whether the stream may end then.
    fn pieces(frames: &mut Frames, came: &[&[u8]]) -> Result<Vec<Vec<u8>>, Wrong> {
        let mut out = Vec::new();
        for mut bytes in came.iter().copied() {
            while !bytes.is_empty() {
                let len = frames.next(bytes)?;
                assert!(len > 0);
                out.push(bytes[..len].to_vec());
                bytes = &bytes[len..];
            }
        }
        frames.end().map(|()| out)
    }

    /// In one piece, and in pieces of each size.
    fn check(make: fn(u64) -> Frames, bytes: &[u8], expected: Result<(), Wrong>) {
        for size in 1..=bytes.len() {
            let came: Vec<&[u8]> = bytes.chunks(size).collect();
            let outcome = pieces(&mut make(100), &came);
            if let Ok(pieces) = &outcome {
                assert_eq!(pieces.concat(), bytes, "nothing is lost");
            }
            assert_eq!(outcome.map(drop), expected, "{bytes:02x?} in pieces of {size}");
        }
    }

    #[test]
    fn frames_have_a_length_at_most() {
        let headers = |len: u16| [&[1, 0x40 | (len >> 8) as u8, len as u8][..], &[7; 200]].concat();
        check(Frames::of_request, &headers(100)[..103], Ok(()));
        check(Frames::of_request, &headers(101), Err(Wrong::TooLong));
        // Two frames, the second too long, after DATA, whose length is not limited.
        let mut two = headers(3)[..6].to_vec();
        two.extend([0, 0x40, 200]);
        two.extend([1; 200]);
        check(Frames::of_request, &two, Ok(()));
        two.extend([0, 0]);
        check(Frames::of_request, &two, Ok(()));
        two.extend([0x21, 0x40, 101]);
        check(Frames::of_request, &two, Err(Wrong::TooLong));
        // A length in eight bytes with the largest value.
        let longest = [1, 255, 255, 255, 255, 255, 255, 255, 255];
        check(Frames::of_request, &longest, Err(Wrong::TooLong));
    }

    #[test]
    fn only_the_control_stream_has_frames() {
        check(Frames::of_unidirectional, &[0, 4, 0x40, 101], Err(Wrong::TooLong));
        check(Frames::of_unidirectional, &[0, 4, 2, 1, 5, 4, 0x40, 101], Err(Wrong::TooLong));
        check(Frames::of_unidirectional, &[0x40, 0, 4, 0x40, 101], Err(Wrong::TooLong));
        check(Frames::of_unidirectional, &[2, 4, 0x40, 101, 4, 4], Ok(()));
        check(Frames::of_unidirectional, &[0x40, 0x54, 0x40, 101, 4, 4], Ok(()));
    }

    #[test]
    fn each_piece_ends_with_a_header_or_a_content() {
        let came: &[u8] = &[1, 3, b'a', b'b', b'c', 0, 0, 0, 0x40, 2, b'x', b'y', 0x21, 1, 9];
        let expected: [&[u8]; 7] =
            [&[1, 3], b"abc", &[0, 0], &[0, 0x40, 2], b"xy", &[0x21, 1], &[9]];
        assert_eq!(pieces(&mut Frames::of_request(100), &[came]).unwrap(), expected);
        let came: &[u8] = &[0, 4, 2, 1, 5, 13, 1, 0];
        let expected: [&[u8]; 5] = [&[0], &[4, 2], &[1, 5], &[13, 1], &[0]];
        assert_eq!(pieces(&mut Frames::of_unidirectional(100), &[came]).unwrap(), expected);
    }

    /// `h3` asks again after an error.
    #[test]
    fn what_was_refused_stays_so() {
        for (bytes, wrong) in
            [(&[1, 0x40, 101][..], Wrong::TooLong), (&[1, 0, 1, 0, 1, 0], Wrong::Unexpected)]
        {
            let mut frames = Frames::of_request(100);
            let first = bytes.chunks(1).find_map(|byte| frames.next(byte).err());
            assert_eq!((first, frames.refused()), (Some(wrong), Some(wrong)));
            for more in [&[0][..], &[0, 0, 0, 0, 0, 0, 0, 0, 0], &[1, 1, 7]] {
                assert_eq!(frames.next(more), Err(wrong));
            }
            assert_eq!(frames.end(), Err(wrong));
        }
    }

    #[test]
    fn streams_end_between_frames() {
        for cut in [&[1][..], &[1, 0x40], &[1, 1], &[1, 1, 7, 0, 5, 1, 2, 3, 4]] {
            check(Frames::of_request, cut, Err(Wrong::Cut));
        }
        check(Frames::of_unidirectional, &[0x40], Ok(()));
    }

    #[test]
    fn nothing_comes_after_trailers_but_what_means_nothing() {
        check(Frames::of_request, &[1, 1, 7, 0, 1, 8, 1, 1, 9], Ok(()));
        check(Frames::of_request, &[1, 1, 7, 0, 1, 8, 1, 1, 9, 0x21, 0], Ok(()));
        check(Frames::of_request, &[1, 1, 7, 1, 1, 9, 0, 1, 8], Err(Wrong::Unexpected));
        check(Frames::of_request, &[1, 1, 7, 1, 1, 9, 1, 1, 8], Err(Wrong::Unexpected));
    }

    #[test]
    fn frames_that_nothing_else_counts_are_counted() {
        let max = limits::EMPTY_FRAMES as usize;
        for empty in [[0, 0], [0x21, 0]] {
            let bytes = empty.repeat(max);
            assert!(pieces(&mut Frames::of_request(100), &[&bytes]).is_ok());
            let bytes = empty.repeat(max + 1);
            let outcome = pieces(&mut Frames::of_request(100), &[&bytes]);
            assert_eq!(outcome, Err(Wrong::TooMany));
        }
        let outcome = pieces(&mut Frames::of_request(100), &[&[0x21, 1, 7].repeat(max + 1)]);
        assert_eq!(outcome, Err(Wrong::TooMany));
        assert!(pieces(&mut Frames::of_request(100), &[&[0, 1, 7].repeat(2 * max)]).is_ok());
    }
}
