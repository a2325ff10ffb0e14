"""Write the generated pages of the reference: `python -m tests.reference`."""

from tests.reference.pages import REFERENCE, ROOT, reference_pages


def main() -> None:
    pages = reference_pages()
    for path, text in pages.items():
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(text, encoding="utf-8")
    for file in (ROOT / REFERENCE).rglob("*.md"):
        if str(file.relative_to(ROOT)) not in pages:
            file.unlink()
    print(f"{len(pages)} pages, {sum(text.count(chr(10)) for text in pages.values()):,} lines")


if __name__ == "__main__":
    main()
