"""can-i: the verb that reports permissions."""

import argparse
from typing import Any

from kschedd.verbs.command_line.grammar import UsageError, VerbParser, namespace_flags, namespace_of, verb
from kschedd.verbs.command_line.session import VerbSession
from kschedd.verbs.command_line.targets import UnknownKindError, kind_of_word


def _words(words: VerbParser) -> None:
    words.add_argument("request", metavar="VERB", help="get, list, watch, create, update, patch, delete, ... or *")
    words.add_argument("what", metavar="TYPE[/NAME]|PATH", help="a resource, an object, or a path such as /healthz")
    words.add_argument("name", nargs="?", default="", metavar="NAME", help="name of the object")
    words.add_argument("--as", dest="user", metavar="USER", help="user to judge by Roles and bindings")
    words.add_argument(
        "--as-group", dest="groups", action="append", metavar="GROUP", help="group of this user (may be repeated)"
    )
    words.add_argument("--subresource", default="", metavar="NAME", help="subresource, such as log")
    words.add_argument("-q", "--quiet", action="store_true", help="print nothing; the exit status is the answer")
    namespace_flags(words, everywhere=True)


@verb(
    "can-i",
    "Report whether a user may make a request. Exit status 1: no.",
    _words,
    whole="auth can-i",
    examples=(
        "can-i create pods",
        "can-i list secrets -n shop --as bob --as-group developers",
        "can-i get /healthz --as system:serviceaccount:shop:web",
    ),
    failed=2,
)
def can_i(session: VerbSession, options: argparse.Namespace) -> int:
    if options.groups and options.user is None:
        raise UsageError("--as-group requires --as")
    answer = session.daemon.call("access.review", verb=options.request, **_asked(session, options))
    if not options.quiet:
        reason = f" - {answer['reason']}" if answer["reason"] and not answer["allowed"] else ""
        session.write(f"{'yes' if answer['allowed'] else 'no'}{reason}\n")
    return 0 if answer["allowed"] else 1


def _asked(session: VerbSession, options: argparse.Namespace) -> dict[str, Any]:
    """Return the parameters that describe the request and its user. Raises UsageError."""
    user = {"user": options.user, "groups": options.groups}
    given = {field: value for field, value in user.items() if value is not None}
    if options.what.startswith("/"):
        if options.name or options.subresource:
            raise UsageError("a path has no name and no subresource")
        return {**given, "path": options.what}
    word, _, name = options.what.partition("/")
    if name and options.name:
        raise UsageError(f'"{options.what} {options.name}" contains two names')
    group, plural, namespaced = "", word, True
    if word != "*":
        try:
            kind = kind_of_word(session, word)
            group, plural, namespaced = kind.group, kind.plural, kind.namespaced
        except UnknownKindError:
            plural, _, group = word.partition(".")
            of_group = f" in group '{group}'" if group else ""
            session.write_error(f"Warning: the server doesn't have a resource type '{plural}'{of_group}\n")
    else:
        group = "*"
    namespace = namespace_of(session, options) or ""
    if not namespaced:
        if options.namespace or session.namespace != "default":
            session.write_error(f"Warning: resource '{plural}' is not namespace scoped\n")
        namespace = ""
    return {
        **given,
        "resource": plural,
        "group": group,
        "subresource": options.subresource,
        "namespace": namespace,
        "name": name or options.name,
    }
