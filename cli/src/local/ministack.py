"""Runs ministack, tied to the command that started it, with one defect mended.

Its EventBridge calls a function once and ignores failures; AWS hands the event to Lambda's
asynchronous queue, with its retries and its on-failure destination.
"""

import json
import os
import signal
import sys
import threading

import ministack.app
import ministack.services.eventbridge as eventbridge
import ministack.services.lambda_svc as lambda_svc


def follow_parent():
    """Ends this process group when the other end of standard input closes, however that came."""
    sys.stdin.buffer.read()
    os.killpg(0, signal.SIGKILL)


def to_lambda(arn, payload):
    """Calls an EventBridge target as Lambda's asynchronous invocation does."""
    function, config, name = lambda_svc._get_func_record_for_ref(arn)
    if not config:
        raise LookupError(f"EventBridge target {name} does not exist")
    lambda_svc.invoke_async_with_retry(lambda_svc._execution_record_for_config(function, config), json.loads(payload))


threading.Thread(target=follow_parent, daemon=True).start()
eventbridge._dispatch_to_lambda = to_lambda
ministack.app.main()
