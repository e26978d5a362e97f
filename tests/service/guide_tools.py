"""Stand-ins for programs of the install guide that need root or a package registry."""

from __future__ import annotations

import os
import re
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import pip
from packaging.requirements import Requirement

BIN = Path(sys.executable).parent

_PROGRAMS = {
    "python3": f"""\
[ "$1 $2" = "-m venv" ] || exec {sys.executable} "$@"
{sys.executable} -m venv --without-pip "$3"
ln -sf ROOT/tools/pip "$3/bin/pip"
ln -sfn {Path(pip.__file__).parent} "$(echo "$3"/lib/python*/site-packages)/pip"
""",
    "pip": f"""\
venv=$(dirname "$(dirname "$0")")
case " $* " in
  *" --require-hashes "*) for lock in "$@"; do :; done
    exec {sys.executable} {__file__} "$venv" "$lock" ;;
esac
exec "$venv/bin/python" -m pip --disable-pip-version-check --quiet "$@"
""",
    "install": """\
for each in "$@"; do
  shift
  [ "$each" != --owner ] || continue
  [ "$each" != connector ] || continue
  set -- "$@" "$each"
done
exec /usr/bin/install "$@"
""",
    "runuser": """\
[ "$1 $2 $3" = "-u connector --" ] || exit 64
shift 3
exec "$@"
""",
    "systemctl": """\
for each in "$@"; do
  case $each in
    *.service | *.timer) ls ROOT/etc/systemd/system/$each >/dev/null || exit 5 ;;
  esac
done
""",
    "useradd": 'for name in "$@"; do :; done; [ "$name" = connector ]\n',
    "userdel": '[ "$*" = connector ]\n',
}


def write_fake_tools(root: Path) -> None:
    """Write stand-ins for system programs such as systemctl to the folder `tools` of a root."""
    (root / "tools").mkdir()
    for name, text in _PROGRAMS.items():
        path = root / "tools" / name
        path.write_text(f"#!/bin/sh\n{text.replace('ROOT', str(root))}", encoding="utf-8")
        path.chmod(0o755)


def find_installed_packages(lock: Path) -> dict[str, Distribution | None]:
    """Return the installed package for each entry of a lock that applies to this Python.

    None if the package is missing or has another version.
    """
    found: dict[str, Distribution | None] = {}
    for text in re.findall(r"^([\w.-]+==[^\\\n]+)", lock.read_text(encoding="utf-8"), re.MULTILINE):
        needed = Requirement(text)
        if needed.marker is not None and not needed.marker.evaluate():
            continue
        try:
            here = distribution(needed.name)
        except PackageNotFoundError:
            found[needed.name] = None
        else:
            found[needed.name] = here if needed.specifier.contains(here.version) else None
    return found


def install_lock(lock: Path, venv: Path) -> None:
    """Install a lock into a virtual environment by linking the packages of this one."""
    (site,) = venv.glob("lib/python*/site-packages")
    for name, package in find_installed_packages(lock).items():
        if package is None:
            raise SystemExit(f"{lock.name}: {name} is not installed for the tests")
        for file in package.files or ():
            source = Path(os.path.normpath(str(package.locate_file(file))))
            if file.parts[0] not in ("..", "__pycache__"):
                link = site / file.parts[0]
                if not link.is_symlink():
                    link.symlink_to(source.parents[len(file.parts) - 1] / file.parts[0])
            elif source.parent == BIN:
                program = source.read_bytes().replace(bytes(BIN), bytes(venv / "bin"))
                (venv / "bin" / source.name).write_bytes(program)
                (venv / "bin" / source.name).chmod(0o755)


if __name__ == "__main__":
    install_lock(Path(sys.argv[2]), Path(sys.argv[1]))
