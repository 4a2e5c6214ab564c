"""What a scripted agent does with a question.

Every policy gets the text of the question and the folder to search, nothing else. It goes on until a place was read or
the bound on calls is reached. None was tuned on the judged queries.

`grep`      1. The words of the question: split where no letter, digit or underscore is; without the words of STOP and
               those of one or two letters; without the endings of ENDINGS if four letters remain. A question of one word
               is searched as it is written, and without its qualifiers (`a.b`, `A::b`).
            2. How many lines of the folder contain each word is known without a call, and words that occur nowhere are
               dropped: an agent guesses rare words, this policy knows them. The rarest word comes first.
            3. One call searches the next three words as alternatives, ignoring case; after the last, each word alone. It
               shows at most 100 lines in path order, each cut at 500 characters.
            4. The matches are grouped into windows of 100 lines of a file. The three windows with the most different
               words, then the most matches, are read, 100 lines from 10 lines before their first match (not before
               the window). Go on with 3; after the last search, with the remaining windows.
`whole`     Like `grep`, but the search only counts the matches of at most 100 files, and the three files with the most
            matches are read whole (at most 2,000 lines), as agents do that list files first.
`codescout` 1. One `search` with the question. Other parameters have their defaults.
            2. `read` of each result in the order shown, then of the further parts listed below results.
            3. The next page, and so on.
`pack`      One `search` with `detail=pack`, then like `codescout`.
`semble`    One `search` with the question. Other parameters have their defaults (5 results). Each result is read in the
            order shown, 100 lines from its start. Then the search is repeated for twice as many results.
"""

import json
import re

import tools

STOP = set(
    """a an and any are as at be been before after between both but by can could did do does done each every for from
    get gets given goes had has have how if in into is it its just like made make makes many more most much must no not
    of off on once one only onto or other out over per same should so some such than that the their them then there
    these they this those through to too under until up upon use used uses using very via was way were what when where
    whether which while who whose why will with within without would""".split()
)
ENDINGS = ["ations", "ation", "ings", "ing", "ions", "ion", "ers", "er", "ied", "ies", "ed", "es", "s", "e", "y"]
WORDS_PER_CALL = 3
READS_PER_CALL = 3
WINDOW = 100
BEFORE = 10


def stem(word):
    for ending in ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word


def patterns(question):
    if len(question.split()) == 1:
        last = re.split(r"[.:#]+", question)[-1]
        return list(dict.fromkeys(re.escape(name) for name in [question, last] if name))
    words = [word.lower() for word in re.findall(r"\w+", question)]
    words = [stem(word) for word in words if len(word) > 2 and word not in STOP]
    return list(dict.fromkeys(words))


def rarest_first(grep, question):
    counts = [(grep.count(pattern), pattern) for pattern in patterns(question)]
    return [pattern for count, pattern in sorted(counts) if count]


def searches(grep, question):
    words = rarest_first(grep, question)
    if len(question.split()) == 1:
        return words
    groups = [words[at : at + WORDS_PER_CALL] for at in range(0, len(words), WORDS_PER_CALL)]
    return list(dict.fromkeys(["|".join(group) for group in groups] + words))


def grep(trace, tree, grep, question):
    windows, done = {}, set()

    def best():
        left = [window for window in windows if window not in done]
        return sorted(left, key=lambda window: (-len(windows[window][0]), -windows[window][1], window))

    def read(window):
        done.add(window)
        path, number = window
        start = max(1, number * WINDOW + 1, windows[window][2] - BEFORE)
        tools.read(tree, trace, path, start, WINDOW)

    for pattern in searches(grep, question):
        if trace.is_over:
            return
        for path, line, text in grep.lines(trace, pattern):
            window = windows.setdefault((path, (line - 1) // WINDOW), [set(), 0, line])
            window[0].update(word for word in pattern.split("|") if re.search(word, text, re.I))
            window[1] += 1
            window[2] = min(window[2], line)
        for window in best()[:READS_PER_CALL]:
            if not trace.is_over:
                read(window)
    for window in best():
        if not trace.is_over:
            read(window)


def whole(trace, tree, grep, question):
    counts, done = {}, set()
    for pattern in searches(grep, question):
        if trace.is_over:
            return
        for path, count in grep.files(trace, pattern):
            counts[path] = counts.get(path, 0) + count
        read_files(trace, tree, counts, done, READS_PER_CALL)
    read_files(trace, tree, counts, done, len(counts))


def read_files(trace, tree, counts, done, count):
    left = sorted((path for path in counts if path not in done), key=lambda path: (-counts[path], path))
    for path in left[:count]:
        if not trace.is_over:
            done.add(path)
            tools.read(tree, trace, path)


def codescout(trace, tree, server, question, root):
    scope = {} if root == "." else {"path": root}
    cursor = {}
    while not trace.is_over:
        results, further, next_page = server.search(trace, tree, query=question, **scope, **cursor)
        for path, start, end in results + further:
            if not trace.is_over:
                server.read(trace, tree, path, start, end)
        if not next_page:
            return
        cursor = {"cursor": next_page}


def pack(trace, tree, server, question, root):
    scope = {} if root == "." else {"path": root}
    server.search(trace, tree, query=question, detail="pack", **scope)
    if not trace.is_over:
        codescout(trace, tree, server, question, root)


def semble(trace, tree, server, question, root):
    seen, top_k = set(), {}
    folder = str(tree.root / root)
    while not trace.is_over:
        text = server.call(trace, "search", query=question, repo=folder, **top_k)
        try:
            results = json.loads(text).get("results", [])
        except ValueError:
            return
        results = [located(tree, root, result) for result in results]
        new = [result for result in results if result[:2] not in seen]
        if not new:
            return
        for path, start, end, content in new:
            trace.shows(path, start, end)
            for at, line in enumerate(content.split("\n")):
                if tools.is_line(tree.lines(path), start + at, line):
                    trace.prints(path, start + at)
        for path, start, _, _ in new:
            seen.add((path, start))
            if not trace.is_over:
                tools.read(tree, trace, path, start, WINDOW)
        top_k = {"top_k": 2 * len(results)}


def located(tree, root, result):
    path = result["file_path"]
    path = path if root == "." else f"{root}/{path}"
    return path, result["start_line"], result["end_line"], result.get("content", "")
