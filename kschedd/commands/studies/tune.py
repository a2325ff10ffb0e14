"""`kschedd tune SPEC.yaml`: searches for values of parameters, and compares the best ones with the given profile.

Exit status: 0 if the study is complete, 1 if some runs failed, 2 if the specification or a flag is invalid.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any, Final

from kschedd.commands.studies.sweep import add_engine_flags
from kschedd.errors import KscheddError
from kschedd.printing.terminal.safe import safe
from kschedd.simulation.summary import columns
from kschedd.verbs.command_line.parsing import path_value

SOME_FAILED: Final = 1
INVALID: Final = 2


def add_parser(subparsers: Any) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "tune",
        help="search for the weights and arguments that are best for some objectives",
        description="Search for values of parameters with Optuna, each measured by simulations over all seeds. Prints "
        "the trials that no other one beats, writes their configurations, and compares them with the given profile on "
        "seeds that no trial has used. An interrupted study can be resumed. Exit status: 0 complete, 1 some "
        "runs failed (their rows have the error), 2 the specification or a flag is invalid.",
    )
    parser.add_argument("spec", type=path_value, metavar="SPEC.yaml", help="the specification (docs/RESEARCH.md)")
    parser.add_argument("--out", type=path_value, metavar="DIR", help="folder of the study (default: SPEC-study)")
    add_engine_flags(parser)
    parser.set_defaults(run=_tune)


def _tune(options: argparse.Namespace) -> int:
    from kschedd.studies.engines import EngineOptions
    from kschedd.studies.tuning import Tuning, read_tuning_spec

    out = options.out or options.spec.with_name(f"{options.spec.stem}-study")
    engine = EngineOptions(engine=options.engine, jobs=max(0, options.jobs), address=options.address)
    try:
        spec = read_tuning_spec(options.spec, options.data)

        def progress(done: int) -> None:
            print(f"{done:,} of {spec.trials:,} trials", file=sys.stderr, flush=True)

        tuning = Tuning(spec, out, engine, progress)
        best = tuning.run()
    except KscheddError as fault:
        print(safe("\n".join(f"error: {text}" for text in str(fault).splitlines())), file=sys.stderr)
        return INVALID
    rows = [["TRIAL", *map(str.upper, spec.objectives), "PARAMETERS"]]
    for each in best:
        values = ", ".join(f"{path}={json.dumps(value)}" for path, value in each.parameters.items())
        rows.append([str(each.number), *(f"{value:.6g}" for value in each.objectives.values()), values])
    print(safe("\n".join(columns(rows))))
    for each in best:
        file = out / f"trial-{each.number}.yaml"
        _write(file, each.config)
        print(f"\ntrial {each.number} on held-out seeds, less the given profile; configuration in {file}")
        for one in each.compared:
            ends = f"95% interval {one.low:+.4g} to {one.high:+.4g}"
            print(f"  {one.metric}: {one.best:.6g} against {one.given:.6g}, {one.difference:+.4g} ({ends})")
    if not tuning.failed:
        return 0
    first = str(tuning.failed[0]["error"]).splitlines()[0]
    print(safe(f"{len(tuning.failed):,} runs failed; rows in {out}; the first: {first}"), file=sys.stderr)
    return SOME_FAILED


def _write(file: Path, config: Any) -> None:
    import yaml

    try:
        file.write_text(yaml.safe_dump(dict(config), sort_keys=False), encoding="utf-8")
    except OSError as fault:
        raise KscheddError(f"{file}: cannot be written: {fault.strerror}") from fault
