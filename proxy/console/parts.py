"""The objects that all pages of the console share."""

import asyncio
from dataclasses import dataclass, field

from planner.policy.sections import ConsoleSection, RestSection
from proxy.console.ended_logins import EndedLogins
from proxy.console.session_cookie import SessionSeal
from proxy.console.static_files import StaticFolder
from proxy.monitors.notifications import AlertHub
from proxy.monitors.reading import CurrentMonitorReader
from proxy.open_policy.service import Serving
from proxy.rest.gate import Gate
from proxy.rest.readiness import Readiness
from proxy.security.mock_users import MockUsers
from proxy.shadow.key_labels import LabelReader


@dataclass(frozen=True, slots=True)
class ConsoleParts:
    """The objects that the console's pages share: the service, the login checks, the seal of cookies, and static files.

    `password_lock` lets one password be checked at a time. A check needs much computing time, and runs outside the
    event loop.
    """

    serving: Serving
    gate: Gate
    limits: RestSection
    section: ConsoleSection
    threads: int
    monitor_reader: CurrentMonitorReader
    hub: AlertHub
    ready: Readiness
    labels: LabelReader | None
    mock_users: MockUsers
    seal: SessionSeal
    ended_logins: EndedLogins
    files: StaticFolder
    has_playground: bool
    password_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
