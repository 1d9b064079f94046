"""`python -m docs.generator.site --zensical FILE [--into FOLDER]`: build the site, and stop at the first doubt."""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from docs.generator.site.built_pages import BuiltSite, adopt_style_of_search, move_inline_scripts
from docs.generator.site.pages import ROOT, write_pages

SITE = ROOT / "proxy" / "rest" / "site"


def build(zensical: Path, work: Path, into: Path) -> list[str]:
    """Build the site in the folder `work` and put it into another; return the faults, with which it stays in `work`."""
    write_pages(work)
    command = [str(zensical.absolute()), "build", "--strict", "--clean", "--config-file", "zensical.toml"]
    built = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)  # noqa: S603
    if built.returncode:
        return [built.stdout + built.stderr]
    move_inline_scripts(work / "site")
    if not adopt_style_of_search(work / "site"):
        return ["the tool's script gives the search its style in another way: see adopt_style_of_search"]
    faults = list(BuiltSite(work / "site").find_faults())
    if not faults:
        shutil.rmtree(into, ignore_errors=True)
        shutil.move(work / "site", into)
    return faults


def main() -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m docs.generator.site", description=__doc__)
    parser.add_argument("--zensical", type=Path, required=True, help="The program of the tool.")
    parser.add_argument("--into", type=Path, default=SITE, help="Where the site is put.")
    asked = parser.parse_args()
    faults = build(asked.zensical, ROOT / ".docs", asked.into)
    print(*(faults or [f"built {asked.into}; a running Keyhole shows it at /docs"]), sep="\n")  # noqa: T201
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
