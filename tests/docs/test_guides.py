"""Files of jobs and settings that guides show are taken as they stand."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
import yaml

from api.settings import ApiSettings
from minutebook.environment import require_known_names
from minutebook.log.admin import TopicSettings
from minutebook.log.settings import KafkaSettings
from streams.settings import StreamsSettings
from tests.api.cli_runs import runner
from tests.api.memory import installation
from tests.docs.pages import ROOT, Block, blocks

HOW_TO = ROOT / "docs" / "how-to"
JOBS = [
    block for page in sorted(HOW_TO.glob("*.md")) for block in blocks(page, "yaml") if "jobs:" in block.text
]


@pytest.mark.parametrize("block", JOBS, ids=str)
def test_jobs_of_a_guide_can_be_applied(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "jobs.yaml").write_text(block.text)
    world = installation()
    run = runner(httpx.ASGITransport(app=world.app), "key-submitter", monkeypatch)
    assert run("apply", str(tmp_path / "jobs.yaml")) == 0
    assert run("apply", str(tmp_path / "jobs.yaml"), "--dry-run") == 0
    assert len(yaml.safe_load(block.text)["jobs"]) == len(world.log.sent)


def test_settings_of_three_hosts_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    same, own = blocks(HOW_TO / "run-three-hosts.md", "ini")
    given = dict(line.split("=", 1) for line in (same.text + own.text).splitlines())
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    require_known_names(given, KafkaSettings, TopicSettings, StreamsSettings, ApiSettings)
    assert TopicSettings().replication == len(KafkaSettings().bootstrap_servers.split(",")) == 3
    assert StreamsSettings().instance_id == "owners-2"
    assert StreamsSettings().checkpoint_dir == Path("/srv/shared/checkpoints")
