#!/bin/sh
# comment.sh: posts DIRECTORY/comment.md on the open pull request whose head is HEAD, or replaces what the gate NAME
# posted before.
# It has a token that writes, and a file that the run of a stranger's code has left: that is text, and nothing else.
set -eu
marker="<!-- $NAME -->"
file=$DIRECTORY/comment.md
if [ ! -f "$file" ] || [ -L "$file" ]; then
    echo "$file: no such file; the gate has left no comment"
    exit 0
fi
# the number is asked of the server: one that the file named could be any pull request's. A pipe would hide an error
numbers=$(gh api --paginate "repos/$REPOSITORY/pulls?state=open&per_page=100" \
    --jq ".[] | select(.head.sha == \"$HEAD\") | .number")
number=$(echo "$numbers" | head -n 1)
if [ -z "$number" ]; then
    echo "no open pull request has the head $HEAD"
    exit 0
fi
body=$(mktemp)
trap 'rm -f "$body"' EXIT
{
    echo "$marker"
    # the server takes 65,536 characters; an @ would call people
    # iconv leaves out a character that head has cut, and fails all the same
    sed 's/@/\&#64;/g' "$file" | head -c 60000 | { iconv -c -f UTF-8 -t UTF-8 2> /dev/null || :; }
    printf '\n\n%s: [the run](%s) of %s\n' "$NAME" "$RUN" "$HEAD"
} > "$body"
posted=$(gh api --paginate "repos/$REPOSITORY/issues/$number/comments?per_page=100" \
    --jq ".[] | select(.user.type == \"Bot\" and (.body | startswith(\"$marker\"))) | .id")
known=$(echo "$posted" | head -n 1)
if [ -n "$known" ]; then
    gh api --silent --method PATCH "repos/$REPOSITORY/issues/comments/$known" --field "body=@$body"
else
    gh api --silent --method POST "repos/$REPOSITORY/issues/$number/comments" --field "body=@$body"
fi
