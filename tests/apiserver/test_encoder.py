"""Tests that the encoder's cache has a limited number of objects."""

from kschedd.apiserver.codec.encoding import Encoder


def test_the_oldest_are_dropped_and_what_is_held_counts_the_objects_too() -> None:
    encoder = Encoder(most=10_000)
    raws = [{"kind": "ConfigMap", "data": {"text": f"{number:0100}"}} for number in range(40)]
    encoded = [encoder.whole(raw, "v1") for raw in raws]
    held, most = encoder.used()
    assert 7 * len(encoded[0]) < held <= 10_000 < most <= 10_000 + 7 * len(encoded[0])
    assert [encoder.whole(raw, "v1") for raw in raws] == encoded
    last = encoder.whole(raws[-1], "v1")
    assert encoder.whole(raws[-1], "v1") is last, "it is remembered"
