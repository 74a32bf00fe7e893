"""Build of the Cython kernels; everything else about the package stands in pyproject.toml.

Every ``dpcd_sklearn/**/*.pyx`` becomes an extension module: a new kernel needs no line here.
The generated C goes to ``build/``, never beside the sources.

Environment variables
---------------------
DPCD_SAFE
    "1" compiles with bounds, wraparound and initialisation checks and Python's division.
"""

import os
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

PACKAGE = Path("dpcd_sklearn")
SAFE = os.environ.get("DPCD_SAFE", "0") not in ("", "0")

# The only place where directives are set. freethreading_compatible is left unset on purpose.
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": SAFE,
    "wraparound": SAFE,
    "initializedcheck": SAFE,
    "cdivision": not SAFE,
}

# Sums must not depend on the compiler's mood: no contraction into FMA, no fast-math, and only
# relaxations that cannot change a value (errno and floating-point traps are never read).
# Debug symbols (which Python's own flags ask for) would make the wheel several times larger.
UNIX_FLAGS = ["-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off"]
UNIX_FLAGS += ["-g"] if SAFE else ["-g0"]
MSVC_FLAGS = ["/O2", "/fp:precise"]
MACROS = [("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION")]


def extensions():
    """One extension for each .pyx file of the package."""
    sources = sorted(PACKAGE.rglob("*.pyx"))
    header_folders = sorted({header.parent.as_posix() for header in PACKAGE.rglob("*.h")})
    return [
        Extension(
            ".".join(source.with_suffix("").parts),
            [source.as_posix()],
            include_dirs=[".", *header_folders],
            define_macros=MACROS,
        )
        for source in sources
    ]


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
        force=changed,
        nthreads=(os.cpu_count() or 1) if hasattr(os, "fork") else 0,
    )
    if changed:
        folder.mkdir(parents=True, exist_ok=True)
        stamp.write_text(settings)
    return {module.name: module for module in translated}


class BuildKernels(build_ext):
    """Cython is imported and run only here, so metadata and sdist need no Cython."""

    def finalize_options(self):
        super().finalize_options()
        if self.parallel is None:
            self.parallel = os.cpu_count() or 1

    def build_extensions(self):
        flags = MSVC_FLAGS if self.compiler.compiler_type == "msvc" else UNIX_FLAGS
        translated = translate(self.extensions)
        for module in self.extensions:
            module.sources = translated[module.name].sources
            module.depends = [*translated[module.name].depends, "setup.py"]
            module.extra_compile_args = flags
            if "numpy/arrayobject.h" in Path(module.sources[0]).read_text(encoding="utf-8"):
                import numpy as np

                module.include_dirs.append(np.get_include())
        super().build_extensions()


if __name__ == "__main__":  # worker processes of cythonize may import this file
    setup(ext_modules=extensions(), cmdclass={"build_ext": BuildKernels})
