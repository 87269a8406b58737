"""docker-compose.yml and the Dockerfile, as far as they can be proved without a Docker engine.

The file is valid; Kafka boots with the settings written there; each of our services starts by the very
command written there, in a folder that holds what the image would hold, and becomes healthy by its own health
check; a job runs through all of them.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from minutebook.embedded import jars, jvm
from minutebook.embedded.ports import free_ports
from minutebook.embedded.service import Command, Service
from minutebook.log import admin
from minutebook.log.settings import KafkaSettings

ROOT = Path(__file__).parents[2]
COMPOSE = ROOT / "docker-compose.yml"
DOCKERFILE = ROOT / "Dockerfile"
OURS = ("topics", "keys", "streams", "api", "worker")
IMAGE_SETTINGS = ("CLUSTER_ID",)  # read by the image's start script, not by the broker


def compose() -> dict[str, Any]:
    found: dict[str, Any] = YAML(typ="safe").load(COMPOSE)
    return found


def services() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = compose()["services"]
    return found


def broker_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """The image's rule: `KAFKA_A_B` is `a.b`, `__` is `_`, `___` is `-`."""
    found = {}
    for name, value in environment.items():
        if name not in IMAGE_SETTINGS:
            assert name.startswith("KAFKA_"), name
            key = name.removeprefix("KAFKA_").lower()
            found[key.replace("___", "-").replace("__", "\0").replace("_", ".").replace("\0", "_")] = value
    return found


def copied_paths() -> list[tuple[str, str]]:
    """Source and target of each COPY of the Dockerfile."""
    lines = [shlex.split(line) for line in DOCKERFILE.read_text().splitlines() if line.startswith("COPY ")]
    assert all(len(line) == 3 for line in lines), "a COPY with options or several sources is not read here"
    return [(source, target) for _, source, target in lines]


def is_in_context(path: str) -> bool:
    """Whether .dockerignore, which refuses everything it does not name, lets `path` into the build."""
    lines = (ROOT / ".dockerignore").read_text().split()
    assert lines[0] == "*"
    return f"!{path.rstrip('/')}" in lines


def is_of_the_repository(path: str) -> bool:
    """Whether git has it, or would take it with the next commit."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", path],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return bool(listed.stdout.strip())


def test_file_is_valid_by_the_compose_specification() -> None:
    checked = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(COMPOSE)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_every_service_but_the_one_shots_comes_back_and_keeps_its_data() -> None:
    found = services()
    lasting = {name for name, one in found.items() if one["restart"] == "always"}
    one_shots = {name for name, one in found.items() if one["restart"] == "on-failure"}
    used = {volume.split(":")[0] for one in found.values() for volume in one.get("volumes", [])}

    assert lasting == {"kafka", "streams", "api", "worker", "prometheus", "grafana"}
    assert one_shots == {"topics", "keys"}
    assert used == set(compose()["volumes"])


def test_only_what_watches_is_left_out_without_its_profile() -> None:
    profiles = {name: one.get("profiles", []) for name, one in services().items()}
    assert {name for name, found in profiles.items() if found} == {"prometheus", "grafana"}
    assert profiles["prometheus"] == profiles["grafana"] == ["observability"]


def test_what_watches_loads_the_files_of_the_repository() -> None:
    files = {name: one["file"] for name, one in compose()["configs"].items()}
    used = [item for one in services().values() for item in one.get("configs", [])]
    assert {item["source"] for item in used} == set(files)
    for file in files.values():
        assert is_of_the_repository(file), f"{file} is not in the repository"
    scraped = YAML(typ="safe").load(ROOT / files["prometheus"])
    targets = {item["target"] for item in used}
    assert set(scraped["rule_files"]) <= targets
    addresses = [
        address
        for job in scraped["scrape_configs"]
        for group in job["static_configs"]
        for address in group["targets"]
    ]
    assert addresses == ["streams:8081", "api:8081", "worker:8081"]
    provided = YAML(typ="safe").load(ROOT / files["grafana-dashboards"])
    folder = provided["providers"][0]["options"]["path"]
    assert any(target.startswith(f"{folder}/") for target in targets)


def test_services_wait_for_what_they_need() -> None:
    found = services()
    for name in ("streams", "api", "worker"):
        needs = {on: rule["condition"] for on, rule in found[name]["depends_on"].items()}
        assert needs["kafka"] == "service_healthy"
        assert needs["topics"] == "service_completed_successfully"
    assert all("healthcheck" in one for name, one in found.items() if one["restart"] == "always")


def test_ports_are_open_to_this_machine_alone() -> None:
    published = [port for one in services().values() for port in one.get("ports", [])]
    assert published
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_services_state_the_settings_that_the_embedded_broker_runs_with() -> None:
    """What is tested on the embedded broker holds for compose only if both say the same."""
    written = broker_settings(services()["kafka"]["environment"])
    of_a_small_machine = {
        "num.network.threads", "num.io.threads", "log.cleaner.dedupe.buffer.size", "offsets.topic.num.partitions",
        "transaction.state.log.num.partitions", "share.coordinator.state.topic.num.partitions",
        "controller.quorum.election.timeout.ms", "controller.quorum.election.backoff.max.ms",
    }  # fmt: skip
    embedded = {key: value for key, value in jvm.SETTINGS.items() if key not in of_a_small_machine}
    assert {key: written.get(key) for key in embedded} == embedded


def test_dockerfile_copies_only_files_of_the_repository() -> None:
    copied = copied_paths()
    for source, target in copied:
        assert (ROOT / source).exists(), f"{source} is not there"
        assert is_of_the_repository(source), f"{source} is not in the repository"
        assert is_in_context(source), f"{source} is kept out by .dockerignore"
        assert target in ("./", source), f"{source} would lie elsewhere than in a checkout"
    assert {"requirements.txt", "minutebook/", "streams/", "api/", "schemas/"} <= {one for one, _ in copied}


def test_dockerfile_installs_pinned_packages_and_runs_as_nobody_special() -> None:
    lines = DOCKERFILE.read_text().splitlines()
    (install,) = [line for line in lines if "pip install" in line]
    assert "--require-hashes" in install
    assert "-r requirements.txt" in install
    users = [line.split()[1] for line in lines if line.startswith("USER ")]
    assert users == ["minutebook"]
    assert lines.index("USER minutebook") < len(lines) - 1


@dataclass(slots=True)
class Stack:
    """The services of the file as local processes: addresses, ports and paths replaced, everything else as
    written.
    """

    folder: Path
    replaced: dict[str, str]
    app: Path = field(init=False)
    running: list[Service] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.app = self.folder / "app"
        for source, target in copied_paths():
            to = self.app / (source if target == "./" else target)
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, to, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / source, to)

    def command(self, name: str) -> Command:
        service = services()[name]
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "PYTHONUNBUFFERED": "1",
            **{key: self.local(name, value) for key, value in service.get("environment", {}).items()},
        }
        arguments = [self.local(name, text) for text in service["command"]]
        return Command(name, arguments, environment, self.app, self.folder / f"{name}.log")

    def local(self, name: str, text: str) -> str:
        """`text` as it must read on this machine. Ports and paths are each service's own, as in a container."""
        if text == "python":
            return sys.executable
        for old, new in self.replaced.items():
            text = text.replace(old, new)
        for port in ("8080", "8081"):
            text = (
                text.replace(port, self.replaced[f"{name}:{port}"])
                if f"{name}:{port}" in self.replaced
                else text
            )
        return text.replace("/data/state", str(self.folder / name)).replace("/data/", f"{self.folder}/")

    def run(self, name: str) -> subprocess.CompletedProcess[str]:
        """A one-shot service, to its end."""
        command = self.command(name)
        return subprocess.run(
            command.arguments, env=dict(command.environment), cwd=command.folder, capture_output=True, text=True,
            check=False,
        )  # fmt: skip

    def start(self, name: str) -> Service:
        service = Service(self.command(name), lambda: None)
        service.start()
        self.running.append(service)
        return service

    def is_healthy(self, service: Service) -> bool:
        """By the health check written in the file."""
        kind, *test = services()[service.name]["healthcheck"]["test"]
        assert kind == "CMD"
        arguments = [self.local(service.name, text) for text in test]
        return subprocess.run(arguments, capture_output=True, check=False).returncode == 0


def eventually(condition: Callable[[], bool], within_s: float = 60) -> bool:
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True


def answers(bootstrap_servers: str) -> bool:
    """Whether the broker lists topics. Its port is tried first: kafka-python leaves sockets open where it is
    closed.
    """
    host, port = bootstrap_servers.split(":")
    with socket.socket() as probe:
        if probe.connect_ex((host, int(port))) != 0:
            return False
    return isinstance(admin.topic_ids(KafkaSettings(bootstrap_servers=bootstrap_servers)), dict)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker with the settings written in the file; returns its address."""
    folder = tmp_path_factory.mktemp("compose-kafka")
    free = free_ports(folder)
    clients, controller = str(next(free)), str(next(free))
    environment = services()["kafka"]["environment"]
    settings = {
        key: value.replace("9092", clients).replace("9093", controller).replace("kafka:", "127.0.0.1:")
        .replace("//:", "//127.0.0.1:").replace("/var/lib/kafka/data", str(folder / "logs"))
        for key, value in broker_settings(environment).items()
    }  # fmt: skip
    file = folder / "server.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    (folder / "tmp").mkdir()
    files = jars.fetch()
    format_command = jvm.format_command(files, folder, file, environment["CLUSTER_ID"])
    subprocess.run(format_command, env=jvm.environment(), check=True, capture_output=True)
    server = jvm.server_command(files, folder, file)
    service = Service(Command("kafka", server, jvm.environment(), folder, folder / "kafka.log"), lambda: None)
    service.start()
    try:
        assert eventually(lambda: answers(f"127.0.0.1:{clients}")), service.last_lines()
        assert service.starts == 1, service.last_lines()
        assert "Unknown" not in (folder / "kafka.log").read_text()
        yield f"127.0.0.1:{clients}"
    finally:
        service.request_stop()
        service.await_stop(20)


@pytest.fixture(scope="module")
def stack(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("compose")
    free = free_ports(folder)
    ports = {name: str(next(free)) for name in ("streams:8081", "api:8080", "api:8081", "worker:8081")}
    made = Stack(
        folder, {"kafka:9092": kafka, "0.0.0.0": "127.0.0.1", "/tmp/witness": f"{folder}/witness", **ports}
    )
    yield made
    for service in reversed(made.running):
        service.request_stop()
    for service in made.running:
        service.await_stop(30)


@pytest.mark.kafka
def test_kafka_boots_with_the_settings_written_there(kafka: str) -> None:
    assert answers(kafka)


@pytest.mark.kafka
@pytest.mark.slow
def test_every_service_starts_by_its_command_and_a_job_runs(stack: Stack) -> None:
    for name in ("topics", "keys"):
        done = stack.run(name)
        assert done.returncode == 0, done.stdout + done.stderr
    lasting = [stack.start(name) for name in ("streams", "api", "worker")]
    for service in lasting:
        assert eventually(lambda service=service: stack.is_healthy(service)), service.last_lines()

    send(stack, "POST", "/v1/jobs", {"id": "first", "task": "demo.note"})
    done = eventually(lambda: send(stack, "GET", "/v1/jobs/first")["status"] == "completed")
    assert done, lasting[2].last_lines()
    assert [service.starts for service in lasting] == [1, 1, 1]


def send(stack: Stack, verb: str, path: str, body: Any = None) -> Any:
    request = urllib.request.Request(
        f"http://127.0.0.1:{stack.replaced['api:8080']}{path}",
        method=verb,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Authorization": f"Bearer {(stack.folder / 'keys' / 'api-key').read_text().strip()}",
            "Content-Type": "application/json",
        },
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=30) as answer:
        return json.loads(answer.read())
