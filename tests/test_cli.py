"""Tests of the command line itself: rejected input, imported modules, and the exit status after an error."""

import io
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import kschedd
from kschedd import cli
from kschedd.__main__ import main as entry_point
from kschedd.printing.terminal.style import style_of
from kschedd.verbs.command_line.overview import FIRST


def test_verbs_start_without_trio_and_numpy(tmp_path: Path) -> None:
    code = (
        "import sys; from kschedd.cli import main;"
        f"assert main(['--socket', {str(tmp_path / 'nobody')!r}, 'get', 'pods']) == 1;"
        "print([m for m in ('trio', 'numpy', 'prompt_toolkit', 'yaml', 'structlog') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    assert done.stderr == f"error: no daemon at {tmp_path / 'nobody'}: start one with `kschedd run --detach`\n"


def test_a_simulation_imports_no_plugins_of_old_no_controllers_and_no_audit() -> None:
    code = (
        "import sys; from kschedd.cli import main;"
        "assert main(['simulate', '--generate', '1', '--generate-nodes', '1']) == 0;"
        "others = ('plugins.nodelabel', 'controllers.runner', 'controllers.jobs.sync', 'explain.audit');"
        "print([other for other in others if f'kschedd.{other}' in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        pytest.param(["gett", "pods"], 2, 'did you mean "get"', id="verb-misspelt"),
        pytest.param(["simulat"], 2, 'did you mean "simulate"', id="command-misspelt"),
        pytest.param(["--sokcet", "x", "get"], 2, "unknown flag --sokcet", id="flag-before-the-verb"),
        pytest.param(["get", "pods", "--socket"], 2, "--socket requires a path", id="no-path"),
        pytest.param(["--socket", "", "get", "pods"], 2, "--socket requires a path", id="empty-socket"),
        pytest.param(["get", "pods", "--socket="], 2, "--socket requires a path", id="empty-socket-after-equals"),
        pytest.param(["run", "--state", ""], 2, "error: --state: the path is empty", id="empty-state"),
        pytest.param(["run", "--config="], 2, "error: --config: the path is empty", id="empty-config"),
        pytest.param(["run", "--plugin", ""], 2, "error: --plugin: the path is empty", id="empty-plugin"),
        pytest.param(["delete", "-f", ""], 2, "-f/--filename: the path is empty", id="empty-manifest"),
        pytest.param(["patch", "pod", "p", "--patch-file", ""], 2, "the path is empty", id="empty-patch"),
        pytest.param(["repl", "--script", ""], 2, "error: --script: the path is empty", id="empty-script"),
        pytest.param(["man", "--dir", ""], 2, "--dir: the path is empty", id="empty-folder-of-pages"),
        pytest.param(["bench", "--compare", ""], 2, "--compare: the path is empty", id="empty-compare"),
        *(
            pytest.param(["simulate", flag, ""], 2, f"{flag}: the path is empty", id=f"simulate{flag}-empty")
            for flag in ("--nodes", "--pods", "--config", "--plugin", "--decisions", "--scenario")
        ),
        pytest.param(["simulate", "-f", ""], 2, "-f/--filename: the path is empty", id="simulate-empty"),
        pytest.param(["bench", "--node", "5"], 2, 'unknown flag --node; did you mean "--nodes"', id="part-of-a-flag"),
        pytest.param(["journal", "verify", "--sate", "x"], 2, "See kschedd journal verify --help", id="whose-help"),
        pytest.param(["repl", "--nonsense"], 2, "unknown flag --nonsense", id="flag-of-a-command"),
        pytest.param(["run", "--log-level", "loud"], 2, '--log-level "loud": allowed are debug', id="choice"),
        pytest.param(["--socket", "x", "demo"], 2, "--socket does not apply", id="socket-where-there-is-none"),
        pytest.param(["--socket", "x" * 200, "get", "pods"], 1, "a socket's path may have 107", id="path-too-long"),
        pytest.param(["get", "-o", "xml", "pods"], 2, "allowed are table", id="output"),
    ],
)
def test_what_makes_no_command(words, code, complaint, capsys) -> None:
    assert cli.main(words) == code
    captured = capsys.readouterr()
    assert complaint in captured.err
    assert captured.out == ""


def test_overview(capsys) -> None:
    assert cli.main(["--help"]) == 0
    out = capsys.readouterr().out
    for name in ("demo", "run", "repl", "simulate", "verify", "bench", "explain", "debug", "fork"):
        assert f"\n  {name} " in out
    assert "\n  get, describe, apply, " in out


def test_without_a_command_the_first_steps_are_shown(capsys, monkeypatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert cli.main([]) == 2
    out = capsys.readouterr().out
    assert [line.split()[0] for line in out.splitlines() if line.startswith("  ")] == list(FIRST)
    assert "`kschedd --help` lists all commands." in out


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        pytest.param("step", "step was renamed to `debug step`", id="group"),
        pytest.param("fork what-if", 'fork: unknown command "what-if": allowed are ', id="unknown-of-a-group"),
        pytest.param("debug web-0", "pods do not run containers", id="kubectl-debug"),
        pytest.param("kinds", "kinds was renamed to `api-resources`", id="verb"),
        pytest.param("simulate --until 60 -f x", 'invalid duration "60"', id="duration-without-a-unit"),
        pytest.param("simulate --until=-1s -f x", "must not be negative", id="negative-duration"),
        pytest.param("--color sometimes get pods", "allowed are auto, always and never", id="color"),
        pytest.param("check --cluster x", "--cluster was renamed to --from", id="flag"),
        pytest.param("capacity", "KIND/NAME of a workload or -f FILE is required", id="capacity"),
    ],
)
def test_earlier_and_incomplete_names_are_answered_with_those_of_today(words: str, complaint: str, capsys) -> None:
    assert cli.main(words.split()) == 2
    assert complaint in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "usage"),
    [
        ("debug --help", "kschedd debug COMMAND"),
        ("help debug step", "kschedd debug step"),
        ("fork create --help", "kschedd fork create"),
        ("plugin list --help", "kschedd plugin list"),
        ("plugin new --help", "kschedd plugin new"),
        ("config undo --help", "kschedd config undo"),
        ("kubectl run --help", "kschedd run [-h] [--image"),
        ("run --help", "kschedd run [-h] [--detach]"),
    ],
)
def test_whole_names_have_help(words: str, usage: str, capsys) -> None:
    assert cli.main(words.split()) == 0
    assert f"usage: {usage}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "status", "answer"),
    [
        ("--help", 0, "  cordon "),
        ("run --help", 0, "usage: kubectl run [-h] [--image"),
        ("help get", 0, "usage: kubectl get"),
        ("plan drain a", 2, "error: plan is not a verb of kubectl; use `kschedd plan`\n"),
        ("config view", 2, "error: config is not a verb of kubectl; use `kschedd config`\n"),
        ("gte pods", 2, 'error: unknown command "gte"; did you mean "get"?\n'),
    ],
)
def test_a_link_named_kubectl_has_the_verbs_of_kubectl(words, status, answer, capsys, monkeypatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/local/bin/kubectl", *words.split()])
    assert cli.main() == status
    captured = capsys.readouterr()
    assert answer in captured.out + captured.err
    assert "plan" not in captured.out


def test_an_exported_width_wraps_help(monkeypatch, capsys) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert cli.main(["--help"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines()[4:])) <= 60


def test_help_of_a_verb_needs_no_daemon(capsys) -> None:
    assert cli.main(["help", "apply"]) == 0
    assert "usage: kschedd apply" in capsys.readouterr().out


def test_a_reader_that_leaves_is_no_error(tmp_path: Path) -> None:
    line = f"{sys.executable} -c 'from kschedd.cli import main; raise SystemExit(main([\"--help\"]))' | true"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True)
    assert done.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_is_told_in_a_line() -> None:
    code = "from kschedd.cli import main; raise SystemExit(main(['--help']))"
    with open("/dev/full", "wb") as full:
        done = subprocess.run([sys.executable, "-c", code], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr == "error: standard output cannot be written: No space left on device\n"


@pytest.mark.parametrize("words", ["journal verify", "test", "verify", "plugin check", "run --state", "run --plugin"])
def test_a_path_that_cannot_be_looked_at_is_told_in_a_line(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*words.split(), f"/{'a' * 300}"]) in (cli.FAILED, cli.WRONG_USE)
    reported = capsys.readouterr().err
    assert reported.startswith("error: ")
    assert reported.endswith("File name too long\n")


@pytest.mark.parametrize("words", ["--help", "simulate --scenario examples/scenarios/gang.txt"])
def test_a_closed_standard_output_is_told_in_a_line(words: str) -> None:
    done = subprocess.run(
        ["bash", "-c", f'"$0" -m kschedd.cli {words} >&-', sys.executable], stderr=subprocess.PIPE, text=True
    )
    assert done.returncode == 1
    assert done.stderr == "error: standard output cannot be written: Bad file descriptor\n"


def test_closed_streams_are_not_given_to_the_next_file() -> None:
    code = "import os, kschedd.cli as cli; cli._open_closed_streams(); print(os.open('/dev/null', 0))"
    done = subprocess.run(
        ["bash", "-c", '"$0" -c "$1" <&- 2>&-', sys.executable, code], stdout=subprocess.PIPE, text=True, check=True
    )
    assert int(done.stdout) > 2


def test_complaints_that_nobody_reads_do_not_end_the_work() -> None:
    line = '{ "$0" -m kschedd.cli gett 2>&1; echo $? >&3; } 3>&1 | true'
    done = subprocess.run(
        ["bash", "-c", f"exec 4>&1; {line.replace('3>&1', '3>&4')}", sys.executable], capture_output=True, text=True
    )
    assert done.stdout == "2\n"
    assert done.stderr == ""


def test_a_locale_without_the_letters_is_no_obstacle() -> None:
    code = "import kschedd.cli as cli; cli._run = lambda words: print(*words); cli.main(['gr\\u00fcn'])"
    environment = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
    assert done.stdout == "grün\n".encode()


def test_flags_of_every_command_may_stand_anywhere() -> None:
    assert cli._global_flags(["get", "--socket", "a", "pods"]) == ({"--socket": "a"}, ["get", "pods"])
    assert cli._global_flags(["--socket=a", "get", "--color=never"]) == ({"--socket": "a", "--color": "never"}, ["get"])
    assert cli._global_flags(["x", "--", "--socket", "a"]) == ({}, ["x", "--", "--socket", "a"])


@pytest.mark.parametrize(
    ("when", "environment", "colored"),
    [
        ("always", {}, True),
        ("always", {"NO_COLOR": "1"}, True),
        ("never", {"FORCE_COLOR": "1"}, False),
        ("auto", {}, False),
        ("auto", {"FORCE_COLOR": "1"}, True),
    ],
)
def test_color(when: str, environment: dict[str, str], colored: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli.os, "environ", environment)
    cli._set_color(when)
    assert style_of(io.StringIO(), environment).color is colored


class InterruptedImport:
    """An object that raises KeyboardInterrupt while this module is being imported."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "kschedd.cli":
            raise KeyboardInterrupt


def test_ctrl_c_during_the_imports_ends_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "kschedd.cli")
    monkeypatch.delattr(kschedd, "cli")
    monkeypatch.setattr(sys, "meta_path", [InterruptedImport(), *sys.meta_path])
    assert entry_point() == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_the_script_begins_where_the_module_does() -> None:
    scripts = tomllib.loads(Path(__file__).parents[1].joinpath("pyproject.toml").read_text())["project"]["scripts"]
    assert scripts == {"kschedd": f"{entry_point.__module__}:{entry_point.__name__}"}
    done = subprocess.run([sys.executable, "-m", "kschedd", "version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("kschedd ")


def test_the_process_leaves_at_its_end_what_refers_to_itself() -> None:
    code = "import gc, sys; from kschedd.__main__ import main; sys.argv[1:] = ['version']; main(); "
    code += "print(len(gc.get_objects()) < gc.get_freeze_count() // 100)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "True"


def test_run_with_an_image_is_the_verb_that_makes_a_pod(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "web", "--image=a:1", "--dry-run=client", "-o", "name"]) == 0
    assert capsys.readouterr().out == "pod/web\n"
    assert cli.main(["run", "web"]) == 2
    assert "unexpected argument web" in capsys.readouterr().err
