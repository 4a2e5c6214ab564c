//! The facts of a blob.

use crate::model::ByteRange;

/// All that is known about a blob's text in one language.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extraction {
    /// How many lines the blob has; a last line without a newline counts.
    pub n_lines: u32,
    /// How many syntax errors and missing nodes the grammar met; 0 for a clean or unparsed file.
    pub n_parse_errors: u32,
    /// In source order (by start, outer before inner).
    pub definitions: Vec<Definition>,
    /// In source order.
    pub references: Vec<Reference>,
    /// In source order.
    pub imports: Vec<Import>,
    /// Section headings of prose, in source order.
    pub headings: Vec<Heading>,
    /// In source order; together they cover every byte of the blob.
    pub chunks: Vec<Chunk>,
}

/// Something with a name that the blob defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The bare name as written: `parse`, not `Parser::parse`.
    pub name: String,
    /// What it is.
    pub kind: DefinitionKind,
    /// Index into `definitions` of the one that encloses it (module, class, impl, function).
    pub container: Option<u32>,
    /// The container by name where it is not an enclosing definition: the receiver of a Go method, `Foo` of `Foo::bar()` in C++.
    pub qualifier: Option<String>,
    /// The whole item, its doc comment, attributes and decorators included.
    pub range: ByteRange,
    /// The name.
    pub name_range: ByteRange,
    /// From the first token of the item (after doc and attributes) up to its body.
    pub signature: ByteRange,
    /// The doc comment or docstring, if there is one.
    pub doc: Option<ByteRange>,
}

impl Definition {
    /// Changes where it is.
    pub(super) fn each_range(&mut self, change: impl Fn(&mut ByteRange)) {
        change(&mut self.range);
        change(&mut self.name_range);
        change(&mut self.signature);
        self.doc.iter_mut().for_each(change);
    }
}

/// What a definition is. The numbers are stored; they never change their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum DefinitionKind {
    /// A free function, or a macro-like command in shells.
    Function = 1,
    /// A function that belongs to a type.
    Method = 2,
    /// What makes a value of a type.
    Constructor = 3,
    /// A class, object or actor.
    Class = 4,
    /// A struct, record or data type.
    Struct = 5,
    /// An enumeration or sum type.
    Enum = 6,
    /// One case of an enumeration or sum type.
    Variant = 7,
    /// An interface, protocol or type class.
    Interface = 8,
    /// A trait or mixin.
    Trait = 9,
    /// An implementation or extension of a type defined elsewhere.
    Impl = 10,
    /// A type alias or associated type.
    TypeAlias = 11,
    /// A union.
    Union = 12,
    /// A constant.
    Constant = 13,
    /// A variable at module or file level.
    Variable = 14,
    /// A field of a type.
    Field = 15,
    /// A property with accessors.
    Property = 16,
    /// A macro.
    Macro = 17,
    /// A module, namespace or package.
    Module = 18,
    /// A test case known by its form (`#[test]`, `it("…")`, `test "…" do`).
    Test = 19,
    /// A key of a data file or a section of one.
    Key = 20,
    /// A selector or rule of a style sheet.
    Rule = 21,
    /// An element with an id, or a component of a template.
    Element = 22,
    /// A table, view, index, trigger or other object of a database schema.
    Table = 23,
    /// A section heading of a prose document.
    Section = 24,
    /// A target of a build file.
    Target = 25,
}

impl DefinitionKind {
    /// In the order of their numbers, which begin with 1.
    const ALL: [Self; 25] = [
        Self::Function,
        Self::Method,
        Self::Constructor,
        Self::Class,
        Self::Struct,
        Self::Enum,
        Self::Variant,
        Self::Interface,
        Self::Trait,
        Self::Impl,
        Self::TypeAlias,
        Self::Union,
        Self::Constant,
        Self::Variable,
        Self::Field,
        Self::Property,
        Self::Macro,
        Self::Module,
        Self::Test,
        Self::Key,
        Self::Rule,
        Self::Element,
        Self::Table,
        Self::Section,
        Self::Target,
    ];

    /// The kind with this stored number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }

    /// Whether it has statements in it: variables inside are local.
    pub fn is_callable(self) -> bool {
        matches!(
            self,
            Self::Function | Self::Method | Self::Constructor | Self::Macro | Self::Test | Self::Property
        )
    }

    /// Whether it is a part of data, markup or a schema.
    pub fn is_data(self) -> bool {
        matches!(self, Self::Key | Self::Rule | Self::Element | Self::Table)
    }

    /// Whether functions in it are methods.
    pub fn is_type(self) -> bool {
        matches!(
            self,
            Self::Class
                | Self::Struct
                | Self::Enum
                | Self::Variant
                | Self::Interface
                | Self::Trait
                | Self::Impl
                | Self::TypeAlias
                | Self::Union
        )
    }
}

/// A mention of a name that is defined here or elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The bare name as written: the last segment of a path or member access.
    pub name: String,
    /// The segment before it where there is one: `foo` of `foo.bar()` and `foo::bar`.
    pub qualifier: Option<String>,
    /// How it is mentioned.
    pub kind: ReferenceKind,
    /// Where the bare name stands.
    pub range: ByteRange,
}

/// How a name is mentioned. The numbers are stored; they never change their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ReferenceKind {
    /// It is called.
    Call = 1,
    /// It stands where a type stands.
    Type = 2,
    /// A type is extended, implemented or mixed in.
    Inherit = 3,
    /// A macro is used.
    Macro = 4,
    /// An attribute, annotation or decorator.
    Attribute = 5,
    /// It is named otherwise: a value passed on, a constant read.
    Name = 6,
}

/// A statement that brings in another module or file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// The module, path or file as written, quotes removed.
    pub module: String,
    /// What is taken from it; empty when it is the module as a whole. `*` is everything; an empty name is the module as
    /// a whole under another name.
    pub names: Vec<ImportedName>,
    /// Whether it is handed on (`pub use`, `export … from`).
    pub is_reexport: bool,
    /// The whole statement.
    pub range: ByteRange,
}

/// One name taken from a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedName {
    /// Its name there.
    pub name: String,
    /// Its name here, if another.
    pub alias: Option<String>,
}

/// A heading of a prose document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heading {
    /// 1 is the outermost.
    pub level: u8,
    /// Its text without markup.
    pub title: String,
    /// From the heading to the next of the same or a higher rank.
    pub range: ByteRange,
}

/// A piece of a blob that is found as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The text.
    pub range: ByteRange,
    /// 1-based first line.
    pub start_line: u32,
    /// 1-based last line with text on it, inclusive: blank lines at the end of the range do not count.
    pub end_line: u32,
    /// What it holds.
    pub kind: ChunkKind,
    /// Index into `definitions` of the definition it is about: the one it holds or is a part of. A chunk of merged small items names the first.
    pub definition: Option<u32>,
    /// 0 for a whole item or the first part of a split one, then 1, 2, …
    pub part: u16,
}

/// What a chunk holds. The numbers are stored; they never change their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ChunkKind {
    /// One callable item, or a part of one.
    Function = 1,
    /// A type, or its head (fields, the declaration without the methods that have chunks of their own).
    Type = 2,
    /// Several small items together.
    Items = 3,
    /// Imports, licence headers, statements at file level.
    Module = 4,
    /// A test case.
    Test = 5,
    /// A section of a prose document.
    Section = 6,
    /// Keys and values of a data file, a style sheet, a schema.
    Data = 7,
    /// A window of lines of a file without structure.
    Window = 8,
}

impl ChunkKind {
    /// The kind with this stored number.
    pub fn from_number(number: u8) -> Option<Self> {
        [
            Self::Function,
            Self::Type,
            Self::Items,
            Self::Module,
            Self::Test,
            Self::Section,
            Self::Data,
            Self::Window,
        ]
        .into_iter()
        .find(|kind| *kind as u8 == number)
    }
}
