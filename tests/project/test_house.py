"""The house is as its signs and pages say: every room has a sign, a layer and a line in docs/architecture.md."""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from docs.generator import house

ROOT = Path(__file__).resolve().parents[2]
MOST_MODULES = 20  # what a listing shows in one look
SHORTEST_SIGN = 80  # characters; "planner bind." is no sign
ALL = (*house.HOUSES, "benchmarks", "deploy")
LINTER = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
SIGNS = sorted(path for name in ALL for path in (ROOT / name).rglob("__init__.py"))
PAGES = sorted(path for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")))


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


MODULES = re.compile(rf"`((?:{'|'.join((*ALL, 'tests'))})(?:\.\w+)+)`")
FILES = re.compile(rf"\b((?:{'|'.join((*ALL, 'tests', 'docs'))})/[\w/.-]+\.(?:py|md|sql|toml|svg))\b")


def modules(package: Path) -> list[Path]:
    return sorted(path for path in package.rglob("*.py") if "__pycache__" not in path.parts)


def test_all_of_the_house_was_found() -> None:
    assert len(SIGNS) > 40
    assert len([path for name in house.HOUSES for path in modules(ROOT / name)]) > 300
    assert len(PAGES) > 10


def test_a_package_has_a_sign_that_says_what_it_does_and_where_to_begin() -> None:
    for path in SIGNS:
        text = house.read_sign(path)
        assert len(text) >= SHORTEST_SIGN, shown(path)
        assert house.take_first_sentence(text).endswith("."), shown(path)
        if path.parents[2] != ROOT and path.parents[1] != ROOT:
            continue  # a folder inside a room: the room's own sign says where to begin
        first = re.fullmatch(r"`([^`]+)`\.", house.find_line(text, "Read first:"))
        assert first is not None, shown(path)
        assert (path.parent / first[1]).is_file(), shown(path)


def codes_raised(package: Path) -> Iterator[str]:
    """Codes that are handed to a call, as every refusal's is: `KeyholeError("KH101", ...)`."""
    texts = (path.read_text(encoding="utf-8") for path in modules(package))
    for text in texts:
        for node in ast.walk(ast.parse(text)) if '"KH' in text else ():
            if isinstance(node, ast.Call):
                handed = (*node.args, *(keyword.value for keyword in node.keywords))
                said = (arg.value for arg in handed if isinstance(arg, ast.Constant) and isinstance(arg.value, str))
                yield from (text for text in said if re.fullmatch(r"KH\d{3}", text))


def exceptions_raised(package: Path) -> Iterator[str]:
    """Exceptions of Keyhole's own that are raised by name; what means a mistake of the caller's is none of them."""
    texts = (path.read_text(encoding="utf-8") for path in modules(package))
    for text in texts:
        for node in ast.walk(ast.parse(text)) if "raise " in text else ():
            if isinstance(node, ast.Raise):
                raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
                if isinstance(raised, ast.Name) and raised.id[0].isupper():
                    yield raised.id


ROOMS = [room for name in house.HOUSES for room in house.read_rooms(name) if room.path.name == "__init__.py"]


def test_a_sign_names_what_may_be_refused() -> None:
    for room in ROOMS:
        insist_refusals(room)


def insist_refusals(room: house.Room) -> None:
    package = room.path.parent
    refused = house.find_line(house.read_sign(room.path), "May refuse:")
    written = "\n".join(path.read_text(encoding="utf-8") for path in modules(package) if path != room.path)
    codes = set(re.findall(r"KH\d{3}", refused))
    raised = set(codes_raised(package))
    assert raised <= codes, f"{shown(room.path)} lacks {', '.join(sorted(raised - codes))}"
    assert {code for code in codes if f'"{code}"' not in written} == set(), shown(room.path)
    if room.house in ("accountant", "mechanisms"):
        own = {name for name in exceptions_raised(package) if name not in ("ValueError", "AssertionError")}
        assert set(re.findall(r"`(\w+)`", refused)) == {name for name in own if name[0] != "_"}, shown(room.path)


def test_a_sign_says_what_its_layer_allows() -> None:
    for room in ROOMS:
        assert house.find_line(house.read_sign(room.path), "May import:") == f"{room.may_import}.", shown(room.path)


def test_the_lists_of_the_architecture_page_are_the_signs() -> None:
    page = house.PAGE.read_text(encoding="utf-8")
    assert house.replace_lists(page) == page, "run `make pages`"
    for name in house.HOUSES:
        assert page.count(house.write_list(name)) == 1


@pytest.mark.parametrize("name", house.HOUSES)
def test_every_room_stands_on_a_layer_and_a_new_one_fails_the_linter(name: str) -> None:
    assert name in LINTER["root_packages"]
    (contract,) = (found for found in LINTER["contracts"] if found.get("containers") == [name])
    assert contract["type"] == "layers"
    assert contract["exhaustive"] is True
    rooms = {path.stem if path.suffix else path.name for path in (ROOT / name).iterdir()} - {"__init__", "__pycache__"}
    assert {room.name for room in house.read_rooms(name)} == rooms


def test_the_houses_stand_on_layers_too() -> None:
    layers = (contract for contract in LINTER["contracts"] if contract["type"] == "layers")
    (contract,) = (found for found in layers if "containers" not in found)
    named = {name.strip().split(".")[0] for layer in contract["layers"] for name in layer.split("|")}
    assert named == set(ALL) == set(LINTER["root_packages"])


NAMED = re.compile(r"`((?:[\w.-]+/)*[\w.-]+\.(?:py|md|toml|sql|yml|json|svg|csv|png|parquet|service)|(?:[\w.-]+/)+)`")
ROOTS = {path.name for path in ROOT.iterdir() if path.is_dir()}


def named_files(text: str) -> Iterator[str]:
    """Paths in backquotes that start at one of the project's own folders."""
    for name in NAMED.findall(text):
        if name.split("/")[0] in ROOTS and "/" in name:
            yield name


def test_every_file_that_a_page_names_exists() -> None:
    for page in PAGES:
        missing = [name for name in named_files(page.read_text(encoding="utf-8")) if not (ROOT / name).exists()]
        assert missing == [], shown(page)


def test_a_page_names_python_files_by_their_whole_path() -> None:
    """The bare name of a file cannot be looked up, and nobody notices when it moves."""
    for page in PAGES:
        assert re.findall(r"`([\w-]+\.py)`", page.read_text(encoding="utf-8")) == [], shown(page)


def defines(path: Path, name: str) -> bool:
    return re.search(rf"\b{name}\b", path.read_text(encoding="utf-8")) is not None


def resolves(dotted: str) -> bool:
    """Whether `planner.plan.cover` is a package or module, or a name in one."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        path = ROOT.joinpath(*parts[:length])
        if path.is_dir():
            return length == len(parts)
        if path.with_suffix(".py").is_file():
            return length == len(parts) or defines(path.with_suffix(".py"), parts[length])
    return False


@pytest.mark.parametrize("name", [*ALL, "tests"])
def test_what_the_code_says_of_other_modules_leads_there(name: str) -> None:
    """Docstrings and comments that name a module or a document name one that is there."""
    for path in modules(ROOT / name):
        text = path.read_text(encoding="utf-8")
        assert [dotted for dotted in MODULES.findall(text) if not resolves(dotted)] == [], shown(path)
        if name != "tests":
            assert [found for found in FILES.findall(text) if not (ROOT / found).exists()] == [], shown(path)


@pytest.mark.parametrize("name", [*ALL, "docs", "tests"])
def test_a_folder_can_be_read_in_one_look(name: str) -> None:
    """At most twenty modules: with more, a folder has two subjects, and wants another folder."""
    crowded = {
        shown(folder): len(found)
        for folder in sorted({path.parent for path in modules(ROOT / name)})
        if len(found := [path for path in folder.glob("*.py") if path.name != "__init__.py"]) > MOST_MODULES
    }
    assert crowded == {}


PLACED = re.compile(r"`(\w+)` in\s+`([\w/]+\.py)`")


def test_what_a_page_says_to_be_in_a_file_is_defined_there() -> None:
    placed = [(page, *found) for page in PAGES for found in PLACED.findall(page.read_text(encoding="utf-8"))]
    for page, name, path in placed:
        text = (ROOT / path).read_text(encoding="utf-8")
        assert re.search(rf"^(class|def) {name}\b|^{name}\b.*=", text, re.M), f"{shown(page)}: {name} in {path}"


NOUNS = re.compile(r"`([a-z]{3,}(?:_[a-z]{3,})+)`")  # two words at least: one letter and an index is mathematics
DEEP_PAGES = [
    path for path in PAGES if path.parent.name in ("decisions", "proofs") or path.stem in ("architecture", "mechanisms")
]


def test_what_a_page_names_of_the_code_is_in_the_code() -> None:
    words = words_of_the_code()
    for page in DEEP_PAGES:
        assert set(NOUNS.findall(page.read_text(encoding="utf-8"))) - words == set(), shown(page)


def words_of_the_code() -> frozenset[str]:
    sources = [path for name in (*ALL, "tests") for path in modules(ROOT / name)]
    return frozenset(word for path in sources for word in re.findall(r"\w+", path.read_text(encoding="utf-8")))


def is_number(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=value):
            return isinstance(value, int | float) and not isinstance(value, bool)
        case ast.BinOp(left=left, right=right):
            return is_number(left) and is_number(right)
        case ast.UnaryOp(operand=operand):
            return is_number(operand)
        case ast.Tuple(elts=members):
            return bool(members) and all(is_number(member) for member in members)
        case ast.Call(func=ast.Name(id="Fraction" | "Decimal")):
            return True
        case _:
            return False


NUMBERED = re.compile(r"^\w.*=\s*[-+~(]*\s*(?:\d|Fraction|Decimal)", re.M)  # what may be a module's number


def unexplained_numbers(path: Path) -> Iterator[str]:
    """Numeric constants of a module without a comment, before or beside them, and without a docstring."""
    text = path.read_text(encoding="utf-8")
    lines, body = text.splitlines(), ast.parse(text).body if NUMBERED.search(text) else []
    for number, node in enumerate(body):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and is_number(node.value):
            after = body[number + 1] if number + 1 < len(body) else None
            docstring = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            around = (lines[node.lineno - 1], lines[(node.end_lineno or node.lineno) - 1])
            beside = any("#" in line for line in around) or lines[node.lineno - 2].lstrip().startswith("#")
            if not (docstring or beside):
                yield f"{shown(path)}:{node.lineno}"


@pytest.mark.parametrize("name", house.HOUSES)
def test_a_number_says_what_it_trades(name: str) -> None:
    """Every numeric constant of a module has a line: what it bounds or trades, and how it was found."""
    assert [found for path in modules(ROOT / name) for found in unexplained_numbers(path)] == []


@cache
def anchors(page: Path) -> set[str]:
    """The names that GitHub gives to a page's headings, and those that stand in the text."""
    text = page.read_text(encoding="utf-8")
    headings = {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in re.findall(r"^#+ (.+)$", text, re.M)
    }
    return headings | set(re.findall(r'<a id="([^"]+)">', text))


def test_every_link_of_a_page_leads_somewhere() -> None:
    links = re.compile(r"\]\(([^)#\s]*)(?:#([^)]+))?\)")
    found = [(page, *link) for page in PAGES for link in links.findall(page.read_text(encoding="utf-8"))]
    for page, link, anchor in found:
        if "://" not in link:
            target = (page.parent / link).resolve() if link else page
            assert target.exists(), f"{shown(page)}: {link}"
            assert not anchor or anchor in anchors(target), f"{shown(page)}: {link}#{anchor}"


def test_no_two_classes_have_one_name() -> None:
    """A reader who meets a name knows which class is meant; a leading underscore keeps one to its file."""
    places: dict[str, list[str]] = {}
    for path in (path for name in house.HOUSES for path in modules(ROOT / name)):
        for name in re.findall(r"^class ([^\W_]\w*)", path.read_text(encoding="utf-8"), re.M):
            places.setdefault(name, []).append(shown(path))
    assert len(places) > 300
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


PARTICIPLE = re.compile(r"_*(?!embed$|feed$|need$|seed$|exceed$|proceed$|string$|bring$|nothing$)[a-z]+(?:ed|ing)")
NO_CALLS = {"property", "cached_property", "contextmanager", "asynccontextmanager"}  # `with reading(...)` reads well


@pytest.mark.parametrize("name", house.HOUSES)
def test_a_function_is_a_verb_and_no_bare_participle(name: str) -> None:
    """`mapped` is the one that stays: it is what every tree of a question calls it."""
    found = []
    for path in modules(ROOT / name):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if re.search(rf"\bdef {PARTICIPLE.pattern}\b", text) else ():
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and PARTICIPLE.fullmatch(node.name):
                decorators = {ast.unparse(one).rpartition(".")[2] for one in node.decorator_list}
                enters = node.returns is not None and "ContextManager" in ast.unparse(node.returns)
                if not (decorators & NO_CALLS or enters or node.name == "mapped"):
                    found.append(f"{shown(path)}: {node.name}")
    assert not found


def parameters_described(docstring: str) -> set[str]:
    """The names that the section Parameters of a docstring describes."""
    section = re.search(r"^Parameters:\n((?:    .*\n?|\n)+)", docstring, re.MULTILINE)
    lines = [] if section is None else re.findall(r"^    (\w+(?:, \w+)*):", section[1], re.MULTILINE)
    return {name for line in lines for name in line.split(", ")}


def parameters_taken(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> set[str]:
    """The parameters of a function, or the fields and the methods' parameters of a class."""
    if isinstance(node, ast.ClassDef):
        fields = {
            one.target.id for one in node.body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
        }
        return fields.union(*(parameters_taken(one) for one in node.body if isinstance(one, ast.FunctionDef)))
    taken = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg)
    return {one.arg for one in taken if one is not None}


@pytest.mark.parametrize("name", house.HOUSES)
def test_a_docstring_describes_parameters_that_there_are(name: str) -> None:
    found = [
        f"{shown(path)}: {node.name}: {', '.join(sorted(unknown))}"
        for path in modules(ROOT / name)
        if "Parameters:\n" in (text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and (unknown := parameters_described(ast.get_docstring(node) or "") - parameters_taken(node))
    ]
    assert found == []
