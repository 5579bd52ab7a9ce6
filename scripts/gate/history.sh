#!/bin/sh
# history.sh: keeps DIRECTORY/gate.json as HEAD.json on the branch NAME, if HISTORY is `branch`.
# It has a token that writes, and a file that the run of a stranger's code has left: that is JSON, and nothing else.
set -eu
branch=$NAME
case $HISTORY in
    artifact) exit 0 ;;
    branch) ;;
    *) echo "history: found '$HISTORY', allowed: artifact, branch" >&2; exit 3 ;;
esac
if [ "$REF" != "refs/heads/$DEFAULT_BRANCH" ]; then
    echo "history: found a workflow of $REF, allowed: one of the default branch, as workflow_run starts it" >&2
    exit 3
fi
record=$DIRECTORY/gate.json
if [ ! -f "$record" ] || [ -L "$record" ]; then
    echo "$record: no such file; the gate has left no verdict"
    exit 0
fi
if [ "$(wc -c < "$record")" -gt 1000000 ] || ! jq -e .verdict "$record" > /dev/null; then
    echo "$record: this is no verdict" >&2
    exit 1
fi
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

# the token is in no argument, which other processes could see, and in no file
# shellcheck disable=SC2016
login='!f() { echo username=x-access-token; echo "password=$GH_TOKEN"; }; f'
here() { git -C "$place" -c credential.helper= -c "credential.helper=$login" -c "user.name=Streamgauge gate" \
    -c user.email=streamgauge-gate@users.noreply.github.com "$@"; }

# appends the record to what the branch has now; fails if another run has pushed meanwhile
append() {
    there=$(here ls-remote "$REMOTE" "refs/heads/$branch") || return 1
    if [ -n "$there" ]; then
        here fetch --quiet --depth 1 "$REMOTE" "refs/heads/$branch" || return 1
        here checkout --quiet --force --detach FETCH_HEAD || return 1
    fi
    cp "$record" "$place/$HEAD.json" && here add --all || return 1
    if ! here diff --cached --quiet; then
        here commit --quiet --message "$HEAD" || return 1
    elif [ -n "$there" ]; then
        return 0 # it is there
    fi # else a push that failed has left the commit here
    here push --quiet "$REMOTE" "HEAD:refs/heads/$branch"
}

here init --quiet
for seconds in 1 2 4 8 0; do
    append && exit 0
    sleep "$seconds"
done
echo "history: cannot push to $branch; the workflow needs permissions: {contents: write}" >&2
exit 1
