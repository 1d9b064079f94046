#!/usr/bin/env bash
# Gets the libraries that the console's pages load, at pinned versions and with their licences, into the package. npm checks
# what it gets against the registry; the digests below check that it is what was reviewed.
set -euo pipefail
cd "$(dirname "$0")/../.."
into=proxy/console/static/vendor
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

fetch() { # package@version
    (cd "$work" && npm pack --silent "$1" >/dev/null && tar xzf ./*.tgz && rm ./*.tgz)
}

fetch echarts@5.6.0
echo "7e5b92db87ad168da4c6128876813adfe4442337851fa2a6701886d32dcaa3e2  $work/package/dist/echarts.esm.min.mjs" | sha256sum --check --quiet
cp "$work/package/dist/echarts.esm.min.mjs" "$into/"
cp "$work/package/LICENSE" "$into/echarts.LICENSE"
cp "$work/package/NOTICE" "$into/echarts.NOTICE"
echo "echarts 5.6.0 is in $into"
