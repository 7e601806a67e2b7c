#!/usr/bin/env bash
# Post FILE as a comment on pull request NUMBER, or update the one that an earlier run posted.
set -euo pipefail
number=$1 file=$2
mark="<!-- retrace-review -->"
run="$GITHUB_SERVER_URL/$GITHUB_REPOSITORY/actions/runs/$GITHUB_RUN_ID"
text=$(cat "$file")
if [ "${#text}" -gt 60000 ]; then # GitHub takes 65,536 characters
  text="$(head -n 3 "$file")"$'\n\nThe rest is too long for a comment; review.md, beside the report, has all of it.'
fi
body=$(printf '%s\n%s\n\n[The report](%s) is an artifact of this run.' "$mark" "$text" "$run")
comments="repos/$GITHUB_REPOSITORY/issues/$number/comments"
old=$(gh api --paginate "$comments" \
  --jq ".[] | select(.user.type == \"Bot\" and (.body | startswith(\"$mark\"))) | .id" | head -n 1)
if [ -n "$old" ]; then
  gh api --method PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$old" --raw-field "body=$body" > /dev/null
else
  gh api --method POST "$comments" --raw-field "body=$body" > /dev/null
fi
