"""The built pages as the server may send them: no inline script, nothing of another host, no link to nowhere."""

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

_INLINE = re.compile(r"<script>(.*?)</script>", re.DOTALL)
_ELSEWHERE = re.compile(r"^(?:[a-z][a-z0-9+.-]*:|//)", re.IGNORECASE)
_OF_STYLES = re.compile(r"@import[^;]*|url\(\s*[\"']?((?:https?:)?//[^)]*)", re.IGNORECASE)
_STYLE_OF_SEARCH = re.compile(r'(\w+)\.appendChild\(\w+\("style",\{\},(\w+)\.toString\(\)\)\)')
_UNUSED = ("404.html", "sitemap.xml", "sitemap.xml.gz", "objects.inv")
"""Files for hosts of sites: the server has a refusal of its own, and nobody indexes it."""
_REFERENCES = ("action", "data", "href", "poster", "src", "srcset")


@dataclass(slots=True)
class Page:
    """A built page: its anchors, its links, the files that it loads, and the tags that a strict policy forbids."""

    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    inline: list[str] = field(default_factory=list)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page = Page()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.page.anchors.update(given[name] for name in ("id", "name") if given.get(name))
        for name in _REFERENCES:
            if name in given:
                (self.page.links if tag == "a" else self.page.loaded).append(given[name])
        is_script = tag == "script" and "src" not in given and given.get("type") != "application/json"
        if is_script or tag == "style" or any(name == "style" or name.startswith("on") for name in given):
            self.page.inline.append(self.get_starttag_text() or tag)


def read_page(text: str) -> Page:
    """Return what a page of HTML refers to."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    return reader.page


def move_inline_scripts(site: Path) -> None:
    """Put each inline script into a file of its own, as the server's policy forbids inline scripts.

    Files that only hosts of sites use are deleted.
    """
    for name in _UNUSED:
        (site / name).unlink(missing_ok=True)
    folder = site / "assets" / "inline"
    folder.mkdir(parents=True, exist_ok=True)
    for path in site.rglob("*.html"):
        above = posixpath.relpath("assets/inline", path.parent.relative_to(site).as_posix())

        def move(script: re.Match[str], above: str = above) -> str:
            name = f"{sha256(script[1].encode()).hexdigest()[:16]}.js"
            (folder / name).write_text(script[1], encoding="utf-8")
            return f'<script src="{above}/{name}"></script>'

        path.write_text(_INLINE.sub(move, path.read_text(encoding="utf-8")), encoding="utf-8")


def adopt_style_of_search(site: Path) -> bool:
    """Let the tool's script give the search its style as a style sheet: the server's policy forbids a style element.

    Return False if the script is not the one that this was written for.
    """
    (path,) = (site / "assets" / "javascripts").glob("bundle.*.js")
    adopted = (
        r"(()=>{const style=new CSSStyleSheet();style.replaceSync(\2.toString());\1.adoptedStyleSheets=[style]})()"
    )
    text, count = _STYLE_OF_SEARCH.subn(adopted, path.read_text(encoding="utf-8"))
    path.write_text(text, encoding="utf-8")
    return count == 1


@dataclass(frozen=True)
class BuiltSite:
    """A folder of built pages."""

    folder: Path

    @cached_property
    def pages(self) -> dict[str, Page]:
        """The pages by their paths in the folder."""
        paths = sorted(self.folder.rglob("*.html"))
        return {path.relative_to(self.folder).as_posix(): read_page(path.read_text(encoding="utf-8")) for path in paths}

    def find_faults(self) -> Iterator[str]:
        """Yield what the server's policy would forbid, references to other hosts, and links that lead nowhere."""
        for name, page in self.pages.items():
            for inline in page.inline:
                yield f"{name}: inline {inline}"
            for reference in page.loaded:
                if _ELSEWHERE.match(reference) and not reference.startswith("data:"):
                    yield f"{name}: loads {reference}"
            for reference in (*page.loaded, *page.links):
                if not _ELSEWHERE.match(reference) and not self._has_target(name, reference):
                    yield f"{name}: leads nowhere: {reference}"
        for path in self.folder.rglob("*.css"):
            for found in _OF_STYLES.finditer(path.read_text(encoding="utf-8")):
                if found[1] or found[0].startswith("@"):
                    yield f"{path.name}: loads {found[0]}"

    def _has_target(self, name: str, reference: str) -> bool:
        path, _, fragment = reference.partition("#")
        path = unquote(path.partition("?")[0])
        target = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name
        if target.startswith(("..", "/")):
            return False
        if (self.folder / target).is_dir():
            target = posixpath.normpath(posixpath.join(target, "index.html"))
        if not (self.folder / target).is_file():
            return False
        return not fragment or target not in self.pages or unquote(fragment) in self.pages[target].anchors
