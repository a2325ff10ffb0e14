"""Random sentences of the project, to be judged by a reader who has not seen it.

    python -m tests.sentences --seed 46 --count 100

The sentences come from pages, docstrings, comments, help texts and raised errors, in proportion to their number. The
aim is that a native-speaking engineer marks at most 3 of 100 as "I had to read this twice".
"""

import argparse
import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from random import Random

ROOT = Path(__file__).parents[1]
_SENTENCE = re.compile(r"(?<=[.!?:])\s+(?=[A-Z`\"*])")
_SHORTEST = 25  # characters; shorter pieces are headings and fragments


def of_text(text: str) -> Iterator[str]:
    """Yield the sentences of a paragraph."""
    for sentence in _SENTENCE.split(" ".join(text.split())):
        if len(sentence) >= _SHORTEST:
            yield sentence


def of_page(text: str) -> Iterator[str]:
    """Yield the sentences of a Markdown page, without code blocks and tables."""
    for paragraph in re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE).split("\n\n"):
        if not paragraph.lstrip().startswith(("|", "<", "#", "    ")):
            yield from of_text(paragraph)


def of_module(text: str) -> Iterator[str]:
    """Yield the sentences of a module's docstrings, comments, help texts and error messages."""
    tree = ast.parse(text)
    for each in ast.walk(tree):
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
            for paragraph in (ast.get_docstring(each) or "").split("\n\n"):
                if not paragraph.startswith("    "):
                    yield from of_text(paragraph)
        elif isinstance(each, ast.keyword) and each.arg in ("help", "description", "doc"):
            if isinstance(each.value, ast.Constant) and isinstance(each.value.value, str):
                yield from of_text(each.value.value)
        elif isinstance(each, ast.Raise) and isinstance(each.exc, ast.Call):
            for argument in each.exc.args:
                yield from of_text(of_message(argument))
    for comment in comments(text):
        yield from of_text(comment)


def of_message(value: ast.expr) -> str:
    """Return the text of a string, with `{…}` for each value in it; empty for other expressions."""
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return value.value
    if isinstance(value, ast.JoinedStr):
        return "".join(of_message(part) if isinstance(part, ast.Constant) else "{…}" for part in value.values)
    return ""


def comments(text: str) -> Iterator[str]:
    """Yield the comments of a module; the lines of a comment of several lines are joined."""
    joined, last = "", (0, 0)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT or re.match(r"# (noqa|type:|--|--- )", token.string):
            continue
        line, column = token.start
        piece = token.string.lstrip("# ")
        alone = not token.line[:column].strip()
        if joined and alone and (line - 1, column) == last:
            joined = f"{joined} {piece}"
        else:
            if joined:
                yield joined
            joined = piece
        last = (line, column)
    if joined:
        yield joined


def sentences() -> Iterator[tuple[str, str]]:
    """Yield each sentence with the file that it is from."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "examples").rglob("*.md")]
    modules = [*(ROOT / "kschedd").rglob("*.py"), *(ROOT / "repl").rglob("*.py")]
    for files, read in ((pages, of_page), (modules, of_module)):
        for file in sorted(files):
            for sentence in read(file.read_text(encoding="utf-8")):
                yield str(file.relative_to(ROOT)), sentence


def main() -> None:
    """Print the drawn sentences with their files."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=46, help="seed of the draw (46)")
    parser.add_argument("--count", type=int, default=100, help="number of sentences (100)")
    options = parser.parse_args()
    known = list(sentences())
    for number, (file, sentence) in enumerate(Random(options.seed).sample(known, options.count), 1):
        print(f"{number:3}. {sentence}\n     {file}")


if __name__ == "__main__":
    main()
