"""Feature gates: parsing, validation and a list of their states. `gate_history` contains the gates of each release.

As in kube-scheduler, gates are set on the command line (`--feature-gates`), not in the configuration file. Gates of
other components are also accepted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal

import attrs

from kschedd.api.text.similar import did_you_mean
from kschedd.config.parsing.faults import ConfigError, ConfigErrors
from kschedd.config.versions.removed_gates import why_removed

Stage = Literal["ALPHA", "BETA", "GA", "DEPRECATED"]


@attrs.frozen
class FeatureGate:
    default: bool
    stage: Stage
    what: str
    """Its effect here; "" if nothing here depends on it."""
    locked: bool = False
    """True if the feature is final and the gate can no longer be changed."""
    needs: tuple[str, ...] = ()
    """The gates that it requires to be on."""
    supported: bool = True
    """False: the gate would change decisions, but the feature is not implemented, so it cannot be turned on."""


Gates = Mapping[str, FeatureGate]

ALL_OF_STAGE: Final[Mapping[str, Stage]] = {"AllAlpha": "ALPHA", "AllBeta": "BETA"}
"""Names that stand for all gates of a stage; a gate given by name takes precedence."""

_TRUE: Final = ("1", "t", "T", "true", "TRUE", "True")
_FALSE: Final = ("0", "f", "F", "false", "FALSE", "False")
FLAG: Final = "--feature-gates"


def defaults(known: Gates) -> dict[str, bool]:
    return {name: gate.default for name, gate in known.items()}


def feature_gates(overrides: Mapping[str, bool] | None, known: Gates, source: str = "feature gates") -> dict[str, bool]:
    """Return every gate of a release with its state.

    Raise `ConfigErrors` for an unknown gate, or one that cannot be changed.
    """
    faults = []
    states = defaults(known)
    given = dict(overrides or {})
    for name, stage in ALL_OF_STAGE.items():
        if name in given:
            state = given.pop(name)
            states.update({one: state for one, gate in known.items() if gate.stage == stage and gate.supported})
    for name, state in given.items():
        gate = known.get(name)
        if gate is None and (removed := why_removed(name))[0]:
            faults.append(ConfigError(source, 0, f"$.{name}", state, *removed))
        elif gate is None:
            why = f"no such feature gate{did_you_mean(name, known, 1) or f'; `{FLAG} help` lists them'}"
            faults.append(ConfigError(source, 0, f"$.{name}", state, why))
        elif gate.locked and state != gate.default:
            why = "the feature is finished and its gate locked"
            faults.append(ConfigError(source, 0, f"$.{name}", state, why, str(gate.default).lower()))
        elif state and not gate.supported:
            why = "kschedd does not support this feature, and would decide as if its gate were off"
            faults.append(ConfigError(source, 0, f"$.{name}", state, why, "false"))
    states.update(given)
    for name, state in states.items():
        needs = known[name].needs if state and name in known and known[name].supported else ()
        off = [need for need in needs if not states[need]]
        if off:
            why = f"it depends on features that are disabled: {', '.join(off)}"
            faults.append(ConfigError(source, 0, f"$.{name}", state, why, f"{off[0]}=true, too"))
    if faults:
        raise ConfigErrors(tuple(faults))
    return states


def parse_flag(texts: Iterable[str], known: Gates) -> dict[str, bool]:
    """Parse the flag `A=true,B=false`, which may be given several times.  Raises `ConfigErrors`."""
    found: dict[str, bool] = {}
    faults = []
    for pair in (pair.strip() for text in texts for pair in text.split(",")):
        if not pair:
            continue
        name, equals, value = (part.strip() for part in pair.partition("="))
        if not equals or value not in (*_TRUE, *_FALSE):
            why = "a gate and its state are expected" if not equals else "not a state"
            faults.append(ConfigError(FLAG, 0, f"$.{name}", value or None, why, f"{name}=true or {name}=false"))
            continue
        found[name] = value in _TRUE
    if faults:
        raise ConfigErrors(tuple(faults))
    feature_gates(found, known, FLAG)
    return found


def without_effect(given: Mapping[str, bool], known: Gates) -> list[str]:
    """Return the given gates that differ from their default although they have no effect in kschedd."""
    left_off = [
        name
        for stage in (ALL_OF_STAGE[all_] for all_ in ALL_OF_STAGE if given.get(all_))
        for name, gate in known.items()
        if gate.stage == stage and not gate.supported
    ]
    return [name for name, state in given.items() if (gate := known.get(name)) and _is_idle(gate, state)] + left_off


def _is_idle(gate: FeatureGate, state: bool) -> bool:
    return not gate.what and state != gate.default


def listing(known: Gates) -> str:
    """Return one line for every gate that has an effect: its default, its stage and its effect."""
    shown = _with_effect(known)
    width = max(map(len, shown))
    lines = []
    for name, gate in shown.items():
        stage = f"{gate.stage}, locked" if gate.locked else gate.stage
        lines.append(f"{name:<{width}}  {str(gate.default).lower():<5}  {stage:<10}  {gate.what}\n")
    lines.append(f"Nothing here depends on the other {len(known) - len(shown)} gates of this release.\n")
    return "".join(lines)


def _with_effect(known: Gates) -> Gates:
    return {name: gate for name, gate in known.items() if gate.what}
