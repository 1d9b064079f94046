"""The built site asks no other host, has no inline code, and is built without a warning."""

import re
from pathlib import Path

import pytest

from docs.generator.site.__main__ import build
from docs.generator.site.built_pages import BuiltSite, adopt_style_of_search, move_inline_scripts, read_page
from docs.generator.site.pages import ROOT

ZENSICAL = ROOT / ".venv-docs" / "bin" / "zensical"


def test_what_the_policy_of_the_server_would_forbid_is_found(tmp_path: Path) -> None:
    faults = {
        '<script>f()</script><img src="https://elsewhere.test/x.png">': 2,
        '<link href="//elsewhere.test/font.css"><p style="color: red" onclick="f()">': 2,
        '<a href="https://elsewhere.test/">elsewhere</a><img src="data:image/png;base64,AA==">': 0,
        '<a href="#nowhere">x</a><a href="gone.html">x</a><a href="../../etc/passwd">x</a><a href="/docs">x</a>': 4,
        '<h2 id="here">x</h2><a href="#here">x</a><a href="index.html?q=1#here">x</a><a href=".">x</a>': 0,
        '<script type="application/json">{}</script><style>p {}</style>': 1,
    }
    for text, count in faults.items():
        (tmp_path / "index.html").write_text(text, encoding="utf-8")
        assert len(list(BuiltSite(tmp_path).find_faults())) == count, text
    (tmp_path / "a.css").write_text("@import 'b.css'; p { background: url('//elsewhere.test/x') url(data:x) }")
    assert len(list(BuiltSite(tmp_path).find_faults())) == 1 + 2


def test_inline_scripts_become_files(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    for name in ("index.html", "deep/page.html"):
        (tmp_path / name).write_text("<script>let a = '<b>'</script><script src='x.js'></script>", encoding="utf-8")
    (tmp_path / "404.html").write_text("", encoding="utf-8")
    move_inline_scripts(tmp_path)
    (script,) = (tmp_path / "assets" / "inline").iterdir()
    assert script.read_text(encoding="utf-8") == "let a = '<b>'"
    loaded = read_page((tmp_path / "deep" / "page.html").read_text(encoding="utf-8")).loaded
    assert loaded == [f"../assets/inline/{script.name}", "x.js"]
    assert not (tmp_path / "404.html").exists()


def test_another_script_of_the_tool_is_noticed(tmp_path: Path) -> None:
    folder = tmp_path / "assets" / "javascripts"
    folder.mkdir(parents=True)
    for text, is_known in (('o.appendChild(C("style",{},T.toString()));', True), ("o.append(style)", False)):
        (folder / "bundle.1.min.js").write_text(text, encoding="utf-8")
        assert adopt_style_of_search(tmp_path) is is_known


@pytest.mark.skipif(not ZENSICAL.is_file(), reason="make docs installs the tool")
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    site = tmp_path / "site"
    assert build(ZENSICAL, tmp_path / "work", site) == []
    pages = BuiltSite(site).pages
    assert len(pages) > 110
    assert "index.html" in pages
    assert (site / "search.json").is_file()
    elsewhere = [name for page in pages.values() for name in page.loaded if re.match(r"(?:https?:)?//", name)]
    assert elsewhere == []
    text = (site / "index.html").read_text(encoding="utf-8")
    assert 'data-md-color-scheme="slate"' in text
