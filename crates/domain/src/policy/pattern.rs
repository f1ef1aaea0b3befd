//! Text with wildcards and policy variables, and matching.
//!
//! Sources: "IAM JSON policy elements: Resource" (wildcards), "IAM policy elements: Variables and tags".

use std::borrow::Cow;

use super::steps::{Asked, Steps};
use crate::arn::is_account_id;

/// How to parse a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Syntax {
    /// Whether `*` stands for any characters, and `?` for any single one.
    pub wildcards: bool,
    /// Whether `${key}` stands for the value of a condition key: in documents of version 2012-10-17.
    pub variables: bool,
    /// Whether to ignore case.
    pub ignore_case: bool,
}

/// A parsed text.
#[derive(Debug, Clone)]
pub(super) struct Template {
    tokens: Vec<Token>,
    ignore_case: bool,
    variables: bool,
}

#[derive(Debug, Clone)]
enum Token {
    Char(char),
    One,
    Many,
    Variable(Box<Variable>),
}

#[derive(Debug, Clone)]
struct Variable {
    /// Condition key in lower case.
    key: String,
    default: Option<String>,
}

impl Template {
    /// Parses a text.
    pub fn parse(text: &str, syntax: Syntax) -> Result<Self, &'static str> {
        let mut tokens = Vec::new();
        let mut variables = false;
        let mut rest = text;
        while let Some(next) = rest.chars().next() {
            if let Some(inner) = rest.strip_prefix("${").filter(|_| syntax.variables) {
                let (inner, after) = inner.split_once('}').ok_or("a variable is not closed")?;
                let token = read_variable(inner)?;
                variables |= matches!(token, Token::Variable(_));
                tokens.push(token);
                rest = after;
                continue;
            }
            tokens.push(match next {
                '*' if syntax.wildcards => Token::Many,
                '?' if syntax.wildcards => Token::One,
                other => Token::Char(other),
            });
            rest = &rest[next.len_utf8()..];
        }
        Ok(Self { tokens, ignore_case: syntax.ignore_case, variables })
    }

    /// Whether it has variables, so that its meaning depends on the request.
    pub fn has_variables(&self) -> bool {
        self.variables
    }

    /// Whether it matches the whole of `text`; `None` if a variable has no value.
    pub fn matches(&self, text: &str, asked: Asked<'_>) -> Option<bool> {
        Some(glob(&self.resolve(asked)?, text, self.ignore_case, asked.steps))
    }

    /// The same for ARNs, whose six components are compared one by one: a wildcard does not cover a colon, except in
    /// the last.
    pub fn matches_arn(&self, arn: &str, asked: Asked<'_>) -> Option<bool> {
        let tokens = self.resolve(asked)?;
        asked.steps.take(tokens.len());
        let mut patterns = parts(&tokens);
        let mut texts = arn.splitn(6, ':');
        for _ in 0..6 {
            let (Some(pattern), Some(text)) = (patterns.next(), texts.next()) else {
                return Some(false);
            };
            if !glob(pattern, text, self.ignore_case, asked.steps) {
                return Some(false);
            }
        }
        Some(true)
    }

    /// The variables in it that have no default.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.tokens.iter().filter_map(|token| match token {
            Token::Variable(variable) if variable.default.is_none() => Some(variable.key.as_str()),
            _ => None,
        })
    }

    /// Whether it could match an ARN, of `service` if that is given. Variables count as characters.
    pub fn is_arn(&self, service: Option<&str>) -> bool {
        let parts: Vec<_> = parts(&self.tokens).collect();
        let [arn, _partition, of, _region, _account, _resource] = parts[..] else { return false };
        let steps = &Steps::of_reading();
        glob(arn, "arn", false, steps)
            && service.is_none_or(|service| glob(of, service, false, steps))
    }

    /// The text, if it has no wildcards or variables.
    pub fn literal(&self) -> Option<String> {
        characters(&self.tokens)
    }

    /// The text before the first wildcard or variable.
    pub fn literal_prefix(&self) -> String {
        let character = |token: &Token| if let Token::Char(c) = token { Some(*c) } else { None };
        self.tokens.iter().map_while(character).collect()
    }

    /// Whether it only matches ARNs of one account.
    pub fn names_account(&self) -> bool {
        let account = parts(&self.tokens).nth(4).and_then(characters);
        account.is_some_and(|account| is_account_id(&account))
    }

    /// Whether it matches `text`, or might with some values of its variables.
    pub fn could_be(&self, text: &str) -> bool {
        self.variables || glob(&self.tokens, text, self.ignore_case, &Steps::of_reading())
    }

    /// The partition and the Region in an ARN's pattern as far as they are literal: the text up to the first wildcard
    /// or variable, and whether that is the whole component.
    pub fn partition_and_region(&self) -> Option<[(String, bool); 2]> {
        let mut parts = parts(&self.tokens);
        if !glob(parts.next()?, "arn", false, &Steps::of_reading()) {
            return None;
        }
        let literal = |part: &[Token]| {
            let chars = part.iter().map_while(|token| match token {
                Token::Char(char) => Some(*char),
                _ => None,
            });
            let text: String = chars.collect();
            let whole = text.chars().count() == part.len();
            (text, whole)
        };
        let partition = literal(parts.next()?);
        let region = parts.nth(1).map_or_else(Default::default, literal);
        Some([partition, region])
    }

    /// Whether it has a `*` wildcard.
    pub fn has_many(&self) -> bool {
        self.tokens.iter().any(|token| matches!(token, Token::Many))
    }

    /// Replaces variables by their values, which are literal: a `*` in a tag is no wildcard.
    fn resolve(&self, asked: Asked<'_>) -> Option<Cow<'_, [Token]>> {
        // A pattern costs at least one step.
        asked.steps.take(1);
        if !self.variables {
            return Some(Cow::Borrowed(&self.tokens));
        }
        let mut resolved = Vec::with_capacity(self.tokens.len());
        asked.steps.take(self.tokens.len());
        for token in &self.tokens {
            let Token::Variable(variable) = token else {
                resolved.push(token.clone());
                continue;
            };
            // Keys with several values cannot be variables ("Single-valued vs. multivalued context keys").
            let value = match asked.values(&variable.key)[..] {
                [value] => value,
                [] => variable.default.as_deref()?,
                _ => return None,
            };
            if !asked.steps.take(value.len()) {
                return None;
            }
            resolved.extend(value.chars().map(Token::Char));
        }
        Some(Cow::Owned(resolved))
    }
}

/// Parses the text between `${` and `}`: `*`, `?` or `$` for the character, `key`, or `key, 'default'`.
fn read_variable(inner: &str) -> Result<Token, &'static str> {
    if let "*" | "?" | "$" = inner {
        return Ok(inner.chars().next().map_or(Token::One, Token::Char));
    }
    let (key, default) = match inner.split_once(',') {
        None => (inner, None),
        Some((key, quoted)) => {
            let default = quoted
                .trim()
                .strip_prefix('\'')
                .and_then(|rest| rest.strip_suffix('\''))
                .ok_or("the default of a variable is not in single quotes")?;
            (key, Some(default.to_owned()))
        }
    };
    let key = key.trim();
    if !is_key(key) {
        return Err("a variable must name a condition key, such as ${aws:username}");
    }
    Ok(Token::Variable(Box::new(Variable { key: key.to_ascii_lowercase(), default })))
}

/// Whether `text` has the form of a condition key, `service:name`.
pub(super) fn is_key(text: &str) -> bool {
    text.split_once(':').is_some_and(|(service, name)| {
        !service.is_empty()
            && service.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !name.is_empty()
    })
}

/// The text of tokens, if all of them are characters.
fn characters(tokens: &[Token]) -> Option<String> {
    tokens.iter().map(|token| if let Token::Char(c) = token { Some(*c) } else { None }).collect()
}

/// The six components of an ARN, or fewer.
fn parts(tokens: &[Token]) -> impl Iterator<Item = &[Token]> {
    tokens.splitn(6, |token| matches!(token, Token::Char(':')))
}

/// Whether `pattern` matches the whole of `text`. The parts before the first `*` and after the last are compared
/// once; each part in between is searched from the left, from the end of the one before it.
fn glob(pattern: &[Token], text: &str, ignore_case: bool, steps: &Steps) -> bool {
    let mut parts = pattern.split(|token| matches!(token, Token::Many));
    let rest = parts.next().and_then(|first| without_first(first, text, ignore_case, steps));
    let (Some(mut rest), last) = (rest, parts.next_back()) else { return false };
    match last {
        None => return rest.is_empty(),
        Some(last) => match without_last(last, rest, ignore_case, steps) {
            Some(before) => rest = before,
            None => return false,
        },
    }
    parts.all(|part| match after(part, rest, ignore_case, steps) {
        Some(after) => {
            rest = after;
            true
        }
        None => false,
    })
}

/// The rest of `text` after `part`, if `part` matches its beginning.
fn without_first<'t>(
    part: &[Token],
    text: &'t str,
    ignore_case: bool,
    steps: &Steps,
) -> Option<&'t str> {
    let mut chars = text.chars();
    for token in part {
        if !steps.take(1) || !admits(token, chars.next()?, ignore_case) {
            return None;
        }
    }
    Some(chars.as_str())
}

/// The rest of `text` before `part`, if `part` matches its end.
fn without_last<'t>(
    part: &[Token],
    text: &'t str,
    ignore_case: bool,
    steps: &Steps,
) -> Option<&'t str> {
    let mut chars = text.chars();
    for token in part.iter().rev() {
        if !steps.take(1) || !admits(token, chars.next_back()?, ignore_case) {
            return None;
        }
    }
    Some(chars.as_str())
}

/// The rest of `text` after the first match of `part`.
fn after<'t>(part: &[Token], text: &'t str, ignore_case: bool, steps: &Steps) -> Option<&'t str> {
    if let Some(literal) = characters(part).filter(|_| !ignore_case) {
        // The standard library's search takes time proportional to the sum of both lengths.
        let found = text.find(&literal).and_then(|at| text.get(at + literal.len()..));
        // A search without a result costs its steps, too.
        let read = text.len() - found.map_or(0, str::len);
        let within = steps.take(part.len() + read);
        return found.filter(|_| within);
    }
    let mut rest = text;
    while !steps.are_spent() {
        if let Some(after) = without_first(part, rest, ignore_case, steps) {
            return Some(after);
        }
        let mut chars = rest.chars();
        chars.next()?;
        rest = chars.as_str();
    }
    None
}

fn admits(token: &Token, next: char, ignore_case: bool) -> bool {
    match token {
        Token::One => true,
        Token::Char(wanted) if ignore_case => {
            *wanted == next || wanted.to_lowercase().eq(next.to_lowercase())
        }
        Token::Char(wanted) => *wanted == next,
        Token::Many | Token::Variable(_) => false,
    }
}
