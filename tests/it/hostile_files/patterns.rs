//! Texts that no person writes: unclosed brackets, nested comments, deep indentation, invalid characters.

use Shape::{After, Bytes, Made, Nest, Repeat};

pub(super) enum Shape {
    /// The text, repeated.
    Repeat(&'static str),
    /// The first text, followed by the second one, repeated.
    After(&'static str, &'static str),
    /// The first text repeated, then the second text as often.
    Nest(&'static str, &'static str),
    /// Bytes that are not UTF-8, repeated.
    Bytes(&'static [u8]),
    /// The result of a function of the size.
    Made(fn(usize) -> Vec<u8>),
}

/// Returns at least `size` bytes of a shape.
pub(super) fn bytes(shape: &Shape, size: usize) -> Vec<u8> {
    match shape {
        Shape::Repeat(unit) => unit.repeat(size / unit.len() + 1).into_bytes(),
        Shape::After(head, unit) => format!("{head}{}", unit.repeat(size / unit.len() + 1)).into_bytes(),
        Shape::Nest(open, close) => {
            let n = size / (open.len() + close.len()) + 1;
            format!("{}1{}", open.repeat(n), close.repeat(n)).into_bytes()
        }
        Shape::Bytes(unit) => unit.repeat(size / unit.len() + 1),
        Shape::Made(make) => make(size),
    }
}

/// Concatenates the results of `unit` for 0, 1, 2 and so on.
fn numbered(size: usize, mut unit: impl FnMut(usize) -> String) -> Vec<u8> {
    let mut text = String::new();
    let mut i = 0;
    while text.len() < size {
        text.push_str(&unit(i));
        i += 1;
    }
    text.into_bytes()
}

/// Repeats lines whose indentation increases up to `depth`.
fn stairs(size: usize, depth: usize, line: &str) -> Vec<u8> {
    numbered(size, |i| format!("{}{line}\n", " ".repeat(i % depth)))
}

/// Repeats the words in a pseudorandom order.
fn noise(size: usize, words: &[&str]) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    numbered(size, |_| words[(next() >> 20) as usize % words.len()].to_owned())
}

#[rustfmt::skip]
/// The names and shapes of the texts.
pub(super) const PATTERNS: &[(&str, Shape)] = &[
    // Brackets.
    ("parens", Repeat("(")), ("squares", Repeat("[")), ("braces", Repeat("{")), ("angles", Repeat("<")),
    ("paren lines", Repeat("(\n")), ("square lines", Repeat("[\n")), ("brace lines", Repeat("{\n")), ("angle lines", Repeat("<\n")),
    ("closing parens", Repeat(")\n")), ("closing squares", Repeat("]\n")), ("closing braces", Repeat("}\n")), ("closing angles", Repeat(">\n")),
    ("all openers", Repeat("([{<\n")), ("all closers", Repeat(")]}>\n")), ("empty pairs", Repeat("()\n")), ("empty braces", Repeat("{}\n")),
    ("wrong pairs", Repeat("(]\n")), ("nested parens", Nest("(", ")")), ("nested squares", Nest("[", "]")), ("nested braces", Nest("{", "}")),
    ("nested paren lines", Nest("(\n", ")\n")), ("nested square lines", Nest("[\n", "]\n")), ("nested brace lines", Nest("{\n", "}\n")),
    ("nested calls", Nest("f(\n", ")\n")), ("nested generics", Nest("A<\n", ">\n")), ("half closed generics", Made(|n| format!("{}1{}", "A<\n".repeat(n / 4), ">\n".repeat(n / 8)).into_bytes())), ("open generics", Repeat("A<\n")), ("comparisons", Repeat("a<b>c\n")),
    ("nested objects", Nest("{\"a\":\n", "}\n")), ("nested arrays and objects", Nest("[{\"a\":\n", "}]\n")), ("open calls", Repeat("f(a,\n")),
    ("open indexes", Repeat("a[b\n")), ("double squares", Repeat("[[\n")), ("double braces", Repeat("{{\n")), ("dollar parens", Repeat("$(\n")), ("dollar braces", Repeat("${\n")),
    // Comments.
    ("comment openers", Repeat("/*\n")), ("comment openers in a line", Repeat("/*")), ("slash star slash", Repeat("/*/\n")), ("comment closers", Repeat("*/\n")),
    ("doc openers", Repeat("/**\n")), ("nested comments", Nest("/*\n", "*/\n")), ("line comments", Repeat("//\n")), ("hashes", Repeat("#\n")), ("hash run", Repeat("#")),
    ("dashes", Repeat("--\n")), ("haskell comments", Repeat("{-\n")), ("ocaml comments", Repeat("(*\n")), ("html comments", Repeat("<!--\n")),
    ("html comment closers", Repeat("-->\n")), ("lua comments", Repeat("--[[\n")), ("ruby comments", Repeat("=begin\n")), ("unclosed comment", After("/* ", "a b\n")),
    // Strings.
    ("double quotes", Repeat("\"")), ("single quotes", Repeat("'")), ("back quotes", Repeat("`")), ("double quote lines", Repeat("\"\n")), ("single quote lines", Repeat("'\n")),
    ("back quote lines", Repeat("`\n")), ("triple quotes", Repeat("\"\"\"\n")), ("triple single quotes", Repeat("'''\n")), ("string starts", Repeat("\"a\n")),
    ("char starts", Repeat("'a\n")), ("escapes in a string", After("\"", "\\")), ("strings", Repeat("\"a\"\n")), ("quotes of all kinds", Repeat("\"'`\n")),
    ("unclosed string", After("x = \"", "a b\n")), ("raw strings", Repeat("R\"x(\n")), ("rust raw strings", Repeat("r#\"\n")), ("rust hashes", After("r", "#")),
    ("rust hash lines", Repeat("r##\n")), ("swift raw strings", Repeat("#\"\n")), ("lua long strings", Repeat("[==[\n")), ("ocaml strings", Repeat("{a|\n")),
    ("dollar tags", Repeat("$a$\n")), ("distinct dollar tags", Made(|n| numbered(n, |i| format!("$a{i}$\n")))), ("dollars", Repeat("$$\n")),
    ("sql functions", Repeat("CREATE FUNCTION f() AS $a$\n")), ("r raw strings", Repeat("r\"---(\n")), ("sigils", Repeat("~s(\n")), ("percent words", Repeat("%w(\n")),
    ("c# raw strings", Repeat("\"\"\"\"\n")), ("verbatim strings", Repeat("@\"\n")), ("long delimiter", After("x = R\"", "a")),
    // Heredocs.
    ("heredocs", Repeat("<<A\n")), ("heredocs in a line", Repeat("a <<A <<B\n")), ("heredocs with a tilde", Repeat("<<~A\n")), ("quoted heredocs", Repeat("<<-'A'\n")),
    ("php heredocs", After("<?php\n", "<<<A\n")), ("cat heredocs", Repeat("cat <<A\n")), ("distinct heredocs", Made(|n| numbered(n, |i| format!("<<A{i}\n")))),
    ("closed heredocs in a heredoc", After("x = <<Z\n#{", "<<A\nA\n")), ("interpolated heredocs", Repeat("<<A\n#{")), ("long heredoc word", After("<<", "a")),
    ("empty heredocs", Repeat("<<''\n")), ("here strings", Repeat("<<<a\n")),
    // Interpolation.
    ("python f-strings", Repeat("f\"{")), ("python f-string lines", Repeat("f'''{\n")), ("templates", Repeat("`${")), ("template lines", Repeat("`${\n")), ("ruby interpolation", Repeat("\"#{")),
    ("ruby interpolation lines", Repeat("\"#{\n")), ("shell substitution", Repeat("\"$(")), ("shell substitution lines", Repeat("\"$(\n")), ("swift interpolation", Repeat("\"\\(")),
    ("swift interpolation lines", Repeat("\"\"\"\n\\(")), ("c# interpolation", Repeat("$\"{")), ("c# raw interpolation", Repeat("$$\"\"\"{{\n")), ("scala interpolation", Repeat("s\"${")),
    ("scala interpolation lines", Repeat("s\"\"\"${\n")), ("kotlin interpolation", Repeat("\"${")), ("kotlin interpolation lines", Repeat("\"${\n")), ("kotlin dollars", Repeat("$$\"")), ("kotlin calls", Repeat("get(")), ("kotlin accessors", Repeat("@get\n")), ("kotlin constructors", Repeat("class a\n@a constructor(")), ("php interpolation", After("<?php ", "\"{$a[")),
    ("nested templates", Nest("`${", "}`")), ("nested ruby interpolation", Nest("\"#{", "}\"")),
    // Operators and punctuation.
    ("pluses", Repeat("+")), ("plus lines", Repeat("+\n")), ("minuses", Repeat("- ")), ("stars", Repeat("*")), ("star lines", Repeat("*\n")), ("bangs", Repeat("!")), ("tildes", Repeat("~\n")),
    ("ampersands", Repeat("&")), ("ampersand lines", Repeat("&\n")), ("pipes", Repeat("|\n")), ("equals", Repeat("=\n")), ("commas", Repeat(",\n")), ("semicolons", Repeat(";\n")), ("colons", Repeat(":\n")),
    ("double colons", Repeat("::\n")), ("dots", Repeat(".")), ("dot lines", Repeat(".\n")), ("at signs", Repeat("@\n")), ("dollars alone", Repeat("$\n")), ("percents", Repeat("%\n")),
    ("carets", Repeat("^\n")), ("question marks", Repeat("?\n")), ("slashes", Repeat("/\n")), ("slash run", Repeat("/")), ("back slashes", Repeat("\\\n")), ("back slash run", Repeat("\\")), ("escaped back slashes", Repeat("\\\\\n")),
    ("sums", Repeat("a + ")), ("sum lines", Repeat("a +\n")), ("assignments", Repeat("a = ")), ("assignment lines", Repeat("a =\n")), ("members", Repeat("a.")), ("member lines", Repeat("a.\n")),
    ("arrows", Repeat("a->\n")), ("fat arrows", Repeat("a =>\n")), ("conditionals", Repeat("a ? b :\n")), ("open conditionals", Repeat("a ?\n")), ("paths", Repeat("a::")), ("path lines", Repeat("a::\n")), ("pipe operators", Repeat("a |>\n")),
    ("lists", Repeat("a,\n")), ("keys", Repeat("a:\n")), ("decorators", Repeat("@a\n")), ("attributes", Repeat("#[a\n")), ("annotations", Repeat("@A(\n")), ("lambdas", Repeat("lambda: ")), ("haskell lambdas", Repeat("\\x ->\n")),
    ("rust closures", Repeat("|x|\n")), ("ranges", Repeat("..\n")), ("labels", Repeat("'a:\n")), ("references", Repeat("&mut ")), ("pointers", Repeat("int *\n")), ("casts", Repeat("(int)\n")), ("nots", Repeat("not ")),
    ("spread", Repeat("...\n")), ("backquoted words", Repeat("`a`\n")), ("regexes", Repeat("/a/\n")), ("regex starts", Repeat("a = /\n")),
    // Words.
    ("ifs", Repeat("if a ")), ("if lines", Repeat("if (a)\n")), ("elses", Repeat("else\n")), ("if else", Repeat("if (a) {} else\n")), ("python ifs", Repeat("if x:\n")), ("elifs", After("if x:\n pass\n", "elif x:\n pass\n")),
    ("fors", Repeat("for (;;)\n")), ("whiles", Repeat("while (a)\n")), ("dos", Repeat("do\n")), ("begins", Repeat("begin\n")), ("ends", Repeat("end\n")), ("nested dos", Nest("do\n", "end\n")),
    ("cases", Repeat("case a of\n")), ("case labels", After("switch (a) {\n", "case 1:\n")), ("matches", Repeat("match x {\n")), ("tries", Repeat("try {\n")), ("classes", Repeat("class A {\n")), ("python classes", Repeat("class A:\n")),
    ("ruby classes", Repeat("class A\n")), ("ruby methods", Repeat("def f\n")), ("method starts", Repeat("def f(\n")), ("rust functions", Repeat("fn f() {\n")), ("js functions", Repeat("function f() {\n")), ("go functions", Repeat("func f() {\n")),
    ("nested functions", Nest("function f() {\n", "}\n")), ("c functions", Repeat("int f() {\n")), ("modules", Repeat("module A\n")), ("namespaces", Repeat("namespace A {\n")), ("impls", Repeat("impl A {\n")), ("structs", Repeat("struct A {\n")), ("lets", Repeat("let x = \n")),
    ("let ins", Repeat("let x = 1 in\n")), ("wheres", Repeat("f = a where\n")), ("returns", Repeat("return\n")), ("imports", Repeat("import a\n")), ("import starts", Repeat("import\n")), ("from imports", Repeat("from a import (\n")),
    ("selects", Repeat("select (\n")), ("subselects", Repeat("from (select a\n")), ("unions", Repeat("select a union\n")), ("case whens", Repeat("case when a then\n")), ("creates", Repeat("create table a (\n")), ("inserts", Repeat("insert into a values (1),\n")),
    ("conditions of C", Repeat("#if a\n")), ("conditions of C with else", Repeat("#ifdef A\n#else\n")), ("ends of C conditions", Repeat("#endif\n")), ("elifs of C", After("#if a\n", "#elif b\n")), ("macros", Repeat("#define A(\n")), ("macro continuation", After("#define A ", "\\\n")),
    ("templates of C++", Repeat("template<\n")), ("declarations", Repeat("int a\n")), ("type ascriptions", Repeat("a : b\n")), ("types of Haskell", Repeat("a :: b ->\n")), ("awaits", Repeat("await ")), ("news", Repeat("new ")), ("typeofs", Repeat("typeof ")), ("throws", Repeat("throw ")),
    ("words", Repeat("a b c\n")), ("word run", Repeat("a ")), ("lines of a word", Repeat("a\n")), ("one word", Repeat("a")), ("capitals", Repeat("A\n")), ("one number", Repeat("1")), ("numbers", Repeat("1 ")), ("number lines", Repeat("1\n")), ("number lists", Repeat("1,\n")), ("hex starts", Repeat("0x\n")), ("exponents", Repeat("1e\n")),
    ("underscores", Repeat("_\n")), ("distinct words", Made(|n| numbered(n, |i| format!("a{i}\n")))), ("function definitions", Made(|n| numbered(n, |i| format!("def f{i}():\n  return {i}\n")))),
    // Tags and markup.
    ("tags", Repeat("<a>")), ("tag lines", Repeat("<div>\n")), ("closed tags", Nest("<div>\n", "</div>\n")), ("distinct tags", Made(|n| numbered(n, |i| format!("<t{i}>\n")))), ("closing tags", Repeat("</a>\n")), ("tag starts", Repeat("<a\n")), ("attributes of tags", Repeat("<a b=\"\n")), ("many attributes", After("<a ", "b=c\n")),
    ("jsx", Nest("<a>{", "}</a>")), ("scripts", Repeat("<script>\n")), ("styles", Repeat("<style>\n")), ("script pairs", Repeat("<script>a</script>\n")), ("doctypes", Repeat("<!DOCTYPE\n")), ("entities", Repeat("&amp\n")), ("php tags", Repeat("<?php\n")), ("php pairs", Repeat("<?php ?>\n")), ("paragraphs", Repeat("<p>\n")), ("void tags", Repeat("<br>\n")), ("cdata", Repeat("<![CDATA[\n")),
    ("quotes", Repeat(">")), ("quote lines", Repeat("> ")), ("nested lists", Repeat("- ")), ("list lines", Repeat("- \n")), ("numbered lists", Repeat("1. ")), ("star lists", Repeat("* * ")), ("headings", Repeat("# a\n")), ("underlines", Repeat("a\n===\n")), ("tables", Repeat("|a|b|\n|-|-|\n")), ("table cells", Repeat("|a")), ("links", Repeat("[a](")), ("images", Repeat("![")), ("emphasis", Repeat("**a ")), ("emphasis underscores", Repeat("_a ")), ("fences", Repeat("```\n")), ("fences with languages", Repeat("```python\n")), ("link definitions", Repeat("[a]: b\n")), ("code blocks", Repeat("    a\n")),
    ("list stairs", Made(|n| stairs(n, 600, "- a"))),
    // Data.
    ("anchors", Repeat("&a ")), ("anchor lines", Repeat("- &a *a\n")), ("anchor bomb", Made(|n| numbered(n, |i| format!("a{}: &a{} [*a{i}, *a{i}]\n", i + 1, i + 1)))), ("aliases", Repeat("*a\n")), ("complex keys", Repeat("? ")), ("tags of YAML", Repeat("!!a ")), ("documents", Repeat("---\n")), ("block scalars", Repeat("a: |\n")), ("folded scalars", Repeat("- >-\n")), ("flow maps", Repeat("{a: ")), ("flow lists", Repeat("[a, ")), ("directives", Repeat("%YAML 1.2\n")),
    ("toml tables", Repeat("[a]\n")), ("toml array tables", Repeat("[[a]]\n")), ("toml arrays", Repeat("a = [\n")), ("toml inline tables", Repeat("a = {b = ")), ("dotted keys", After("a", ".a")), ("json pairs", Repeat("\"a\": 1,\n")), ("json objects", Repeat("{\"a\": 1}\n")), ("css rules", Repeat("a {\n")), ("css selectors", Repeat("a > b,\n")), ("css properties", After("a {", "b: c;\n")), ("css at rules", Repeat("@media a {\n")), ("css functions", Repeat("a{b:c(\n")),
    // Indentation.
    ("stairs", Made(|n| stairs(n, 1_200, "if x:"))), ("haskell stairs", Made(|n| stairs(n, 1_200, "do a"))), ("case stairs", Made(|n| stairs(n, 1_200, "case x of"))), ("scala stairs", Made(|n| stairs(n, 1_200, "def f ="))), ("key stairs", Made(|n| stairs(n, 1_200, "a:"))), ("word stairs", Made(|n| stairs(n, 1_200, "a"))),
    ("low stairs", Made(|n| stairs(n, 40, "if x:"))), ("zigzag", Repeat("if x:\n a\n")), ("deep zigzag", Made(|n| numbered(n, |i| format!("{}if x:\n", " ".repeat(i % 2 * 2_000))))), ("do zigzag", Repeat("f = do\n  a\n")),
    ("tabs for spaces", Made(|n| numbered(n, |i| format!("{}{}if x:\n", "\t".repeat(i % 600), " ".repeat(600 - i % 600))))), ("stairs after a return", Made(|n| numbered(n, |i| format!("\r{}if x:\n", " ".repeat(i % 1_200))))), ("stairs after a form feed", Made(|n| numbered(n, |i| format!("\x0c{}if x:\n", " ".repeat(i % 1_200))))),
    ("stairs after a back slash", Made(|n| numbered(n, |i| format!("\\\n{}if x:\n", " ".repeat(i % 1_200))))), ("stairs hidden by brackets", Made(|n| numbered(n, |i| format!("{}if a[\n]:\n", " ".repeat(i % 1_200))))), ("stairs with a string", Made(|n| numbered(n, |i| format!("{}if f'{{a}}' [\n]:\n", " ".repeat(i % 1_200))))),
    ("stairs of tabs", Made(|n| numbered(n, |i| format!("{}if x:\n", "\t".repeat(i % 600))))), ("blank lines", Repeat("\n")), ("spaces", Repeat(" ")), ("tabs", Repeat("\t")), ("space lines", Repeat("   \n")),
    // Bytes.
    ("NULs", Repeat("\0")), ("NUL lines", Repeat("a\0\n")), ("bytes 255", Bytes(b"\xff")), ("bytes 255 in lines", Bytes(b"a\xff\n")), ("surrogates", Bytes(b"\xed\xa0\x80")), ("surrogate lines", Bytes(b"a\xed\xa0\x80\n")), ("beyond Unicode", Bytes(b"\xf4\x90\x80\x80\n")), ("overlong", Bytes(b"\xc0\x80\n")), ("cut characters", Bytes(b"\xe2\x82\n")),
    ("byte order marks", Repeat("\u{feff}")), ("byte order mark lines", Repeat("\u{feff}\n")), ("line separators", Repeat("a\u{2028}")), ("next lines", Repeat("a\u{85}")), ("joiners", Repeat("\u{200d}")), ("right to left", Repeat("\u{202e}a\n")), ("letters beyond ASCII", Repeat("é\n")), ("ideographs", Repeat("漢字\n")), ("emoji", Repeat("\u{1f469}\u{200d}\u{1f467}\n")), ("private use", Repeat("\u{10ffff}\n")), ("combining", After("a", "\u{301}")),
    ("returns alone", Repeat("\r")), ("words and returns", Repeat("a\r")), ("CRLF", Repeat("\r\n")), ("vertical tabs", Repeat("\x0b")), ("form feeds", Repeat("\x0c\n")), ("no-break spaces", Repeat("\u{a0}")), ("controls", Repeat("\x01\x02\x7f\n")),
    ("random bytes", Made(|n| { let mut state = 7u32; (0..n).map(|_| { state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223); (state >> 24) as u8 }).collect() })),
    ("random brackets", Made(|n| noise(n, &["(", ")", "[", "]", "{", "}", "<", ">", "\n", " "]))),
    ("random punctuation", Made(|n| noise(n, &["+", "-", "*", "/", "=", "!", "?", ":", ";", ",", ".", "&", "|", "^", "%", "$", "#", "@", "~", "\\", "'", "\"", "`", "a", "1", "\n", " ", "(", ")", "{", "}"]))),
    ("random words", Made(|n| noise(n, &["if ", "else ", "for ", "do ", "end\n", "{", "}\n", "(", ")", "a ", "b ", "= ", ";\n", "class ", "def ", "fn ", "return ", "case ", "of ", "in ", "let ", ":\n", "\n", "  ", "\"", "'", "select ", "from "]))),
    ("conflict markers", Repeat("<<<<<<< a\n=======\n>>>>>>> b\n")), ("a long line of code", Repeat("x = f(a, b) + c[1]; ")), ("statements", Repeat("x = 1;\n")),
];
