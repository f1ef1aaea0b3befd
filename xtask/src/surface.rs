//! Generates AWS's API surface from its models: structures, operations, and the schema by which requests are parsed.
//!
//! `crates/api/models/<service>.json` describes AWS; `deviations.toml` beside it lists our differences. Handlers of
//! operations are written by hand in `crates/api/src/ops`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Map, Value};

use crate::codegen::camel;

/// Model of a service, with our differences.
pub struct Model {
    /// Module of the service: `acm_pca`.
    pub module: String,
    model: Value,
    deviations: toml::Table,
}

/// Reads all services of `deviations.toml`, in its order.
pub fn models(root: &Path) -> Result<Vec<Model>, String> {
    let folder = root.join("crates/api/models");
    let read = |name: &str| {
        let path = folder.join(name);
        std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let deviations: toml::Table =
        read("deviations.toml")?.parse().map_err(|error| format!("deviations.toml: {error}"))?;
    let mut models = Vec::new();
    for (module, table) in deviations {
        let model = serde_json::from_str(&read(&format!("{module}.json"))?)
            .map_err(|error| format!("{module}.json: {error}"))?;
        let toml::Value::Table(deviations) = table else {
            return Err(format!("deviations.toml: {module} is not a table"));
        };
        models.push(Model { module, model, deviations }.extended()?);
    }
    Ok(models)
}

impl Model {
    /// Adds our extensions of AWS to the model.
    fn extended(mut self) -> Result<Self, String> {
        let shapes = self
            .model
            .get_mut("shapes")
            .and_then(Value::as_object_mut)
            .ok_or_else(|| format!("{}.json has no shapes", self.module))?;
        let table = |name: &str| self.deviations.get(name).and_then(toml::Value::as_table);
        for (name, shape) in table("shapes").into_iter().flatten() {
            let shape = serde_json::to_value(shape).map_err(|error| error.to_string())?;
            shapes.insert(name.clone(), shape);
        }
        for (path, shape) in table("more_members").into_iter().flatten() {
            let (of, member) = path.split_once('.').unwrap_or_default();
            let members = shapes
                .get_mut(of)
                .and_then(|shape| shape.get_mut("members"))
                .and_then(Value::as_object_mut)
                .ok_or_else(|| format!("more_members: there is no structure {of}"))?;
            members.insert(member.to_owned(), serde_json::json!({ "shape": shape.as_str() }));
        }
        for (path, max) in table("longer").into_iter().flatten() {
            let (of, member) = path.split_once('.').unwrap_or_default();
            let shape = shapes.get(of).and_then(|shape| shape["members"][member]["shape"].as_str());
            let shape = shape.ok_or_else(|| format!("longer: there is no {path}"))?;
            let own = format!("{member}Of{of}");
            let mut longer = shapes[shape].clone();
            longer["max"] = max.as_integer().into();
            shapes.insert(own.clone(), longer);
            shapes[of]["members"][member]["shape"] = own.into();
        }
        for (name, values) in table("more_values").into_iter().flatten() {
            let known = shapes
                .get_mut(name)
                .and_then(|shape| shape.get_mut("enum"))
                .and_then(Value::as_array_mut)
                .ok_or_else(|| format!("more_values: there is no enumeration {name}"))?;
            let values = values.as_array().into_iter().flatten().filter_map(toml::Value::as_str);
            known.extend(values.map(Value::from));
        }
        Ok(self)
    }

    fn note(&self, table: &str, key: &str) -> Option<&str> {
        self.deviations.get(table)?.get(key)?.as_str()
    }

    fn text(&self, key: &str) -> Result<&str, String> {
        let text = self.deviations.get(key).and_then(toml::Value::as_str);
        text.ok_or_else(|| format!("deviations.toml: {} has no {key}", self.module))
    }

    /// Whether members can also be in the path and query string. Their names begin with a lower-case letter.
    fn is_rest(&self) -> bool {
        let protocols = self.model["metadata"]["protocols"].as_array();
        protocols.is_some_and(|list| list.iter().any(|one| one == "rest-json"))
    }

    /// AWS's name of the service.
    pub fn title(&self) -> Result<&str, String> {
        self.text("title")
    }

    fn metadata(&self, key: &str) -> &str {
        self.model["metadata"][key].as_str().unwrap_or_default()
    }

    fn shape(&self, name: &str) -> &Value {
        &self.model["shapes"][name]
    }

    /// Served operations, with their models.
    fn operations(&self) -> impl Iterator<Item = (&String, &Value)> {
        let all = self.model["operations"].as_object().into_iter().flatten();
        all.filter(|(name, _)| self.note("absent_operations", name).is_none())
    }

    /// Members of a structure that our type has.
    fn members<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a String, &'a str)> {
        let members = self.shape(name)["members"].as_object().into_iter().flatten();
        members
            .filter(move |(member, _)| {
                self.note("absent", &format!("{name}.{member}")).is_none()
                    && self
                        .note("absent", &format!("*.{member}"))
                        .is_none_or(|_| self.is_asked(name))
                    && self.refusal(name, member).is_none()
            })
            .map(|(member, value)| (member, value["shape"].as_str().unwrap_or_default()))
    }

    /// Whether requests contain it: `*.Member` applies to responses.
    fn is_asked(&self, name: &str) -> bool {
        self.reached(&["input"]).contains(name)
    }

    /// Reason why a member of a request is refused.
    fn refusal(&self, name: &str, member: &str) -> Option<&str> {
        let (operation, _) = self.operations().find(|(_, value)| value["input"] == name)?;
        self.note("refused", &format!("{operation}.{member}"))
            .or_else(|| self.note("refused", member))
    }

    /// Whether the model requires it.
    fn is_asked_for(&self, name: &str, member: &str) -> bool {
        let list = self.shape(name)["required"].as_array();
        list.is_some_and(|list| list.iter().any(|one| one == member))
    }

    /// Whether our type always has it.
    fn is_required(&self, name: &str, member: &str) -> bool {
        let ours = self.deviations.get("always").and_then(|table| table.get(name)?.as_array());
        self.is_asked_for(name, member)
            || ours.is_some_and(|list| list.iter().any(|one| one.as_str() == Some(member)))
    }

    /// All shapes that the requests or responses of served operations reach.
    fn reached(&self, ends: &[&str]) -> BTreeSet<&str> {
        let mut found = BTreeSet::new();
        let mut todo: Vec<&str> = self
            .operations()
            .flat_map(|(_, value)| ends.iter().filter_map(|end| value[*end].as_str()))
            .collect();
        while let Some(name) = todo.pop() {
            if !found.insert(name) {
                continue;
            }
            let shape = self.shape(name);
            let members = shape["members"].as_object().into_iter().flatten();
            todo.extend(
                members
                    .filter(|(member, _)| self.refusal(name, member).is_none())
                    .filter_map(|(_, value)| value["shape"].as_str()),
            );
            let parts = ["member", "key", "value"].into_iter();
            todo.extend(parts.filter_map(|part| shape[part]["shape"].as_str()));
        }
        found
    }

    /// AWS's documentation page about it, as the end of a sentence.
    fn page(&self, name: &str) -> String {
        if self.deviations.get("own").and_then(toml::Value::as_bool) == Some(true) {
            return ", which AWS does not have".to_owned();
        }
        let service = match self.module.as_str() {
            "acm_pca" => "privateca/latest/APIReference".to_owned(),
            "sts" => "STS/latest/APIReference".to_owned(),
            other => format!("{other}/latest/APIReference"),
        };
        format!(": see <https://docs.aws.amazon.com/{service}/API_{name}.html>")
    }

    /// Generates structures and operations.
    pub fn types(&self) -> Result<String, String> {
        let mut out = format!(
            "//! {}: structures and operations of API version {}. Generated by `cargo xtask gen` from\n\
             //! `crates/api/models`; not to be edited.\n\n\
             use serde::{{Deserialize, Serialize}};\n\n\
             use super::{{Empty, Http, Operation, ServiceModel}};\n\
             use crate::wire::{{Blob, Discarded, Protocol, Timestamp}};\n\n\
             pub mod schema;\n\n",
            self.text("title")?,
            self.metadata("apiVersion")
        );
        self.service(&mut out)?;
        let fail = |error: std::fmt::Error| error.to_string();
        for (name, value) in self.operations() {
            let input = self.type_or_empty(value["input"].as_str());
            let output = self.type_or_empty(value["output"].as_str());
            write!(
                out,
                "/// `{name}`{page}.\n\
                 #[derive(Debug, Clone, Copy)]\n\
                 pub struct {name};\n\n\
                 impl Operation for {name} {{\n\
                 const NAME: &'static str = \"{name}\";\n\
                 const SERVICE: &'static ServiceModel = &SERVICE;\n\
                 const INPUT: &'static super::schema::Shape = {input_schema};\n\
                 const OUTPUT: &'static super::schema::Shape = {output_schema};\n\
                 {http}\
                 type Input = {input};\n\
                 type Output = {output};\n\
                 }}\n\n",
                page = self.page(name),
                input_schema = schema_of(value["input"].as_str()),
                output_schema = schema_of(value["output"].as_str()),
                http = http(value)?,
            )
            .map_err(fail)?;
        }
        let whole: BTreeSet<_> = self
            .operations()
            .flat_map(|(_, value)| [value["input"].as_str(), value["output"].as_str()])
            .flatten()
            .collect();
        for name in self.reached(&["input", "output"]) {
            if self.shape(name)["type"] == "structure" && self.note("by_hand", name).is_none() {
                self.structure(name, whole.contains(name), &mut out)?;
            }
        }
        Ok(without_unused(out))
    }

    fn type_or_empty(&self, name: Option<&str>) -> String {
        name.filter(|name| self.members(name).next().is_some())
            .map_or_else(|| "Empty".to_owned(), str::to_owned)
    }

    fn service(&self, out: &mut String) -> Result<(), String> {
        let known = ["json", "smithy-rpc-v2-cbor", "query", "rest-json"];
        let rows =
            ["Protocol::Json11", "Protocol::RpcV2Cbor", "Protocol::Query", "Protocol::RestJson1"];
        let protocols = self.model["metadata"]["protocols"].as_array().into_iter().flatten();
        let mut rows: Vec<_> = protocols
            .filter_map(|name| rows.get(known.iter().position(|one| name == one)?).copied())
            .collect();
        rows.sort_unstable();
        let max_body = self.deviations.get("max_body").and_then(toml::Value::as_integer);
        let (mut errors, mut spellings) = (BTreeMap::new(), BTreeMap::new());
        for (_, value) in self.operations() {
            for name in value["errors"].as_array().into_iter().flatten() {
                let name = name.as_str().unwrap_or_default();
                let members = self.shape(name)["members"].as_object();
                let members = members.into_iter().flat_map(Map::keys);
                for member in members.filter(|member| member.eq_ignore_ascii_case("message")) {
                    *spellings.entry(member.as_str()).or_insert(0) += 1;
                }
                let error = &self.shape(name)["error"];
                let code = error["code"].as_str().unwrap_or(name);
                errors.insert(code, error["status"].as_u64().unwrap_or(400));
            }
        }
        let errors: Vec<_> =
            errors.into_iter().map(|(code, status)| format!("(\"{code}\", {status})")).collect();
        // Where a model has both spellings, one error of many differs.
        let message = spellings.iter().max_by_key(|(_, count)| **count);
        let message = message.map_or("message", |(spelling, _)| *spelling);
        let signing = match self.metadata("signingName") {
            "" => self.metadata("endpointPrefix"),
            name => name,
        };
        write!(
            out,
            "/// {full}, API version {version}.\n\
             pub static SERVICE: ServiceModel = ServiceModel {{\n\
             signing_name: \"{signing}\",\n\
             target_prefix: \"{target}\",\n\
             event_source: \"{event_source}\",\n\
             protocols: &[{protocols}],\n\
             namespace: \"{namespace}\",\n\
             internal_error: \"{internal}\",\n\
             refusal: \"{refusal}\",\n\
             message: \"{message}\",\n\
             max_body: {max_body} * 1024,\n\
             errors: &[{errors}],\n\
             }};\n\n",
            full = self.metadata("serviceFullName"),
            version = self.metadata("apiVersion"),
            target = self.metadata("targetPrefix"),
            event_source = self.text("event_source")?,
            protocols = rows.join(", "),
            namespace = self.text("namespace")?,
            internal = self.text("internal_error")?,
            refusal = self.text("refusal")?,
            max_body = max_body.ok_or("no max_body")? / 1024,
            errors = errors.join(", "),
        )
        .map_err(|error| error.to_string())
    }

    fn structure(&self, name: &str, is_whole: bool, out: &mut String) -> Result<(), String> {
        let fail = |error: std::fmt::Error| error.to_string();
        if let Some(other) = self.note("same", name) {
            return writeln!(
                out,
                "/// `{name}` has the members of [`{other}`].\npub type {name} = {other};\n"
            )
            .map_err(fail);
        }
        let members: Vec<_> = self.members(name).collect();
        if members.is_empty() && is_whole {
            return Ok(());
        }
        let operation =
            self.operations().find(|(_, value)| value["input"] == name || value["output"] == name);
        match operation {
            Some((operation, value)) if value["input"] == name => {
                writeln!(out, "/// Request of [`{operation}`].").map_err(fail)?;
            }
            Some((operation, _)) => {
                writeln!(out, "/// Response of [`{operation}`].").map_err(fail)?;
            }
            None => writeln!(out, "/// `{name}`{}.", self.page(name)).map_err(fail)?,
        }
        let secret = self.is_secret(name);
        let is_plain = |shape: &str| {
            !matches!(self.shape(shape)["type"].as_str(), Some("structure" | "timestamp"))
        };
        let has_default = members
            .iter()
            .all(|(member, shape)| !self.is_required(name, member) || is_plain(shape));
        let mut derives = vec!["Clone", "Serialize", "Deserialize"];
        if !secret {
            derives.insert(0, "Debug");
        }
        if has_default {
            derives.push("Default");
        }
        let strict = if self.is_asked(name) { ", deny_unknown_fields" } else { "" };
        write!(
            out,
            "#[derive({})]\n#[serde(rename_all = \"{case}\"{strict})]\npub struct {name} {{\n",
            derives.join(", "),
            case = if self.is_rest() { "camelCase" } else { "PascalCase" },
        )
        .map_err(fail)?;
        for (member, shape) in &members {
            let field = snake(member);
            let required = self.is_required(name, member);
            let kind = if self.is_discarded(name, member) {
                "Discarded".to_owned()
            } else {
                self.rust(name, shape, required)
            };
            writeln!(out, "/// {}", self.describe(shape)).map_err(fail)?;
            let mut serde = Vec::new();
            let usual = camel(&field);
            let usual = if self.is_rest() { lower_first(&usual) } else { usual };
            if usual != **member {
                serde.push(format!("rename = \"{member}\""));
            }
            // A flag that is absent from a request is false.
            if required && kind == "bool" && !self.is_asked_for(name, member) {
                serde.push("default".to_owned());
            }
            if !required {
                serde.push("skip_serializing_if = \"Option::is_none\"".to_owned());
            }
            if !serde.is_empty() {
                writeln!(out, "#[serde({})]", serde.join(", ")).map_err(fail)?;
            }
            let kind = if required { kind } else { format!("Option<{kind}>") };
            writeln!(out, "pub {field}: {kind},").map_err(fail)?;
        }
        out.push_str("}\n\n");
        Ok(())
    }

    /// Whether a structure contains a text that must not be printed, at any depth: it gets no `Debug`. (Bytes print
    /// as their length.)
    fn is_secret(&self, name: &str) -> bool {
        self.members(name).any(|(member, shape)| {
            let mut shape = shape;
            while let Some(inner) = self.shape(shape)["member"]["shape"].as_str() {
                shape = inner;
            }
            let value = self.shape(shape);
            match value["type"].as_str() {
                Some("string") => value["sensitive"] == true && !self.is_discarded(name, member),
                Some("structure") => shape != name && self.is_secret(shape),
                _ => false,
            }
        })
    }

    /// Whether the member is checked and then discarded.
    fn is_discarded(&self, name: &str, member: &str) -> bool {
        let path = format!("{name}.{member}");
        let list = self.deviations.get("discarded").and_then(toml::Value::as_array);
        list.is_some_and(|list| list.iter().any(|one| one.as_str() == Some(&path)))
    }

    /// Rust type of a shape inside a structure.
    fn rust(&self, of: &str, name: &str, required: bool) -> String {
        if let Some(path) = self.note("by_hand", name) {
            return path.to_owned();
        }
        let shape = self.shape(name);
        let part =
            |key: &str| self.rust(of, shape[key]["shape"].as_str().unwrap_or_default(), true);
        match shape["type"].as_str().unwrap_or_default() {
            "string" => "String".to_owned(),
            "integer" | "long" => "i64".to_owned(),
            "boolean" => "bool".to_owned(),
            "blob" => "Blob".to_owned(),
            "timestamp" => "Timestamp".to_owned(),
            "list" => format!("Vec<{}>", part("member")),
            "map" => format!("std::collections::BTreeMap<{}, {}>", part("key"), part("value")),
            _ if name == of && !required => format!("Box<{name}>"),
            _ => name.to_owned(),
        }
    }

    /// Describes a value and its limits.
    fn describe(&self, name: &str) -> String {
        let shape = self.shape(name);
        let unit = match shape["type"].as_str().unwrap_or_default() {
            "string" => "characters",
            "blob" => "bytes",
            "list" => "items",
            _ => "",
        };
        let bounds = match (shape["min"].as_i64(), shape["max"].as_i64()) {
            (Some(min), Some(max)) if min == max => format!(": {max} {unit}"),
            (Some(min), Some(max)) => format!(": {min} to {max} {unit}"),
            (None, Some(max)) => format!(": {max} {unit} at most"),
            (Some(min), None) if min > 0 => format!(": {min} {unit} at least"),
            _ => String::new(),
        };
        let values = shape["enum"].as_array().map(|list| {
            let names: Vec<_> =
                list.iter().filter_map(Value::as_str).map(|one| format!("`{one}`")).collect();
            if names.len() > 8 { String::new() } else { format!(": {}", names.join(", ")) }
        });
        format!("`{name}`{}{}.", values.unwrap_or_default(), bounds.trim_end())
    }

    /// Generates the tables by which requests are parsed.
    pub fn schema(&self) -> Result<String, String> {
        let fail = |error: std::fmt::Error| error.to_string();
        let mut out = format!(
            "//! {}: the schema of requests and answers. Generated by `cargo xtask gen` from `crates/api/models`;\n\
             //! not to be edited.\n\n\
             use crate::aws::schema::{{Member, Pattern, Shape}};\n\n",
            self.text("title")?
        );
        let mut patterns: BTreeMap<String, String> = BTreeMap::new();
        let mut body = String::new();
        for name in self.reached(&["input", "output"]) {
            let shape = self.shape(name);
            let reference = |part: &str| {
                format!("&{}", screaming(shape[part]["shape"].as_str().unwrap_or_default()))
            };
            let mut text = match shape["type"].as_str().unwrap_or_default() {
                "string" => "Shape::string()".to_owned(),
                "integer" | "long" => "Shape::integer()".to_owned(),
                "boolean" => "Shape::boolean()".to_owned(),
                "blob" => "Shape::blob()".to_owned(),
                "timestamp" if shape["timestampFormat"] == "iso8601" && self.is_rest() => {
                    "Shape::date_time()".to_owned()
                }
                "timestamp" => "Shape::timestamp()".to_owned(),
                "list" => format!("Shape::list({})", reference("member")),
                "map" => format!("Shape::map({}, {})", reference("key"), reference("value")),
                "structure" => self.members_schema(name, shape)?,
                other => return Err(format!("{name}: the type {other} is not supported")),
            };
            if let Some(min) = shape["min"].as_i64() {
                write!(text, ".min({min})").map_err(fail)?;
            }
            if let Some(max) = shape["max"].as_i64() {
                write!(text, ".max({max})").map_err(fail)?;
            }
            if let Some(list) = shape["enum"].as_array() {
                write!(
                    text,
                    ".one_of(&{})",
                    serde_json::to_string(list).map_err(|error| error.to_string())?
                )
                .map_err(fail)?;
            }
            if let Some(pattern) = shape["pattern"].as_str()
                && self.note("unchecked", name).is_none()
            {
                let next = format!("{}_PATTERN", screaming(name));
                let known = patterns.entry(pattern.to_owned()).or_insert(next);
                write!(text, ".pattern(&{known})").map_err(fail)?;
            }
            if shape["sensitive"] == true {
                text.push_str(".sensitive()");
            }
            writeln!(body, "/// `{name}`\npub static {}: Shape = {text};\n", screaming(name))
                .map_err(fail)?;
        }
        for (pattern, name) in &patterns {
            writeln!(out, "static {name}: Pattern = Pattern::new(r#\"{pattern}\"#);")
                .map_err(fail)?;
        }
        out.push('\n');
        out.push_str(&body);
        if patterns.is_empty() {
            out = out.replace("{Member, Pattern, Shape}", "{Member, Shape}");
        }
        Ok(out)
    }

    fn members_schema(&self, name: &str, shape: &Value) -> Result<String, String> {
        let empty = Map::new();
        let members = shape["members"].as_object().unwrap_or(&empty);
        let mut rows = Vec::new();
        for (member, value) in members {
            if let Some(why) = self.refusal(name, member) {
                rows.push(format!("Member::refused(\"{member}\", \"{why}\")"));
                continue;
            }
            let of = screaming(value["shape"].as_str().ok_or("a member without a shape")?);
            let listed = shape["required"]
                .as_array()
                .is_some_and(|list| list.iter().any(|one| one == member));
            let kind = if listed { "required" } else { "optional" };
            let binding = binding(value).map_err(|error| format!("{name}.{member}: {error}"))?;
            rows.push(format!("Member::{kind}(\"{member}\", &{of}){binding}"));
        }
        Ok(format!("Shape::structure(\"{name}\", &[{}])", rows.join(", ")))
    }
}

/// How an operation is called over HTTP, if the protocol alone does not determine it.
fn http(operation: &Value) -> Result<String, String> {
    let Some(http) = operation["http"].as_object() else { return Ok(String::new()) };
    let text = |key: &str| {
        http.get(key).and_then(Value::as_str).ok_or(format!("{operation}: http has no {key}"))
    };
    let (method, uri) = (text("method")?, text("requestUri")?);
    if uri.contains(['?', '+']) {
        return Err(format!("{uri}: query strings and greedy labels are not supported"));
    }
    let status = http.get("responseCode").and_then(Value::as_u64).unwrap_or(200);
    Ok(format!(
        "const HTTP: Http = Http {{ method: \"{method}\", uri: \"{uri}\", status: {status} }};\n"
    ))
}

/// Location of a member in a request, unless it is in the body.
fn binding(member: &Value) -> Result<String, String> {
    let name = member["locationName"].as_str().unwrap_or_default();
    match member["location"].as_str() {
        None => Ok(String::new()),
        Some("uri") => Ok(format!(".in_path(\"{name}\")")),
        Some("querystring") => Ok(format!(".in_query(\"{name}\")")),
        Some(other) => Err(format!("the location {other} is not supported")),
    }
}

fn schema_of(name: Option<&str>) -> String {
    name.map_or_else(
        || "&super::schema::EMPTY".to_owned(),
        |name| format!("&schema::{}", screaming(name)),
    )
}

/// Removes imports that a service does not need.
fn without_unused(text: String) -> String {
    let (head, body) = text.split_once("pub mod schema;").unwrap_or((&text, ""));
    let used = |name: &str| {
        body.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name)
    };
    let list = |names: &[&'static str]| -> Vec<&'static str> {
        names.iter().copied().filter(|name| used(name)).collect()
    };
    let wire = list(&["Blob", "Discarded", "Protocol", "Timestamp"]).join(", ");
    let own = list(&["Empty", "Http", "Operation", "ServiceModel"]).join(", ");
    let head = head
        .replace("{Blob, Discarded, Protocol, Timestamp}", &format!("{{{wire}}}"))
        .replace("{Empty, Http, Operation, ServiceModel}", &format!("{{{own}}}"));
    format!("{head}pub mod schema;{body}")
}

fn lower_first(name: &str) -> String {
    let mut chars = name.chars();
    chars
        .next()
        .map_or_else(String::new, |first| first.to_lowercase().collect::<String>() + chars.as_str())
}

/// `AWSAccountId` as a Rust field: `aws_account_id`; `Type` is a keyword, so `kind`.
fn snake(name: &str) -> String {
    if name.eq_ignore_ascii_case("type") {
        return "kind".to_owned();
    }
    let chars: Vec<char> = name.chars().collect();
    let mut out = String::new();
    for (at, c) in chars.iter().enumerate() {
        let after_lower = at > 0 && !chars.get(at - 1).is_some_and(char::is_ascii_uppercase);
        let before_lower = at > 0
            && chars.get(at - 1).is_some_and(char::is_ascii_uppercase)
            && chars.get(at + 1).is_some_and(char::is_ascii_lowercase);
        if c.is_ascii_uppercase() && (after_lower || before_lower) && !out.ends_with('_') {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out.trim_start_matches('_').to_owned()
}

fn screaming(name: &str) -> String {
    snake(if name == "Type" { "Kind" } else { name }).to_uppercase()
}
