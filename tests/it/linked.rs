//! Tests questions about several repositories: `--linked`, `sdk:path`, and their limits.

use std::path::Path;

use serde_json::{Value, json};

use crate::cli::{Called, call_in, command};
use crate::mcp::Client;
use crate::support::{InTime, TestRepo};

fn call(repo: &TestRepo, args: &[&str]) -> Called {
    call_in(repo.root(), args, b"")
}

/// Links a repository as the user would.
fn link(repo: &TestRepo, name: &str, place: &str) {
    call(repo, &["config", "set", &format!("linked.{name}"), place]).expect(0);
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A library and a program that uses it.
fn pair() -> (TestRepo, TestRepo) {
    let library = TestRepo::new(
        "
        //- pyproject.toml
        [project]
        name = \"shapes\"
        //- src/shapes/__init__.py
        from .area import area
        //- src/shapes/area.py
        def area(shape):
            \"\"\"Computes the surface of a shape.\"\"\"
            return shape.width * shape.height
        //- .env
        TOKEN=canary-of-the-library
        ",
    );
    let program = TestRepo::new(
        "
        //- app/main.py
        from shapes import area

        def paint(shape):
            return area(shape) * 2
        //- app/other.py
        def area(x):
            return x

        def use():
            return area(1)
        ",
    );
    link(&program, "shapes", text(library.root()));
    (library, program)
}

/// Returns the paths and scores of a search.
fn hits(repo: &TestRepo, query: &str, options: &[&str]) -> Vec<(f64, String)> {
    let args = [&["search", query, "--json", "-n", "10"], options].concat();
    let found = call(repo, &args).json();
    let hits = found["results"].as_array().unwrap().iter().map(|hit| {
        let path = hit["path"].as_str().unwrap();
        let path = path.rsplit_once(":/").map_or(path, |(_, path)| path);
        let place = format!("{path}:{}", hit["start_line"]);
        (hit["score"].as_f64().unwrap(), place)
    });
    hits.collect()
}

#[test]
fn parts_of_a_repository_rank_as_the_whole() {
    const LICENCE: &str = "# Licence\n\nPermission is granted to copy the store.\n";
    let words = [
        "store", "index", "token", "read", "write", "flush", "page", "cache", "merge", "split", "query",
    ];
    let whole = TestRepo::empty();
    let parts: Vec<TestRepo> = (0..3).map(|_| TestRepo::empty()).collect();
    let mut random = 7_u64;
    let mut word = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        words[(random >> 33) as usize % words.len()]
    };
    for number in 0..30 {
        let path = format!("{}/{}_{number}.py", word(), word());
        let functions = (0..4).map(|_| {
            let (a, b, c, d) = (word(), word(), word(), word());
            format!("def {a}_{b}({c}):\n    \"\"\"Will {b} the {d} of a {c}.\"\"\"\n    return {d}({c}, {a})\n\n")
        });
        let content: String = functions.collect();
        for repo in [&whole, &parts[number % 3]] {
            repo.write(&path, &content);
            repo.write(format!("licences/{}.md", number % 3), LICENCE);
        }
    }
    for repo in parts.iter().chain([&whole]) {
        repo.commit("first");
    }
    link(&parts[0], "one", text(parts[1].root()));
    link(&parts[0], "two", text(parts[2].root()));
    for query in [
        "flush the cache of a page",
        "store_index",
        "permission to copy",
        "merge",
        "where is a token written",
        "\"read(\"",
    ] {
        for mode in ["auto", "keyword", "semantic"] {
            let expected = hits(&whole, query, &["--mode", mode]);
            let found = hits(&parts[0], query, &["--mode", mode, "--linked"]);
            assert!(!expected.is_empty(), "{query}");
            assert_eq!(found.len(), expected.len(), "{query} {mode}");
            for ((score, place), (of_whole, _)) in found.iter().zip(&expected) {
                assert!(
                    (score - of_whole).abs() < 1e-5,
                    "{query} {mode} {place}: {score} {of_whole}"
                );
            }
            // Among equal scores, the order is by repository.
            let last = expected.last().unwrap().0;
            let above = |hits: &[(f64, String)]| {
                let above = hits.iter().filter(|(score, _)| score - last > 1e-5);
                let mut places: Vec<String> = above.map(|(_, place)| place.clone()).collect();
                places.sort_unstable();
                places
            };
            assert_eq!(above(&found), above(&expected), "{query} {mode}");
        }
    }
}

#[test]
fn a_question_includes_linked_repositories_on_request() {
    let (library, program) = pair();
    let alone = call(&program, &["search", "surface of a shape", "--json"]).json();
    assert!(!alone.to_string().contains("shapes:/"), "{alone}");
    let both = call(&program, &["search", "surface of a shape", "--json", "--linked"])
        .expect(0)
        .json();
    assert_eq!(both["results"][0]["path"], "shapes:/src/shapes/area.py", "{both}");
    assert_eq!(both["results"][0]["repo"], "shapes");
    assert_eq!(both["linked"][0]["name"], "shapes");
    assert_eq!(both["linked"][0]["commit"], library.rev_parse("HEAD"));
    assert_eq!(both["complete"], true);

    let found = call(&program, &["grep", "shape.width", "--linked"]).expect(0).text();
    assert!(found.starts_with("shapes:/src/shapes/area.py:3"), "{found}");
    call(&program, &["grep", "shape.width"]).expect(1);

    // An edit that is not committed counts too.
    library.write("src/shapes/volume.py", "def volume(shape):\n    return 3\n");
    let found = call(&program, &["symbol", "volume", "--linked=shapes"]).expect(0);
    assert!(
        found.text().contains("shapes:/src/shapes/volume.py:1"),
        "{}",
        found.text()
    );
    assert!(found.stderr.contains("1 file not committed"), "{}", found.stderr);
}

#[test]
fn copies_in_several_repositories_are_one_result() {
    let (library, program) = pair();
    let copy = library.read("src/shapes/area.py");
    program.write("copied/area.py", copy);
    let found = call(&program, &["search", "surface of a shape", "--linked", "--json"]).json();
    let results = found["results"].as_array().unwrap();
    let paths = |value: &Value| value["path"].as_str().unwrap().to_owned();
    let about: Vec<&Value> = results.iter().filter(|hit| paths(hit).ends_with("/area.py")).collect();
    assert_eq!(about.len(), 1, "{found:#}");
    let mut places: Vec<String> = about[0]["places"].as_array().unwrap().iter().map(paths).collect();
    places.push(paths(about[0]));
    places.sort();
    assert_eq!(places, ["copied/area.py", "shapes:/src/shapes/area.py"]);
}

#[test]
fn callers_are_found_across_repositories() {
    let (_library, program) = pair();
    for target in ["shapes:/src/shapes/area.py#area", "shapes:src/shapes/area.py#area"] {
        let callers = call(&program, &["graph", "callers", target, "--linked"])
            .expect(0)
            .text();
        assert!(callers.contains("app/main.py:4 import call paint"), "{callers}");
        assert!(!callers.contains("other.py:5"), "{callers}");
    }
    let impact = call(
        &program,
        &["graph", "impact", "shapes:src/shapes/area.py#area", "--linked"],
    )
    .expect(0);
    assert!(impact.text().contains("paint"), "{}", impact.text());
    let callees = call(&program, &["graph", "callees", "paint", "--linked", "--json"])
        .expect(0)
        .text();
    assert!(callees.contains("shapes:/src/shapes/area.py"), "{callees}");
}

#[test]
fn a_target_can_be_in_a_linked_repository() {
    let (library, program) = pair();
    let read = call(&program, &["read", "shapes:src/shapes/area.py:1"])
        .expect(0)
        .text();
    assert_eq!(read, "def area(shape):\n");
    let history = call(&program, &["history", "shapes:src/shapes/area.py", "--json"])
        .expect(0)
        .json();
    assert_eq!(
        history["repo"],
        text(&library.root().canonicalize().unwrap()),
        "{history}"
    );
    let blame = call(&program, &["blame", "shapes:src/shapes/area.py"]).expect(0).text();
    assert!(blame.contains("area"), "{blame}");
}

#[test]
fn links_that_cannot_be_used_make_an_answer_incomplete() {
    let (library, program) = pair();
    let long = TestRepo::sha256("//- long.py\ndef area_of_sha256():\n    pass\n");
    let bare = library.bare_clone("mirror.git");
    link(&program, "away", "/nowhere/at/all");
    link(&program, "itself", ".");
    link(&program, "again", text(library.root()));
    link(&program, "long", text(long.root()));
    link(&program, "bare", &format!("{}#HEAD", text(bare.root())));
    // A link back is not followed.
    link(&library, "program", text(program.root()));
    let found = call(&program, &["search", "area_of_sha256", "--json", "--linked"])
        .expect(0)
        .json();
    assert_eq!(found["results"][0]["path"], "long:/long.py", "{found}");
    let reasons = found["incomplete_because"].to_string();
    for part in [
        "away is not searched",
        "itself is not searched",
        "shapes is the same as again",
    ] {
        assert!(reasons.contains(part), "{reasons}");
    }
    let names: Vec<&Value> = found["linked"]
        .as_array()
        .unwrap()
        .iter()
        .map(|linked| &linked["name"])
        .collect();
    assert_eq!(names, ["again", "bare", "long"], "{found}");
    assert_eq!(found["linked"][1]["ref"], "HEAD");

    let wrong = call(&program, &["search", "area", "--linked=shape"]).expect(2);
    assert!(
        wrong.stderr.contains("\"shape\"") && wrong.stderr.contains("shapes"),
        "{}",
        wrong.stderr
    );
    call(&program, &["config", "set", "scopes.drawing", "shapes, long"]).expect(0);
    let scope = call(&program, &["search", "area", "--json", "--linked=drawing"])
        .expect(0)
        .json();
    assert_eq!(scope["linked"].as_array().unwrap().len(), 2, "{scope}");
    assert_eq!(scope["complete"], true);
}

#[test]
fn a_repository_cannot_link_by_itself() {
    let library = TestRepo::new("//- area.py\ndef area(): pass\n");
    let clone = TestRepo::empty();
    clone.write(
        ".codescout.toml",
        format!("[linked]\nsdk = \"{}\"\n", text(library.root())),
    );
    clone.commit("first");
    let refused = call(&clone, &["search", "area", "--linked"]).expect(2);
    assert!(
        refused.stderr.contains("linked.sdk can only be set by"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_server_reads_no_linked_repository_outside_its_roots() {
    let (library, program) = pair();
    let question = json!({"query": "surface of a shape", "repos": ["*"]});
    let mut narrow = Client::legacy(&program, &[]);
    let refused = narrow.call("search", question.clone()).facts;
    assert_eq!(refused["complete"], false, "{refused}");
    assert!(refused.to_string().contains("shapes is not searched"), "{refused}");
    assert!(!refused.to_string().contains("area.py"), "{refused}");

    let roots = library.root().parent().unwrap().canonicalize().unwrap();
    let mut wide = Client::legacy(&program, &["--root", text(&roots)]);
    for _ in 0..2 {
        let found = wide.call("search", question.clone()).facts;
        assert_eq!(found["results"][0]["path"], "shapes:/src/shapes/area.py", "{found}");
        assert_eq!(found["results"][0]["repo"], "shapes", "{found}");
    }
    for question in [
        json!({"query": "canary-of-the-library", "mode": "regex", "repos": ["*"]}),
        json!({"query": "canary-of-the-library", "repos": ["shapes"]}),
    ] {
        let found = wide.call("search", question).facts;
        assert_eq!(found["results"], json!([]), "{found}");
    }
    let read = wide.call("read", json!({"target": "shapes:.env"})).failure();
    assert!(!read.contains("canary"), "{read}");
    let read = wide.call("read", json!({"target": "shapes:src/shapes/area.py"})).text;
    assert!(read.contains("def area"), "{read}");
    let read = narrow
        .call("read", json!({"target": "shapes:src/shapes/area.py"}))
        .failure();
    assert!(!read.contains("def area"), "{read}");
}

/// A repository with packages of several package managers.
fn monorepo() -> TestRepo {
    TestRepo::new(
        "
        //- Cargo.toml
        [workspace]
        members = [\"crates/*\"]
        exclude = [\"crates/old\"]
        [workspace.dependencies]
        core-store = { path = \"crates/core\" }
        //- crates/core/Cargo.toml
        [package]
        name = \"core-store\"
        //- crates/core/src/lib.rs
        pub fn open_store() {}
        //- crates/cli/Cargo.toml
        [package]
        name = \"cli\"
        [dependencies]
        store = { package = \"core-store\", workspace = true }
        helper = { path = \"../../tools/helper\" }
        //- crates/cli/src/main.rs
        fn main() { store::open_store(); }
        //- crates/old/Cargo.toml
        [package]
        name = \"old\"
        //- crates/cli/tests/data/Cargo.toml
        [package]
        name = \"fixture\"
        //- tools/helper/Cargo.toml
        [package]
        name = \"helper\"
        //- tools/helper/src/lib.rs
        pub fn help_store() {}
        //- web/pnpm-workspace.yaml
        packages:
          - 'apps/*'
          # not this one
          - \"!apps/draft\"
        //- web/package.json
        {\"name\": \"web-root\", \"private\": true}
        //- web/apps/site/package.json
        {\"name\": \"site\", \"dependencies\": {\"ui\": \"workspace:*\", \"react\": \"^19\"}}
        //- web/apps/site/store.js
        export function open_store() {}
        //- web/apps/ui/package.json
        {\"name\": \"ui\"}
        //- web/apps/draft/package.json
        {\"name\": \"draft\"}
        //- web/apps/site/test/broken/package.json
        {oops
        //- go/go.work
        go 1.22
        use (
            ./api
            ./server // the server
        )
        //- go/api/go.mod
        module example.com/api
        //- go/server/go.mod
        module example.com/server
        require (
            example.com/api v0.0.0
        )
        //- go/spare/go.mod
        module example.com/spare
        //- java/pom.xml
        <project><artifactId>parent</artifactId><modules><module>lib</module></modules></project>
        //- java/lib/pom.xml
        <project><parent><artifactId>parent</artifactId></parent><artifactId>lib</artifactId></project>
        //- java/lib/src/test/resources/pom.xml
        <project><artifactId>sample</artifactId></project>
        //- android/settings.gradle.kts
        include(\":app\", \":core:data\")
        //- android/app/build.gradle.kts
        dependencies { implementation(project(\":core:data\")) }
        //- android/core/data/build.gradle.kts
        plugins { }
        //- android/samples/build.gradle.kts
        plugins { }
        //- py/pyproject.toml
        [project]
        name = \"My.Tool\"
        dependencies = [\"my-lib>=1\"]
        [tool.uv.workspace]
        members = [\"libs/*\"]
        //- py/libs/lib/pyproject.toml
        [project]
        name = \"my_lib\"
        //- net/App/App.csproj
        <Project><ItemGroup><ProjectReference Include=\"..\\\\Lib\\\\Lib.csproj\" /></ItemGroup></Project>
        //- net/Lib/Lib.csproj
        <Project></Project>
        ",
    )
}

#[test]
fn packages_are_those_of_the_package_managers() {
    let repo = monorepo();
    let found = call(&repo, &["outline", "--view", "packages", "--json"])
        .expect(0)
        .json();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let rows = found["results"].as_array().unwrap().iter().map(|row| {
        let needs: Vec<String> = row["needs"].as_array().unwrap().iter().map(text).collect();
        format!(
            "{} {} {} [{}]",
            text(&row["path"]),
            text(&row["manager"]),
            text(&row["name"]),
            needs.join(" ")
        )
    });
    let rows: Vec<String> = rows.collect();
    assert_eq!(
        rows,
        [
            "android/app gradle :app [:core:data]",
            "android/core/data gradle :core:data []",
            "crates/cli cargo cli [core-store helper]",
            "crates/core cargo core-store []",
            "go/api go example.com/api []",
            "go/server go example.com/server [example.com/api]",
            "java maven parent []",
            "java/lib maven lib [parent]",
            "net/App dotnet App [Lib]",
            "net/Lib dotnet Lib []",
            "py python my-tool [my-lib]",
            "py/libs/lib python my-lib []",
            "tools/helper cargo helper []",
            "web npm web-root []",
            "web/apps/site npm site [ui]",
            "web/apps/ui npm ui []",
        ],
        "{found}"
    );
    assert_eq!(found["complete"], true, "{found}");
}

#[test]
fn a_question_can_be_about_one_package() {
    let repo = monorepo();
    let files = |options: &[&str]| {
        let found = call(&repo, &[&["grep", "_store", "--json"], options].concat()).json();
        let rows = found["results"].as_array().unwrap().iter();
        let mut paths: Vec<String> = rows.map(|row| row["path"].as_str().unwrap().to_owned()).collect();
        paths.dedup();
        paths
    };
    assert_eq!(files(&["--package", "cli"]), ["crates/cli/src/main.rs"]);
    let with_needed = [
        "crates/cli/src/main.rs",
        "crates/core/src/lib.rs",
        "tools/helper/src/lib.rs",
    ];
    assert_eq!(files(&["--package", "cli+deps"]), with_needed);
    assert_eq!(files(&["-p", "package:site"]), ["web/apps/site/store.js"]);
    let search = call(&repo, &["search", "open_store", "--package", "site", "--json"])
        .expect(0)
        .json();
    assert_eq!(search["results"][0]["path"], "web/apps/site/store.js", "{search}");
    let wrong = call(&repo, &["search", "x", "--package", "sites"]).expect(2);
    assert!(wrong.stderr.contains("did you mean site"), "{}", wrong.stderr);
}

#[test]
fn impact_is_counted_by_package() {
    let repo = monorepo();
    let impact = call(
        &repo,
        &["graph", "impact", "crates/core/src/lib.rs#open_store", "--json"],
    )
    .json();
    assert_eq!(
        impact["packages"],
        json!([{"name": "cli", "definitions": 1, "tests": 0}]),
        "{impact}"
    );
}

/// Runs the program with another home folder.
fn at_home(repo: &TestRepo, home: &Path, args: &[&str]) -> Called {
    let output = command(repo.root(), args).env("HOME", home).output_in_time().unwrap();
    Called {
        code: output.status.code().unwrap(),
        stdout: output.stdout,
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[test]
fn a_repository_is_cloned_only_from_hosts_that_the_user_allows() {
    let home = tempfile::tempdir().unwrap();
    let there = TestRepo::new("//- a.py\ndef area_there():\n    pass\n");
    let here = TestRepo::new("//- .codescout.toml\n[clone]\nhosts = \"file\"\n");
    let address = format!("file://{}", there.root().display());
    let grep = |text: &str| at_home(&here, home.path(), &["grep", text, "--repo", &address, "--json"]);
    let refused = grep("area_there").expect(2);
    assert!(
        refused.stderr.contains("cloning from file is not allowed"),
        "{}",
        refused.stderr
    );
    let other = at_home(
        &here,
        home.path(),
        &["search", "x", "--repo", "https://example.invalid/a.git"],
    )
    .expect(2);
    assert!(
        other.stderr.contains("config set --user clone.hosts example.invalid"),
        "{}",
        other.stderr
    );
    assert!(!home.path().join(".cache").exists());

    at_home(
        &there,
        home.path(),
        &["config", "set", "--user", "clone.hosts", "example.org, file"],
    )
    .expect(0);
    let found = grep("area_there").expect(0).json();
    assert_eq!(found["results"][0]["path"], "a.py", "{found}");
    there.write("a.py", "def area_later():\n    pass\n");
    there.commit("later");
    grep("area_later").expect(1);
    at_home(&here, home.path(), &["index", "--repo", &address]).expect(0);
    grep("area_later").expect(0);
    let gone = at_home(&here, home.path(), &["search", "x", "--repo", "file:///nowhere/at/all"]).expect(2);
    assert!(gone.stderr.contains("git clone failed"), "{}", gone.stderr);
    let folders = std::fs::read_dir(home.path().join(".cache/codescout/clones")).unwrap();
    assert_eq!(folders.count(), 1);
}

#[test]
fn libraries_are_searched_in_the_installed_version() {
    let home = tempfile::tempdir().unwrap();
    let outside = home.path().join("secret.py");
    std::fs::write(&outside, "def canary_outside(): pass\n").unwrap();
    let registry = home.path().join(".cargo/registry/src/index.crates.io-1");
    let put = |path: std::path::PathBuf, content: &str| {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    };
    put(
        registry.join("shapes-1.2.3/Cargo.toml"),
        "[package]\nname = \"shapes\"\n",
    );
    put(
        registry.join("shapes-1.2.3/src/lib.rs"),
        "pub fn area_of_shape() -> u32 { 1 }\n",
    );
    put(
        registry.join("shapes-1.2.4/src/lib.rs"),
        "pub fn area_of_later() -> u32 { 1 }\n",
    );
    put(
        home.path().join("go/pkg/mod/example.com/!big/math@v1.0.0/go.mod"),
        "module example.com/Big/math\n",
    );
    put(
        home.path().join("go/pkg/mod/example.com/!big/math@v1.0.0/area.go"),
        "package math\n\nfunc AreaOfCircle() int { return 1 }\n",
    );
    let project = || {
        let repo = TestRepo::new(
            "
            //- .gitignore
            node_modules
            .venv
            //- Cargo.toml
            [package]
            name = \"app\"
            [dependencies]
            shapes = \"1\"
            //- Cargo.lock
            [[package]]
            name = \"app\"
            version = \"0.1.0\"
            [[package]]
            name = \"shapes\"
            version = \"1.2.3\"
            source = \"registry+https://example.org\"
            [[package]]
            name = \"../../../secret\"
            version = \"1\"
            source = \"registry+https://example.org\"
            //- src/main.rs
            fn main() { shapes::area_of_shape(); }
            //- go.mod
            module example.com/app
            require (
            \texample.com/Big/math v1.0.0 // indirect
            )
            ",
        );
        put(
            repo.path("node_modules/tri/package.json"),
            "{\"name\": \"tri\", \"version\": \"2.0.0\"}",
        );
        put(
            repo.path("node_modules/tri/index.js"),
            "export function areaOfTriangle() {}\n",
        );
        std::os::unix::fs::symlink(home.path(), repo.path("node_modules/evil")).unwrap();
        let packages = repo.path(".venv/lib/python3.12/site-packages");
        put(
            packages.join("quad-3.0.dist-info/RECORD"),
            "quad/__init__.py,sha256=x,1\n../../../../../secret.py,,\n",
        );
        put(
            packages.join("quad/__init__.py"),
            "def area_of_square():\n    return 1\n",
        );
        repo
    };
    let repo = project();
    for (query, path) in [
        ("area_of_shape", "lib:/shapes-1.2.3/src/lib.rs"),
        ("AreaOfCircle", "lib:/example.com_Big_math-v1.0.0/area.go"),
        ("areaOfTriangle", "lib:/tri-2.0.0/index.js"),
        ("area_of_square", "lib:/quad-3.0/quad/__init__.py"),
    ] {
        let found = at_home(&repo, home.path(), &["symbol", query, "--linked=lib", "--json"])
            .expect(0)
            .json();
        assert_eq!(found["results"][0]["path"], path, "{found}");
    }
    for absent in ["area_of_later", "canary_outside"] {
        at_home(&repo, home.path(), &["grep", absent, "--linked=lib"]).expect(1);
    }
    let callers = at_home(
        &repo,
        home.path(),
        &["graph", "callers", "area_of_shape", "--linked=lib"],
    )
    .expect(0)
    .text();
    assert!(callers.contains("src/main.rs:1"), "{callers}");
    let read = at_home(&repo, home.path(), &["read", "lib:tri-2.0.0/index.js"])
        .expect(0)
        .text();
    assert_eq!(read, "export function areaOfTriangle() {}\n");

    // What is not here is counted each time: a crate and a link out of the project.
    for _ in 0..2 {
        let found = at_home(&repo, home.path(), &["grep", "area_of", "--linked=lib", "--json"])
            .expect(0)
            .json();
        assert_eq!(
            found["incomplete_because"],
            json!(["2 of 6 libraries are not on this machine"]),
            "{found}"
        );
    }

    // Another project with the same libraries adds nothing.
    let store = home.path().join(".cache/codescout/libs.git");
    let n_blobs = || {
        let of_project = std::fs::read_dir(store.join("refs/heads"))
            .unwrap()
            .next()
            .unwrap()
            .unwrap();
        let reference = std::fs::read_dir(of_project.path())
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path();
        let reference = reference.strip_prefix(&store).unwrap().to_owned();
        let status = at_home(
            &repo,
            home.path(),
            &["status", "--json", "--ref", text(&reference), "--repo", text(&store)],
        );
        status.expect(0).json()["blobs"].as_u64().unwrap()
    };
    let before = n_blobs();
    assert!(before > 4, "{before}");
    at_home(&project(), home.path(), &["symbol", "area_of_shape", "--linked=lib"]).expect(0);
    assert_eq!(n_blobs(), before);

    // Committed links do not lead to the packages of another project.
    let thief = TestRepo::empty();
    thief.symlink(repo.path("node_modules"), "node_modules");
    thief.symlink(repo.path(".venv"), ".venv");
    thief.commit("links");
    let refused = at_home(&thief, home.path(), &["grep", "areaOfTriangle", "--linked=lib"]);
    assert!(refused.code != 0 && refused.stdout.is_empty(), "{}", refused.text());
}

#[test]
fn two_worktrees_of_one_repository_are_both_searched() {
    let (library, program) = pair();
    let other = library.worktree("other");
    other.write("src/shapes/only_there.py", "def only_there(): pass\n");
    link(&program, "tree", text(other.root()));
    let found = call(&program, &["grep", "only_there", "--linked", "--json"])
        .expect(0)
        .json();
    assert_eq!(found["results"][0]["path"], "tree:/src/shapes/only_there.py", "{found}");
    assert_eq!(found["complete"], true, "{found}");
}

#[test]
fn options_that_do_not_reach_linked_repositories_are_refused() {
    let (_library, program) = pair();
    for option in ["--in=commits", "--in=diffs", "--all-history", "--refs=HEAD"] {
        for selection in ["--linked", "--package=shapes"] {
            let refused = call(&program, &["search", "area", option, selection]).expect(2);
            assert!(
                refused.stderr.contains("cannot be used with"),
                "{option} {selection}: {}",
                refused.stderr
            );
        }
    }
}

#[test]
fn paths_of_linked_repositories_work_in_a_folder() {
    let (_library, program) = pair();
    let folder = program.path("app");
    let call = |args: &[&str]| call_in(&folder, args, b"").expect(0).text();
    let shown = call(&["grep", "shape.width", "--linked"]);
    assert!(shown.starts_with("shapes:/src/shapes/area.py:3"), "{shown}");
    for path in ["shapes:/src/**", "shapes:src", "shapes:src/shapes/area.py"] {
        let shown = call(&["grep", "shape.width", "--linked", "-p", path]);
        assert!(shown.starts_with("shapes:/src/shapes/area.py:3"), "{path}: {shown}");
    }
    assert!(call(&["outline", "--linked", "shapes:src/shapes/area.py"]).contains("area"));
    assert!(call(&["graph", "callers", "shapes:src/shapes/area.py#area", "--linked"]).contains("main.py:4"));
}

#[test]
fn packages_of_one_name_are_told_apart() {
    let manifest = |name: &str, needs: &str| format!("[package]\nname = \"{name}\"\n[dependencies]\n{needs}\n");
    let library = TestRepo::empty();
    library.write("app/Cargo.toml", manifest("lib-app", "utils = \"1\""));
    library.write("utils/Cargo.toml", manifest("utils", ""));
    library.write("utils/src/lib.rs", "pub fn f_there() {}\n");
    library.commit("first");
    let own = TestRepo::empty();
    own.write("app/Cargo.toml", manifest("app", "utils = \"1\""));
    own.write("zz/Cargo.toml", manifest("utils", ""));
    own.write("zz/src/lib.rs", "pub fn f_here() {}\n");
    own.commit("first");
    link(&own, "aa", text(library.root()));
    for (package, path) in [("app+deps", "zz/src/lib.rs"), ("lib-app+deps", "aa:/utils/src/lib.rs")] {
        let found = call(&own, &["grep", "f_", "--linked", "--package", package, "--json"])
            .expect(0)
            .json();
        let paths: Vec<&Value> = found["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| &row["path"])
            .collect();
        assert_eq!(paths, [path], "{found}");
    }
    own.write("zz/Cargo.toml", "<<<<<<< HEAD\n");
    let broken = call(&own, &["grep", "f_", "--package", "app+deps", "--json"]).json();
    assert_eq!(
        broken["incomplete_because"],
        json!(["cannot read zz/Cargo.toml"]),
        "{broken}"
    );
}
