# Sourced by the scripts beside this folder. Makes and fills `.venv` of this checkout where that is due, with the
# versions in constraints.txt.
#
#   root              the checkout
#   use_venv [EXTRA]  afterwards $root/.venv/bin has the program, and what the extra names

root=$(CDPATH= cd -- "${0%"${0##*/}"}.." && pwd)

for tool in cat cksum rm tr; do
    if ! command -v "$tool" >/dev/null; then
        echo "codex-py: scripts/${0##*/} needs the program \`$tool\`, which is not on the PATH" >&2
        exit 1
    fi
done

find_python() {
    for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
        if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    echo "codex-py needs Python 3.11 or newer, with its venv module; none was found" >&2
    exit 1
}

# What is installed depends on these files and on the extra, and on nothing else.
wanted_stamp() {
    cat "$root/pyproject.toml" "$root/constraints.txt" "$root/scripts/lib/venv.sh" | cksum | tr -d '\n'
    echo " ${1:-}"
}

is_current() {
    [ -x "$root/.venv/bin/codex-py" ] || return 1
    # The development extra has all that a plain installation has.
    for extra in "${1:-}" dev; do
        if [ "$(cat "$root/.venv/installed" 2>/dev/null)" = "$(wanted_stamp "$extra")" ]; then return 0; fi
    done
    return 1
}

use_venv() {
    if is_current "${1:-}"; then return; fi
    python=$(find_python)
    # Ctrl-C ends Python with a traceback, which helps nobody.
    trap 'echo "codex-py: the installation was interrupted; the next start makes it anew" >&2; exit 130' INT
    # Two scripts may start at once: the second one waits. The lock belongs to the open file, which this shell
    # keeps; so it ends with the shell, however that ends.
    exec 9>"$root/.venv.lock"
    if ! "$python" -c 'import fcntl; fcntl.flock(9, fcntl.LOCK_EX)' 2>/dev/null; then
        echo "codex-py: $root/.venv.lock cannot be locked" >&2
        exit 1
    fi
    is_current "${1:-}" || install "$python" "${1:-}"
    exec 9>&-
    trap - INT
}

pip_install() { "$root/.venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@" </dev/null; }

# install PYTHON EXTRA
install() {
    size="some 100 MB, half a minute"
    if [ "$2" = dev ]; then size="with the tools of the tests: some 450 MB, a minute or two"; fi
    echo "codex-py: installing into $root/.venv ($size)" >&2
    # One that is of no use, of another Python or half made, is made anew.
    if ! "$root/.venv/bin/python" -m pip --version >/dev/null 2>&1; then
        rm -rf "$root/.venv"
        if ! said=$("$1" -m venv "$root/.venv" 2>&1); then
            echo "$said" >&2
            exit 1
        fi
    fi
    rm -f "$root/.venv/installed"
    log="$root/.venv/install.log"
    package="$root${2:+[$2]}"
    if ! pip_install --constraint "$root/constraints.txt" --editable "$package" >"$log" 2>&1; then
        # A version may not be available for a newer Python, or for another system.
        if ! pip_install --editable "$package" >>"$log" 2>&1; then
            cat "$log" >&2
            echo "codex-py: the installation failed" >&2
            exit 1
        fi
        echo "codex-py: a version in constraints.txt is not available here; the newest versions are installed" >&2
    fi
    # Without compiled files the first start takes some 0.3 s longer.
    "$root/.venv/bin/python" -m compileall -q "$root/codex_py" 2>/dev/null || true
    wanted_stamp "$2" >"$root/.venv/installed"
}
