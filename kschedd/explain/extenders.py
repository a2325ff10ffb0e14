"""CalledExtenders: the calls of extenders during an explanation's attempt, with the extenders' answers.

Answers are stored, so that no extender is called twice. In verdicts and scores, an extender's URL is used like a
plugin's name.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from kschedd.api.pods import Pod
from kschedd.cache.table import NodeTable
from kschedd.explain.answers import Score
from kschedd.extenders.calls import ExtenderCall, ExtenderFailure
from kschedd.extenders.extender import SCALE, HTTPExtender
from kschedd.extenders.messages import FilterResult
from kschedd.framework.faults import PluginError
from kschedd.framework.status import Status, unschedulable
from kschedd.scheduling.attempt.extended import rejections
from kschedd.scheduling.debug.work import Work, drive

T = TypeVar("T")
Scored = Mapping[str, Mapping[str, Score]]
"""By extender, then by node."""

UNSAID = "the extender did not answer with this node"


class CalledExtenders:
    """The attempt must be run through `attempt`, which records the calls."""

    def __init__(self, extenders: Sequence[HTTPExtender], pod: Pod) -> None:
        self._extenders = [extender for extender in extenders if extender.is_interested(pod)]
        self._answers: dict[tuple[str, str], Any] = {}  # last answer by URL and verb

    def attempt(self, work: Work[T]) -> T:
        """Run an attempt to its end.

        If an attempt calls several extenders together, they are called concurrently, as in the daemon.
        """
        return drive(self._together(work), self._answer)

    def _together(self, work: Work[T]) -> Work[T]:
        answers: list[Any] | None = None
        try:
            while True:
                yielded = next(work) if answers is None else work.send(answers)
                if (
                    isinstance(yielded, list)
                    and len(yielded) > 1
                    and all(isinstance(one, ExtenderCall) for one in yielded)
                ):
                    with ThreadPoolExecutor(len(yielded)) as pool:
                        answers = list(pool.map(self._answer, yielded))
                    continue
                try:
                    answers = yield yielded
                except PluginError as fault:
                    work.throw(fault)
        except StopIteration as end:
            value: T = end.value
            return value

    @property
    def lose_pods(self) -> bool:
        """Return whether nodes are scored without their pods, because an extender returned Node objects."""
        return any(extender.loses_pods(answer) for extender, answer in self._filtered())

    def _answer(self, shard: Callable[[], Any]) -> Any:
        answer = shard()
        if isinstance(shard, ExtenderCall):
            self._answers[shard.extender.url_prefix, shard.action] = answer
        return answer

    def _filtered(self) -> list[tuple[HTTPExtender, FilterResult]]:
        found = [(one, self._answers.get((one.url, one.config.filter_verb))) for one in self._extenders if one.filters]
        return [(one, answer) for one, answer in found if isinstance(answer, FilterResult) and not answer.error]

    def rejections(self, table: NodeTable) -> Mapping[int, list[Status]]:
        """Return the verdict of the first extender that rejected each node, by row."""
        found: dict[int, list[Status]] = {}
        for extender, answer in self._filtered():
            for name, status in rejections(answer):
                row = table.row_of.get(name)
                if row is not None:
                    found.setdefault(row, [status.by(extender.url)])
            passed = set(answer.names or ())
            for row in table.order.tolist():
                if table.names[row] not in passed:
                    found.setdefault(row, [unschedulable(UNSAID).by(extender.url)])
        return found

    def scores(self, nodes: Sequence[str]) -> Scored:
        found = {}
        for extender in self._extenders:
            answer = (
                self._answers.get((extender.url, extender.config.prioritize_verb)) if extender.prioritizes else None
            )
            if not isinstance(answer, list):
                continue
            raw = dict.fromkeys(nodes, 0)
            for name, score in answer:
                if name in raw:
                    raw[name] += score
            found[extender.url] = {
                name: Score(score, score * SCALE, extender.weighted(score)) for name, score in raw.items()
            }
        return found

    def weights(self, scored: Scored) -> dict[str, int]:
        return {extender.url: extender.weight for extender in self._extenders if extender.url in scored}

    def failures(self) -> list[str]:
        """Return notes on the extenders that failed, and were therefore ignored or ended the attempt."""
        notes = []
        for extender in self._extenders:
            for verb in (extender.config.filter_verb, extender.config.prioritize_verb):
                answer = self._answers.get((extender.url, verb)) if verb else None
                why = answer.why if isinstance(answer, ExtenderFailure) else getattr(answer, "error", "")
                if why:
                    ends = verb == extender.config.filter_verb and not extender.ignorable
                    notes.append(f"extender {extender.url}, {verb}: {why}" + ("" if ends else "; it is left out"))
        return notes
