"""The systemd unit and the container file start the daemon with flags that it has."""

import argparse
import json
import re
import shlex
from pathlib import Path

from kschedd.commands.run import add_parser

EXAMPLES = Path(__file__).parents[2] / "examples"
UNIT = EXAMPLES / "systemd" / "kschedd.service"


def parsed(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    return parser.parse_args(words)


def test_the_unit_starts_a_daemon_with_state_socket_and_audit_log() -> None:
    found = re.search(r"^ExecStart=\S+ (.*) \$KSCHEDD_FLAGS$", UNIT.read_text(), re.MULTILINE)
    assert found is not None
    options = parsed(shlex.split(found[1]))
    assert str(options.state) == "${STATE_DIRECTORY}"
    assert options.socket == "${RUNTIME_DIRECTORY}/kschedd.sock"
    assert str(options.audit_log) == "${LOGS_DIRECTORY}/audit.log"


def test_the_container_starts_a_daemon_with_its_state() -> None:
    found = re.search(r"^CMD (\[.*\])$", (EXAMPLES / "container" / "Containerfile").read_text(), re.MULTILINE)
    assert found is not None
    assert str(parsed(json.loads(found[1])).state) == "/var/lib/kschedd"
