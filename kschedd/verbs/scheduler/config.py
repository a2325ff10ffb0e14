"""Verbs for the configuration: config (show, check, convert, changes, apply), config undo, and settings of `set`."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from kschedd.api.text.durations import DurationError, parse_duration
from kschedd.api.text.numbers import whole_number
from kschedd.api.text.similar import allowed_names
from kschedd.printing import documents
from kschedd.printing.reports.scheduling import profiles_of
from kschedd.printing.terminal.tables import Table, render
from kschedd.verbs.command_line.answers import FORMS, write_answer, write_listing
from kschedd.verbs.command_line.grammar import UsageError, VerbParser, given_value, output_flag, verb
from kschedd.verbs.command_line.parsing import path_text
from kschedd.verbs.command_line.session import VerbSession
from kschedd.verbs.objects.manifests import Source, sources_of

ACTIONS: Final = ("show", "check", "convert", "changes", "apply")
_HELP: Final = (
    "show: values and their origin (default); convert: print the configuration as a file; check, apply: a file (-f); "
    "changes: since the start"
)


# -- config ---------------------------------------------------------------------------------------------------------


def _config_words(words: VerbParser) -> None:
    words.add_argument("what", nargs="?", default="", metavar="WHAT", help=_HELP)
    words.add_argument(
        "-f", "--filename", type=path_text, metavar="FILE", help="a configuration file, or - for standard input"
    )
    words.add_argument(
        "--plugin",
        type=path_text,
        action="append",
        default=[],
        metavar="FILE.py",
        help="a Python file with plugins that the configuration file uses; for check, convert and show",
    )
    words.add_argument(
        "--upgrade-to", metavar="VERSION", help="check: also warn about changes that an upgrade to this release causes"
    )
    words.add_argument("--kube-version", metavar="VERSION", help="check, show: the release of the file (1.37)")
    words.add_argument(
        "--for-kube-scheduler",
        action="store_true",
        help="convert: replace or remove plugins of older releases that do not exist in kube-scheduler v1.34",
    )
    words.add_argument("--all", action="store_true", help="show: include default feature gates and arguments")
    output_flag(words, FORMS)


@verb(
    "config",
    "Show the configuration and the origin of each value; check and convert configuration files.",
    _config_words,
    examples=("config show", "config check -f old.yaml", "config convert -f policy.json", "config apply -f new.yaml"),
    completes="config",
)
def config(session: VerbSession, options: argparse.Namespace) -> int:
    what = options.what
    if what == "":
        if options.filename is not None:
            raise UsageError(f"-f {options.filename} requires an action: {', '.join(ACTIONS)}", "config")
        if options.output == "table":
            return _show(session, options, None)
        write_answer(session, options.output, session.daemon.call("scheduler.config"))
        return 0
    if what not in ACTIONS:
        if what in ("export", "save", "dump"):
            raise UsageError(
                f"config {what} is named `config convert`: it prints the configuration as a file", "config"
            )
        raise UsageError(f'config: unknown command "{what}"{allowed_names(what, ACTIONS)}', "config")
    source = None
    if options.filename is not None:
        sources, unreadable = sources_of(session, [options.filename])
        if unreadable:
            return 1
        if len(sources) != 1:
            raise UsageError(f"{options.filename}: one file is expected, found {len(sources)}", "config")
        source = sources[0]
    elif what in ("check", "apply"):
        raise UsageError(f"{what} requires -f FILE", "config")
    if options.kube_version and (what not in ("check", "show") or source is None):
        raise UsageError("--kube-version is for: config check -f FILE, config show -f FILE", "config")
    return _CONFIG[what](session, options, source)


def _params(options: argparse.Namespace, source: Source) -> dict[str, Any]:
    plugins = {"plugins": options.plugin} if options.plugin else {}
    return {"text": source.text, "source": source.name, **plugins}


def _show(session: VerbSession, options: argparse.Namespace, source: Source | None) -> int:
    if source is None:
        found = session.daemon.call("config.values")
    else:
        version = {"kube_version": options.kube_version} if options.kube_version else {}
        found = session.ask_of_file("config.show", **_params(options, source), **version)
    shown = [one for one in found if options.all or _is_worth_showing(one)]
    if not write_answer(session, options.output, shown):
        rows = tuple((one["path"], _text(one["value"]), one["origin"]) for one in shown)
        session.write(render(Table(("PATH", "VALUE", "FROM"), rows), session.style))
    return 0


def _is_worth_showing(value: Mapping[str, Any]) -> bool:
    by_default = str(value["origin"]).startswith("default of")
    return not (by_default and (value["value"] == {} or str(value["path"]).startswith("featureGates")))


def _check(session: VerbSession, options: argparse.Namespace, source: Source | None) -> int:
    assert source is not None, "check needs a file"
    upgrade = {"upgrade_to": options.upgrade_to, "kube_version": options.kube_version}
    given = {name: text for name, text in upgrade.items() if text}
    answer = session.ask_of_file("config.check", **_params(options, source), **given)
    if write_answer(session, options.output, answer):
        return 1 if answer["errors"] else 0
    for warning in answer["warnings"]:
        session.warn(warning["text"])
    for error in answer["errors"]:
        session.error(error["text"])
    if answer["errors"]:
        return 1
    session.write(f"{source.name}: valid; defaults are those of {answer['release']}\n")
    return 0


def _convert(session: VerbSession, options: argparse.Namespace, source: Source | None) -> int:
    upstream = {"upstream": True} if options.for_kube_scheduler else {}
    if source is None:
        answer = session.daemon.call("config.convert", **upstream)
    else:
        answer = session.ask_of_file("config.convert", **_params(options, source), **upstream)
    session.write(answer["text"])
    return 0


def _changes(session: VerbSession, options: argparse.Namespace, source: Source | None) -> int:
    answer = session.daemon.call("config.changes")

    def table(changes: Sequence[Mapping[str, Any]]) -> Table:
        rows = tuple((str(one["number"]), one["time"], one["what"]) for one in changes)
        return Table(("NUMBER", "TIME", "CHANGE"), rows)

    return write_listing(session, options.output, answer, table, "The configuration is as at the start.")


def _apply(session: VerbSession, options: argparse.Namespace, source: Source | None) -> int:
    assert source is not None, "apply needs a file"
    answer = session.daemon.call("config.check", text=source.text, source=source.name)
    for warning in answer["warnings"]:
        session.warn(warning["text"])
    for error in answer["errors"]:
        session.error(error["text"])
    return 1 if answer["errors"] else _change(session, "all", text=source.text)


@verb(
    "undo", "Undo the latest change of the configuration.", lambda words: None, whole="config undo", examples=("undo",)
)
def undo(session: VerbSession, options: argparse.Namespace) -> int:
    change = session.daemon.call("config.undo")
    session.write(f"undone: {change['what']}\n")
    back = [{"path": one["path"], "before": one["after"], "after": one["before"]} for one in change["values"]]
    session.write("".join(f"  {line}\n" for line in _lines(back)))
    return 0


def _lines(values: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line for each changed value, and one line for each added or removed profile."""
    whole = _came_or_went(values)
    lines: dict[str, None] = {}
    for one in values:
        profile, before, after = _profile_of(one["path"]), one["before"], one["after"]
        if profile in whole:
            lines[f"{profile}: {whole[profile]}"] = None
        elif not (before in (None, {}) and after in (None, {})):
            lines[f"{one['path']}: {_text(before)} -> {_text(after)}"] = None
    return list(lines)


def _profile_of(path: str) -> str:
    """Return `profiles[NAME]` for a path inside a profile; "" for any other path."""
    profile, below, _ = path.partition("].")
    return f"{profile}]" if below and path.startswith("profiles[") else ""


def _came_or_went(values: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return "added" or "removed" by profile."""
    by_profile: dict[str, list[Mapping[str, Any]]] = {}
    for one in values:
        by_profile.setdefault(_profile_of(one["path"]), []).append(one)
    found: dict[str, str] = {}
    for profile, changed in by_profile.items():
        # Every profile has a queueSort plugin, so this value is added or removed together with its profile.
        if profile and any(one["path"].startswith(f"{profile}.plugins.queueSort[") for one in changed):
            for side, word in (("before", "added"), ("after", "removed")):
                if all(one[side] is None for one in changed):
                    found[profile] = word
    return found


_CONFIG: Final[Mapping[str, Callable[[VerbSession, argparse.Namespace, Source | None], int]]] = {
    "show": _show,
    "check": _check,
    "convert": _convert,
    "changes": _changes,
    "apply": _apply,
}


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, Mapping | list):
        return documents.as_json(value).replace("\n", "").replace("    ", "")
    return str(value).lower() if isinstance(value, bool) else str(value)


# -- set ------------------------------------------------------------------------------------------------------------

SETS: Final = {
    "weight": "weight PLUGIN N",
    "plugin": "plugin PLUGIN on|off",
    "args": "args PLUGIN {...}",
    "percentage": "percentage N",
    "backoff": "backoff DURATION DURATION",
    "parallelism": "parallelism N",
    "flush": "flush DURATION",
    "profile": "profile NAME on|off",
}

_EXAMPLES: Final = {"weight": "weight ImageLocality 5", "backoff": "backoff 1s 30s", "flush": "flush 5m"}


def set_flags(words: VerbParser) -> None:
    words.add_argument("--profile", metavar="NAME", help="the profile; required if there are several")
    words.add_argument(
        "--at",
        action="append",
        default=[],
        metavar="POINT",
        help="plugin: only at this extension point; may be repeated",
    )


def set_(session: VerbSession, options: argparse.Namespace) -> int:
    """Run `set WHAT ...` for one of the settings in `SETS`."""
    words = list(options.what)
    what = words.pop(0)
    if what == "weight" and len(words) == 1 and "=" in words[0]:
        words = words[0].split("=", 1)
    if len(words) != len(SETS[what].split()) - 1:
        example = f", such as: set {_EXAMPLES[what]}" if what in _EXAMPLES else ""
        raise UsageError(f"set {SETS[what]}{example}", "set")
    if options.at and what != "plugin":
        raise UsageError("--at requires `set plugin PLUGIN on|off`", "set")
    if what == "weight":
        return _set_weight(session, options, *words)
    if what == "plugin":
        points = {"points": options.at} if options.at else {}
        kind = f"plugin-{_on_or_off(words[1])}"
        return _change(session, kind, profile=_profile(session, options), plugin=words[0], **points)
    if what == "args":
        return _change(session, "args", profile=_profile(session, options), plugin=words[0], args=_mapping(words[1]))
    if what == "profile":
        return _change(session, f"profile-{_on_or_off(words[1])}", profile=words[0])
    if what in ("backoff", "flush"):
        return _change(session, what, **dict(zip(("seconds", "max_seconds"), map(_seconds, words), strict=False)))
    number = _number(what, words[0])
    if what == "percentage":
        of_profile = {"profile": options.profile} if options.profile else {}
        return _change(session, what, percentage=number, **of_profile)
    return _change(session, what, **{what: number})


def _set_weight(session: VerbSession, options: argparse.Namespace, plugin: str, number: str) -> int:
    weight = whole_number(number)
    if not weight:
        raise UsageError(f'"{number}": a weight must be a whole number, at least 1')
    profile = _profile(session, options)
    answer = session.daemon.call("scheduler.set_weight", profile=profile, plugin=plugin, weight=weight)
    session.write(f"weight of {plugin} in {profile}: {answer['before']} -> {answer['after']}\n")
    return 0


def _change(session: VerbSession, what: str, **params: Any) -> int:
    change = session.daemon.call("config.change", what=what, **params)
    lines = _lines(change["values"])
    session.write("".join(f"{line}\n" for line in lines or ["nothing changed"]))
    return 0


def _profile(session: VerbSession, options: argparse.Namespace) -> str:
    if options.profile:
        return str(options.profile)
    names = [name for name, _ in profiles_of(session.daemon.call("scheduler.config"))]
    if len(names) != 1:
        raise UsageError(f"--profile NAME is required, one of {', '.join(names)}")
    return names[0]


def _on_or_off(word: str) -> str:
    if word not in ("on", "off"):
        raise UsageError(f'"{word}": expected on or off', "set")
    return word


def _seconds(word: str) -> int:
    """Return the seconds of a duration. Raises UsageError unless the value is a whole number of seconds."""
    try:
        seconds = parse_duration(word)
    except DurationError:
        raise UsageError(f'invalid duration "{word}": expected a duration such as 30s, 5m or 1h30m', "set") from None
    if seconds < 0 or seconds != int(seconds):
        raise UsageError(f'invalid duration "{word}": whole seconds from 0s up are expected', "set")
    return int(seconds)


def _number(what: str, word: str) -> int:
    number = whole_number(word)
    if number is None:
        raise UsageError(f'{what}: "{word}": expected a whole number', "set")
    return number


def _mapping(text: str) -> Mapping[str, Any]:
    found = given_value("args", text)
    if not isinstance(found, Mapping):
        raise UsageError('args: expected a mapping, such as {"hardPodAffinityWeight": 5}', "set")
    return found
