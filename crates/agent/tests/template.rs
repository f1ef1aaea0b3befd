//! Files from secrets and templates.

use std::collections::HashMap;
use std::sync::Arc;

use outlast_agent::interface::Ask;
use outlast_agent::template::{Content, MAX_SECRETS, Round, check, content, render};
use zeroize::Zeroizing;

fn ask(id: &str) -> Ask {
    Ask { secret_id: id.into(), ..Ask::default() }
}

fn text(value: &str) -> Content {
    Content::Text(Arc::new(Zeroizing::new(value.into())))
}

fn known() -> HashMap<Ask, Content> {
    let binary = Content::Binary(Arc::new(Zeroizing::new(vec![0, 255])));
    let previous = Ask { version_stage: Some("AWSPREVIOUS".into()), ..ask("plain") };
    HashMap::from([
        (ask("plain"), text("hunter2")),
        (previous, text("hunter1")),
        (ask("json"), text(r#"{"user":"app","password":"p<&\"w","ports":[1,2]}"#)),
        (ask("binary"), binary),
    ])
}

fn done(template: &str) -> Result<String, String> {
    match render("t", template, &known()) {
        Ok(Round::Done(bytes)) => Ok(String::from_utf8(bytes.to_vec()).unwrap()),
        Ok(Round::Needs(needs)) => Err(format!("needs {needs:?}")),
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn templates_name_secrets_and_their_members() {
    for (template, expected) in [
        ("{{ secret('plain') }}", "hunter2"),
        ("{{ secret('plain', version_stage='AWSPREVIOUS') }}", "hunter1"),
        ("{% set db = secret('json') | from_json %}{{ db.user }}:{{ db.password }}", "app:p<&\"w"),
        ("{% for port in (secret('json') | from_json).ports %}{{ port }},{% endfor %}", "1,2,"),
        ("{{ secret('binary') | base64 }} {{ secret('plain') | base64 }}", "AP8= aHVudGVyMg=="),
        ("{{ secret('plain') | upper }}\n", "HUNTER2\n"),
    ] {
        assert_eq!(done(template).as_deref(), Ok(expected), "{template}");
    }
}

#[test]
fn secrets_that_are_not_there_are_asked_for() {
    let template = "{{ secret('a') }}{{ secret('b', version_id='v') }}";
    let mut known = HashMap::new();
    let Ok(Round::Needs(needs)) = render("t", template, &known) else { panic!("it is done") };
    assert_eq!(needs, [ask("a")]);
    known.insert(ask("a"), text("1"));
    let Ok(Round::Needs(needs)) = render("t", template, &known) else { panic!("it is done") };
    let second = Ask { version_id: Some("v".into()), ..ask("b") };
    assert_eq!(needs.first(), Some(&second));
    known.insert(second, text("2"));
    let Ok(Round::Done(bytes)) = render("t", template, &known) else { panic!("it is not done") };
    assert_eq!(bytes.as_slice(), b"12");
}

#[test]
fn errors_say_where_and_never_what() {
    for (template, part) in [
        ("a\n{{ (secret('json') | from_json).passwort }}", "line 2"),
        ("{{ secret('plain') | from_json }}", "the secret is not JSON"),
        ("{{ secret('plain').x.y }}", "undefined"),
        ("{{ secret('plain', stage='x') }}", "line 1"),
        ("{{ secret('plain') + 1 }}", "line 1"),
        ("{{ other('plain') }}", "function"),
    ] {
        let error = done(template).unwrap_err();
        assert!(error.contains(part), "{template}: {error}");
        assert!(!error.contains("hunter") && !error.contains("p<"), "{template}: {error}");
    }
    assert!(check("t", "{{ secret('a') ").unwrap_err().to_string().contains("syntax error"));
    assert!(check("t", "{{ secret('a') }}").is_ok());
}

#[test]
fn the_number_of_secrets_is_limited() {
    let mut known = HashMap::new();
    let mut rounds = 0;
    let error = loop {
        match render("t", "{% for i in range(1000) %}{{ secret('s' ~ i) }}{% endfor %}", &known) {
            Ok(Round::Needs(needs)) => known.extend(needs.into_iter().map(|ask| (ask, text("x")))),
            Ok(Round::Done(_)) => panic!("it is done"),
            Err(error) => break error.to_string(),
        }
        rounds += 1;
    };
    assert_eq!(rounds, MAX_SECRETS);
    assert!(error.contains("more than"), "{error}");
}

#[test]
fn the_value_is_text_or_bytes() {
    let bytes = |body: &str| content(body.as_bytes()).map(|content| content.bytes().to_vec());
    assert_eq!(bytes(r#"{"SecretString":"a\nb"}"#).unwrap(), b"a\nb");
    assert_eq!(bytes(r#"{"SecretBinary":"AP8="}"#).unwrap(), [0, 255]);
    assert!(bytes(r#"{"SecretBinary":"?"}"#).is_err());
    assert!(bytes(r#"{"ARN":"x"}"#).is_err());
}
