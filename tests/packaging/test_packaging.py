"""Tests that files for registries, CI and code hosts name versions, files, commands and flags that exist."""

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from kschedd.cli import MOUNTED
from kschedd.commands.shell.completion import parser_of

ROOT = Path(__file__).parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
CORPUS = ROOT / "tests" / "corpus" / "0.1.0"


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def steps_of(workflow: Any) -> list[Any]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_a_workflow_has_no_permissions_by_default_and_a_time_limit_for_each_job(file: Path) -> None:
    workflow = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {}
    for job in workflow["jobs"].values():
        assert job["permissions"]
        assert job["timeout-minutes"] <= 60


@pytest.mark.parametrize("file", [*WORKFLOWS, ROOT / "action.yml"], ids=lambda file: file.stem)
def test_actions_are_pinned_by_hash_with_their_version(file: Path) -> None:
    used = re.findall(r"uses: (.*)", file.read_text(encoding="utf-8"))
    assert used
    for each in used:
        assert each.startswith("./ ") or re.fullmatch(r"[\w.-]+(/[\w.-]+)+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", each), each


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_the_scripts_of_a_workflow_exist(file: Path) -> None:
    runs = [step["run"] for step in steps_of(yaml.safe_load(file.read_text(encoding="utf-8"))) if "run" in step]
    for script in re.findall(r"^\.ci/\S+", "\n".join(runs), re.MULTILINE):
        assert os.access(ROOT / script, os.X_OK), script


def test_a_release_publishes_the_files_that_the_release_script_builds() -> None:
    jobs = yaml.safe_load(text_of(".github/workflows/release.yml"))["jobs"]
    assert jobs["pypi"]["permissions"] == {"id-token": "write"}
    assert [step for step in steps_of({"jobs": {"build": jobs["build"]}}) if ".ci/release" in step.get("run", "")]
    assert "secrets." not in text_of(".github/workflows/release.yml")


def test_the_release_script_rejects_other_arguments(tmp_path: Path) -> None:
    done = subprocess.run([ROOT / ".ci" / "release", "v0.1.0"], capture_output=True, text=True)
    assert (done.returncode, done.stderr.partition(":")[0]) == (2, "usage")


def test_the_changelog_begins_with_this_version() -> None:
    found = re.search(r"^## \[(.*?)\] - (not released|\d{4}-\d\d-\d\d)$", text_of("CHANGELOG.md"), re.MULTILINE)
    assert found is not None
    assert found[1] == VERSION


def test_the_registry_of_assistants_gets_this_version_and_a_command_that_exists() -> None:
    server = json.loads(text_of("server.json"))
    (package,) = server["packages"]
    assert (server["version"], package["version"], package["identifier"]) == (VERSION, VERSION, "kschedd")
    assert len(server["description"]) <= 100
    assert f"<!-- mcp-name: {server['name']} -->" in text_of("README.md")
    assert [each["value"] for each in package["packageArguments"]] == ["mcp"]
    assert "mcp" in MOUNTED
    (extra,) = tomllib.loads(text_of("pyproject.toml"))["project"]["optional-dependencies"]["mcp"]
    assert [(each["name"], each["value"]) for each in package["runtimeArguments"]] == [("--with", extra)]


def test_the_manifest_of_krew_lists_the_files_of_its_archives() -> None:
    text = text_of("packaging/krew.yaml").replace("@VERSION@", VERSION)
    manifest = yaml.safe_load(re.sub("@[A-Z0-9]+@", "0" * 64, text))
    assert manifest["metadata"]["name"] == "kschedd"
    assert len(manifest["spec"]["shortDescription"]) <= 50
    script = text_of(".ci/release")
    for platform in manifest["spec"]["platforms"]:
        assert platform["bin"] in {each["from"] for each in platform["files"]}
        assert platform["uri"].rpartition("/")[2].rpartition("-")[0] in script
    assert set(re.findall("@[A-Z0-9]+@", text_of("packaging/krew.yaml"))) <= set(re.findall("@[A-Z0-9]+@", script))


HOOKS = yaml.safe_load(text_of(".pre-commit-hooks.yaml"))
EXAMPLE_HOOKS = yaml.safe_load(text_of("examples/ci/pre-commit-hooks.yaml"))["repos"][0]["hooks"]


@pytest.mark.parametrize("hook", [*HOOKS, *EXAMPLE_HOOKS], ids=lambda hook: hook["id"])
def test_a_hook_runs_a_command_with_flags_that_it_has(hook: Any) -> None:
    declared = {each["id"]: each for each in HOOKS}[hook["id"]]
    program, command = shlex.split(declared["entry"])
    assert program == "kschedd"
    options = parser_of(command, MOUNTED).parse_args(hook.get("args", declared["args"]))
    assert isinstance(options, argparse.Namespace)
    assert re.search(hook["files"], "deploy/web.yaml")


def test_the_action_passes_its_inputs_to_the_script() -> None:
    action = yaml.safe_load(text_of("action.yml"))
    (step,) = [step for step in action["runs"]["steps"] if step.get("id") == "run"]
    assert set(step["env"]) == {f"INPUT_{name.upper().replace('-', '_')}" for name in action["inputs"]}
    assert set(re.findall(r"INPUT_\w+", text_of("packaging/action"))) == set(step["env"]) | {"INPUT_FILES"}
    assert action["inputs"]["run"]["default"] == "check lint"


@pytest.mark.parametrize(
    ("file", "run", "status", "found"),
    [
        pytest.param("fits.yaml", "check lint", 0, "All fits", id="fits"),
        pytest.param("does-not-fit.yaml", "check", 1, "Does not fit", id="does-not-fit"),
        pytest.param("fits.yaml", "chek", 2, "", id="unknown-check"),
        pytest.param("missing.yaml", "lint", 2, "", id="missing-file"),
    ],
)
def test_the_action_writes_a_summary_and_ends_with_the_worst_status(
    tmp_path: Path, file: str, run: str, status: int, found: str
) -> None:
    done = act(tmp_path, str(ROOT / "examples" / "ci" / file), run)
    assert done.returncode == status, done.stdout
    assert found in (tmp_path / "summary").read_text()
    if "lint" in run and status < 2:
        assert (tmp_path / "output").read_text() == f"sarif={tmp_path}/kschedd.sarif\n"
        assert json.loads((tmp_path / "kschedd.sarif").read_text())["version"] == "2.1.0"


@pytest.mark.parametrize(("files", "run"), [("\n", "check"), ("deploy/", " ")], ids=["no-files", "no-checks"])
def test_the_action_rejects_inputs_that_check_nothing(tmp_path: Path, files: str, run: str) -> None:
    done = act(tmp_path, files, run)
    assert done.returncode == 2
    assert done.stdout.startswith("error: the input ")


def test_the_runner_ignores_commands_in_the_names_of_files(tmp_path: Path) -> None:
    (tmp_path / "deploy").mkdir()
    (tmp_path / "deploy" / "a\n::error::b.yaml").write_text("a: b: c\n")
    lines = act(tmp_path, str(tmp_path / "deploy"), "lint").stdout.splitlines()
    (first,) = [number for number, line in enumerate(lines) if line.startswith("::stop-commands::")]
    (last,) = [number for number, line in enumerate(lines) if line == f"::{lines[first].rpartition(':')[2]}::"]
    assert [number for number, line in enumerate(lines) if line.startswith("::error::") and first < number < last]
    assert [line for line in lines[:first] + lines[last + 1 :] if line.startswith("::")] == []


def act(tmp_path: Path, files: str, run: str) -> "subprocess.CompletedProcess[str]":
    """Run the last step of the action."""
    program = tmp_path / "kschedd"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m kschedd "$@"\n')
    program.chmod(0o755)
    (tmp_path / "summary").touch()
    given = {
        "INPUT_FILES": files,
        "INPUT_RUN": run,
        "INPUT_FROM": str(CORPUS / "dump.json.gz"),
        "INPUT_KUBE_VERSION": "",
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "RUNNER_TEMP": str(tmp_path),
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
    }
    return subprocess.run([ROOT / "packaging" / "action"], env=os.environ | given, capture_output=True, text=True)


def test_the_released_files_and_the_action_have_locked_dependencies_also_for_mirrors() -> None:
    project = tomllib.loads(text_of("pyproject.toml"))
    locked = set(re.findall(r"^([a-z0-9-]+)==", text_of("requirements-runtime.lock"), re.MULTILINE))
    named = [*project["project"]["dependencies"], *project["project"]["optional-dependencies"]["live"]]
    assert {re.split("[>=]", each)[0].lower() for each in named} <= locked
    building = set(re.findall(r"^([a-z0-9-]+)==", text_of(".ci/build.lock"), re.MULTILINE))
    assert set(project["build-system"]["requires"]) <= building


def test_the_container_copies_files_that_exist_and_does_not_run_as_root() -> None:
    lines = text_of("examples/container/Containerfile").splitlines()
    copied = [line.split()[1:-1] for line in lines if line.startswith("COPY ") and "--from" not in line]
    kept = {line.removeprefix("!") for line in text_of(".dockerignore").splitlines() if line.startswith("!")}
    for name in (name for names in copied for name in names):
        assert (ROOT / name).exists(), name
        assert name in kept
    assert "USER 10001:10001" in lines
    assert [line for line in lines if line.startswith("HEALTHCHECK ")]
