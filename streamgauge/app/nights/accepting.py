"""Accepts a regression: a person says why its level is the new baseline, and pages no longer show it as bad."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from streamgauge.base.errors import UserError
from streamgauge.catalog import results
from streamgauge.catalog.artifacts import Store
from streamgauge.records.judgement import ACCEPTED, Acceptance, Judgement
from streamgauge.results.index import Index


def accept(store: Store, index: Index, key: str, *, reason: str, author: str, since: str | None = None) -> Judgement:
    """Records that the regression of the series is accepted, in the run that judged it and in the index.

    since: beginning of the time of its first point, such as 2026-03-01; None: the latest regression that is not yet
    accepted. Raises UserError without such a regression, or if its run is not among the artifacts.
    """
    if not reason.strip() or not author.strip():
        raise UserError("a regression is accepted with a reason and a name; give --reason and --author")
    judged = index.judged(key)
    accepted = {one.changed_at for one in judged if one.outcome == ACCEPTED}
    regressions = [one for one in judged if one.outcome == "regression" and one.changed_at not in accepted]
    chosen = [one for one in regressions if since is None or one.changed_at.startswith(since)]
    if not chosen:
        known = ", ".join(one.changed_at[:10] for one in regressions) or "none"
        raise UserError(
            f"series {key}: found no regression to accept{f' since {since}' if since else ''}; open: {known}"
        )
    last = chosen[-1]
    run = store.root / "runs" / last.run_id
    if not run.is_dir():
        raise UserError(f"{run}: the run that judged the regression is not here; name its folder with --artifacts")
    at = datetime.now(UTC).isoformat(timespec="seconds")
    evidence = Acceptance(reason=reason.strip(), author=author.strip(), at=at)
    judgement = replace(last, outcome=ACCEPTED, evidence=evidence)
    results.judge(run, judgement)
    index.add_run(run)
    return judgement
