#!/usr/bin/env bash
# Print as Markdown how metrics and params differ from branch BASE.
# A shallow clone has no base branch, so it is fetched by name.
set -euo pipefail
base=$1
git fetch --quiet --depth=1 origin "+refs/heads/$base:refs/remotes/origin/$base"
diff_of() { dvc "$1" diff --md "origin/$base"; }
echo "<!-- retrace-metrics -->"
printf '## Metrics against %s\n\n' "$base"
metrics=$(diff_of metrics)
printf '%s\n\n' "${metrics:-No metric changed.}"
printf '## Params against %s\n\n' "$base"
params=$(diff_of params)
printf '%s\n' "${params:-No param changed.}"
