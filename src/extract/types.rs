//! The result of extracting a blob.

use crate::model::ByteRange;

/// Everything extracted from a blob in one language.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extraction {
    /// Number of lines in the blob. A last line without a newline counts as a line.
    pub n_lines: u32,
    /// Number of syntax errors and missing nodes that the parser reported; 0 if the file was not parsed.
    pub n_parse_errors: u32,
    /// The definitions in source order, outer before inner.
    pub definitions: Vec<Definition>,
    /// The references in source order.
    pub references: Vec<Reference>,
    /// The imports in source order.
    pub imports: Vec<Import>,
    /// The section headings of a prose document, in source order.
    pub headings: Vec<Heading>,
    /// The chunks in source order. Together they contain every byte of the blob.
    pub chunks: Vec<Chunk>,
}

/// A named entity that the blob defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The name without a qualifier: `parse`, not `Parser::parse`.
    pub name: String,
    /// The kind of definition.
    pub kind: DefinitionKind,
    /// The index in `definitions` of the enclosing definition (module, class, impl, function).
    pub container: Option<u32>,
    /// The name of the container if the container does not enclose the definition: the receiver of a Go method, or
    /// `Foo` of `Foo::bar()` in C++.
    pub qualifier: Option<String>,
    /// The range of the whole item, including its doc comment, attributes and decorators.
    pub range: ByteRange,
    /// The range of the name.
    pub name_range: ByteRange,
    /// The range from the first token of the item (after doc comment and attributes) to the body.
    pub signature: ByteRange,
    /// The range of the doc comment or docstring.
    pub doc: Option<ByteRange>,
}

impl Definition {
    /// Applies `change` to every range of the definition.
    pub(super) fn each_range(&mut self, change: impl Fn(&mut ByteRange)) {
        change(&mut self.range);
        change(&mut self.name_range);
        change(&mut self.signature);
        self.doc.iter_mut().for_each(change);
    }
}

/// The kind of a definition. The numbers are stored on disk, so their meaning never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum DefinitionKind {
    /// A function outside of a type, or a command in a shell script.
    Function = 1,
    /// A function that belongs to a type.
    Method = 2,
    /// A constructor of a type.
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
    /// A test case recognised by its form (`#[test]`, `it("…")`, `test "…" do`).
    Test = 19,
    /// A key or section of a data file.
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
    /// All kinds, ordered by number from 1.
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

    /// Returns the kind with the given number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }

    /// Returns the kind of a definition inside another: a function inside a type is a method, and a variable inside a
    /// type is a field.
    pub(super) fn within(self, owner: Option<Self>) -> Self {
        match (self, owner) {
            (Self::Function, Some(owner)) if owner.is_type() => Self::Method,
            (Self::Variable, Some(owner)) if owner.is_type() => Self::Field,
            _ => self,
        }
    }

    /// Returns true if definitions of this kind contain statements, so that variables inside them are local.
    pub fn is_callable(self) -> bool {
        matches!(
            self,
            Self::Function | Self::Method | Self::Constructor | Self::Macro | Self::Test | Self::Property
        )
    }

    /// Returns true if definitions of this kind are parts of data, markup or a schema.
    pub fn is_data(self) -> bool {
        matches!(self, Self::Key | Self::Rule | Self::Element | Self::Table)
    }

    /// Returns true if functions inside definitions of this kind are methods.
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

/// A mention of a name, which may be defined in this blob or elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The last segment of a path or member access, as written.
    pub name: String,
    /// The segment before the name: `foo` in `foo.bar()` and `foo::bar`. `None` if there is no such segment.
    pub qualifier: Option<String>,
    /// The kind of mention.
    pub kind: ReferenceKind,
    /// The range of the name without the qualifier.
    pub range: ByteRange,
}

/// The kind of a reference. The numbers are stored on disk, so their meaning never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ReferenceKind {
    /// A call of a function or method.
    Call = 1,
    /// A name used as a type.
    Type = 2,
    /// A type that is extended, implemented or mixed in.
    Inherit = 3,
    /// A use of a macro.
    Macro = 4,
    /// A use of an attribute, annotation or decorator.
    Attribute = 5,
    /// Any other mention, for example an argument or a constant that is read.
    Name = 6,
}

/// A statement that imports another module or file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// The module, path or file as written, without quotes.
    pub module: String,
    /// The names imported from the module. Empty if the module is imported as a whole. The name `*` imports all names.
    /// An empty name imports the module as a whole under an alias.
    pub names: Vec<ImportedName>,
    /// True for a re-export (`pub use`, `export … from`).
    pub is_reexport: bool,
    /// The range of the whole statement.
    pub range: ByteRange,
}

/// One name imported from a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedName {
    /// The name in the module.
    pub name: String,
    /// The name in this file, if it differs.
    pub alias: Option<String>,
}

/// A heading of a prose document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heading {
    /// The level of the heading; 1 is the outermost.
    pub level: u8,
    /// The text of the heading without markup.
    pub title: String,
    /// The range from this heading to the next heading of the same or a higher rank.
    pub range: ByteRange,
}

/// A part of a blob that is indexed and found as a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The range of the chunk.
    pub range: ByteRange,
    /// The first line, 1-based.
    pub start_line: u32,
    /// The last line that is not blank, 1-based and inclusive.
    pub end_line: u32,
    /// The kind of content.
    pub kind: ChunkKind,
    /// The index in `definitions` of the definition that the chunk consists of or is part of. If several small items
    /// were merged, the first of them.
    pub definition: Option<u32>,
    /// The part number of a split item, from 0. Always 0 for a whole item.
    pub part: u16,
}

/// The kind of a chunk's content. The numbers are stored on disk, so their meaning never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ChunkKind {
    /// A function, or a part of one.
    Function = 1,
    /// A type, or only its declaration and fields if its methods have chunks of their own.
    Type = 2,
    /// Several small items that were merged.
    Items = 3,
    /// Imports, licence headers and statements at file level.
    Module = 4,
    /// A test case.
    Test = 5,
    /// A section of a prose document.
    Section = 6,
    /// Keys and values of a data file, a style sheet or a schema.
    Data = 7,
    /// A window of lines of an unstructured file.
    Window = 8,
}

impl ChunkKind {
    /// Returns the kind with the given number.
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
