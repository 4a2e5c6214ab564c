"""What the outputs of one question's calls have shown so far, and what they cost."""

import json
import math

CHARACTERS_PER_TOKEN = 4
ENOUGH_LINES = 20


class Tree:
    """The files of a checkout."""

    def __init__(self, root):
        self.root = root
        self.files = {}

    def lines(self, path):
        if path not in self.files:
            try:
                text = (self.root / path).read_text(errors="replace")
            except (OSError, ValueError):
                # No file of this name: the text only looks like a path.
                text = ""
            self.files[path] = text.split("\n")
        return self.files[path]


class Place:
    """A judged place."""

    def __init__(self, judged):
        self.path, self.start, self.end = judged["path"], judged["start"], judged["end"]
        length = self.end - self.start + 1
        self.enough = min(math.ceil(length / 3), ENOUGH_LINES)
        self.printed = set()

    def is_named_by(self, path, start, end):
        """The rule of the judged sets: the ranges overlap by at least a third of the shorter one."""
        overlap = min(end, self.end) - max(start, self.start) + 1
        return path == self.path and overlap > 0 and 3 * overlap >= min(end - start, self.end - self.start) + 1


class Trace:
    """Counts calls and tokens until a place that answers the question was named, and until it was read."""

    def __init__(self, query, limit):
        self.places = [Place(judged) for judged in query["relevant"] if judged["grade"] == 2]
        self.limit = limit
        self.calls = 0
        self.tokens = 0
        self.named = None
        self.read = None

    @property
    def is_over(self):
        return self.read is not None or self.calls >= self.limit

    def call(self, request, output):
        """Counts a call with its output, both as an agent's context holds them."""
        text = request if isinstance(request, str) else json.dumps(request)
        self.calls += 1
        self.tokens += (len(text) + len(output)) // CHARACTERS_PER_TOKEN

    def shows(self, path, start, end):
        """Notes that the output of the last call names a range of lines."""
        if any(place.is_named_by(path, start, end) for place in self.places):
            self.named = self.named or (self.tokens, self.calls)

    def prints(self, path, number):
        """Notes that the output of the last call contains the text of a line."""
        self.shows(path, number, number)
        for place in self.places:
            if place.path == path and place.start <= number <= place.end:
                place.printed.add(number)
                if len(place.printed) >= place.enough:
                    self.read = self.read or (self.tokens, self.calls)
