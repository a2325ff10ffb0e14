"""Random programs for `evaluate`, most of them broken: they hang, crash, exit, fork, use memory and cheat.

A program is a plugin with one or two faults at random places: at import, in the class, at construction, or in one of
the methods that the scheduler calls. Some are not valid Python. Loops and processes are limited, so that the machine
survives if a program's process is not killed.
"""

import textwrap
from collections.abc import Sequence
from random import Random
from typing import Final

_PLUGIN: Final = """\
import os, sys, threading, time
{at_import}

class Drawn:
    name = "Drawn"
{in_class}

    def __init__(self):
{at_construction}
        self.calls = 0

    def filter(self, state, pod, node):
{in_filter}
        return None

    def score(self, state, pod, node):
{in_score}
        return 100 if node.pods else 0

    def reserve(self, state, pod, node_name):
{in_reserve}
        return None
"""
_PLACES: Final = ("at_import", "in_class", "at_construction", "in_filter", "in_score", "in_reserve")
_INDENT: Final = {"at_import": 0, "in_class": 4}

ACTS: Final = (
    "pass",
    # ends
    "os._exit({n})",
    "sys.exit({n})",
    "raise SystemExit('{text}')",
    "raise KeyboardInterrupt",
    "raise GeneratorExit",
    "os.kill(os.getpid(), {signal})",
    "os.killpg(os.getpgrp(), 15)",
    "os.abort()",
    "import ctypes; ctypes.string_at(0)",
    "import faulthandler; faulthandler._sigsegv()",
    # raises
    "raise ValueError('{text}')",
    "raise type('Odd', (Exception,), {{'__str__': lambda self: 1 / 0}})()",
    "raise BaseException('{text}')",
    "raise ExceptionGroup('many', [ValueError({n})] * 50)",
    "raise MemoryError",
    "raise ValueError('x' * {many})",
    "raise ValueError('\\ud800')",
    "assert False, '{text}'",
    "import nothing_of_that_name",
    "from kschedd import nothing_of_that_name",
    "undefined_name",
    "{{}}['{text}']",
    # hangs
    "while True: pass",
    "time.sleep(300)",
    "threading.Event().wait()",
    "lock = threading.Lock(); lock.acquire(); lock.acquire()",
    "import re; re.match('(a+)+b', 'a' * 60)",
    "sum(1 for _ in iter(int, 1))",
    "import socket; a, b = socket.socketpair(); a.recv(1)",
    "import signal; signal.pause()",
    "2 ** (10 ** 9) % 7",
    # uses up memory, or the stack
    "x = []\nwhile True: x.append(bytearray(1 << 26))",
    "x = bytearray(1 << 40)",
    "x = {{}}\nwhile True: x[len(x)] = 'x' * 4096",
    "f = lambda n: f(n + 1)\nf(0)",
    "sys.setrecursionlimit(10**9)\nf = lambda n: f(n + 1)\nf(0)",
    "threading.stack_size(1 << 15)\nf = lambda n: f(n + 1)\nthreading.Thread(target=f, args=(0,)).start()",
    # processes and threads
    "os.fork() or time.sleep(300)",
    "for _ in range(20):\n    os.fork() or os._exit(0)",
    "if os.fork() == 0:\n    os.setsid()\n    time.sleep(300)",
    "import subprocess; subprocess.Popen(['sleep', '300'], start_new_session=True)",
    "import subprocess; subprocess.run(['cat'])",
    "threading.Thread(target=time.sleep, args=(300,)).start()",
    "for _ in range(40):\n    threading.Thread(target=time.sleep, args=(300,), daemon=True).start()",
    "import multiprocessing; multiprocessing.Pool(2).map(abs, range(10))",
    # input and output
    "input()",
    "sys.stdin.read()",
    "print('x' * {many})",
    "sys.stderr.write('\\udfff{text}')",
    "os.write(1, bytes(range(256)) * 9000)",
    "sys.stdout = sys.stderr = None",
    "sys.stdout.close(); os.close(1); os.close(2)",
    "os.closerange(0, 100)",
    "open('big', 'wb').write(bytes(200 << 20))",
    "for n in range(2000): open(f'file-{{n}}', 'w').close()",
    "import shutil; shutil.rmtree(os.getcwd())",
    "os.chmod(os.getcwd(), 0)",
    "os.chdir('/proc')",
    "os.symlink('/dev/zero', 'link')",
    "os.mkfifo('answer.json')",
    "os.mkdir('answer.json')",
    "os.mkdir('answer.partial')",
    # lies
    "open('answer.json', 'w').write('{{')\nos._exit(0)",
    "open('answer.json', 'w').write('[' * 100000)\nos._exit(0)",
    "open('answer.json', 'w').write('{{\"error\": 3, \"runs\": {{}}, \"artifacts\": []}}')\nos._exit(0)",
    'open(\'answer.json\', \'w\').write(\'{{"error": "", "runs": [], "artifacts": {{}}}}\')\nos._exit(0)',
    "open('answer.json', 'wb').write(b'\\xff\\xfe' * 1000)\nos._exit(0)",
    "os.symlink('/dev/full', 'answer.json')\nos._exit(0)",
    # changes the program around it
    "import json; json.dumps = lambda *a, **k: 'null'",
    "import builtins; builtins.len = lambda x: -1",
    "import builtins; builtins.open = None",
    "sys.modules.clear()",
    "sys.path.clear()",
    "sys.settrace(lambda *a: 1 / 0)",
    "import gc; gc.disable(); gc.set_threshold(0)",
    "import atexit; atexit.register(lambda: time.sleep(300))",
    "import warnings; warnings.simplefilter('error')",
    "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))",
    "import signal; [signal.signal(n, signal.SIG_IGN) for n in (1, 2, 3, 15)]",
    "import kschedd.sdk.cluster as c; c.Cluster = None",
    "import os as o; o.environ.clear()",
    "os.environ.pop('KSCHEDD_EVALUATION', None)",
)
RETURNS: Final = (
    "return None",
    "return {n}",
    "return -1",
    "return 10 ** 400",
    "return float('nan')",
    "return '{text}'",
    "return [1] * {many}",
    "return lambda: None",
    "return type('Odd', (), {{'__int__': lambda self: 1 / 0, '__repr__': lambda self: 1 / 0}})()",
    "return pod",
    "return (yield)",
    "pod.labels['x'] = 'y'",
    "pod.raw.clear()",
    "node.pods.clear()",
    "state.clear()",
    "del self.name",
    "self.__class__ = int",
    "return self.score(state, pod, node)",
)
_FILES: Final = (
    b"",
    b"\0",
    b"\xff\xfe\x00",
    b"\xef\xbb\xbf",
    b"(" * 5000,
    b"x = " + b"-" * 100_000 + b"1",
    b"import this\n",
)


def program(seed: int) -> bytes:
    """Return the text of the program for this seed."""
    drawn = Random(seed)
    if drawn.random() < 0.06:
        return drawn.choice(_FILES)
    acts: dict[str, str] = {}
    for _ in range(drawn.choice((1, 1, 2))):
        place = drawn.choice(_PLACES)
        known: Sequence[str] = RETURNS if place.startswith("in_") and place != "in_class" else ()
        act = drawn.choice(known) if known and drawn.random() < 0.3 else drawn.choice(ACTS)
        acts[place] = act.format(
            n=drawn.choice((0, 1, 3, 255, 1000)),
            text=drawn.choice(("no", "", "\u00e9\u4e2d", "%s", "\\n" * 50)),
            many=drawn.choice((10, 100_000, 3_000_000)),
            signal=drawn.choice((1, 2, 6, 9, 11, 13, 15)),
        )
    text = _PLUGIN.format(
        **{place: textwrap.indent(acts.get(place, "pass"), " " * _INDENT.get(place, 8)) for place in _PLACES}
    )
    if drawn.random() < 0.15:  # a slip of the pen
        at, more = (
            drawn.randrange(len(text)),
            drawn.choice(("", ")", "'", "  ", "\t", "def ", "\n\n", "\u2028", "return")),
        )
        text = text[:at] + more + text[at + drawn.randrange(9) :]
    return text.encode()
