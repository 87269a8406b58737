"""The table of roles is the one of the code, and the form of a key is the one that is made."""

from __future__ import annotations

import re

from api.auth import ROLES, Scope
from minutebook.mint import mint_api_key, mint_key_id
from tests.docs.pages import ROOT, spans

PAGE = ROOT / "docs" / "explanation" / "access.md"


def test_table_of_roles_is_that_of_the_code() -> None:
    head, _, *rows = [line for line in PAGE.read_text().splitlines() if line.startswith("|")]
    roles = [cell.strip() for cell in head.strip("|").split("|")][2:]
    assert roles == list(ROLES)
    shown: dict[str, set[str]] = {role: set() for role in roles}
    named = []
    for row in rows:
        scope, _, *cells = [cell.strip() for cell in row.strip("|").split("|")]
        named.append(scope.strip("`"))
        for role, cell in zip(roles, cells, strict=True):
            assert cell in ("", "yes")
            if cell:
                shown[role].add(scope.strip("`"))
    assert sorted(named) == sorted(scope.value for scope in Scope)
    assert shown == {role: {scope.value for scope in scopes} for role, scopes in ROLES.items()}


def test_form_of_a_key_is_what_scanners_are_told() -> None:
    (pattern,) = [span for span in spans(PAGE) if span.startswith("mb_[")]
    for _ in range(20):
        assert re.fullmatch(pattern, mint_api_key(mint_key_id()))
