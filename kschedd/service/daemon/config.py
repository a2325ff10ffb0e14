"""Methods for the configuration: origins of its values, configuration files, changes at run time, and undo."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn, TypeVar

import attrs

from kschedd.api.text.times import stamp
from kschedd.config.changing import files
from kschedd.config.changing.changes import (
    with_backoff,
    with_parallelism,
    with_percentage,
    with_plugin_args,
    with_plugin_disabled,
    with_plugin_enabled,
    with_profile_added,
    with_profile_removed,
    with_unschedulable_flush,
    with_weight,
)
from kschedd.config.changing.files import CheckedConfig
from kschedd.config.changing.values import ConfiguredValue, values
from kschedd.config.in_tree import IN_TREE, Catalogue
from kschedd.config.loading.context import ReadFile
from kschedd.config.loading.load import load_config
from kschedd.config.loading.plugin_sets import FIELD_OF_POINT
from kschedd.config.model import Config
from kschedd.lint.upgrades import upgrade_warnings
from kschedd.scheduling.config_changes import ConfigChange
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.inputs import ChangeConfig, UndoConfigChange
from kschedd.service.cluster import ClusterBackend
from kschedd.service.daemon.answers import ConfigChangeAnswer, TextAnswer
from kschedd.service.errors import RpcError
from kschedd.service.params import Param
from kschedd.service.table import Call, Methods, method

T = TypeVar("T")

_POINTS = {**{point: point for point in FIELD_OF_POINT}, **{field: point for point, field in FIELD_OF_POINT.items()}}
_TEXT = Param("text", "string", doc="the file's text: KubeSchedulerConfiguration of any release, or a Policy")
_SOURCE = Param("source", "string", False, "configuration", "the file's name in messages")
_UPGRADE_TO = Param("upgrade_to", "string", False, "", "a release: also warn of what an upgrade to it changes")
_KUBE_VERSION = Param(
    "kube_version", "string", False, "", "the release whose defaults and rules apply; default: the newest recorded one"
)
CHANGES = (
    *("weight", "plugin-on", "plugin-off", "args", "percentage", "backoff", "parallelism", "flush"),
    *("profile-on", "profile-off", "all"),
)


@attrs.frozen(eq=False)
class ConfigMethods(Methods):
    _cluster: ClusterBackend

    @method(
        "config.values",
        reads=True,
        doc=(
            "Returns every value in effect with its origin: a line of a file, a flag, a change at run time, or the "
            "default of a release."
        ),
        returns="a path identifies profiles and plugins by name",
        answer=Sequence[ConfiguredValue],
    )
    async def values(self, call: Call) -> Any:
        return list(values(await self._cluster.scheduler.query(lambda owner: owner.machine.config)))

    @method(
        "config.check",
        (_TEXT, _SOURCE, _UPGRADE_TO, _KUBE_VERSION),
        reads=True,
        doc=(
            "Checks a configuration file and returns all its errors. Files to which the configuration refers are not "
            "read."
        ),
        answer=CheckedConfig,
    )
    async def check(self, call: Call) -> Any:
        version = files.version_named(call["kube_version"], upgraded=bool(call["upgrade_to"]))
        checked = await self._read(call, partial(files.check, version=version))
        if not call["upgrade_to"]:
            return checked
        given = call["text"], call["source"], call["upgrade_to"], call["kube_version"]
        more = await call.services.workers.run(call.client, lambda _: upgrade_warnings(*given))
        return attrs.evolve(checked, warnings=[*checked.warnings, *more])

    @method(
        "config.show",
        (_TEXT, _SOURCE, _KUBE_VERSION),
        reads=True,
        doc="Returns every value that a configuration file sets, in the form of `config.values`.",
        answer=Sequence[ConfiguredValue],
    )
    async def show(self, call: Call) -> Any:
        return await self._read(call, partial(files.show, version=files.version_named(call["kube_version"])))

    @method(
        "config.convert",
        (
            Param("text", "string", False, doc="the text of the file; default: the configuration in effect"),
            _SOURCE,
            Param("upstream", "boolean", False, False, "leave out settings that kube-scheduler does not have"),
        ),
        reads=True,
        doc="Converts a configuration to KubeSchedulerConfiguration v1, with comments about settings that have no "
        "counterpart there.",
        answer=TextAnswer,
    )
    async def convert(self, call: Call) -> Any:
        if call["text"] is not None:
            return TextAnswer(await self._read(call, partial(files.convert, upstream=call["upstream"])))
        config, catalogue = await self._cluster.scheduler.query(
            lambda owner: (owner.machine.config, _catalogue_of(owner))
        )
        return TextAnswer(files.written_as_v1(config, catalogue, upstream=call["upstream"]))

    async def _read(self, call: Call, answer: Callable[[str, str, Catalogue, ReadFile], T]) -> T:
        """Run a function on the file's text in a thread, because the file may be large; return its answer."""
        catalogue = await self._cluster.scheduler.query(_catalogue_of)
        text, source = call["text"], call["source"]
        return await call.services.workers.run(call.client, lambda _: answer(text, source, catalogue, _unread))

    @method(
        "config.change",
        (
            Param(
                "what",
                "string",
                doc="kind of change; each kind requires the parameters whose descriptions name it",
                choices=CHANGES,
            ),
            Param(
                "profile",
                "string",
                False,
                doc="schedulerName of the profile; required for all changes except backoff, parallelism, flush, all",
            ),
            Param("plugin", "string", False, doc="weight, plugin-on, plugin-off, args"),
            Param("points", "string[]", False, doc="only these extension points (for plugin-on and plugin-off)"),
            Param("weight", "integer", False, doc="weight; plugin-on: its score weight"),
            Param("args", "map", False, doc="args; plugin-on, profile-on (a profile): in the format of the file"),
            Param("percentage", "integer", False, doc="percentage; null uses the top-level value for a profile"),
            Param("seconds", "integer", False, doc="backoff: initial; flush", minimum=0),
            Param("max_seconds", "integer", False, doc="backoff: maximum", minimum=0),
            Param("parallelism", "integer", False, doc="parallelism"),
            Param("text", "string", False, doc="all: a whole configuration file"),
        ),
        doc="Changes the configuration; the change applies from the next attempt on. Pods that wait at Permit or are "
        "being bound keep the plugins of their attempt.",
        answer=ConfigChangeAnswer,
    )
    async def change(self, call: Call) -> Any:
        now = self._cluster.clock.now()
        given = _Given(call)
        make = await self._whole(call, given) if call["what"] == "all" else _CHANGES[call["what"]]

        def change(owner: SchedulingDriver) -> ConfigChange:
            config = make(owner.machine.config, given, _catalogue_of(owner))
            made: ConfigChange = owner.step(ChangeConfig(config, given.described()), now)
            return made

        return await self._change_answer(call, await self._cluster.scheduler.query(change, long=True))

    async def _whole(self, call: Call, given: "_Given") -> "_Make":
        """Return the change to a whole configuration that a file contains."""
        text = given.needed("text")
        read = await self._cluster.scheduler.query(_reader_of)
        new = await call.services.workers.run(call.client, lambda _: read(text, "change"))
        return lambda config, given, catalogue: new

    @method(
        "config.undo",
        doc="Undoes the latest change. A second call undoes the change before it.",
        returns="the change that was undone",
        answer=ConfigChangeAnswer,
    )
    async def undo(self, call: Call) -> Any:
        change = await self._cluster.scheduler.query(lambda owner: owner.step(UndoConfigChange()), long=True)
        return await self._change_answer(call, change)

    async def _change_answer(self, call: Call, change: ConfigChange) -> Any:
        """Return the answer for a change; computed in a thread, because thousands of profiles have many values."""
        return await call.services.workers.run(call.client, lambda _: _plain(change))

    @method(
        "config.changes",
        reads=True,
        doc="Lists the changes that can be undone, the newest last.",
        answer=Sequence[ConfigChangeAnswer],
    )
    async def changes(self, call: Call) -> Any:
        made = await self._cluster.scheduler.query(lambda owner: tuple(owner.config_changes.made))
        return [_plain(change) for change in made]


def _catalogue_of(owner: SchedulingDriver) -> Catalogue:
    return IN_TREE | owner.machine.registry.catalogue()


def whole_config(owner: SchedulingDriver, text: str, source: str) -> Config:
    """Return the configuration in a file as the scheduler would use it.

    `source` is the name of the file in messages.

    Values set by flags are not included. Raises ConfigErrors.
    """
    return _reader_of(owner)(text, source)


def _reader_of(owner: SchedulingDriver) -> Callable[[str, str], Config]:
    """Return a function that reads a configuration file with the scheduler's version, feature gates and plugins."""
    config = owner.machine.config
    load = partial(
        load_config,
        catalogue=_catalogue_of(owner),
        version=config.version,
        feature_gates=config.feature_gates,
        read_file=_unread,
    )
    return lambda text, source: attrs.evolve(load(text, source), unschedulable_flush_s=config.unschedulable_flush_s)


def _unread(path: str) -> NoReturn:
    why = "the daemon does not read files for its clients; send the output of `kschedd config convert -f FILE`"
    raise OSError(0, why)


def _plain(change: ConfigChange) -> ConfigChangeAnswer:
    return ConfigChangeAnswer(change.number, stamp(change.at_s), change.what, change.values)


@attrs.frozen(eq=False)
class _Given:
    """The parameters of a change."""

    _call: Call

    def __getitem__(self, name: str) -> Any:
        return self._call[name]

    def needed(self, name: str) -> Any:
        value = self._call[name]
        if value is None:
            raise RpcError("invalid", f"{name}: required for a change of {self._call['what']}")
        return value

    @property
    def points(self) -> list[str] | None:
        """The extension points as the configuration code spells them, converted from another spelling if necessary."""
        points = self._call["points"]
        return None if points is None else [_POINTS.get(point, point) for point in points]

    def described(self) -> str:
        names = ("plugin", "weight", "points", "args", "percentage", "seconds", "max_seconds", "parallelism")
        shown = [_shown(self._call[name]) for name in names if self._call[name] is not None]
        if self._call["profile"] is not None:
            shown.append(f"in {self._call['profile']}" if shown else self._call["profile"])
        return " ".join([self._call["what"], *shown])


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


_Make = Callable[[Config, _Given, Catalogue], Config]


_CHANGES: Mapping[str, _Make] = {
    "weight": lambda config, given, catalogue: with_weight(
        config, given.needed("profile"), given.needed("plugin"), given.needed("weight")
    ),
    "plugin-on": lambda config, given, catalogue: with_plugin_enabled(
        config,
        given.needed("profile"),
        given.needed("plugin"),
        given.points,
        weight=given["weight"],
        args=given["args"],
        catalogue=catalogue,
    ),
    "plugin-off": lambda config, given, catalogue: with_plugin_disabled(
        config, given.needed("profile"), given.needed("plugin"), given.points
    ),
    "args": lambda config, given, catalogue: with_plugin_args(
        config, given.needed("profile"), given.needed("plugin"), given.needed("args"), catalogue=catalogue
    ),
    "percentage": lambda config, given, catalogue: with_percentage(config, given["percentage"], given["profile"]),
    "backoff": lambda config, given, catalogue: with_backoff(
        config, given.needed("seconds"), given.needed("max_seconds")
    ),
    "parallelism": lambda config, given, catalogue: with_parallelism(config, given.needed("parallelism")),
    "flush": lambda config, given, catalogue: with_unschedulable_flush(config, given.needed("seconds")),
    "profile-on": lambda config, given, catalogue: with_profile_added(
        config, given.needed("profile"), given["args"], catalogue=catalogue
    ),
    "profile-off": lambda config, given, catalogue: with_profile_removed(config, given.needed("profile")),
}
