"""The pages of the playground, and the routes below /console/play/api/ that their scripts call.

Nothing here reads a policy, a source or a ledger, since all data is invented. `player_of` returns the player's name for
a request.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import lru_cache
from threading import Lock
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from starlette.responses import PlainTextResponse

from proxy.console.page import render_page
from proxy.console.play.asked import AnswerIn, BeginIn, NothingIn
from proxy.play import round_json
from proxy.play.attacker_beliefs import (
    AttackedDay,
    Attacker,
    PublishedChannel,
    PublishedForm,
    compute_belief,
    count_localised_people,
)
from proxy.play.bots import BotError
from proxy.play.floor_plan import draw_floor_plan
from proxy.play.game import EPSILONS, MOST_DAYS, MOST_PLACES, SESSION_S, NotAllowedNow
from proxy.play.game_sessions import SEEDS, GameSessions, SessionEntry
from proxy.play.policy_text import write_policy
from proxy.play.published import SENTENCES, Publishing
from proxy.play.scoring import SECONDS
from proxy.play.tasks import WEEKDAYS
from proxy.play.tradeoff import LEAST_EPSILON, MOST_EPSILON, MOST_LOOKS, Tradeoff, count_errors, weigh_epsilon
from proxy.rest.request_refusals import HttpRefusal

BEGIN = "/console/play"
OWNERS_BEGIN = "/console/owner/play"
_BOARD = 20  # results that are shown
_EVERY = 2  # ticks of the attacked day whose people are counted: 72 of 144
_MOST_TICKS = 1000  # that an attacker averages over
_JSON_LINES = "application/jsonl; charset=utf-8"

PlayerOf = Callable[[Request], str]
Seed = Annotated[int, Query(ge=0, lt=SEEDS)]
Epsilon = Annotated[float, Query(ge=float(LEAST_EPSILON), le=float(MOST_EPSILON))]


def name_player(request: Request) -> str:
    """Return the player's name for a request of the console: its login."""
    return str(request.state.analyst)


def name_owner(_: Request) -> str:
    """Return the owner's name as a player. No analyst's name can contain a space."""
    return "the owner"


def add_play_routes(
    router: APIRouter, sessions: GameSessions, player_of: PlayerOf, *, begin: str, own: bool = False
) -> None:
    """Add the game, the attackers, the slider and their pages below the address `begin`.

    With `own`, the pages link to the page about the owner's own table, which `own_routes.py` adds.
    """
    inner = APIRouter(prefix=begin, route_class=router.route_class, include_in_schema=router.include_in_schema)
    _add_pages(inner, begin, own=own)
    _add_game(inner, sessions, player_of)
    _add_results(inner, sessions, player_of)
    _add_attackers(inner, sessions)
    _add_slider(inner, sessions)
    router.routes.extend(inner.routes)


def _add_pages(router: APIRouter, begin: str, *, own: bool) -> None:
    told = {
        "places": round_json.write_plan(draw_floor_plan()),
        "weekdays": list(WEEKDAYS),
        "session_s": SESSION_S,
        "round_s": SECONDS,
        "most_days": MOST_DAYS,
        "most_places": MOST_PLACES,
        "epsilons": [float(epsilon) for epsilon in EPSILONS],
        "ways": {way.value: sentence for way, sentence in SENTENCES.items()},
    }

    def show(name: str) -> Callable[[Request], Response]:
        def show_page(request: Request) -> Response:
            return render_page(request, f"play/{name}.html", section="play", told=told, part=name, begin=begin, own=own)

        return show_page

    router.get("")(show("game"))
    router.get("/attack")(show("attack"))
    router.get("/slider")(show("slider"))
    router.get("/rules")(show("rules"))


def _add_game(router: APIRouter, sessions: GameSessions, player_of: PlayerOf) -> None:
    def tell_session(entry: SessionEntry) -> dict[str, Any]:
        return round_json.write_session(
            entry.session, key=entry.key, now=sessions.clock(), shared_seed=entry.has_shared_seed
        )

    @contextmanager
    def lock_session(request: Request, key: str) -> Iterator[SessionEntry]:
        """Yield a game session for one request. Another request for the same session waits."""
        with answer_with_problems():
            entry = sessions.find(player_of(request), key)
            with entry.lock:
                yield entry

    @router.post("/api/sessions")
    def begin(request: Request, body: BeginIn) -> dict[str, Any]:
        with answer_with_problems():
            entry = sessions.begin(player_of(request), name=body.name, teaching=body.teaching, seed=body.seed)
        return tell_session(entry)

    @router.get("/api/sessions/{key}")
    def tell_state(request: Request, key: str) -> dict[str, Any]:
        with lock_session(request, key) as entry:
            return tell_session(entry)

    @router.post("/api/sessions/{key}/rounds")
    def begin_round(request: Request, key: str, body: NothingIn) -> dict[str, Any]:  # noqa: ARG001
        with lock_session(request, key) as entry:
            entry.session.begin_round(sessions.clock())
            return tell_session(entry)

    @router.get("/api/sessions/{key}/series")
    def tell_series(
        request: Request,
        key: str,
        place: Annotated[list[int], Query(max_length=MOST_PLACES)],
        day: Annotated[int, Query(ge=0, lt=1000)],
        days: Annotated[int, Query(ge=1, le=MOST_DAYS)] = 1,
        start: Annotated[int, Query(ge=0, le=287)] = 0,
        stop: Annotated[int, Query(ge=1, le=288)] = 288,
    ) -> dict[str, Any]:
        with lock_session(request, key) as entry:
            seen = entry.session.read_published(sessions.clock(), tuple(dict.fromkeys(place)), range(day, day + days))
            return round_json.write_series(seen, start=start, stop=stop)

    @router.get("/api/sessions/{key}/heat")
    def tell_heat(request: Request, key: str, day: Annotated[int, Query(ge=0, lt=1000)]) -> dict[str, Any]:
        with lock_session(request, key) as entry:
            building = entry.session.building
            seen = entry.session.read_published(sessions.clock(), building.plan.regions, range(day, day + 1))
            return round_json.write_heat_map(building, seen[day])

    @router.post("/api/sessions/{key}/answer")
    def answer(request: Request, key: str, body: AnswerIn) -> dict[str, Any]:
        with lock_session(request, key) as entry:
            feedback = entry.session.answer_round(sessions.clock(), body.answer())
            return {"feedback": round_json.write_feedback(feedback, entry.session), "session": tell_session(entry)}

    @router.post("/api/sessions/{key}/give-up")
    def give_up(request: Request, key: str, body: NothingIn) -> dict[str, Any]:  # noqa: ARG001
        with lock_session(request, key) as entry:
            entry.session.give_up_round(sessions.clock())
            return tell_session(entry)

    @router.post("/api/sessions/{key}/end")
    def end(request: Request, key: str, body: NothingIn) -> dict[str, Any]:  # noqa: ARG001
        with lock_session(request, key) as entry:
            sessions.finish(entry)
            return tell_session(entry)


def _add_results(router: APIRouter, sessions: GameSessions, player_of: PlayerOf) -> None:
    @router.get("/api/board")
    def tell_board() -> dict[str, Any]:
        return {
            "best": [
                {"name": score.name, "points": score.points, "rounds": score.rounds, "ended_at": score.ended_at}
                for score in sessions.board.list_best(_BOARD)
            ]
        }

    @router.get("/api/sessions/{key}/trace")
    def export_trace(request: Request, key: str) -> Response:
        with answer_with_problems():
            entry = sessions.find(player_of(request), key)
            with entry.lock:
                if not entry.session.is_over(sessions.clock()):
                    raise NotAllowedNow("the trace is told when the session is over: it has the ways and the truths")
                lines = "".join(f"{round_json.write_action(action)}\n" for action in entry.session.trace)
        return PlainTextResponse(lines, media_type=_JSON_LINES)

    @router.get("/api/traces")
    def export_traces() -> Response:
        return PlainTextResponse("".join(sessions.board.read_traces()), media_type=_JSON_LINES)


def _add_attackers(router: APIRouter, sessions: GameSessions) -> None:
    @router.get("/api/attack/hidden")
    def tell_hidden(seed: Seed, attacker: Attacker, tick: Annotated[int, Query(ge=0, le=143)]) -> dict[str, Any]:
        day = AttackedDay(sessions.buildings.find_attacked_building(seed), attacker)
        roles = day.building.roles
        return {
            "open": len(day.building.plan.regions) - len(day.closed_regions),
            "people": [{"person": person, "role": roles[person]} for person in day.list_hidden_people(tick)],
        }

    @router.get("/api/attack")
    def attack(
        seed: Seed,
        attacker: Attacker,
        seen: PublishedForm,
        epsilon: Epsilon,
        tick: Annotated[int, Query(ge=0, le=143)],
        victim: Annotated[int, Query(ge=0, lt=10_000)],
        ticks: Annotated[int, Query(ge=1, le=_MOST_TICKS)] = 1,
    ) -> dict[str, Any]:
        day = AttackedDay(sessions.buildings.find_attacked_building(seed), attacker)
        channel = PublishedChannel(seen, Fraction(epsilon).limit_denominator(100_000), ticks)
        with answer_with_problems():
            if victim >= len(day.building.roles):
                raise ValueError("there is no such person")
            belief = compute_belief(day, channel, victim=victim, tick=tick, noise=sessions.noise)
        return round_json.write_belief(day, belief, channel)

    @router.get("/api/attack/day")
    def attack_day(seed: Seed, attacker: Attacker, seen: PublishedForm, epsilon: Epsilon) -> dict[str, Any]:
        day = AttackedDay(sessions.buildings.find_attacked_building(seed), attacker)
        channel = PublishedChannel(seen, Fraction(epsilon).limit_denominator(100_000), 1)
        return round_json.write_localised_people(
            count_localised_people(day, channel, every=_EVERY, noise=sessions.noise)
        )


def _add_slider(router: APIRouter, sessions: GameSessions) -> None:
    @lru_cache(maxsize=256)
    def find(seed: int, attacker: Attacker, epsilon: Fraction, looks: int) -> Tradeoff:
        buildings = sessions.buildings
        return weigh_epsilon(
            buildings.find_played_building(seed),
            buildings.find_attacked_building(seed),
            attacker=attacker,
            epsilon=epsilon,
            looks=looks,
            noise=sessions.noise,
        )

    @lru_cache(maxsize=256)
    def find_errors(seed: int, way: Publishing, epsilon: Fraction | None) -> tuple[BotError, ...]:
        return count_errors(sessions.buildings.find_played_building(seed), way, epsilon, noise=sessions.noise)

    one_at_a_time = Lock()  # PeGaSus takes a processor for seconds

    @router.get("/api/errors")
    def tell_errors(seed: Seed, way: Publishing, epsilon: Epsilon) -> dict[str, Any]:
        rate = Fraction(epsilon).limit_denominator(100_000) if way.has_epsilon else None
        with one_at_a_time:
            found = find_errors(seed, way, rate)
        return round_json.write_errors(way, found)

    @router.get("/api/tradeoff")
    def tell_tradeoff(
        seed: Seed,
        attacker: Attacker,
        epsilon: Epsilon,
        looks: Annotated[int, Query(ge=1, le=MOST_LOOKS)] = 24,
    ) -> dict[str, Any]:
        with answer_with_problems():
            found = find(seed, attacker, Fraction(epsilon).limit_denominator(100_000), looks)
        return round_json.write_tradeoff(found) | {"policy": write_policy(epsilon=found.epsilon, looks=looks)}


@contextmanager
def answer_with_problems() -> Iterator[None]:
    """Turn the game's errors in the block into problem documents, as REST does."""
    try:
        yield
    except NotAllowedNow as refusal:
        raise HttpRefusal("KH408", str(refusal), hint="Read the session again, or begin one.", status=409) from None
    except ValueError as refusal:
        raise HttpRefusal("KH408", str(refusal), hint="Send what the page sends.", status=400) from None
