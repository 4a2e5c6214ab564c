//! The languages without a grammar. They have a name, and their text is split into windows of lines.

use super::{Language, Profile, Structure};
use crate::model::Lang;

const fn plain(number: u16, name: &'static str, extensions: &'static [&'static str]) -> Language {
    Language {
        name,
        lang: Lang(number),
        aliases: &[],
        extensions,
        file_names: &[],
        interpreters: &[],
        profile: Profile::MARKUP,
        structure: Structure::Lines,
    }
}

impl Language {
    const fn named(mut self, file_names: &'static [&'static str]) -> Self {
        self.file_names = file_names;
        self
    }

    const fn run_by(mut self, interpreters: &'static [&'static str]) -> Self {
        self.interpreters = interpreters;
        self
    }

    /// Marks a language whose code uses definitions of other files.
    const fn with_hidden_code(mut self) -> Self {
        self.profile.has_hidden_code = true;
        self
    }

    const fn also(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }
}

/// The languages without a grammar. Their numbers start at 200.
pub(super) const LANGUAGES: &[Language] = &[
    plain(200, "protobuf", &["proto"]).also(&["proto"]),
    plain(201, "make", &["mk", "mak"])
        .named(&["Makefile", "makefile", "GNUmakefile", "Kbuild"])
        .also(&["makefile"]),
    plain(202, "dockerfile", &["dockerfile"])
        .named(&["Dockerfile", "Containerfile"])
        .also(&["docker"]),
    plain(203, "cmake", &["cmake"]).named(&["CMakeLists.txt"]),
    plain(207, "ini", &["ini", "cfg", "conf", "properties"]).named(&[".gitconfig", ".gitmodules", ".editorconfig"]),
    plain(
        208,
        "xml",
        &[
            "xml", "xsd", "xsl", "xslt", "svg", "plist", "csproj", "vbproj", "fsproj", "props", "targets", "resx",
        ],
    ),
    plain(209, "perl", &["pl", "pm", "t"]).run_by(&["perl"]),
    plain(210, "powershell", &["ps1", "psm1", "psd1"])
        .run_by(&["pwsh"])
        .also(&["pwsh"]),
    plain(211, "batch", &["bat", "cmd"]),
    plain(212, "hcl", &["tf", "tfvars", "hcl"]).also(&["terraform"]),
    plain(213, "nix", &["nix"]),
    plain(214, "objective-c", &["m", "mm"])
        .also(&["objc"])
        .with_hidden_code(),
    plain(215, "groovy", &["groovy", "gradle", "gvy"])
        .named(&["Jenkinsfile"])
        .run_by(&["groovy"])
        .with_hidden_code(),
    plain(216, "clojure", &["clj", "cljs", "cljc", "edn"]).also(&["clj"]),
    plain(217, "erlang", &["erl", "hrl"]).run_by(&["escript"]),
    plain(218, "fsharp", &["fs", "fsi", "fsx"]).also(&["f#"]),
    plain(219, "visual-basic", &["vb", "vbs", "bas"]),
    plain(220, "julia", &["jl"]).run_by(&["julia"]),
    plain(221, "nim", &["nim", "nims"]),
    plain(222, "crystal", &["cr"]),
    plain(223, "d", &["d", "di"]),
    plain(224, "fortran", &["f", "f90", "f95", "f03", "f08", "for"]),
    plain(225, "pascal", &["pas", "pp", "dpr"]).also(&["delphi"]),
    plain(226, "lisp", &["lisp", "lsp", "el", "cl"]).also(&["elisp", "emacs-lisp", "common-lisp"]),
    plain(227, "scheme", &["scm", "ss", "rkt"]).also(&["racket"]),
    plain(228, "assembly", &["s", "asm", "nasm"]).also(&["asm"]),
    plain(229, "verilog", &["v", "vh", "sv", "svh"]).also(&["systemverilog"]),
    plain(230, "vhdl", &["vhd", "vhdl"]),
    plain(231, "cuda", &["cu", "cuh"]).with_hidden_code(),
    plain(
        232,
        "glsl",
        &["glsl", "vert", "frag", "comp", "geom", "hlsl", "wgsl", "metal"],
    )
    .also(&["shader"]),
    plain(233, "solidity", &["sol"]),
    plain(234, "graphql", &["graphql", "gql", "graphqls"]).also(&["gql"]),
    plain(235, "thrift", &["thrift"]),
    plain(236, "vim", &["vim"])
        .named(&[".vimrc", "vimrc"])
        .also(&["vimscript"]),
    plain(237, "tcl", &["tcl", "tk"]).run_by(&["tclsh", "wish"]),
    plain(238, "awk", &["awk"]).run_by(&["awk", "gawk"]),
    plain(239, "fish", &["fish"]).run_by(&["fish"]),
    plain(240, "latex", &["tex", "sty", "cls", "bib"]).also(&["tex"]),
    plain(241, "org", &["org"]),
    plain(242, "csv", &["csv", "tsv"]),
    plain(243, "diff", &["diff", "patch"]).also(&["patch"]),
    plain(244, "scss", &["scss", "sass", "less", "styl"]).also(&["sass", "less"]),
    plain(
        245,
        "template",
        &[
            "j2", "jinja", "jinja2", "erb", "ejs", "hbs", "mustache", "twig", "liquid", "tmpl", "tpl", "haml", "slim",
            "pug",
        ],
    )
    .with_hidden_code(),
    plain(246, "starlark", &["bzl", "star", "bazel"])
        .named(&["BUILD", "WORKSPACE"])
        .also(&["bazel"]),
    plain(247, "meson", &[]).named(&["meson.build", "meson_options.txt"]),
    plain(248, "autoconf", &["ac", "am", "m4", "in"]),
    plain(249, "qml", &["qml"]),
    plain(250, "gdscript", &["gd"]),
    plain(251, "elm", &["elm"]),
    plain(252, "purescript", &["purs"]),
    plain(253, "prolog", &["prolog", "pro"]),
    plain(254, "raku", &["raku", "rakumod", "p6"]),
    plain(255, "coffeescript", &["coffee"]).with_hidden_code(),
    plain(256, "just", &["just"]).named(&["justfile", "Justfile"]),
    plain(257, "ignore", &[]).named(&[
        ".gitignore",
        ".gitattributes",
        ".dockerignore",
        ".npmignore",
        ".mailmap",
    ]),
];
