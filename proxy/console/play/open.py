"""The opening of the playground's sessions and leader board, in the console or for `keyhole play`."""

import time
from pathlib import Path

from mechanisms.noise.exact import make_system_noise
from planner.policy.file import Policy
from proxy.play.game_sessions import GameSessions
from proxy.play.leader_board import LeaderBoard


def open_playground(policy: Policy) -> GameSessions | None:
    """Return the playground of a policy, or None if it has none. Only `[server.play]` of the policy is read."""
    play = policy.server.play
    return open_sessions(policy.directory / play.scores) if play.enabled else None


def open_sessions(scores: Path) -> GameSessions:
    """Open a playground whose leader board is the file `scores`. The file is created when it is first used."""
    return GameSessions(LeaderBoard(scores), noise=make_system_noise(), clock=time.monotonic)
