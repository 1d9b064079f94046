#!/usr/bin/env bash
# Installs what the clients of this folder need, where it can, and runs their tests. What cannot be installed is said
# here, and its tests are skipped by name; a test that fails fails the run. Arguments go to pytest.
set -uo pipefail
cd "$(dirname "$0")/../../.."
python="${VENV:-.venv}/bin/python"
packages=(default-jdk-headless libpostgresql-jdbc-java odbc-postgresql unixodbc pgbouncer postgresql-client
    libdbd-pg-perl php-cli php-pgsql gcc libc6-dev libpq-dev
    golang-go golang-github-jackc-pgx-v4-dev golang-github-lib-pq-dev chromium chromium-driver)
modules="$(mktemp -d)"
trap 'rm -rf "$modules"' EXIT

install() { # with uv, where the environment has it: it takes a sixth of pip's time
    VIRTUAL_ENV="${VENV:-.venv}" PATH="$PATH:$(dirname "$python")" uv pip install -q "$@" >/dev/null 2>&1 ||
        "$python" -m pip install -q --disable-pip-version-check "$@" >/dev/null 2>&1
}

missing=()
for package in "${packages[@]}"; do
    dpkg -s "$package" >/dev/null 2>&1 || missing+=("$package")
done
if [ "${#missing[@]}" -gt 0 ]; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get -qq update >/dev/null 2>&1
        DEBIAN_FRONTEND=noninteractive timeout 400 apt-get -qq install -y --no-install-recommends "${missing[@]}" \
            >/dev/null 2>&1 || echo "CANNOT INSTALL ${missing[*]}: apt-get failed" >&2
    else
        echo "CANNOT INSTALL ${missing[*]}: not root, or no apt-get" >&2
    fi
fi
"$python" -c 'import pyodbc, adbc_driver_postgresql, connectorx, polars, pyarrow' 2>/dev/null ||
    install -e '.[clients]' ||
    echo "CANNOT INSTALL pyodbc, adbc-driver-postgresql, connectorx, polars, pyarrow: pip failed" >&2
"$python" -c 'import pyspark, pysail' 2>/dev/null ||
    install -e '.[test-spark]' ||
    echo "CANNOT INSTALL pyspark-client, pysail: pip failed" >&2
# the server and its jars, where it does not stand in the way of the client, whose package has the same name
if [ -z "${KEYHOLE_SPARK_HOME:-}" ] && command -v java >/dev/null; then
    timeout 400 "$python" -m pip install -q --disable-pip-version-check --no-deps --target "$modules/spark" \
        'pyspark>=4.1,<4.2' >/dev/null 2>&1 && export KEYHOLE_SPARK_HOME="$modules/spark/pyspark" ||
        echo "CANNOT INSTALL pyspark: pip failed" >&2
fi
make --no-print-directory .venv-docs/.installed >/dev/null 2>&1 ||
    echo "CANNOT INSTALL zensical: pip failed" >&2
if command -v npm >/dev/null; then
    cp tests/clients/installed/node/package.json "$modules"
    (cd "$modules" && timeout 200 npm install --silent --no-package-lock --no-audit --no-fund >/dev/null 2>&1) ||
        echo "CANNOT INSTALL pg, pg-cursor, postgres, axe-core: npm failed" >&2
else
    echo "CANNOT INSTALL pg, pg-cursor, postgres, axe-core: no npm" >&2
fi
if ! command -v promtool >/dev/null; then
    # unpacked, not installed: the package would start a server that everybody reaches
    (cd "$modules" && apt-get -qq download prometheus >/dev/null 2>&1 && dpkg -x prometheus_*.deb prometheus) ||
        echo "CANNOT GET prometheus: apt-get or dpkg failed" >&2
    PATH="$PATH:$modules/prometheus/usr/bin"
fi
# of Spark what is Spark's own, and a few random worlds; make test-spark-servers asks it everything
KEYHOLE_NODE_MODULES="$modules/node_modules" "$python" -m pytest -q --processes=2 --durations=15 -m installed \
    "$@" tests/clients tests/proxy/sources/spark \
    tests/proxy/sources/spark_sql/test_same_integers.py tests/proxy/sources/over_spark/test_spark_catalog.py
