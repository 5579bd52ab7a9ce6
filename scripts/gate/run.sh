#!/bin/sh
# run.sh: runs the gate and ends with its exit code. The job's summary gets the comment, the step's outputs the verdict.
set -eu
if [ -z "${BASE:-}" ]; then
    echo "base: found nothing, allowed: a branch or a commit; outside a pull request the action needs it as an input" >&2
    exit 3
fi
[ ! -f "$OUTPUT/gate.json" ] || rm -f "$OUTPUT/gate.jsonl" # a gate that has finished begins anew
rm -f "$OUTPUT/comment.md" "$OUTPUT/junit.xml" "$OUTPUT/gate.json"
code=0
streamgauge gate "$BENCHMARK" --base "$BASE" --head "$HEAD" --output "$OUTPUT" ${MINUTES:+--minutes "$MINUTES"} || code=$?
verdict=none
if [ -f "$OUTPUT/gate.json" ]; then
    verdict=$(sed -n 's/^ "verdict": "\([a-z-]*\)".*/\1/p' "$OUTPUT/gate.json")
    cat "$OUTPUT/comment.md" >> "$GITHUB_STEP_SUMMARY"
fi
echo "verdict=$verdict" >> "$GITHUB_OUTPUT"
exit "$code"
