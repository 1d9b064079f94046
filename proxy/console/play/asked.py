"""The bodies of the requests that the playground's scripts send."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt

from proxy.play.game_sessions import MOST_NAME, SEEDS
from proxy.play.tasks import TaskAnswer

_MOST = 1 << 20  # of any number of an answer: far beyond all that there are
Whole = Annotated[StrictInt, Field(ge=0, lt=_MOST)]


class _StrictRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class BeginIn(_StrictRequest):
    """The request that begins a session."""

    name: Annotated[str, Field(min_length=1, max_length=MOST_NAME)]
    teaching: StrictBool = False
    seed: Annotated[StrictInt, Field(ge=0, lt=SEEDS)] | None = None


class AnswerIn(_StrictRequest):
    """A player's answer. The task decides which fields it needs."""

    count: Whole | None = None
    place: Whole | None = None
    day: Whole | None = None
    tick: Whole | None = None

    def answer(self) -> TaskAnswer:
        """Return the player's answer as a value of the game."""
        return TaskAnswer(count=self.count, place=self.place, day=self.day, tick=self.tick)


class NothingIn(_StrictRequest):
    """A request with an empty body."""
