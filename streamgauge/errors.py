"""What is told in one line: a user's mistake, which says what was found and what to do, and an outage."""


class UserError(Exception):
    """Printed as one line, exit code 2, never with a stack trace."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


class Outage(Exception):
    """An engine or a disk is gone in the middle: nobody's mistake, and worth another try. Exit code 3."""


class Infeasible(UserError):
    """A target that the data cannot reach under this seed; carries the bound (percent)."""

    def __init__(self, message: str, *, minimum_percent: float, maximum_percent: float) -> None:
        super().__init__(message)
        self.minimum_percent = minimum_percent
        self.maximum_percent = maximum_percent
