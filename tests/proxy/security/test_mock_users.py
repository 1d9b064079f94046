"""Unknown users look like known ones at a login, across reloads, restarts and processes."""

import signal
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from planner.catalog.catalog import Analyst
from planner.policy.file import Policy
from proxy.cli import check as checking
from proxy.open_policy.login_secret import SUFFIX, read_login_secret
from proxy.security.mock_users import MockUsers
from proxy.security.scram import ITERATIONS, Verifier, make_verifier
from proxy.wire.backend import Authentication
from proxy.wire.frontend import Credential, Startup
from tests.proxy.conftest import Running
from tests.proxy.raw_client import RawClient
from tests.proxy.wire.scram_client import ScramClient
from tests.worlds.countries import PASSWORD
from tests.worlds.house import eventually
from tests.worlds.served import Served, served
from tests.worlds.wards import install

KNOWN = ("ada", "bob")
UNKNOWN = ("eve", "mallory", "Ada", "postgres")
SEEN = st.lists(st.tuples(st.text(max_size=8), st.sampled_from([4096, 8192])), unique_by=lambda one: one[0])


def analyst(name: str, iterations: int) -> Analyst:
    text = str(Verifier.make_mock(name, secret=b"of this test", iterations=iterations))
    return Analyst(name=name, verifier=text, token_hash=None, per_predicate=None, per_unit=None)


def told(port: int, user: str) -> tuple[str, str]:
    """The salt and the count of iterations that somebody is told who says that this is their name."""
    with RawClient(port, user="") as client:
        client.send(Startup((3, 0), ((b"user", user.encode()), (b"database", b"keyhole"))))
        client.next()
        first = ScramClient("x").first()
        client.send(Credential(b"SCRAM-SHA-256\0" + len(first).to_bytes(4, "big") + first))
        answer = client.next()
    assert isinstance(answer, Authentication)
    fields = dict(field.split("=", 1) for field in answer.data.decode().split(","))
    return fields["s"], fields["i"]


def all_told(keyhole: Served) -> dict[str, tuple[str, str]]:
    return {user: told(keyhole.port, user) for _ in range(4) for user in (*KNOWN, *UNKNOWN)}


def test_what_users_are_told_stays_over_a_reload_and_restarts(tmp_path: Path) -> None:
    policy = install(tmp_path)
    checking.check(policy, confirm=False)
    with served(policy) as keyhole:
        before = all_told(keyhole)
        with policy.open("a", encoding="utf-8") as file:
            file.write(f'\n[analysts.aaron]\npassword = "{make_verifier(PASSWORD)}"\n')
        keyhole.process.send_signal(signal.SIGHUP)
        eventually(lambda: "policy reloaded" in [event["event"] for event in keyhole.read_log()])
        assert all_told(keyhole) == before
    with served(policy, "--workers=2") as keyhole:
        assert all_told(keyhole) == before
    assert len({salt for salt, _ in before.values()}) == len(KNOWN + UNKNOWN)
    assert {iterations for _, iterations in before.values()} == {"4096"}
    assert {len(salt) for salt, _ in before.values()} == {24}
    path = policy.with_suffix(SUFFIX)
    assert path.stat().st_mode & 0o777 == 0o600


@given(SEEN, st.text(max_size=8), st.sampled_from([4096, 8192, 9999]))
def test_who_comes_changes_nothing_but_a_count_that_is_theirs(
    seen: list[tuple[str, int]], name: str, iterations: int
) -> None:
    """And then the salt with it. Who goes is the same backwards."""
    strangers, before = MockUsers(b"secret"), [analyst(*one) for one in seen if one[0] != name]
    after = [analyst(name, iterations), *before]
    for user in map(str, range(20)):
        now, then = strangers.make_verifier(user, after), strangers.make_verifier(user, before)
        assert now == then or (now.iterations == iterations and now.salt != then.salt)
        assert now == strangers.make_verifier(user, after[::-1])
        assert now.iterations in {one[1] for one in seen} | {iterations}


def test_counts_of_unknown_users_are_shared_out_as_those_of_known_ones() -> None:
    """One in four has 8192: of 2,000 names by 100 secrets within 6 standard deviations (false alarm < 1e-8)."""
    analysts = [analyst("a", 4096), analyst("b", 4096), analyst("c", 8192), analyst("d", 4096)]
    told = Counter(
        MockUsers(b"%d" % secret).make_verifier(str(user), analysts).iterations
        for secret in range(100)
        for user in range(20)
    )
    assert abs(told[8192] - 500) < 6 * (2000 * 0.25 * 0.75) ** 0.5
    assert MockUsers(b"").make_verifier("a", ()).iterations == ITERATIONS


def test_an_endpoint_tells_what_its_strangers_have(running: Running) -> None:
    assert told(running.port, "eve") == told(running.port, "eve") != told(running.port, "mallory")


def test_all_who_look_for_the_secret_at_once_find_one(tmp_path: Path) -> None:
    policy = Policy.load(install(tmp_path))
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(read_login_secret, [policy] * 64))
    assert found == {read_login_secret(policy)}
    assert [path.name for path in tmp_path.glob(f"*{SUFFIX}*")] == [f"keyhole{SUFFIX}"]  # nothing is left beside it


def test_where_the_policys_folder_takes_nothing_the_secret_lies_beside_the_ledger(tmp_path: Path) -> None:
    (tmp_path / "read").mkdir()
    (tmp_path / "written").mkdir()
    path = install(tmp_path / "read")
    path.write_text(f'[ledger]\nurl = "sqlite:///{tmp_path}/written/ledger.db"\n' + path.read_text(), encoding="utf-8")
    path.with_suffix(SUFFIX).mkdir()  # nobody can write a file there, whatever their rights
    policy, kept = Policy.load(path), tmp_path / "written" / f"keyhole{SUFFIX}"
    before = read_login_secret(policy)
    assert read_login_secret(policy) == before
    kept.unlink()
    assert read_login_secret(policy) != before


def test_where_nothing_can_be_kept_the_secret_stays_with_the_verifiers(tmp_path: Path) -> None:
    path = install(tmp_path)
    path.with_suffix(SUFFIX).write_bytes(b"too short")
    with capture_logs() as logged:
        before = read_login_secret(Policy.load(path))
    assert [event["event"] for event in logged] == ["the login secret cannot be kept"]
    assert path.with_suffix(SUFFIX).read_bytes() == b"too short"
    assert read_login_secret(Policy.load(path)) == before
    policy = path.read_text(encoding="utf-8")
    known = Policy.load(path).analysts["cy"].password
    path.write_text(
        policy.replace(known, make_verifier(PASSWORD, iterations=4096)), encoding="utf-8"
    )  # by another salt
    assert read_login_secret(Policy.load(path)) != before
