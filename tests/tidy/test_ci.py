"""`.ci/run` on machines with and without a browser; what it would start only writes down that it was called."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

RUN = Path(__file__).parents[2] / ".ci" / "run"


class Machine:
    """A checkout with nothing but `.ci/run`, and a PATH with what it may call."""

    def __init__(self, folder: Path) -> None:
        (folder / ".ci").mkdir()
        shutil.copy(RUN, folder / ".ci" / "run")
        self._folder = folder
        self._path = folder / "bin"
        self._path.mkdir()
        for name in ("bash", "dirname", "env", "true"):
            found = shutil.which(name)
            assert found is not None
            (self._path / name).symlink_to(found)
        self.has("make", 'echo "make $1, browser $MINUTEBOOK_TEST_BROWSER"')

    def has(self, name: str, script: str) -> None:
        """A program that does this."""
        file = self._path / name
        file.write_text(f"#!/bin/bash\n{script}\n")
        file.chmod(0o755)

    def run(self) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self._folder / ".ci" / "run"],
            env={"PATH": str(self._path)},
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )


VERBS = ["make check, browser required", "make test, browser required"]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_ci_runs_the_verbs_and_requires_the_browser(machine: Machine) -> None:
    machine.has("chromium", "")
    assert machine.run().stdout.splitlines() == VERBS


@pytest.mark.parametrize(("user", "called"), [(0, "apt-get"), (1000, "sudo -n apt-get")])
def test_ci_installs_a_missing_chromium(machine: Machine, user: int, called: str) -> None:
    machine.has("id", f"echo {user}")
    machine.has("apt-get", 'echo "${SUDO}apt-get $*"')
    machine.has("sudo", '[ "$1" = -n ] && shift && SUDO="sudo -n " "$@"')
    assert machine.run().stdout.splitlines() == [
        f"{called} update --quiet",
        f"{called} install --quiet --yes --no-install-recommends chromium fonts-dejavu-core",
        *VERBS,
    ]


@pytest.mark.parametrize("missing", ["sudo", "apt-get"])
def test_ci_says_what_to_do_where_chromium_cannot_be_installed(machine: Machine, missing: str) -> None:
    machine.has("id", "echo 1000" if missing == "sudo" else "echo 0")
    if missing == "sudo":
        machine.has("apt-get", "echo called")
    ended = machine.run()
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "apt-get install chromium fonts-dejavu-core" in ended.stderr
