"""States the platform of the programs in the wheel: to hatchling, a wheel without Python modules is for any."""

import os

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Platform(BuildHookInterface):
    def initialize(self, version, build_data):
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{os.environ['SPOTSWEEP_PLATFORM']}"
