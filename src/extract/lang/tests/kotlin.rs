use super::*;

#[test]
fn kotlin_words_that_are_modifiers_elsewhere_hide_nothing() {
    let words = [
        "abstract",
        "crossinline",
        "dynamic",
        "external",
        "final",
        "infix",
        "inline",
        "internal",
        "lateinit",
        "noinline",
        "open",
        "override",
        "private",
        "protected",
        "public",
        "sealed",
        "tailrec",
        "vararg",
    ];
    let bodies = [
        "WORD = true\n        x()",
        "menu.onClick { WORD -> WORD.close() }",
        "x = WORD\n        val next = 1",
        "a.WORD\n        val next = 1",
        "if (!WORD) return WORD",
    ];
    for (word, body) in words
        .iter()
        .flat_map(|word| bodies.iter().map(move |body| (word, body)))
    {
        let body = body.replace("WORD", word);
        let text = format!("class S {{\n    fun t() {{\n        {body}\n    }}\n    fun u() {{}}\n}}\nclass After\n");
        let expected = ["Class S", "Method S.t", "Method S.u", "Class After"];
        assert_eq!(outlined("a.kt", &text), expected, "{text}");
    }
}

#[test]
fn kotlin_modifiers_stay_modifiers() {
    let text = "class A {\n    val block = suspend { 1 }\n    val f: suspend (Int) -> Unit = {}\n    open\n    fun a() { open = 1 }\n    \
                private inline fun <T> b(noinline c: () -> T, vararg d: T) {}\n    var e = 1\n        private set\n}\n\
                internal sealed class B\nactual class C\nactual constructor(actual val d: Int) {\n    fun e() {}\n}\n\
                private val g = object : X {\n    override fun h() {}\n}\nfun tail() {}\n";
    assert_eq!(
        outlined("a.kt", text),
        [
            "Class A",
            "Field A.block",
            "Field A.f",
            "Method A.a",
            "Method A.b",
            "Field A.e",
            "Class B",
            "Class C",
            "Field C.d",
            "Method C.e",
            "Variable g",
            "Function g.h",
            "Function tail"
        ]
    );
}

#[test]
fn kotlin_syntax_that_the_grammar_lacks_hides_nothing() {
    let bodies = [
        "val s = \"$\" + x.startsWith(\"$\")",
        "val s = \"costs 5$\"",
        "val s = $$\"\"\"$ref $$name\"\"\"",
        "val array = ByteArray(1)\n    get(array)",
        "val array = ByteArray(1)\n    set(array, 1)",
        "val id = rows.insert {\n        x()\n    } get rows.id",
        "val size = rows.first() get (rows.size)",
        "val host = \"a\"\n    get {\n        x()\n    }",
        "val all = 1\n    set { all }",
        "val left = 1\n    by.close()",
        "val left = 1\n    where?.let { x() }\n    where = left",
        "suspend(1)",
        "suspend(1)\n    val f: suspend (A).() -> Unit = {}",
        "say(\"\"\"to \"me\"\"\"\", \"\"\"\"you\" too\"\"\")",
        "val s = $$\"${a-b:} $${c}\"",
        "val s = $$\"\"\"${a-b:} \"${c d} $$e\"\"\"",
        "when (x) {\n        is Int if (\n            x > 1 &&\n                x < 9\n            ) -> y()\n    }",
        "suspend(1)\n    val o = object : B(\"b\", c = d) { }",
    ];
    for body in bodies {
        let text = format!("fun before() {{\n    {body}\n}}\n\nclass A {{\n    fun a() {{}}\n}}\n");
        assert_eq!(
            outlined("a.kt", &text),
            ["Function before", "Class A", "Method A.a"],
            "{text}"
        );
    }
    let text = "public class A<S>\n@Api\ninternal constructor(val b: S) {\n    var c: Int\n        get() = 1\n        set(value) { x = value }\n    \
                public companion object Plugin : Key<A> {\n        fun d() {}\n    }\n    companion object {\n        fun e() {}\n    }\n}\n\
                @Target(X)\npublic annotation class F\n";
    let expected = [
        "Class A",
        "Field A.b",
        "Property A.c",
        "Class A.Plugin",
        "Method A.Plugin.d",
        "Method A.e",
        "Class F",
    ];
    assert_eq!(outlined("a.kt", text), expected);
}

#[test]
fn kotlin_modifiers_below_a_name_hide_nothing() {
    let text = "class A<out T>\n@Api internal constructor(@Api internal val b: T) {\n    public class C\n    \
                internal constructor(internal val d: Int, private val e: Int) :\n        F<C>, G {\n        var h: Int = 1\n    }\n    \
                var i: Int\n        get() = 1\n        @Suppress(\"x\") // as it is\n        set(value) {\n            x = value\n        }\n    \
                var j: K.() -> Unit = {}\n        @Deprecated(\n            \"l\",\n            level = M\n        )\n        set\n    \
                val n\n        @OptIn(O::class)\n        get() = p()\n    \
                class Q {\n        constructor(r: Int)\n        private constructor(s: String)\n    }\n}\nfun tail() {}\n";
    let expected = [
        "Class A",
        "Field A.b",
        "Class A.C",
        "Field A.C.d",
        "Field A.C.e",
        "Field A.C.h",
        "Property A.i",
        "Field A.j",
        "Property A.n",
        "Class A.Q",
        "Constructor A.Q.constructor",
        "Constructor A.Q.constructor",
        "Function tail",
    ];
    assert_eq!(outlined("a.kt", text), expected);
}

#[test]
fn kotlin_declarations_below_annotations_are_not_expressions() {
    let declarations = [
        ("annotation class A", "Class A"),
        ("public annotation class A", "Class A"),
        ("actual typealias A = b.C", "TypeAlias A"),
        ("expect object A {\n    val b: Int\n}", "Class A"),
        ("actual abstract class A", "Class A"),
        ("class A private constructor()", "Class A"),
    ];
    let annotations = [
        "@Marker",
        "@Target(B.CLASS, B.FIELD)",
        "@Marker\n@Target(\n    B.CLASS,\n)",
        "@Marker // why\n@Retention(value = B)\n@c.D",
    ];
    for (annotation, (declaration, expected)) in annotations
        .iter()
        .flat_map(|annotation| declarations.iter().map(move |declaration| (annotation, declaration)))
    {
        let text = format!("/** One. */\n{annotation}\n{declaration}\n\n/** Two. */\n@Marker\nannotation class Z\n");
        let found = outlined("a.kt", &text);
        assert!(found.iter().any(|name| name == expected), "{text}: {found:?}");
        assert_eq!(found.last().map(String::as_str), Some("Class Z"), "{text}");
    }
    let text = "fun a() {\n    val b = @Marker object : C {}\n    run(@Marker fun(d: Int) = d)\n    @Marker e { 1 }\n}\n@Marker\nfun f() {}\n";
    assert_eq!(
        referred("a.kt", text)
            .iter()
            .filter(|one| *one == "Attribute Marker")
            .count(),
        4
    );
}

#[test]
fn kotlin_files_with_a_nul_byte_are_read_to_the_end() {
    let padding = "// a line of a long file\n".repeat(400);
    let text = format!("{padding}val nul = \"\0\"\nfun tail() {{}}\n");
    assert_eq!(outlined("a.kt", text), ["Variable nul", "Function tail"]);
}
