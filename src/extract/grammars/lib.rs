//! The grammars of tree-sitter that are built in. Their parse tables are stored compressed; see `build.rs`.

use std::sync::Once;

use tree_sitter_language::LanguageFn;

struct Grammar {
    name: &'static str,
    language: LanguageFn,
    set_tables: unsafe extern "C" fn(*const u16, *const u16),
    /// The dense parse table, and the small one, compressed by zstd.
    compressed: &'static [u8],
    /// The numbers in the dense table, and in both.
    lengths: (usize, usize),
    are_set: Once,
}

macro_rules! grammars {
    ($(($name:literal, $language:ident, $set_tables:ident, $n_dense:literal, $n_numbers:literal);)*) => {
        unsafe extern "C" {
            $(
                fn $language() -> *const ();
                fn $set_tables(dense: *const u16, small: *const u16);
            )*
        }

        static GRAMMARS: [Grammar; <[&str]>::len(&[$($name),*])] = [
            $(Grammar {
                name: $name,
                // SAFETY: the function is that of a grammar.
                language: unsafe { LanguageFn::from_raw($language) },
                set_tables: $set_tables,
                compressed: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".zst")),
                lengths: ($n_dense, $n_numbers),
                are_set: Once::new(),
            },)*
        ];
    };
}

include!(concat!(env!("OUT_DIR"), "/grammars.rs"));

/// Returns true if a grammar is built in.
pub fn is_built(name: &str) -> bool {
    GRAMMARS.iter().any(|grammar| grammar.name == name)
}

/// Returns the language of a grammar, and decompresses its tables if this is the first call. Returns `None` if the
/// grammar is not built in.
pub fn language(name: &str) -> Option<LanguageFn> {
    let grammar = GRAMMARS.iter().find(|grammar| grammar.name == name)?;
    grammar.are_set.call_once(|| {
        let (n_dense, n_numbers) = grammar.lengths;
        let bytes = zstd::bulk::decompress(grammar.compressed, n_numbers * 2).expect("the build script wrote it");
        let numbers = bytes
            .chunks_exact(2)
            .map(|bytes| u16::from_le_bytes([bytes[0], bytes[1]]));
        let (dense, small) = numbers.collect::<Vec<u16>>().leak().split_at(n_dense);
        // SAFETY: the tables are never freed. Nothing reads those of the language before `call_once` returns.
        unsafe { (grammar.set_tables)(dense.as_ptr(), small.as_ptr()) };
    });
    Some(grammar.language)
}
