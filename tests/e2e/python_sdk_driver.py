"""Runs with the Python SDK of Codex, not with ours: a whole session, whose results are printed as JSON.

    python python_sdk_driver.py PROGRAM FOLDER

It knows nothing of the program that the SDK starts.
"""

# pyright: basic, reportMissingImports=false
import json
import sys

from openai_codex import ApprovalMode, Codex, CodexConfig, Sandbox

PROGRAM, FOLDER = sys.argv[1:]
CONFIG = CodexConfig(codex_bin=PROGRAM, cwd=FOLDER)
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}},
    "required": ["a"],
    "additionalProperties": False,
}


def kind(item):
    item = getattr(item, "root", item)
    status = getattr(item, "status", None)
    return [item.type, getattr(status, "value", None)]


def shown(event):
    """What a notification says, without ids and times."""
    payload = event.payload
    if type(payload).__name__ == "UnknownNotification":
        return [event.method, "not understood by the SDK", payload.params]
    match event.method:
        case "item/started" | "item/completed":
            return [event.method, *kind(payload.item)]
        case "turn/completed":
            turn = payload.turn
            return [event.method, turn.status.value, turn.error and turn.error.message]
        case "item/agentMessage/delta" | "item/reasoning/summaryTextDelta":
            return [event.method, payload.delta]
        case "turn/plan/updated":
            return [
                event.method,
                payload.explanation,
                [[s.step, s.status.value] for s in payload.plan],
            ]
        case "turn/diff/updated":
            return [
                event.method,
                [line for line in payload.diff.splitlines() if line[:1] in "+-"],
            ]
        case "thread/tokenUsage/updated":
            return [event.method, payload.token_usage.model_dump(mode="json")]
        case _:
            return [event.method]


def details(items):
    """What the items of a turn say."""
    said = []
    for item in (getattr(each, "root", each) for each in items):
        match item.type:
            case "commandExecution":
                said.append([item.command, item.exit_code, item.aggregated_output])
            case "fileChange":
                said.append([[c.path, c.kind.root.type, c.diff] for c in item.changes])
            case "agentMessage":
                said.append(item.text)
            case "reasoning":
                said.append(item.summary)
            case "userMessage":
                said.append([part.root.text for part in item.content])
    return said


def turns(thread):
    read = thread.read(include_turns=True).thread
    return [
        [turn.status.value, [kind(i) for i in turn.items], details(turn.items)]
        for turn in read.turns
    ]


def first_process():
    said = {}
    with Codex(CONFIG) as codex:
        said["version"] = codex.metadata.serverInfo.version.split()[0]
        said["models"] = "gpt-5.5" in [model.model for model in codex.models().data]
        said["account"] = codex.account().account
        codex.login_api_key("sk-test-0123456789abcdef")
        codex.logout()
        thread = codex.thread_start(
            approval_mode=ApprovalMode.deny_all,
            sandbox=Sandbox.full_access,
            model="gpt-5.5",
        )
        said["first"] = [shown(event) for event in thread.turn("do it").stream()]
        second = thread.run("again", output_schema=SCHEMA)
        said["second"] = [
            second.final_response,
            second.status.value,
            kind(second.items[0]),
        ]
        handle = thread.turn("take long")
        interrupted = []
        for event in handle.stream():
            interrupted.append(shown(event))
            if event.method == "item/agentMessage/delta":
                handle.interrupt()
        said["interrupted"] = interrupted[-1]
        try:
            thread.run("fail")
        except RuntimeError as error:
            said["failed"] = str(error)
        thread.set_name("a name")
        listed = codex.thread_list(limit=5).data
        said["list"] = [
            [each.preview, each.name, each.id == thread.id] for each in listed
        ]
        said["turns"] = turns(thread)
        fork = codex.thread_fork(thread.id)
        said["fork"] = [fork.id != thread.id, fork.run("in the fork").final_response]
        codex.thread_archive(fork.id)
        said["archived"] = [
            each.id == fork.id for each in codex.thread_list(archived=True).data
        ]
        said["left"] = [each.id == thread.id for each in codex.thread_list().data]
        codex.thread_unarchive(fork.id)
        said["both"] = len(codex.thread_list().data)
    return said, thread.id


def second_process(thread_id):
    with Codex(CONFIG) as codex:
        thread = codex.thread_resume(thread_id, sandbox=Sandbox.full_access)
        answer = thread.run("go on").final_response
        thread.compact()
        return [answer, thread.read().thread.name]


said, thread_id = first_process()
said["resumed"] = second_process(thread_id)
sys.stdout.write(json.dumps(said, default=str))
