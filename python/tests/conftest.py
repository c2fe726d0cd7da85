"""What several tests need."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def command() -> Any:
    """The `anabranch` command of this source: ANABRANCH, or the one of cargo's target directory."""
    program = Path(os.environ.get("ANABRANCH", ROOT / "target" / "release" / "anabranch"))
    assert program.exists(), f"{program} is missing: cargo build --release, or ANABRANCH=PROGRAM"

    def run(*arguments: str) -> Any:
        done = subprocess.run([program, *arguments, "--json"], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    return run
