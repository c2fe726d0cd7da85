"""Takes documents that stand beside the code into the book, and leads links to them.

A link into the repository that is no chapter (a source file, a folder) loses its target, since the book is read without
the repository; its text, a path, stays. A link to something that does not exist fails the build.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parent.parent
# Documents outside docs/, by their chapter.
CHAPTERS = {
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "bench/README.md": "bench.md",
    "python/README.md": "python.md",
}
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(```+).*?^\1\s*$", re.MULTILINE | re.DOTALL)


def on_files(files, config):
    """Adds the documents that stand elsewhere, and the style of the book."""
    for source, chapter in CHAPTERS.items():
        files.append(File.generated(config, chapter, content=(ROOT / source).read_text()))
    files.append(File.generated(config, "book.css", content=(ROOT / "book" / "book.css").read_text()))
    return files


def on_page_markdown(markdown, page, config, files):
    """Leads the links of a page, but for those in blocks of code."""
    chapters = {chapter: source for source, chapter in CHAPTERS.items()}
    source = chapters.get(page.file.src_uri, "docs/" + page.file.src_uri)
    parts, last = [], 0
    for fence in FENCE.finditer(markdown):
        parts += [lead(markdown[last : fence.start()], source), fence.group()]
        last = fence.end()
    return "".join(parts + [lead(markdown[last:], source)])


def lead(text, source):
    """Rewrites the links in prose of the document `source`, a path from the root."""

    def replace(link):
        image, words, target = link.groups()
        path, _, anchor = target.partition("#")
        if not path or "://" in path or path.startswith("mailto:"):
            return link.group()
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        if not (ROOT / path).exists():
            raise PluginError(f"{source}: the link {target} leads to {path}, which does not exist")
        chapter = CHAPTERS.get(path) or (path.removeprefix("docs/") if path.startswith("docs/") else None)
        if chapter is None or not (chapter.endswith(".md") or image):
            return words
        return f"{image}[{words}]({chapter}{'#' + anchor if anchor else ''})"

    return LINK.sub(replace, text)
