"""Plugin arguments: the declaration of the fields of a plugin's `pluginConfig`, and their reading.

A plugin, in-tree or out-of-tree, names a frozen attrs class as its `args_type`:

    @attrs.frozen
    class MyArgs:
        limit: int = arg(10, bounds=(1, 100))
        node_labels: tuple[str, ...] = ()

    class MyPlugin:
        name = "MyPlugin"
        args_type = MyArgs

Each field is read, according to its type, from the field of the file with the same name in camelCase: int, bool, float,
str, Literal, tuples of these, `T | None`, other attrs classes, and mappings, which are not changed. `arg` declares
further restrictions such as bounds. Two class methods are optional: `check(fields, context)` reports errors that
concern several fields. `defaults(context, given)` creates an instance with the defaults for fields that are missing in
the file's mapping `given`. A plugin without `args_type` gets `RawArgs`, the unchanged mapping.

Source: Kubernetes v1.34, apis/config/v1 (default_plugins.go, defaults.go), scheme.go: strict decoding. Faults are
reported to the `ConfigReader` of the file. The class's own validators and converters may raise, which also counts as a
fault in the file.
"""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import attrs

from kschedd.config.parsing.faults import ConfigError, ConfigErrors
from kschedd.config.parsing.reading import INT64, ConfigFields, ConfigValue, duration_text
from kschedd.config.plugin_info import PluginInfo
from kschedd.errors import KscheddError

API_GROUP: Final = "kubescheduler.config.k8s.io"

ReadValue = Callable[[ConfigValue, "ArgsContext"], Any]
"""Reads the value at a place; faults are reported to its reader."""


@attrs.frozen
class RawArgs:
    """Unparsed arguments for a plugin without `args_type`."""

    values: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen
class ArgsContext:
    """The context in which arguments are read."""

    gates: Mapping[str, bool] = attrs.field(factory=dict)
    version: str = "v1"
    """The version of the file's format; a `Policy` has none."""


@attrs.frozen
class _ArgOptions:
    name: str = ""
    bounds: tuple[int, int] = INT64
    needed: bool = False
    read: ReadValue | None = None


_OPTIONS: Final = "kschedd.args"


def arg(
    default: Any = attrs.NOTHING,
    *,
    name: str = "",
    bounds: tuple[int, int] = INT64,
    needed: bool = False,
    read: ReadValue | None = None,
) -> Any:
    """Return a field of an arguments class.

    `name` is the field's name in the file, if it differs from the attribute's name in camelCase. `bounds` are the
    inclusive bounds of an integer. `needed`: a file without the field is rejected. `read` is a function that reads the
    value, if the type alone is not sufficient.
    """
    return attrs.field(default=default, metadata={_OPTIONS: _ArgOptions(name, bounds, needed, read)})


def default_args(plugin: str, info: PluginInfo | None, context: ArgsContext) -> Any:
    """Return the arguments of a plugin without `pluginConfig`.

    Raises `ConfigErrors` if the class cannot create its defaults.
    """
    if info is None or info.args_type is None:
        return RawArgs()
    args_type = info.args_type
    try:
        return _guarded(info, lambda: _default_args(args_type, context))
    except KscheddError as fault:
        why = f"its default arguments cannot be made: {fault}"
        raise ConfigErrors((ConfigError("plugins", 0, f"$.{plugin}", None, why),)) from fault


def _default_args(args_type: type[Any], context: ArgsContext) -> Any:
    if hasattr(args_type, "defaults"):
        return args_type.defaults(context, {})
    return args_type()


def _guarded(info: PluginInfo, work: Callable[[], Any]) -> Any:
    return work() if info.guard is None else info.guard(work)


def read_plugin_args(plugin: str, info: PluginInfo | None, place: ConfigValue | None, context: ArgsContext) -> Any:
    """Return the arguments of `plugin` read from `place`, which collects the faults."""
    if place is None:
        return default_args(plugin, info, context)
    if info is None or info.args_type is None:
        if not isinstance(place.value, Mapping):
            place.wrong("must be a mapping")
            return RawArgs()
        return RawArgs(place.value)
    args_type = info.args_type
    fields = place.fields("apiVersion", "kind", *field_names(args_type))
    if fields is None:
        return default_args(plugin, info, context)
    kind, version = f"{plugin}Args", f"{API_GROUP}/{context.version}"
    for name, expected, why in (
        ("kind", kind, "not the kind of this plugin's arguments"),
        ("apiVersion", version, "not supported"),
    ):
        found = fields.text(name, expected)
        if found != expected:
            fields.place.reading.report(fields.path(name), found, why, expected)
    try:
        return _guarded(info, lambda: read_fields(args_type, fields, context))
    except KscheddError as fault:
        place.wrong(f"the plugin cannot read it: {fault}")
        return None


def read_mapping(args_type: type[Any], place: ConfigValue, context: ArgsContext) -> Any:
    """Return an instance of an arguments class (or of a part) read from `place`; None if this is not a mapping."""
    fields = place.fields(*field_names(args_type))
    return None if fields is None else read_fields(args_type, fields, context)


def read_fields(args_type: type[Any], fields: ConfigFields, context: ArgsContext) -> Any:
    given: dict[str, Any] = {}
    hints = get_type_hints(args_type)
    incomplete = False
    for field in attrs.fields(args_type):
        options = _options(field)
        name = _name(field)
        found = fields.get(name)
        if found is None:
            if options.needed:
                fields.missing(name)
                incomplete = True
            continue
        faults = len(found.reading.faults)
        read = options.read or _reader(hints[field.name], options)
        value = read(found, context)
        if value is not None and (len(found.reading.faults) == faults or field.default is attrs.NOTHING):
            given[field.alias] = value
        incomplete = incomplete or (value is None and field.default is attrs.NOTHING)
    if hasattr(args_type, "check"):
        args_type.check(fields, context)
    if incomplete:
        return None
    try:
        return args_type(**{**_defaults(args_type, context, fields.place.value), **given})
    except Exception as fault:  # raised by the plugin's validator, converter or default
        fields.place.wrong(f"{args_type.__name__} refuses it: {fault}")
        return None


def _defaults(args_type: type[Any], context: ArgsContext, given: Mapping[str, Any]) -> dict[str, Any]:
    if not hasattr(args_type, "defaults"):
        return {}
    made = args_type.defaults(context, given)
    return {field.alias: getattr(made, field.name) for field in attrs.fields(args_type)}


def field_names(args_type: type[Any]) -> tuple[str, ...]:
    """Return the names that the class's fields have in a file."""
    return tuple(_name(field) for field in attrs.fields(args_type))


def written(args: Any) -> Any:
    """Return arguments in the form of a file, without fields that have their default: the reverse of reading."""
    if isinstance(args, RawArgs):
        return written(args.values)
    if attrs.has(type(args)):
        if hasattr(args, "written"):
            return args.written()
        return {
            _name(field): duration_text(value) if _options(field).read is duration_s else written(value)
            for field in attrs.fields(type(args))
            if (value := getattr(args, field.name)) is not None and not _is_default(field, value)
        }
    if isinstance(args, Mapping):
        return {str(key): written(value) for key, value in args.items()}
    if isinstance(args, list | tuple | set | frozenset):
        return [written(value) for value in args]
    return args


def _is_default(field: attrs.Attribute[Any], value: Any) -> bool:
    return field.default is not attrs.NOTHING and not _options(field).needed and bool(field.default == value)


def _options(field: attrs.Attribute[Any]) -> _ArgOptions:
    options: _ArgOptions = field.metadata.get(_OPTIONS, _ArgOptions())
    return options


def _name(field: attrs.Attribute[Any]) -> str:
    return _options(field).name or re.sub(r"_([a-z0-9])", lambda found: found[1].upper(), field.name)


def _reader(hint: Any, options: _ArgOptions) -> ReadValue:
    """Return the function that reads a value of this type."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        [hint] = [each for each in inner if each is not type(None)][:1]
        return _reader(hint, options)
    if origin is Literal:
        return lambda place, context: place.choice([str(option) for option in inner])
    if origin in (tuple, list, Sequence) or (isinstance(origin, type) and issubclass(origin, Sequence)):
        return _list_of(_reader(inner[0] if inner else Any, options))
    if hint is bool:
        return lambda place, context: place.boolean()
    if hint is int:
        return lambda place, context: place.integer(options.bounds)
    if hint is float:
        return lambda place, context: place.number()
    if hint is str:
        return lambda place, context: place.text()
    if isinstance(hint, type) and attrs.has(hint):
        return lambda place, context: read_mapping(hint, place, context)
    return lambda place, context: place.value


def _list_of(read: ReadValue) -> ReadValue:
    def items(place: ConfigValue, context: ArgsContext) -> tuple[Any, ...]:
        return tuple(value for item in place.items() if (value := read(item, context)) is not None)

    return items


def duration_s(place: ConfigValue, context: ArgsContext) -> float | None:
    """Read a duration in Go's notation, in seconds, for `arg(read=duration_s)`."""
    return place.duration_s()
