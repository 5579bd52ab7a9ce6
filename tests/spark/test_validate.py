"""A sound stream passes; each corruption fails exactly the expectations that are stated beside it."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamgauge.base.errors import UserError
from streamgauge.base.jsonl import write_json
from streamgauge.bench.engines.spark.engine import settings
from streamgauge.catalog.artifacts import Store
from streamgauge.config import Benchmark, Experiment
from streamgauge.records.manifests import StreamManifest
from streamgauge.records.validation import Validation
from streamgauge.streams.keys import events_key, stream_key, validation_key
from streamgauge.streams.stages import facts, validate
from tests import manifests
from tests.conftest import ROOT
from tests.spark.mutations import (
    LOST_OR_ADDED,
    OF_THE_CLAIMS,
    OF_THE_DATA,
    OF_THE_FACTS,
    Mutation,
    claim,
    swap_lines_of_one_event_time,
)
from tests.spark.streams import BENCHMARK, Case, sound_case

SUITES = ROOT / "expectations"
SOUND = sound_case()


def keep(_: list[dict[str, Any]], __: Case) -> None:
    pass


def lose_one(twins: list[dict[str, Any]], case: Case) -> None:
    case.stream.pop(next(at for at, row in enumerate(case.stream) if row is twins[3]))


def change_one(twins: list[dict[str, Any]], _: Case) -> None:
    twins[3]["flight"] = 7


def write_one_again(twins: list[dict[str, Any]], case: Case) -> None:
    case.stream.append(case.stream.pop(next(at for at, row in enumerate(case.stream) if row is twins[3])))


#: what must fail, and nothing else, when duplicates are not as asked
OF_THE_DUPLICATES: dict[Any, set[str]] = {
    keep: set(),
    lose_one: {"duplicates-as-asked", "duplicates-as-claimed"},
    change_one: LOST_OR_ADDED | {"duplicates-as-asked", "duplicates-as-claimed"},
    write_one_again: {"no-seq-duplicated", "sorted-within-files", "achieved-equals-target", "achieved-as-claimed"},
}


@pytest.fixture
def context(tmp_path: Path) -> Any:
    return validate.new_context(tmp_path / "docs")


def claimed(case: Case) -> StreamManifest:
    """The manifest of the case's stream."""
    return StreamManifest.model_validate(manifests.of_stream(**case.claims))


@pytest.fixture
def few_tasks(spark: Any) -> Iterator[None]:
    """Settings under which many small streams are checked at a lower cost; the stage below runs without them."""
    with settings(spark, {"spark.sql.shuffle.partitions": "1", "spark.sql.adaptive.enabled": "false"}):
        yield


@pytest.fixture(scope="module")
def measured(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> facts.Measured:
    """Facts of the sound stream's rows, whatever its manifest claims."""
    return facts.measure(spark, *SOUND.write(tmp_path_factory.mktemp("sound")))


@pytest.mark.spark
@pytest.mark.usefixtures("few_tasks")
@pytest.mark.parametrize("mutate", OF_THE_FACTS, ids=lambda mutate: mutate.__name__)
def test_a_corrupted_stream_fails_exactly_the_stated_expectations(
    spark: Any, context: Any, tmp_path: Path, mutate: Mutation
) -> None:
    case = copy.deepcopy(SOUND)
    mutate(case)
    assert case != SOUND
    found = facts.facts(spark, *case.write(tmp_path), case.experiment)
    judged = validate.judge(context, SUITES / "stream_facts.json", found)
    assert {e.name for e in judged if not e.success} == OF_THE_FACTS[mutate]


@pytest.mark.spark
@pytest.mark.parametrize("name", OF_THE_CLAIMS)
def test_another_claim_of_the_manifest_fails_exactly_the_stated_expectations(
    context: Any, measured: facts.Measured, name: str
) -> None:
    case = copy.deepcopy(SOUND)
    claim(name)(case)
    found = facts.beside_claims(measured, claimed(case), case.experiment)
    judged = validate.judge(context, SUITES / "stream_facts.json", found)
    assert {e.name for e in judged if not e.success} == OF_THE_CLAIMS[name]


@pytest.mark.spark
@pytest.mark.parametrize(("percent", "expected"), [(90, 45), (30, 45), (20, 30), (0, len(SOUND.source_late()))])
def test_the_closest_target_lies_between_the_source_and_the_bound(
    measured: facts.Measured, percent: int, expected: int
) -> None:
    """The sound stream holds 45 of 150, which its manifest says to be the bound."""
    experiment = SOUND.experiment.model_copy(update={"on_infeasible": "closest", "target_percent": percent})
    row = facts.beside_claims(measured, claimed(SOUND), experiment)
    assert (row["target_out_of_order"], row["expected_out_of_order"]) == (percent * 150 // 100, expected)


@pytest.mark.spark
def test_a_stream_as_it_came_is_to_have_the_disorder_of_its_source(measured: facts.Measured) -> None:
    as_it_came = Experiment(name="e", target="source")
    row = facts.beside_claims(measured, claimed(SOUND), as_it_came)
    own = len(SOUND.source_late())
    assert (row["target_out_of_order"], row["expected_out_of_order"]) == (own, own)


@pytest.mark.spark
@pytest.mark.usefixtures("few_tasks")
def test_the_order_in_which_columns_are_declared_is_no_matter(spark: Any, context: Any, tmp_path: Path) -> None:
    """A change of the order changes no key, so data of another order are found."""
    columns = dict(reversed(BENCHMARK.source.columns.items()))
    assert list(columns) != list(BENCHMARK.source.columns)
    swapped = BENCHMARK.source.model_copy(update={"columns": columns})
    assert validate.validate(spark, context, *SOUND.write(tmp_path), swapped, SOUND.experiment, SUITES).failed == []


@pytest.mark.spark
@pytest.mark.usefixtures("few_tasks")
def test_a_user_s_own_suite_judges_the_events_and_is_in_the_data_docs(spark: Any, context: Any, tmp_path: Path) -> None:
    column = next(iter(BENCHMARK.source.columns))
    suite = tmp_path / "ours.json"
    checks = [("expect_column_values_to_not_be_null", {"column": "event_time"}),
              ("expect_column_value_lengths_to_equal", {"column": column, "value": 99})]  # fmt: skip
    expectations = [{"type": kind, "kwargs": given, "meta": {}} for kind, given in checks]
    suite.write_text(json.dumps({"name": "ours", "expectations": expectations}))
    given = SOUND.write(tmp_path / "case")

    def validated(*files: Path) -> Validation:
        source = BENCHMARK.source.model_copy(update={"expectations": tuple(map(str, files))})
        return validate.validate(spark, context, *given, source, SOUND.experiment, SUITES)

    found = validated(suite)
    assert [one.name for one in found.failed] == ["ours-2-expect_column_value_lengths_to_equal"]
    assert found.facts is not None, "our own suites passed"
    context.build_data_docs()
    assert any("ours" in page.name for page in (tmp_path / "docs").rglob("*.html"))
    suite.write_text(json.dumps({"name": "events", "expectations": expectations}))
    with pytest.raises(UserError, match=r"ours\.json: found the name 'events', which another suite has"):
        validated(suite)


# -- the data themselves


BOTH: tuple[str, ...] = ("events", "stream")
#: most break both datasets at once, as the name of an expectation tells which of them it judges
BROKEN = [(BOTH, name) for name in dict.fromkeys(name for _, name in OF_THE_DATA) if name != "no line"]
BROKEN += [(("events",), "no line"), (("stream",), "no line")]


@pytest.mark.spark
@pytest.mark.usefixtures("few_tasks")
@pytest.mark.parametrize(
    ("datasets", "name"), BROKEN, ids=lambda part: part if isinstance(part, str) else "+".join(part)
)
def test_broken_data_fail_exactly_the_stated_expectations(
    spark: Any, context: Any, tmp_path: Path, datasets: tuple[str, ...], name: str
) -> None:
    case = copy.deepcopy(SOUND)
    must_fail: set[str] = set()
    for dataset in datasets:
        mutate, fails = OF_THE_DATA[dataset, name]
        case.schemas[dataset] = mutate(case.schemas[dataset], getattr(case, dataset))
        must_fail |= fails
    found = validate.validate(spark, context, *case.write(tmp_path), BENCHMARK.source, case.experiment, SUITES)
    assert {e.name for e in found.failed} == must_fail
    assert found.facts is None  # not measured on data that have no such columns, types or values


# -- the suites


def names_in_suites() -> list[str]:
    files = [SUITES / f"{name}.json" for name in ("events", "stream", "stream_facts")]
    assert sorted(files) == sorted(SUITES.glob("*.json"))
    return [e["meta"]["name"] for file in files for e in json.loads(file.read_text())["expectations"]]


def test_every_expectation_has_its_own_name_and_a_note() -> None:
    names = names_in_suites()
    assert len(names) == len(set(names))
    for file in SUITES.glob("*.json"):
        assert [e.meta["name"] for e in validate.load_suite(file).expectations if not e.description] == []


def test_every_expectation_is_failed_by_some_mutation() -> None:
    can_fail = set().union(
        *OF_THE_FACTS.values(),
        *OF_THE_CLAIMS.values(),
        *OF_THE_DUPLICATES.values(),
        *(must_fail for _, must_fail in OF_THE_DATA.values()),
    )
    assert can_fail == set(names_in_suites())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not a suite of named expectations"),
        ('{"name": "x", "expectations": [{"kwargs": {"column": "a"}}]}', "KeyError"),
        (
            '{"name": "x", "expectations": [{"type": "expect_column_to_exist", "kwargs": {"colum": "a"},'
            ' "meta": {"name": "a-exists"}}]}',
            "colum extra fields",
        ),
    ],
)
def test_an_unusable_suite_is_told_in_one_line(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "x.json"
    file.write_text(text)
    with pytest.raises(UserError, match=said) as told:
        validate.load_suite(file)
    assert str(file) in str(told.value)


@pytest.mark.spark
def test_an_unknown_parameter_of_a_suite_is_told_in_one_line(spark: Any, context: Any, tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    kind = "expect_table_columns_to_match_ordered_list"
    expectation = {"type": kind, "kwargs": {"column_list": {"$PARAMETER": "which"}}, "meta": {"name": "there"}}
    file.write_text(json.dumps({"name": "x", "expectations": [expectation]}))
    with pytest.raises(UserError, match=r"x\.json: uses \$PARAMETER which, allowed: none"):
        validate.judge(context, file, spark.range(1))


@pytest.mark.spark
def test_a_missing_file_is_told_in_one_line(spark: Any, tmp_path: Path) -> None:
    events, _ = SOUND.write(tmp_path)
    events.files()[1].unlink()
    with pytest.raises(UserError, match=r"part-00001.parquet: missing; remove .*/events and run again"):
        facts.read(spark, events)


# -- the stage


def stored(tmp_path: Path, case: Case) -> tuple[Store, Benchmark]:
    """A store that holds the case as finished artifacts."""
    source = tmp_path / "source.csv"
    source.write_text("0,0\n")
    benchmark = BENCHMARK.model_copy(update={"source": BENCHMARK.source.model_copy(update={"files": (str(source),)})})
    store = Store(tmp_path / "a [place] *é#%20")  # all but a pattern or an address
    keys = (events_key(store, benchmark), stream_key(store, benchmark, benchmark.experiments[0]))
    for artifact, key in zip(case.write(tmp_path / "made"), keys, strict=True):
        final = store.path(artifact.kind, key)
        final.parent.mkdir(parents=True)
        artifact.path.rename(final)
        write_json(final / "manifest.json", artifact.manifest | {"kind": artifact.kind, "key": key})
    return store, benchmark


@pytest.mark.spark
def test_the_stage_proves_a_sound_stream_and_shows_the_proof_in_every_run(spark: Any, tmp_path: Path) -> None:
    store, benchmark = stored(tmp_path, SOUND)
    experiment = benchmark.experiments[0]
    first = validate.run(spark, benchmark, store, experiment, SUITES, store.run("one"))
    again = validate.run(spark, benchmark, store, experiment, SUITES, store.run("two"))
    assert (first.reused, again.reused) == (False, True)
    assert (first.manifest["success"], first.manifest["failed"]) == (True, [])
    assert first.manifest["expectations"] == len(names_in_suites())
    found = first.manifest["facts"]
    assert found["out_of_order"] == found["target_out_of_order"] == 45
    assert found["source_out_of_order"] == len(SOUND.source_late())
    assert found["newly_delayed"] == len(SOUND.delayed())
    for place in (first.path, store.run("one") / "validation-late30", store.run("two") / "validation-late30"):
        result = json.loads((place / "result.json").read_text())
        assert result["success"]
        assert [(e["name"], e["success"]) for e in result["expectations"]] == [(n, True) for n in names_in_suites()]
        assert "stream_facts" in (place / "docs" / "index.html").read_text()


@pytest.mark.spark
@pytest.mark.usefixtures("few_tasks")
@pytest.mark.parametrize("corrupt", OF_THE_DUPLICATES)
def test_duplicates_stand_behind_their_events_and_are_as_many_as_asked(
    spark: Any, context: Any, tmp_path: Path, corrupt: Any
) -> None:
    case = copy.deepcopy(SOUND)
    twins = [dict(row) for row in case.stream[5:80:5]]
    for twin in twins:
        case.stream.insert(case.stream.index(twin) + 1, twin)
    case.claims["duplicates"] = len(twins)
    corrupt(twins, case)
    experiment = case.experiment.model_copy(update={"duplicates": 10.0})
    found = facts.facts(spark, *case.write(tmp_path), experiment)
    judged = validate.judge(context, SUITES / "stream_facts.json", found)
    assert {e.name for e in judged if not e.success} == OF_THE_DUPLICATES[corrupt]


@pytest.mark.spark
def test_a_failed_stage_names_what_failed_keeps_its_docs_and_publishes_nothing(spark: Any, tmp_path: Path) -> None:
    case = copy.deepcopy(SOUND)
    swap_lines_of_one_event_time(case)
    claim("achieved_out_of_order")(case)
    store, benchmark = stored(tmp_path, case)
    experiment = benchmark.experiments[0]
    with pytest.raises(UserError) as told:
        validate.run(spark, benchmark, store, experiment, SUITES, store.run("one"))
    shown = store.run("one") / "validation-late30"
    for part in ("experiment late30: 2 of 40", "seq-keeps-its-event", "achieved-as-claimed", str(shown)):
        assert part in str(told.value)
    result = json.loads((shown / "result.json").read_text())
    assert {e["name"] for e in result["expectations"] if not e["success"]} == {
        "seq-keeps-its-event",
        "achieved-as-claimed",
    }
    assert (shown / "docs" / "index.html").exists()
    key = validation_key(store, benchmark, experiment, SUITES)
    assert store.find("validation", key) is None
    assert not store.path("validation", key).exists()
