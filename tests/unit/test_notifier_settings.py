"""Settings of the notifier: targets from the environment and a file, refused with the remedy, secrets never shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from api.notifier.settings import NotifySettings
from api.notifier.targets import Receiver, Targets
from minutebook.domain.records import Alert
from minutebook.errors import SettingsError

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_a2tra2tra2tra2tra2tra2tra2tra2traw=="
URL = "https://hooks.example/acme"


def alert(tenant: str = "acme", notify: str = "", **more: object) -> Alert:
    fields = {
        "id": "alert-1",
        "kind": "execution_dead",
        "tenant": tenant,
        "job_id": "a",
        "execution": "a:1",
        "task": "t",
        "queue": "default",
        "at": 1_767_225_600_000,
        "text": "it was given up",
        "notify": notify,
        "left_out": 0,
        "details": b"{}",
    }
    return Alert(**(fields | more))  # type: ignore[arg-type]


def settings(monkeypatch: pytest.MonkeyPatch, **values: str) -> NotifySettings:
    for name, value in values.items():
        monkeypatch.setenv(f"MINUTEBOOK_NOTIFY_{name.upper()}", value)
    return NotifySettings()


def test_targets_come_from_environment_and_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "targets.json"
    file.write_text(json.dumps({"acme": {"secret": OTHER}, "other": {"url": URL, "secret": OTHER}}))
    given = settings(
        monkeypatch,
        targets=json.dumps({"acme": {"url": URL, "secret": SECRET}}),
        targets_file=str(file),
        allowed_networks="10.1.0.0/16, fd00:1::/32",
        allow_http="true",
    )
    targets = Targets(given)
    found = [targets.receiver(alert(tenant)) for tenant in ("acme", "other")]
    assert [one.target.url for one in found if isinstance(one, Receiver)] == [URL, URL]
    assert len({one.key for one in found if isinstance(one, Receiver)}) == 2, "the environment goes first"
    assert targets.fault("acme", "http://10.1.2.3:9999/") == ""


def test_job_goes_before_tenant_and_without_both_it_is_nobodys(monkeypatch: pytest.MonkeyPatch) -> None:
    targets = Targets(
        settings(
            monkeypatch, targets=json.dumps({"a": {"url": URL, "secret": SECRET}, "b": {"secret": SECRET}})
        )
    )
    own = "https://hooks.example/job"
    urls = []
    for one in (alert("a"), alert("a", own), alert("b", own)):
        found = targets.receiver(one)
        assert isinstance(found, Receiver)
        urls.append(found.target.url)
    assert urls == [URL, own, own]
    assert targets.receiver(alert("b")) is None
    assert targets.receiver(alert("c")) is None
    assert "has no secret" in str(targets.receiver(alert("c", own)))
    assert "public address" in str(targets.receiver(alert("a", "https://10.0.0.1/"))), (
        "a producer may say anything"
    )


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"targets": json.dumps({"a": {"url": URL, "secret": "hush-hush"}})}, "head -c 32"),
        ({"targets": json.dumps({"a": {"url": URL}})}, "secret"),
        ({"targets": json.dumps({"a": {"uri": URL, "secret": SECRET}})}, "uri"),
        ({"allowed_networks": "10.0.0.1/8"}, "host bits"),
        ({"timeout_s": "0"}, "greater than 0"),
    ],
)
def test_senseless_setting_is_refused_without_showing_a_secret(
    values: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValidationError, match=said) as refused:
        settings(monkeypatch, **values)
    assert "hush-hush" not in str(refused.value)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    ("targets", "said"),
    [
        ({"a b": {"url": URL, "secret": SECRET}}, "a tenant is"),
        ({"a": {"url": "http://hooks.example/", "secret": SECRET}}, "its url must begin with https://"),
        ({"a": {"url": "https://127.0.0.1/", "secret": SECRET}}, "its url must lead to a public address"),
        ({"a": {"url": "hooks", "secret": SECRET}}, "its url must"),
    ],
)
def test_senseless_target_stops_the_start(
    targets: object, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SettingsError, match=said):
        Targets(settings(monkeypatch, targets=json.dumps(targets)))


def test_file_that_cannot_be_read_stops_the_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "targets.json"
    for content in (None, "not JSON"):
        if content is not None:
            file.write_text(content)
        with pytest.raises(SettingsError, match="MINUTEBOOK_NOTIFY_TARGETS_FILE cannot be read"):
            Targets(settings(monkeypatch, targets_file=str(file)))


def test_secrets_are_not_shown() -> None:
    given = NotifySettings(targets={"acme": {"secret": SECRET}})  # type: ignore[dict-item]
    assert SECRET not in repr(given)
