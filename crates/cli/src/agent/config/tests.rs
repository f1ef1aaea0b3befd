//! The keys of the configuration, and values that are refused.

use super::*;

/// Names of a table's keys, from the error about an unknown one.
fn keys(text: &str) -> Vec<String> {
    let error = toml::from_str::<File>(text).err().unwrap().to_string();
    let list = error.split("expected one of ").nth(1).unwrap();
    list.lines().next().unwrap().split(", ").map(|name| name.trim_matches('`').to_owned()).collect()
}

/// The guide documents every key in a row of its table.
#[test]
fn every_key_is_in_the_guide() {
    let guide = include_str!("../../../../../docs/guide/agent.md");
    for (table, text) in [
        ("", "unknown = 1"),
        ("roles_anywhere.", "[roles_anywhere]\nunknown = 1"),
        ("caller.", "[[caller]]\nunknown = 1"),
        ("file.", "[[file]]\nunknown = 1"),
    ] {
        let keys = keys(text);
        assert!(keys.len() >= 5, "{keys:?}");
        for key in
            keys.iter().filter(|key| !["roles_anywhere", "caller", "file"].contains(&key.as_str()))
        {
            assert!(guide.contains(&format!("| `{table}{key}` |")), "{table}{key}");
        }
    }
}

#[test]
fn numbers_may_be_text_and_have_aws_limits() {
    let read = |text: &str| toml::from_str::<File>(text).map_err(|error| error.to_string());
    assert!(read("http_port = \"65535\"\nttl_seconds = 0\nlog_level = 'DEBUG'").is_ok());
    for (given, expected) in [
        (None, Some(300)),
        (Some(Number::Number(0)), Some(0)),
        (Some(Number::Text("3600".into())), Some(3600)),
        (Some(Number::Number(3601)), None),
        (Some(Number::Text("-1".into())), None),
        (Some(Number::Text("soon".into())), None),
    ] {
        assert_eq!(number(given.as_ref(), "ttl_seconds", 0..=3600, 300).ok(), expected);
    }
}

#[test]
fn other_machines_are_not_served() {
    let at =
        |text: &str| tcp(true, Some(text), None).map_err(|failure| failure.message().to_owned());
    assert_eq!(at("127.0.0.1"), Ok(Some("127.0.0.1:2773".parse().unwrap())));
    assert_eq!(at("::1"), Ok(Some("[::1]:2773".parse().unwrap())));
    assert!(at("0.0.0.0").unwrap_err().contains("other machines"));
    assert!(at("localhost").unwrap_err().contains("not an address"));
    assert!(tcp(true, None, Some(&Number::Number(1023))).is_err());
}

#[test]
fn what_describes_everybody_or_nothing_is_refused() {
    let rule = |text: &str| {
        let file: File = toml::from_str(text).unwrap();
        let caller = file.caller.into_iter().next().unwrap();
        Caller::rule((0, caller)).map_err(|failure| failure.message().to_owned())
    };
    assert!(rule("[[caller]]\nuser = 7\nsecrets = ['a']").is_ok());
    assert!(rule("[[caller]]\nuser = 7").unwrap_err().contains("no secret"));
    assert!(rule("[[caller]]\nsecrets = ['*']").unwrap_err().contains("every program"));
    let text = "[[caller]]\nexecutable = '/usr/bin/app'\nsecrets = ['a']";
    assert!(rule(text).unwrap_err().contains("names /usr/bin/app and no user"));
    for more in ["user = 7", "group = 7"] {
        assert!(rule(&format!("{text}\n{more}")).is_ok(), "{more}");
    }
    assert!(rule("[[caller]]\nuser = 'nobody-of-this-name'\nsecrets = ['a']").is_err());
    assert_eq!(rule("[[caller]]\nuser = 'root'\nsecrets = ['a']").unwrap().uid, Some(0));
}

#[test]
fn a_file_has_one_source_and_one_way_to_tell_of_changes() {
    let file = |rest: &str| {
        let file: File = toml::from_str(&format!("[[file]]\npath = 'x'\n{rest}")).unwrap();
        let first = file.file.into_iter().next().unwrap();
        first
            .settings(Path::new("/base"), 300, Duration::ZERO)
            .map_err(|failure| failure.message().to_owned())
    };
    let good = file("secret = 'a'\nmode = '0440'\nsignal = 'SIGHUP'\npid_file = 'p'").unwrap();
    assert_eq!((good.mode, good.path.to_str()), (0o440, Some("/base/x")));
    assert!(file("").is_err());
    assert!(file("secret = 'a'\ntemplate = 'b'").is_err());
    assert!(file("secret = 'a'\nmode = '999'").is_err());
    assert!(file("secret = 'a'\nsignal = 'KILL'\npid_file = 'p'").is_err());
    assert!(file("secret = 'a'\nsignal = 'HUP'").is_err());
    assert!(file("secret = 'a'\nsignal = 'HUP'\npid_file = 'p'\ncommand = ['true']").is_err());
}
