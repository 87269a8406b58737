"""What every route works with, made once at the start."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final, Protocol

from fastapi import Request

from api.auth import Keyring
from api.catch_up import CatchUp, not_ready
from api.due_topics import DueTopics
from api.held_runs import Frames
from api.live.changes import LiveChanges
from api.notifier.targets import Targets
from api.pages.login_link import LoginLink
from api.rates import Rates
from api.records import Records
from api.sender import CommandLog
from api.settings import ApiSettings
from api.task_types import TaskTypes
from api.view import View
from api.workers_view import WorkersView
from minutebook.broker_clock import BrokerClock
from minutebook.clock import Clock

_UNDECIDED_MAX: Final = 10_000


class Undecided:
    """Commands that this process sent and answered with 202, the newest few thousand: (tenant, id) -> job id."""

    def __init__(self) -> None:
        self._sent: OrderedDict[tuple[str, str], str] = OrderedDict()

    def add(self, tenant: str, command_id: str, job_id: str) -> None:
        """Remember one; the oldest is forgotten."""
        self._sent[tenant, command_id] = job_id
        if len(self._sent) > _UNDECIDED_MAX:
            self._sent.popitem(last=False)

    def get(self, tenant: str, command_id: str) -> str | None:
        """The job (or queue) of a command sent from here, None if it was not, or is forgotten."""
        return self._sent.get((tenant, command_id))


class Readiness(Protocol):
    """Whether requests can be answered; said by what follows the log."""

    lag: dict[int, int]
    """Records not yet folded, by partition, as last known."""
    is_caught_up: bool
    """Whether the view has been at the log's end once since the start."""
    catch_up: CatchUp
    """How far the log is read, and how fast."""

    def unready(self) -> str:
        """Why not; empty if they can."""
        ...


@dataclass
class Services:
    """Everything that routes use."""

    settings: ApiSettings
    clock: Clock
    keyring: Keyring
    view: View
    commands: CommandLog
    due_topics: DueTopics
    readiness: Readiness
    targets: Targets
    undecided: Undecided = field(default_factory=Undecided)
    broker_clock: BrokerClock = field(default_factory=BrokerClock)
    workers: WorkersView = field(default_factory=WorkersView)
    records: Records | None = None
    """None where the log cannot be read: nothing is told of the past then."""
    frames: Frames | None = None
    """None where there is nothing to read them from: what workers run is counted then, not named."""

    def __post_init__(self) -> None:
        self.rates = Rates(self.settings.rate_per_s, self.settings.rate_burst)
        self.task_types = TaskTypes(self.view)
        self.proxies = self.settings.proxies()
        self.live = LiveChanges(self.view, self.clock)
        self.login_link = LoginLink(self.settings.login_token, self.settings.login_key, self.clock.now())


def services_of(request: Request) -> Services:
    """The services behind a request. Raises Refused (not-ready) until the view has caught up."""
    services: Services = request.app.state.services
    reason = services.readiness.unready()
    if reason:
        raise not_ready(services.readiness.catch_up, f"{reason[:200]}; try again.")
    return services
