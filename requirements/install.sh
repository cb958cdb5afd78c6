#!/bin/sh
# Make .venv hold one lock of this folder: `sh requirements/install.sh base|test|check`.
# Quick when the lock is already installed. PYTHON=... chooses the interpreter of a new .venv.
set -eu

name=${1:?which lock: base, test or check}
folder=$(cd "$(dirname "$0")" && pwd)
cd "$folder/.."
lock=requirements/$name.txt
venv=.venv
if [ "${OS:-}" = Windows_NT ]; then
    python=$venv/Scripts/python.exe
else
    python=$venv/bin/python
fi

fail() {
    printf '%s\n' "" "$@" "" >&2
    exit 1
}

have_uv() {
    [ -z "${DISTRESSBENCH_NO_UV:-}" ] && command -v uv >/dev/null 2>&1
}

# A shim may be on the PATH for a Python that is not there, so each candidate is run.
is_supported() {
    "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' >/dev/null 2>&1
}

can_make_venv() {
    "$1" -c 'import ensurepip, venv' >/dev/null 2>&1
}

# The first supported interpreter; without uv, the first that can also make environments.
find_python() {
    without_venv=
    for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11 python3.14 python}; do
        is_supported "$candidate" || continue
        if have_uv || can_make_venv "$candidate"; then
            found=$candidate
            return 0
        fi
        without_venv=${without_venv:-$candidate}
    done
    found=
    return 1
}

explain_missing_python() {
    if [ -n "$without_venv" ]; then
        version=$("$without_venv" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
        fail "Python $version is here, but it cannot make virtual environments (venv, ensurepip)." \
            "Debian, Ubuntu:  sudo apt install python3-venv   (or python$version-venv)" \
            "Anywhere:        install uv; it is used when it is on the PATH" \
            "Then run the same command again."
    fi
    fail "DistressBench needs Python 3.11 to 3.14, and none was found${PYTHON:+ at PYTHON=$PYTHON}." \
        "Debian, Ubuntu:  sudo apt install python3 python3-venv" \
        "Fedora:          sudo dnf install python3" \
        "macOS:           brew install python@3.13" \
        "If it is installed elsewhere:  make PYTHON=/path/to/python3 ..."
}

make_venv() {
    echo "Making the environment in $venv ..."
    if find_python; then
        if have_uv; then
            uv venv --quiet --clear --python "$found" "$venv"
        else
            "$found" -m venv --clear "$venv"
        fi
    elif have_uv && [ -z "${PYTHON:-}" ]; then
        uv venv --quiet --clear --python 3.13 "$venv" || explain_missing_python
    else
        explain_missing_python
    fi
}

install_lock() {
    echo "Installing $lock ..."
    if have_uv; then
        uv pip install --quiet --python "$python" --require-hashes -r "$lock"
    else
        "$python" -m pip --version >/dev/null 2>&1 ||
            "$python" -m ensurepip >/dev/null 2>&1 ||
            make_venv
        "$python" -m pip install --quiet --disable-pip-version-check --no-input \
            --require-hashes -r "$lock"
    fi
}

if ! { [ -x "$python" ] && is_supported "$python"; }; then
    make_venv
fi
# The stamp is a copy of the lock. Each lock holds all of the smaller ones, so their stamps come with it.
stamp=$venv/installed-$name.txt
if ! cmp -s "$lock" "$stamp"; then
    install_lock
    rm -f "$venv"/installed-*.txt
    case $name in
        check) stamped="check test base" ;;
        test) stamped="test base" ;;
        *) stamped=base ;;
    esac
    for each in $stamped; do
        cp "requirements/$each.txt" "$venv/installed-$each.txt"
    done
fi
