//! The lines of listings, as `ls -l` of GNU prints them in UTC.

use std::collections::BTreeMap;

use outlast_sftp::attributes::Attributes;
use outlast_sftp::longname::long_name;
use outlast_sftp::owners::Owners;
use outlast_sftp::volume::Entry;

use crate::support::NOW;

#[test]
fn lines_are_those_of_ls() {
    let owners = Owners {
        users: BTreeMap::from([(0, "root".to_owned())]),
        groups: BTreeMap::from([(33, "www-data".to_owned())]),
    };
    let line = |mode, times, owner| {
        let attributes = Attributes { size: Some(1234), owner, mode, times };
        let entry = Entry { name: b"name \xff".to_vec(), attributes, links: 2 };
        let line = long_name(&entry, &owners, NOW);
        assert!(line.ends_with(b" name \xff"));
        String::from_utf8_lossy(&line[..line.len() - 7]).into_owned()
    };
    let at = |seconds: i64| Some((0, u32::try_from(seconds).unwrap()));
    let cases = [
        (
            Some(0o100_644),
            at(NOW - 60),
            Some((0, 33)),
            "-rw-r--r--    2 root     www-data     1234 Nov 24 05:59",
        ),
        (
            Some(0o040_755),
            at(0),
            Some((1, 2)),
            "drwxr-xr-x    2 1        2            1234 Jan  1  1970",
        ),
        (
            Some(0o120_777),
            at(NOW - 200 * 86_400),
            None,
            "lrwxrwxrwx    2 ?        ?            1234 May  8  2026",
        ),
        (
            Some(0o104_755),
            at(NOW + 60),
            None,
            "-rwsr-xr-x    2 ?        ?            1234 Nov 24  2026",
        ),
        (Some(0o102_644), at(NOW), None, "-rw-r-Sr--    2 ?        ?            1234 Nov 24 06:00"),
        (Some(0o041_777), None, None, "drwxrwxrwt    2 ?        ?            1234 ????????????"),
        (Some(0o010_000), None, None, "p---------    2 ?        ?            1234 ????????????"),
        (None, None, None, "??????????    2 ?        ?            1234 ????????????"),
    ];
    for (mode, times, owner, expected) in cases {
        assert_eq!(line(mode, times, owner), expected);
    }
}

#[test]
fn the_system_knows_root() {
    let owners = Owners::of_system();
    assert_eq!(
        (owners.user(0), owners.user(4_000_000_000)),
        ("root".to_owned(), "4000000000".to_owned())
    );
}
