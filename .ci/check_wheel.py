"""Check what a wheel carries: `python check_wheel.py WHEEL`; exits with the list of faults."""

import re
import sys
import zipfile
from pathlib import PurePosixPath

EXTENSIONS = {".so", ".pyd"}
UNWANTED = {".c", ".cpp", ".cc", ".pyx", ".pxi", ".o", ".obj", ".html"}
# Our own headers start with an underscore; Cython's and the system's have no copy in the wheel.
EXTERN_HEADER = re.compile(r"""cdef\s+extern\s+from\s+["'](?:[^"']*/)?(_\w+\.h)["']""")


def faults(wheel):
    names = [PurePosixPath(name) for name in wheel.namelist()]
    suffixes = {name.suffix for name in names}

    yield from (f"{name}: C or Cython source" for name in names if name.suffix in UNWANTED)
    yield from (f"{name}: outside the package" for name in names if not in_package(name))
    yield from (f"{name}: for tests alone" for name in names if name.name.startswith("unreleased"))
    if PurePosixPath("dpcd_sklearn/py.typed") not in names:
        yield "no py.typed"
    if ".pxd" not in suffixes:
        yield "no .pxd files"
    if not any(name.match("dpcd_sklearn/privacy/proofs/*.md") for name in names):
        yield "no proofs"
    if not suffixes & EXTENSIONS:
        yield "no extension modules"
    headers = {name.name for name in names if name.suffix == ".h"}
    for name in names:
        if name.suffix == ".pxd":
            for header in EXTERN_HEADER.findall(wheel.read(str(name)).decode()):
                if header not in headers:
                    yield f"{name} includes {header}, which the wheel lacks"


def in_package(name):
    top = name.parts[0]
    return top == "dpcd_sklearn" or top.endswith(".dist-info")


if __name__ == "__main__":
    with zipfile.ZipFile(sys.argv[1]) as wheel:
        found = list(faults(wheel))
        infos = wheel.infolist()
    size = sum(info.compress_size for info in infos)
    print(f"{sys.argv[1]}: {len(infos)} files, {size / 1024:,.0f} KiB packed")
    sys.exit("\n".join(found) or 0)
