"""Redaction of a recording, so that it can be given to others: made-up words replace names, as in `save --redact`.

Names are replaced in objects, plugin results, records of attempts and the configuration. The replacements are the same
everywhere and preserve the order of the names, so that all decisions stay the same; a replay of the new recording
verifies this. Messages are removed from the records of attempts; a replay creates them again. The fields that redaction
of a dump drops are dropped, and so are the addresses of extenders.

The recording is read twice, because every word must be known before the first one is replaced.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import attrs
import msgpack

from kschedd.api.objects import Raw
from kschedd.api.text.documents import read_documents
from kschedd.dumps.redaction import Redaction
from kschedd.recording.format import FrameWriter, RecordingError
from kschedd.recording.notes import MESSAGE_AT, Note, NoteKind
from kschedd.recording.reading import RecordingFile, distrusting
from kschedd.recording.state import driver_renamed, objects_in, queue_renamed
from kschedd.recording.values import pack, unpack

_FRAME_NOTES: Final = 5_000
_KEPT_FIELDS: Final = frozenset(("plugin", "method", "kind", "uid", "subresource", "propagation"))
_REDACTED_ARGS: Final = ("addedAffinity", "defaultConstraints")  # arguments of plugins that contain names of labels


def redact(source: Path, target: Path) -> int:
    """Write a redacted copy of the recording and return the number of notes. Raises RecordingError."""
    with distrusting(source):
        return _redact(source, target)


def _redact(source: Path, target: Path) -> int:
    with RecordingFile.open(source) as recording:
        redaction = Redaction(_raws(recording.notes()))
    rewriter = _Rewriter(redaction)
    with RecordingFile.open(source) as recording:
        header = attrs.evolve(recording.header, config=rewriter.config(recording.header.config), redacted=True)
        try:
            with target.open("xb") as file:
                writer = FrameWriter(file)
                writer.begin(header)
                count = 0
                packed: list[bytes] = []
                for note in recording.notes():
                    packed.append(msgpack.packb(rewriter.note(note)))
                    count += 1
                    if len(packed) == _FRAME_NOTES:
                        writer.add_notes(packed)
                        packed = []
                writer.add_notes(packed)
                writer.end()
        except FileExistsError:
            raise RecordingError(str(target), "is there already; give the name of a new file") from None
        except OSError as fault:
            raise RecordingError(str(target), f"cannot be written: {fault.strerror}") from fault
    return count


def _raws(notes: Iterator[Note]) -> Iterator[Raw]:
    for note in notes:
        if note[0] == NoteKind.OBSERVE:
            packed = [packed for _, _, packed, _ in note[2]]
        elif note[0] in (NoteKind.DRIVER_STATE, NoteKind.QUEUE_STATE):
            packed = objects_in(note)
        else:
            continue
        for one in packed:
            yield msgpack.unpackb(one, strict_map_key=False)


class _Rewriter:
    def __init__(self, redaction: Redaction) -> None:
        self._redaction = redaction
        text, value = redaction.text, self._packed
        #: for each kind of note: a function for each value that redacts it; None: the value is not redacted
        self._by_kind: Mapping[int, tuple[Callable[[Any], Any] | None, ...]] = {
            NoteKind.OBSERVE: (None, self._events),
            NoteKind.SEND: (value,),
            NoteKind.BROKEN: (value,),
            NoteKind.PLAN_EXECUTED: (None, value),
            NoteKind.PLUGIN_CALLED: (None, value),
            NoteKind.TAKE: (self._records,),
            NoteKind.CHANGE_CONFIG: (self.config, None, text),
            NoteKind.RECONFIGURE: (self.config,),
            NoteKind.REJECT: (None, None, text),
            NoteKind.INTERVENED: (None, None, text),
            NoteKind.MOVE_ACTIVE: (None, lambda keys: [text(key) for key in keys]),
            NoteKind.FORCE: (text,),
            NoteKind.ANSWER: (None, None, None, value),
            NoteKind.FAULT: (None, None, None, None, text),
            NoteKind.LAYOUT: (lambda names: [text(name) for name in names],),
            NoteKind.DRIVER_STATE: (lambda packed: driver_renamed(packed, text, self._object),),
            NoteKind.QUEUE_STATE: (lambda packed: queue_renamed(packed, text, self._object, self._value),),
        }

    def note(self, note: Note) -> list[Any]:
        changes = self._by_kind.get(note[0], ())
        done = list(note)
        for place, change in enumerate(changes, 1):
            if change is not None:
                done[place] = change(note[place])
        return done

    def config(self, text: str) -> str:
        """Return the configuration, which is YAML or JSON, redacted and in JSON."""
        document = next(read_documents(text))
        if document.faults:
            raise ValueError(f"configuration: line {document.faults[0].line}: {document.faults[0].why}")
        config: dict[str, Any] = document.value
        for number, extender in enumerate(config.get("extenders") or ()):
            extender["urlPrefix"] = f"http://extender-{number}"
        for profile in config.get("profiles") or ():
            if "schedulerName" in profile:
                profile["schedulerName"] = self._redaction.text(profile["schedulerName"])
            for plugin in profile.get("pluginConfig") or ():
                args = plugin.get("args") or {}
                for field in _REDACTED_ARGS:
                    if field in args:
                        args[field] = self._redaction.value(args[field])
        return json.dumps(config)

    def _events(self, events: list[Any]) -> list[Any]:
        return [[code, kind, self._object(packed), version] for code, kind, packed, version in events]

    def _object(self, packed: bytes) -> bytes:
        raw = msgpack.unpackb(packed, strict_map_key=False)
        made: bytes = msgpack.packb(self._redaction.redacted(raw))
        return made

    def _records(self, records: list[list[Any]]) -> list[list[Any]]:
        text = self._redaction.text
        done = []
        for record in records:
            at_s, pod, attempt, node, *rest, nominated, of_binding = record
            line = [at_s, text(pod), attempt, text(node), *rest, text(nominated), of_binding]
            line[MESSAGE_AT] = ""
            done.append(line)
        return done

    def _packed(self, packed: bytes | None) -> bytes | None:
        return None if packed is None else pack(self._value(unpack(packed)))

    def _value(self, value: Any) -> Any:
        if isinstance(value, str) and type(value) is str:
            return self._redaction.text(value)
        if isinstance(value, list | tuple | frozenset):
            return type(value)(self._value(one) for one in value)
        if isinstance(value, Mapping):
            return {self._value(key): self._value(one) for key, one in value.items()}
        if attrs.has(type(value)):
            names = [field.name for field in attrs.fields(type(value)) if field.name not in _KEPT_FIELDS]
            return attrs.evolve(value, **{name: self._field(name, getattr(value, name)) for name in names})
        return value

    def _field(self, name: str, value: Any) -> Any:
        """Return the redacted field; an object, or a part of an object, is redacted by its schema."""
        return self._redaction.value(value) if name in ("raw", "patch") else self._value(value)
