"""The results of scenarios as JUnit XML: a test suite for each file, a test case for each of its steps.

All CI systems read these elements: `testsuites` with `testsuite`, `testcase`, `failure` and `error`.
Characters that XML 1.0 does not allow are replaced. Times, in seconds, are given for files only; steps have no times.
"""

from collections.abc import Iterable
from xml.etree.ElementTree import Element, ElementTree, SubElement, indent, tostring

from kschedd.printing.reports.markup import xml_text
from kschedd.scenarios.runner import FileResult


def junit_xml(results: Iterable[FileResult]) -> bytes:
    root = Element("testsuites", name="kschedd test")
    totals = {"tests": 0, "failures": 0, "errors": 0}
    seconds = 0.0
    for result in results:
        counts = {
            "tests": len(result.steps) + bool(result.fault),
            "failures": len(result.differences),
            "errors": int(bool(result.fault)),
        }
        for name, count in counts.items():
            totals[name] += count
        seconds += result.seconds
        suite = SubElement(root, "testsuite", name=xml_text(result.file), time=f"{result.seconds:.3f}")
        suite.attrib.update({name: str(count) for name, count in counts.items()})
        for done in result.steps:
            case = _case(suite, result.file, f"{done.step.line}: {done.step.command}", done.step.line)
            if done.difference is not None:
                first = _first_changed(done.difference.what)
                found = SubElement(case, "failure", type="expectation" if done.finding else "output")
                found.set("message", xml_text(done.finding.found if done.finding else first))
                found.text = xml_text(str(done.difference))
        if result.fault:
            SubElement(_case(suite, result.file, "the file", 0), "error", type="input", message=xml_text(result.fault))
    root.attrib.update({**{name: str(count) for name, count in totals.items()}, "time": f"{seconds:.3f}"})
    indent(ElementTree(root))
    text: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _case(suite: Element, file: str, name: str, line: int) -> Element:
    return SubElement(
        suite, "testcase", classname=xml_text(file), name=xml_text(name), file=xml_text(file), line=str(line)
    )


def _first_changed(what: str) -> str:
    """Return the first changed line of a difference, which is more useful than the difference's header."""
    lines = [line.removeprefix("  ") for line in what.splitlines()]
    return next((line for line in lines if line.startswith(("-", "+"))), "")
