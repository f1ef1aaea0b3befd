//! PROXY protocol headers as a listener reads them, in pieces of any size.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outlast_net::proxy::protocol::{Announcement, Version, parse, write};

fuzz_target!(|bytes: &[u8]| {
    let whole = parse(bytes);
    if let Ok(Some(header)) = &whole {
        assert!(header.len <= bytes.len());
        // Bytes after a header do not change it, and no part of it is a complete header.
        assert_eq!(parse(&bytes[..header.len]).as_ref(), Ok(&Some(header.clone())));
        for len in 0..header.len {
            assert_eq!(parse(&bytes[..len]), Ok(None));
        }
        let announcement = Announcement { addresses: header.addresses, ..Announcement::default() };
        for version in [Version::V1, Version::V2] {
            let written = write(version, &announcement);
            let again = parse(&written).unwrap().unwrap();
            assert_eq!(again.len, written.len());
            assert_eq!(again.addresses.is_some(), header.addresses.is_some());
        }
    }
});
