//! A limit on frames of HTTP/3 that would be held in memory: `h3` collects each frame but DATA whole, however long its
//! sender says that it is.

/// Watches the bytes of a stream that its peer sends.
#[derive(Debug)]
pub(super) struct Frames {
    state: State,
    /// Bytes of a frame at most, DATA aside.
    max: u64,
}

#[derive(Debug)]
enum State {
    /// In the type of a unidirectional stream (RFC 9114, section 6.2).
    Stream(Number),
    /// In a frame's type (RFC 9114, section 7.1).
    Kind(Number),
    /// In the length of a frame of this type.
    Length(u64, Number),
    /// In a frame: so much is left.
    Content(u64),
    /// Not made of frames, and not collected by `h3`.
    Other,
}

/// A frame is longer than it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooLong;

const DATA: u64 = 0;
const CONTROL: u64 = 0;

impl Frames {
    /// Of a stream of requests.
    pub(super) fn of_request(max: u64) -> Self {
        Self { state: State::Kind(Number::default()), max }
    }

    /// Of a unidirectional stream.
    pub(super) fn of_unidirectional(max: u64) -> Self {
        Self { state: State::Stream(Number::default()), max }
    }

    /// Looks at what came next.
    pub(super) fn look(&mut self, mut bytes: &[u8]) -> Result<(), TooLong> {
        while let [first, rest @ ..] = bytes {
            self.state = match &mut self.state {
                State::Other => return Ok(()),
                State::Content(left) => {
                    let here = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                    bytes = bytes.get(here..).unwrap_or_default();
                    match *left - here as u64 {
                        0 => State::Kind(Number::default()),
                        left => State::Content(left),
                    }
                }
                State::Stream(number) => {
                    bytes = rest;
                    match number.push(*first) {
                        None => continue,
                        Some(CONTROL) => State::Kind(Number::default()),
                        Some(_) => State::Other,
                    }
                }
                State::Kind(number) => {
                    bytes = rest;
                    match number.push(*first) {
                        None => continue,
                        Some(kind) => State::Length(kind, Number::default()),
                    }
                }
                State::Length(kind, number) => {
                    bytes = rest;
                    match number.push(*first) {
                        None => continue,
                        Some(0) => State::Kind(Number::default()),
                        Some(len) if *kind != DATA && len > self.max => return Err(TooLong),
                        Some(len) => State::Content(len),
                    }
                }
            };
        }
        Ok(())
    }
}

/// A number of variable length, as far as it has come (RFC 9000, section 16).
#[derive(Debug, Default)]
struct Number {
    value: u64,
    /// Bytes that are still to come, once the first has.
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

    /// In one piece, and in pieces of each size.
    fn check(make: fn(u64) -> Frames, bytes: &[u8], expected: Result<(), TooLong>) {
        for size in 1..=bytes.len() {
            let mut frames = make(100);
            let outcome = bytes.chunks(size).try_for_each(|piece| frames.look(piece));
            assert_eq!(outcome, expected, "{bytes:02x?} in pieces of {size}");
        }
    }

    #[test]
    fn frames_have_a_length_at_most() {
        let headers = |len: u16| [&[1, 0x40 | (len >> 8) as u8, len as u8][..], &[7; 200]].concat();
        check(Frames::of_request, &headers(100)[..103], Ok(()));
        check(Frames::of_request, &headers(101), Err(TooLong));
        // Two frames of which the second is too long, after DATA that may have any length.
        let mut two = headers(3)[..6].to_vec();
        two.extend([0, 0x40, 200]);
        two.extend([1; 200]);
        check(Frames::of_request, &two, Ok(()));
        two.extend([0, 0]);
        check(Frames::of_request, &two, Ok(()));
        two.extend([0x21, 0x40, 101]);
        check(Frames::of_request, &two, Err(TooLong));
        // A length of eight bytes, as long as it can be.
        check(Frames::of_request, &[1, 255, 255, 255, 255, 255, 255, 255, 255], Err(TooLong));
    }

    #[test]
    fn of_unidirectional_streams_only_the_control_stream_has_frames() {
        check(Frames::of_unidirectional, &[0, 4, 0x40, 101], Err(TooLong));
        check(Frames::of_unidirectional, &[0, 4, 2, 1, 5, 4, 0x40, 101], Err(TooLong));
        check(Frames::of_unidirectional, &[0x40, 0, 4, 0x40, 101], Err(TooLong));
        check(Frames::of_unidirectional, &[2, 4, 0x40, 101, 4, 4], Ok(()));
        check(Frames::of_unidirectional, &[0x40, 0x54, 0x40, 101, 4, 4], Ok(()));
    }
}
