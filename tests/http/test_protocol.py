"""Tests of HTTP/1.1 messages: the parsed requests do not depend on how the bytes are split, and all sizes are limited.

KSCHEDD_FUZZ sets the number of random messages (default: 2,000).
"""

import os
import random

import pytest

from kschedd.http.protocol import (
    MOST_WAITING,
    BodyPart,
    HttpFault,
    HttpRequest,
    RequestReader,
    ResponseEnd,
    ResponseHead,
    ResponseReader,
    chunk,
    encode_fields,
    encode_head,
    encode_request,
    plain_response,
)

FUZZ = int(os.environ.get("KSCHEDD_FUZZ", "2000"))

GET = b"GET /api/v1/pods?limit=5 HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n\r\n"
POST = b"POST /api/v1/pods HTTP/1.1\r\nHost: localhost\r\nContent-Length: 11\r\n\r\nhello world"
CHUNKED = b"PUT /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"


def read_all(data: bytes, cuts: list[int], **limits: int) -> tuple[list[HttpRequest], HttpFault | None]:
    """Return all requests in the data, which arrives cut at these offsets, and the fault that ended the connection."""
    reader = RequestReader(**limits)
    found: list[HttpRequest] = []
    for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
        reader.feed(data[start:end])
        taken, fault = _taken(reader)
        found += taken
        if fault is not None:
            return found, fault
    return found, None


def _taken(reader: RequestReader) -> tuple[list[HttpRequest], HttpFault | None]:
    """Return the complete requests of a reader, and the fault after them if any."""
    found: list[HttpRequest] = []
    try:
        while (request := reader.next_request()) is not None:
            found.append(request)
    except HttpFault as fault:
        return found, fault
    return found, None


def test_requests_in_a_row_come_out_in_their_order() -> None:
    found, fault = read_all(GET + POST + CHUNKED + GET, [])
    assert fault is None
    assert [(each.method, each.target, each.body) for each in found] == [
        ("GET", b"/api/v1/pods?limit=5", b""),
        ("POST", b"/api/v1/pods", b"hello world"),
        ("PUT", b"/x", b"hello world"),
        ("GET", b"/api/v1/pods?limit=5", b""),
    ]
    assert found[0].headers == {"host": "localhost", "accept": "application/json"}


@pytest.mark.parametrize("at", range(1, len(POST + CHUNKED + GET)))
def test_a_cut_anywhere_changes_nothing(at: int) -> None:
    data = POST + CHUNKED + GET
    found, fault = read_all(data, [at])
    assert fault is None
    assert [(each.method, each.body) for each in found] == [
        ("POST", b"hello world"),
        ("PUT", b"hello world"),
        ("GET", b""),
    ]


def test_byte_by_byte_is_the_same_as_at_once() -> None:
    data = POST + CHUNKED + GET
    whole, _ = read_all(data, [])
    cut, fault = read_all(data, list(range(1, len(data))))
    assert fault is None
    assert [(e.method, e.target, e.headers, e.body) for e in cut] == [
        (e.method, e.target, e.headers, e.body) for e in whole
    ]


@pytest.mark.parametrize(
    ("data", "status"),
    [
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", 400, id="tls-on-a-plain-port"),
        pytest.param(b"GET / HTTP/9.9\r\n\r\n", 400, id="a-version-nobody-knows"),
        pytest.param(b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n", 414, id="a-target-over-the-limit"),
        pytest.param(
            b"GET / HTTP/1.1\r\nHost: h\r\nA: " + b"a" * 70_000, 431, id="a-head-over-the-limit-that-does-not-end"
        ),
        pytest.param(b"GET / HTTP/1.1\r\nHost: h\r\n" + b"A: b\r\n" * 101 + b"\r\n", 431, id="too-many-header-fields"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, id="two-hosts"),
        pytest.param(b"GET / HTTP/1.1\r\nAccept: a\r\n\r\n", 400, id="no-host"),
        pytest.param(
            b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4000000\r\n\r\n", 413, id="a-body-announced-over-the-limit"
        ),
        pytest.param(
            b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
            + (b"8000\r\n" + b"a" * 0x8000 + b"\r\n") * 100,
            413,
            id="a-body-in-chunks-over-the-limit",
        ),
        pytest.param(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n", 400, id="a-length-below-nothing"),
        pytest.param(
            b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n",
            400,
            id="two-lengths",
        ),
        pytest.param(b"GET / HTTP/1.1\r\nHost: h\r\n\x00: b\r\n\r\n", 400, id="a-field-name-that-is-none"),
        pytest.param(
            b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            400,
            id="a-chunk-without-a-length",
        ),
        pytest.param(GET * (MOST_WAITING + 2), 400, id="too-many-requests-at-once"),
    ],
)
def test_what_is_refused(data: bytes, status: int) -> None:
    reader = RequestReader()
    for start in range(0, len(data), 65536):
        reader.feed(data[start : start + 65536])
    _, fault = _taken(reader)
    assert fault is not None
    assert fault.status == status


def test_what_came_whole_before_a_fault_is_still_given() -> None:
    found, fault = read_all(GET + b"nonsense\r\n\r\n", [])
    assert len(found) == 1
    assert fault is not None


def test_after_a_fault_nothing_is_read_any_more() -> None:
    reader = RequestReader()
    reader.feed(b"nonsense\r\n\r\n")
    reader.feed(GET)
    with pytest.raises(HttpFault):
        reader.next_request()


def test_a_client_that_waits_for_continue_is_noticed() -> None:
    reader = RequestReader()
    reader.feed(b"POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
    assert reader.expects_continue
    reader.feed(b"ab")
    request = reader.next_request()
    assert request is not None
    assert request.body == b"ab"


def test_another_protocol_is_noticed_and_its_bytes_are_left() -> None:
    reader = RequestReader()
    reader.feed(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n\x80\x03\x00")
    request = reader.next_request()
    assert request is not None
    assert request.upgrade


def test_random_bytes_and_random_changes_never_raise_anything_else() -> None:
    """The result is always requests and at most one fault, and the reader's buffer stays within its limits."""
    chance = random.Random(7)
    seeds = [GET, POST, CHUNKED, GET + POST, CHUNKED + CHUNKED]
    for _ in range(FUZZ):
        data = bytearray(chance.choice(seeds) * chance.randint(1, 3))
        for _ in range(chance.randint(0, 6)):
            at = chance.randrange(len(data))
            match chance.randrange(4):
                case 0:
                    data[at] = chance.randrange(256)
                case 1:
                    del data[at : at + chance.randint(1, 20)]
                case 2:
                    data[at:at] = bytes(chance.randrange(256) for _ in range(chance.randint(1, 20)))
                case _:
                    data[at:at] = chance.choice(
                        (b"\r\n", b"\r\n\r\n", b"0\r\n\r\n", b": ", b"Transfer-Encoding: chunked")
                    )
            if not data:
                data = bytearray(b"\r\n")
        cuts = sorted(chance.sample(range(len(data)), min(len(data), chance.randint(0, 8))))
        found, fault = read_all(bytes(data), cuts, most_body=64, most_head=512)
        assert all(len(each.body) <= 64 for each in found)
        assert fault is None or fault.status in (400, 413, 414, 431, 505)


def test_a_changed_stream_means_the_same_however_it_is_cut() -> None:
    chance = random.Random(11)
    for _ in range(FUZZ // 4):
        data = bytearray(chance.choice([GET, POST, CHUNKED]) * chance.randint(1, 3))
        data[chance.randrange(len(data))] = chance.randrange(256)
        cuts = sorted(chance.sample(range(len(data)), 5))
        whole, _ = read_all(bytes(data), [])
        cut, _ = read_all(bytes(data), cuts)
        assert [(e.method, e.target, e.body) for e in cut] == [(e.method, e.target, e.body) for e in whole]


# A client's side


def test_a_response_comes_as_events() -> None:
    reader = ResponseReader()
    events = reader.feed(encode_head(200, [("Content-Length", "5")]) + b"hello")
    assert [type(each) for each in events] == [ResponseHead, BodyPart, ResponseEnd]


def test_the_pieces_of_a_body_without_an_end_come_as_they_are_sent() -> None:
    reader = ResponseReader()
    head = reader.feed(encode_head(200, [("Transfer-Encoding", "chunked")]))
    assert head == [ResponseHead(200, {"transfer-encoding": "chunked"}, True)]
    assert reader.feed(chunk(b"one")) == [BodyPart(b"one")]
    assert reader.feed(chunk(b"two")) == [BodyPart(b"two")]
    assert reader.feed(b"0\r\n\r\n") == [ResponseEnd()]


def test_a_continue_before_the_response_is_passed_over() -> None:
    reader = ResponseReader()
    assert reader.feed(b"HTTP/1.1 100 Continue\r\n\r\n") == []
    events = reader.feed(encode_head(204, []))
    assert [type(each) for each in events] == [ResponseHead, ResponseEnd]


def test_a_response_that_is_none_is_a_fault() -> None:
    with pytest.raises(HttpFault):
        ResponseReader().feed(b"SSH-2.0-OpenSSH\r\n")


PLAIN = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="closed"),
        pytest.param(PLAIN[:-1], id="incomplete-body"),
        pytest.param(PLAIN[:40], id="incomplete-head"),
        pytest.param(PLAIN + b"H", id="more-than-one-response"),
        pytest.param(PLAIN.replace(b"201", b"404"), id="an-error-whose-fields-are-read"),
        pytest.param(PLAIN.replace(b"201", b"2x1"), id="an-invalid-status"),
        pytest.param(PLAIN.replace(b"HTTP/1.1", b"HTTP/1.0"), id="another-version"),
        pytest.param(PLAIN.replace(b"Content-Length: 2", b"A: b"), id="no-length"),
        pytest.param(PLAIN.replace(b"Length: 2", b"Length: 2\r\nContent-Length: 2"), id="two-lengths"),
        pytest.param(PLAIN.replace(b"Length: 2", b"Length: +2"), id="an-invalid-length"),
        pytest.param(PLAIN.replace(b"Length: 2", b"Length: 2\r\nconnection: close"), id="a-closing-connection"),
        pytest.param(PLAIN.replace(b"Length: 2", b"Length: 2\r\nTransfer-Encoding: chunked"), id="chunks"),
        pytest.param(PLAIN.replace(b"Length: 2", b"Length: 2\r\nContent-Encoding: gzip"), id="compressed"),
    ],
)
def test_only_a_whole_successful_response_without_encoding_is_plain(data: bytes) -> None:
    assert plain_response(PLAIN) == (ResponseHead(201, {}, True), b"{}")
    assert plain_response(PLAIN.replace(b"Content-Length", b"content-length")) is not None
    assert plain_response(data) is None


def test_what_a_client_writes_a_server_reads() -> None:
    sent = encode_request("POST", "/a?b=c", encode_fields([("Host", "h"), ("X", "y\r\nEvil: z")]), b"body")
    found, fault = read_all(sent, [])
    assert fault is None
    assert (found[0].method, found[0].target, found[0].body) == ("POST", b"/a?b=c", b"body")
    assert "evil" not in found[0].headers
