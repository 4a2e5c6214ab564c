//! Encodes an [`Extraction`] as records. Names are stored once in a table and positions as differences, so that records
//! compress well.
//!
//! Each blob has two records: the core record with the definitions, headings, chunks and imports that every query
//! needs, and a record with the references and bindings, which only the graph needs.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::extract::{
    Arity, Binding, BindingKind, Chunk, ChunkKind, Definition, DefinitionKind, Extraction, Heading, Import,
    ImportedName, Literal, Reference, ReferenceKind, Shape, Steps, Unparsed, Value,
};
use crate::model::ByteRange;
use crate::sidecar::{CodecError, decode, encode};

#[derive(Serialize, Deserialize)]
struct CoreRecord {
    n_lines: u32,
    n_parse_errors: u32,
    first_error_line: u32,
    /// The number of the reason why the blob was not parsed, or 0.
    unparsed: u8,
    definitions: Vec<DefinitionRecord>,
    imports: Vec<ImportRecord>,
    headings: Vec<(u8, String, RangeRecord)>,
    chunks: Vec<ChunkRecord>,
}

/// A byte range: its start relative to the previous record, and its length.
type RangeRecord = (i32, u32);

#[derive(Serialize, Deserialize)]
struct DefinitionRecord {
    name: String,
    kind: u8,
    /// 0 if the definition has no container. Otherwise, the index of this definition minus the index of its container.
    container_back: u32,
    qualifier: Option<String>,
    range: RangeRecord,
    /// The start of this range and of the ranges below is relative to the start of `range`.
    name_range: RangeRecord,
    signature: RangeRecord,
    doc: Option<RangeRecord>,
    /// The fewest and the most arguments.
    arity: Option<(u8, u8)>,
}

#[derive(Serialize, Deserialize)]
struct ImportRecord {
    module: String,
    names: Vec<(String, Option<String>)>,
    is_reexport: bool,
    range: RangeRecord,
    scope: Option<RangeRecord>,
}

#[derive(Serialize, Deserialize)]
struct ChunkRecord {
    range: RangeRecord,
    /// The first line, relative to the last line of the previous chunk.
    start_line: i32,
    n_more_lines: u32,
    kind: u8,
    /// 0 if the chunk has no definition. Otherwise, the index of the definition plus one.
    definition: u32,
    part: u16,
}

#[derive(Serialize, Deserialize)]
struct ReferencesRecord {
    names: Vec<String>,
    /// The index of each reference's name. All references are stored column by column, so that similar values are
    /// adjacent.
    name: Vec<u32>,
    /// For each reference, 0 if it has no qualifier, otherwise the index of the qualifier plus one.
    qualifier: Vec<u32>,
    kind: Vec<u8>,
    /// The start of each reference, relative to that of the previous reference.
    start: Vec<i32>,
    receiver: ValueColumns,
    /// For each reference, 0 if it is not a call, otherwise the number of arguments plus one.
    n_arguments: Vec<u16>,
    /// For each reference, the number of its kept arguments. Empty if no reference has any.
    n_kept: Vec<u8>,
    arguments: ValueColumns,
    bindings: BindingColumns,
}

/// The form of a value without steps that comes from a reference.
const FIRST_STEPS: u16 = 16;

/// One value per row.
#[derive(Default, Serialize, Deserialize)]
struct ValueColumns {
    /// 0 for none, 1 for an unknown value, 2 plus the kind for a literal, [`FIRST_STEPS`] plus the number of the steps
    /// otherwise.
    form: Vec<u16>,
    /// For each row with steps, the position of the row minus the position of the value.
    back: Vec<i32>,
}

#[derive(Serialize, Deserialize)]
struct BindingColumns {
    name: Vec<u32>,
    kind: Vec<u8>,
    /// Relative to the previous binding.
    start: Vec<i32>,
    /// The index of each scope in the two columns below.
    scope: Vec<u32>,
    scope_start: Vec<i32>,
    scope_length: Vec<u32>,
    /// The length of each declared type, 0 if there is none.
    declared_length: Vec<u32>,
    shape: Vec<u8>,
    /// For each declared type, its start relative to the start of the name.
    declared_offset: Vec<i32>,
    value: ValueColumns,
}

/// An error from decoding a record.
#[derive(Debug, thiserror::Error)]
pub(super) enum RecordError {
    #[error(transparent)]
    Codec(#[from] CodecError),
    #[error("unknown {what} number {number}")]
    Unknown { what: &'static str, number: u32 },
    #[error("the names exceed {MAX_NAME_BYTES} bytes in total")]
    TooMuch,
    #[error("a column is too short")]
    Short,
}

/// Limit on the total size of the names in a decoded record. A name is stored once but copied for each of its
/// references. The copies of a valid record are at most as long as the source file.
const MAX_NAME_BYTES: usize = 64 << 20;

/// Converts between absolute positions and differences from the previous position.
#[derive(Clone, Default)]
struct Cursor(i64);

impl Cursor {
    fn put(&mut self, position: u32) -> i32 {
        let difference = i64::from(position) - self.0;
        self.0 = i64::from(position);
        difference as i32
    }

    fn take(&mut self, difference: i32) -> u32 {
        self.0 = (self.0 + i64::from(difference)).clamp(0, i64::from(u32::MAX));
        self.0 as u32
    }

    fn put_range(&mut self, range: ByteRange) -> RangeRecord {
        (self.put(range.start), range.end - range.start)
    }

    fn take_range(&mut self, (difference, length): RangeRecord) -> ByteRange {
        let start = self.take(difference);
        ByteRange::new(start, start.saturating_add(length))
    }
}

pub(super) fn encode_core(extraction: &Extraction) -> Vec<u8> {
    let mut at = Cursor::default();
    let definitions = extraction
        .definitions
        .iter()
        .enumerate()
        .map(|(index, definition)| definition_record(index as u32, definition, &mut at))
        .collect();
    let mut at = Cursor::default();
    let imports = extraction
        .imports
        .iter()
        .map(|import| import_record(import, &mut at))
        .collect();
    let mut at = Cursor::default();
    let headings = extraction
        .headings
        .iter()
        .map(|heading| (heading.level, heading.title.clone(), at.put_range(heading.range)))
        .collect();
    let mut at = Cursor::default();
    let mut line = Cursor::default();
    let chunks = extraction
        .chunks
        .iter()
        .map(|chunk| chunk_record(chunk, &mut at, &mut line))
        .collect();
    encode(&CoreRecord {
        n_lines: extraction.n_lines,
        n_parse_errors: extraction.n_parse_errors,
        first_error_line: extraction.first_error_line,
        unparsed: extraction.unparsed.map_or(0, |reason| reason as u8),
        definitions,
        imports,
        headings,
        chunks,
    })
}

/// Decodes a core record: everything except the references.
pub(super) fn decode_core(bytes: &[u8]) -> Result<Extraction, RecordError> {
    let record: CoreRecord = decode(bytes)?;
    let mut at = Cursor::default();
    let definitions = record
        .definitions
        .into_iter()
        .enumerate()
        .map(|(index, definition)| definition_of(index as u32, definition, &mut at))
        .collect::<Result<_, _>>()?;
    let mut at = Cursor::default();
    let imports = record
        .imports
        .into_iter()
        .map(|import| import_of(import, &mut at))
        .collect();
    let mut at = Cursor::default();
    let headings = record
        .headings
        .into_iter()
        .map(|(level, title, range)| Heading {
            level,
            title,
            range: at.take_range(range),
        })
        .collect();
    let mut at = Cursor::default();
    let mut line = Cursor::default();
    let chunks = record
        .chunks
        .into_iter()
        .map(|chunk| chunk_of(chunk, &mut at, &mut line))
        .collect::<Result<_, _>>()?;
    Ok(Extraction {
        n_lines: record.n_lines,
        n_parse_errors: record.n_parse_errors,
        first_error_line: record.first_error_line,
        unparsed: unparsed(record.unparsed)?,
        definitions,
        references: Vec::new(),
        bindings: Vec::new(),
        imports,
        headings,
        chunks,
    })
}

impl ValueColumns {
    fn push(&mut self, value: Value, position: u32) {
        self.form.push(match value {
            Value::None => 0,
            Value::Other => 1,
            Value::Literal(literal) => 2 + literal as u16,
            Value::Of { steps, .. } => FIRST_STEPS + u16::from(steps.number()),
        });
        if let Value::Of { at, .. } = value {
            self.back.push(position.wrapping_sub(at) as i32);
        }
    }

    /// Returns a function that returns the value of the next row, given the position of the row.
    fn reader(&self) -> impl FnMut(u32) -> Result<Value, RecordError> + '_ {
        let (mut forms, mut back) = (self.form.iter(), self.back.iter());
        move |position| {
            let form = *forms.next().ok_or(RecordError::Short)?;
            Ok(match form {
                0 => Value::None,
                1 => Value::Other,
                2..FIRST_STEPS => {
                    let number = form - 2;
                    let unknown = RecordError::Unknown {
                        what: "kind of literal",
                        number: number.into(),
                    };
                    Value::Literal(Literal::from_number(number as u8).ok_or(unknown)?)
                }
                _ => Value::Of {
                    at: position.wrapping_sub(*back.next().ok_or(RecordError::Short)? as u32),
                    steps: Steps::from_number((form - FIRST_STEPS) as u8),
                },
            })
        }
    }
}

fn unparsed(number: u8) -> Result<Option<Unparsed>, RecordError> {
    let unknown = RecordError::Unknown {
        what: "reason",
        number: number.into(),
    };
    match number {
        0 => Ok(None),
        _ => Unparsed::from_number(number).ok_or(unknown).map(Some),
    }
}

/// Encodes the references and bindings of an extraction.
pub(super) fn encode_references(extraction: &Extraction) -> Vec<u8> {
    let references = &extraction.references;
    let mut names = Names::default();
    let mut at = Cursor::default();
    let name = references
        .iter()
        .map(|reference| names.number(&reference.name))
        .collect();
    let qualifier = references
        .iter()
        .map(|reference| reference.qualifier.as_deref().map_or(0, |text| names.number(text) + 1))
        .collect();
    let mut receiver = ValueColumns::default();
    references
        .iter()
        .for_each(|reference| receiver.push(reference.receiver, reference.range.start));
    let mut arguments = ValueColumns::default();
    let mut n_kept = Vec::new();
    if references.iter().any(|reference| !reference.arguments.is_empty()) {
        for reference in references {
            n_kept.push(reference.arguments.len() as u8);
            reference
                .arguments
                .iter()
                .for_each(|value| arguments.push(*value, reference.range.start));
        }
    }
    let bindings = encode_bindings(&extraction.bindings, &mut names);
    encode(&ReferencesRecord {
        name,
        qualifier,
        kind: references.iter().map(|reference| reference.kind as u8).collect(),
        start: references
            .iter()
            .map(|reference| at.put(reference.range.start))
            .collect(),
        receiver,
        n_arguments: references
            .iter()
            .map(|reference| reference.n_arguments.map_or(0, |n| u16::from(n) + 1))
            .collect(),
        n_kept,
        arguments,
        bindings,
        names: names.list,
    })
}

fn encode_bindings(bindings: &[Binding], names: &mut Names) -> BindingColumns {
    let mut scopes: HashMap<ByteRange, u32> = HashMap::new();
    let (mut scope_start, mut scope_length) = (Vec::new(), Vec::new());
    let (mut at, mut scope_at) = (Cursor::default(), Cursor::default());
    let mut value = ValueColumns::default();
    let mut columns = BindingColumns {
        name: bindings.iter().map(|binding| names.number(&binding.name)).collect(),
        kind: bindings.iter().map(|binding| binding.kind as u8).collect(),
        start: bindings.iter().map(|binding| at.put(binding.start)).collect(),
        scope: Vec::with_capacity(bindings.len()),
        scope_start: Vec::new(),
        scope_length: Vec::new(),
        declared_length: bindings.iter().map(|binding| binding.declared.len() as u32).collect(),
        shape: bindings.iter().map(|binding| binding.shape as u8).collect(),
        declared_offset: Vec::new(),
        value: ValueColumns::default(),
    };
    for binding in bindings {
        columns.scope.push(*scopes.entry(binding.scope).or_insert_with(|| {
            scope_start.push(scope_at.put(binding.scope.start));
            scope_length.push(binding.scope.len() as u32);
            scope_start.len() as u32 - 1
        }));
        if !binding.declared.is_empty() {
            columns
                .declared_offset
                .push(binding.declared.start.wrapping_sub(binding.start) as i32);
        }
        value.push(binding.value, binding.start);
    }
    BindingColumns {
        scope_start,
        scope_length,
        value,
        ..columns
    }
}

/// Decodes references and bindings.
pub(super) fn decode_references(bytes: &[u8]) -> Result<(Vec<Reference>, Vec<Binding>), RecordError> {
    let record: ReferencesRecord = decode(bytes)?;
    let mut room = MAX_NAME_BYTES;
    let mut name = |number: u32| -> Result<String, RecordError> {
        let text = record.names.get(number as usize);
        let text = text.ok_or(RecordError::Unknown { what: "name", number })?;
        room = room.checked_sub(text.len()).ok_or(RecordError::TooMuch)?;
        Ok(text.clone())
    };
    let mut at = Cursor::default();
    let (mut receiver, mut argument) = (record.receiver.reader(), record.arguments.reader());
    let mut n_kept = record.n_kept.iter();
    let columns = record
        .name
        .iter()
        .zip(&record.qualifier)
        .zip(&record.kind)
        .zip(&record.start)
        .zip(&record.n_arguments);
    let references = columns
        .map(|((((&number, qualifier), &kind), &start), n_arguments)| {
            let text = name(number)?;
            let start = at.take(start);
            Ok(Reference {
                qualifier: qualifier.checked_sub(1).map(&mut name).transpose()?,
                kind: reference_kind(kind)?,
                range: ByteRange::new(start, start.saturating_add(text.len() as u32)),
                receiver: receiver(start)?,
                n_arguments: n_arguments.checked_sub(1).map(|n| n as u8),
                arguments: (0..n_kept.next().copied().unwrap_or(0))
                    .map(|_| argument(start))
                    .collect::<Result<_, _>>()?,
                name: text,
            })
        })
        .collect::<Result<_, RecordError>>()?;
    Ok((references, decode_bindings(&record.bindings, &mut name)?))
}

fn decode_bindings(
    columns: &BindingColumns,
    name: &mut impl FnMut(u32) -> Result<String, RecordError>,
) -> Result<Vec<Binding>, RecordError> {
    let (mut at, mut scope_at) = (Cursor::default(), Cursor::default());
    let scopes = columns.scope_start.iter().zip(&columns.scope_length);
    let scopes: Vec<ByteRange> = scopes
        .map(|(&start, &length)| scope_at.take_range((start, length)))
        .collect();
    let mut declared = columns.declared_offset.iter();
    let mut value = columns.value.reader();
    let rows = columns
        .name
        .iter()
        .zip(&columns.kind)
        .zip(&columns.start)
        .zip(&columns.scope)
        .zip(&columns.declared_length)
        .zip(&columns.shape);
    rows.map(|(((((&number, &kind), &start), &scope), &length), &form)| {
        let start = at.take(start);
        let declared = match length {
            0 => ByteRange::default(),
            _ => {
                let offset = *declared.next().ok_or(RecordError::Short)?;
                let from = start.wrapping_add(offset as u32);
                ByteRange::new(from, from.saturating_add(length))
            }
        };
        Ok(Binding {
            name: name(number)?,
            kind: binding_kind(kind)?,
            start,
            scope: *scopes.get(scope as usize).ok_or(RecordError::Unknown {
                what: "scope",
                number: scope,
            })?,
            declared,
            shape: shape(form)?,
            value: value(start)?,
        })
    })
    .collect()
}

#[derive(Default)]
struct Names {
    list: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl Names {
    fn number(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = self.list.len() as u32;
        self.list.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }
}

fn definition_record(index: u32, definition: &Definition, at: &mut Cursor) -> DefinitionRecord {
    let range = at.put_range(definition.range);
    let inside = |inner: ByteRange| {
        let offset = i64::from(inner.start) - i64::from(definition.range.start);
        (offset as i32, inner.end - inner.start)
    };
    DefinitionRecord {
        name: definition.name.clone(),
        kind: definition.kind as u8,
        container_back: definition.container.map_or(0, |container| index - container),
        qualifier: definition.qualifier.clone(),
        range,
        name_range: inside(definition.name_range),
        signature: inside(definition.signature),
        doc: definition.doc.map(inside),
        arity: definition.arity.map(|arity| (arity.fewest, arity.most)),
    }
}

fn definition_of(index: u32, record: DefinitionRecord, at: &mut Cursor) -> Result<Definition, RecordError> {
    let range = at.take_range(record.range);
    let inside = |(offset, length): RangeRecord| {
        let start = (i64::from(range.start) + i64::from(offset)).clamp(0, i64::from(u32::MAX)) as u32;
        ByteRange::new(start, start.saturating_add(length))
    };
    let container = match record.container_back {
        0 => None,
        back => Some(index.checked_sub(back).ok_or(RecordError::Unknown {
            what: "container",
            number: back,
        })?),
    };
    Ok(Definition {
        name: record.name,
        kind: definition_kind(record.kind)?,
        container,
        qualifier: record.qualifier,
        range,
        name_range: inside(record.name_range),
        signature: inside(record.signature),
        doc: record.doc.map(inside),
        arity: record.arity.map(|(fewest, most)| Arity { fewest, most }),
    })
}

fn import_record(import: &Import, at: &mut Cursor) -> ImportRecord {
    let range = at.put_range(import.range);
    ImportRecord {
        module: import.module.clone(),
        names: import
            .names
            .iter()
            .map(|imported| (imported.name.clone(), imported.alias.clone()))
            .collect(),
        is_reexport: import.is_reexport,
        range,
        scope: import.scope.map(|scope| at.clone().put_range(scope)),
    }
}

fn import_of(record: ImportRecord, at: &mut Cursor) -> Import {
    let range = at.take_range(record.range);
    Import {
        module: record.module,
        names: record
            .names
            .into_iter()
            .map(|(name, alias)| ImportedName { name, alias })
            .collect(),
        is_reexport: record.is_reexport,
        range,
        scope: record.scope.map(|scope| at.clone().take_range(scope)),
    }
}

fn chunk_record(chunk: &Chunk, at: &mut Cursor, line: &mut Cursor) -> ChunkRecord {
    let start_line = line.put(chunk.start_line);
    line.put(chunk.end_line);
    ChunkRecord {
        range: at.put_range(chunk.range),
        start_line,
        n_more_lines: chunk.end_line - chunk.start_line,
        kind: chunk.kind as u8,
        definition: chunk.definition.map_or(0, |index| index + 1),
        part: chunk.part,
    }
}

fn chunk_of(record: ChunkRecord, at: &mut Cursor, line: &mut Cursor) -> Result<Chunk, RecordError> {
    let range = at.take_range(record.range);
    let start_line = line.take(record.start_line);
    let end_line = start_line.saturating_add(record.n_more_lines);
    line.put(end_line);
    Ok(Chunk {
        range,
        start_line,
        end_line,
        kind: chunk_kind(record.kind)?,
        definition: record.definition.checked_sub(1),
        part: record.part,
    })
}

fn definition_kind(number: u8) -> Result<DefinitionKind, RecordError> {
    DefinitionKind::from_number(number).ok_or(RecordError::Unknown {
        what: "kind of definition",
        number: u32::from(number),
    })
}

macro_rules! by_number {
    ($function:ident -> $kind:ident, $what:literal: $($variant:ident)+) => {
        fn $function(number: u8) -> Result<$kind, RecordError> {
            match number {
                $(n if n == $kind::$variant as u8 => Ok($kind::$variant),)+
                _ => Err(RecordError::Unknown { what: $what, number: u32::from(number) }),
            }
        }
    };
}

by_number!(reference_kind -> ReferenceKind, "kind of reference": Call Type Inherit Macro Attribute Name Value Member Import);
by_number!(shape -> Shape, "form of type": Named Sequence Opaque);
by_number!(binding_kind -> BindingKind, "kind of binding": Local Parameter Definition Field Return Export TypeParameter);
by_number!(chunk_kind -> ChunkKind, "kind of chunk": Function Type Items Module Test Section Data Window);

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::extract::{Options, extract, lang_of_path};

    fn sample() -> Extraction {
        let outer = Definition {
            name: "Parser".to_owned(),
            kind: DefinitionKind::Struct,
            container: None,
            qualifier: None,
            range: ByteRange::new(5, 90),
            name_range: ByteRange::new(12, 18),
            signature: ByteRange::new(5, 18),
            doc: None,
            arity: None,
        };
        let inner = Definition {
            name: "parse".to_owned(),
            kind: DefinitionKind::Method,
            container: Some(0),
            qualifier: Some("Parser".to_owned()),
            range: ByteRange::new(30, 80),
            name_range: ByteRange::new(45, 50),
            signature: ByteRange::new(40, 60),
            doc: Some(ByteRange::new(30, 40)),
            arity: None,
        };
        Extraction {
            n_lines: 9,
            n_parse_errors: 1,
            first_error_line: 2,
            unparsed: Some(Unparsed::ParserEnded),
            definitions: vec![outer, inner],
            references: vec![
                Reference {
                    name: "lex".to_owned(),
                    qualifier: None,
                    kind: ReferenceKind::Call,
                    range: ByteRange::new(61, 64),
                    receiver: Value::Literal(Literal::String),
                    n_arguments: Some(2),
                    arguments: vec![Value::Other, Value::Literal(Literal::Null)],
                },
                Reference {
                    name: "lex".to_owned(),
                    qualifier: Some("self".to_owned()),
                    kind: ReferenceKind::Call,
                    range: ByteRange::new(70, 73),
                    receiver: Value::Of {
                        at: 61,
                        steps: Steps::from_number(9),
                    },
                    n_arguments: None,
                    arguments: Vec::new(),
                },
            ],
            bindings: vec![
                Binding {
                    name: "token".to_owned(),
                    kind: BindingKind::Local,
                    start: 58,
                    scope: ByteRange::new(50, 80),
                    declared: ByteRange::default(),
                    shape: Shape::Named,
                    value: Value::Of {
                        at: 61,
                        steps: Steps::default(),
                    },
                },
                Binding {
                    name: "parse".to_owned(),
                    kind: BindingKind::Definition,
                    start: 60,
                    scope: ByteRange::new(50, 80),
                    declared: ByteRange::new(40, 44),
                    shape: Shape::Sequence,
                    value: Value::Other,
                },
            ],
            imports: vec![Import {
                module: "std::fs".to_owned(),
                names: vec![ImportedName {
                    name: "File".to_owned(),
                    alias: Some("F".to_owned()),
                }],
                is_reexport: false,
                range: ByteRange::new(10, 14),
                scope: Some(ByteRange::new(5, 20)),
            }],
            headings: vec![Heading {
                level: 2,
                title: "Use".to_owned(),
                range: ByteRange::new(3, 60),
            }],
            chunks: vec![
                Chunk {
                    range: ByteRange::new(0, 30),
                    start_line: 1,
                    end_line: 3,
                    kind: ChunkKind::Type,
                    definition: Some(0),
                    part: 0,
                },
                Chunk {
                    range: ByteRange::new(25, 95),
                    start_line: 3,
                    end_line: 9,
                    kind: ChunkKind::Function,
                    definition: Some(1),
                    part: 2,
                },
            ],
        }
    }

    #[test]
    fn decode_undoes_encode() {
        let extraction = sample();
        let mut back = decode_core(&encode_core(&extraction)).unwrap();
        (back.references, back.bindings) = decode_references(&encode_references(&extraction)).unwrap();
        assert_eq!(back, extraction);
    }

    #[test]
    fn code_inside_other_text_comes_back() {
        let text = "<p>x</p>\n<script>\nfunction f(a) { var b = a; return b.c(); }\n</script>\n";
        let lang = lang_of_path(&"a.html".into());
        let extraction = extract(text.as_bytes(), lang, &Options::default());
        assert!(!extraction.bindings.is_empty());
        let back = decode_references(&encode_references(&extraction)).unwrap();
        assert_eq!(back, (extraction.references, extraction.bindings));
    }

    #[test]
    fn excessive_name_repetition_is_rejected() {
        let n_references = MAX_NAME_BYTES / (1 << 20) + 1;
        let record = |n_references: usize| ReferencesRecord {
            names: vec!["n".repeat(1 << 20)],
            name: vec![0; n_references],
            qualifier: vec![0; n_references],
            kind: vec![ReferenceKind::Name as u8; n_references],
            start: vec![0; n_references],
            receiver: ValueColumns {
                form: vec![0; n_references],
                back: Vec::new(),
            },
            n_arguments: vec![0; n_references],
            n_kept: Vec::new(),
            arguments: ValueColumns::default(),
            bindings: encode_bindings(&[], &mut Names::default()),
        };
        let decoded = decode_references(&encode(&record(n_references)));
        assert!(matches!(decoded, Err(RecordError::TooMuch)));
        assert_eq!(decode_references(&encode(&record(2))).unwrap().0.len(), 2);
    }

    #[test]
    fn damaged_records_never_panic() {
        let core = encode_core(&sample());
        let references = encode_references(&sample());
        for at in 0..core.len() {
            for bit in 0..8 {
                let mut bad = core.clone();
                bad[at] ^= 1 << bit;
                let _ = decode_core(&bad);
            }
        }
        for at in 0..references.len() {
            let mut bad = references.clone();
            bad[at] = bad[at].wrapping_add(127);
            let _ = decode_references(&bad);
        }
    }
}
