#!/usr/bin/env python3
"""Checks the English of messages, docs and comments against the rules of the project (CONTRIBUTING.md, "Words").

    tools/words.py [--list] [--only messages|docs|comments] [PATH...]

Prints three measures, each with its limit, and exits with 1 when one is exceeded:

    dialect     lines or sentences with a phrase of PHRASES, per kind of text
    sentences   sentences of messages and docs with more than 25 words, or with a bare "what" or "which" as the subject
    comments    comment lines / (comment + code lines), of src and of the public headers

`--list` prints every finding as FILE:LINE: text. With PATH, only files below these paths are read and the limits of the
comment share do not apply."""

import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = ("src", "apps", "lab", "calibrate", "python/src", "python/stepcast")
# Pages that a command writes, or that are kept as a record.
GENERATED = ("docs/reference", "docs/archive", "docs/accuracy.md", "docs/performance.md")

# (regular expression, what to write). Matched without case, at word boundaries.
PHRASES = [
    (r"count(s|ed)? on", "expected, forecast with a factor"),
    (r"told apart|tell(s)? apart|tell(s)? \w+ apart", "distinguish, tie"),
    (r"alike", "similar, equal"),
    (r"to spare", "headroom"),
    (r"beside", "next to, overlapped with, together with"),
    (r"stands?(?! (?:alone|-?alone))|stood", "is, represents, is given"),
    (r"hangs? on|hung on", "depends on, waits for"),
    (r"nobody(?:'s)?|somebody|anybody|no one", "unmeasured, unknown, a user"),
    (r"as (?:it|they|\w+) runs? (?:it|them)", "as configured by"),
    (r"in view", "used for fitting"),
    (r"(?:half|all|much|most|more|some|none|rest|part|parts|one|two|any|nothing|little|out|kind|share) of it(?= |[.,;:)]|$)",
     "name the thing"),
    (r"go(?:es)? with(?!out)|went with", "depends on, belongs to"),
    (r"adapters? of (?:a |the )?(?:node|network|machine|host)s?|network adapters?", "NIC"),
    (r"by itself|by themselves", "alone, automatically"),
    (r"in all(?=[.,;:)]|$)", "in total"),
    (r"one in h", "a fraction 1/h"),
    (r"times this", "name the factor"),
    (r"anew", "again"),
    (r"held against|hold(?:s)? against", "compared with, overrides"),
    (r"so many", "number of"),
    (r"stands? for", "represents"),
    (r"that ships?", "shipped"),
    (r"is called so", "has this name"),
    (r"as (?:it is|they are)(?=[.,;:)]|$)", "unchanged"),
    (r"the like of", "a similar"),
    (r"as many again", "twice"),
    (r"(?:is|are) no (?!longer|more|less|fewer|later|earlier|faster|slower|larger|smaller|better|worse)\w+", "is not a"),
    (r"makes? do|made do", "uses"),
    (r"what of it", "name the thing"),
    (r"hole", "gap, missing value"),
    (r"takes? (?:its|their) place", "replaces"),
    (r"promis(?:e|es|ed)", "forecasts, guarantees"),
    (r"tight(?:er|ly|est)?", "low headroom, close"),
    (r"apart(?! from)", "separately"),
    (r"whose", "with, that has"),
    (r"of which", "a new sentence"),
    (r"products?", "GEMM, or name it"),
    (r"\w+'s own|\w+s' own", "name the owner"),
]
FINE = re.compile(r"\b(?:there (?:is|are) no|stand-?alone|stand-in|standard|(?:dot|inner|outer|Cartesian|cross|matrix-vector) products?|products? of)\b", re.I)
DIALECT = [(re.compile(rf"(?<![\w-])(?:{pattern})(?![\w-])", re.I), instead) for pattern, instead in PHRASES]
MOST_WORDS = 25
# A question may begin with these words; a statement may not.
BARE_SUBJECT = re.compile(r"^(?:What|Which)\b(?!.*\?$)")

# measure -> most that may be found, as a share.
LIMITS = {"dialect": 0.003, "sentences": 0.02}
LEAST_COMMENTS = {"src": 0.12, "public headers": 0.20}

TOKEN = re.compile(
    r'//(?P<line>[^\n]*)|/\*(?P<block>.*?)\*/|R"(?P<tag>[^(\n"]*)\((?P<raw>.*?)\)(?P=tag)"|"(?P<text>(?:\\.|[^"\\\n])*)"'
    r"|(?<!\w)'(?:\\.|[^'\\\n])'",
    re.S,
)
PYTHON_TOKEN = re.compile(
    r'#(?P<line>[^\n]*)|"""(?P<block>.*?)"""|"(?P<text>(?:\\.|[^"\\\n])*)"|\'(?P<raw>(?:\\.|[^\'\\\n])*)\'', re.S)


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def split_source(path):
    """(comment lines as (line, text), literals as (line, text)) of a C++ or Python source; adjacent literals are one."""
    source = path.read_text(encoding="utf-8", errors="replace")
    comments, literals, last_end = [], [], None
    for token in (PYTHON_TOKEN if path.suffix == ".py" else TOKEN).finditer(source):
        parts = token.groupdict()
        if parts["line"] is not None:
            comments.append((line_of(source, token.start()), parts["line"].strip()))
        elif parts["block"] is not None:
            first = line_of(source, token.start())
            comments += [(first + i, line.strip()) for i, line in enumerate(parts["block"].split("\n"))]
        elif (literal := parts["raw"] if parts["text"] is None else parts["text"]) is not None:
            if last_end is not None and literals and not source[last_end : token.start()].strip():
                literals[-1] = (literals[-1][0], literals[-1][1] + literal)
            else:
                literals.append((line_of(source, token.start()), literal))
            last_end = token.end()
    return comments, literals


def prose_of_page(path):
    """(line, paragraph) of a Markdown page without code blocks, tables, marks and targets of links."""
    paragraphs, words, first, fenced = [], [], 1, False
    text = re.sub(r"<!--.*?-->", lambda m: "\n" * m.group().count("\n"), path.read_text(encoding="utf-8"), flags=re.S)
    for n, line in enumerate(text.split("\n") + [""], 1):
        stripped = line.strip()
        if stripped.startswith("```"):
            fenced = not fenced
            stripped = ""
        elif fenced:
            continue
        begins = re.match(r"(?:[-*+]|\d+\.|#+|>|\|)\s*", stripped)
        if not stripped or begins:
            if words:
                paragraphs.append((first, " ".join(words)))
            words, first = [], n
        cells = [c for c in stripped.strip("|").split("|")] if stripped.startswith("|") else None
        if cells:
            paragraphs += [(n, cell.strip()) for cell in cells if re.search("[a-z]{3}", cell)]
        elif stripped:
            words.append(stripped[begins.end() :] if begins else stripped)
    return [(n, re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)) for n, text in paragraphs]


def sentences_of(text):
    """Sentences of a paragraph or message. Code in backquotes is one word."""
    text = re.sub(r"`[^`]*`", "CODE", text)
    return [s.strip() for s in re.split(r"(?<=[.!?])[)\"']?\s+(?=[A-Z`\"'(\[<{*0-9]|CODE)|\\n|\n", text) if s.strip()]


def is_message(text):
    """Whether a literal is prose: two spaces between words of letters, not a pattern, a path or a list of keys."""
    return len(re.findall(r"[A-Za-z]{2,} +[a-z(`{]{1}[a-z]*", text)) >= 2 and not re.search(r"<[a-z/!]|[;{]\s*$|\(\?:|\\w|\\\\", text)


def files_below(folders, suffixes):
    for folder in folders:
        base = ROOT / folder
        for path in sorted(base.rglob("*") if base.is_dir() else [base]):
            if path.suffix in suffixes and path.is_file():
                yield path


class Count:
    def __init__(self):
        self.n, self.found = 0, []


def dialect_in(text):
    plain = FINE.sub("", re.sub(r"`[^`]*`|\"[^\"]*\"|“[^”]*”", "CODE", text))
    return next((f"`{m.group()}`: {instead}" for pattern, instead in DIALECT if (m := pattern.search(plain))), None)


def check(paths, kinds):
    counts = {}
    comment_lines, code_lines = {}, {}
    def count(measure, kind):
        return counts.setdefault((measure, kind), Count())
    def read(measure_kind, where, text, sentences):
        dialect = count("dialect", measure_kind)
        dialect.n += 1
        if problem := dialect_in(text):
            dialect.found.append(f"{where}: {problem}: {text[:160]}")
        if not sentences:
            return
        for sentence in sentences_of(text):
            measured = count("sentences", measure_kind)
            measured.n += 1
            words = len(sentence.split())
            if words > MOST_WORDS:
                measured.found.append(f"{where}: {words} words: {sentence[:200]}")
            elif BARE_SUBJECT.search(sentence):
                measured.found.append(f"{where}: a bare subject: {sentence[:160]}")

    def wanted(path):
        return not paths or any(path == p or p in path.parents for p in paths)

    public = {line.strip() for line in (ROOT / "src/stepcast/api/public_headers.txt").read_text().split("\n") if line.strip()}
    for path in files_below(SOURCES, (".h", ".cpp", ".def", ".py")):
        if not wanted(path):
            continue
        name = str(path.relative_to(ROOT))
        comments, literals = split_source(path)
        if path.suffix != ".py":
            lines = {n for n, _ in comments}
            code = sum(1 for n, line in enumerate(path.read_text().split("\n"), 1) if line.strip() and not re.match(r"\s*(?://|/\*)", line) and (n not in lines or not re.match(r"\s*\*", line)))
            groups = ["src"] if name.startswith("src/") else []
            if name.removeprefix("src/") in public or name.removeprefix("src/stepcast/") in public:
                groups.append("public headers")
            for group in groups:
                whole = sum(1 for line in path.read_text().split("\n") if re.match(r"\s*//", line))
                comment_lines[group] = comment_lines.get(group, 0) + whole
                code_lines[group] = code_lines.get(group, 0) + code
        if "comments" in kinds:
            for n, text in comments:
                if re.search("[a-z]{2}", text):
                    read("comments", f"{name}:{n}", text, False)
        if "messages" in kinds:
            for n, text in literals:
                if is_message(text):
                    read("messages", f"{name}:{n}", text, True)
    if "docs" in kinds:
        for path in files_below(("docs", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "ROADMAP.md"), (".md",)):
            name = str(path.relative_to(ROOT))
            if wanted(path) and not name.startswith(GENERATED):
                for n, text in prose_of_page(path):
                    read("docs", f"{name}:{n}", text, True)
    shares = {g: comment_lines[g] / (comment_lines[g] + code_lines[g]) for g in comment_lines}
    return counts, shares


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print every finding")
    parser.add_argument("--only", choices=("messages", "docs", "comments"))
    parser.add_argument("paths", nargs="*", type=lambda p: pathlib.Path(p).resolve())
    options = parser.parse_args()
    counts, shares = check(options.paths, [options.only] if options.only else ["messages", "docs", "comments"])
    failed = False
    for (measure, kind), count in sorted(counts.items()):
        if options.list:
            print("\n".join(count.found))
        share = len(count.found) / max(count.n, 1)
        over = share > LIMITS[measure]
        failed = failed or over
        print(f"{measure} of {kind}: {len(count.found)} of {count.n}, {100 * share:.2f} %, limit {100 * LIMITS[measure]:.1f} %{', EXCEEDED' if over else ''}")
    for group, share in sorted(shares.items()):
        under = not options.paths and share < LEAST_COMMENTS[group]
        failed = failed or under
        print(f"comment lines of {group}: {100 * share:.1f} %, at least {100 * LEAST_COMMENTS[group]:.0f} %{', NOT REACHED' if under else ''}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
