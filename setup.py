"""Build of the Cython kernels; everything else about the package stands in pyproject.toml.

Every ``dpcd_sklearn/**/*.pyx`` becomes an extension module: a new kernel needs no line here.
The generated C goes to ``build/``, never beside the sources.

Environment variables
---------------------
DPCD_SAFE
    "1" compiles with bounds, wraparound and initialisation checks and Python's division.
"""

import os
import re
import tempfile
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError, LinkError

PACKAGE = Path("dpcd_sklearn")
# Memoryviews and their kin are compiled once, into this module, and imported by all others.
SHARED = "dpcd_sklearn.utils._cyutility"
# Noiseless sums for tests and benchmarks: built in place, and never put into a wheel.
FOR_TESTS = Path("tests", "unreleased.pyx")
HEADERS = {header.name: header.as_posix() for header in sorted(PACKAGE.rglob("*.h"))}
SAFE = os.environ.get("DPCD_SAFE", "0") not in ("", "0")

# The only place where directives are set. freethreading_compatible is left unset on purpose.
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": SAFE,
    "wraparound": SAFE,
    "initializedcheck": SAFE,
    "cdivision": not SAFE,
    "show_performance_hints": not SAFE,  # each check that was asked for would be one
}

# Sums must not depend on the compiler's mood: no contraction into FMA, no fast-math, and only
# relaxations that cannot change a value (errno and floating-point traps are never read).
# Debug symbols (which Python's own flags ask for) would make the wheel several times larger.
UNIX_FLAGS = ["-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off"]
UNIX_FLAGS += ["-g"] if SAFE else ["-g0"]
MSVC_FLAGS = ["/O2", "/fp:precise"]
# Loops over records and over noise; the others run once an update, and compile in half the time.
HOT = ("losses/", "privacy/accounting/", "privacy/noise/", "privacy/sums/")
HOT += ("privacy/mechanisms/_lazy_choice",)
OPENMP_PROBE = "#include <omp.h>\nint main(void) { return omp_get_max_threads() < 1; }\n"
MACROS = [("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION")]
MACROS += [("DPCD_CHECKED", "1")] if SAFE else []


def extensions():
    """One extension for each .pyx file of the package, and the one that they share."""
    shared = Extension(SHARED, [f"{SHARED.replace('.', '/')}.c"], define_macros=MACROS)
    return [shared, *map(extension, sorted(PACKAGE.rglob("*.pyx")))]


def extension(source):
    """The extension of one .pyx file, named as where it lies."""
    return Extension(
        ".".join(source.with_suffix("").parts),
        [source.as_posix()],
        include_dirs=[".", *sorted({os.path.dirname(header) for header in HEADERS.values()})],
        define_macros=MACROS,
    )


def translate(modules):
    """Translate the modules to C under build/; all of them when the settings have changed."""
    import Cython
    from Cython.Build import cythonize

    folder = Path("build", "cython")
    settings = f"Cython {Cython.__version__}, {DIRECTIVES}, {UNIX_FLAGS}, {MSVC_FLAGS}\n"
    stamp = folder / "settings.txt"
    changed = not stamp.exists() or stamp.read_text() != settings
    translated = cythonize(
        modules,
        build_dir=folder.as_posix(),
        compiler_directives=DIRECTIVES,
        shared_utility_qualified_name=SHARED,
        force=changed,
        quiet=True,  # of progress; errors and warnings are printed all the same
        nthreads=(os.cpu_count() or 1) if hasattr(os, "fork") else 0,
    )
    if changed:
        folder.mkdir(parents=True, exist_ok=True)
        stamp.write_text(settings)
    return {module.name: module for module in translated}


def with_included(files):
    """These files, and the package's headers that they or those headers include."""
    found = list(files)
    for file in found:
        if file.endswith(".h"):
            names = re.findall(r'(?m)^#include "(\w+\.h)"', Path(file).read_text(encoding="utf-8"))
            found += [HEADERS[name] for name in names if HEADERS[name] not in found]
    return found


def optimisation(source, msvc):
    """How much work the compiler puts into a file; little into one with checks, for tests alone."""
    if msvc:
        return []
    if SAFE:
        return ["-O1"]
    hot = any(f"/{PACKAGE}/{part}" in f"/{source}" for part in HOT)
    return ["-O3" if hot else "-O2"]


def openmp_flags(compiler):
    """Flags of OpenMP, none where the compiler has no OpenMP: fits then run in one thread."""
    if compiler.compiler_type == "msvc":
        return ["/openmp"]
    with tempfile.TemporaryDirectory() as folder:
        probe = Path(folder, "probe.c")
        probe.write_text(OPENMP_PROBE, encoding="utf-8")
        try:
            objects = compiler.compile([str(probe)], folder, extra_postargs=["-fopenmp"])
            compiler.link_executable(objects, "probe", folder, extra_postargs=["-fopenmp"])
        except (CompileError, LinkError):
            return []
    return ["-fopenmp"]


class BuildKernels(build_ext):
    """Cython is imported and run only here, so metadata and sdist need no Cython."""

    def finalize_options(self):
        if self.inplace:  # an editable install would compile in a folder that it throws away
            self.build_lib, self.build_temp = "build/inplace/lib", "build/inplace/temp"
            if FOR_TESTS.exists():
                self.distribution.ext_modules.append(extension(FOR_TESTS))
        super().finalize_options()
        if self.parallel is None:
            self.parallel = os.cpu_count() or 1

    def build_extensions(self):
        msvc = self.compiler.compiler_type == "msvc"
        flags, openmp = MSVC_FLAGS if msvc else UNIX_FLAGS, openmp_flags(self.compiler)
        translated = translate(self.extensions)
        for module in self.extensions:
            module.sources = translated[module.name].sources
            depends = [*translated[module.name].depends, "setup.py"]  # headers of pxd files, too
            module.depends = with_included(depends)
            module.extra_compile_args = [*flags, *optimisation(module.sources[0], msvc)]
            code = Path(module.sources[0]).read_text(encoding="utf-8")
            if "#include <omp.h>" in code or "_openmp.h" in code:
                module.extra_compile_args += openmp
                module.extra_link_args = [] if msvc else openmp
            if "numpy/arrayobject.h" in code:
                import numpy as np

                module.include_dirs.append(np.get_include())
        super().build_extensions()


if __name__ == "__main__":  # worker processes of cythonize may import this file
    setup(ext_modules=extensions(), cmdclass={"build_ext": BuildKernels})
