"""What is done from a page: the wish in its form, and the page again where it is refused."""

from __future__ import annotations

from typing import Final, NamedTuple

from fastapi import Request

from api.guard import trace_id_of
from api.pages.forms import Form
from api.problems import TABLE, Refused, problem_of, refused_field
from api.wishes import Wish
from minutebook.client.models import Problem
from minutebook.domain.commands import REASON_CHARS_MAX

WAIT_S: Final = 5.0
"""For a decision; after it the page says that it is on its way."""
LATER: Final = "It is on record, and will be done in a moment."


class Refusal(NamedTuple):
    """Why an action was refused, and what its form said: the page shows both."""

    problem: Problem
    status: int
    form: Form


def refusal(request: Request, refused: Refused, form: Form) -> Refusal:
    """The refusal of what a form asked for."""
    return Refusal(problem_of(refused, trace_id_of(request)), TABLE[refused.code].status, form)


def wish_of(form: Form) -> Wish:
    """The reason in a form. Raises Refused."""
    reason = form.text("reason").strip()
    if len(reason) > REASON_CHARS_MAX:
        raise refused_field("reason", f"ends at {REASON_CHARS_MAX} characters")
    return Wish(reason)
