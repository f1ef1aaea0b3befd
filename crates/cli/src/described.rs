//! JSON values as indented text: underscores in names become blanks.

use std::fmt::Write as _;

use serde_json::Value;

/// Indented lines; leaves out absent and empty values.
pub(crate) fn text(value: &Value) -> String {
    let mut out = String::new();
    print(value, 0, &mut out);
    out
}

fn print(value: &Value, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    let Value::Object(members) = value else { return };
    for (name, member) in members {
        let name = name.replace('_', " ");
        match member {
            Value::Null => {}
            Value::Array(items) if items.is_empty() => {}
            Value::Array(items) if name == "extensions" => {
                let _ = writeln!(out, "{indent}{name}:");
                for item in items {
                    extension(item, &indent, out);
                }
            }
            Value::Array(items) if name == "taken by" => {
                let _ = writeln!(out, "{indent}{name}:");
                for item in items {
                    let (software, takes) = (plain(&item["software"]), plain(&item["takes"]));
                    let _ = writeln!(out, "{indent}  {software}: {takes}");
                }
            }
            Value::Array(items) if items.iter().all(Value::is_object) => {
                for (index, item) in items.iter().enumerate() {
                    let _ = writeln!(out, "{indent}{name} {}:", index + 1);
                    print(item, depth + 1, out);
                }
            }
            Value::Array(items) => {
                let texts: Vec<_> = items.iter().map(plain).collect();
                let _ = writeln!(out, "{indent}{name}: {}", texts.join(", "));
            }
            Value::Object(_) => {
                let _ = writeln!(out, "{indent}{name}:");
                print(member, depth + 1, out);
            }
            other => {
                let _ = writeln!(out, "{indent}{name}: {}", plain(other));
            }
        }
    }
}

fn extension(item: &Value, indent: &str, out: &mut String) {
    let critical = if item["critical"] == true { " (critical)" } else { "" };
    let values: Vec<_> = item["values"].as_array().into_iter().flatten().map(plain).collect();
    let _ = writeln!(out, "{indent}  {}{critical}: {}", plain(&item["name"]), values.join(", "));
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nested_values_are_indented_and_the_empty_left_out() {
        let value = json!({
            "type": "certificate",
            "not_after": null,
            "public_key": { "type": "ML-DSA-65", "post_quantum": true },
            "extensions": [{ "name": "key usage", "critical": true, "values": ["a", "b"] }],
            "entries": [{ "serial": "01" }],
            "none": [],
        });
        let expected = "type: certificate\npublic key:\n  type: ML-DSA-65\n  post quantum: yes\n\
                        extensions:\n  key usage (critical): a, b\nentries 1:\n  serial: 01\n";
        assert_eq!(text(&value), expected);
    }
}
