//! Compiles the grammars without their parse tables, and compresses these. The tables are 43 MB of mostly zeros, which
//! become 2 MB.
//!
//! The grammars' own crates are linked into this script, which reads their tables. Their C sources are then compiled
//! for the target without the tables. The crate decompresses those of a language when it is first used.

use std::collections::HashMap;
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tree_sitter_language::LanguageFn;

/// A grammar that is built in.
struct Grammar {
    /// The crate with its sources.
    package: &'static str,
    /// The folder of its sources in the crate.
    folder: &'static str,
    /// The name of its C function, without `tree_sitter_`.
    name: &'static str,
    language: LanguageFn,
}

macro_rules! grammars {
    ($(($feature:literal, $package:literal, $folder:literal, $name:literal, $language:path);)*) => {
        fn grammars() -> Vec<Grammar> {
            vec![
                $(
                    #[cfg(feature = $feature)]
                    Grammar { package: $package, folder: $folder, name: $name, language: $language },
                )*
            ]
        }

        /// Returns the features of the grammars that are built in.
        fn built() -> Vec<&'static str> {
            vec![$(#[cfg(feature = $feature)] $feature,)*]
        }
    };
}

grammars! {
    ("bash", "tree-sitter-bash", "src", "bash", tree_sitter_bash::LANGUAGE);
    ("c", "tree-sitter-c", "src", "c", tree_sitter_c::LANGUAGE);
    ("cpp", "tree-sitter-cpp", "src", "cpp", tree_sitter_cpp::LANGUAGE);
    ("csharp", "tree-sitter-c-sharp", "src", "c_sharp", tree_sitter_c_sharp::LANGUAGE);
    ("css", "tree-sitter-css", "src", "css", tree_sitter_css::LANGUAGE);
    ("dart", "tree-sitter-dart", "src", "dart", tree_sitter_dart::LANGUAGE);
    ("elixir", "tree-sitter-elixir", "src", "elixir", tree_sitter_elixir::LANGUAGE);
    ("go", "tree-sitter-go", "src", "go", tree_sitter_go::LANGUAGE);
    ("haskell", "tree-sitter-haskell", "src", "haskell", tree_sitter_haskell::LANGUAGE);
    ("html", "tree-sitter-html", "src", "html", tree_sitter_html::LANGUAGE);
    ("java", "tree-sitter-java", "src", "java", tree_sitter_java::LANGUAGE);
    ("javascript", "tree-sitter-javascript", "src", "javascript", tree_sitter_javascript::LANGUAGE);
    ("json", "tree-sitter-json", "src", "json", tree_sitter_json::LANGUAGE);
    ("kotlin", "tree-sitter-kotlin-ng", "src", "kotlin", tree_sitter_kotlin_ng::LANGUAGE);
    ("lua", "tree-sitter-lua", "src", "lua", tree_sitter_lua::LANGUAGE);
    ("ocaml", "tree-sitter-ocaml", "grammars/ocaml/src", "ocaml", tree_sitter_ocaml::LANGUAGE_OCAML);
    ("ocaml", "tree-sitter-ocaml", "grammars/interface/src", "ocaml_interface", tree_sitter_ocaml::LANGUAGE_OCAML_INTERFACE);
    ("php", "tree-sitter-php", "php/src", "php", tree_sitter_php::LANGUAGE_PHP);
    ("python", "tree-sitter-python", "src", "python", tree_sitter_python::LANGUAGE);
    ("r", "tree-sitter-r", "src", "r", tree_sitter_r::LANGUAGE);
    ("ruby", "tree-sitter-ruby", "src", "ruby", tree_sitter_ruby::LANGUAGE);
    ("rust", "tree-sitter-rust", "src", "rust", tree_sitter_rust::LANGUAGE);
    ("scala", "tree-sitter-scala", "src", "scala", tree_sitter_scala::LANGUAGE);
    ("sql", "tree-sitter-sequel", "src", "sql", tree_sitter_sequel::LANGUAGE);
    ("swift", "tree-sitter-swift", "src", "swift", tree_sitter_swift::LANGUAGE);
    ("toml", "tree-sitter-toml-ng", "src", "toml", tree_sitter_toml_ng::LANGUAGE);
    ("typescript", "tree-sitter-typescript", "tsx/src", "tsx", tree_sitter_typescript::LANGUAGE_TSX);
    ("typescript", "tree-sitter-typescript", "typescript/src", "typescript", tree_sitter_typescript::LANGUAGE_TYPESCRIPT);
    ("zig", "tree-sitter-zig", "src", "zig", tree_sitter_zig::LANGUAGE);
}

/// Compression level of zstd. Higher ones save 10 %.
const LEVEL: i32 = 12;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=../../../Cargo.lock");
    let out = PathBuf::from(variable("OUT_DIR"));
    let folders = package_folders(&out);
    let mut table = String::from("grammars! {\n");
    for grammar in grammars() {
        let name = grammar.name;
        let (dense, tables) = tables(grammar.language);
        let bytes: Vec<u8> = tables.iter().flat_map(|number| number.to_le_bytes()).collect();
        let compressed = zstd::bulk::compress(&bytes, LEVEL).expect("tables can be compressed");
        fs::write(out.join(format!("{name}.zst")), compressed).expect("OUT_DIR is writable");
        let sources = folders[grammar.package].join(grammar.folder);
        compile(name, &sources, &out);
        let n_numbers = tables.len();
        writeln!(
            table,
            "    ({name:?}, tree_sitter_{name}, codescout_set_tables_{name}, {dense}, {n_numbers});"
        )
        .unwrap();
    }
    table.push_str("}\n");
    fs::write(out.join("grammars.rs"), table).expect("OUT_DIR is writable");
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}

/// Returns the folder of each package, by its name.
fn package_folders(out: &Path) -> HashMap<String, PathBuf> {
    // A copy of this package, because cargo would need all packages of the program to describe it.
    let own = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let copy = out.join("package");
    fs::create_dir_all(&copy).expect("OUT_DIR is writable");
    let manifest = fs::read_to_string(own.join("Cargo.toml")).expect("the package has a manifest");
    for (name, content) in [
        ("Cargo.toml", manifest + "\n[workspace]\n"),
        ("lib.rs", String::new()),
        ("build.rs", String::new()),
    ] {
        fs::write(copy.join(name), content).expect("OUT_DIR is writable");
    }
    fs::copy(own.join("../../../Cargo.lock"), copy.join("Cargo.lock")).expect("the program has a lock file");
    let output = Command::new(variable("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--offline",
            "--filter-platform",
            &variable("HOST"),
        ])
        .args(["--features", &built().join(",")])
        .arg("--manifest-path")
        .arg(copy.join("Cargo.toml"))
        .output()
        .expect("cargo can be run");
    assert!(
        output.status.success(),
        "cargo metadata: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
    let packages = metadata["packages"].as_array().expect("there are packages");
    let text = |value: &serde_json::Value| value.as_str().expect("a text").to_owned();
    packages
        .iter()
        .map(|package| {
            let manifest = PathBuf::from(text(&package["manifest_path"]));
            (
                text(&package["name"]),
                manifest.parent().expect("a file has a folder").to_owned(),
            )
        })
        .collect()
}

/// The first fields of `TSLanguage` in `tree_sitter/parser.h`, which all versions of it share.
#[repr(C)]
struct Language {
    abi_version: u32,
    symbol_count: u32,
    alias_count: u32,
    token_count: u32,
    external_token_count: u32,
    state_count: u32,
    large_state_count: u32,
    production_id_count: u32,
    field_count: u32,
    max_alias_sequence_length: u16,
    parse_table: *const u16,
    small_parse_table: *const u16,
    small_parse_table_map: *const u32,
}

/// Returns the dense parse table followed by the small one, and the length of the first.
fn tables(language: LanguageFn) -> (usize, Vec<u16>) {
    // SAFETY: the function returns a static `TSLanguage`, whose counts are the lengths of its tables. Each state of the
    // small table is a number of groups, and each group has a value, a number of symbols and these symbols.
    unsafe {
        let language = &*language.into_raw()().cast::<Language>();
        assert!(
            (14..=15).contains(&language.abi_version),
            "unknown version of a grammar"
        );
        let n_large = language.large_state_count as usize;
        let n_dense = n_large * language.symbol_count as usize;
        let mut n_small = 0;
        for state in 0..language.state_count as usize - n_large {
            let mut at = *language.small_parse_table_map.add(state) as usize;
            let n_groups = *language.small_parse_table.add(at);
            at += 1;
            for _ in 0..n_groups {
                at += 2 + usize::from(*language.small_parse_table.add(at + 1));
            }
            n_small = n_small.max(at);
        }
        let mut tables = std::slice::from_raw_parts(language.parse_table, n_dense).to_vec();
        if n_small > 0 {
            tables.extend_from_slice(std::slice::from_raw_parts(language.small_parse_table, n_small));
        }
        (n_dense, tables)
    }
}

/// Compiles the sources of a grammar without its tables, and with a function that sets them.
fn compile(name: &str, sources: &Path, out: &Path) {
    let path = sources.join("parser.c");
    println!("cargo:rerun-if-changed={}", path.display());
    let source = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut reduced = without_array(&source, "\nstatic const uint16_t ts_parse_table[");
    if reduced.contains("\nstatic const uint16_t ts_small_parse_table[") {
        reduced = without_array(&reduced, "\nstatic const uint16_t ts_small_parse_table[");
        reduced = replaced(&reduced, ".small_parse_table = ts_small_parse_table,", "");
    }
    reduced = replaced(&reduced, ".parse_table = &ts_parse_table[0][0],", "");
    reduced = replaced(
        &reduced,
        "static const TSLanguage language = {",
        "static TSLanguage language = {",
    );
    write!(
        reduced,
        "\nvoid codescout_set_tables_{name}(const uint16_t *dense, const uint16_t *small) {{\n  \
         TSLanguage *language = (TSLanguage *)tree_sitter_{name}();\n  \
         language->parse_table = dense;\n  language->small_parse_table = small;\n}}\n"
    )
    .unwrap();
    let folder = out.join(name);
    fs::create_dir_all(&folder).expect("OUT_DIR is writable");
    fs::write(folder.join("parser.c"), reduced).expect("OUT_DIR is writable");
    let mut build = cc::Build::new();
    build
        .std("c11")
        .warnings(false)
        .include(sources)
        .file(folder.join("parser.c"));
    let scanner = sources.join("scanner.c");
    if scanner.exists() {
        build.file(scanner);
    }
    build.compile(&format!("codescout-grammar-{name}"));
}

/// Removes an array from a C source, from the start of its declaration to the line that ends it.
fn without_array(source: &str, declaration: &str) -> String {
    const END: &str = "\n};";
    let start = source
        .find(declaration)
        .unwrap_or_else(|| panic!("no {declaration:?} in a grammar"));
    let length = source[start..].find(END).expect("the array ends");
    format!("{}{}", &source[..start], &source[start + length + END.len()..])
}

fn replaced(source: &str, old: &str, new: &str) -> String {
    assert_eq!(source.matches(old).count(), 1, "{old:?} in a grammar");
    source.replace(old, new)
}
