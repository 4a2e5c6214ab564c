#!/bin/sh
# Usage: schemas.sh
# The files that are for other programs against these programs' own schemas, and that a wrong one would be noticed. Where docker has
# its compose plugin, that reads the file too.

here=$(cd "$(dirname "$0")" && pwd)
. "$here/install.sh"
root=$(cd "$here/../.." && pwd)
venv="$PEERS/schemas"
check="$venv/bin/check-jsonschema"
failed=0

if ! [ -x "$check" ]; then
    { python3 -m venv "$venv" && "$venv/bin/pip" install -q 'check-jsonschema==0.39.0'; } >/dev/null 2>&1
fi
if ! [ -x "$check" ]; then
    echo "skipped: schemas (check-jsonschema 0.39.0 cannot be had)"
    exit 0
fi

broken=$(mktemp -d)
trap 'rm -r "$broken"' EXIT
# FILE SCHEMA WRONG: the file fits, and with a sed command applied to it does not.
fits() {
    file="$root/$1" schema=$2 wrong=$3
    set -- --builtin-schema "$schema"
    [ "$schema" = vendor.gitlab-ci ] && set -- "$@" --data-transform gitlab-ci
    if out=$("$check" "$@" "$file" 2>&1); then
        echo "pass  $schema $file"
    else
        echo "FAIL  $schema $file" && echo "$out" && failed=1
    fi
    copy="$broken/$(basename "$file")"
    sed "$wrong" "$file" >"$copy"
    if cmp -s "$file" "$copy" || "$check" "$@" "$copy" >/dev/null 2>&1; then
        echo "FAIL  $schema does not notice $wrong in $file" && failed=1
    fi
}
fits docker-compose.yml vendor.compose-spec 's/healthcheck:/healtcheck:/'
fits docs/ci/github.yml vendor.github-workflows 's/runs-on:/run-on:/'
fits docs/ci/gitlab.yml vendor.gitlab-ci 's/stage: test/stage: [1, 2]/'
fits docs/ci/precise-github.yml vendor.github-workflows 's/runs-on:/run-on:/'
fits docs/ci/precise-gitlab.yml vendor.gitlab-ci 's/stage: test/stage: [1, 2]/'
fits docs/ci/review-github.yml vendor.github-workflows 's/runs-on:/run-on:/'
fits docs/ci/review-gitlab.yml vendor.gitlab-ci 's/rules:/rules: [1, 2]\n  rule:/'
fits .github/workflows/release.yml vendor.github-workflows 's/runs-on:/run-on:/'
fits .github/release/templates/action.yml vendor.github-actions 's/using: composite/using: composit/'

# The manifest of a cluster against the schemas of Kubernetes, strictly: no unknown field.
kubernetes="$venv/bin/kubernetes-validate"
[ -x "$kubernetes" ] || "$venv/bin/pip" install -q 'kubernetes-validate==1.34.1' >/dev/null 2>&1
if [ -x "$kubernetes" ]; then
    if out=$("$kubernetes" --strict "$root/docs/fleet-cluster.yml" 2>&1); then
        echo "pass  kubernetes $root/docs/fleet-cluster.yml"
    else
        echo "FAIL  kubernetes $root/docs/fleet-cluster.yml" && echo "$out" && failed=1
    fi
    for wrong in 's/replicas: 3/replicas: three/' 's/podSelector:/podSelecter:/' 's/readinessProbe:/readynessProbe:/'; do
        sed "$wrong" "$root/docs/fleet-cluster.yml" >"$broken/cluster.yml"
        if "$kubernetes" --strict "$broken/cluster.yml" >/dev/null 2>&1; then
            echo "FAIL  kubernetes does not notice $wrong" && failed=1
        fi
    done
else
    echo "skipped: kubernetes (kubernetes-validate cannot be had)"
fi

if docker compose version >/dev/null 2>&1; then
    for profile in cpu gpu sparse fleet; do
        if out=$(CODESCOUT_QDRANT_KEY=a CODESCOUT_MODELS_KEY=b \
            docker compose -f "$root/docker-compose.yml" --profile "$profile" config -q 2>&1); then
            echo "pass  docker compose --profile $profile config"
        else
            echo "FAIL  docker compose --profile $profile config" && echo "$out" && failed=1
        fi
    done
else
    echo "skipped: docker compose config (docker with its compose plugin is not here)"
fi
exit $failed
