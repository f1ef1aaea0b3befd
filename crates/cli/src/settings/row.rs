//! A row of the table of settings, and the macro that defines rows.

/// Settings that belong together.
pub(crate) struct Group {
    /// Their purpose, line by line.
    pub(crate) lines: &'static [&'static str],
    /// Their section of the settings file; empty for the top.
    pub(crate) section: &'static str,
    /// The settings.
    pub(crate) rows: &'static [Row],
}

/// A setting.
pub(crate) struct Row {
    /// Section of the settings file; empty for the top.
    pub(crate) section: &'static str,
    /// Key in that section. If there is an option, also the option's id for `clap`.
    pub(crate) key: &'static str,
    /// Long option without dashes, and variable; `None` for a setting of the file alone.
    pub(crate) given_by: Option<(&'static str, &'static str)>,
    /// Its meaning, line by line. `{}` stands for the default.
    pub(crate) lines: &'static [&'static str],
    /// The default, if it is a value; otherwise the lines describe it.
    pub(crate) default: Option<fn() -> String>,
    /// Kind of its values.
    pub(crate) kind: &'static str,
    /// Whether the files that it names are reloaded when they change, and at SIGHUP.
    pub(crate) reread: bool,
}

impl Row {
    /// Its name in messages: `listen`, or `acme.dns` in a section.
    pub(crate) fn name(&self) -> String {
        match self.section {
            "" => self.key.to_owned(),
            section => format!("{section}.{}", self.key),
        }
    }

    /// Its meaning and its default, as two texts.
    pub(crate) fn meaning_and_default(&self) -> (String, String) {
        let text = help(self.lines, self.default);
        match text
            .split_once(" [default: ")
            .and_then(|(before, rest)| Some((before, rest.split_once(']')?)))
        {
            Some((before, (default, after))) => (format!("{before}{after}"), default.to_owned()),
            None => (text, "none".to_owned()),
        }
    }
}

/// The text of lines of documentation: as `clap` forms it from a doc comment, with the default in it.
pub(crate) fn help(lines: &[&str], default: Option<fn() -> String>) -> String {
    let lines: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
    let text = lines.join(" ");
    let text = text.strip_suffix('.').unwrap_or(&text);
    match default {
        Some(default) => text.replace("{}", &default()),
        None => text.to_owned(),
    }
}

/// A group of settings: a struct with a field for each row, which is `None` until it is set.
///
/// `key: Type = default, "option", "OUTLAST_VARIABLE", reread;` is a full row. The default may be left out, and so
/// may `reread`, which says that the files it names are watched. A group that begins with `file` belongs to the
/// settings file alone, and its rows have neither option nor variable. If there is a default, a method with the key's
/// name returns the value.
macro_rules! settings {
    (@default) => { None };
    (@default $default:expr) => { Some((|| ToString::to_string(&$default)) as fn() -> String) };
    (@reread) => { false };
    (@reread reread) => { true };
    (@methods $name:ident $section:literal $($key:ident: $type:ty $(= $default:expr)?;)+) => {
        impl $name {
            /// The values set here, completed by those of `other`.
            pub(crate) fn or(self, other: Self) -> Self {
                Self { $($key: self.$key.or(other.$key),)+ }
            }

            /// The group as the settings file of this data folder sets it.
            pub(crate) fn below(self, folder: &std::path::Path) -> Self {
                Self { $($key: self.$key.map(|value| $crate::settings::value::Value::below(value, folder)),)+ }
            }

            /// Reads the group from the text of a settings file, and ignores the rest.
            pub(super) fn read(text: &str) -> Result<Self, toml::de::Error> {
                #[derive(serde::Deserialize)]
                struct Whole {
                    #[serde(rename = $section, default)]
                    group: $name,
                }
                match $section {
                    "" => toml::from_str(text),
                    _ => toml::from_str::<Whole>(text).map(|whole| whole.group),
                }
            }

            /// The values, in the order of the rows.
            pub(super) fn shown(&self) -> Vec<Option<String>> {
                vec![$(self.$key.as_ref().map($crate::settings::value::Value::shown)),+]
            }

            $($(
                pub(crate) fn $key(&self) -> $type {
                    self.$key.clone().unwrap_or_else(|| $default)
                }
            )?)+
        }
    };
    (
        $(#[doc = $about:literal])+
        file $name:ident in $section:literal {
            $($(#[doc = $line:literal])+ $key:ident: $type:ty $(= $default:expr)?;)+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Default, serde::Deserialize)]
        #[serde(default, expecting = "a section")]
        pub(crate) struct $name {
            $(pub(crate) $key: Option<$type>,)+
        }

        impl $name {
            /// The rows.
            pub(super) const GROUP: Group = Group { lines: &[$($about),+], section: $section, rows: &[$(Row {
                section: $section,
                key: stringify!($key),
                given_by: None,
                lines: &[$($line),+],
                default: settings!(@default $($default)?),
                kind: <$type as $crate::settings::value::Value>::KIND,
                reread: false,
            }),+] };
        }

        settings!(@methods $name $section $($key: $type $(= $default)?;)+);
    };
    (
        $(#[doc = $about:literal])+
        $name:ident in $section:literal {
            $(
                $(#[doc = $line:literal])+
                $(#[arg($($arg:tt)+)])?
                $key:ident: $type:ty $(= $default:expr)?, $option:literal, $variable:literal $(, $reread:ident)?;
            )+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(clap::Args, Clone, Default, serde::Deserialize)]
        #[serde(default, expecting = "a section")]
        pub(crate) struct $name {
            $(
                #[arg(long = $option, env = $variable, help = help(&[$($line),+], settings!(@default $($default)?)))]
                $(#[arg($($arg)+)])?
                pub(crate) $key: Option<$type>,
            )+
        }

        impl $name {
            /// The rows.
            pub(super) const GROUP: Group = Group { lines: &[$($about),+], section: $section, rows: &[$(Row {
                section: $section,
                key: stringify!($key),
                given_by: Some(($option, $variable)),
                lines: &[$($line),+],
                default: settings!(@default $($default)?),
                kind: <$type as $crate::settings::value::Value>::KIND,
                reread: settings!(@reread $($reread)?),
            }),+] };
        }

        settings!(@methods $name $section $($key: $type $(= $default)?;)+);
    };
}
