"""The pages of the site: which there are, in which order, and where each is put for the tool that builds it."""

import json
import posixpath
import shutil
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from docs.generator.site.markdown import adapt_page, find_title

ROOT = Path(__file__).resolve().parents[3]
READERS = Path(__file__).with_name("pages.toml")
CONFIGURATION = Path(__file__).with_name("zensical.toml")
STYLE = Path(__file__).with_name("keyhole.css")
PICTURES = (".csv", ".json", ".png", ".svg")
"""The kinds of files, besides pages, that the site takes from docs/."""


@dataclass(frozen=True, slots=True)
class Group:
    """A named part of the navigation: pages by their paths in the repository, and groups."""

    name: str
    members: tuple["str | Group", ...]
    folder: str | None = None
    """The folder whose list of pages begins the group, if no page of its own does."""

    def list_pages(self) -> Iterator[str]:
        """Yield all pages of the group, in order."""
        for member in self.members:
            if isinstance(member, Group):
                yield from member.list_pages()
            else:
                yield member


def read_groups() -> tuple[Group, ...]:
    """Return the navigation, a group for each reader."""
    readers = tomllib.loads(READERS.read_text(encoding="utf-8"))["readers"]
    named = frozenset(_list_named_pages(readers))
    return tuple(_make_group(reader, named) for reader in readers)


def _list_named_pages(entries: list[str | dict[str, object]] | object) -> Iterator[str]:
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, str):
            yield entry
        else:
            yield from _list_named_pages(entry["pages"])


def _make_group(entry: Mapping[str, object], named: frozenset[str]) -> Group:
    members: list[str | Group] = []
    folder = None
    written = entry["pages"]
    assert isinstance(written, list)
    for member in written:
        if isinstance(member, dict):
            members.append(_make_group(member, named))
        elif member.endswith("/*"):
            folder = member.removesuffix("/*") if not members else folder
            found = (path.relative_to(ROOT).as_posix() for path in sorted((ROOT / member).parent.glob("*.md")))
            members.extend(page for page in found if page not in named)
        else:
            members.append(member)
    return Group(str(entry["name"]), tuple(members), folder)


def find_place(path: str) -> str:
    """Return where the site has a file of the repository: docs/ is its root, and the README its front page.

    >>> [find_place(path) for path in ("README.md", "docs/bi/README.md", "SECURITY.md", "docs/tls.md")]
    ['index.md', 'bi/index.md', 'security.md', 'tls.md']
    """
    inside = path.removeprefix("docs/")
    if inside == path:
        inside = path.lower()
    folder, name = posixpath.split(inside)
    return posixpath.join(folder, "index.md" if name.lower() == "readme.md" else name)


def map_places(groups: tuple[Group, ...]) -> dict[str, str]:
    """Map each file or folder of the repository that the site has to its place there."""
    files = [path.relative_to(ROOT).as_posix() for kind in PICTURES for path in (ROOT / "docs").rglob(f"*{kind}")]
    pages = [page for group in groups for page in group.list_pages()]
    places = {path: find_place(path) for path in (*pages, *files)}
    indexes = {folder: f"{find_place(folder)}/index.md" for folder in _map_folders(groups)}
    readmes = {posixpath.dirname(page): places[page] for page in pages if page.endswith("/README.md")}
    return places | indexes | readmes


def _map_folders(groups: tuple[Group, ...]) -> dict[str, Group]:
    found: dict[str, Group] = {}
    for group in groups:
        if group.folder is not None:
            found[group.folder] = group
        found |= _map_folders(tuple(member for member in group.members if isinstance(member, Group)))
    return found


def write_pages(folder: Path) -> None:
    """Write the pages, their pictures and the tool's configuration into a folder, which is emptied first."""
    groups = read_groups()
    places = map_places(groups)
    shutil.rmtree(folder, ignore_errors=True)
    for source, place in places.items():
        target = folder / "pages" / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.endswith(".md"):
            target.write_text(adapt_page(_read(source), source, places, root=ROOT), encoding="utf-8")
        elif (ROOT / source).is_file():
            shutil.copyfile(ROOT / source, target)
    for name, group in _map_folders(groups).items():
        listed = [f"- [{find_title(_read(page))}]({PurePosixPath(page).name})" for page in group.list_pages()]
        text = "\n".join((f"# {group.name}", "", *listed, ""))
        (folder / "pages" / places[name]).write_text(text, encoding="utf-8")
    (folder / "pages" / "stylesheets").mkdir()
    shutil.copyfile(STYLE, folder / "pages" / "stylesheets" / STYLE.name)
    navigation = ", ".join(_write_entry(group, places) for group in groups)
    written = CONFIGURATION.read_text(encoding="utf-8").replace("[project]\n", f"[project]\nnav = [{navigation}]\n", 1)
    (folder / "zensical.toml").write_text(written, encoding="utf-8")


def _write_entry(member: str | Group, places: Mapping[str, str]) -> str:
    """Return an entry of the navigation as TOML."""
    if isinstance(member, str):
        name = find_title(_read(member)).partition(": ")[0].replace("`", "")
        return f"{{ {json.dumps(name, ensure_ascii=False)} = {json.dumps(places[member])} }}"
    begins = () if member.folder is None else (json.dumps(places[member.folder]),)
    inside = ", ".join((*begins, *(_write_entry(one, places) for one in member.members)))
    return f"{{ {json.dumps(member.name)} = [{inside}] }}"


def _read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def find_missing_and_repeated() -> tuple[list[str], list[str]]:
    """Return the pages of docs/ that the navigation does not have, and those that it has twice."""
    pages = [page for group in read_groups() for page in group.list_pages()]
    there = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")}
    repeated = sorted({page for page in pages if pages.count(page) > 1})
    return sorted(there - set(pages)), repeated
