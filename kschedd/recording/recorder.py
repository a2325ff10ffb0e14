"""RunRecorder: collects the notes of a run and writes them to a file, in a separate thread.

Owns: the unwritten notes, the thread, the file. Ends: with `close`, or when the file cannot be written. An error of the
file is logged and stored in `failure`, and no more notes are recorded; the run continues.

Recording a note is one append to a deque. The thread wakes when there is a note, waits for a moment for more notes, and
writes all of them as one frame. If the run is killed, the notes of the last moment are lost. If the disk is slower than
the run, up to MOST_WAITING notes accumulate. If the writer is behind, `behind` is true, and callers must wait before
they add notes, so that no note is lost.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from time import monotonic
from typing import IO, Annotated, Any, Final

import attrs
import msgpack

from kschedd.framework.handle import Handle
from kschedd.lazy_log import LazyLogger
from kschedd.recording.format import FrameWriter, RecordingError, RecordingHeader
from kschedd.recording.notes import Note, NoteKind
from kschedd.store.objects.log import ADDED, DELETED, MODIFIED, EventType, WatchEvent

log = LazyLogger("kschedd.recording")

MOST_WAITING: Final = 200_000  # notes
_FRAME_NOTES: Final = 5_000  # number of notes per frame: about 500 KB before compression
_MOMENT_S: Final = 0.1  # seconds for which the thread waits for more notes
_LAST_S: Final = 30.0  # maximum time in seconds for which the end of a run waits for the disk
EVENT_CODES: Final[dict[EventType, int]] = {ADDED: 0, MODIFIED: 1, DELETED: 2}
EVENT_TYPES: Final[dict[int, EventType]] = {code: name for name, code in EVENT_CODES.items()}

_this_thread = threading.local()


@attrs.frozen
class RecordingState:
    """The state of a recording, for display."""

    file: str
    bytes: int
    notes: int
    since_s: float
    failure: Annotated[str, "the error that ended it, empty while it continues"]


class RunRecorder:
    """Collects the notes of a run and writes them to a file. `open_file` opens a new file for writing."""

    def __init__(self, path: Path, open_file: Callable[[Path], IO[bytes]] = lambda path: path.open("xb")) -> None:
        self.path = path
        self.failure = ""
        self.began_s = 0.0
        self._notes: deque[Note] = deque()
        self._written = 0
        self._writer: FrameWriter | None = None
        self._awake = threading.Event()
        self._ending = threading.Event()
        self._pack = msgpack.Packer(autoreset=True).pack
        self._thread: threading.Thread | None = None
        self.note: Callable[[Note], None] = self._notes.append
        self._open = open_file

    def begin(self, header: RecordingHeader, first: Iterable[Note] = ()) -> None:
        """Write the header, then these notes, then all other notes, including those already waiting.

        Raises RecordingError.
        """
        self.began_s = header.start_s
        try:
            self._file = self._open(self.path)
            self._writer = FrameWriter(self._file)
            self._writer.begin(header)
            for note in first:
                self._writer.add_notes([self._packed(note)])
                self._written += 1
        except FileExistsError:
            raise RecordingError(str(self.path), "already exists; a recording requires a new file") from None
        except OSError as fault:
            raise RecordingError(str(self.path), f"cannot be written: {fault.strerror}") from fault
        self._thread = threading.Thread(target=self._run, args=(self._writer,), name="recording", daemon=True)
        self._thread.start()

    # -- taking notes ---------------------------------------------------------------------------------------------

    @property
    def behind(self) -> bool:
        return len(self._notes) > MOST_WAITING

    def wake(self) -> None:
        """Wake the thread if there are notes to write."""
        if self._notes and not self._awake.is_set():
            self._awake.set()

    def state(self) -> RecordingState:
        written = 0 if self._writer is None else self._writer.bytes
        return RecordingState(str(self.path), written, self._written, self.began_s, self.failure)

    def own(self, first: int, last: int) -> None:
        """Record that these writes were made by the cluster's own controllers or by the scheduler."""
        self.note((NoteKind.OWN, first, last))

    def watch_handle(self, handle: Handle) -> Callable[[], None]:
        """Record the calls of out-of-tree plugins that are not results: allow, reject and activate.

        Return a function that ends this.
        """
        allow, reject, activate = handle.allow, handle.reject, handle.activate

        def noted_allow(uid: str, plugin: str) -> bool:
            if stream() is None:
                self.note((NoteKind.ALLOW, uid, plugin))
            return allow(uid, plugin)

        def noted_reject(uid: str, plugin: str, reason: str) -> bool:
            if stream() is None:
                self.note((NoteKind.REJECT, uid, plugin, reason))
            return reject(uid, plugin, reason)

        def noted_activate(pods: Any) -> None:
            if stream() is None:
                self.note((NoteKind.ACTIVATE, [pod.uid for pod in pods]))
            activate(pods)

        def end() -> None:
            handle.allow, handle.reject, handle.activate = allow, reject, activate

        handle.allow, handle.reject, handle.activate = noted_allow, noted_reject, noted_activate
        return end

    def end(self) -> None:
        """Record no more notes; notes that were already recorded are still written."""
        self.note = _forget

    def close(self) -> None:
        """Write the remaining notes, and wait for the disk for at most 30 s."""
        self._ending.set()
        self._awake.set()
        if self._thread is not None:
            self._thread.join(_LAST_S)
            if self._thread.is_alive():
                self._fail("the disk does not respond")

    # -- the thread -----------------------------------------------------------------------------------------------

    def _run(self, writer: FrameWriter) -> None:
        try:
            while not self._ending.is_set():
                self._awake.wait()
                self._ending.wait(_MOMENT_S)
                self._awake.clear()
                self._drain(writer)
            self._drain(writer)
            writer.end()
            self._file.close()
        except OSError as fault:
            self._fail(fault.strerror or str(fault))

    def _drain(self, writer: FrameWriter) -> None:
        until = monotonic() + _LAST_S
        while self._notes and (not self._ending.is_set() or monotonic() < until):
            count = min(len(self._notes), _FRAME_NOTES)
            taken = [self._notes.popleft() for _ in range(count)]
            writer.add_notes(map(self._packed, taken))
            self._written += count

    def _packed(self, note: Note) -> bytes:
        if note[0] == NoteKind.OBSERVE:
            note = (note[0], note[1], [self._event(event) for event in note[2]])
        packed: bytes = self._pack(note)
        return packed

    def _event(self, event: WatchEvent) -> tuple[int, str, bytes, int]:
        return EVENT_CODES[event.type], event.new.kind, self._pack_raw(event.new.raw), event.version

    _pack_raw = staticmethod(msgpack.Packer(autoreset=True).pack)

    def _fail(self, why: str) -> None:
        self.failure = why
        self.note = _forget
        self._notes.clear()
        log.error("recording_ended", file=str(self.path), why=why, notes=self._written)


def _forget(note: Note) -> None:
    """Ignore the note, because the recording has ended."""


# -- the caller of a step -----------------------------------------------------------------------------------------


def stream() -> int | None:
    """Return the machine whose call this thread runs: DRIVER or QUEUE; None otherwise, as in a plugin's own code."""
    found: int | None = getattr(_this_thread, "stream", None)
    return found


def enter(machine: int | None) -> int | None:
    """Mark this thread as running a call of that state machine; return the argument for `leave`."""
    before: int | None = getattr(_this_thread, "stream", None)
    _this_thread.stream = machine
    return before


def leave(before: int | None) -> None:
    _this_thread.stream = before
