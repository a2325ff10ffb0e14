"""Random sentences of the project, for judgment by a reader who does not know it.

    python -m tests.sentences --seed 46 --count 100

The sentences come from pages, docstrings, comments, help texts and raised errors, in proportion to their number. Each
is printed with its place: the file, and the class, function or line of code that it describes. The aim is that a
native-speaking engineer marks at most 3 of 100 as "I had to read this twice".
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
_ITEM = re.compile(r"(?:^|\n)\s*(?:[-*]|\d+\.)\s+")
_SHORTEST = 25  # minimum length in characters; shorter pieces are headings and fragments

Placed = tuple[str, str]  # the class, function or line of code that a sentence describes, and the sentence


def of_text(text: str) -> Iterator[str]:
    """Yield the sentences of a paragraph, or of each item of a list."""
    for item in _ITEM.split(text):
        for sentence in _SENTENCE.split(" ".join(item.split())):
            if len(sentence) >= _SHORTEST:
                yield sentence


def of_page(text: str) -> Iterator[Placed]:
    """Yield the sentences of a Markdown page with their headings, without code blocks and tables."""
    heading = ""
    for paragraph in re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE).split("\n\n"):
        if paragraph.startswith("#"):
            heading = paragraph.strip("# \n")
        if not paragraph.lstrip().startswith(("|", "<", "#", ":::", "    ")):
            for sentence in of_text(paragraph):
                yield heading, sentence


def of_module(text: str) -> Iterator[Placed]:
    """Yield the sentences of a module's docstrings, comments, help texts and error messages."""
    yield from _of_node(ast.parse(text), "")
    for place, comment in comments(text):
        for sentence in of_text(comment):
            yield place, sentence


def _of_node(node: ast.AST, name: str) -> Iterator[Placed]:
    """Yield the sentences in a node of the syntax tree; `name` is the class or function around it."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        name = f"{name}.{node.name}".lstrip(".")
    texts: list[str] = []
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
        paragraphs = (ast.get_docstring(node) or "").split("\n\n")
        texts = [paragraph for paragraph in paragraphs if not paragraph.startswith("    ")]
    elif isinstance(node, ast.keyword) and node.arg in ("help", "description", "doc"):
        texts = [of_message(node.value)]
    elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        texts = [of_message(argument) for argument in node.exc.args]
    for each in texts:
        for sentence in of_text(each):
            yield name, sentence
    for child in ast.iter_child_nodes(node):
        yield from _of_node(child, name)


def of_message(value: ast.expr) -> str:
    """Return the text of a string, with `{…}` for each value in it; "" for other expressions."""
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return value.value
    if isinstance(value, ast.JoinedStr):
        return "".join(of_message(part) if isinstance(part, ast.Constant) else "{…}" for part in value.values)
    return ""


def comments(text: str) -> Iterator[Placed]:
    """Yield the comments of a module, each with its line of code; the lines of a longer comment are joined."""
    lines = text.splitlines()
    joined: dict[tuple[int, int], list[str]] = {}  # by the last line and the column
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and not re.match(r"# (noqa|type:|--|--- )", token.string):
            line, column = token.start
            alone = not token.line[:column].strip()
            earlier = joined.pop((line - 1, column), []) if alone else []
            joined[line, column] = [*earlier, token.string.lstrip("#: ")]
    for (line, column), pieces in joined.items():
        code = lines[line - 1][:column].strip() or (lines[line].strip() if line < len(lines) else "")
        yield code, " ".join(pieces)


def sentences() -> Iterator[tuple[str, str, str]]:
    """Yield each sentence with its file and its place there."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "examples").rglob("*.md")]
    modules = [*(ROOT / "kschedd").rglob("*.py"), *(ROOT / "repl").rglob("*.py")]
    for files, read in ((pages, of_page), (modules, of_module)):
        for file in sorted(files):
            for place, sentence in read(file.read_text(encoding="utf-8")):
                yield str(file.relative_to(ROOT)), place, sentence


def main() -> None:
    """Print the drawn sentences with their places."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=46, help="seed of the draw (46)")
    parser.add_argument("--count", type=int, default=100, help="number of sentences (default: 100)")
    options = parser.parse_args()
    known = list(sentences())
    for number, (file, place, sentence) in enumerate(Random(options.seed).sample(known, options.count), 1):
        print(f"{number:3}. {sentence}\n     {file}: {place}".rstrip(": "))


if __name__ == "__main__":
    main()
