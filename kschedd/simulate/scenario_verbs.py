"""The commands of scenario files: a small cluster to apply manifests to, let time pass in, and look at.

Before anything else, if at all:
    seed N | config (a KubeSchedulerConfiguration follows) | plugin FILE.py
Changes; after each one everything that can happen at this moment happens:
    apply [-f PATH]... (or manifests follow)      delete KIND NAME... | KIND -l SELECTOR [--grace-period N]
    taint NODE KEY[=VALUE]:EFFECT | KEY[:EFFECT]-  label KIND NAME KEY=VALUE | KEY-    (annotate alike)
    cordon NODE | uncordon NODE                   scale KIND NAME REPLICAS
    patch KIND NAME [--status] (a merge patch follows)
Time:
    advance 10s | rest [1h]                        rest: until nothing happens any more by itself
Looking:
    get KIND [NAME] | count pods by LABEL | show KIND NAME PATH | message POD | explain POD (or a manifest follows)
    queue | decisions | events                     the latter two: since they were last asked for
All take `-n NAMESPACE`; get and count take `-A` and `-l SELECTOR`. A command that fails prints `error:` and the reason.
"""

import json
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import yaml

from kschedd.api.fields import steps
from kschedd.api.kinds import Kind, lookup
from kschedd.api.manifests import read_paths, read_text
from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.api.selector_text import parse_selector_text
from kschedd.config.in_tree import IN_TREE
from kschedd.config.load import load_config
from kschedd.controllers.embedded import embedded_controllers
from kschedd.errors import KscheddError
from kschedd.explain.explain import explain
from kschedd.explain.words import in_words
from kschedd.framework.registry import Registry
from kschedd.scheduling.binding_cycle import AwaitPermit
from kschedd.simulate.engine import Engine, LoggedAttempt
from kschedd.simulate.inputs import apply_all
from kschedd.simulate.scenario_tables import cells, headings
from kschedd.simulate.summary import columns, span
from kschedd.store.writes import patch_of, perform

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")


@attrs.define(eq=False)
class CommandError(KscheddError):
    """A command that cannot be understood."""

    why: str

    def __str__(self) -> str:
        return self.why


@attrs.frozen
class Words:
    """The arguments of a command, flags taken out."""

    plain: tuple[str, ...]
    namespace: str = "default"
    everywhere: bool = False
    selector: str = ""
    files: tuple[str, ...] = ()
    grace_s: int | None = None
    status: bool = False

    def at(self, place: int, what: str) -> str:
        if place >= len(self.plain):
            raise CommandError(f"{what} is missing")
        return self.plain[place]


def _words(arguments: Sequence[str]) -> Words:
    found: dict[str, Any] = {}
    plain: list[str] = []
    files: list[str] = []
    rest = iter(arguments)
    for word in rest:
        match word:
            case "-A":
                found["everywhere"] = True
            case "--status":
                found["status"] = True
            case "-n" | "-l" | "-f" | "--grace-period":
                value = next(rest, None)
                if value is None:
                    raise CommandError(f"{word} needs a value")
                if word == "-f":
                    files.append(value)
                elif word == "--grace-period":
                    found["grace_s"] = int(value)
                else:
                    found["namespace" if word == "-n" else "selector"] = value
            case _ if word.startswith("--"):
                raise CommandError(f"unknown flag {word}")
            case _:
                plain.append(word)
    return Words(tuple(plain), files=tuple(files), **found)


def duration(text: str) -> float:
    """Seconds of `90s`, `1m30s`, `500ms`."""
    parts = re.findall(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise CommandError(f"{text!r} is no duration: 500ms, 10s, 1m30s, 2h, 1d")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


class World:
    """The cluster a scenario works on. `folder` is where its files are looked for."""

    def __init__(self, folder: Path, on_decision: Callable[[LoggedAttempt], None] | None = None) -> None:
        self._on_decision = on_decision
        self._folder = folder
        self._seed = 1
        self._config = ""
        self._registry = Registry()
        self._engine: Engine | None = None
        self._decisions: list[LoggedAttempt] = []
        self._events: list[str] = []

    @property
    def engine(self) -> Engine:
        if self._engine is None:
            catalogue = {**IN_TREE, **self._registry.catalogue()}
            config = load_config(self._config, "config", catalogue=catalogue) if self._config else None
            self._engine = Engine(
                config,
                seed=self._seed,
                registry=self._registry,
                controllers=embedded_controllers(),
                on_decision=self._decided,
                on_event=self._happened,
            )
            self._engine.settle()
        return self._engine

    def _decided(self, decision: LoggedAttempt) -> None:
        self._decisions.append(decision)
        if self._on_decision is not None:
            self._on_decision(decision)

    def _happened(self, key: str, kind: str, reason: str, text: str) -> None:
        self._events.append(f"{self._clock()} {kind} {reason} {key}: {text}")

    def _clock(self, at_s: float | None = None) -> str:
        return f"+{span(self.engine.elapsed if at_s is None else at_s)}"

    def do(self, command: str, given: str) -> str:
        """Carry out one command; what it prints."""
        try:
            name, *arguments = shlex.split(command)
            verb = _VERBS.get(name)
            if verb is None:
                raise CommandError(f"unknown command {name}; there are {', '.join(_VERBS)}")
            return "\n".join(verb(self, _words(arguments), given))
        except (KscheddError, ValueError) as fault:
            return f"error: {fault}"

    # -- before anything else -----------------------------------------------------------------------------------

    def seed(self, words: Words, given: str) -> Iterator[str]:
        self._not_begun()
        self._seed = int(words.at(0, "the seed"))
        yield from ()

    def config(self, words: Words, given: str) -> Iterator[str]:
        self._not_begun()
        if words.files:
            given = (self._folder / words.files[0]).read_text(encoding="utf-8")
        load_config(given, "config", catalogue={**IN_TREE, **self._registry.catalogue()})
        self._config = given
        yield from ()

    def plugin(self, words: Words, given: str) -> Iterator[str]:
        self._not_begun()
        names = self._registry.add_file(self._folder / words.at(0, "the plugin's file"))
        yield f"plugins {', '.join(names)}"

    def _not_begun(self) -> None:
        if self._engine is not None:
            raise CommandError("this comes before the first command that needs a cluster")

    # -- changes ------------------------------------------------------------------------------------------------

    def apply(self, words: Words, given: str) -> Iterator[str]:
        files = [str(self._folder / file) for file in words.files]
        reading = read_paths(files) if files else read_text(given, "input")
        applied = apply_all(self.engine.store, reading)
        self.engine.settle()
        short = f"{self._folder}/"
        for kind, key, action in applied.done:
            yield f"{lookup(kind).singular}/{_short(key)} {action}"
        for warning in applied.warnings:
            yield f"warning: {warning}".replace(short, "")
        for error in applied.errors:
            yield f"error: {error}".replace(short, "")

    def delete(self, words: Words, given: str) -> Iterator[str]:
        kind = self._kind(words.at(0, "the kind"))
        for obj in self._chosen(kind, words, words.plain[1:]):
            self.engine.store.delete(kind.name, obj.namespace, obj.name, grace_period_s=words.grace_s)
            yield f"{kind.singular}/{obj.name} deleted"
        self.engine.settle()

    def taint(self, words: Words, given: str) -> Iterator[str]:
        node = self.engine.store.get("Node", "", words.at(0, "the node"))
        text = words.at(1, "the taint")
        taints = list(node.spec.get("taints") or ())
        key, _, effect = text.removesuffix("-").partition(":")
        key, _, value = key.partition("=")
        others = [t for t in taints if t.get("key") != key or (effect and t.get("effect") != effect)]
        if text.endswith("-"):
            if len(others) == len(taints):
                raise CommandError(f'taint "{text.removesuffix("-")}" not found on {node.name}')
            taints = others
        elif effect not in _EFFECTS:
            raise CommandError(f"{text}: the effect must be one of {', '.join(_EFFECTS)}")
        else:
            taints = [*others, {"key": key, "effect": effect, **({"value": value} if value else {})}]
        yield from self._patch(node, {"spec": {"taints": taints or None}}, "tainted")

    def label(self, words: Words, given: str) -> Iterator[str]:
        yield from self._set_meta(words, "labels", "labeled")

    def annotate(self, words: Words, given: str) -> Iterator[str]:
        yield from self._set_meta(words, "annotations", "annotated")

    def _set_meta(self, words: Words, field: str, done: str) -> Iterator[str]:
        obj = self._one(words)
        wanted: dict[str, str | None] = {}
        for text in words.plain[2:]:
            key, equals, value = text.partition("=")
            if not equals and not text.endswith("-"):
                raise CommandError(f"{text}: must be KEY=VALUE, or KEY- to take it away")
            wanted[key if equals else text.removesuffix("-")] = value if equals else None
        yield from self._patch(obj, {"metadata": {field: wanted}}, done)

    def cordon(self, words: Words, given: str) -> Iterator[str]:
        node = self.engine.store.get("Node", "", words.at(0, "the node"))
        yield from self._patch(node, {"spec": {"unschedulable": True}}, "cordoned")

    def uncordon(self, words: Words, given: str) -> Iterator[str]:
        node = self.engine.store.get("Node", "", words.at(0, "the node"))
        yield from self._patch(node, {"spec": {"unschedulable": None}}, "uncordoned")

    def scale(self, words: Words, given: str) -> Iterator[str]:
        replicas = int(words.at(2, "the number of replicas"))
        yield from self._patch(self._one(words), {"spec": {"replicas": replicas}}, f"scaled to {replicas}")

    def patch(self, words: Words, given: str) -> Iterator[str]:
        change = yaml.safe_load(given)
        if not isinstance(change, dict):
            raise CommandError("a merge patch follows the command: fields to set, null to take away")
        yield from self._patch(self._one(words), change, "patched", status=words.status)

    def _patch(self, obj: Object, change: dict[str, Any], done: str, *, status: bool = False) -> Iterator[str]:
        after = perform(self.engine.store, patch_of(obj, change, "status" if status else ""))
        self.engine.settle()
        yield f"{lookup(obj.kind).singular}/{obj.name} {done if after is not obj else 'unchanged'}"

    # -- time ---------------------------------------------------------------------------------------------------

    def advance(self, words: Words, given: str) -> Iterator[str]:
        self.engine.advance(self.engine.now + duration(words.at(0, "how long")))
        yield from ()

    def rest(self, words: Words, given: str) -> Iterator[str]:
        limit = duration(words.plain[0]) if words.plain else 3600.0
        at_rest = self.engine.run_to_rest(limit)
        yield f"{self._clock()} {'at rest' if at_rest else 'still busy'}"

    # -- looking ------------------------------------------------------------------------------------------------

    def get(self, words: Words, given: str) -> Iterator[str]:
        kind = self._kind(words.at(0, "the kind"))
        found = self._chosen(kind, words, words.plain[1:], all_of_them=True)
        if not found:
            yield f"no {kind.plural}"
            return
        rows = [headings(kind.name)]
        for obj in found:
            name = obj.key if words.everywhere else obj.name
            rows.append((name, *cells(obj, self.engine.store)))
        yield from columns(rows)

    def count(self, words: Words, given: str) -> Iterator[str]:
        if words.at(0, "pods") not in ("pods", "pod") or words.at(1, "by") != "by":
            raise CommandError("what is understood is: count pods by LABEL")
        label = words.at(2, "the label")
        table = self.engine.machine.cluster.table
        there: Counter[str] = Counter({node.labels.get(label, "(none)"): 0 for node in table.nodes if node is not None})
        waiting = 0
        for pod in self._chosen(lookup("pods"), words, (), all_of_them=True):
            assert isinstance(pod, Pod)
            node = self.engine.store.find("Node", "", pod.node_name) if pod.node_name else None
            if node is None:
                waiting += 1
            else:
                there[node.labels.get(label, "(none)")] += 1
        for value in sorted(there):
            yield f"{value} {there[value]}"
        if waiting:
            yield f"nowhere {waiting}"

    def show(self, words: Words, given: str) -> Iterator[str]:
        value: Any = self._one(words).raw
        for step in steps(words.at(2, "the path")):
            try:
                value = value[step]
            except (KeyError, IndexError, TypeError):
                value = None
                break
        yield value if isinstance(value, str) else json.dumps(value, sort_keys=True)

    def message(self, words: Words, given: str) -> Iterator[str]:
        pod = self._one(Words(("pod", *words.plain), words.namespace))
        for condition in pod.status.get("conditions") or ():
            if condition.get("type") == "PodScheduled":
                yield f"{condition.get('reason') or condition.get('status')}: {condition.get('message', '')}".rstrip(
                    ": "
                )
                return
        yield "no PodScheduled condition"

    def explain(self, words: Words, given: str) -> Iterator[str]:
        engine = self.engine
        if given.strip():
            reading = read_text(given, "input")
            if reading.errors:
                raise reading.errors[0]
            pod = engine.store.create(reading.manifests[0].raw, dry_run=True)
        else:
            pod = self._one(Words(("pod", *words.plain), words.namespace))
        if not isinstance(pod, Pod):
            raise CommandError(f"{pod.kind} {pod.name} is no pod")
        yield in_words(explain(engine.machine, pod, engine.driver.nominator.by_node()))

    def queue(self, words: Words, given: str) -> Iterator[str]:
        engine = self.engine
        rows = []
        cycles = engine.driver.binding_cycles
        for entry in [*engine.queue.entries(), *engine.queue.in_flight_pods()]:
            if entry.uid not in cycles:
                blamed = sorted(entry.unschedulable_plugins | entry.pending_plugins)
                why = entry.gating_plugin or ", ".join(blamed) or "-"
                rows.append((_short(entry.key), str(entry.place), str(entry.attempts), why))
        for cycle in cycles.values():
            assumed = cycle.assumed
            place = "permit" if isinstance(cycle.waits, AwaitPermit) else "binding"
            because = f"has a place on {assumed.pod.node_name}"
            rows.append((_short(assumed.pod.key), place, str(assumed.entry.attempts), because))
        if not rows:
            yield "empty"
            return
        yield from columns([("POD", "PLACE", "ATTEMPTS", "BECAUSE OF"), *sorted(rows)])

    def decisions(self, words: Words, given: str) -> Iterator[str]:
        done, self._decisions[:] = list(self._decisions), []
        for each in done:
            begin = f"{self._clock(each.time_s)} {_short(each.pod)} attempt {each.attempt}:"
            if not each.node:
                nominated = f" (nominated to {each.nominated})" if each.nominated else ""
                yield f"{begin} {each.message}{nominated}"
                continue
            scored = "" if each.score is None else f", score {each.score}"
            tied = f", one of {each.ties} as good" if each.ties > 1 else ""
            yield f"{begin} {each.node} ({each.feasible} of {each.visited} feasible{scored}{tied})"

    def events(self, words: Words, given: str) -> Iterator[str]:
        done, self._events[:] = list(self._events), []
        yield from done

    # -- finding things -----------------------------------------------------------------------------------------

    def _kind(self, word: str) -> Kind:
        """The kind a word means; of kinds that nobody knows beforehand, one that there are objects of."""
        kind = lookup(word)
        if kind.known:
            return kind
        unknown = [lookup(name) for name in self.engine.store.kinds()]
        return next((k for k in unknown if word.lower() in (k.name.lower(), k.plural, k.singular)), kind)

    def _one(self, words: Words) -> Object:
        kind = self._kind(words.at(0, "the kind"))
        name = words.at(1, "the name")
        return self.engine.store.get(kind.name, words.namespace if kind.namespaced else "", name)

    def _chosen(self, kind: Kind, words: Words, names: Sequence[str], *, all_of_them: bool = False) -> Sequence[Object]:
        store = self.engine.store
        namespace = None if words.everywhere else words.namespace
        if not kind.namespaced:
            namespace = ""
        if names:
            return [store.get(kind.name, words.namespace if kind.namespaced else "", name) for name in names]
        if not words.selector and not all_of_them:
            raise CommandError("a name or -l SELECTOR is missing")
        selector = parse_selector_text(words.selector) if words.selector else None
        return store.list(kind.name, namespace, selector)


def _short(key: str) -> str:
    return key.removeprefix("default/")


Verb = Callable[[World, Words, str], Iterator[str]]
_VERBS: Final[dict[str, Verb]] = {
    verb.__name__: verb
    for verb in (
        World.seed,
        World.config,
        World.plugin,
        World.apply,
        World.delete,
        World.taint,
        World.label,
        World.annotate,
        World.cordon,
        World.uncordon,
        World.scale,
        World.patch,
        World.advance,
        World.rest,
        World.get,
        World.count,
        World.show,
        World.message,
        World.explain,
        World.queue,
        World.decisions,
        World.events,
    )
}
