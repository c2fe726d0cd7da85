"""What can go wrong, as exceptions with fields."""

from __future__ import annotations


class ScenarioError(ValueError):
    """A scenario, a change to it or the name of a policy is refused.

    ``str()`` of it is what the command line shows: the problem, its place and what would be accepted.
    """

    message: str
    """What is wrong, in one sentence."""
    place: str | None
    """The text that it points at, if there is one."""
    help: str | None
    """What would be accepted."""

    def __init__(self, text: str, message: str, place: str | None, help: str | None) -> None:
        super().__init__(text)
        self.message = message
        self.place = place
        self.help = help

    def __reduce__(self) -> tuple[type[ScenarioError], tuple[str, str, str | None, str | None]]:
        return ScenarioError, (str(self), self.message, self.place, self.help)


class SweepError(RuntimeError):
    """A sweep broke off: a worker was lost for good, or a result could not be kept. What came until then is kept."""

    done: int
    """Conditions that this call has kept."""
    total: int
    """Conditions that it was to run."""

    def __init__(self, text: str, done: int, total: int) -> None:
        super().__init__(text)
        self.done = done
        self.total = total

    def __reduce__(self) -> tuple[type[SweepError], tuple[str, int, int]]:
        return SweepError, (str(self), self.done, self.total)


class RunError(RuntimeError):
    """A run broke: a policy raised an exception, or something did not hold that must hold in every run."""

    problem: str
    """What went wrong; of a policy in Python its traceback and the time of the run."""
    command: str
    """The command that repeats the run, where the command knows all its policies."""

    def __init__(self, text: str, problem: str, command: str) -> None:
        super().__init__(text)
        self.problem = problem
        self.command = command

    def __reduce__(self) -> tuple[type[RunError], tuple[str, str, str]]:
        return RunError, (str(self), self.problem, self.command)
