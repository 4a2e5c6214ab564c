//! Adds and removes items of lists in a section of JSON: `{"section": {"list": [item]}}`.

use serde_json::Value;

use super::super::entry::Entry;
use super::super::{Edited, TextError};
use super::document::{parse, parse_unambiguous};
use super::{check, insert, object, other_shape, put_root, remove, replace};

/// An item of a list.
#[derive(Debug)]
pub(in super::super) struct Item {
    /// The key of the list in the section.
    pub(in super::super) list: &'static str,
    /// The value.
    pub(in super::super) value: Value,
}

/// Adds `items`. Items of their lists for which `is_own` returns true are replaced. An empty text gets the fields of
/// `template` first. Fails if a key on the way or in the section is repeated.
pub(in super::super) fn put(
    text: &str,
    section: &str,
    items: &[Item],
    is_own: &dyn Fn(&Value) -> bool,
    template: &Entry,
) -> Result<Edited, TextError> {
    let root = parse_unambiguous(text, &[section])?;
    let before = root.map(|root| object(root.value(), "the file")).transpose()?;
    let made_section = before.is_none_or(|fields| !fields.contains_key(section));
    let mut text = text.to_owned();
    for item in items {
        text = put_one(&text, section, item, is_own, template)?;
    }
    Ok(Edited { text, made_section })
}

fn put_one(
    text: &str,
    section: &str,
    item: &Item,
    is_own: &dyn Fn(&Value) -> bool,
    template: &Entry,
) -> Result<String, TextError> {
    let list = Value::Array(vec![item.value.clone()]);
    let lists = Value::Object(Entry::from_iter([(item.list.to_owned(), list.clone())]));
    let Some(root) = parse(text)? else {
        return Ok(put_root(text, section, lists, template));
    };
    let expected = with_item(object(root.value(), "the file")?, section, item, is_own)?;
    let edited = match root.member(section).map(|found| &found.value) {
        None => insert(text, &root, Some(section), &lists),
        Some(lists) => match lists.member(item.list).map(|found| &found.value) {
            None => insert(text, lists, Some(item.list), &list),
            Some(list) => match list.members().iter().find(|found| is_own(&found.value.value())) {
                None => insert(text, list, None, &item.value),
                Some(found) if found.value.value() == item.value => text.to_owned(),
                Some(found) => replace(text, &found.value, &item.value),
            },
        },
    };
    check(&edited, &expected, item.list)?;
    Ok(edited)
}

/// Returns the fields of the file with the item.
fn with_item(
    mut fields: Entry,
    section: &str,
    item: &Item,
    is_own: &dyn Fn(&Value) -> bool,
) -> Result<Entry, TextError> {
    let lists = fields.entry(section).or_insert_with(|| Value::Object(Entry::new()));
    let lists = lists.as_object_mut().ok_or_else(|| other_shape(section))?;
    let items = lists.entry(item.list).or_insert_with(|| Value::Array(Vec::new()));
    let items = items.as_array_mut().ok_or_else(|| TextError::OtherShape {
        what: item.list.to_owned(),
        expected: "a list",
    })?;
    match items.iter().position(is_own) {
        Some(at) => items[at] = item.value.clone(),
        None => items.push(item.value.clone()),
    }
    Ok(fields)
}

/// Removes the items of all lists of a section for which `is_own` returns true, and the lists that become empty. If
/// `with_section` is true, also removes the section if it is empty then. Returns `None` if there is no such item.
pub(in super::super) fn take(
    text: &str,
    section: &str,
    is_own: &dyn Fn(&Value) -> bool,
    with_section: bool,
) -> Result<Option<String>, TextError> {
    let mut text = text.to_owned();
    let mut is_found = false;
    while let Some(less) = take_one(&text, section, is_own)? {
        (text, is_found) = (less, true);
    }
    if let Some(root) = parse(&text)?.filter(|_| is_found && with_section)
        && let Some(index) = root.index(section)
        && text[root.members()[index].value.span()] == *"{}"
    {
        let mut expected = object(root.value(), "the file")?;
        expected.shift_remove(section);
        text = remove(&text, &root, index);
        check(&text, &expected, section)?;
    }
    Ok(is_found.then_some(text))
}

fn take_one(text: &str, section: &str, is_own: &dyn Fn(&Value) -> bool) -> Result<Option<String>, TextError> {
    let Some(root) = parse(text)? else { return Ok(None) };
    let mut expected = object(root.value(), "the file")?;
    let Some(Value::Object(lists)) = expected.get_mut(section) else {
        return Ok(None);
    };
    let found = lists.iter_mut().find_map(|(list, items)| {
        let items = items.as_array_mut()?;
        let at = items.iter().position(is_own)?;
        items.remove(at);
        Some((list.clone(), at, items.is_empty()))
    });
    let Some((list, at, is_empty)) = found else {
        return Ok(None);
    };
    let not_editable = || TextError::NotEditable { what: list.clone() };
    let lists_node = &root.member(section).ok_or_else(not_editable)?.value;
    let index = lists_node.index(&list).ok_or_else(not_editable)?;
    let text = if is_empty {
        lists.shift_remove(&list);
        remove(text, lists_node, index)
    } else {
        remove(text, &lists_node.members()[index].value, at)
    };
    check(&text, &expected, &list)?;
    Ok(Some(text))
}
