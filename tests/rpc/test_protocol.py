import struct
import tracemalloc
from typing import Any

import msgpack
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kschedd.rpc.encoding import encode_error, encode_notification, encode_request, encode_response
from kschedd.rpc.message_checks import FROM_CLIENTS, FROM_DAEMON, MOST_CONTAINERS, Limits
from kschedd.rpc.protocol import (
    SLICE,
    Connection,
    Event,
    Frame,
    Notification,
    ProtocolFault,
    RpcRequest,
    RpcResponse,
    msgids,
    unpack_in_slices,
)

SMALL = Limits(message=1000, text=100, binary=200, array=50, map=40, depth=5, stated=1000)

# [0, 7, "get", ["Pod"]] and so on, as the specifications of MessagePack and MessagePack-RPC say.
REQUEST = b"\x94\x00\x07\xa3get\x91\xa3Pod"
NOTIFICATION = b"\x93\x02\xa4tick\x90"
RESPONSE = b"\x94\x01\x07\xc0\xa2ok"
EVENTS = [RpcRequest(7, "get", ["Pod"]), Notification("tick", []), RpcResponse(7, None, "ok")]


def test_messages_in_one_chunk_come_out_in_order() -> None:
    assert Connection().receive(REQUEST + NOTIFICATION + RESPONSE) == EVENTS


def test_fed_byte_by_byte_the_same_comes_out() -> None:
    connection = Connection()
    script = REQUEST + NOTIFICATION + RESPONSE
    events = [event for i in range(len(script)) for event in connection.receive(script[i : i + 1])]
    assert events == EVENTS
    assert connection.receive_eof() == []


def test_what_is_encoded_is_what_the_specification_writes() -> None:
    assert encode_request(7, "get", ["Pod"]) == REQUEST
    assert encode_notification("tick", []) == NOTIFICATION
    assert encode_response(7, "ok") == RESPONSE
    assert msgpack.unpackb(encode_error(7, "not_found", "no pod", {"name": "a"})) == [
        1,
        7,
        {"code": "not_found", "message": "no pod", "data": {"name": "a"}},
        None,
    ]


def test_error_data_without_a_messagepack_form_is_left_out() -> None:
    assert msgpack.unpackb(encode_error(7, "invalid", "bad \ud800", object())) == [
        1,
        7,
        {"code": "invalid", "message": "bad ?"},
        None,
    ]


def test_messages_before_a_fatal_fault_are_still_events() -> None:
    connection = Connection()
    *good, fault = connection.receive(REQUEST + b"\xc1" + NOTIFICATION)
    assert good == [RpcRequest(7, "get", ["Pod"])]
    assert isinstance(fault, ProtocolFault)
    assert connection.closed


def test_after_a_fatal_fault_nothing_more_is_read() -> None:
    connection = Connection()
    connection.receive(b"\xc1")
    assert connection.receive(REQUEST) == []
    assert connection.receive_eof() == []


def test_a_length_too_long_is_refused_before_what_it_announces_has_come() -> None:
    head = b"\x94\x00\x07\xa5apply\x92\xcf" + b"\xdb" * 8 + b"\xdb" + struct.pack(">I", 100 << 20)
    connection = Connection()
    assert [event for i in range(len(head) - 1) for event in connection.receive(head[i : i + 1])] == []
    (fault,) = connection.receive(head[-1:])
    assert isinstance(fault, ProtocolFault)
    assert fault.why.startswith("Request entity too large: limit is 3145728: a string of 104857600 bytes announced")
    assert (fault.msgid, fault.code) == (7, "too_large")


def test_a_length_too_long_far_into_a_message_is_refused_by_the_limit_of_the_whole() -> None:
    connection = Connection(SMALL)
    assert connection.receive(b"\xdc\x00\x20" + b"\xb0" + b"x" * 16 + (b"\xb0" + b"x" * 16) * 30) == []
    (fault,) = connection.receive(b"\xdb" + struct.pack(">I", 100 << 20) + b"x" * 500)
    assert isinstance(fault, ProtocolFault)
    assert fault.why == "Request entity too large: limit is 1000"


def nested(depth: int) -> bytes:
    return b"\x94\x00\x07\xa1m" + b"\x91" * depth + b"\x90"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        pytest.param(b"\xc1", "begins no MessagePack value", id="reserved-byte"),
        pytest.param(b"\xdb" + struct.pack(">I", 100 << 20), "a string of 104857600 bytes", id="100-mb-string-header"),
        pytest.param(b"\xc6" + struct.pack(">I", 100 << 20), "104857600 bytes of binary", id="100-mb-bytes-header"),
        pytest.param(
            b"\xdd" + struct.pack(">I", 100 << 20), "an array of 104857600 elements", id="100-million-entry-array"
        ),
        pytest.param(b"\xdf" + struct.pack(">I", 100 << 20), "a map of 104857600 entries", id="100-million-entry-map"),
        pytest.param(
            b"\xc9" + struct.pack(">I", 100 << 20) + b"\x05", "an extension of 104857600", id="100-mb-extension"
        ),
        pytest.param(b"\xc7\x00\x05", "an extension type (5)", id="empty-extension"),
        pytest.param(b"\xd6\xff\x00\x00\x00\x00", "exceeds max_ext_len", id="timestamp-extension"),
        pytest.param(b"\x91" * 5000, "nested far too deep", id="nesting-beyond-the-unpacker"),
        pytest.param(b"\x81\x90\x01", "list is not allowed for map key", id="map-key-that-is-an-array"),
        pytest.param(b"GET / HTTP/1.1\r\n", "the int 71 is no message", id="another-protocol"),
        pytest.param(b"\x93\x00\x07\xa3get", "an array of 3 is no message", id="request-without-params"),
        pytest.param(b"\x94\x03\x07\xa3get\x90", "is no message", id="unknown-message-type"),
        pytest.param(b"\x94\xc2\x07\xa3get\x90", "is no message", id="false-is-not-zero"),
        pytest.param(b"\x94\x00\xff\xa3get\x90", "is no message", id="negative-msgid"),
        pytest.param(b"\x94\x00\xcf" + b"\xff" * 8 + b"\xa3get\x90", "is no message", id="msgid-over-32-bits"),
        pytest.param(b"\x94\x00\xa17\xa3get\x90", "is no message", id="msgid-that-is-a-string"),
        pytest.param(b"\x80", "a map with 0 entries is no message", id="a-map"),
    ],
)
def test_bytes_that_end_a_connection(data: bytes, why: str) -> None:
    for size in (len(data), 1):
        connection = Connection()
        events = [e for i in range(0, len(data), size) for e in connection.receive(data[i : i + size])]
        assert len(events) == 1
        fault = events[0]
        assert isinstance(fault, ProtocolFault)
        assert fault.fatal
        assert why in fault.why
        assert connection.closed


@pytest.mark.parametrize(
    ("data", "msgid", "why"),
    [
        pytest.param(b"\x94\x00\x07\x05\x90", 7, "the method must be a string, not the int 5", id="method-is-a-number"),
        pytest.param(b"\x94\x00\x07\xa3get\x80", 7, "the params must be an array", id="params-are-a-map"),
        pytest.param(b"\x94\x00\x07\xa3get\xc0", 7, "not nil", id="params-are-nil"),
        pytest.param(b"\x93\x02\xa3get\xa1x", None, "not the string 'x'", id="notification-with-a-string"),
        pytest.param(nested(70), 7, "deeper than 64 levels", id="nested-too-deep"),
        pytest.param(nested(900), 7, "deeper than 64 levels", id="nested-almost-beyond-the-unpacker"),
        pytest.param(b"\x94\x00\x07\xa3get\x91\x81\xc4\x01a\x01", 7, "a map key is 1 bytes", id="map-key-of-bytes"),
        pytest.param(b"\x94\x00\x07\xa3get\x91\x81\x05\x01", 7, "int is not allowed for map key", id="number-as-key"),
        pytest.param(b"\x94\x00\x07\xa3get\x91\x81\xc0\x01", 7, "is not allowed for map key", id="nil-as-key"),
        pytest.param(b"\x94\x00\x07\xa2\xff\xfe\x90", 7, "not UTF-8", id="string-that-is-no-utf8"),
        pytest.param(b"\x94\x00\x07\xa3get\x91\xc7\x00\x05", 7, "an extension type (5)", id="extension"),
        pytest.param(
            b"\x94\x00\x07\xa3get\x92\xda\xa0\x00" + b"x" * 0xA000 + b"\x81\x05\x01", 7, "map key", id="key-in-slices"
        ),
    ],
)
def test_a_message_that_is_wrong_by_itself_leaves_the_next_one_readable(
    data: bytes, msgid: int | None, why: str
) -> None:
    connection = Connection()
    fault, *rest = connection.receive(data + REQUEST)
    assert isinstance(fault, ProtocolFault)
    assert (fault.msgid, fault.fatal) == (msgid, False)
    assert why in fault.why
    assert rest == [RpcRequest(7, "get", ["Pod"])]


def test_64_levels_of_params_are_taken() -> None:
    assert isinstance(Connection().receive(nested(63))[0], RpcRequest)


@pytest.mark.parametrize("chunk", [1, 100, 100_000])
def test_a_message_of_small_parts_is_bounded_as_a_whole(chunk: int) -> None:
    # 40 strings of 60 bytes: each within its limit, their sum above the limit of a message.
    data = encode_request(1, "apply", ["x" * 60] * 40)
    connection = Connection(SMALL)
    events = [e for i in range(0, len(data), chunk) for e in connection.receive(data[i : i + chunk])]
    assert [type(event) for event in events] == [ProtocolFault]
    assert (events[0].why, events[0].code) == ("Request entity too large: limit is 1000", "too_large")


def test_many_small_messages_together_may_exceed_the_limit_of_one() -> None:
    assert len(Connection(SMALL).receive(REQUEST * 10_000)) == 10_000


def test_megabytes_in_one_chunk_are_taken() -> None:
    pods = [{"name": f"p-{i}", "text": "x" * 1000} for i in range(2500)]
    (event,) = Connection().receive(encode_request(1, "apply", [pods]))
    assert event == RpcRequest(1, "apply", [pods])


def test_a_stream_that_ends_within_a_message_says_so() -> None:
    connection = Connection()
    connection.receive(REQUEST + REQUEST[:5])
    assert connection.receive_eof() == [ProtocolFault("the stream ended 5 bytes into a message", None, True)]


def test_a_client_takes_results_deeper_and_larger_than_a_server_takes_params() -> None:
    deep: Any = []
    for _ in range(100):
        deep = [deep]
    data = encode_response(1, deep)
    assert isinstance(Connection(FROM_DAEMON).receive(data)[0], RpcResponse)
    long = [0] * 200_000
    assert Connection(FROM_DAEMON).receive(encode_response(1, long)) == [RpcResponse(1, None, long)]
    assert isinstance(Connection(SMALL).receive(encode_response(1, long))[0], ProtocolFault)


def test_msgids_begin_at_one() -> None:
    ids = msgids()
    assert [next(ids) for _ in range(3)] == [1, 2, 3]


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=20,
)


@given(st.integers(0, 2**32 - 1), st.text(), st.lists(plain, max_size=4), st.integers(1, 50))
def test_whatever_is_encoded_is_decoded_however_it_is_cut(msgid: int, method: str, params: list[Any], cut: int) -> None:
    data = encode_request(msgid, method, params) + encode_notification(method, params) + encode_response(msgid, params)
    connection = Connection()
    events = [e for i in range(0, len(data), cut) for e in connection.receive(data[i : i + cut])]
    assert events == [RpcRequest(msgid, method, params), Notification(method, params), RpcResponse(msgid, None, params)]


garbage = st.binary(max_size=300) | st.builds(
    lambda head, tail: head + tail,
    st.sampled_from([b"\x94\x00\x01\xa1m\x91", b"\x93\x02\xa1m", b"\x91\x91\x91", b"\x81\xa1k", b"\xdc\x00\x10"]),
    st.binary(max_size=100),
)


@given(st.lists(garbage, max_size=6))
@example([b"\x81\xc4\x00\x90"])
@example([b"\xdd\xff\xff\xff\xff"])
def test_no_bytes_whatever_raise_anything(chunks: list[bytes]) -> None:
    connection = Connection(SMALL)
    events = [event for chunk in chunks for event in connection.receive(chunk)] + connection.receive_eof()
    fatal = [i for i, event in enumerate(events) if isinstance(event, ProtocolFault) and event.fatal]
    assert fatal in ([], [len(events) - 1])


def in_slices(frame: Frame) -> tuple[int, Event]:
    """Unpack the frame in slices; return the number of yields, and the event."""
    turns = 0
    work = unpack_in_slices(frame, FROM_CLIENTS)
    while True:
        try:
            next(work)
        except StopIteration as done:
            return turns, done.value
        turns += 1


def test_a_large_message_is_left_to_be_unpacked_in_slices() -> None:
    pods = [{"name": f"p-{i}", "labels": {"a": str(i)}} for i in range(20_000)]
    (frame,) = Connection().receive_frames(encode_request(1, "apply", [pods]))
    assert isinstance(frame, Frame)
    turns, event = in_slices(frame)
    assert event == RpcRequest(1, "apply", [pods])
    assert turns >= len(frame.data) // SLICE + 40_000 * 15 // 20_000  # and further slices for inspecting 40,000 maps


@pytest.mark.parametrize("brackets", [b"\x90", b"\x80"])
def test_more_arrays_and_maps_than_can_be_given_back_at_once_are_refused_and_freed_in_slices(brackets: bytes) -> None:
    count = MOST_CONTAINERS + 1
    (frame,) = Connection().receive_frames(b"\x94\x00\x07\xa1m\x91\xdd" + struct.pack(">I", count) + brackets * count)
    assert isinstance(frame, Frame)
    turns, fault = in_slices(frame)
    assert fault == ProtocolFault(f"the params hold more than {MOST_CONTAINERS} arrays and maps", 7, False)
    assert turns >= len(frame.data) // SLICE + 2 * count // 20_000


@pytest.mark.parametrize("empty", [[], {}])
def test_arrays_and_maps_without_values_are_looked_at_in_slices_too(empty: Any) -> None:
    (frame,) = Connection().receive_frames(encode_request(1, "m", [[empty] * 200_000]))
    assert isinstance(frame, Frame)
    turns, event = in_slices(frame)
    assert isinstance(event, RpcRequest)
    assert turns >= len(frame.data) // SLICE + 200_000 * 15 // 20_000


def test_arrays_that_announce_more_than_has_come_cost_nothing() -> None:
    connection = Connection()
    tracemalloc.start()
    try:
        assert connection.receive((b"\xdd" + struct.pack(">I", 3_000_000)) * 500) == []
        assert tracemalloc.get_traced_memory()[1] < 10 << 20
    finally:
        tracemalloc.stop()
