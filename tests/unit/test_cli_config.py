"""`minutebook config`: values with their sources, secrets masked; and what is wrong with settings, each fault planted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from minutebook.cli import main, setting_parts
from minutebook.cli.nouns import option_names
from minutebook.environment import OPTIONS, names_of, require_known_names
from minutebook.errors import SettingsError
from minutebook.log.settings import KafkaSettings
from minutebook.worker.settings import WorkerSettings
from streams.settings import StreamsSettings

Run = Callable[..., int]
ROOT = Path(__file__).parents[2]
SECRET = "hush-hush"


@pytest.fixture(autouse=True)
def empty(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("MINUTEBOOK_"):
            monkeypatch.delenv(name)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    def running(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["minutebook", *arguments])
        with pytest.raises(SystemExit) as ended:
            main.run()
        return int(ended.value.code or 0)

    return running


def shown(run: Run, capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, tuple[str | None, str]]:
    assert run("config", "show", "-o", "json", *more) == 0
    written = capsys.readouterr()
    assert SECRET not in written.out + written.err
    return {one["name"]: (one["value"], one["source"]) for one in json.loads(written.out)}


def test_every_setting_is_shown_with_its_default(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    found = shown(run, capsys)
    count = sum(len(kind.model_fields) for _, kind in setting_parts.installed())
    assert len(found) == count
    assert {source for _, source in found.values()} == {"default"}
    assert found["MINUTEBOOK_KAFKA_BOOTSTRAP_SERVERS"] == ("127.0.0.1:9092", "default")
    assert found["MINUTEBOOK_NOTIFY_ALLOW_HTTP"] == ("false", "default")
    assert found["MINUTEBOOK_CLIENT_API_KEY"] == (None, "default")
    assert shown(run, capsys, "--changed") == {}


def test_source_is_told_and_secrets_are_masked(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "key"
    file.write_text(SECRET)
    monkeypatch.setenv("MINUTEBOOK_CLIENT_API_KEY_FILE", str(file))
    monkeypatch.setenv("MINUTEBOOK_KAFKA_SASL_PASSWORD", SECRET)
    monkeypatch.setenv("MINUTEBOOK_CLIENT_URL", f"https://me:{SECRET}@api.example/")
    monkeypatch.setenv("minutebook_worker_queues", "mail, sms")
    keys = {"0" * 64: {"tenant": SECRET, "role": "admin"}}
    monkeypatch.setenv("MINUTEBOOK_API_KEYS", json.dumps(keys))
    targets = {
        "acme": {
            "url": f"https://hooks.example/{SECRET}",
            "secret": "whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        }
    }
    monkeypatch.setenv("MINUTEBOOK_NOTIFY_TARGETS", json.dumps(targets))
    found = shown(run, capsys, "--changed")
    assert found == {
        "MINUTEBOOK_CLIENT_API_KEY": (f"in {file}", "file"),
        "MINUTEBOOK_CLIENT_API_KEY_FILE": (str(file), "environment"),
        "MINUTEBOOK_KAFKA_SASL_PASSWORD": ("********", "environment"),
        "MINUTEBOOK_CLIENT_URL": ("https://********@api.example/", "environment"),
        "MINUTEBOOK_WORKER_QUEUES": ("mail, sms", "environment"),
        "MINUTEBOOK_API_KEYS": ("000000000000: ********", "environment"),
        "MINUTEBOOK_NOTIFY_TARGETS": ("acme: ********", "environment"),
    }


def test_what_a_development_installation_keeps_comes_from_its_file(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "dev.json").write_text(json.dumps({"api_url": "http://here", "api_key": SECRET}))
    monkeypatch.setenv("MINUTEBOOK_DEV_DATA", str(tmp_path))
    assert shown(run, capsys, "--changed") == {
        "MINUTEBOOK_CLIENT_URL": ("http://here", "file"),
        "MINUTEBOOK_CLIENT_API_KEY": ("********", "file"),
    }


def test_setting_that_is_refused_is_shown_and_told(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MINUTEBOOK_API_PORT", "many")
    assert run("config", "show") == 0
    assert "MINUTEBOOK_API_PORT is refused" in capsys.readouterr().err


def test_all_as_it_should_be_ends_with_zero(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("config", "check", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out) == []


@pytest.mark.parametrize(
    ("given", "name", "told"),
    [
        ({"MINUTEBOOK_API_PROT": "1"}, "MINUTEBOOK_API_PROT", "did you mean MINUTEBOOK_API_PORT?"),
        ({"MINUTEBOOK_COLOUR": "1"}, "MINUTEBOOK_COLOUR", "nothing reads it"),
        ({"MINUTEBOOK_API_PORT": "many"}, "MINUTEBOOK_API_PORT", "valid integer"),
        ({"MINUTEBOOK_STREAMS_CLOCK_BOUND_MS": "0"}, "MINUTEBOOK_STREAMS_CLOCK_BOUND_MS", "greater than 0"),
        ({"MINUTEBOOK_WORKER_PULSE_MS": "9000"}, "MINUTEBOOK_WORKER_PULSE_MS", "half of lease_ms"),
        ({"MINUTEBOOK_CLIENT_API_KEY_FILE": "/none"}, "MINUTEBOOK_CLIENT_API_KEY_FILE", "cannot be read"),
        ({"MINUTEBOOK_API_KEYS_FILE": "/none"}, "MINUTEBOOK_API_KEYS_FILE", "cannot be read"),
        ({"MINUTEBOOK_NOTIFY_TARGETS_FILE": "/none"}, "MINUTEBOOK_NOTIFY_TARGETS_FILE", "cannot be read"),
        (
            {
                "MINUTEBOOK_KAFKA_SASL_USERNAME": "me",
                "MINUTEBOOK_KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
                "MINUTEBOOK_KAFKA_SASL_PASSWORD_FILE": "/none",
            },
            "MINUTEBOOK_KAFKA_SASL_PASSWORD_FILE",
            "cannot be read",
        ),
        (
            {"MINUTEBOOK_KAFKA_SECURITY_PROTOCOL": "SASL_SSL"},
            "MINUTEBOOK_KAFKA_SECURITY_PROTOCOL",
            "without a user",
        ),
        (
            {"MINUTEBOOK_KAFKA_SASL_USERNAME": "me", "MINUTEBOOK_KAFKA_SASL_PASSWORD": "x"},
            "MINUTEBOOK_KAFKA_SECURITY_PROTOCOL",
            "takes no user",
        ),
        (
            {"MINUTEBOOK_KAFKA_SASL_USERNAME": "me", "MINUTEBOOK_KAFKA_SECURITY_PROTOCOL": "SASL_SSL"},
            "MINUTEBOOK_KAFKA_SASL_USERNAME",
            "without a password",
        ),
        ({"MINUTEBOOK_KAFKA_SSL_CA_FILE": "/ca.pem"}, "MINUTEBOOK_KAFKA_SSL_CA_FILE", "nothing is encrypted"),
        (
            {"MINUTEBOOK_KAFKA_SSL_CA_FILE": "/none.pem", "MINUTEBOOK_KAFKA_SECURITY_PROTOCOL": "SSL"},
            "MINUTEBOOK_KAFKA_SSL_CA_FILE",
            "no such file",
        ),
        (
            {"MINUTEBOOK_CLIENT_API_KEY": "k", "MINUTEBOOK_CLIENT_API_KEY_FILE": __file__},
            "MINUTEBOOK_CLIENT_API_KEY_FILE",
            "the key counts",
        ),
        ({"MINUTEBOOK_CLIENT_TIMEOUT_S": "10"}, "MINUTEBOOK_CLIENT_TIMEOUT_S", "up to 30 s"),
        ({"MINUTEBOOK_API_HEALTH_PORT": "8000"}, "MINUTEBOOK_API_HEALTH_PORT", "public port"),
        ({"MINUTEBOOK_STREAMS_HEALTH_PORT": "8000"}, "MINUTEBOOK_STREAMS_HEALTH_PORT", "port of the API"),
        ({"MINUTEBOOK_API_DATA_DIR": ".data/streams/api"}, "MINUTEBOOK_API_DATA_DIR", "owners' stores"),
        ({"MINUTEBOOK_API_CHECKPOINT_DIR": "data/api/x"}, "MINUTEBOOK_API_CHECKPOINT_DIR", "copies"),
        ({"MINUTEBOOK_STREAMS_DATA_DIR": "."}, "MINUTEBOOK_STREAMS_CHECKPOINT_DIR", "copies"),
    ],
)
def test_fault_is_found_and_has_a_remedy(
    given: dict[str, str],
    name: str,
    told: str,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for variable, value in given.items():
        monkeypatch.setenv(variable, value)
    assert run("config", "check", "-o", "json") == 1
    found = [one for one in json.loads(capsys.readouterr().out) if one["name"] == name]
    assert any(told in one["fault"] + one["remedy"] for one in found), found
    assert all(one["remedy"] for one in found)


@pytest.mark.parametrize(
    "name",
    [
        "MINUTEBOOK_JOB_SUBMIT_QUEUE",
        "MINUTEBOOK_OUTPUT",
        "MINUTEBOOK_WORKER_STOP_REASON",
        "MINUTEBOOK_REPLAY_TOPIC",
        "MINUTEBOOK_DEV_DATA",
        "MINUTEBOOK_ROUNDS",
    ],
)
def test_names_of_options_are_known(name: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "1" if name != "MINUTEBOOK_OUTPUT" else "json")
    assert run("config", "check") == 0


def test_names_of_parts_that_are_not_installed_are_not_judged(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "streams.settings", None)
    monkeypatch.setenv("MINUTEBOOK_STREAMS_NOTHING", "1")
    assert run("config", "check") == 0
    capsys.readouterr()
    assert "MINUTEBOOK_STREAMS_GROUP" not in shown(run, capsys)


def test_password_of_kafka_is_read_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text(f"{SECRET}\n")
    kafka = KafkaSettings(security_protocol="SASL_PLAINTEXT", sasl_username="me", sasl_password_file=file)
    assert kafka.aiokafka()["sasl_plain_password"] == SECRET
    assert kafka.confluent()["sasl.password"] == SECRET


def test_unknown_name_stops_the_start() -> None:
    with pytest.raises(SettingsError, match="did you mean MINUTEBOOK_STREAMS_GROUP"):
        require_known_names({"MINUTEBOOK_STREAMS_GRUOP": "x"}, StreamsSettings, KafkaSettings)
    require_known_names({"MINUTEBOOK_API_PORT": "1", "minutebook_streams_group": "x"}, StreamsSettings)


def test_names_of_options_stop_no_start() -> None:
    settings = [name for _, kind in setting_parts.installed() for name in names_of(kind)]
    prefixes = tuple(part.prefix for part in setting_parts.PARTS)
    options = {name for name in option_names() - set(settings) if name.startswith(prefixes)}
    assert options
    assert all(name.startswith(OPTIONS) for name in options)
    require_known_names(dict.fromkeys(options, "x"), KafkaSettings, WorkerSettings)


def test_worker_with_an_unknown_name_does_not_start(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MINUTEBOOK_WORKER_CONCURENCY", "3")
    assert run("worker", "run", "nothing:app") == 2
    assert "did you mean MINUTEBOOK_WORKER_CONCURRENCY?" in capsys.readouterr().err


@pytest.mark.parametrize(("module", "code"), [("api", 2), ("streams", 1)])
def test_server_names_the_slip_and_does_not_start(module: str, code: int) -> None:
    environment = {"MINUTEBOOK_KAFKA_BOOTSTRAP_SERVER": "x"}
    done = subprocess.run(
        [sys.executable, "-m", module], env=environment, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, "did you mean MINUTEBOOK_KAFKA_BOOTSTRAP_SERVERS?" in done.stderr) == (
        code,
        True,
    )
