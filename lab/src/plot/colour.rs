//! Colours: the same name has the same colour in every chart, and no chart requires telling red from green.
//!
//! A colour follows from the name: classical is blue, hybrid orange, hybrid with a post-quantum signature green,
//! post-quantum alone pink, a classical key exchange with a post-quantum signature brown. Stronger parameters are
//! darker. Hues are from Okabe and Ito, "Color Universal Design" (2008), and, for other names, from Tol, "Colour
//! schemes" (2021), the muted one.

/// Purpose of a neutral colour. A page in dark mode may replace each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Text.
    Ink,
    /// Less important text.
    Muted,
    /// Axes.
    Axis,
    /// Lines behind the data.
    Grid,
    /// The background.
    Paper,
    /// Text on dark cells; the same in the dark.
    OnDark,
    /// Text on light cells; the same in the dark.
    OnLight,
}

impl Role {
    /// The colour on white paper.
    pub(super) fn colour(self) -> Colour {
        match self {
            Self::Ink => Colour(0x1B, 0x1F, 0x24),
            Self::Muted => Colour(0x57, 0x60, 0x6A),
            Self::Axis => Colour(0x8C, 0x95, 0x9F),
            Self::Grid => Colour(0xE4, 0xE7, 0xEB),
            Self::Paper => Colour(0xFF, 0xFF, 0xFF),
            Self::OnDark => Colour(0xFD, 0xFD, 0xFE),
            Self::OnLight => Colour(0x0B, 0x0D, 0x10),
        }
    }
}

/// Red, green, blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Colour(pub(super) u8, pub(super) u8, pub(super) u8);

impl Colour {
    const fn hex(code: u32) -> Self {
        let [_, red, green, blue] = code.to_be_bytes();
        Self(red, green, blue)
    }

    /// A mixture of this and another colour.
    pub(super) fn towards(self, other: Self, share: f64) -> Self {
        let mix = |from: u8, to: u8| {
            let mixed = f64::from(from) + (f64::from(to) - f64::from(from)) * share.clamp(0.0, 1.0);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "between two bytes"
            )]
            let mixed = mixed.round() as u8;
            mixed
        };
        Self(mix(self.0, other.0), mix(self.1, other.1), mix(self.2, other.2))
    }

    /// Its brightness, 0 to 1 (WCAG 2.2, relative luminance).
    pub(super) fn luminance(self) -> f64 {
        let part = |byte: u8| {
            let share = f64::from(byte) / 255.0;
            if share <= 0.04045 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * part(self.0) + 0.7152 * part(self.1) + 0.0722 * part(self.2)
    }

    /// A colour for readable text on it.
    pub(super) fn ink(self) -> Role {
        if self.luminance() > 0.18 { Role::OnLight } else { Role::OnDark }
    }

    fn name(self) -> String {
        format!("#{:02X}{:02X}{:02X}", self.0, self.1, self.2)
    }
}

const WHITE: Colour = Colour(255, 255, 255);

/// A family: normal, weaker, stronger, and one more.
type Family = [Colour; 4];

const CLASSICAL: Family =
    [Colour::hex(0x0072B2), Colour::hex(0x56B4E9), Colour::hex(0x08406B), Colour::hex(0x6E8FB5)];
const HYBRID: Family =
    [Colour::hex(0xD55E00), Colour::hex(0xE69F00), Colour::hex(0x8A3A00), Colour::hex(0xC98A5B)];
const HYBRID_SIGNED: Family =
    [Colour::hex(0x009E73), Colour::hex(0x6CC6A4), Colour::hex(0x00563F), Colour::hex(0x7C9A45)];
const POST_QUANTUM: Family =
    [Colour::hex(0xB8478A), Colour::hex(0xDE9CC4), Colour::hex(0x6E1F4F), Colour::hex(0x8F6C94)];
const SIGNED: Family =
    [Colour::hex(0x8C6D46), Colour::hex(0xC2A878), Colour::hex(0x553E1F), Colour::hex(0xA08A74)];
const FAMILIES: [Family; 5] = [CLASSICAL, HYBRID, HYBRID_SIGNED, POST_QUANTUM, SIGNED];

/// For names that do not name algorithms.
const OTHERS: [Colour; 8] = [
    Colour::hex(0x44AA99),
    Colour::hex(0x332288),
    Colour::hex(0xCC6677),
    Colour::hex(0x999933),
    Colour::hex(0x882255),
    Colour::hex(0x4C8FC4),
    Colour::hex(0xAA4499),
    Colour::hex(0xB09A4A),
];

/// Parts of a handshake, which occur in many charts: word in the name, colour.
const PARTS: [(&str, Colour); 4] = [
    ("client", Colour::hex(0x4C8FC4)),
    ("server", Colour::hex(0x332288)),
    ("network", Colour::hex(0xB3B9C1)),
    ("waiting", Colour::hex(0xB3B9C1)),
];

const PLAIN: Colour = Colour::hex(0x3B6EA5);

const CURVES: [&str; 7] = ["x25519", "x448", "secp", "p-256", "p-384", "p256", "p384"];
const KEMS: [&str; 11] = [
    "mlkem",
    "ml-kem",
    "kyber",
    "saber",
    "ntru",
    "frodo",
    "bike",
    "sike",
    "hqc",
    "aigis-enc",
    "akcn",
];
const SIGNATURES: [&str; 9] = [
    "ml-dsa",
    "mldsa",
    "dilithium",
    "falcon",
    "fn-dsa",
    "slh-dsa",
    "sphincs",
    "aigis-sig",
    "mulan",
];
const CLASSICAL_SIGNATURES: [&str; 4] = ["ecdsa", "rsa", "ed25519", "ed448"];

/// The family of a name that names algorithms, and the index in it.
fn family(name: &str) -> Option<(Family, usize)> {
    let name = name.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    let signed = has(&SIGNATURES);
    let kem = has(&KEMS);
    let hybrid = name.contains("hybrid")
        || (kem && has(&CURVES) && {
            // The curve must be the key exchange's, not that of an ECDSA certificate.
            let exchange = name.split(" + ").next().unwrap_or(&name);
            CURVES.iter().any(|curve| exchange.contains(curve))
        });
    let classical = has(&CURVES)
        || has(&CLASSICAL_SIGNATURES)
        || name.contains("classical")
        || name.contains("ecdhe");
    let family = match (hybrid, kem, signed) {
        (true, _, true) => HYBRID_SIGNED,
        (true, _, false) => HYBRID,
        (false, true, _) => POST_QUANTUM,
        (false, false, true) if name.contains(" + ") => SIGNED,
        (false, false, true) => HYBRID_SIGNED,
        (false, false, false) if classical => CLASSICAL,
        (false, false, false) => return None,
    };
    let strength = |words: [&str; 3]| words.iter().any(|word| name.contains(word));
    let place = if strength(["1024", "-87", "384"]) {
        2
    } else if strength(["512", "-44", "secp256"]) {
        1
    } else {
        0
    };
    Some((family, place))
}

/// The colours of the series of a chart, all different while there are enough.
pub(super) fn of<T: AsRef<str>>(names: &[T]) -> Vec<Colour> {
    let mut taken: Vec<Colour> = Vec::new();
    for name in names {
        let name = name.as_ref();
        let wished: Vec<Colour> = if let Some((family, place)) = family(name) {
            let mut shades = vec![family.get(place).copied().unwrap_or(PLAIN)];
            shades.extend(family);
            shades
        } else {
            let lower = name.to_lowercase();
            PARTS
                .iter()
                .filter(|(word, _)| lower.contains(word))
                .map(|(_, colour)| *colour)
                .collect()
        };
        let start =
            name.bytes().fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        let others = (0..OTHERS.len())
            .filter_map(|next| OTHERS.get(start.wrapping_add(next) % OTHERS.len()).copied());
        let first = wished.first().copied();
        let colour = wished.into_iter().chain(others).find(|colour| !taken.contains(colour));
        taken.push(colour.or(first).unwrap_or(PLAIN));
    }
    taken
}

/// The colours of bars with one part each: by their names, or all the same if the names do not name algorithms.
pub(super) fn of_bars<T: AsRef<str>>(names: &[T]) -> Vec<Colour> {
    names
        .iter()
        .map(|name| match family(name.as_ref()) {
            Some((family, place)) => family.get(place).copied().unwrap_or(PLAIN),
            None => PLAIN,
        })
        .collect()
}

/// All neutral colours of a chart in SVG's notation, with the name of each purpose.
pub const NEUTRALS: [(&str, &str); 5] = [
    ("#FFFFFF", "paper"),
    ("#1B1F24", "ink"),
    ("#57606A", "muted"),
    ("#8C959F", "axis"),
    ("#E4E7EB", "grid"),
];

/// All colours of data in SVG's notation.
pub fn series_colours() -> Vec<String> {
    let parts = PARTS.iter().map(|(_, colour)| *colour);
    let all = FAMILIES.iter().flatten().copied().chain(OTHERS).chain(parts).chain([PLAIN]);
    let mut names: Vec<String> = all.map(Colour::name).collect();
    names.sort();
    names.dedup();
    names
}

/// The same colour for dark paper: made lighter if it would be too dark.
pub fn for_dark(colour: &str) -> String {
    let code = u32::from_str_radix(colour.trim_start_matches('#'), 16).unwrap_or(0x80_8080);
    let mut colour = Colour::hex(code);
    for _ in 0..8 {
        if colour.luminance() >= 0.22 {
            break;
        }
        colour = colour.towards(WHITE, 0.14);
    }
    colour.name()
}

/// Colours of a heat map: light to dark, or two directions around 0. The share is from -1 to 1, or from 0 to 1 if
/// nothing is negative.
pub(super) fn heat(share: f64, both_ways: bool) -> Colour {
    // Light yellow through green to dark blue: the grey level falls all the way, so that it can be printed.
    const ONE_WAY: [Colour; 5] = [
        Colour::hex(0xFDF6D3),
        Colour::hex(0xB8DDB0),
        Colour::hex(0x55B5B0),
        Colour::hex(0x2A78A8),
        Colour::hex(0x1F3170),
    ];
    const DOWN: [Colour; 3] = [Colour::hex(0xF6F6F4), Colour::hex(0x80B7D8), Colour::hex(0x0B5A94)];
    const UP: [Colour; 3] = [Colour::hex(0xF6F6F4), Colour::hex(0xF0A66A), Colour::hex(0xA84300)];
    let steps: &[Colour] = match (both_ways, share < 0.0) {
        (false, _) => &ONE_WAY,
        (true, true) => &DOWN,
        (true, false) => &UP,
    };
    #[expect(clippy::cast_precision_loss, reason = "a handful")]
    let place = share.abs().clamp(0.0, 1.0) * (steps.len() - 1) as f64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a handful")]
    let below = (place.floor() as usize).min(steps.len() - 2);
    #[expect(clippy::cast_precision_loss, reason = "a handful")]
    let rest = place - below as f64;
    match (steps.get(below), steps.get(below + 1)) {
        (Some(low), Some(high)) => low.towards(*high, rest),
        _ => PLAIN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_their_colour_wherever_they_stand() {
        let classical = "X25519 + ECDSA P-256";
        let hybrid = "X25519MLKEM768 + ECDSA P-256";
        let signed = "X25519MLKEM768 + ML-DSA-65 x2";
        assert_eq!(of(&[classical, hybrid, signed]), [CLASSICAL[0], HYBRID[0], HYBRID_SIGNED[0]]);
        assert_eq!(of(&[signed, classical]), [HYBRID_SIGNED[0], CLASSICAL[0]]);
        assert_eq!(of(&["classical", "hybrid"]), [CLASSICAL[0], HYBRID[0]]);
        assert_eq!(of(&["MLKEM768 + ECDSA P-256"]), [POST_QUANTUM[0]]);
        assert_eq!(of(&["X25519 + ML-DSA-44"]), [SIGNED[1]]);
        assert_eq!(of(&["ML-DSA-87"]), [HYBRID_SIGNED[2]]);
    }

    #[test]
    fn a_dozen_are_all_different() {
        let names: Vec<String> =
            (0..12).map(|n| format!("X25519MLKEM768 + ML-DSA-65 x{n}")).collect();
        let colours = of(&names);
        for (place, colour) in colours.iter().enumerate() {
            assert!(!colours[..place].contains(colour), "{place}");
        }
        assert_eq!(of(&vec!["x"; 40]).len(), 40);
    }

    #[test]
    fn colours_are_seen_on_white_and_on_dark_paper() {
        let paper = Colour::hex(0x0F1317).luminance();
        for name in series_colours() {
            let code = |name: &str| u32::from_str_radix(&name[1..], 16).unwrap();
            let on_white = 1.05 / (Colour::hex(code(&name)).luminance() + 0.05);
            let on_dark = (Colour::hex(code(&for_dark(&name))).luminance() + 0.05) / (paper + 0.05);
            assert!(on_white > 1.8, "{name} on white: {on_white}");
            assert!(on_dark > 3.0, "{name} on dark: {on_dark}");
        }
        for (code, _) in NEUTRALS {
            let roles = [Role::Paper, Role::Ink, Role::Muted, Role::Axis, Role::Grid];
            assert!(roles.iter().any(|role| role.colour().name() == code));
        }
    }

    #[test]
    fn heat_grows_darker() {
        let levels: Vec<f64> =
            (0..=10).map(|n| heat(f64::from(n) / 10.0, false).luminance()).collect();
        assert!(levels.windows(2).all(|pair| pair[0] > pair[1]), "{levels:?}");
    }
}
