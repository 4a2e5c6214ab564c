#!/usr/bin/env python3
"""Opens the pages of `codescout web` in Chromium, for a small repository with hostile names, messages and text.

usage: browser.py CODESCOUT CHROMEDRIVER AXE [SCREENS]

AXE is the script of axe-core. Each page is opened in light and dark, at 1,280 and 360 pixels, as a person who came in by keyboard.
A page fails if axe finds a violation, if it is wider than the window, if the console has a line, if a script of the
repository ran, if anything but the server is asked, or if it does not print. SCREENS is a folder for a picture of each.
"""
import base64, json, os, re, subprocess, sys, tempfile, time, urllib.error, urllib.parse, urllib.request

program, chromedriver, axe = (os.path.abspath(path) if os.path.exists(path) else path for path in sys.argv[1:4])
screens = sys.argv[4] if len(sys.argv) > 4 else None
AXE = open(axe, encoding="utf-8").read()
EVIL = "<img src=x onerror=document.title='ran'>\u202e.py"
problems, n_checked = [], 0


def check(is_right, what):
    global n_checked
    n_checked += 1
    if not is_right:
        problems.append(what)
        print("FAIL ", what)


def repository():
    """Makes a repository whose text would run as a script on a careless page."""
    folder = tempfile.mkdtemp() + "/shop"
    os.makedirs(folder + "/src")
    clock = 1_700_000_000

    def git(*command):
        stamp = f"{clock} +0000"
        env = dict(os.environ, GIT_AUTHOR_DATE=stamp, GIT_COMMITTER_DATE=stamp, GIT_CONFIG_GLOBAL="/dev/null")
        name = ["-c", "user.name=<script>document.title='ran'</script>", "-c", "user.email=a@example.com"]
        subprocess.run(["git", *name, *command], cwd=folder, check=True, env=env, capture_output=True)

    def write(path, text):
        with open(f"{folder}/{path}", "w", encoding="utf-8") as file:
            file.write(text)

    git("init", "-q", "-b", "main")
    write("src/helper.py", "def tax(amount):\n    return amount * 0.2\n")
    write("src/shop.py", "from helper import tax\n\n\nclass Cart:\n    \"\"\"<script>document.title='ran'</script>\"\"\"\n\n"
          "    def total(self):\n        # The tax is on top.\n        return self.sum() + tax(self.sum())\n\n"
          "    def sum(self):\n        return 1\n")
    write("src/test_shop.py", "from shop import Cart\n\n\ndef test_total():\n    assert Cart().total() == 1.2\n")
    write("README.md", "# Shop\n\n<script>document.title='ran'</script>\n")
    write("picture.svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"><script>document.title='ran'</script></svg>\n")
    write("long.py", "".join(f"x{n} = {n}\n" for n in range(30_000)))
    write("wide.py", "x = '" + "y" * 200_000 + "'\n")
    write(EVIL, "def evil():\n    return '</pre><script>document.title=1</script>'\n")
    git("add", "-A")
    git("commit", "-q", "-m", "all <b onclick=x>at once</b><script>document.title='ran'</script>")
    clock += 86_400
    git("mv", "src/helper.py", "src/taxes.py")
    write("src/shop.py", open(f"{folder}/src/shop.py").read().replace("from helper", "from taxes"))
    git("commit", "-q", "-a", "-m", "move")
    clock += 86_400
    write("src/taxes.py", "def tax(amount, rate=0.2):\n    return amount * rate\n")
    git("commit", "-q", "-a", "-m", "add a rate")
    git("branch", "<script>document.title='ran'<")
    return folder


class Browser:
    def __init__(self):
        self.process = subprocess.Popen([chromedriver, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for line in self.process.stdout:
            if found := re.search(r"started successfully on port (\d+)", line):
                self.base = f"http://127.0.0.1:{found[1]}"
                break
        # Root has no sandbox. No name but the server's resolves.
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
        wanted = {"goog:chromeOptions": {"args": arguments}, "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
        self.base += "/session"
        self.base += "/" + self.ask("POST", "", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]

    def ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"content-type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def open(self, url):
        self.ask("POST", "/url", {"url": url})

    def run(self, script, *arguments):
        return self.ask("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def devtools(self, command, **parameters):
        return self.ask("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def log(self, kind):
        return self.ask("POST", "/se/log", {"type": kind})

    def keys(self, text):
        """Presses keys, whatever has the focus."""
        actions = [{"type": event, "value": key} for key in text for event in ("keyDown", "keyUp")]
        self.ask("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def size(self, width):
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)

    def scheme(self, scheme):
        self.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def close(self):
        try:
            self.ask("DELETE", "")
        finally:
            self.process.kill()


def violations(browser):
    return browser.ask("POST", "/execute/async", {"script": AXE + """
        ;const done = arguments[arguments.length - 1];
        axe.run().then(found => done(found.violations.map(v => v.id + ': ' + v.nodes[0].html.slice(0, 120))));""", "args": []})


TAB, ENTER = "\ue004", "\ue007"
repo = repository()
server = subprocess.Popen([program, "web", "--repo", repo], stderr=subprocess.PIPE, text=True)
address = code = None
for line in server.stderr:
    if found := re.search(r"listening at (http://[^/ ;]+)", line):
        address = found[1]
    if found := re.search(r"type the code (\S+)", line):
        code = found[1]
        break
# The pipe stays open as long as the server writes to it.
import threading
threading.Thread(target=lambda: [None for _ in server.stderr], daemon=True).start()

R, evil = "/shop/-", urllib.parse.quote(EVIL)
# Path, status, text on the page. Links to a name are not permanent, so such a page has a canonical link to the commit.
PAGES = [
    (f"{R}/tree/WORKTREE:", 200, "src/"),
    (f"{R}/tree/main:src", 200, "taxes.py"),
    (f"{R}/tree/main~2:src", 200, "helper.py"),
    (f"{R}/file/main:src/shop.py", 200, "def total"),
    (f"{R}/file/main~2:src/shop.py", 200, "from helper"),
    (f"{R}/file/main:{evil}", 200, "def evil"),
    (f"{R}/file/main:long.py", 200, "x29999"),
    (f"{R}/file/main:wide.py", 200, "yyy"),
    (f"{R}/file/main:src/shop.py?blame=1", 200, "without commits"),
    (f"{R}/file/main:long.py?blame=1", 200, "x29999"),
    (f"{R}/file/main:README.md", 200, "Shop"),
    (f"{R}/file/main:picture.svg", 200, "<svg"),
    (f"{R}/def/main:src/taxes.py?name=tax", 200, "Cart.total"),
    (f"{R}/def/main:src/shop.py?name=Cart", 200, "test_total"),
    (f"{R}/def/main:src/shop.py?name=Cart.total", 200, "tax"),
    (f"{R}/def/main:{evil}?name=evil", 200, "evil"),
    (f"{R}/at/main:src/shop.py?pos=9:30", 200, "tax"),
    (f"{R}/search/main?q=tax", 200, "taxes.py"),
    (f"{R}/search/main?q=tax&path=src", 200, "any folder"),
    (f"{R}/search/main?q=%3Cscript%3E", 200, "script"),
    (f"{R}/search/main", 200, "Type words"),
    (f"{R}/history/main:src/taxes.py", 200, "move"),
    (f"{R}/history/main:src/taxes.py?name=tax", 200, "add a rate"),
    (f"{R}/history/main:", 200, "at once"),
    (f"{R}/blame/main:src/taxes.py", 200, "tax"),
    (f"{R}/blame/main:src?by=owner", 200, "script"),
    (f"{R}/outline/main:src/shop.py", 200, "total"),
    (f"{R}/outline/main:?view=map", 200, "tax"),
    (f"{R}/graph/main:src/taxes.py?name=tax&op=callers", 200, "Cart.total"),
    (f"{R}/graph/main:src/taxes.py?name=tax&op=impact", 200, "test_total"),
    (f"{R}/graph/main:src/shop.py?name=Cart.total&op=callees", 200, "tax"),
    (f"{R}/review/main~1..main", 200, "tax"),
    (f"{R}/review/main~2..main", 200, "tax"),
    (f"{R}/review/main..WORKTREE", 200, "Nothing changed"),
    (f"{R}/review", 200, "the last commit"),
    (f"{R}/review/main~2^..main~2", 200, "added"),
    (f"{R}/refs", 200, "Branches"),
    (f"{R}/life/main:", 200, "shop.py"),
    (f"{R}/index/main:", 200, "references"),
    (f"{R}/tree/%3Cscript%3Edocument.title=%27ran%27%3C:", 200, "src/"),
    (f"{R}/file/main:src/helper.py", 404, "history"),
    (f"{R}/file/main:src/gone%3Cscript%3E.py", 404, "gone"),
    (f"{R}/def/main:src/shop.py?name=No", 404, "No"),
    (f"{R}/tree/nowhere:", 404, "nowhere"),
    (f"{R}/nothing/main:", 404, "nothing"),
    ("/other/-/tree/main:", 404, "no such repository"),
    ("/-/help", 200, "Search"),
]


def requests_outside(browser):
    asked = set()
    for entry in browser.log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            url = message["params"]["request"]["url"]
            if not url.startswith((address + "/", "data:", "chrome", "about:")):
                asked.add(url)
    return asked


def status_of(path, cookie):
    request = urllib.request.Request(address + path, headers={"cookie": cookie})
    opener = urllib.request.build_opener(urllib.request.HTTPHandler)
    try:
        with opener.open(request, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


browser = None
try:
    browser = Browser()
    browser.open(address + "/")
    # The field for the code has the focus, or gets it by one key.
    if browser.run("return document.activeElement.tagName") != "INPUT":
        browser.keys(TAB)
    browser.keys(code + ENTER)
    time.sleep(0.5)
    check("/-/tree/" in browser.run("return location.pathname") or "continue" in browser.run("return document.body.innerText").lower(),
          "the code lets in by keyboard: " + browser.run("return location.href"))
    cookies = browser.ask("GET", "/cookie")
    cookie = "; ".join(f"{one['name']}={one['value']}" for one in cookies)
    check(cookies and all(one["httpOnly"] for one in cookies), "the cookie is hidden from scripts")
    browser.log("browser")
    for path, status, text in PAGES:
        began = time.monotonic()
        got, page = status_of(path, cookie)
        check(got == status, f"{path}: {got}, not {status}")
        canonical = re.search(r'rel="canonical" href="([^"]*)"', page)
        if status == 200 and "main:" in path and "review" not in path:
            check(canonical and re.search(r"/[0-9a-f]{40}:", canonical[1]), f"{path}: no permanent link")
            if canonical:
                check(status_of(canonical[1].replace("&amp;", "&"), cookie)[0] == 200, f"{path}: its permanent link is dead")
        browser.size(1280)
        browser.scheme("light")
        browser.open(address + path)
        shown = browser.run("return document.body.textContent")
        check(text in shown, f"{path}: {text} is not shown")
        check(browser.run("return document.title") not in ("ran", "1"), f"{path}: a script of the repository ran")
        n = browser.run("return document.getElementsByTagName('*').length")
        check(n <= 10_000, f"{path}: {n} elements")
        links = browser.run("return [...document.links].map(link => link.getAttribute('href'))")
        check(all(link.startswith(("/", "#")) for link in links), f"{path}: a link that is not from the root")
        for scheme in ("light", "dark"):
            for width in (1280, 360):
                browser.scheme(scheme)
                browser.size(width)
                # For thousands of elements, axe takes minutes.
                for found in violations(browser) if n < 2_000 else []:
                    check(False, f"{path} {scheme} {width}: {found}")
                check(True, "")
                wide = browser.run("return document.documentElement.scrollWidth")
                check(wide <= width, f"{path}: {wide} wide at {width}")
                if screens and (scheme, width) in (("light", 1280), ("dark", 360)):
                    os.makedirs(screens, exist_ok=True)
                    name = re.sub(r"[^\w.]+", "_", urllib.parse.unquote(path)).strip("_")[:60]
                    with open(f"{screens}/{name}_{scheme}_{width}.png", "wb") as file:
                        file.write(base64.b64decode(browser.ask("GET", "/screenshot")))
        console = [line["message"] for line in browser.log("browser") if f" {status} " not in line["message"]]
        check(not console, f"{path}: console: {console[:1]}")
        outside = requests_outside(browser)
        check(not outside, f"{path}: asks {sorted(outside)[:1]}")
        print(f"{time.monotonic() - began:5.1f} s  {n:5} elements  {path}", flush=True)
    browser.size(1280)
    browser.open(f"{address}{R}/def/main:src/taxes.py?name=tax")
    check(len(base64.b64decode(browser.ask("POST", "/print", {}))) > 1_000, "a definition prints")
    # From the folder to a caller of a definition without a mouse: every link can be reached and followed.
    browser.open(f"{address}{R}/file/main:src/taxes.py")
    for _ in range(80):
        browser.keys(TAB)
        if browser.run("return document.activeElement.className") == "def":
            break
    browser.keys(ENTER)
    time.sleep(0.5)
    check("/-/def/" in browser.run("return location.pathname"), "a definition opens by keyboard")
    browser.open(f"{address}{R}/file/main:src/shop.py")
    browser.run("document.querySelector('a.ref').focus()")
    time.sleep(1)
    check("def tax" in browser.run("return document.getElementById('card').innerText"), "a name shows what it means")
    found = violations(browser)
    check(not found, f"a card has no axe violation: {found}")
    browser.keys("\ue00c")
    check(browser.run("return document.getElementById('card').hidden"), "Escape hides what a name means")
    browser.keys("h")
    time.sleep(0.5)
    check("/-/history/" in browser.run("return location.pathname"), "a key opens the history")
    browser.keys("/" + "tax")
    time.sleep(1)
    check("tax" in browser.run("return [...document.querySelectorAll('datalist option')].map(one => one.value)"), "suggestions")
    browser.keys("h")
    check("/-/history/" in browser.run("return location.pathname"), "keys are letters while something is typed")
    # A script is an extra: with scripts off, the pages are the same.
    browser.devtools("Emulation.setScriptExecutionDisabled", value=True)
    browser.open(f"{address}{R}/search/main?q=tax")
    _, page = status_of(f"{R}/search/main?q=tax", cookie)
    check("taxes.py" in page, "search without scripts")
finally:
    if browser:
        browser.close()
    server.kill()
print(f"{n_checked - len(problems)} passed, {len(problems)} failed")
sys.exit(bool(problems))
