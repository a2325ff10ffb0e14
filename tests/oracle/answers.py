"""The oracle's answers to lines of JSON, by the ids of their inputs, from as few processes as possible.

A panic in a worker of kube-scheduler ends the process. The inputs are then halved until each input that causes a panic
is alone; its answer is missing.
"""

import json
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

Raw = dict[str, Any]

CASE = "case"
TRACE = "trace"


def mode_of(record: Mapping[str, Any]) -> str:
    """Return the oracle's mode for a record: `trace` if it has operations, else `case`."""
    return TRACE if "ops" in record else CASE


def ask(oracle: str, mode: str, inputs: Sequence[Raw], *flags: str) -> dict[str, Raw]:
    """Return the oracle's answers by id, without those of inputs that end the oracle."""
    if not inputs:
        return {}
    lines = "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in inputs)
    done = subprocess.run([oracle, mode, *flags], input=lines, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        return _refused_traces(done.stderr) | {answer["id"]: answer for answer in answers}
    if len(inputs) == 1:
        return {}
    half = len(inputs) // 2
    return ask(oracle, mode, inputs[:half], *flags) | ask(oracle, mode, inputs[half:], *flags)


def _refused_traces(text: str) -> dict[str, Raw]:
    """Return an answer for each trace that the oracle has rejected on standard error: `"traces/1": the reason`."""
    found = {}
    for line in text.splitlines():
        name, colon, why = line.partition(": ")
        if colon and name.startswith('"') and name.endswith('"'):
            found[json.loads(name)] = {"id": json.loads(name), "refused": why}
    return found
