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
import unicodedata
from collections.abc import Iterable, Iterator

MASK = "***"

Span = tuple[int, int]

# Most texts contain none of these, and searching them with all the patterns below would take most of the time.
_TRIGGER = re.compile(
    r"(?i)//|jdbc:|pass|pwd|\bpw\b|secret|token|key|cred|jaas|sig|sas|auth|bearer|basic|-----BEGIN|%[0-9a-f]{2}|\\[xu]"
    r"|:[^\s@/:'\"]{1,200}@|oracle:|identified|cookie|hmac|jwt|logdata|kennwort|senha|contrase|motdepasse|mot.de.passe"
    r"|pas|swor|sec|ret|rce"  # also in a name with a typo
    r"|eyJ|gh[a-z]_|github_pat_|glpat-|xox|dapi|AIza|AKIA|ASIA|sk_live_|\bsk-|\bhf_|\bnpm_|\bpypi-"
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NOT_WORD = re.compile(r"[^A-Za-z0-9]+")
_LAST_WORDS = frozenset(
    "token pass pw pwd password passwd passphrase passcode secret sig signature jaas authorization "
    "adminpass dbpass dbpw ftppass mailpass rootpass smtppass sshpass userpass cookie hmac jwt logdata senha".split()
)
_WORDS = frozenset(
    "password passwords passwd passphrase passcode pwd secret secrets jaas credential credentials".split()
)
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def _misspell(word: str) -> Iterator[str]:
    """Yield every word that is one letter away: missing, doubled, wrong or swapped with the next."""
    for i in range(len(word) + 1):
        head, tail = word[:i], word[i:]
        yield head + tail[1:]
        yield head + tail[1:2] + tail[:1] + tail[2:]
        for letter in _LETTERS:
            yield head + letter + tail
            yield head + letter + tail[1:]


# An option with a typo is unknown, and the message about it shows its line.
_MISSPELLED = frozenset(_misspell("password")) | frozenset(_misspell("secret"))
_INSIDE = (
    "password", "passwd", "passphrase", "passcode", "secretkey", "secretaccesskey", "privatekey", "accesskey", "accountkey",
    "apikey", "sharedkey", "encryptionkey", "signingkey", "keystorekey", "sastoken", "accesstoken", "authtoken", "oauthpvtkey",
    "jaasconfig", "authuserinfo", "azuresas", "kennwort", "contrasena", "motdepasse",
)  # fmt: skip
_ENDS = (
    "secret",
    "password",
    "pwd",
    "masterkey",
    "hmackey",
    "redisauth",
    "apimsubscriptionkey",
    "providerclientkey",
    "functionskey",
)
# A name with one of these endings is not a secret but refers to one: its file, the class that fetches it.
_HARMLESS_ENDS = frozenset(
    "file path location provider providers class ref type mode url uri endpoint alias timeout lifetime expiry algorithm "
    "header name format length policy enabled required column columns mechanism passwordless chain level count source "
    "streams".split()
)
_REFERENCE_NAMES = frozenset({"credential_ref", "auth"})
_REFERENCE = re.compile(r"(?:env|file):\S")
_PLACEHOLDER = re.compile(
    r"(?i)\*+|\.{3}|…|<[^<>]*>|\$\{(?:(?:env|system):)?[\w.]*\}|\{\{.*\}\}|%\w|\?|true|false|null|none|~|(?:env|file):.*"
)

# Every repetition is bounded, so that a hostile text takes linear time.
_QUOTED = r"""(?:'(?:[^']|''){0,4000}'|"(?:[^"\\]|\\.){0,4000}")"""
_ESCAPED = r"""(?P<q>\\+["']|''|"")(?![\s,;)\]}]|$)(?P<inner>[^\n]{0,1000}?)(?P=q)"""
# In an address, a quote that ends a quoted text is no part of the password, and neither is the blank of a sentence.
_CLOSING = r"['\"](?=[\s,;:=)\]}]|$)"
_LETTER = rf"(?:[^@\s'\"]|(?!{_CLOSING})['\"])"
_WORD = rf"(?:(?![/?#]){_LETTER}){{1,100}}"
_BLANKS = rf"{_WORD}@?(?:[ ]{_WORD}){{1,4}}"


def _compile_address(scheme: str, port: str) -> re.Pattern[str]:
    """Return the pattern of ``scheme://user:SECRET@host``, where `port` is what follows the colon after a host."""
    return re.compile(
        rf"{scheme}//[^\s/@:?#'\"\[\]]{{0,200}}:(?!{port})"
        rf"(?P<v>{_LETTER}{{1,500}}(?:@[^@\s/?#'\"]{{0,200}})*|@[^@\s/'\"]{{1,200}}|{_BLANKS})@(?=[^\s@])"
    )


_USERINFO = _compile_address("", r"\d{1,5}(?:[/?#,\s'\"]|$)")
# The path of a web address may contain an @, that of a database does not: `ann:123/SECRET@db` is a password.
_DATABASE_USERINFO = _compile_address(
    r"(?i:postgres|postgresql|redshift|cockroachdb|mysql|mariadb|oracle|mssql|sqlserver|db2|snowflake|trino|clickhouse|mongodb"
    r"|redis|rediss|amqp|amqps)(?:\+\w{1,30})?:",
    rf"\d{{1,5}}(?:[/,][^\s?#@'\"<]{{0,500}})?(?:[?#\s<]|{_CLOSING}|$)",
)
# ann:SECRET@db:5432/gl and postgresql:ann:SECRET@db/gl: an address without `//`.
_NO_SCHEME = re.compile(
    r"(?<![\w/.@:+-])(?:[\w+]{1,30}:/?)?(?!mailto:)[\w.-]{1,100}:(?P<v>[^\s@/:'\"]{1,200})@[\w.-]{1,200}(?::\d{1,5}\b|/\w)"
)
# postgresql://ann:SECRET/gl: without a host, the password is where the port is expected.
_AS_PORT = re.compile(
    r"//[^\s/@:?#'\"\[\]<>{}$]{1,200}:(?!(?i:port)\b)(?=\d{0,200}[^\d\s/:?#@'\"<>{}$,;])"
    r"(?P<v>[^\s/:?#@'\"<>{}$,;]{2,200})(?=[/:?#\s'\"]|$)(?![^\s]{0,1000}@)"
)
_ORACLE_USER = r"(?i)\boracle:\w{1,30}:(?:(?:[^/\s@'\"]{1,200}|\\?\"[^\"\n]{1,200}\")[ ]?/|/(?!/))"
_ORACLE = re.compile(rf"{_ORACLE_USER}(?P<v>\\?\"[^\"\n]{{0,500}}\"|(?:{_LETTER}|(?<=[^/])@){{1,500}}|{_BLANKS})@")
_ORACLE_NO_HOST = re.compile(rf"{_ORACLE_USER}(?P<v>[^\s@'\"/]{{1,500}})(?=[\s'\"]|$)")
# A token in place of the user, and addresses that are secrets themselves.
_TOKEN_USER = re.compile(r"\bhttps?://(?P<v>(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{16,300})@")
_WEBHOOK = re.compile(r"\bhooks\.slack\.com/services/(?P<v>[^\s'\"]{8,200})")
_IN_PARENTHESES = re.compile(r"\((?P<k>[\w.-]{1,200})=(?P<v>[^()\s]{1,500})\)")
_KEY = (
    r"(?P<k>(?i:(?:api|access|account|encryption|private|secret|shared|signing)[ ]key|client[ ]secret|access[ ]token)"
    r"|[\w.%-]{1,200})"
)
_ASSIGNED = re.compile(
    rf"(?<![\w.%-]){_KEY}(?P<sep>[ \t\xa0]*=[ \t\xa0]*)(?:[A-Za-z]{{1,2}}(?=['\"]))?"
    rf"(?:{_ESCAPED}|(?P<quoted>{_QUOTED})|\{{(?P<braced>(?:[^{{}}\n]|\}}\}}){{1,500}})\}}"
    rf"|(?P<bare>[^\s&;\"'`]{{1,1000}}(?:(?:[ ][^\s&;\"'`=]{{1,100}}){{1,4}}(?=[;&]|{_CLOSING}))?))"
)
_QUOTED_KEY = re.compile(
    r"(?P<kq>\\?[\"'`])(?P<k>[^\"'`\n\\]{1,200})(?P=kq)(?P<sep>[ \t]*(?:=>|=|:)\s*|[ \t]+(?=['\"]))"
    rf"(?:[A-Za-z]{{1,2}}(?=['\"])|(?:\w{{0,30}}\(|\[)[ \t]*(?=['\"]))?(?:{_ESCAPED}|(?P<quoted>{_QUOTED})|(?P<bare>[^\s,}}\]\"']{{1,1000}})(?=[ \t]*(?:[,}}\]]|$)))",
    re.MULTILINE,
)
# 'password' = CONCAT('a', 'SECRET')
_CALLED = re.compile(
    rf"(?P<kq>[\"'`])(?P<k>[^\"'`\n\\]{{1,200}})(?P=kq)[ \t]*=[ \t]*(?P<v>[A-Za-z_]\w{{0,30}}[ \t]?\((?:[^()\"'\n]|{_QUOTED}){{1,100}}\))"
)
# .option("password", "SECRET")
_SET = re.compile(
    rf"\.(?:option|set|config|put|setConf|setProperty)\([ \t]*(?P<kq>[\"'])(?P<k>[^\"'\n]{{1,200}})(?P=kq)[ \t]*,\s*(?P<v>{_QUOTED})"
)
_XML = re.compile(
    r"<(?P<tag>[\w.-]{1,100})>(?P<v>[^<>]{1,1000})</(?P=tag)>(?:\s{0,100}<value>(?P<value>[^<>]{1,4000})</value>)?"
)
# ALTER ROLE ann PASSWORD 'SECRET'
_STATEMENT = re.compile(
    rf"(?i)\b(?:create|alter|grant)[ ][^\n;'\"]{{1,200}}?\b(?:identified[ ]+by|password)[ ]+(?P<v>{_QUOTED})"
)
# A setting inside a line of text; a value that is only a word may be the next part of the sentence.
_IN_TEXT = re.compile(
    rf"(?<![\w.%-]){_KEY}[ \t\xa0]?:[ \t\xa0]+[\"']?(?P<v>(?=[^\s]*\d)(?=[^\s]*[A-Za-z])[^\s,;'\"(){{}}\[\]]{{6,1000}})"
)
# {name: password, value: SECRET}
_NAMED = re.compile(
    r"\b(?P<n>name|key)[\"']?[ \t]*[:=][ \t]*[\"']?(?P<k>[\w.%-]{1,200})[\"']?[ \t]*(?:,\s*|\r?\n[ \t]*)[\"']?value[\"']?[ \t]*[:=][ \t]*"
    rf"(?P<v>{_QUOTED}|[^\s,}}\]\"']{{1,1000}})"
)
# --password SECRET, and `spark.x.password SECRET` as in spark-defaults.conf
_SPACED = re.compile(
    r"(?<![\w.%-])(?P<k>--?[A-Za-z][\w.-]{1,100}|(?:spark|fs|hadoop|hive|kafka|javax|sasl|ssl)\.[\w.-]{1,200})[ \t]+"
    rf"(?P<v>{_QUOTED}|[^\s=:\"'-][^\s\"']{{0,1000}})"
)
_LINE_END = re.compile(r"[ \t\r]*(?:\n|\Z)")
_LOOKS_RANDOM = re.compile(r"[^\s]*(?:\d|[a-z][A-Z]|[^\w\s.,;:!?)])")
_LINE = re.compile(
    rf"^(?P<indent>[ \t]*(?:-[ \t]+)*)(?P<kq>[\"']?){_KEY}(?P=kq)[ \t\xa0]*(?P<sep>:(?=\s|$)|:(?=[^\s:/,;)\]}}][^\s]*[ \t\r]*$)|=)"
    r"[ \t\xa0]*(?:[!&][^\s]*[ \t]+)*(?P<v>[^\n]*)$",
    re.MULTILINE,
)
_FLOW = re.compile(
    r"(?<=[{,\s])(?P<k>[\w.%-]{1,200}):[ \t]+(?P<v>" + _QUOTED + r"|[^,{}\n\"']{1,1000}|['\"][^\n]{1,1000})"
)
_FIRST_QUOTED = re.compile(_QUOTED)
# A line of a condition that compares two columns: `o.token = s.token AND ..`
_COMPARED = re.compile(r"\w+\.\w+=[A-Za-z_]\w*\.\w+(?:\s*$|\s+[A-Za-z])")
_LISTED = re.compile(r"(?:[;&?]|\w=[^\s=]{1,150})[ \t]{0,9}\Z")
_BLOCK = re.compile(r"[|>][+-]?\d?[+-]?[ \t]*(?:#.*)?")
_HEADER = re.compile(
    r"(?i)\b(?:proxy-)?authorization\b[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:bearer|basic|token|digest|apikey|negotiate)\s+"
    r"(?P<v>[^\s\"',]{1,4000})"
)
_SCHEMED = re.compile(
    r"\b(?:[Bb]earer|BEARER|[Bb]asic|BASIC)[ \t]+(?P<v>(?=[^\s]*[0-9=]|[^\s]*[a-z][A-Z])[\w.~+/=-]{8,4000})"
)
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY[A-Z ]{0,10}-----(?P<v>(?:[^-]|-(?!----BEGIN)){1,20000}?)(?:-----END [A-Z ]{0,30}PRIVATE KEY[A-Z ]{0,10}-----|\Z)",
    re.DOTALL,
)
_TOKENS = re.compile(
    r"(?P<v>\beyJ[\w-]{6,2000}\.[\w-]{2,4000}\.[\w-]{0,2000}|\bgh[pousr]_\w{20,100}|\bgithub_pat_\w{20,120}|\bxox[abprs]-[\w-]{10,100}"
    r"|\bdapi[0-9a-f]{32}\b|\bAIza[\w-]{35}\b|\bsk_live_\w{16,100}|\bglpat-[\w-]{16,100}|\bpypi-[\w-]{16,500}"
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b(?::[\w/+=]{8,100})?|\b(?:hf|npm)_(?=[a-zA-Z]*\d)[a-zA-Z0-9]{30,100}\b"
    r"|\bsk-(?=[\w-]{0,100}\d)(?=[\w-]{0,100}[A-Z])[\w-]{16,200})"
)
_ESCAPE = re.compile(r"(?:%|\\x)([0-9A-Fa-f]{2})|\\u([0-9A-Fa-f]{4})")
_AFTER_VALUE = ",.:)]}"
_POSITIONS = (
    _USERINFO, _DATABASE_USERINFO, _NO_SCHEME, _AS_PORT, _ORACLE, _ORACLE_NO_HOST, _TOKEN_USER, _WEBHOOK, _STATEMENT, _HEADER, _SCHEMED,
    _PRIVATE_KEY, _TOKENS,
)  # fmt: skip
_ROUNDS = 3  # a name that is encoded three times over


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
    # An address inside an address is percent-encoded, and JSON and YAML have escapes: the decoded text is searched too.
    decoded, offsets = text, list(range(len(text) + 1))
    for _ in range(_ROUNDS):
        if _ESCAPE.search(decoded) is None:
            break
        decoded, offsets = _decode(decoded, offsets)
        spans += [(offsets[start], offsets[end]) for start, end in _find_spans(decoded)]
    return merge_spans(span for span in spans if span[0] < span[1])


def is_reference_name(name: str) -> bool:
    """Whether a name says where a secret is: ``file`` in ``password: {file: /run/secrets/db}``."""
    return name.lower() in _HARMLESS_ENDS


def is_secret_name(name: str) -> bool:
    """Whether the value of an option of that name is a secret.

    >>> [is_secret_name(n) for n in ("sslpassword", "fs.s3a.secret.key", "pass%77ord", "credential_ref", "key")]
    [True, True, True, False, False]
    """
    for _ in range(_ROUNDS):
        name = _ESCAPE.sub(_unescape, name)
    if not name.isascii():
        name = "".join(c for c in unicodedata.normalize("NFKD", name) if not unicodedata.combining(c))
    words = [word.lower() for word in _NOT_WORD.split(_CAMEL.sub(" ", name)) if word]
    if not words or words[-1] in _HARMLESS_ENDS:
        return False
    joined = "".join(words)
    return (
        words[-1] in _LAST_WORDS
        or not _WORDS.isdisjoint(words)
        or not _MISSPELLED.isdisjoint(words)
        or joined.endswith(_ENDS)
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


def is_open_reference(name: str, value: str) -> bool:
    """Whether an option for ``env:NAME`` or ``file:path`` has another value, which may be the secret itself."""
    reference = value.strip().strip("'\"")
    return name in _REFERENCE_NAMES and bool(reference) and _REFERENCE.match(reference) is None


def _find_spans(text: str) -> Iterator[Span]:
    for pattern in _POSITIONS:
        yield from (m.span("v") for m in pattern.finditer(text) if not is_placeholder(m["v"]))
    for pattern in (_IN_PARENTHESES, _CALLED, _SET, _IN_TEXT):
        for m in pattern.finditer(text):
            if is_secret_name(m["k"]) and m["k"] != "token":
                yield from _unquoted(m["v"], m.start("v"))
    for m in _XML.finditer(text):
        if is_secret_name(m["tag"]):
            yield from _unquoted(m["v"], m.start("v"))
        elif m["value"] is not None and m["tag"] == "name" and is_secret_name(m["v"]):
            yield from _unquoted(m["value"], m.start("value"))
    for m in _NAMED.finditer(text):
        if is_secret_name(m["k"]):
            yield from _unquoted(m["v"], m.start("v"))
    yield from _assigned(text)
    yield from _spaced(text)
    yield from _quoted_keys(text)
    yield from _lines(text)
    for m in _FLOW.finditer(text):
        start = text.rfind("\n", 0, m.start()) + 1
        inside = text.count("{", start, m.start()) > text.count("}", start, m.start())
        if inside and (is_secret_name(m["k"]) or is_open_reference(m["k"], m["v"])):
            yield from _unquoted(m["v"], m.start("v"))


def _assigned(text: str) -> Iterator[Span]:
    at = 0
    while (m := _ASSIGNED.search(text, at)) is not None:
        at = max(m.end("sep"), m.start() + 1)  # a value may hold the next name: user=a;password=b
        if not is_secret_name(m["k"]) or (text[m.start() - 1 : m.start()] == "(" and ")" in m[0]):
            continue
        value, start = _value(m)
        # user = ann; password = b, ?user=ann&password =b, host=db password = b
        listed = _LISTED.search(text, max(0, m.start() - 200), m.start())
        compares = _compares(m["k"], value, "=" if listed else m["sep"])
        if m["bare"] is not None and (compares or is_placeholder(value.rstrip(_AFTER_VALUE))):
            continue
        yield from _unquoted(value, start)
        at = m.end()


def _spaced(text: str) -> Iterator[Span]:
    """Yield the values after a blank: of an argument of a command, and of a line of settings."""
    at = 0
    while (m := _SPACED.search(text, at)) is not None:
        at = m.end("k")
        if not is_secret_name(m["k"]):
            continue
        before = text[max(0, m.start() - 80) : m.start()].rpartition("\n")[2]
        is_setting = not before.strip() and m["k"][0] != "-" and _LINE_END.match(text, m.end())
        # In a sentence such as `--password is deprecated` the next word is not a value.
        if is_setting or text[m.end() : m.end() + 2] == " -" or _LOOKS_RANDOM.match(m["v"]):
            yield from _unquoted(m["v"], m.start("v"))


def _quoted_keys(text: str) -> Iterator[Span]:
    at = 0
    while (m := _QUOTED_KEY.search(text, at)) is not None:
        at = m.end("sep")  # a value may be a text with keys of its own: 'headers' = '{"token": "x"}'
        if not m["sep"].strip() and "." not in m["k"]:
            continue  # two words in quotes; a missing equals sign is likely only after the name of an option
        if is_secret_name(m["k"]) or is_open_reference(m["k"], _value(m)[0]):
            yield from _unquoted(*_value(m))
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
        if not (is_secret_name(m["k"]) or is_open_reference(m["k"], value)):
            continue
        is_empty = not value.strip() or value.lstrip()[0] == "#"
        if is_empty or _BLOCK.fullmatch(value.strip()):
            yield from _below(text, m.end() + 1, len(m["indent"]), block=not is_empty)
        elif value[0] == "[" and value.rstrip()[-1] == "]":
            yield from _unquoted(value.rstrip()[1:-1], m.start("v") + 1)
        elif value[0] not in "{[*":  # flow mappings have a pattern of their own; an alias only refers to a value
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


def _decode(text: str, offsets: list[int]) -> tuple[str, list[int]]:
    """Return a text with its percent-encoded characters decoded, and the offset of each character."""
    pieces: list[str] = []
    starts: list[int] = []
    at = 0
    for m in _ESCAPE.finditer(text):
        pieces += [text[at : m.start()], _unescape(m)]
        starts += [*offsets[at : m.start()], offsets[m.start()]]
        at = m.end()
    return "".join((*pieces, text[at:])), [*starts, *offsets[at:]]


def _unescape(m: re.Match[str]) -> str:
    return chr(int(m[1] or m[2], 16))


def merge_spans(spans: Iterable[Span]) -> list[Span]:
    """Return spans in order, with those that touch or overlap as one."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((start, end))
    return merged
