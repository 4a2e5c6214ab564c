//! The result of extracting a blob.

use crate::model::ByteRange;

/// Everything extracted from a blob in one language.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extraction {
    /// Number of lines in the blob. A last line without a newline counts as a line.
    pub n_lines: u32,
    /// Number of syntax errors and missing nodes that the parser reported; 1 if the blob could not be parsed.
    pub n_parse_errors: u32,
    /// The line of the first of them, from 1; 0 if there is none.
    pub first_error_line: u32,
    /// The reason why the blob was cut by lines although its language has a grammar.
    pub unparsed: Option<Unparsed>,
    /// The definitions in source order, outer before inner.
    pub definitions: Vec<Definition>,
    /// The references in source order.
    pub references: Vec<Reference>,
    /// The names that the blob binds, in source order.
    pub bindings: Vec<Binding>,
    /// The imports in source order.
    pub imports: Vec<Import>,
    /// The section headings of a prose document, in source order.
    pub headings: Vec<Heading>,
    /// The chunks in source order. Together they contain every byte of the blob.
    pub chunks: Vec<Chunk>,
}

/// The reason why a blob was not parsed. The numbers are stored on disk, so their meaning never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Unparsed {
    /// It takes more operations, or nests deeper, than code does.
    TooMuchWork = 1,
    /// The parser crashed, or took too much time or memory.
    ParserEnded = 2,
    /// No process could be started for the parser.
    NoProcess = 3,
}

impl Unparsed {
    /// Returns the reason with the given number.
    pub fn from_number(number: u8) -> Option<Self> {
        [Self::TooMuchWork, Self::ParserEnded, Self::NoProcess]
            .into_iter()
            .find(|reason| *reason as u8 == number)
    }

    /// Returns the reason as text.
    pub fn text(self) -> &'static str {
        match self {
            Self::TooMuchWork => "too much work for its length",
            Self::ParserEnded => "the parser crashed or reached its limits",
            Self::NoProcess => "no process could be started",
        }
    }
}

impl Extraction {
    /// Moves the definitions and headings by `offset` bytes.
    pub(super) fn shift(&mut self, offset: u32) {
        let shift = |range: &mut ByteRange| *range = ByteRange::new(range.start + offset, range.end + offset);
        for definition in &mut self.definitions {
            definition.each_range(shift);
        }
        for heading in &mut self.headings {
            shift(&mut heading.range);
        }
    }
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
    /// The numbers of arguments that a function takes, in languages where functions of one name differ in them.
    pub arity: Option<Arity>,
}

/// The numbers of arguments that a function takes, both inclusive. Larger numbers are [`Arity::MANY`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arity {
    /// The number without the optional ones.
    pub fewest: u8,
    /// The number with all of them.
    pub most: u8,
}

impl Arity {
    /// Any number of arguments.
    pub const MANY: u8 = u8::MAX;

    /// Returns the arity of a function with `n` parameters, of which `n_optional` can be left out.
    pub(super) fn new(n: usize, n_optional: usize) -> Self {
        let bounded = |n: usize| n.min(Self::MANY.into()) as u8;
        Self {
            fewest: bounded(n.saturating_sub(n_optional)),
            most: bounded(n),
        }
    }

    /// Like [`Self::new`], of which `n_variadic` take any number of arguments.
    pub(super) fn variadic(n: usize, n_optional: usize, n_variadic: usize) -> Self {
        let arity = Self::new(n, n_optional + n_variadic);
        let most = if n_variadic > 0 { Self::MANY } else { arity.most };
        Self { most, ..arity }
    }

    /// Returns true if the function can be called with `n` arguments.
    pub(crate) fn takes(self, n: u8) -> bool {
        (self.fewest..=self.most).contains(&n)
    }
}

impl Definition {
    /// Returns true if the definition is visible by its name in a part of the file: in a function or a block. `scope` is
    /// where its name is bound.
    pub(crate) fn is_local(&self, definitions: &[Self], scope: ByteRange) -> bool {
        let outer = self.container.map(|outer| definitions[outer as usize].kind);
        self.kind.is_scoped() && outer.map_or(scope.start > 0, DefinitionKind::is_callable)
    }

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

    /// Returns true if the definition is visible by its name in its scope, and not a member of something.
    pub fn is_scoped(self) -> bool {
        matches!(self, Self::Function | Self::Class | Self::Variable | Self::Constant)
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
    /// The segment before the name: `foo` in `foo.bar()` and `foo::bar`. Without one, `None` or a mark: the sign of the root of
    /// all names, `new`, or [`IN_LAMBDA`].
    pub qualifier: Option<String>,
    /// The kind of mention.
    pub kind: ReferenceKind,
    /// The range of the name without the qualifier.
    pub range: ByteRange,
    /// The value that the name is a member of.
    pub receiver: Value,
    /// The number of arguments of a call; at most 255. `None` for other references.
    pub n_arguments: Option<u8>,
    /// The first arguments of a call, in languages with overloads.
    pub arguments: Vec<Value>,
}

/// A value in the source, described by the reference that it comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Value {
    /// There is no value.
    #[default]
    None,
    /// A literal.
    Literal(Literal),
    /// An expression that is not described.
    Other,
    /// The result of `steps` on the value of the reference whose name starts at byte `at`.
    Of {
        /// The start of the name of a reference, in bytes.
        at: u32,
        /// What the expression does with the value of that reference.
        steps: Steps,
    },
}

/// The kind of a literal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Literal {
    /// For example a list or a regular expression.
    #[default]
    Other = 0,
    /// A string.
    String = 1,
    /// An integer.
    Integer = 2,
    /// A number with a fraction.
    Float = 3,
    /// True or false.
    Boolean = 4,
    /// A character.
    Character = 5,
    /// The absence of a value.
    Null = 6,
    /// A type, as an object.
    Class = 7,
}

impl Literal {
    /// Returns the kind with the given number.
    pub fn from_number(number: u8) -> Option<Self> {
        use Literal::{Boolean, Character, Class, Float, Integer, Null, Other, String};
        [Other, String, Integer, Float, Boolean, Character, Null, Class]
            .get(usize::from(number))
            .copied()
    }
}

/// What an expression does with the value of a reference, in order: for `users()[0]`, a call and an element of its
/// result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Steps(u8);

/// One of [`Steps`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A call, or the creation of an instance of a type.
    Call = 1,
    /// An element of a collection, by index or iteration.
    Element = 2,
    /// The content of a wrapper: `await`, `?`, `Some(x)` in a pattern.
    Unwrap = 3,
}

impl Steps {
    /// Returns the steps with `step` before them, or `None` if there are too many.
    pub(super) fn after(self, step: Step) -> Option<Self> {
        (self.0 < 1 << 6).then_some(Self(self.0 << 2 | step as u8))
    }

    /// Returns the steps with `step` at the end, or `None` if there are too many.
    pub fn then(self, step: Step) -> Option<Self> {
        let n = self.iter().count();
        (n < 4).then(|| Self(self.0 | (step as u8) << (2 * n)))
    }

    /// Returns the steps in order.
    pub fn iter(self) -> impl Iterator<Item = Step> {
        (0..4).map_while(move |at| match self.0 >> (2 * at) & 3 {
            1 => Some(Step::Call),
            2 => Some(Step::Element),
            3 => Some(Step::Unwrap),
            _ => None,
        })
    }

    /// Returns the number of the steps on disk.
    pub fn number(self) -> u8 {
        self.0
    }

    /// Returns the steps with this number.
    pub fn from_number(number: u8) -> Self {
        Self(number)
    }
}

/// A name that is bound to a value, or a fact about the value of a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The name. Empty for [`BindingKind::Return`].
    pub name: String,
    /// The kind of binding.
    pub kind: BindingKind,
    /// The byte at which the name starts.
    pub start: u32,
    /// The range in which the name is visible.
    pub scope: ByteRange,
    /// The range of the declared type, or of the return type of a function. Empty if there is none.
    pub declared: ByteRange,
    /// The form of the declared type.
    pub shape: Shape,
    /// The value.
    pub value: Value,
}

impl Binding {
    /// Applies `change` to every position of the binding.
    pub(super) fn shift(&mut self, offset: u32) {
        let shifted = |range: ByteRange| ByteRange::new(range.start + offset, range.end + offset);
        self.start += offset;
        self.scope = shifted(self.scope);
        // An absent type has no position.
        if !self.declared.is_empty() {
            self.declared = shifted(self.declared);
        }
        self.value.shift(offset);
    }
}

impl Value {
    pub(super) fn shift(&mut self, offset: u32) {
        if let Self::Of { at, .. } = self {
            *at += offset;
        }
    }
}

/// The form of a declared type, which says how its names relate to the type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Shape {
    /// The first name is the type; others are its arguments.
    #[default]
    Named = 0,
    /// An array, list or map whose elements have the type that is named last.
    Sequence = 1,
    /// Anything else, for example the type of a function.
    Opaque = 2,
}

/// The kind of a binding. The numbers are stored on disk, so their meaning never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum BindingKind {
    /// A local variable.
    Local = 1,
    /// A parameter of a function.
    Parameter = 2,
    /// The type or the value of the definition whose name starts at the same byte.
    Definition = 3,
    /// A field of the object that a method belongs to: `self.x = …`.
    Field = 4,
    /// A value that the enclosing function returns.
    Return = 5,
    /// A name under which a module exports a value: `export default x`.
    Export = 6,
    /// A type parameter. Its declared type is what bounds it.
    TypeParameter = 7,
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
    /// Any other mention of a capitalised name, for example a constant that is read.
    Name = 6,
    /// Any other mention of a name that is not capitalised, for example a function passed as an argument.
    Value = 7,
    /// A member of a value, other than a call: `x.size`.
    Member = 8,
    /// A name in a statement that imports it.
    Import = 9,
}

/// The qualifier of a name without one in a function without a name in which `this` can mean another object.
pub const IN_LAMBDA: &str = "}";

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
    /// The function, class or block in which the names are visible. `None` if that is the file or a module in it.
    pub scope: Option<ByteRange>,
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
