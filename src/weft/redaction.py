"""redact: mask the passwords, keys and tokens in a text.  Everything that Weft prints or stores passes through it.

::

    postgresql://ann:hunter2@db/gl?sslpassword=x     postgresql://ann:***@db/gl?sslpassword=***
    jdbc:oracle:thin:ann/hunter2@//db:1521/gl        jdbc:oracle:thin:ann/***@//db:1521/gl
    'kafka.sasl.password' = 'hunter2'                'kafka.sasl.password' = '***'
    fs.s3a.secret.key: hunter2                       fs.s3a.secret.key: ***

A secret is recognised by its position: after a user in an address, or after a name that means a secret.
Text that only mentions such names ("option 'password' looks like a secret", ``o.token = s.token``) is unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

MASK = "***"

Span = tuple[int, int]

# Most texts contain none of these, and searching them with all the patterns below would take most of the time.
_TRIGGER = re.compile(
    r"(?i)//|jdbc:|pass|pwd|\bpw\b|secret|token|key|cred|jaas|sig|auth|bearer|basic|-----BEGIN|%[0-9a-f]{2}"
    r"|eyJ|gh[a-z]_|github_pat_|xox|dapi|AIza|sk_live_"
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NOT_WORD = re.compile(r"[^A-Za-z0-9]+")
_LAST_WORDS = frozenset(
    "token pass pw pwd password passwd passphrase passcode secret sig signature jaas authorization".split()
)
_WORDS = frozenset(
    "password passwords passwd passphrase passcode pwd secret secrets jaas credential credentials".split()
)
_INSIDE = (
    "password", "passwd", "passphrase", "passcode", "secretkey", "secretaccesskey", "privatekey", "accesskey", "accountkey",
    "apikey", "sharedkey", "encryptionkey", "signingkey", "keystorekey", "sastoken", "accesstoken", "authtoken", "oauthpvtkey",
    "jaasconfig",
)  # fmt: skip
# A name with one of these endings is not a secret but refers to one: its file, the class that fetches it.
_HARMLESS_ENDS = frozenset(
    "file path location provider providers class ref type mode url uri endpoint alias timeout lifetime expiry algorithm "
    "header name format length policy enabled required column columns mechanism passwordless chain level".split()
)
_REFERENCE_NAMES = frozenset({"credential_ref", "auth"})
_REFERENCE = re.compile(r"(?:env|file):\S")
_PLACEHOLDER = re.compile(
    r"(?i)\*+|\.{3}|…|<[^<>]*>|\$\{[^}]*\}|\{\{.*\}\}|%\w|\?|true|false|null|none|~|(?:env|file):.*"
)

# Every repetition is bounded, so that a hostile text takes linear time.
_QUOTED = r"""(?:'(?:[^']|''){0,4000}'|"(?:[^"\\]|\\.){0,4000}")"""
_ESCAPED = r"""(?P<q>\\+["']|''|"")(?![\s,;)\]}]|$)(?P<inner>[^\n]{0,1000}?)(?P=q)"""
# scheme://user:SECRET@host; digits between the colon and the path are a port.
_USERINFO = re.compile(
    r"//[^\s/@:?#'\"\[\]]{0,200}:(?P<v>(?!\d{1,5}(?:[/?#,\s]|$))[^@\s'\"]{1,500}(?:@[^@\s/?#'\"]{0,200})*)@(?=[^\s@])"
)
_ORACLE = re.compile(r"(?i)jdbc:oracle:\w+:[^/\s@'\"]{1,200}/(?P<v>\\?\"[^\"\n]{0,500}\"|[^\s'\"]{1,500})@")
_IN_PARENTHESES = re.compile(r"\((?P<k>[\w.-]{1,200})=(?P<v>[^()\s]{1,500})\)")
_ASSIGNED = re.compile(
    r"(?<![\w.%-])(?P<k>[\w.%-]{1,200})(?P<sep>[ \t]*=[ \t]*)"
    rf"(?:{_ESCAPED}|(?P<quoted>{_QUOTED})|\{{(?P<braced>[^{{}}\n]{{1,500}})\}}|(?P<bare>[^\s&;\"'`]{{1,1000}}))"
)
_QUOTED_KEY = re.compile(
    r"(?P<kq>\\?[\"'])(?P<k>[^\"'\n\\]{1,200})(?P=kq)[ \t]*(?:=>|=|:)\s*"
    rf"(?:{_ESCAPED}|(?P<quoted>{_QUOTED})|(?P<bare>[^\s,}}\]\"']{{1,1000}})(?=[ \t]*(?:[,}}\]]|$)))",
    re.MULTILINE,
)
_LINE = re.compile(
    r"^(?P<indent>[ \t]*(?:-[ \t]+)*)(?P<kq>[\"']?)(?P<k>[\w.%-]{1,200})(?P=kq)[ \t]*(?P<sep>:(?=[ \t\r\n]|$)|=)[ \t]*(?P<v>[^\n]*)$",
    re.MULTILINE,
)
_FLOW = re.compile(r"(?<=[{,\s])(?P<k>[\w.%-]{1,200}):[ \t]+(?P<v>" + _QUOTED + r"|[^,{}\n\"']{1,1000})")
_FIRST_QUOTED = re.compile(_QUOTED)
# A line of a condition that compares two columns: `o.token = s.token AND ..`
_COMPARED = re.compile(r"\w+\.\w+=[A-Za-z_]\w*\.\w+(?:\s*$|\s+[A-Za-z])")
_BLOCK = re.compile(r"[|>][+-]?\d?[+-]?[ \t]*(?:#.*)?")
_HEADER = re.compile(
    r"(?i)\b(?:proxy-)?authorization\b[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:bearer|basic|token|digest|apikey|negotiate)\s+"
    r"(?P<v>[^\s\"',]{1,4000})"
)
_SCHEMED = re.compile(
    r"\b(?:[Bb]earer|BEARER|[Bb]asic|BASIC)[ \t]+(?P<v>(?=[^\s]*[0-9=]|[^\s]*[a-z][A-Z])[\w.~+/=-]{8,4000})"
)
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----(?P<v>(?:[^-]|-(?!----BEGIN)){1,20000}?)(?:-----END [A-Z ]{0,30}PRIVATE KEY-----|\Z)",
    re.DOTALL,
)
_TOKENS = re.compile(
    r"(?P<v>\beyJ[\w-]{6,2000}\.[\w-]{2,4000}\.[\w-]{0,2000}|\bgh[pousr]_\w{20,100}|\bgithub_pat_\w{20,120}|\bxox[abprs]-[\w-]{10,100}"
    r"|\bdapi[0-9a-f]{32}\b|\bAIza[\w-]{35}\b|\bsk_live_\w{16,100})"
)
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_AFTER_VALUE = ",.:)]}"
_ROUNDS = 3  # a name that is percent-encoded three times over


def redact(text: str, known: Iterable[str] = ()) -> str:
    """Return a text with every secret masked as ``***``; `known` are secrets that are masked anywhere.

    >>> redact("the store postgresql://ann:hunter2@db/gl?sslpassword=x cannot be reached")
    'the store postgresql://ann:***@db/gl?sslpassword=*** cannot be reached'
    >>> redact("option 'password' looks like a secret, o.token = s.token")
    "option 'password' looks like a secret, o.token = s.token"
    """
    spans = secret_spans(text)
    if spans:
        text = "".join(_pieces(text, spans))
    # The longest first: a secret may contain another one.
    for secret in sorted({s for s in known if len(s) > 2}, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text


def _pieces(text: str, spans: list[Span]) -> Iterator[str]:
    at = 0
    for start, end in spans:
        yield text[at:start]
        yield MASK
        at = end
    yield text[at:]


def secret_spans(text: str) -> list[Span]:
    """Return the start and end of every secret in a text, in order and without overlaps."""
    if _TRIGGER.search(text) is None:
        return []
    spans = list(_find_spans(text))
    # An address inside an address is percent-encoded, so the decoded text is searched too.
    decoded, offsets = text, list(range(len(text) + 1))
    for _ in range(_ROUNDS):
        if "%" not in decoded:
            break
        decoded, offsets = _decode(decoded, offsets)
        spans += [(offsets[start], offsets[end]) for start, end in _find_spans(decoded)]
    return _merge(span for span in spans if span[0] < span[1])


def is_secret_name(name: str) -> bool:
    """Whether the value of an option of that name is a secret.

    >>> [is_secret_name(n) for n in ("sslpassword", "fs.s3a.secret.key", "pass%77ord", "credential_ref", "key")]
    [True, True, True, False, False]
    """
    for _ in range(_ROUNDS):
        name = _ESCAPE.sub(lambda m: chr(int(m[1], 16)), name)
    words = [word.lower() for word in _NOT_WORD.split(_CAMEL.sub(" ", name)) if word]
    if not words or words[-1] in _HARMLESS_ENDS:
        return False
    joined = "".join(words)
    return (
        words[-1] in _LAST_WORDS
        or not _WORDS.isdisjoint(words)
        or joined.endswith(("secret", "password", "pwd"))
        or any(part in joined for part in _INSIDE)
    )


def has_secret(name: str, value: str) -> bool:
    """Whether the value of an option contains a secret in plain text."""
    if is_secret_name(name):
        return not is_placeholder(value)
    return bool(secret_spans(value)) or bool(secret_spans(f"{name}={value}"))


def is_placeholder(value: str) -> bool:
    """Whether a value refers to a secret instead of containing it: empty, ``***``, ``${NAME}``, ``env:NAME``."""
    return not value.strip() or _PLACEHOLDER.fullmatch(value.strip()) is not None


def _find_spans(text: str) -> Iterator[Span]:
    for pattern in (_USERINFO, _ORACLE, _HEADER, _SCHEMED, _PRIVATE_KEY, _TOKENS):
        yield from (m.span("v") for m in pattern.finditer(text) if not is_placeholder(m["v"]))
    for m in _IN_PARENTHESES.finditer(text):
        if is_secret_name(m["k"]) and not is_placeholder(m["v"]):
            yield m.span("v")
    yield from _assigned(text)
    for m in _QUOTED_KEY.finditer(text):
        if is_secret_name(m["k"]) or _is_open_reference(m["k"], _value(m)[0]):
            yield from _unquoted(*_value(m))
    yield from _lines(text)
    for m in _FLOW.finditer(text):
        start = text.rfind("\n", 0, m.start()) + 1
        inside = text.count("{", start, m.start()) > text.count("}", start, m.start())
        if inside and (is_secret_name(m["k"]) or _is_open_reference(m["k"], m["v"])):
            yield from _unquoted(m["v"], m.start("v"))


def _assigned(text: str) -> Iterator[Span]:
    at = 0
    while (m := _ASSIGNED.search(text, at)) is not None:
        at = max(m.end("sep"), m.start() + 1)  # a value may hold the next name: user=a;password=b
        if not is_secret_name(m["k"]) or (text[m.start() - 1 : m.start()] == "(" and ")" in m[0]):
            continue
        value, start = _value(m)
        if m["bare"] is not None and (_compares(m["k"], value, m["sep"]) or is_placeholder(value.rstrip(_AFTER_VALUE))):
            continue
        yield from _unquoted(value, start)
        at = m.end()


def _compares(name: str, value: str, sign: str) -> bool:
    """Whether ``name = value`` without quotes compares two columns, as ``o.token = s.token`` does."""
    same = value.rpartition(".")[2].lower() == name.rpartition(".")[2].lower()
    short = name.count(".") <= 1 and not _NOT_WORD.search(name.replace(".", ""))
    return same or (short and sign != "=")


def _value(m: re.Match[str]) -> tuple[str, int]:
    """Return the value of a match and its start."""
    groups = m.groupdict()
    for name in ("inner", "quoted", "braced", "bare"):
        if groups.get(name) is not None:
            return m[name], m.start(name)
    return "", m.end()


def _unquoted(value: str, start: int) -> Iterator[Span]:
    """Yield the span of a value without its quotes, unless it is a placeholder."""
    value, left = value.rstrip(), len(value) - len(value.lstrip())
    inner, start = value.lstrip(), start + left
    if len(inner) > 1 and inner[0] in "'\"" and inner[-1] == inner[0]:
        inner, start = inner[1:-1], start + 1
    if not is_placeholder(inner):
        yield start, start + len(inner)


def _lines(text: str) -> Iterator[Span]:
    """Yield the values of lines like ``password: x`` and ``password = x``, with the block below them."""
    for m in _LINE.finditer(text):
        value = m["v"].rstrip("\r")
        if m["sep"] == "=" and _COMPARED.match(f"{m['k']}={value}"):
            continue
        if not (is_secret_name(m["k"]) or _is_open_reference(m["k"], value)):
            continue
        if not value.strip() or _BLOCK.fullmatch(value.strip()):
            yield from _below(text, m.end() + 1, len(m["indent"]), block=bool(value.strip()))
        elif value.lstrip()[0] not in "{[&*!":  # flow mappings have a pattern of their own; the rest are references
            quoted = _FIRST_QUOTED.match(value)
            yield from _unquoted(quoted[0] if quoted else value.split(" #")[0], m.start("v"))


def _below(text: str, at: int, indent: int, *, block: bool) -> Iterator[Span]:
    """Yield the lines with a deeper indent: all of a block, one for a value below its name."""
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        line = text[at:end]
        deep = len(line) - len(line.lstrip(" \t"))
        if line.strip():
            if deep <= indent or (not block and re.match(r"\s*(?:- |[\w.\"'-]+:(?:\s|$))", line)):
                return
            yield from _unquoted(line.rstrip("\r"), at)
            if not block:
                return
        at = end + 1


def _is_open_reference(name: str, value: str) -> bool:
    """Whether an option for ``env:NAME`` or ``file:path`` has another value, which may be the secret itself."""
    reference = value.strip().strip("'\"")
    return name in _REFERENCE_NAMES and bool(reference) and _REFERENCE.match(reference) is None


def _decode(text: str, offsets: list[int]) -> tuple[str, list[int]]:
    """Return a text with its percent-encoded characters decoded, and the offset of each character."""
    pieces: list[str] = []
    starts: list[int] = []
    at = 0
    for m in _ESCAPE.finditer(text):
        pieces += [text[at : m.start()], chr(int(m[1], 16))]
        starts += [*offsets[at : m.start()], offsets[m.start()]]
        at = m.end()
    return "".join((*pieces, text[at:])), [*starts, *offsets[at:]]


def _merge(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((start, end))
    return merged
