"""Recorded calls of functions, jobs and issued credentials."""
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "models"))
import asked  # noqa: E402
import record  # noqa: E402
import roles  # noqa: E402
import wanted  # noqa: E402

# How services say that IAM denies a call. A HEAD has no body to say it in.
DENIED = ("AccessDenied", "UnauthorizedOperation", "AuthorizationError", "is not authorized to perform")


@dataclass
class Call:
    """A call, what IAM has to allow for it, and whether its service denied it."""
    exchange: record.Exchange
    role: str
    wants: list
    was_denied: bool

    @property
    def templates(self):
        """The templates that may have been deployed when the call was made."""
        return self.exchange.templates or (roles.CONTROL_PLANE,)


def of(exchanges):
    """The calls that roles made, each once."""
    seen = set()
    for exchange in exchanges:
        if exchange.session is None or exchange.answer["status"] is None or is_gone(exchange):
            continue
        operation, parameters, _ = asked.parse(exchange)
        role = wanted.logical(exchange.session.role)
        call = Call(exchange, role, wanted.of(operation, parameters, exchange.request), was_denied(exchange))
        key = repr((role, sorted(exchange.session.tags.items()), call.wants, call.was_denied, hash(exchange.templates)))
        if key not in seen:
            seen.add(key)
            yield call


def is_gone(exchange):
    """Whether EC2 has no such resource: then there are no tags to decide by, and no document says whether EC2 looks
    for the resource or for the permission first."""
    return exchange.service == "ec2" and ".NotFound</Code>" in exchange.answer.get("body", "")


def was_denied(exchange):
    answer = exchange.answer
    text = answer.get("body", "") + answer["headers"].get("x-amzn-errortype", "")
    if exchange.request["method"] == "HEAD":
        return answer["status"] == 403
    return answer["status"] in (400, 403) and any(code in text for code in DENIED)
