//! The syntax of a language, as far as other modules need it.

use super::standard::Standard;

/// Facts about a language beyond how it is parsed.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// The marks that begin a comment that ends with the line.
    pub line_comments: &'static [&'static str],
    /// The marks around other comments.
    pub block_comment: Option<(&'static str, &'static str)>,
    /// The contexts in which indentation has a meaning.
    pub indentation: Indentation,
    /// True if `'` begins a string. In other languages it begins a lifetime or a type variable, or is an operator.
    pub has_single_quotes: bool,
    /// The marks that begin an attribute or decorator in front of a definition.
    pub attributes: &'static [&'static str],
    /// True if functions of one name can differ in their parameters.
    pub has_overloads: bool,
    /// True if the members of a type are visible in its methods without a receiver.
    pub has_implicit_this: bool,
    /// True if a module is only a clause at the start of a file.
    pub has_package_clause: bool,
    /// True if a file can be run, and then runs the code outside of its definitions.
    pub is_script: bool,
    /// True if functions are tests because of their names.
    pub has_tests_by_name: bool,
    /// True if names can contain `$`.
    pub has_dollar: bool,
    /// Words that cannot be names, separated by blanks. Definitions can be renamed only if they are known.
    pub keywords: &'static str,
    /// Names that the language binds in some places without a declaration, such as `it`, separated by blanks.
    pub implicit_names: &'static str,
    /// Members that the language and its standard library run by name, separated by blanks.
    pub run_by_name: &'static str,
    /// What belongs to the language and its standard library.
    pub standard: Standard,
    /// The members that code can add to types of other packages.
    pub extensions: Extensions,
    /// True if many names that are not those of types begin with a capital letter.
    pub has_capital_values: bool,
    /// The names that files see without including or importing each other.
    pub globals: Globals,
    /// What makes a definition visible to code outside of the repository.
    pub visibility: Visibility,
    /// True if files can have code that uses definitions of other files, but whose references are not extracted.
    pub has_hidden_code: bool,
}

/// The contexts in which indentation has a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indentation {
    /// Nowhere.
    Nowhere,
    /// Everywhere except inside brackets and after a backslash at the end of a line.
    OutsideBrackets,
    /// Everywhere.
    Everywhere,
}

/// The members that can belong to a type of another package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extensions {
    /// None.
    Nowhere,
    /// Those of traits.
    Traits,
    /// Those in blocks that extend a type.
    Blocks,
    /// Functions with a receiver before their name.
    Receivers,
    /// Any.
    Anywhere,
}

/// The names that files see without including or importing each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Globals {
    /// None, or only those of a package.
    None,
    /// Those of the namespaces around them and of the namespaces that they use.
    Namespaces,
    /// Those of the same module, and of the modules that they import; modules are folders as in Swift.
    Modules,
    /// Constants, by their full names; imports name files as in Ruby.
    Constants,
    /// Modules, by their full names or aliases of them.
    Aliases,
}

/// What makes a definition visible to code outside of the repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// All are, except those that are marked as private and those whose name begins with `_` or `#`.
    UnlessPrivate,
    /// One of these words before the name.
    Words(&'static [&'static str]),
    /// A capital letter at the start of the name.
    Capital,
    /// All are, except those that are static.
    UnlessStatic,
    /// An export.
    Exports,
}

impl Profile {
    /// Comments as in C.
    pub(super) const C_LIKE: Self = Self {
        line_comments: &["//"],
        block_comment: Some(("/*", "*/")),
        indentation: Indentation::Nowhere,
        has_single_quotes: true,
        attributes: &["#", "@", "[", "__attribute__"],
        has_overloads: false,
        has_implicit_this: false,
        has_package_clause: false,
        is_script: false,
        has_tests_by_name: false,
        has_dollar: false,
        keywords: "",
        implicit_names: "",
        run_by_name: "",
        standard: Standard::NONE,
        extensions: Extensions::Nowhere,
        has_capital_values: false,
        globals: Globals::None,
        visibility: Visibility::UnlessPrivate,
        has_hidden_code: false,
    };
    /// Comments that begin with `#`.
    pub(super) const HASH: Self = Self {
        line_comments: &["#"],
        block_comment: None,
        attributes: &["@"],
        ..Self::C_LIKE
    };
    /// Comments that begin with `--`.
    pub(super) const DASHES: Self = Self {
        line_comments: &["--"],
        attributes: &[],
        ..Self::C_LIKE
    };
    /// Prose and markup.
    pub const MARKUP: Self = Self {
        line_comments: &[],
        block_comment: Some(("<!--", "-->")),
        has_single_quotes: false,
        attributes: &["@"],
        ..Self::C_LIKE
    };

    /// Returns true if a word cannot be a name.
    pub fn is_keyword(&self, word: &str) -> bool {
        self.keywords.split_whitespace().any(|other| other == word)
    }

    /// Returns true if the language can bind a name without a declaration.
    pub fn may_bind(&self, name: &str) -> bool {
        self.implicit_names.split_whitespace().any(|other| other == name)
    }

    /// Returns true if the language or its standard library runs members with this name.
    pub fn runs(&self, name: &str) -> bool {
        self.run_by_name.split_whitespace().any(|other| other == name)
    }
}
