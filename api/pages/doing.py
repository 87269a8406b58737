"""What is done on a page: the form of an action, and the same page with the reason where it is refused."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple

from fastapi import Request

from api.auth import Caller, Scope
from api.decisions import Asked, Decision
from api.guard import trace_id_of
from api.pages.forms import Form
from api.positions import encode_token
from api.problems import TABLE, Refused, problem_of, refused_field
from api.wishes import Wish
from minutebook.client.models import Problem
from minutebook.domain.commands import REASON_CHARS_MAX
from minutebook.ids import is_idempotency_key
from minutebook.mint import mint_id

WAIT_S: Final = 5.0
"""For a decision; after it the page says that it is on its way."""
LATER: Final = "It is on record, and will be done in a moment: load the page again then."


class Refusal(NamedTuple):
    """Why an action was refused, and what its form said: the page shows both."""

    problem: Problem
    status: int
    form: Form

    @property
    def does(self) -> str:
        """Name of the action."""
        return self.form.text("do")

    def at(self, *pointers: str) -> str:
        """What is wrong with a field; empty if nothing."""
        return "; ".join(error.detail for error in self.problem.errors if error.pointer in pointers)


class Done(NamedTuple):
    """What an action did. `path`: the page that shows it, empty = the same one."""

    said: str
    decision: Decision | None = None
    path: str = ""

    def word(self) -> str:
        """What the next page says."""
        is_decided = self.decision is None or self.decision.row is not None
        return self.said if is_decided else LATER

    def after(self) -> str:
        """The position that the next page must show."""
        return "" if self.decision is None else encode_token(self.decision.token())


class Action(NamedTuple):
    """Something that a page does, for those whose role covers `scope`."""

    scope: Scope
    act: Callable[..., Awaitable[Done]]


def chosen(actions: Mapping[str, Action], form: Form, caller: Caller) -> Action:
    """The action that a form names. Raises Refused: not-found, denied."""
    found = actions.get(form.text("do"))
    if found is None:
        raise Refused("not-found", "The page has no such action; load it again.")
    if not caller.may(found.scope):
        raise Refused("denied")
    return found


def refusal(request: Request, refused: Refused, form: Form) -> Refusal:
    """The refusal of what a form asked for."""
    return Refusal(problem_of(refused, trace_id_of(request)), TABLE[refused.code].status, form)


def asked_in(form: Form) -> Asked:
    """What goes beside the command: the form's own key, so that a second click changes nothing, and the version seen."""
    key, version = form.text("key"), form.text("version")
    return Asked(
        WAIT_S,
        key=key if is_idempotency_key(key) else mint_id(),
        expected_version=int(version) if version.isdecimal() and len(version) < 10 else None,
        action=f"page {form.text('do')}",
    )


def wish_of(form: Form) -> Wish:
    """The reason in a form. Raises Refused (invalid)."""
    return Wish(reason_in(form))


def reason_in(form: Form) -> str:
    """Why something is done. Raises Refused (invalid)."""
    reason = form.text("reason").strip()
    if len(reason) > REASON_CHARS_MAX:
        raise refused_field("/reason", f"ends at {REASON_CHARS_MAX} characters")
    return reason


def check_confirmed(form: Form) -> None:
    """Raises Refused (invalid) for what destroys and was not ticked."""
    if form.text("confirmed") != "yes":
        raise refused_field("/confirmed", "tick that you mean it; nothing was done")


def refusal_line(refused: Refused) -> str:
    """A refusal in one line."""
    details = "; ".join(error.detail for error in refused.errors)
    return details or refused.detail or TABLE[refused.code].detail
