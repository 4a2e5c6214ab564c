//! Derives the parameters of a tool from the request type of its operation.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::arguments::{Kind, Parameter};

/// Maximum value of a numeric parameter that has no other limit.
const MAX_NUMBER: u64 = 1_000_000;

/// Returns the parameters that a request type `R` has. Their strings are leaked, which is acceptable because there is
/// only one request type per tool.
pub(super) fn of<R: JsonSchema>() -> Vec<Parameter> {
    let schema = SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<R>()
        .to_value();
    of_object(&schema, &schema)
}

/// Returns the parameters that an object of the schema `root` has.
fn of_object(schema: &Value, root: &Value) -> Vec<Parameter> {
    let required: Vec<&str> = list(schema, "required").filter_map(Value::as_str).collect();
    let properties = schema.get("properties").and_then(Value::as_object);
    let parameters = properties.into_iter().flatten().map(|(name, property)| {
        let about = property.get("description").and_then(Value::as_str).unwrap_or_default();
        let mut parameter = Parameter::new(leak(name), kind(property, root), leak(about));
        if required.contains(&name.as_str()) {
            parameter = parameter.required();
        }
        parameter
    });
    parameters.collect()
}

/// Returns the kind of values that a property accepts.
fn kind(property: &Value, root: &Value) -> Kind {
    let choices = choices(property, root);
    if !choices.is_empty() {
        return Kind::Choice(leak_list(choices));
    }
    match type_of(property) {
        "array" => match (choices_of_items(property, root), fields_of_items(property, root)) {
            (choices, fields) if choices.is_empty() && fields.is_empty() => Kind::Texts,
            (choices, fields) if choices.is_empty() => Kind::Records(Box::leak(fields.into_boxed_slice())),
            (choices, _) => Kind::Choices(leak_list(choices)),
        },
        "integer" => Kind::Number(property.get("maximum").and_then(Value::as_u64).unwrap_or(MAX_NUMBER)),
        "boolean" => Kind::Flag,
        _ => Kind::Text,
    }
}

/// Returns the type of a property that may also be null.
fn type_of(property: &Value) -> &str {
    let types = property.get("type").into_iter().flat_map(|of| match of {
        Value::Array(all) => all.iter().collect(),
        one => vec![one],
    });
    types
        .filter_map(Value::as_str)
        .find(|name| *name != "null")
        .unwrap_or_default()
}

fn fields_of_items(property: &Value, root: &Value) -> Vec<Parameter> {
    let reference = property.pointer("/items/$ref").and_then(Value::as_str);
    let object = reference.and_then(|name| root.pointer(name.trim_start_matches('#')));
    object.map(|object| of_object(object, root)).unwrap_or_default()
}

/// Returns the values of an enumeration, including variants with descriptions.
fn choices(property: &Value, root: &Value) -> Vec<String> {
    let reference = property.get("$ref").and_then(Value::as_str);
    if let Some(named) = reference.and_then(|name| root.pointer(name.trim_start_matches('#'))) {
        return choices(named, root);
    }
    let described = list(property, "oneOf").filter_map(|variant| variant.get("const"));
    let nested = list(property, "anyOf").flat_map(|variant| choices(variant, root));
    let plain = list(property, "enum")
        .chain(described)
        .filter_map(Value::as_str)
        .map(str::to_owned);
    plain.chain(nested).collect()
}

fn choices_of_items(property: &Value, root: &Value) -> Vec<String> {
    property
        .get("items")
        .map(|items| choices(items, root))
        .unwrap_or_default()
}

fn list<'v>(value: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> {
    value.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn leak(text: &str) -> &'static str {
    Box::leak(text.to_owned().into_boxed_str())
}

fn leak_list(texts: Vec<String>) -> &'static [&'static str] {
    Box::leak(
        texts
            .iter()
            .map(|text| leak(text))
            .collect::<Vec<_>>()
            .into_boxed_slice(),
    )
}

#[cfg(test)]
mod tests {
    use super::super::tools::TOOLS;

    #[test]
    fn parameters_are_derived_once() {
        for tool in TOOLS {
            assert!(!tool.parameters().is_empty());
            assert!(std::ptr::eq(tool.parameters(), tool.parameters()), "{}", tool.name);
        }
    }
}
