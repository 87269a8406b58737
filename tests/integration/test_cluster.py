"""All processes of an installation: they come up, come back when killed, and leave nothing behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from minutebook.cli.dev import StatusFile
from minutebook.embedded import BrokerRunningError, PortTakenError
from minutebook.embedded.cluster import Cluster, ClusterSettings
from minutebook.embedded.errors import ServiceStartError
from minutebook.log.admin import TopicSettings
from minutebook.log.settings import KafkaSettings

pytestmark = [pytest.mark.kafka, pytest.mark.slow]
ROOT = Path(__file__).parents[2]
NAMES = ["owner-1", "owner-2", "api", "worker-1"]
SMALL = TopicSettings(partitions=2, inbox_partitions=2)
WORKER = "examples.demo.tasks:app"


def eventually(condition: Callable[[], bool], within_s: float = 60) -> bool:
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def own_settings(broker: Any, data: Path, **more: Any) -> ClusterSettings:
    """A cluster on the shared broker, with topics and a group of its own."""
    name = f"c{uuid.uuid4().hex[:8]}."
    kafka = KafkaSettings(bootstrap_servers=broker.bootstrap_servers, topic_prefix=name)
    environment = {"MINUTEBOOK_STREAMS_GROUP": f"{name}owners", "DEMO_WITNESS_DIR": str(data / "witness")}
    wanted: dict[str, Any] = {"workers": 1, "worker": WORKER, "topics": SMALL} | more
    return ClusterSettings(data_dir=data, kafka=kafka, environment=environment, **wanted)


@pytest.fixture(scope="module")
def running(broker: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, Path]]:
    """A cluster that has started, and its status file."""
    data = tmp_path_factory.mktemp("cluster")
    status = StatusFile(data / "dev.json")
    cluster = Cluster(own_settings(broker, data), status.changed)
    cluster.start()
    status.begin(cluster)
    yield cluster, data / "dev.json"
    status.end()
    cluster.stop()


def pids_in(file: Path) -> dict[str, int]:
    return {one["name"]: one["pid"] for one in json.loads(file.read_text())["processes"]}


def run_job(cluster: Cluster, job_id: str) -> str:
    """Submit a job and wait for its end; returns its status."""
    headers = {"Authorization": f"Bearer {cluster.api_key}"}
    with httpx.Client(base_url=cluster.api_url, headers=headers, timeout=30, trust_env=False) as http:
        http.post("/v1/jobs", json={"id": job_id, "task": "demo.note"}).raise_for_status()
        found = {"status": "active"}

        def is_closed() -> bool:
            found.update(http.get(f"/v1/jobs/{job_id}").raise_for_status().json())
            return found["status"] != "active"

        eventually(is_closed)
    return found["status"]


def test_all_processes_run_and_a_job_goes_through_them(running: tuple[Cluster, Path]) -> None:
    cluster, _ = running

    assert [one.name for one in cluster.processes] == NAMES
    assert all(is_alive(one.pid) for one in cluster.processes)
    assert run_job(cluster, "first") == "completed"


def test_link_logs_in_to_the_pages_once(running: tuple[Cluster, Path]) -> None:
    cluster, _ = running
    with httpx.Client(headers={"accept": "text/html"}, timeout=30, trust_env=False) as browser:
        assert browser.get(cluster.login_url).status_code == 200
        assert browser.get(f"{cluster.api_url}/workers").status_code == 200
        assert browser.get(f"{cluster.api_url}/partitions").status_code == 200
        browser.cookies.clear()
        assert browser.get(cluster.login_url).status_code == 401


def test_jobs_under_a_limit_wait_for_its_permits(running: tuple[Cluster, Path]) -> None:
    """Over HTTP alone: nothing starts in a pause; then one after the other, and in the end every permit is home."""
    cluster, _ = running
    headers = {"Authorization": f"Bearer {cluster.api_key}"}
    with httpx.Client(base_url=cluster.api_url, headers=headers, timeout=30, trust_env=False) as http:
        limit = "/v1/limits/note"

        def shown(path: str) -> Any:
            return http.get(path).raise_for_status().json()

        http.put(limit, json={"concurrency": 1}).raise_for_status()
        http.post(f"{limit}/pause", json={"until": "PT1H"}).raise_for_status()
        jobs = [f"limited-{number}" for number in range(4)]
        for job in jobs:
            body = {"id": job, "task": "demo.note", "limit": "note"}
            http.post("/v1/jobs", json=body).raise_for_status()
        attempts = [f"/v1/jobs/{job}/executions" for job in jobs]
        assert eventually(
            lambda: all(
                [item.get("waiting_for") for item in shown(path)["items"]] == ["permit"] for path in attempts
            )
        )
        http.post(f"{limit}/resume").raise_for_status()
        in_use = set()

        def are_over() -> bool:
            in_use.add(shown(limit)["in_use"])
            return all(shown(f"/v1/jobs/{job}")["status"] == "completed" for job in jobs)

        assert eventually(are_over)
        assert in_use <= {0, 1}
        assert eventually(lambda: shown(limit)["in_use"] == 0)
        assert shown(limit)["waiting"] == 0


def test_status_file_says_what_runs_and_where(running: tuple[Cluster, Path]) -> None:
    cluster, file = running
    found = json.loads(file.read_text())

    assert found == {
        "api_url": cluster.api_url,
        "api_key": cluster.api_key,
        "bootstrap_servers": cluster.bootstrap_servers,
        "processes": [{"name": one.name, "pid": one.pid} for one in cluster.processes],
    }
    assert file.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("name", ["owner-1", "api", "worker-1"])
def test_killed_process_comes_back_and_the_status_file_follows(
    running: tuple[Cluster, Path], name: str
) -> None:
    cluster, file = running
    killed = cluster.kill(name)

    assert killed is not None
    assert eventually(lambda: pids_in(file).get(name) not in (None, killed))
    cluster.await_ready()
    assert pids_in(file) == {one.name: one.pid for one in cluster.processes}
    assert not is_alive(killed)
    assert run_job(cluster, f"after-{name}") == "completed"


def test_second_cluster_on_the_same_folder_is_refused(running: tuple[Cluster, Path], broker: Any) -> None:
    cluster, file = running
    with pytest.raises(BrokerRunningError, match=f"in use by process {os.getpid()}"):
        Cluster(own_settings(broker, file.parent)).start()
    assert [one.name for one in cluster.processes] == NAMES


def test_api_key_and_ports_are_the_same_after_a_restart(broker: Any, tmp_path: Path) -> None:
    addresses = []
    settings = own_settings(broker, tmp_path, owners=1, workers=0)
    for _ in range(2):
        with Cluster(settings) as cluster:
            addresses.append((cluster.api_url, cluster.api_key, dict(cluster.health_ports)))
            pids = [one.pid for one in cluster.processes]
        assert not any(map(is_alive, pids))
        assert cluster.processes == []
    assert addresses[0] == addresses[1]


def test_port_in_use_is_refused_by_name(broker: Any, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen(1)
        port = taken.getsockname()[1]
        with pytest.raises(PortTakenError, match=str(port)):
            Cluster(own_settings(broker, tmp_path, api_port=port)).start()


def test_worker_that_cannot_start_is_named_with_its_log(broker: Any, tmp_path: Path) -> None:
    cluster = Cluster(own_settings(broker, tmp_path, worker="no_such_module:app"))
    try:
        with pytest.raises(ServiceStartError, match=r"(?s)worker-1 did not start.*no_such_module"):
            cluster.start()
        assert cluster.processes == []
    finally:
        cluster.kill_all()


def start_dev(data: Path) -> tuple[subprocess.Popen[bytes], dict[str, Any]]:
    """`minutebook dev` with a Kafka of its own, until it says that all is ready."""
    command = [
        sys.executable,
        "-m",
        "minutebook.cli",
        "dev",
        "--data",
        str(data),
        "--owners",
        "1",
        "--workers",
        "1",
    ]
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("MINUTEBOOK_")},
        "MINUTEBOOK_TOPICS_PARTITIONS": "2",
        "DEMO_WITNESS_DIR": str(data / "witness"),
    }
    process = subprocess.Popen(command, cwd=ROOT, env=environment, start_new_session=True)
    status = data / "dev.json"
    assert eventually(lambda: status.exists() or process.poll() is not None)
    return process, json.loads(status.read_text())


def test_dev_brings_kafka_back_on_its_address_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    process, before = start_dev(tmp_path)
    pids = pids_in(tmp_path / "dev.json")
    os.kill(pids["kafka"], signal.SIGKILL)

    assert eventually(lambda: pids_in(tmp_path / "dev.json").get("kafka") not in (None, pids["kafka"]))
    after = json.loads((tmp_path / "dev.json").read_text())
    assert after["bootstrap_servers"] == before["bootstrap_servers"]

    live = list(pids_in(tmp_path / "dev.json").values())
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    assert not any(map(is_alive, live))
    assert not (tmp_path / "dev.json").exists()


def test_nothing_outlives_dev_when_it_is_killed(tmp_path: Path) -> None:
    process, found = start_dev(tmp_path)
    process.kill()
    process.wait()

    pids = [one["pid"] for one in found["processes"]]
    assert len(pids) == 4
    assert eventually(lambda: not any(map(is_alive, pids)), within_s=40)
