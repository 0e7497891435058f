#!/usr/bin/env bash
# Prints the Python to install with: $PYTHON where it is given, else 3.11 (the only one that DGL has wheels for), else the
# newest tested one that is found, else any later one, with a warning. pyenv's versions are looked up in its folder: its
# shims refuse versions that are not chosen.
set -uo pipefail
PREFERRED=3.11
TESTED="3.11 3.13 3.12"
works() { "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info[:2] < (3, 11))' 2>/dev/null; }
version() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])'; }
warn_if_untested() {
  case " $TESTED " in *" $(version "$1") "*) ;; *)
    echo "make setup: warning: Python $(version "$1") is not tested; $PREFERRED is preferred" >&2 ;;
  esac
}

if [ -n "${PYTHON:-}" ]; then
  if works "$PYTHON"; then warn_if_untested "$PYTHON"; echo "$PYTHON"; exit 0; fi
  echo "make setup: PYTHON=$PYTHON: must be a Python of 3.11 or later with the modules venv and ensurepip" >&2
  exit 2
fi
for wanted in $TESTED; do
  for candidate in "python$wanted" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$wanted".*/bin/python3 python3 python; do
    if works "$candidate" && [ "$(version "$candidate")" = "$wanted" ]; then echo "$candidate"; exit 0; fi
  done
done
for candidate in python3 python; do
  if works "$candidate"; then warn_if_untested "$candidate"; echo "$candidate"; exit 0; fi
done
echo "make setup: no Python of 3.11 or later found. Install one (Debian 12: apt-get install python3.11 python3.11-venv; \
elsewhere: pyenv install 3.11) or pass PYTHON=/path/to/python" >&2
exit 2
