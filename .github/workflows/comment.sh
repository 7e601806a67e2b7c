#!/usr/bin/env bash
# Post FILE as a comment on pull request NUMBER, or update the one that an earlier run posted.
set -euo pipefail
number=$1 file=$2
mark="<!-- retrace-metrics -->"
comments="repos/$GITHUB_REPOSITORY/issues/$number/comments"
old=$(gh api --paginate "$comments" --jq ".[] | select(.body | startswith(\"$mark\")) | .id" | head -n 1)
if [ -n "$old" ]; then
  gh api --method PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$old" --field "body=@$file" > /dev/null
else
  gh api --method POST "$comments" --field "body=@$file" > /dev/null
fi
