"""What is delivered: one package, its schemas, and an import that needs nothing else."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT))
    (built,) = folder.glob("*.whl")
    return built


def run(*command: str, cwd: Path | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def test_wheel_holds_only_the_package(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {"minutebook", "minutebook-0.1.0.dist-info"}
    assert "minutebook/py.typed" in names
    assert "minutebook/embedded/kafka-jars.lock" in names


def test_wheel_carries_every_schema_as_it_is(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        carried = {
            name.removeprefix("minutebook/_schemas/"): archive.read(name)
            for name in archive.namelist()
            if name.startswith("minutebook/_schemas/")
        }
    folder = ROOT / "schemas"
    ours = {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.avsc"))}
    assert ours, "schemas/ holds no .avsc file"
    assert carried == ours


def test_wheel_imports_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "empty"))
    python = tmp_path / "empty" / "bin" / "python"
    offline = ("--no-deps", "--no-index", "--disable-pip-version-check", "--quiet")
    run(sys.executable, "-m", "pip", "--python", str(python), "install", *offline, str(wheel))
    code = (
        "import minutebook; print(minutebook.__version__, minutebook.__all__ == sorted(minutebook.__all__))"
    )
    assert run(str(python), "-c", code, cwd=tmp_path) == "0.1.0 True"
    extra = "import minutebook\ntry: minutebook.App\nexcept ImportError as error: print(error)"
    assert "pip install 'minutebook[worker]'" in run(str(python), "-c", extra, cwd=tmp_path)


@pytest.mark.parametrize("name", ["streams", "api", "replay", "schemas", "tests", "bench", "examples"])
def test_no_installed_package_takes_our_name(name: str, tmp_path: Path) -> None:
    code = f"import importlib.util; print(importlib.util.find_spec({name!r}))"
    assert run(sys.executable, "-I", "-c", code, cwd=tmp_path) == "None"
