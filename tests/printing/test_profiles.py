"""Tests of profiles as tables, collapsed stacks, and speedscope's JSON."""

import json

from kschedd.printing.reports.profiles import collapsed, profile_tables, speedscope

PROFILE = {
    "seconds": 2.0,
    "looks": 10,
    "stacks": [
        {"thread": "MainThread", "frames": ["(idle)"], "count": 5},
        {"thread": "MainThread", "frames": ["a:Store.run", "a:serve", "a:write"], "count": 3},
        {"thread": "MainThread", "frames": ["a:Store.run", "a:serve"], "count": 2},
        {"thread": "journal", "frames": ["b:append", "a:write"], "count": 4},
    ],
}


def test_tasks_and_threads_and_functions_by_their_share() -> None:
    owners, functions = profile_tables(PROFILE)
    assert owners.rows == (
        ("50.0%", "MainThread (idle)"),
        ("50.0%", "a:Store.run"),
        ("40.0%", "journal"),
    )
    assert functions.rows == (
        ("70.0%", "70.0%", "a:write"),
        ("20.0%", "50.0%", "a:serve"),
        ("0.0%", "50.0%", "a:Store.run"),
        ("0.0%", "40.0%", "b:append"),
    )


def test_collapsed_stacks() -> None:
    assert collapsed(PROFILE).splitlines()[1] == "MainThread;a:Store.run;a:serve;a:write 3"


def test_what_speedscope_reads() -> None:
    found = json.loads(speedscope(PROFILE))
    names = [frame["name"] for frame in found["shared"]["frames"]]
    main, journal = found["profiles"]
    assert (main["name"], main["type"], main["unit"]) == ("MainThread", "sampled", "seconds")
    assert [[names[frame] for frame in stack] for stack in journal["samples"]] == [["b:append", "a:write"]]
    assert main["weights"] == [1.0, 0.6000000000000001, 0.4]
    assert main["endValue"] == sum(main["weights"])
