"""Pages that follow from the code are what the code says now."""

from __future__ import annotations

import re

import pytest
from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from docs import (
    generate_actions,
    generate_cli,
    generate_metrics,
    generate_schemas,
    generate_settings,
    generate_topics,
)
from minutebook.cli.exits import MEANING
from minutebook.cli.nouns import commands
from tests.docs.pages import ROOT


def test_settings_page_is_what_the_classes_say() -> None:
    remedy = "run `python -m docs.generate_settings`"
    assert generate_settings.PAGE.read_text() == generate_settings.page(), remedy


def test_topics_page_is_what_the_table_says() -> None:
    remedy = "run `python -m docs.generate_topics`"
    assert generate_topics.PAGE.read_text() == generate_topics.page(), remedy


def test_records_page_is_what_the_schemas_say() -> None:
    remedy = "run `python -m docs.generate_schemas`"
    assert generate_schemas.PAGE.read_text() == generate_schemas.page(), remedy


def test_records_page_has_every_schema_and_every_record_in_it() -> None:
    page = generate_schemas.PAGE.read_text()
    for file in (ROOT / "schemas").glob("*.avsc"):
        for name in re.findall(r'"type": "record",\s+"name": "(\w+)"', file.read_text()):
            assert f"\n## {name}\n" in page, f"{file.name}: {name}"


def test_metrics_page_is_what_the_table_says() -> None:
    remedy = "run `python -m docs.generate_metrics`"
    assert generate_metrics.PAGE.read_text() == generate_metrics.page(), remedy


def test_actions_page_is_what_the_list_says() -> None:
    remedy = "run `python -m docs.generate_actions`"
    assert generate_actions.PAGE.read_text() == generate_actions.page(), remedy


def test_page_of_the_command_line_is_what_the_commands_say() -> None:
    remedy = "run `python -m docs.generate_cli`"
    assert generate_cli.PAGE.read_text() == generate_cli.page(), remedy


def test_page_of_the_command_line_has_every_command_and_code() -> None:
    page = generate_cli.PAGE.read_text()
    for words, command in commands():
        assert f"`minutebook {' '.join(words)}" in page
        for option in command.params:
            assert not option.envvar or f"`{option.envvar}`" in page or option.name == "output", option.name
    assert all(f"| {code.value} | {meaning} |" in page for code, meaning in MEANING.items())


def test_every_settings_class_is_on_the_page() -> None:
    ours = {kind for kind in BaseSettings.__subclasses__() if kind.__module__.split(".")[0] != "tests"}
    assert {kind for _, _, kind in generate_settings.PARTS} == {
        kind for kind in ours if kind.model_config.get("env_prefix", "").startswith("MINUTEBOOK_")
    }


def test_setting_without_a_meaning_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent(BaseSettings):
        model_config = SettingsConfigDict(env_prefix="SILENT_")
        told: int = Field(default=1, description="something")
        untold: int = 2

    monkeypatch.setattr(generate_settings, "PARTS", (("Silent", "", Silent),))
    with pytest.raises(ValueError, match="SILENT_UNTOLD"):
        generate_settings.page()
