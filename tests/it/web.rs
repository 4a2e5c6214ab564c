//! `codescout web`: who is let in, what each page shows, and that the text of a repository is no markup.

use std::io::{BufRead as _, BufReader};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{Child, Stdio};

use reqwest::blocking::{Client, RequestBuilder, Response};
use reqwest::redirect::Policy;

use crate::cli::command;
use crate::support::{TestRepo, kill};

/// A running server, with the cookie of a person who was let in.
pub(crate) struct Web {
    child: Child,
    address: String,
    code: String,
    cookie: String,
    client: Client,
}

fn client() -> Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().no_proxy().redirect(Policy::none()).build().unwrap()
}

impl Drop for Web {
    fn drop(&mut self) {
        kill(&mut self.child);
    }
}

impl Web {
    fn start(repo: &TestRepo) -> Self {
        Self::with(repo.root(), &[])
    }

    fn with(folder: &Path, options: &[&str]) -> Self {
        let mut child = command(folder, &[&["web"], options].concat())
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap())
            .lines()
            .map_while(Result::ok);
        let listening = lines.find(|line| line.contains("listening at")).unwrap();
        let address = listening.split(['/', ';']).nth(2).unwrap().to_owned();
        let typed = lines.find(|line| line.contains("type the code")).unwrap();
        let code = typed.rsplit(' ').next().unwrap().to_owned();
        // The pipe stays open as long as the server writes to it.
        std::thread::spawn(move || lines.for_each(drop));
        Self {
            child,
            address,
            code,
            cookie: String::new(),
            client: client(),
        }
    }

    fn entered(repo: &TestRepo) -> Self {
        Self::entered_with(repo.root(), &[])
    }

    pub(crate) fn entered_with(folder: &Path, options: &[&str]) -> Self {
        let mut web = Self::with(folder, options);
        let answer = web.enter(&web.code.clone());
        let cookie = answer.headers()["set-cookie"].to_str().unwrap();
        web.cookie = cookie.split(';').next().unwrap().to_owned();
        web
    }

    fn enter(&self, code: &str) -> Response {
        let url = format!("http://{}/-/open", self.address);
        self.client.post(url).body(format!("code={code}")).send().unwrap()
    }

    fn request(&self, path: &str) -> RequestBuilder {
        self.client
            .get(format!("http://{}{path}", self.address))
            .header("cookie", &self.cookie)
    }

    pub(crate) fn page(&self, path: &str) -> (u16, String) {
        let answer = self.request(path).send().unwrap();
        (answer.status().as_u16(), answer.text().unwrap())
    }
}

const EVIL: &str = "<img src=x onerror=alert(1)>\u{202e}.py";

fn sample() -> TestRepo {
    let repo = TestRepo::new(
        "
        //- src/shop.py
        from helper import tax

        class Cart:
            \"\"\"<script>alert(2)</script>\"\"\"

            def total(self):
                return tax(self.sum())

            def sum(self):
                return 1
        //- src/helper.py
        def tax(amount):
            return amount * 0.2
        //- README.md
        # Shop <script>alert(3)</script>
        //- picture.svg
        <svg xmlns=\"http://www.w3.org/2000/svg\"><script>alert(4)</script></svg>
        //- .env
        SECRET_KEY=hunter2hunter2hunter2
        ",
    );
    repo.write(EVIL, "def evil(): pass\n");
    repo.commit("all <b>at once</b>");
    repo.rename("src/helper.py", "src/taxes.py");
    let shop = String::from_utf8(repo.read("src/shop.py")).unwrap();
    repo.write("src/shop.py", shop.replace("helper", "taxes"));
    repo.commit("move");
    repo
}

#[test]
fn only_the_person_with_the_code_comes_in_once() {
    let repo = sample();
    let web = Web::start(&repo);
    assert_eq!(web.page("/").0, 403);
    assert_eq!(web.enter("wrong").status(), 403);
    let answer = web.enter(&web.code);
    assert_eq!(answer.status(), 200);
    let cookie = answer.headers()["set-cookie"].to_str().unwrap().to_owned();
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"),
        "{cookie}"
    );
    assert_eq!(web.enter(&web.code).status(), 403);
    let cookie = cookie.split(';').next().unwrap();
    let get = |headers: &[(&str, &str)]| {
        let mut request = web
            .client
            .get(format!("http://{}/", web.address))
            .header("cookie", cookie);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.send().unwrap().status().as_u16()
    };
    assert_eq!(get(&[]), 303);
    assert_eq!(get(&[("host", "evil.example")]), 403);
    assert_eq!(get(&[("sec-fetch-site", "cross-site")]), 403);
    assert_eq!(
        get(&[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")]),
        200
    );
    let posted = web
        .client
        .post(format!("http://{}/", web.address))
        .header("cookie", cookie)
        .send()
        .unwrap();
    assert_eq!(posted.status(), 405);
}

#[test]
fn each_page_shows_what_it_is_about() {
    let repo = sample();
    let web = Web::entered(&repo);
    for (path, contains) in [
        ("/repo/-/tree/WORKTREE:", ">src/</a>"),
        ("/repo/-/tree/HEAD:src", ">shop.py</a>"),
        ("/repo/-/tree/HEAD:src/shop.py", "id=\"L8\""),
        ("/repo/-/file/HEAD:src", ">shop.py</a>"),
        // A call leads to the definition in the other file.
        (
            "/repo/-/file/HEAD:src/shop.py",
            "class=\"ref\" href=\"/repo/-/file/HEAD:src/taxes.py#L1\">tax</a>",
        ),
        (
            "/repo/-/file/HEAD~1:src/shop.py",
            "class=\"ref\" href=\"/repo/-/file/HEAD~1:src/helper.py#L1\">tax</a>",
        ),
        (
            "/repo/-/file/HEAD:src/shop.py",
            "class=\"def\" href=\"/repo/-/def/HEAD:src/shop.py?name=Cart.total\"",
        ),
        ("/repo/-/def/HEAD:src/taxes.py?name=tax", "<b>tax</b>"),
        ("/repo/-/def/HEAD:src/taxes.py?name=tax", ">Cart.total</text>"),
        ("/repo/-/search/HEAD?q=tax+amount", "/repo/-/file/HEAD:src/taxes.py#L1"),
        ("/repo/-/search/HEAD", "Type words"),
        ("/repo/-/history/HEAD:src/taxes.py?name=tax", "moved"),
        ("/repo/-/history/HEAD:src/helper.py", "deleted"),
        ("/repo/-/blame/HEAD:src/shop.py", "Cart.total"),
        ("/repo/-/graph/HEAD:src/taxes.py?name=tax&op=callers", "Cart.total"),
        ("/repo/-/outline/HEAD:src/shop.py", "Cart"),
        ("/repo/-/review/HEAD~1..HEAD", "Moved, documented or formatted"),
        ("/repo/-/review/HEAD~1^..HEAD~1", "added"),
        ("/repo/-/review/HEAD^..HEAD", "<pre tabindex=\"0\">move\n</pre>"),
        ("/repo/-/history/HEAD:src/taxes.py", "%5E.."),
        ("/repo/-/refs", "/repo/-/tree/main:"),
        ("/repo/-/at/HEAD:src/shop.py?pos=7:16", "def tax"),
    ] {
        let (status, page) = web.page(path);
        assert_eq!(status, 200, "{path}: {page}");
        assert!(page.contains(contains), "{path}: {page}");
        assert!(
            page.contains("rel=\"canonical\"")
                || path.contains("WORKTREE")
                || path.contains("review")
                || path.ends_with("search/HEAD")
                || path.ends_with("refs"),
            "{path}: {page}"
        );
    }
    let answer = web.request("/").send().unwrap();
    assert_eq!(
        (answer.status().as_u16(), answer.headers()["location"].to_str().unwrap()),
        (303, "/repo/-/tree/WORKTREE:")
    );
    let (_, json) = web.page("/repo/-/graph/HEAD:src/taxes.py?name=tax&format=json");
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["results"][0]["from"], "src/shop.py#Cart.total");
    for path in [
        "/repo/-/file/HEAD:src/gone.py",
        "/repo/-/nothing/HEAD:",
        "/repo/-/tree/nowhere:",
        "/other/-/tree/HEAD:",
        "/x",
        "/repo/-/def/HEAD:src/shop.py?name=No",
    ] {
        assert_eq!(web.page(path).0, 404, "{path}");
    }
    assert_eq!(web.page("/repo/-/search/HEAD?q=tax&mode=guess").0, 400);
    assert!(
        web.page("/repo/-/file/HEAD:src/helper.py")
            .1
            .contains("href=\"/repo/-/history/HEAD:src/helper.py\"")
    );
}

#[test]
fn text_of_the_repository_is_no_markup() {
    let repo = sample();
    let web = Web::entered(&repo);
    let evil = "%3Cimg%20src%3Dx%20onerror%3Dalert%281%29%3E%E2%80%AE.py";
    for path in [
        "/repo/-/tree/WORKTREE:".to_owned(),
        format!("/repo/-/file/WORKTREE:{evil}"),
        format!("/repo/-/def/WORKTREE:{evil}?name=evil"),
        "/repo/-/file/WORKTREE:src/shop.py".to_owned(),
        "/repo/-/def/WORKTREE:src/shop.py?name=Cart".to_owned(),
        "/repo/-/search/WORKTREE?q=%3Cscript%3Ealert".to_owned(),
        "/repo/-/search/WORKTREE?q=evil".to_owned(),
        "/repo/-/history/HEAD:".to_owned(),
        "/repo/-/review/HEAD~1..HEAD".to_owned(),
        format!("/repo/-/file/HEAD:{evil}%3Cscript%3E"),
        "/repo/-/tree/%3Cscript%3E:".to_owned(),
        "/repo/-/%3Cscript%3E/HEAD:".to_owned(),
    ] {
        let answer = web.request(&path).send().unwrap();
        let policy = answer.headers()["content-security-policy"].to_str().unwrap().to_owned();
        assert!(
            policy.starts_with("default-src 'none'") && !policy.contains("unsafe"),
            "{policy}"
        );
        assert_eq!(answer.headers()["x-content-type-options"], "nosniff");
        let page = answer.text().unwrap();
        assert!(
            page.matches("<script").count() == 1 && !page.contains("<img") && !page.contains('\u{202e}'),
            "{path}: {page}"
        );
    }
    let raw = web.request("/repo/-/raw/HEAD:picture.svg").send().unwrap();
    assert_eq!(raw.headers()["content-type"], "text/plain; charset=utf-8");
    assert!(
        raw.headers()["content-security-policy"]
            .to_str()
            .unwrap()
            .starts_with("sandbox")
    );
    assert!(raw.text().unwrap().starts_with("<svg"));
    for path in [
        "/repo/-/file/WORKTREE:.env",
        "/repo/-/raw/WORKTREE:.env",
        "/repo/-/raw/HEAD:.env",
        "/repo/-/search/WORKTREE?q=hunter2hunter2hunter2",
    ] {
        let (_, page) = web.page(path);
        assert!(!page.contains("SECRET_KEY=hunter2"), "{path}: {page}");
    }
}

/// Each line would be an element, and drawing them would take seconds.
#[test]
fn long_files_have_few_elements() {
    let repo = TestRepo::new("//- a.py\nx = 1\n");
    repo.write("long.py", "x = 1\n".repeat(100_000));
    repo.write("wide.py", format!("x = '{}'\n", "y".repeat(1_000_000)));
    repo.write("large.py", "x = 1\n".repeat(300_000));
    repo.commit("long");
    let web = Web::entered(&repo);
    let (status, page) = web.page("/repo/-/file/HEAD:long.py");
    assert_eq!(status, 200);
    assert!(page.matches('<').count() / 2 < 10_000, "{}", page.matches('<').count());
    assert!(page.contains("100000 x = 1") || page.contains(">100000</a> x = 1"));
    assert!(web.page("/repo/-/file/HEAD:wide.py").1.len() < 20_000);
    let (status, page) = web.page("/repo/-/file/HEAD:long.py?blame=1");
    assert_eq!(
        (status, page.matches("class=\"strip\"").count()),
        (200, 1 + 98_000 / 500)
    );
    let (status, large) = web.page("/repo/-/file/HEAD:large.py?blame=1");
    assert!(status == 200 && large.contains("class=\"unknown\""), "{status}");
    assert!(page.matches('<').count() / 2 < 10_000, "{}", page.matches('<').count());
}

/// A tree can be a folder of the repository, in which the names of its files say less.
#[test]
fn credentials_of_a_folder_stay_hidden() {
    let repo = TestRepo::new(
        "
        //- .aws/credentials
        aws_secret_access_key = hunter2hunter2
        //- a.py
        x = 1
        ",
    );
    repo.commit("start");
    let web = Web::entered(&repo);
    let tree = repo.rev_parse("HEAD:.aws");
    for path in [
        "/repo/-/raw/HEAD:.aws/credentials".to_owned(),
        format!("/repo/-/raw/{}:credentials", tree),
        format!("/repo/-/file/{}:credentials", tree),
        format!("/repo/-/search/{}?q=hunter2hunter2", tree),
    ] {
        let (_, page) = web.page(&path);
        assert!(!page.contains("aws_secret"), "{path}: {page}");
    }
}

#[test]
fn connections_that_send_nothing_do_not_block_pages() {
    let repo = sample();
    let web = Web::entered(&repo);
    let connect = || std::net::TcpStream::connect(&web.address).unwrap();
    let _silent: Vec<std::net::TcpStream> = (0..200).map(|_| connect()).collect();
    let page = || web.request("/repo/-/tree/WORKTREE:").send();
    // The connection that sent the code has no cookie, and can be closed while the client uses it again.
    let answer = page().or_else(|_| page()).unwrap();
    assert_eq!(answer.status().as_u16(), 200);
}

/// Returns the links of a page that contain a text.
pub(crate) fn links<'a>(page: &'a str, part: &str) -> Vec<&'a str> {
    let starts = page.split("href=\"").skip(1);
    let links = starts.filter_map(|rest| rest.split('"').next());
    links.filter(|link| link.contains(part)).collect()
}

/// Paths are encoded byte by byte, also where answers quote them.
#[test]
fn paths_that_are_not_utf8_have_links() {
    let repo = TestRepo::new("//- a.py\nx = 1\n");
    let path = std::ffi::OsStr::from_bytes(b"caf\xe9.py");
    repo.write(path, "def brew_espresso(): pass\ndef serve(): brew_espresso()\n");
    repo.commit("add");
    repo.write(path, "def brew_espresso(): return 1\ndef serve(): brew_espresso()\n");
    repo.commit("change");
    let web = Web::entered(&repo);
    for page in [
        "tree/HEAD:",
        "search/HEAD?q=brew_espresso",
        "history/HEAD:caf%E9.py",
        "history/HEAD:",
        "blame/HEAD:caf%E9.py",
        "outline/HEAD:caf%E9.py",
        "file/HEAD:caf%E9.py?blame=1",
        "def/HEAD:caf%E9.py?name=brew_espresso",
        "graph/HEAD:caf%E9.py?name=brew_espresso&amp;op=impact",
        "review/HEAD~1..HEAD",
        "life/HEAD:",
    ] {
        let (status, text) = web.page(&format!("/repo/-/{page}"));
        assert_eq!(status, 200, "{page}: {text}");
        let found = links(&text, "caf%E9.py");
        assert!(
            !found.is_empty() && !text.contains("href=\"/repo/-/file/HEAD:%22"),
            "{page}: {text}"
        );
        assert!(!text.contains('\u{f00e9}'), "{page}: {text}");
        for link in found {
            let link = link.split('#').next().unwrap().replace("&amp;", "&");
            assert_eq!(web.page(&link).0, 200, "{page}: {link}");
        }
    }
}

#[test]
fn the_life_page_counts_commits_as_the_history_does() {
    let repo = TestRepo::new("//- a.py\nx = 1\n");
    repo.branch("topic");
    repo.write("a.py", "x = 2\n");
    repo.commit("change a");
    repo.checkout("topic");
    repo.write("b.py", "y = 1\n");
    repo.commit("add b");
    repo.checkout("main");
    repo.merge("topic");
    repo.rename("b.py", "c.py");
    repo.git(["add", "-A"]);
    repo.git(["commit", "-qm", "move", "--date=2001-02-03T04:05:06Z"]);
    let web = Web::entered(&repo);
    let (_, life) = web.page("/repo/-/life/HEAD:");
    for path in ["a.py", "c.py"] {
        let (_, history) = web.page(&format!("/repo/-/history/HEAD:{path}"));
        assert!(history.contains("2 commits"), "{history}");
        assert!(life.contains(&format!("{path}: 1 line, 2 commits")), "{life}");
    }
    assert!(life.contains("c.py: 1 line, 2 commits, last on 2001-02-03"), "{life}");
}

#[test]
fn a_review_of_nothing_offers_others() {
    let repo = sample();
    let web = Web::entered(&repo);
    let (_, page) = web.page("/repo/-/review");
    let head = repo.rev_parse("HEAD").to_string();
    assert!(
        page.contains("Nothing changed") && !page.contains("0 definitions"),
        "{page}"
    );
    assert_eq!(links(&page, &format!("review/{head}%5E..{head}")).len(), 1, "{page}");
    assert!(web.page("/repo/-/review/HEAD..WORKTREE").1.contains("Nothing changed."));
}

#[test]
fn equal_names_in_a_picture_have_their_paths() {
    let repo =
        TestRepo::new("//- a.py\ndef f(): pass\ndef g(): f()\n//- b.py\nfrom a import f\ndef g(): f()\ndef h(): f()\n");
    let (_, page) = Web::entered(&repo).page("/repo/-/def/HEAD:a.py?name=f");
    for label in [">a.py#g</text>", ">b.py#g</text>", ">h</text>"] {
        assert!(page.contains(label), "{label}: {page}");
    }
}

#[test]
fn the_code_of_a_definition_is_colored() {
    let repo = sample();
    let web = Web::entered(&repo);
    let (_, page) = web.page("/repo/-/def/HEAD:src/shop.py?name=Cart");
    assert!(page.contains("<span class=\"keyword\">return</span> tax("), "{page}");
    assert!(
        page.contains("<span class=\"string\">&quot;&quot;&quot;&lt;script&gt;"),
        "{page}"
    );
}

#[test]
fn the_history_of_a_definition_is_drawn() {
    let repo = sample();
    let args = ["history", "src/taxes.py#tax", "--format", "svg"];
    let drawn = crate::cli::call(&repo, &args).expect(0);
    let svg = drawn.text();
    assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"), "{svg}");
    assert!(
        svg.contains(">src/helper.py#tax</text>") && svg.contains(">src/taxes.py#tax</text>"),
        "{svg}"
    );
    assert!(svg.contains("aria-label=\"src/taxes.py#tax: 2 changes from "), "{svg}");
    assert!(
        drawn.stderr.contains("definition src/taxes.py#tax: 2 commits"),
        "{}",
        drawn.stderr
    );
    let refused = crate::cli::call(&repo, &["history", ".", "--format", "svg"]).expect(2);
    assert!(refused.stderr.contains("omit --format"), "{}", refused.stderr);
    let (_, page) = Web::entered(&repo).page("/repo/-/history/HEAD:src/taxes.py?name=tax");
    let marks = links(&page, "%5E..").len();
    assert!(page.contains("<figure><svg") && marks == 4, "{page}");
}

#[test]
fn a_file_shows_the_commit_of_each_line_on_request() {
    let repo = sample();
    let web = Web::entered(&repo);
    let (_, page) = web.page("/repo/-/file/HEAD:src/shop.py");
    assert_eq!(links(&page, "src/shop.py?blame=1").len(), 1, "{page}");
    let (_, page) = web.page("/repo/-/file/HEAD:src/shop.py?blame=1");
    let strip = page
        .split("<pre class=\"strip\">")
        .nth(1)
        .unwrap()
        .split("</pre>")
        .next()
        .unwrap();
    assert_eq!(
        (strip.matches("class=\"age").count(), strip.matches('\n').count()),
        (2, 10),
        "{strip}"
    );
    assert!(strip.contains(": move\""), "{strip}");
}

#[test]
fn the_index_page_draws_what_is_indexed() {
    let repo = sample();
    repo.write("poetry.lock", "x = 1\n");
    repo.commit("lock");
    let (_, page) = Web::entered(&repo).page("/repo/-/index/HEAD:");
    assert!(
        page.contains(">python</text>") && page.contains(">3 indexed</text>"),
        "{page}"
    );
    assert!(page.contains(">1 lock file</text>"), "{page}");
}

#[test]
fn a_search_can_be_narrowed_to_folders_and_languages() {
    let repo = sample();
    repo.write("lib/tax.rs", "/// The tax of an amount.\nfn tax() {}\n");
    repo.commit("more");
    let web = Web::entered(&repo);
    let (_, page) = web.page("/repo/-/search/HEAD?q=tax");
    assert_eq!(links(&page, "q=tax&amp;path=").len(), 2, "{page}");
    let (_, page) = web.page("/repo/-/search/HEAD?q=tax&lang=rust");
    assert!(page.contains("lib/tax.rs") && !page.contains("taxes.py"), "{page}");
    let (_, page) = web.page("/repo/-/search/HEAD?q=tax&path=src");
    assert!(page.contains("taxes.py") && !page.contains("lib/tax.rs"), "{page}");
    assert_eq!(links(&page, "search/HEAD?q=tax").len(), 1, "any folder: {page}");
}

#[test]
fn the_life_page_lists_long_files_that_change_often() {
    let repo = sample();
    let web = Web::entered(&repo);
    let (_, page) = web.page("/repo/-/life/HEAD:");
    assert!(
        page.contains("<svg") && page.contains("src/shop.py: 10 lines, 2 commits"),
        "{page}"
    );
    let (_, page) = web.page("/repo/-/life/HEAD:src");
    assert!(page.contains("taxes.py") && !page.contains("README.md"), "{page}");
    assert!(web.page("/repo/-/index/HEAD:").1.contains("references"));
    assert_eq!(web.page("/-/help").0, 200);
}
