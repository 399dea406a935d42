"""The hooks of hatchling, the build tool of the wheel: they add the program miplc and the licence.

`pip install ./python` in a clone builds the program with the installed Go. A release builds it for other
systems, and describes it with environment variables:

MIPLC_WHEEL_PROGRAM   path of the program
MIPLC_WHEEL_PLATFORM  tag of the platform, e.g. manylinux_2_28_x86_64
"""

import os
import re
import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface


class Version(MetadataHookInterface):
    """Reads the version of the program."""

    def update(self, metadata):
        source = (Path(self.root).parent / "runs" / "buildinfo.go").read_text(encoding="utf-8")
        metadata["version"] = re.search(r'^const Version = "(.+)"$', source, re.M).group(1)


class Program(BuildHookInterface):
    """Adds the program as a script, which pip installs into the folder of the environment's programs."""

    def initialize(self, version, build_data):
        platform = os.environ.get("MIPLC_WHEEL_PLATFORM") or sysconfig.get_platform()
        name = "miplc.exe" if platform.startswith("win") else "miplc"
        program = os.environ.get("MIPLC_WHEEL_PROGRAM") or self.build(name)
        build_data["tag"] = "py3-none-" + platform.replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
        build_data["shared_scripts"][program] = name
        licence = f"{self.build_config.builder.artifact_project_id}.dist-info/licenses/LICENSE"
        build_data["force_include"][str(Path(self.root).parent / "LICENSE")] = licence

    def build(self, name):
        if shutil.which("go") is None:
            raise RuntimeError("the wheel contains the program miplc, which Go 1.26 builds: install it from go.dev/dl")
        self.folder = tempfile.TemporaryDirectory()
        program = Path(self.folder.name) / name
        command = ["go", "build", "-ldflags=-s -w", "-o", program, "./cmd/miplc"]
        subprocess.run(command, cwd=Path(self.root).parent, check=True)
        return str(program)
