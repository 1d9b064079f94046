"""The page of `keyhole play --policy` about the owner's own table, and the key that every request needs.

No analyst can reach this page. The console does not use this module, and `keyhole play` has no analysts.
"""

import hmac
import secrets
from fractions import Fraction
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from starlette.responses import RedirectResponse

from mechanisms.protocol import Noise
from planner.errors import KeyholeError
from proxy.console.console_refusals import refuse_other_site
from proxy.console.page import render_page
from proxy.console.play.routes import Epsilon, answer_with_problems
from proxy.play.own_streams import OWN_WAYS, OwnStreams, compare_ways, publish_place
from proxy.play.published import SENTENCES, Publishing
from proxy.rest.request_refusals import HttpRefusal

ENTER = "/enter"
WARNING = (
    "OWNER ONLY: true counts of private rows. Analysts must not see this page, or learn what it shows. Nothing is "
    "charged, since nothing is released. A threshold, bound or epsilon that you choose by it and then publish would "
    "reveal what you saw. Use keyhole bounds, which adds noise."
)
_COOKIE = "keyhole_play"
_MOST_THRESHOLD = 1 << 40  # of any count that there is

Place = Annotated[int, Query(ge=0)]
Threshold = Annotated[int, Query(ge=0, le=_MOST_THRESHOLD)]


class OwnerKey:
    """The secret key of the person who started the process. It is in the printed address, and then in a cookie."""

    def __init__(self) -> None:
        self._key = secrets.token_urlsafe(32)

    def make_address(self, begin: str) -> str:
        """Return the address with the key, which the owner opens in a browser."""
        return f"{begin}{ENTER}?key={self._key}"

    def check_request(self, request: Request, *, begin: str) -> None:
        """Raise KH401 for a request without the key, and KH408 for one from another site's page."""
        if request.url.path == f"{begin}{ENTER}":
            return
        if request.headers.get("sec-fetch-site") not in (None, "none", "same-origin"):
            raise refuse_other_site()
        if not self._is_key(request.cookies.get(_COOKIE, "")):
            raise _refuse_without_key()

    def add_login_route(self, router: APIRouter, *, begin: str) -> None:
        """Add the route of the printed address. It stores the key in a cookie."""

        @router.get(f"{begin}{ENTER}")
        def enter(key: str = "") -> Response:
            if not self._is_key(key):
                raise _refuse_without_key()
            response = RedirectResponse(f"{begin}/own", status_code=303)
            response.set_cookie(_COOKIE, self._key, path="/console", httponly=True, samesite="strict")
            return response

    def _is_key(self, sent: str) -> bool:
        return hmac.compare_digest(sent.encode(), self._key.encode())


def _refuse_without_key() -> KeyholeError:
    hint = "Open the address that keyhole play has printed: it has the key of this process."
    return HttpRefusal("KH401", "only the person who started this playground may use it", hint=hint, status=401)


def add_own_routes(router: APIRouter, streams: OwnStreams, *, noise: Noise, begin: str) -> None:
    """Add the page about the owner's table, and the routes that its script calls."""
    told = {
        "table": streams.table,
        "counted": streams.counted,
        "groups": streams.groups,
        "place": streams.place,
        "time": streams.time,
        "places": list(streams.places),
        "times": list(streams.times),
        "ways": {way.value: SENTENCES[way] for way in OWN_WAYS},
    }

    @router.get(f"{begin}/own")
    def show_own(request: Request) -> Response:
        return render_page(
            request, "play/own.html", section="play", told=told, part="own", begin=begin, own=True, warning=WARNING
        )

    @router.get(f"{begin}/api/own/seen")
    def tell_seen(place: Place, way: Publishing, epsilon: Epsilon, threshold: Threshold) -> dict[str, Any]:
        with answer_with_problems():
            seen = publish_place(
                streams.counts[_within(place)], way, epsilon=_read_epsilon(epsilon), threshold=threshold, noise=noise
            )
        return {
            "published": None if seen.published is None else seen.published.round(2).tolist(),
            "keys": None if seen.keys is None else seen.keys.nonzero()[0].tolist(),
        }

    @router.get(f"{begin}/api/own/truth")
    def tell_truth(place: Place, epsilon: Epsilon, threshold: Threshold) -> dict[str, Any]:
        with answer_with_problems():
            counts = streams.counts[_within(place)]
            found = compare_ways(counts, epsilon=_read_epsilon(epsilon), threshold=threshold, noise=noise)
        return {
            "true": counts.tolist(),
            "above": int((counts > threshold).sum()),
            "tolerance": found.tolerance,
            "ways": [
                {
                    "way": one.way.value,
                    "text": SENTENCES[one.way],
                    "mean_error": one.mean_error,
                    "missed": one.missed,
                    "slack": one.within_tolerance,
                    "wrong": one.beyond_tolerance,
                    "draws": one.draws,
                }
                for one in found.ways
            ],
        }

    def _within(place: int) -> int:
        if place >= len(streams.places):
            raise ValueError("there is no such place")
        return place


def _read_epsilon(epsilon: float) -> Fraction:
    return Fraction(epsilon).limit_denominator(100_000)
