"""The wheel holds all that irlang needs, and works where there is no checkout."""

import os
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import irlang

ROOT = Path(__file__).resolve().parent.parent
DATA = [
    Path("grammar/nnir.lark"),
    *sorted(p.relative_to(ROOT) for p in ROOT.glob("irlang/**/*.nnir")),
    *sorted(p.relative_to(ROOT) for p in ROOT.glob("irlang/**/*.txt")),
]

MODEL = """nnir 1

op twice[T: float](x: T[S..]) -> y: T[S..] { y[s..] = x[s..] + x[s..] }

model tiny(x: f32[N, 3] in [-1, 1]) -> y: f32[N, 3] { y = relu(twice(x)) }
"""


def _pip(*arguments: str) -> None:
    """Run pip as it is run on a machine without a network; its output is shown when it fails."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    _pip("wheel", "--no-deps", "--no-index", "--no-build-isolation", "-w", str(folder), str(ROOT))
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    _pip("install", "--no-deps", "--no-index", "--no-compile", "--target", str(folder), str(wheel))
    return folder


def _python(installed: Path, cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python where `irlang` can only be the installed wheel.

    ``-S`` skips the ``.pth`` files, so that an editable install in the same environment does not
    lend its checkout; the third-party packages come back by name.
    """
    libraries = sysconfig.get_paths()
    path = os.pathsep.join([str(installed), libraries["purelib"], libraries["platlib"]])
    return subprocess.run(
        [sys.executable, "-S", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def _project() -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return project


def _pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {str(canonicalize_name(name)): version for name, version in pairs}


def _requirements() -> Iterator[Requirement]:
    project = _project()
    for group in (project["dependencies"], *project["optional-dependencies"].values()):
        for text in group:
            requirement = Requirement(text)
            if requirement.name != project["name"]:
                yield requirement


def test_the_wheel_holds_every_source_and_data_file(wheel: Path) -> None:
    sources = {p.relative_to(ROOT) for p in ROOT.glob("irlang/**/*.py")}
    wanted = {str(path) for path in sources}
    wanted |= {str(p) if p.parts[0] == "irlang" else f"irlang/{p}" for p in DATA}
    wanted.add("irlang/py.typed")
    with zipfile.ZipFile(wheel) as archive:
        held = {n for n in archive.namelist() if not n.split("/")[0].endswith(".dist-info")}
    assert len(DATA) > 1, "there are operator definitions to ship"
    assert held == wanted


def test_the_wheel_is_named_licensed_and_has_a_command(wheel: Path) -> None:
    assert wheel.name == f"irlang-{irlang.__version__}-py3-none-any.whl"
    about = f"irlang-{irlang.__version__}.dist-info"
    with zipfile.ZipFile(wheel) as archive:
        licence = archive.read(f"{about}/licenses/LICENSE").decode()
        commands = archive.read(f"{about}/entry_points.txt").decode().split()
    assert licence == (ROOT / "LICENSE").read_text("utf-8")
    assert commands == ["[console_scripts]", "irlang", "=", "irlang.cli:main"]


def test_data_files_of_an_installed_wheel_are_those_of_the_checkout(installed: Path) -> None:
    for path in DATA:
        copy = installed / (path if path.parts[0] == "irlang" else "irlang" / path)
        assert copy.read_bytes() == (ROOT / path).read_bytes(), path


def test_an_installed_wheel_tells_its_version(installed: Path, tmp_path: Path) -> None:
    done = _python(installed, tmp_path, "-c", "import irlang; print(irlang.__file__)")
    assert Path(done.stdout.strip()).is_relative_to(installed), done.stdout + done.stderr
    done = _python(installed, tmp_path, "-m", "irlang", "--version")
    assert done.returncode == 0, done.stderr
    assert irlang.__version__ in done.stdout


def test_an_installed_wheel_checks_a_model(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "good.nnir").write_text(MODEL, "utf-8")
    (tmp_path / "bad.nnir").write_text(MODEL.replace("relu(twice(x))", "reluu(x)"), "utf-8")
    good = _python(installed, tmp_path, "-m", "irlang", "check", "good.nnir")
    assert good.returncode == 0, good.stdout + good.stderr
    bad = _python(installed, tmp_path, "-m", "irlang", "check", "bad.nnir")
    assert bad.returncode == 1, bad.stdout + bad.stderr
    assert "reluu" in bad.stdout + bad.stderr


def test_every_requirement_has_one_exact_pin_that_satisfies_it() -> None:
    pins = _pins()
    for requirement in _requirements():
        version = pins.get(canonicalize_name(requirement.name))
        assert version is not None, f"{requirement.name} is not in constraints.txt"
        assert requirement.specifier.contains(version), f"{requirement} is pinned to {version}"


def test_frameworks_are_extras_and_torch_is_exact() -> None:
    project = _project()
    core = {Requirement(text).name for text in project["dependencies"]}
    assert not core & {"torch", "tensorflow-cpu", "keras", "onnx", "onnxruntime", "jax"}
    extras = project["optional-dependencies"]
    assert extras["torch"] == [f"torch=={_pins()['torch']}"]
    assert Requirement(extras["all"][0]).extras == {"torch", "tf", "keras", "onnx", "jax"}
