//! What offers reveal of the client software, and names of code points that `outlast_crypto` has no row for.

use outlast_crypto::groups::{Group, UNSERVED};
use outlast_crypto::schemes::Scheme;
use outlast_crypto::suites::Suite;
use outlast_negotiate::Offer;
use outlast_negotiate::failing::APPLICATION_SETTINGS;
use serde::{Deserialize, Serialize};

/// Groups of abandoned drafts: no server of today has any of them.
///
/// Sources: IANA's registry "TLS Supported Groups" (obsolete rows), draft-tls-westerbaan-xyber768d00, the code points of
/// Open Quantum Safe, s2n-tls, Cloudflare and BoringSSL (CECPQ2).
pub static DRAFTS: &[(u16, &str)] = &[
    (0x6399, "X25519Kyber768Draft00"),
    (0x639a, "SecP256r1Kyber768Draft00"),
    (0xfe30, "X25519Kyber512Draft00"),
    (0xfe31, "X25519Kyber768Draft00Old"),
    (0xfe32, "P256Kyber768Draft00"),
    (0x2f39, "x25519_kyber512"),
    (0x2f3a, "p256_kyber512"),
    (0x2f3c, "p384_kyber768"),
    (0x2f3d, "p521_kyber1024"),
    (0x023a, "kyber512"),
    (0x023c, "kyber768"),
    (0x023d, "kyber1024"),
    (0x4138, "CECPQ2"),
];

/// Other groups that clients offer (RFC 8446, section 4.2.7; RFC 7027; RFC 8734).
static OTHERS: &[(u16, &str)] = &[
    (0x0016, "secp256k1"),
    (0x0019, "secp521r1"),
    (0x001a, "brainpoolP256r1"),
    (0x001b, "brainpoolP384r1"),
    (0x001c, "brainpoolP512r1"),
    (0x001e, "x448"),
    (0x001f, "brainpoolP256r1tls13"),
    (0x0020, "brainpoolP384r1tls13"),
    (0x0021, "brainpoolP512r1tls13"),
    (0x0100, "ffdhe2048"),
    (0x0101, "ffdhe3072"),
    (0x0102, "ffdhe4096"),
    (0x0103, "ffdhe6144"),
    (0x0104, "ffdhe8192"),
];

/// Meaningless values, so that servers keep ignoring unknown ones (RFC 8701).
pub fn is_grease(code: u16) -> bool {
    code & 0x0f0f == 0x0a0a && code >> 8 == code & 0xff
}

fn hex(code: u16) -> String {
    if is_grease(code) { "GREASE".into() } else { format!("0x{code:04x}") }
}

/// The name of a group, or its code point in hexadecimal.
pub fn group_name(code: u16) -> String {
    let named = |table: &[(u16, &'static str)]| {
        table.iter().find(|row| row.0 == code).map(|row| row.1.to_owned())
    };
    Group::by_code_point(code)
        .map(|row| row.name.to_owned())
        .or_else(|| named(DRAFTS))
        .or_else(|| named(UNSERVED))
        .or_else(|| named(OTHERS))
        .unwrap_or_else(|| hex(code))
}

/// The name of a cipher suite, or its code point.
pub fn suite_name(code: u16) -> String {
    Suite::by_code_point(code).map_or_else(|| hex(code), |row| row.name.to_owned())
}

/// The name of a signature scheme, or its code point.
pub fn scheme_name(code: u16) -> String {
    Scheme::by_code_point(code).map_or_else(|| hex(code), |row| row.name.to_owned())
}

/// The name of a version of TLS, or its code point.
pub fn version_name(code: u16) -> String {
    match code {
        0x0300 => "SSLv3".into(),
        0x0301 => "TLSv1.0".into(),
        0x0302 => "TLSv1.1".into(),
        0x0303 => "TLSv1.2".into(),
        0x0304 => "TLSv1.3".into(),
        _ => hex(code),
    }
}

/// The best that a client could do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ability {
    /// It offers a post-quantum group, in TLS 1.3.
    PostQuantum,
    /// It offers post-quantum groups in IANA's registry, but none that is served here.
    Unserved,
    /// It only offers groups of old drafts.
    OldDraft,
    /// It offers TLS 1.3 with classical groups.
    Classical,
    /// It offers TLS 1.2 at most, which has no post-quantum groups.
    Tls12,
    /// It sent no readable ClientHello.
    Unreadable,
}

const SUPPORTED_VERSIONS: u16 = 43;

/// The best that a client with this offer could do.
pub fn ability(offer: &Offer) -> Ability {
    if !(offer.extensions.contains(&SUPPORTED_VERSIONS) && offer.versions.contains(&0x0304)) {
        return Ability::Tls12;
    }
    let has = |table: &[(u16, &str)]| table.iter().any(|row| offer.groups.contains(&row.0));
    let post_quantum =
        |code: &u16| Group::by_code_point(*code).is_some_and(|row| row.strength.is_post_quantum());
    if offer.groups.iter().any(post_quantum) {
        Ability::PostQuantum
    } else if has(UNSERVED) {
        Ability::Unserved
    } else if has(DRAFTS) {
        Ability::OldDraft
    } else {
        Ability::Classical
    }
}

/// Software that is recognised by its default groups.
#[derive(Debug)]
pub struct Software {
    /// Its name.
    pub name: &'static str,
    /// Its groups in order, without GREASE.
    groups: &'static [u16],
    /// Whether it sends GREASE among its groups or, as Chromium over QUIC, the extension ALPS instead.
    grease: bool,
    /// What to do about it; empty if there is nothing to do.
    pub hint: &'static str,
}

/// All known software, by captured offers.
pub static SOFTWARE: &[Software] = &[
    Software {
        name: "OpenSSL 3.5 or newer",
        groups: &[0x11ec, 0x001d, 0x0017, 0x001e, 0x0018, 0x0019, 0x0100, 0x0101],
        grease: false,
        hint: "",
    },
    Software {
        name: "OpenSSL 3.0 to 3.4",
        groups: &[0x001d, 0x0017, 0x001e, 0x0019, 0x0018, 0x0100, 0x0101, 0x0102, 0x0103, 0x0104],
        grease: false,
        hint: "upgrade OpenSSL to 3.5, or connect it through `outlast forward`",
    },
    Software {
        name: "OpenSSL 1.1.1",
        groups: &[0x001d, 0x0017, 0x001e, 0x0019, 0x0018],
        grease: false,
        hint: "upgrade OpenSSL to 3.5, or connect it through `outlast forward`",
    },
    Software {
        name: "Go 1.26 or newer",
        groups: &[0x11ec, 0x11eb, 0x11ed, 0x001d, 0x0017, 0x0018, 0x0019],
        grease: false,
        hint: "",
    },
    Software {
        name: "Go 1.24 or 1.25 (or in go.mod)",
        groups: &[0x11ec, 0x001d, 0x0017, 0x0018, 0x0019],
        grease: false,
        hint: "",
    },
    Software {
        name: "Go 1.23",
        groups: &[0x6399, 0x001d, 0x0017, 0x0018, 0x0019],
        grease: false,
        hint: "build with Go 1.24 or newer",
    },
    Software {
        name: "Go before 1.23 (or in go.mod), or CurvePreferences",
        groups: &[0x001d, 0x0017, 0x0018, 0x0019],
        grease: false,
        hint: "build with Go 1.24 or newer and say so in go.mod, and leave CurvePreferences of tls.Config unset",
    },
    Software {
        name: "Java (JSSE of OpenJDK 13 to 26)",
        groups: &[0x001d, 0x0017, 0x0018, 0x0019, 0x001e, 0x0100, 0x0101, 0x0102, 0x0103, 0x0104],
        grease: false,
        hint: "use a JDK whose JSSE has X25519MLKEM768 (27) or BouncyCastle's BCJSSE, or connect it through `outlast forward`",
    },
    Software {
        name: "Java (JSSE of OpenJDK 11)",
        groups: &[0x0017, 0x0018, 0x0019, 0x001d, 0x001e, 0x0100, 0x0101, 0x0102, 0x0103, 0x0104],
        grease: false,
        hint: "use a JDK whose JSSE has X25519MLKEM768 (27) or BouncyCastle's BCJSSE, or connect it through `outlast forward`",
    },
    Software {
        name: "Chromium 131 or newer",
        groups: &[0x11ec, 0x001d, 0x0017, 0x0018],
        grease: true,
        hint: "",
    },
    Software {
        name: "Chromium 124 to 130",
        groups: &[0x6399, 0x001d, 0x0017, 0x0018],
        grease: true,
        hint: "upgrade the browser to 131 or newer",
    },
    Software {
        name: "Chromium before 124, or with post-quantum key agreement switched off",
        groups: &[0x001d, 0x0017, 0x0018],
        grease: true,
        hint: "upgrade the browser, and check its policy PostQuantumKeyAgreementEnabled",
    },
    Software {
        name: "Firefox 132 or newer",
        groups: &[0x11ec, 0x001d, 0x0017, 0x0018, 0x0019, 0x0100, 0x0101],
        grease: false,
        hint: "",
    },
    Software {
        name: "Firefox before 132",
        groups: &[0x001d, 0x0017, 0x0018, 0x0019, 0x0100, 0x0101],
        grease: false,
        hint: "upgrade the browser to 132 or newer",
    },
    Software {
        name: "Outlast (its clients, and its proxy towards servers)",
        groups: &[0x11ec, 0x11eb, 0x11ed, 0x001d, 0x0017, 0x0018],
        grease: false,
        hint: "",
    },
    Software {
        name: "rustls with AWS-LC",
        groups: &[0x11ec, 0x001d, 0x0017, 0x0018],
        grease: false,
        hint: "",
    },
    Software {
        name: "rustls without post-quantum groups",
        groups: &[0x001d, 0x0017, 0x0018],
        grease: false,
        hint: "build rustls with aws-lc-rs and the feature prefer-post-quantum",
    },
];

/// Name of the row for clients beyond [`crate::limits::MAX_STRANGERS`]: none of them got a connection.
pub static STRANGERS: Software =
    Software { name: "others whose handshake failed", groups: &[], grease: false, hint: "" };

/// The software with this offer, if it is known.
pub fn software(offer: &Offer) -> Option<&'static Software> {
    let grease = offer.groups.iter().any(|code| is_grease(*code))
        || APPLICATION_SETTINGS.iter().any(|code| offer.extensions.contains(code));
    let groups = || offer.groups.iter().copied().filter(|code| !is_grease(*code));
    SOFTWARE.iter().find(|row| row.grease == grease && groups().eq(row.groups.iter().copied()))
}

/// What to do about a client that cannot do better.
pub fn hint(ability: Ability, software: Option<&Software>) -> &'static str {
    if ability == Ability::PostQuantum {
        return "";
    }
    match (software.map(|row| row.hint).filter(|hint| !hint.is_empty()), ability) {
        // At TLS 1.2 it does not matter which software it is.
        (_, Ability::Tls12) => {
            "it speaks TLS 1.2 at most: allow TLS 1.3 or upgrade its TLS library, or connect it through `outlast forward`"
        }
        (_, Ability::Unreadable) => "",
        (_, Ability::Unserved) => {
            "make it offer X25519MLKEM768, too: its post-quantum groups are not supported here"
        }
        (Some(hint), _) => hint,
        (None, Ability::OldDraft) => {
            "upgrade its TLS library: it offers a draft of ML-KEM that servers no longer support"
        }
        (None, _) => {
            "upgrade its TLS library to one that has X25519MLKEM768 and leave its groups at their defaults, or connect it through `outlast forward`"
        }
    }
}

#[cfg(test)]
mod tests {
    use outlast_negotiate::Transport;

    use super::*;

    #[test]
    fn no_two_rows_are_the_same() {
        for (index, row) in SOFTWARE.iter().enumerate() {
            let same = |other: &&Software| other.groups == row.groups && other.grease == row.grease;
            assert_eq!(SOFTWARE.iter().position(|other| same(&other)), Some(index), "{}", row.name);
        }
    }

    #[test]
    fn who_has_a_hint_cannot_do_better_and_the_others_can() {
        for row in SOFTWARE {
            let post_quantum = row.groups.contains(&0x11ec);
            assert_eq!(row.hint.is_empty(), post_quantum, "{}", row.name);
        }
    }

    /// The groups and extensions that Chromium 156 sent over QUIC.
    #[test]
    fn chromium_is_known_over_quic() {
        let mut offer = Offer {
            transport: Transport::Quic,
            versions: vec![0x0304],
            suites: vec![0x1301, 0x1302, 0x1303],
            groups: vec![0x11ec, 0x001d, 0x0017, 0x0018],
            shares: Some(vec![0x11ec, 0x001d]),
            schemes: vec![0x0403],
            certificate_schemes: None,
            sni: None,
            protocols: vec!["h3".into()],
            extensions: vec![
                0x002d, 0x000a, 0x0039, 0x0033, 0x44cd, 0x001b, 0x0010, 0x002b, 0xfe0d, 0x000d,
            ],
            resumes: false,
        };
        assert_eq!(software(&offer).map(|row| row.name), Some("Chromium 131 or newer"));
        offer.extensions.retain(|kind| *kind != 0x44cd);
        assert_eq!(software(&offer).map(|row| row.name), Some("rustls with AWS-LC"));
    }

    #[test]
    fn drafts_are_not_rows() {
        for (code, name) in DRAFTS.iter().chain(UNSERVED) {
            assert!(Group::by_code_point(*code).is_none(), "{name}");
        }
    }

    #[test]
    fn grease_is_known() {
        assert!(is_grease(0x0a0a) && is_grease(0xfafa));
        assert!(!is_grease(0x0a1a) && !is_grease(0x1301) && !is_grease(0x001d));
    }
}
