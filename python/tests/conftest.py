"""What several tests need."""

import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable
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


def interrupt(work: Callable[[], object]) -> None:
    """Sends Ctrl-C into work that would take hours."""
    # A shell starts what runs in the background with the signal ignored, and Python leaves that as it is.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            work()
    finally:
        signal.signal(signal.SIGINT, before)
