//! Other spellings of names: what a careless comparison takes for the same.

/// The form of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `arn:partition:service:region:account:resource`
    Arn,
    /// An id or another single word.
    Word,
    /// A URL.
    Url,
}

/// Other spellings of a name, none of them its own.
pub fn spellings(name: &str, form: Form) -> Vec<String> {
    let mut all = around(name);
    all.extend(letters(name));
    match form {
        Form::Arn => all.extend(parts(name)),
        Form::Word => all.extend(words(name)),
        Form::Url => all.extend([
            name.replacen("https://", "http://", 1),
            name.replacen("https://", "HTTPS://", 1),
            name.replacen("https://", "https://user@", 1),
            name.replacen("/account/", "/account//", 1),
            name.replacen("/account/", "/account/./", 1),
            name.replacen("/account/", "/account/../account/", 1),
        ]),
    }
    all.retain(|other| other != name);
    all.sort();
    all.dedup();
    all
}

/// Text before or after it.
fn around(name: &str) -> Vec<String> {
    let after = [
        "/", "//", "/x", ":", ":x", "?", "?x=y", "#", "#x", "*", " ", "\t", "\n", "\r\n", "\0",
        "\u{a0}", "\u{200b}", "\u{feff}", "\u{301}", "\u{202e}", "%00", "%20", ",", ";", "\\",
        "\"", "/.", "/..",
    ];
    let before = [" ", "\t", "\n", "\0", "/", "//", "\u{feff}", "\u{200b}", "%20", "./", "\"", "*"];
    let mut all: Vec<_> = after.iter().map(|text| format!("{name}{text}")).collect();
    all.extend(before.iter().map(|text| format!("{text}{name}")));
    all.push(format!("{name}{name}"));
    all.push(format!("{name},{name}"));
    all.push(format!("\"{name}\""));
    all
}

/// Other characters inside.
fn letters(name: &str) -> Vec<String> {
    let wide = |c: char| char::from_u32(u32::from(c) + 0xfee0).unwrap();
    let cyrillic = |c: char| match c {
        'a' => '\u{430}',
        'c' => '\u{441}',
        'e' => '\u{435}',
        'i' => '\u{456}',
        'o' => '\u{43e}',
        'p' => '\u{440}',
        's' => '\u{455}',
        'x' => '\u{445}',
        other => other,
    };
    let with = |from: &str, to: &str| name.replacen(from, to, 1);
    let last = |from: &str, to: &str| match name.rfind(from) {
        Some(at) => format!("{}{to}{}", &name[..at], &name[at + from.len()..]),
        None => name.to_owned(),
    };
    let mapped = |map: &dyn Fn(char) -> char| name.chars().map(map).collect::<String>();
    let mut middle = name.to_owned();
    middle.insert(name.len() / 2, '\u{301}');
    let mut soft = name.to_owned();
    soft.insert(name.len() / 2, '\u{ad}');
    let capital = |text: &str| {
        let (first, rest) = text.split_at(1);
        format!("{}{rest}", first.to_ascii_uppercase())
    };
    vec![
        name.to_ascii_uppercase(),
        name.to_ascii_lowercase(),
        capital(name),
        mapped(&|c| if c.is_ascii_digit() { wide(c) } else { c }),
        mapped(&|c| if c == ':' { wide(c) } else { c }),
        mapped(&|c| if c == '/' { wide(c) } else { c }),
        mapped(&|c| if c.is_ascii_graphic() { wide(c) } else { c }),
        mapped(&cyrillic),
        mapped(&|c| if c == '-' { '\u{2010}' } else { c }),
        mapped(&|c| if c == '-' { '_' } else { c }),
        mapped(&|c| if c == '1' { 'l' } else { c }),
        mapped(&|c| if c == '0' { 'O' } else { c }),
        middle,
        soft,
        with("/", "%2F"),
        with("/", "%2f"),
        last("/", "%2F"),
        with(":", "%3A"),
        last(":", "%3a"),
        with("-", "%2d"),
        with("a", "%61"),
        with("/", "//"),
        last("/", "//"),
        with("/", "\\"),
        with("/", "/./"),
        with("/", "/x/../"),
        last("/", "/../"),
        with(":", "::"),
        last(":", ": "),
        last("/", "/ "),
        last("/", "/*"),
        last("/", ":"),
    ]
}

/// Other components of an ARN.
fn parts(arn: &str) -> Vec<String> {
    let parts: Vec<_> = arn.splitn(6, ':').map(str::to_owned).collect();
    let with = |at: usize, text: &str| {
        let mut parts = parts.clone();
        text.clone_into(&mut parts[at]);
        parts.join(":")
    };
    let mut all = Vec::new();
    all.extend(["ARN", "Arn", "urn", "", "arn ", " arn", "arn:arn"].map(|text| with(0, text)));
    all.extend(
        [
            "aws-x",
            "awsx",
            "aws-",
            "AWS",
            "Aws",
            "",
            " ",
            "aws ",
            " aws",
            "*",
            "aws*",
            "aws-cn",
            "aws-us-gov",
            "aws-iso",
            "aws-iso-b",
            "aws-eusc",
            "\u{430}ws",
        ]
        .map(|text| with(1, text)),
    );
    let upper = parts[2].to_ascii_uppercase();
    all.extend([upper.as_str(), "", "*", "kmss", " kms", "aws", "sts"].map(|text| with(2, text)));
    let upper = parts[3].to_ascii_uppercase();
    all.extend(
        [
            upper.as_str(),
            "",
            " ",
            "*",
            "zz",
            "us-east-1",
            "eu-west-1",
            "cn-north-1",
            "us-gov-west-1",
            "eu-west-1 ",
            " eu-west-1",
            "eu_west_1",
            "eu-west-1a",
            "eu-west-01",
            "euwest1",
            "global",
            "aws-global",
        ]
        .map(|text| with(3, text)),
    );
    let account = &parts[4];
    all.extend(
        [
            "",
            " ",
            "*",
            "aws",
            "210987654321",
            "000000000000",
            &format!("0{account}"),
            &format!("{account}0"),
            &format!("{account} "),
            &format!(" {account}"),
            account.strip_prefix('1').unwrap_or("1"),
            &format!("+{account}"),
            &format!("{account}.0"),
            "0x1cbe991a14",
        ]
        .map(|text| with(4, text)),
    );
    let resource = &parts[5];
    if let Some((kind, id)) = resource.split_once('/') {
        let capital = format!("{}{}", kind[..1].to_ascii_uppercase(), &kind[1..]);
        all.extend(
            [
                format!("{}/{id}", kind.to_ascii_uppercase()),
                format!("{capital}/{id}"),
                format!("{kind}/{}", id.to_ascii_uppercase()),
                format!("{kind}/{kind}/{id}"),
                format!("/{kind}/{id}"),
                format!("{kind}:{id}"),
                format!("{kind}//{id}"),
                format!("{kind}/{{{id}}}"),
                format!("{kind}/urn:uuid:{id}"),
                format!("{kind}/{}", id.replace('-', "")),
                format!("{kind}s/{id}"),
                format!(" {kind}/{id}"),
                kind.to_owned(),
                id.to_owned(),
                format!("{kind}/"),
            ]
            .iter()
            .map(|text| with(5, text)),
        );
    }
    all.push(parts[..5].join(":"));
    all.push(parts[5].clone());
    all
}

/// Other forms of a single word.
fn words(name: &str) -> Vec<String> {
    vec![
        name.replace('-', ""),
        format!("{{{name}}}"),
        format!("urn:uuid:{name}"),
        format!("key/{name}"),
        format!("KEY/{name}"),
        format!("alias/{name}"),
        format!("Alias/{name}"),
        name.replacen("alias/", "ALIAS/", 1),
        name.replacen("alias/", "alias/alias/", 1),
        name.replacen("alias/", "", 1),
        format!("kms:{name}"),
        format!("0{name}"),
        format!("0x{name}"),
        name.trim_start_matches('0').to_owned(),
    ]
}
