"""What servers of Chat Completions refuse.

Specification: https://platform.openai.com/docs/api-reference/chat/create. Some of the rules are not OpenAI's own:
servers that have the same API are stricter in places, and what suits all of them is what is asked for here.
"""

from collections.abc import Iterator, Sequence

from tests.support.rules.shape import (
    JsonObject,
    check_tool_name,
    duplicates,
    objects,
    require,
)

_ROLES = {"system", "developer", "user", "assistant", "tool"}
_TEXT = {"text"}
_PARTS = {
    "user": {"text", "image_url", "input_audio", "file"},
    "assistant": {"text", "refusal"},
}


def check_chat(body: JsonObject, *, system_first: bool) -> None:
    """
    Args:
        system_first: only the first message may have the role `system` or `developer`.

    Raises:
        ValueError: the request breaks a rule; the text says which and where.
    """
    _check_tools(body)
    messages = objects(body.get("messages"), "`messages`")
    require(messages, "`messages` is empty")
    for place, message in enumerate(messages):
        _check_message(message, f"messages[{place}]")
        is_system = message["role"] in {"system", "developer"}
        require(
            not (system_first and is_system and place),
            f"messages[{place}]: the system message must be at the beginning",
        )
    _check_pairs(messages)


def _check_tools(body: JsonObject) -> None:
    if "tools" not in body:
        for key in ("tool_choice", "parallel_tool_calls"):
            require(
                key not in body, f"`{key}` is only allowed when `tools` are specified"
            )
        return
    tools = objects(body["tools"], "`tools`")
    require(tools, "`tools` is empty")
    for place, tool in enumerate(tools):
        where = f"tools[{place}]"
        if tool.get("type") == "custom":
            check_tool_name(tool.get("custom", {}).get("name"), where)
            continue
        require(
            tool.get("type") == "function",
            f"{where}: a tool of type {tool.get('type')!r}",
        )
        function: JsonObject = tool.get("function", {})
        check_tool_name(function.get("name"), where)
        parameters = function.get("parameters")
        require(isinstance(parameters, dict), f"{where}: `parameters` are missing")


def _check_message(message: JsonObject, where: str) -> None:
    role = message.get("role")
    require(role in _ROLES, f"{where}: unknown role {role!r}")
    content = message.get("content")
    calls = objects(message.get("tool_calls", []), f"{where}.tool_calls")
    require("tool_calls" not in message or calls, f"{where}: `tool_calls` is empty")
    require(
        role == "assistant" or not calls,
        f"{where}: {role} messages have no `tool_calls`",
    )
    if not isinstance(content, str | None):
        for part in objects(content, f"{where}.content"):
            kind = part.get("type")
            known = _PARTS.get(str(role), _TEXT)
            require(kind in known, f"{where}: {role} messages have no parts {kind!r}")
    if role == "assistant":
        is_empty = not (content or calls or message.get("refusal"))
        require(not is_empty, f"{where}: an assistant message without content or calls")
    else:
        require(content is not None, f"{where}: `content` is missing")
    for call in calls:
        _check_call(call, where)
    if twice := duplicates([call["id"] for call in calls]):
        raise ValueError(f"{where}: several calls have the id {twice[0]!r}")


def _check_call(call: JsonObject, where: str) -> None:
    require(call.get("id"), f"{where}: a call without an id")
    if call.get("type") == "custom":
        check_tool_name(call.get("custom", {}).get("name"), where)
        return
    require(
        call.get("type") == "function", f"{where}: a call of type {call.get('type')!r}"
    )
    function: JsonObject = call.get("function", {})
    check_tool_name(function.get("name"), where)
    is_text = isinstance(function.get("arguments"), str)
    require(is_text, f"{where}: the arguments of a call are no string")


def _check_pairs(messages: Sequence[JsonObject]) -> None:
    """Right behind a message with calls there is one tool message for each of them."""
    open_ids: list[str] = []
    for where, message in _places(messages):
        if message["role"] != "tool":
            require(
                not open_ids,
                f"{where}: no tool messages before it for the calls {open_ids!r}",
            )
            open_ids = [call["id"] for call in message.get("tool_calls", ())]
            continue
        call_id = message.get("tool_call_id")
        require(
            call_id in open_ids,
            f"{where}: no call {call_id!r} in the assistant message right before the tool messages",
        )
        open_ids.remove(str(call_id))
    require(not open_ids, f"calls without a tool message: {open_ids!r}")


def _places(messages: Sequence[JsonObject]) -> Iterator[tuple[str, JsonObject]]:
    for place, message in enumerate(messages):
        yield f"messages[{place}]", message
