"""The documentation site has every page once, for some reader, and its links and anchors lead somewhere."""

import re
from pathlib import Path

import pytest

from docs.generator.site.markdown import BrokenLink, adapt_page, make_anchor
from docs.generator.site.pages import READERS, ROOT, find_missing_and_repeated, map_places, read_groups, write_pages

PLACES = {"README.md": "index.md", "docs/a.md": "a.md", "docs/bi/b.md": "bi/b.md", "docs/bi": "bi/index.md"}
_LINK = re.compile(r"(?<!!)\[(?:[^\[\]]|\[[^\[\]]*\])*\]\(([^()\s]+)\)")


def test_the_navigation_has_every_page_once() -> None:
    assert find_missing_and_repeated() == ([], [])
    groups = read_groups()
    assert len(groups) >= 4
    assert next(groups[0].list_pages()) == "README.md"
    places = map_places(groups)
    assert len(set(places.values())) == len(places) - 1  # docs/bi is the place of its README, too


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    write_pages(folder)
    return folder / "pages"


def test_every_link_and_anchor_of_the_written_pages_leads_to_one_of_them(written: Path) -> None:
    pages = {path: path.read_text(encoding="utf-8") for path in written.rglob("*.md")}
    anchors = {path: set(re.findall(r'\{#(\S+)\}$|<a id="([^"]+)">', text, re.M)) for path, text in pages.items()}
    count = 0
    for path, text in pages.items():
        for target in _LINK.findall(text):
            if "://" in target:
                continue
            name, _, fragment = target.partition("#")
            leads_to = (path.parent / name).resolve() if name else path
            assert leads_to.is_file(), f"{path}: {target}"
            assert not fragment or any(fragment in pair for pair in anchors[leads_to]), f"{path}: {target}"
            count += 1
    assert count > 400


def test_a_file_beside_the_site_is_named_by_its_path() -> None:
    text = (
        "[A policy](../deploy/demo/keyhole.toml), [`Makefile`](../Makefile), [LICENSE](../LICENSE), [b](bi/b.md#there)"
    )
    told = adapt_page(text, "docs/a.md", PLACES, root=ROOT)
    assert told == "A policy (`deploy/demo/keyhole.toml`), `Makefile`, `LICENSE`, [b](bi/b.md#there)"
    told = adapt_page("[a](../a.md) [home](../../README.md#try-it) [all](.)", "docs/bi/b.md", PLACES, root=ROOT)
    assert told == "[a](../a.md) [home](../index.md#try-it) [all](index.md)"


@pytest.mark.parametrize("target", ["nowhere.md", "../nowhere.sql", "../../elsewhere.md"])
def test_a_link_to_nothing_stops_the_build(target: str) -> None:
    with pytest.raises(BrokenLink):
        adapt_page(f"[x]({target})", "docs/a.md", PLACES, root=ROOT)


def test_a_page_is_read_as_github_reads_it() -> None:
    page = "# A `b`\n\n- one\n  two\n  - three\n\n  four\n- five\n\n## Same\n## Same\n\n| `a \\|\\| b` |\n|---|\n"
    assert adapt_page(page, "docs/a.md", PLACES, root=ROOT) == (
        "# A `b` {#a-b}\n\n- one\n    two\n    - three\n\n    four\n\n- five\n\n## Same {#same}\n## Same {#same-1}\n\n"
        "| `a || b` |\n|---|\n"
    )
    code = "```\n# no heading\n[no](link)\n  - item\n```\n"
    assert adapt_page(code, "docs/a.md", PLACES, root=ROOT) == code
    assert make_anchor("`[server.tls]`, & more") == "servertls--more"


def test_the_tool_is_pinned() -> None:
    lines = READERS.with_name("requirements.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert pins
    assert all(re.fullmatch(r"[a-z-]+==[\d.]+", pin) for pin in pins)
