//! Parses a document into a policy; its errors say what is wrong and where.
//!
//! Source: "Grammar of the IAM JSON policy language".

use std::collections::{BTreeMap, BTreeSet};

use super::condition::{Condition, Operator};
use super::json::Node;
use super::pattern::{Syntax, Template, is_key};
use super::principal::Principal;
use super::shown::short;
use super::{
    Effect, Kind, MAX_DOCUMENT_BYTES, MAX_STATEMENTS, Malformed, Policy, Selection, Statement,
};

type Object = BTreeMap<String, Node>;

/// Parses a document.
pub(super) fn document(text: &str, kind: Kind) -> Result<Policy, Malformed> {
    read_document(text, kind).map_err(|problem| {
        let Problem { place, what } = problem;
        Malformed(if place.is_empty() { what } else { format!("{place}: {what}") })
    })
}

/// What is wrong, and where. The path is built on the way out.
struct Problem {
    place: String,
    what: String,
}

impl Problem {
    fn new(what: impl Into<String>) -> Self {
        Self { place: String::new(), what: what.into() }
    }

    fn within(self, outer: &str) -> Self {
        let place = match self.place.as_str() {
            "" => outer.to_owned(),
            inner if inner.starts_with('[') => format!("{outer}{inner}"),
            inner => format!("{outer}.{inner}"),
        };
        Self { place, ..self }
    }
}

fn read_document(text: &str, kind: Kind) -> Result<Policy, Problem> {
    if text.len() > MAX_DOCUMENT_BYTES {
        return Err(Problem::new(format!("is longer than {MAX_DOCUMENT_BYTES} bytes")));
    }
    let node = Node::parse(text)
        .map_err(|error| Problem::new(format!("The policy is not valid JSON: {error}")))?;
    let mut document = object(node)?;
    known(&document, &["Version", "Id", "Statement"])?;
    let variables = match take(&mut document, "Version", string)?.as_deref() {
        None | Some("2008-10-17") => false,
        Some("2012-10-17") => true,
        Some(_) => {
            return Err(Problem::new("must be 2012-10-17 or 2008-10-17").within("Version"));
        }
    };
    if take(&mut document, "Id", string)?.is_some() && kind == Kind::Identity {
        // Grammar notes: "It must not be included in identity-based policies."
        return Err(Problem::new("is not allowed in an identity-based policy").within("Id"));
    }
    let statements =
        take(&mut document, "Statement", |node| read_statements(node, kind, variables))?;
    let statements = statements.ok_or_else(|| Problem::new("Statement is required"))?;
    Ok(Policy { kind, statements })
}

fn read_statements(node: Node, kind: Kind, variables: bool) -> Result<Vec<Statement>, Problem> {
    let mut sids = BTreeSet::new();
    let Node::List(list) = node else {
        return Ok(vec![read_statement(object(node)?, kind, variables, &mut sids)?]);
    };
    if list.is_empty() {
        return Err(Problem::new("has no statements"));
    }
    if list.len() > MAX_STATEMENTS {
        return Err(Problem::new(format!("has more than {MAX_STATEMENTS} statements")));
    }
    let read = |(index, node)| {
        object(node)
            .and_then(|statement| read_statement(statement, kind, variables, &mut sids))
            .map_err(|problem| problem.within(&format!("[{index}]")))
    };
    list.into_iter().enumerate().map(read).collect()
}

fn read_statement(
    mut statement: Object,
    kind: Kind,
    variables: bool,
    sids: &mut BTreeSet<String>,
) -> Result<Statement, Problem> {
    if statement.is_empty() {
        return Err(Problem::new("is empty"));
    }
    known(&statement, ELEMENTS)?;
    if let Some(sid) = take(&mut statement, "Sid", string)? {
        check_sid(sid, kind, sids).map_err(|problem| problem.within("Sid"))?;
    }
    let effect = match take(&mut statement, "Effect", string)?.as_deref() {
        Some("Allow") => Effect::Allow,
        Some("Deny") => Effect::Deny,
        Some(_) => return Err(Problem::new("must be Allow or Deny").within("Effect")),
        None => return Err(Problem::new("Effect is required")),
    };
    let principals = select(&mut statement, "Principal", "NotPrincipal", read_principals)?;
    let actions =
        select(&mut statement, "Action", "NotAction", |node| each(node, text_of, read_action))?;
    let resources = select(&mut statement, "Resource", "NotResource", |node| {
        each(node, text_of, |text| read_resource(text, kind, variables))
    })?;
    check_elements(kind, effect, principals.as_ref(), resources.is_some())?;
    // AWS stores such a statement of a key policy, and it has no effect.
    let resources = match (kind, resources) {
        (Kind::Key, None) => Some(Selection { negated: false, items: Vec::new() }),
        (_, resources) => resources,
    };
    let conditions = take(&mut statement, "Condition", |node| read_conditions(node, variables))?;
    Ok(Statement {
        effect,
        principals,
        actions: actions.ok_or_else(|| Problem::new("Action or NotAction is required"))?,
        resources,
        conditions: conditions.unwrap_or_default(),
    })
}

/// Sids must be unique; IAM allows letters and digits only, other services allow more.
fn check_sid(sid: String, kind: Kind, sids: &mut BTreeSet<String>) -> Result<(), Problem> {
    if kind == Kind::Identity && !sid.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(Problem::new(format!(
            "{} has characters other than letters and digits",
            short(&sid)
        )));
    }
    // AWS's consoles write empty ones.
    if sid.is_empty() {
        return Ok(());
    }
    if sids.contains(&sid) {
        return Err(Problem::new(format!("{} occurs twice", short(&sid))));
    }
    sids.insert(sid);
    Ok(())
}

/// Checks the elements that each kind of document must and must not have.
fn check_elements(
    kind: Kind,
    effect: Effect,
    principals: Option<&Selection<Principal>>,
    resources: bool,
) -> Result<(), Problem> {
    let problem = match (kind, principals) {
        (Kind::Identity, Some(_)) => "an identity-based policy has no Principal or NotPrincipal",
        (Kind::Key, None) => "Principal is required in a key policy",
        (Kind::Trust, None) => "Principal is required in a role trust policy",
        (Kind::Authority | Kind::Secret, None) => {
            "Principal is required in a resource-based policy"
        }
        // "You cannot use it in an IAM identity-based policy nor in an IAM role trust policy."
        (Kind::Trust, Some(listed)) if listed.negated => "a role trust policy has no NotPrincipal",
        // "NotPrincipal must be used with "Effect":"Deny"."
        (_, Some(listed)) if listed.negated && effect == Effect::Allow => {
            "NotPrincipal must be used with Effect Deny"
        }
        _ if kind == Kind::Trust && resources => "a role trust policy has no Resource",
        _ if !resources && matches!(kind, Kind::Identity | Kind::Authority | Kind::Secret) => {
            "Resource is required"
        }
        _ => return Ok(()),
    };
    Err(Problem::new(problem))
}

fn read_principals(node: Node) -> Result<Vec<Principal>, Problem> {
    if let Node::Text(text) = &node {
        let everyone = (text == "*").then(|| vec![Principal::Everyone]);
        return everyone
            .ok_or_else(|| Problem::new("must be \"*\" or an object such as {\"AWS\": ...}"));
    }
    let entries = object(node)?;
    if entries.is_empty() {
        return Err(Problem::new("is empty"));
    }
    known(&entries, &["AWS", "Service", "Federated", "CanonicalUser"])?;
    let mut principals = Vec::new();
    for (name, node) in entries {
        let read = each(node, text_of, |text| match name.as_str() {
            "AWS" => Principal::parse(text)
                .map_err(|what| Problem::new(format!("{} {what}", short(text)))),
            _ if text.is_empty() => Err(Problem::new("is empty")),
            "Service" => Ok(Principal::Service(text.to_owned())),
            _ => Ok(Principal::Elsewhere),
        });
        principals.extend(read.map_err(|problem| problem.within(&name))?);
    }
    Ok(principals)
}

/// Parses `*`, or a service and an action, which may have wildcards.
fn read_action(text: &str) -> Result<Template, Problem> {
    let word = |text: &str, more: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
    };
    let good = text == "*"
        || text == "*:*"
        || text
            .split_once(':')
            .is_some_and(|(service, name)| word(service, "-") && word(name, "*?-_"));
    if !good {
        let what = format!("{} is not of the form service:action", short(text));
        return Err(Problem::new(what));
    }
    let syntax = Syntax { wildcards: true, variables: false, ignore_case: true };
    Template::parse(text, syntax).map_err(Problem::new)
}

fn read_resource(text: &str, kind: Kind, variables: bool) -> Result<Template, Problem> {
    let syntax = Syntax { wildcards: true, variables, ignore_case: false };
    let template = Template::parse(text, syntax).map_err(Problem::new)?;
    // Ends with a wildcard that covers the other components, as in arn:aws:s3*.
    let shortened = text.starts_with("arn:") && template.has_many();
    let (good, expected) = match kind {
        Kind::Key => (template.is_arn(Some("kms")), "the ARN of a KMS key"),
        Kind::Authority => (template.is_arn(Some("acm-pca")), "the ARN of a certificate authority"),
        Kind::Secret => (template.is_arn(Some("secretsmanager")), "the ARN of a secret"),
        Kind::Identity | Kind::Trust => (template.is_arn(None) || shortened, "an ARN"),
    };
    if text != "*" && !good {
        let what = format!("{} is neither * nor {expected}", short(text));
        return Err(Problem::new(what));
    }
    Ok(template)
}

fn read_conditions(node: Node, variables: bool) -> Result<Vec<Condition>, Problem> {
    let mut conditions = Vec::new();
    for (name, node) in object(node)? {
        let operator = Operator::find(&name)
            .ok_or_else(|| Problem::new(format!("unknown operator {}", short(&name))))?;
        let keys = object(node).map_err(|problem| problem.within(&name))?;
        if keys.is_empty() {
            return Err(Problem::new("is empty").within(&name));
        }
        for (key, node) in keys {
            if !is_key(&key) {
                let what = format!("{} is not a condition key such as aws:SourceIp", short(&key));
                return Err(Problem::new(what).within(&name));
            }
            let wanted =
                each(node, scalar_of, |text| operator.read(text, variables).map_err(Problem::new))
                    .map_err(|problem| problem.within(&short(&key)).within(&name))?;
            conditions.push(Condition { key: key.to_ascii_lowercase(), operator, wanted });
        }
    }
    Ok(conditions)
}

/// Parses an element or its `Not` form, which exclude each other.
fn select<T>(
    statement: &mut Object,
    plain: &str,
    negated: &str,
    read: impl Fn(Node) -> Result<Vec<T>, Problem>,
) -> Result<Option<Selection<T>>, Problem> {
    if statement.contains_key(plain) && statement.contains_key(negated) {
        return Err(Problem::new(format!("{plain} and {negated} exclude each other")));
    }
    if let Some(items) = take(statement, negated, &read)? {
        return Ok(Some(Selection { negated: true, items }));
    }
    Ok(take(statement, plain, &read)?.map(|items| Selection { negated: false, items }))
}

/// Parses an element, if it is there.
fn take<T>(
    from: &mut Object,
    name: &str,
    read: impl FnOnce(Node) -> Result<T, Problem>,
) -> Result<Option<T>, Problem> {
    from.remove(name).map(read).transpose().map_err(|problem| problem.within(name))
}

/// Parses a value, or a list of values that must not be empty.
fn each<T>(
    node: Node,
    value_of: fn(&Node) -> Option<&str>,
    read: impl Fn(&str) -> Result<T, Problem>,
) -> Result<Vec<T>, Problem> {
    let one = |node: &Node| {
        value_of(node)
            .ok_or_else(|| Problem::new("must be a string or a list of strings"))
            .and_then(&read)
    };
    let Node::List(list) = node else { return Ok(vec![one(&node)?]) };
    if list.is_empty() {
        return Err(Problem::new("is empty"));
    }
    let item = |(index, node)| one(node).map_err(|problem| problem.within(&format!("[{index}]")));
    list.iter().enumerate().map(item).collect()
}

fn text_of(node: &Node) -> Option<&str> {
    if let Node::Text(text) = node { Some(text) } else { None }
}

/// Condition values can also be numbers and booleans.
fn scalar_of(node: &Node) -> Option<&str> {
    if let Node::Text(text) | Node::Scalar(text) = node { Some(text) } else { None }
}

fn string(node: Node) -> Result<String, Problem> {
    if let Node::Text(text) = node { Ok(text) } else { Err(Problem::new("must be a string")) }
}

fn object(node: Node) -> Result<Object, Problem> {
    if let Node::Object(object) = node {
        Ok(object)
    } else {
        Err(Problem::new("must be an object"))
    }
}

fn known(object: &Object, names: &[&str]) -> Result<(), Problem> {
    match object.keys().find(|key| !names.contains(&key.as_str())) {
        Some(other) => Err(Problem::new(format!("unknown element {}", short(other)))),
        None => Ok(()),
    }
}

const ELEMENTS: &[&str] = &[
    "Sid",
    "Effect",
    "Principal",
    "NotPrincipal",
    "Action",
    "NotAction",
    "Resource",
    "NotResource",
    "Condition",
];

#[cfg(test)]
mod tests {
    use super::*;

    const ACCOUNT: &str = "111122223333";
    const ALICE: &str = "arn:aws:iam::111122223333:user/Alice";
    const ROLE: &str = "arn:aws:iam::111122223333:role/ops/App";

    fn malformed(text: &str, kind: Kind) -> String {
        match Policy::parse(text, kind) {
            Ok(_) => panic!("accepted: {text}"),
            Err(malformed) => malformed.to_string(),
        }
    }

    #[test]
    fn malformed_documents() {
        use Kind::{Identity, Key, Trust};
        let good = r#""Effect":"Allow","Action":"kms:*","Resource":"*""#;
        let whole = |statement: &str| {
            format!(r#"{{"Version":"2012-10-17","Statement":[{{{statement}}}]}}"#)
        };
        let condition = |text: &str| whole(&format!(r#"{good},"Condition":{text}"#));
        #[rustfmt::skip]
        let table = [
            (String::new(), Identity, "The policy is not valid JSON: EOF while parsing"),
            ("[]".into(), Identity, "must be an object"),
            ("{}".into(), Identity, "Statement is required"),
            (r#"{"Statement":[]}"#.into(), Identity, "Statement: has no statements"),
            (r#"{"Statement":[{}]}"#.into(), Identity, "Statement[0]: is empty"),
            (r#"{"Statement":"x"}"#.into(), Identity, "Statement: must be an object"),
            (r#"{"Version":"2020-01-01","Statement":{}}"#.into(), Identity, "Version: must be 2012-10-17"),
            (r#"{"Version":2012,"Statement":{}}"#.into(), Identity, "Version: must be a string"),
            (format!(r#"{{"Id":"x","Statement":{{{good}}}}}"#), Identity, "Id: is not allowed"),
            (r#"{"Statements":[]}"#.into(), Identity, r#"unknown element "Statements""#),
            (whole(r#""Effect":"Allow","Effect":"Deny""#), Identity, r#""Effect" occurs twice"#),
            (whole(r#""effect":"Allow""#), Identity, r#"Statement[0]: unknown element "effect""#),
            (whole(r#""Action":"*","Resource":"*""#), Identity, "Statement[0]: Effect is required"),
            (whole(r#""Effect":"allow""#), Identity, "Statement[0].Effect: must be Allow or Deny"),
            (whole(r#""Effect":"Allow","Resource":"*""#), Identity, "Action or NotAction is required"),
            (whole(r#""Effect":"Allow","Action":"kms:*""#), Identity, "Resource is required"),
            (whole(&format!(r#"{good},"NotAction":"*""#)), Identity, "Action and NotAction exclude each other"),
            (whole(&format!(r#"{good},"NotResource":"*""#)), Identity, "Resource and NotResource exclude"),
            (whole(&format!(r#"{good},"Principal":"*""#)), Identity, "has no Principal"),
            (whole(&format!(r#"{good},"Sid":"a b""#)), Identity, "Statement[0].Sid: \"a b\" has characters other"),
            (format!(r#"{{"Statement":[{{"Sid":"a",{good}}},{{"Sid":"a",{good}}}]}}"#), Identity, "Statement[1].Sid: \"a\" occurs twice"),
            (whole(r#""Effect":"Allow","Action":[],"Resource":"*""#), Identity, "Statement[0].Action: is empty"),
            (whole(r#""Effect":"Allow","Action":["kms:*",["x"]],"Resource":"*""#), Identity, "Statement[0].Action[1]: must be a string"),
            (whole(r#""Effect":"Allow","Action":"Decrypt","Resource":"*""#), Identity, r#"Action: "Decrypt" is not of the form service:action"#),
            (whole(r#""Effect":"Allow","Action":"k*:Decrypt","Resource":"*""#), Identity, "is not of the form"),
            (whole(r#""Effect":"Allow","Action":"*","Resource":"bucket""#), Identity, "Resource: \"bucket\" is neither * nor an ARN"),
            (whole(r#""Effect":"Allow","Action":"*","Resource":"arn:aws:s3:::${aws:username""#), Identity, "a variable is not closed"),
            (whole(r#""Effect":"Allow","Action":"*","Resource":"arn:aws:s3:::${user}""#), Identity, "a variable must name a condition key"),
            (whole(good), Key, "Principal is required in a key policy"),
            (whole(&format!(r#"{good},"NotPrincipal":{{"AWS":"{ACCOUNT}"}}"#)), Key, "NotPrincipal must be used with Effect Deny"),
            (whole(r#""Effect":"Allow","Action":"*","Principal":"*","Resource":"arn:aws:s3:::b""#), Key, "neither * nor the ARN of a KMS key"),
            (whole(&format!(r#"{good},"Principal":"{ALICE}""#)), Key, "Principal: must be \"*\" or an object"),
            (whole(&format!(r#"{good},"Principal":{{}}"#)), Key, "Statement[0].Principal: is empty"),
            (whole(&format!(r#"{good},"Principal":{{"aws":"*"}}"#)), Key, r#"unknown element "aws""#),
            (whole(&format!(r#"{good},"Principal":{{"AWS":["{ALICE}","{ROLE}*"]}}"#)), Key, "Principal.AWS[1]: \"arn:aws:iam::111122223333:role/ops/App*\" has a wildcard"),
            (whole(&format!(r#"{good},"Principal":{{"AWS":"arn:aws:iam::1:root"}}"#)), Key, "is not an account id or the ARN"),
            (whole(&format!(r#"{good},"Principal":{{"AWS":"arn:aws:iam::{ACCOUNT}:group/x"}}"#)), Key, "is not an account id or the ARN"),
            (whole(&format!(r#"{good},"Principal":"*""#)), Trust, "a role trust policy has no Resource"),
            (whole(r#""Effect":"Deny","Action":"*","NotPrincipal":"*""#), Trust, "has no NotPrincipal"),
            (whole(r#""Effect":"Allow","Action":"sts:*""#), Trust, "Principal is required in a role trust policy"),
            (condition("[]"), Identity, "Statement[0].Condition: must be an object"),
            (condition(r#"{"StringEqual":{"a:b":"c"}}"#), Identity, r#"Condition: unknown operator "StringEqual""#),
            (condition(r#"{"NullIfExists":{"a:b":"true"}}"#), Identity, "unknown operator"),
            (condition(r#"{"ForSome:StringLike":{"a:b":"c"}}"#), Identity, "unknown operator"),
            (condition(r#"{"Bool":{}}"#), Identity, "Condition.Bool: is empty"),
            (condition(r#"{"Bool":{"b":"true"}}"#), Identity, "\"b\" is not a condition key"),
            (condition(r#"{"Bool":{"a:b":[]}}"#), Identity, r#"Condition.Bool."a:b": is empty"#),
            (condition(r#"{"Bool":{"a:b":["true","yes"]}}"#), Identity, r#"Bool."a:b"[1]: is neither true nor false"#),
            (condition(r#"{"Bool":{"a:b":null}}"#), Identity, "must be a string"),
            (condition(r#"{"NumericEquals":{"a:b":"inf"}}"#), Identity, "is not a number"),
            (condition(r#"{"DateLessThan":{"a:b":"tomorrow"}}"#), Identity, "is not a date"),
            (condition(r#"{"BinaryEquals":{"a:b":"?"}}"#), Identity, "is not base64"),
            (condition(r#"{"IpAddress":{"a:b":"10.0.0.0/33"}}"#), Identity, "is not an address or range"),
            (condition(r#"{"ArnLike":{"a:b":"*"}}"#), Identity, "is not an ARN of six parts"),
            (format!("{}{}", "[".repeat(200), "]".repeat(200)), Identity, "recursion limit"),
            (" ".repeat(MAX_DOCUMENT_BYTES + 1), Identity, "is longer than 32768 bytes"),
            (format!(r#"{{"Statement":[{}]}}"#, vec!["{}"; 1001].join(",")), Identity, "more than 1000 statements"),
        ];
        for (text, kind, expected) in table {
            let message = malformed(&text, kind);
            assert!(message.contains(expected), "{text}: {message}");
        }
        let long = "x".repeat(20_000);
        for text in [
            format!(r#"{{"{long}":1}}"#),
            format!(r#"{{"{long}":1,"{long}":1}}"#),
            whole(&format!(r#""Effect":"Allow","Action":"{long}""#)),
            condition(&format!(r#"{{"Bool":{{"a:{long}":"{long}"}}}}"#)),
        ] {
            assert!(malformed(&text, Identity).matches('x').count() <= 64);
        }
    }
}
