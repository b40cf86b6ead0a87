"""No secret is printed or stored: not in messages, source lines, documents, tracebacks, rows of the store or checkpoints."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from command_line import weft
from entity_texts import reported, workspace
from mutations import FILES, WORKSPACE
from secret_texts import ADDRESSES, ORDINARY, SECRET, SQL_OPTIONS, YAML_OPTIONS, plant
from weft.cli import main
from weft.cli.envelope import Envelope
from weft.cli.terminal import print_stderr
from weft.core.source import Source, UserText
from weft.errors import Diagnostic, EntityError, StoreError, StreamSqlError
from weft.io.datasource import read_secret
from weft.pipelines.model.build import read_entity
from weft.pipelines.model.compose import compose
from weft.pipelines.store.connections import Database, address_of, engine_of
from weft.pipelines.store.records import RunFailure
from weft.redaction import MASK, has_secret, is_secret_name, redact
from weft.streams.plan.explain import explain_job
from weft.streams.plan.identity import compare_parts, describe_parts
from weft.streams.plan.resolve import plan_text
from weft.streams.sql.job import parse_job
from weft.streams.sql.lower import read_partial, read_spec

STORE = "postgresql://ann@127.0.0.1:1/gl?connect_timeout=1&sslpassword=SECRET&password=SECRET"


def test_there_are_enough_written_addresses() -> None:
    page = (Path(__file__).parents[1] / "docs" / "reliability.md").read_text(encoding="utf-8")
    assert f"{len(set(ADDRESSES))} ways to write one are masked" in page
    assert f"{len(set(ORDINARY))} ordinary texts stay as they are" in page
    assert f"in YAML ({len(YAML_OPTIONS)} spellings) and in streaming SQL ({len(SQL_OPTIONS)} spellings)" in page
    assert all(SECRET in plant(text) for text in ADDRESSES)


@pytest.mark.parametrize("text", ADDRESSES)
def test_the_secret_of_an_address_is_masked_and_the_rest_stays(text: str) -> None:
    whole = plant(text)
    masked = redact(whole)
    assert SECRET not in masked
    assert MASK in masked
    assert redact(masked) == masked
    sentence = redact(f"cannot connect to {whole}")
    assert SECRET not in sentence or "\n" in whole or ": " in whole.split(SECRET)[0][-20:]
    assert sentence.startswith("cannot connect to ")


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert redact(text) == text
    assert redact(f"error: {text}, and so on") == f"error: {text}, and so on"


@given(st.text(max_size=80) | st.text(alphabet="abc :/=@'\"{}%&;?.\npaswordtken-[]`,!(\\x017N", max_size=120))
def test_any_text_can_be_masked_once_and_for_all(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


def test_words_without_an_assignment_are_not_touched() -> None:
    docs = Path(__file__).parents[1] / "docs"
    for page in ("runs.md", "joins.md", "operations.md", "temporal_joins.md", "scenarios.md"):
        text = (docs / page).read_text(encoding="utf-8")
        assert redact(text) == text, page


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        *(dict.fromkeys(("password", "PWD", "sslpassword", "pass%77ord", "fs.s3a.secret.key", "fs.s3a.access.key", "clientSecret",
            "client_secret", "sasl.jaas.config", "api-key", "X-Api-Key", "accessToken", "private_key", "AccountKey", "sig", "passphrase",
            "ssl.keystore.key", "Authorization", "trustStorePassword", "aws_secret_access_key"), True).items()),
        *(dict.fromkeys(("user", "key", "keys", "token.endpoint.url", "password_file", "sslkey", "secretary", "compass",
            "aws.credentials.provider", "tokens", "natural_key", "monkey", "passwordless", "ssl.truststore.location", "author"), False).items()),
    ],
)  # fmt: skip
def test_a_name_says_whether_its_value_is_a_secret(name: str, *, secret: bool) -> None:
    assert is_secret_name(name) is secret
    assert has_secret(name, "abcdef1") is secret
    assert not has_secret(name, "${FROM_ELSEWHERE}")


# Messages and source lines.


@pytest.mark.parametrize("text", ADDRESSES[::3])
def test_a_finding_has_no_secret_in_any_of_its_forms(text: str) -> None:
    whole = plant(text)
    at = Source(f"first: line\n{whole}\nlast: line\n", 12, 12 + len(whole), file="x.yml")
    found = Diagnostic("W1015", f"it says\n{whole}", help=whole, at=at)
    for form in (str(found), json.dumps(found.to_dict()), found.message, found.help):
        assert SECRET not in form
    places = [Source(at.text, offset, offset + 3, "x.yml") for offset in range(len(at.text))]
    assert all(SECRET not in place.render() for place in places)


def test_carets_stay_under_what_they_point_at() -> None:
    line = f"WITH ('kafka.sasl.password'='{SECRET}', 'max.files'='1')"
    at = line.index("'max.files'")
    assert Source(line, at, at + 11, "job.sql").render().splitlines()[-2:] == [
        " 1 | WITH ('kafka.sasl.password'='***', 'max.files'='1')",
        "   |                                    ^^^^^^^^^^^",
    ]
    inside = line.index(SECRET)
    assert Source(line, inside, inside + len(SECRET)).render().endswith(" " * 30 + "^^^")


def test_an_unknown_option_does_not_print_its_neighbour() -> None:
    text = plant(
        "CREATE STREAM a (id INT) WITH ('topic'='a', 'format'='json', 'kafka.sasl.password'='SECRET', 'max.files'='1');"
    )
    with pytest.raises(StreamSqlError) as caught:
        read_spec(text)
    assert caught.value.code == "W2005"
    assert SECRET not in str(caught.value)
    assert "'kafka.sasl.password'='***'" in str(caught.value)


def test_a_reference_that_may_be_the_secret_is_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="W1318") as caught:
        read_secret(f"ann:{SECRET}", tmp_path, "datasource 'db'")
    assert SECRET not in str(caught.value)
    found = f"datasource: {{id: db, type: jdbc, options: {{url: x}}, credential_ref: 'ann:{SECRET}'}}\n"
    assert [code for code, _ in reported("datasource", found)] == ["W1015"]


def rendered(text: str) -> str:
    """Return the source lines of every position of a text."""
    return "".join(Source(text, offset, offset + 3).render() for offset in range(len(text)))


OPTIONS = "CREATE STREAM a (id INT) WITH ('topic'='a', 'format'='json', %s, 'max.files'='1');\nSET 'x' = 'y';\n"


@pytest.mark.parametrize("option", SQL_OPTIONS)
@pytest.mark.parametrize("job", [OPTIONS, "SET %s;\n" + OPTIONS.replace("%s, ", "")])
def test_an_option_of_sql_hides_its_secret_in_every_spelling(option: str, job: str) -> None:
    text = plant(job % option)
    found = read_partial(text).findings
    assert SECRET not in "".join(map(str, found))
    assert SECRET not in json.dumps([f.to_dict() for f in found])
    assert SECRET not in rendered(parse_job(text).text)


def test_the_other_options_of_sql_are_shown() -> None:
    text = OPTIONS % "'kafka.sasl.password' = '${PASSWORD}', 'kafka.ssl.truststore.location' 'a.jks'"
    syntax = parse_job(text, env={"PASSWORD": SECRET})
    (found,) = syntax.findings
    assert found.message == "expected = after the name of an option, found a string"
    assert text.splitlines()[0] in str(found)
    assert MASK not in rendered(syntax.text)
    select = "SELECT a.token, b.password FROM a JOIN b ON a.token = b.token WHERE a.password 'x'"
    assert MASK not in rendered(parse_job(select).text)


DATASOURCE = "datasource:\n  id: db\n  type: jdbc\n  options:\n    %s\n    url: jdbc:postgresql://db/gl\n"


@pytest.mark.parametrize("option", YAML_OPTIONS)
def test_an_option_of_yaml_is_refused_and_hidden_in_every_spelling(option: str) -> None:
    root = compose(DATASOURCE % plant(option.replace("SEC\\\n      RET", f"{SECRET[:4]}\\\n      {SECRET[4:]}")))
    findings = read_entity("datasource", root).findings
    assert "W1015" in [found.code for found in findings]
    for shown in ("".join(map(str, findings)), json.dumps([f.to_dict() for f in findings]), rendered(root.text)):
        assert SECRET not in shown
        assert SECRET[4:] not in shown


@pytest.mark.parametrize("option", YAML_OPTIONS)
def test_a_later_syntax_error_shows_no_secret(option: str) -> None:
    with pytest.raises(EntityError) as caught:
        compose((DATASOURCE % plant(option)) + "  password: !wrong [\n")
    text = caught.value.diagnostics[0].at
    assert isinstance(text, Source)
    assert SECRET not in rendered(text.text)


def test_the_other_options_of_yaml_are_shown() -> None:
    text = "secrets: {file: /run/secrets/db}\na: [{name: password, type: string}, {name: id, value: 7}]\npassword: ${PASSWORD}\npass_count: 5\ncredential_ref: env:X\n"
    root = compose(text)
    assert isinstance(root.text, UserText)
    assert root.text.secrets == []
    assert MASK not in rendered(root.text)
    kept = pickle.loads(pickle.dumps(compose("password: x").text))  # noqa: S301
    assert (kept, kept.secrets) == ("password: x", [(10, 11)])


def test_a_message_does_not_repeat_a_secret_of_the_wrong_type() -> None:
    text = "rules: [{name: x, strategy: {type: catalog, endpoint: 'https://h', auth: 918273645}}]"
    findings = read_entity("resolver", compose(f"resolver: {{id: r, {text}}}")).findings
    assert findings
    assert "918273645" not in "".join(map(str, findings))


# The commands.


def silent(*words: str, root: Path) -> str:
    """Return everything that a command prints, as text, with details and as a document; none of it has the secret."""
    printed = ""
    for more in ((), ("-v",), ("--json",)):
        ran = weft(*words, *more, root=root)
        printed += ran.out + ran.err
        assert SECRET not in ran.out + ran.err, (words, more)
        assert "Traceback" not in ran.err
    return printed


IN_OPTIONS = [text for text in ADDRESSES if text.startswith(("jdbc:", "s3a:", "postgres", "https:", "host="))]


@pytest.mark.parametrize("text", IN_OPTIONS[::2])
def test_validate_refuses_a_secret_in_options_and_does_not_print_it(tmp_path: Path, text: str) -> None:
    quoted = json.dumps(plant(text))
    source = f"datasource: {{id: db, type: jdbc, options: {{url: {quoted}, schema: fin}}}}\n"
    root = workspace(tmp_path, {"weft.yml": "weft: 1\n", "datasources/db.yml": source})
    assert "W1015" in silent("validate", root=root)
    github = weft("validate", "--format", "github", root=root)
    assert SECRET not in github.out + github.err


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("weft.yml", "spark: {conf: {spark.hadoop.fs.s3a.secret.key: SECRET}}\n"),
        ("weft.yml", "spark:\n  remote: sc://h:15002/;token=SECRET\n"),
        ("datasources/files.yml", FILES.replace("path_prefix: data", "path_prefix: data, storage_options: {client_secret: SECRET}")),
        ("datasources/files.yml", "datasource:\n  id: files\n  type: delta\n  options:\n    storage_options:\n      password: |\n        SECRET\n"),
        ("resolvers/files.yml", WORKSPACE["resolvers/files.yml"].replace("Accept: application/json", "X-Api-Key: SECRET")),
        ("resolvers/files.yml", WORKSPACE["resolvers/files.yml"].replace("https://catalog", "https://ann:SECRET@catalog")),
        ("resolvers/files.yml", WORKSPACE["resolvers/files.yml"].replace("auth: env:CATALOG", "auth: SECRET")),
        ("datasources/ledger.yml", WORKSPACE["datasources/ledger.yml"].replace("env:LEDGER_LOGIN", "ann:SECRET")),
    ],
)  # fmt: skip
def test_a_secret_in_any_file_is_refused_and_not_printed(tmp_path: Path, file: str, text: str) -> None:
    root = workspace(tmp_path, {**WORKSPACE, file: plant(text)})
    assert "error[W1015]" in silent("validate", root=root)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.pipelines.store.open.Database", lambda engine, _: Database(engine, 0.0))


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("words", [("runs", "ls"), ("doctor",), ("validate",), ("doctor", "--upgrade-store")])
def test_the_password_of_the_store_is_not_printed(tmp_path: Path, words: tuple[str, ...]) -> None:
    root = workspace(tmp_path, {**WORKSPACE, "weft.yml": f'store: "{plant(STORE)}"\n'})
    assert "postgresql://ann@127.0.0.1:1/gl" in silent(*words, root=root)


@pytest.mark.usefixtures("impatient")
def test_the_password_of_a_store_in_the_environment_is_not_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_STORE", plant(STORE))
    root = workspace(tmp_path, {**WORKSPACE, "weft.yml": "store: env:THE_STORE\n"})
    assert "cannot be reached" in silent("runs", "ls", root=root)


def test_a_store_repeats_no_secret_of_its_address(tmp_path: Path) -> None:
    database = Database(engine_of(address_of(plant(STORE), tmp_path)))
    assert SECRET not in database.address
    from sqlalchemy.exc import OperationalError

    cause = OperationalError("SELECT 1", {}, Exception(f"connection with {SECRET} failed"))
    assert SECRET not in str(database.explain(cause))
    for broken in (f"postgresql:/{SECRET}", f"://ann:{SECRET}@db", f"postgresql://ann:{SECRET}@db:x/gl"):
        with pytest.raises(StoreError) as caught:
            address_of(broken, tmp_path)
        assert SECRET not in str(caught.value)
        assert caught.value.__suppress_context__


JOB = """\
CREATE STREAM orders (id STRING, at TIMESTAMP)
WITH ('path' = 's3a://AKIA:SECRET@bucket/orders', 'format' = 'json', 'event.time.field' = 'at');
CREATE STREAM bills (id STRING, at TIMESTAMP)
WITH ('topic' = 'bills', 'format' = 'json', 'event.time.field' = 'at', 'kafka.security.protocol' = 'SASL_SSL',
      'kafka.sasl.jaas.config' = 'x.PlainLoginModule required username="ann"
        password="SECRET";');
CREATE STREAM paid WITH ('path' = 'out', 'format' = 'json')
  AS SELECT o.id FROM orders o JOIN bills b ON o.id = b.id %s;
"""


@pytest.mark.parametrize("words", [("stream", "check"), ("stream", "explain")])
@pytest.mark.parametrize("within", ["WITHIN ('0s', '1h')", "", "WITHIN ('0s', '1h') LIMIT"])
def test_streams_print_no_secret(tmp_path: Path, words: tuple[str, ...], within: str) -> None:
    root = workspace(tmp_path, {"weft.yml": "weft: 1\n", "job.sql": plant(JOB % within)})
    silent(*words, "job.sql", root=root)


def test_a_checkpoint_keeps_no_secret_and_another_one_changes_nothing(tmp_path: Path) -> None:
    job = plan_text(plant(JOB % "WITHIN ('0s', '1h')"), tmp_path)
    (statement,) = job.statements
    kept = describe_parts(statement)
    assert SECRET not in "".join(kept.values()) + explain_job(job).text + explain_job(job).long
    other = plan_text(plant(JOB % "WITHIN ('0s', '1h')").replace(SECRET, "Another7x"), tmp_path)
    assert compare_parts(kept, describe_parts(other.statements[0])).keeps == "same"
    older = {**kept, "inputs": kept["inputs"].replace(MASK, SECRET)}  # as it was kept before
    assert compare_parts(older, kept).keeps == "same"


def test_what_the_store_keeps_of_a_failure_has_no_secret() -> None:
    failure = RunFailure(operation_order=1, code="W1513", message=plant(STORE), detail=plant(f"Caused by: {STORE}"))
    assert SECRET not in json.dumps(failure.to_dict())


def test_every_way_out_of_a_command_is_masked(capsys: pytest.CaptureFixture[str]) -> None:
    text = plant(STORE)
    print_stderr(text)
    data = {"a": [text], "b": {"password": SECRET, "at": text}, "passwords": [SECRET, [SECRET]]}
    answer = Envelope(command="x", text=text, next=(text,), data=data)
    print(answer.text, answer.to_json())  # noqa: T201
    broken: Callable[..., Any] = main._report_bug
    print(broken("x", ValueError(text)).to_json())  # noqa: T201
    printed = "".join(capsys.readouterr())
    assert "Traceback" not in printed or "ValueError" in printed
    assert SECRET not in printed
    rows = Envelope(command="preview", text=text, data={"rows": [text]}, shows_rows=True)
    assert (rows.text, rows.data) == (text, {"rows": [text]})


@pytest.mark.parametrize("quote", ["'", '"'])
def test_a_value_whose_closing_quote_is_missing_is_masked_to_its_end(quote: str) -> None:
    assert redact(f"password: {quote}hunter2x") == "password: ***"


@pytest.mark.parametrize("name", ["pass%77ord", "pass%2577ord", "pass%252577ord"])
def test_a_name_that_is_encoded_several_times_is_still_the_name_of_a_secret(name: str) -> None:
    assert is_secret_name(name)
    assert redact(f"jdbc:x://db/gl?{name}=hunter2") == f"jdbc:x://db/gl?{name}=***"


@pytest.mark.parametrize("word", ["password", "secret"])
def test_the_name_of_a_secret_with_one_typo_is_still_one(word: str) -> None:
    missing = {word[:i] + word[i + 1 :] for i in range(len(word))}
    swapped = {word[:i] + word[i + 1] + word[i] + word[i + 2 :] for i in range(len(word) - 1)}
    other = {word[:i] + letter + word[i + after :] for i in range(len(word)) for letter in "akz" for after in (0, 1)}
    for typo in missing | swapped | other:
        assert redact(f"kafka.sasl.{typo}=hunter2") == f"kafka.sasl.{typo}=***"
        assert redact(f"{{{typo}: hunter2}}") == f"{{{typo}: ***}}"


def test_a_known_secret_is_masked_whole_if_it_contains_another_one() -> None:
    text = "ann sent geheim and geheim-2026, not ge"
    assert redact(text, ["geheim", "ge", "geheim-2026"]) == "ann sent *** and ***, not ge"
