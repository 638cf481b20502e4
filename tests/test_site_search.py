"""The search of the site finds the page that answers a question first: the code of Sphinx itself, run by Node."""

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parent.parent
DOCS: Final = ROOT / "docs"
_BUILD_S: Final = 240
QUESTIONS: Final = {
    "how-to/add-mcp-server": (
        "add mcp server",
        "How do I add an MCP server?",
        "configure an mcp server",
        "connect mcp tools",
        "remove mcp server",
    ),
    "how-to/allow-host": (
        "allow network for one host",
        "How do I allow network access for one host?",
        "allow internet access",
        "pip install network access",
        "whitelist a domain",
        "enable network",
        "npm install fails network",
        "curl blocked",
    ),
    "how-to/api-key": (
        "api key",
        "where is the api key stored",
        "set OPENAI_API_KEY",
        "OPENAI_API_KEY",
        "log out and remove the api key",
    ),
    "how-to/approvals": (
        "skip approvals",
        "stop asking for approval",
        "yolo mode",
        "dangerously skip permissions",
        "auto approve commands",
    ),
    "how-to/batch": (
        "run many tasks",
        "batch of prompts",
        "run hundreds of prompts",
        "bulk tasks in parallel",
    ),
    "how-to/best-of": (
        "best of n",
        "several attempts",
        "try multiple attempts and keep the best",
        "compare models",
    ),
    "how-to/change-model": (
        "change model",
        "How do I change the model?",
        "switch model",
        "use claude",
        "use another model",
        "set the default model",
    ),
    "how-to/container": (
        "docker",
        "run in a docker container",
        "sandbox in docker",
        "podman",
        "devcontainer",
    ),
    "how-to/context-full": (
        "context window full",
        "conversation too long",
        "compact the history",
        "context length exceeded",
    ),
    "how-to/cost-limit": (
        "cost limit",
        "How do I set a cost limit?",
        "limit spending",
        "maximum budget in dollars",
        "limit the number of tokens",
        "budget",
        "stop after 10 minutes",
    ),
    "how-to/editor": (
        "vs code",
        "use in vscode",
        "zed",
        "neovim",
        "jetbrains",
        "ide integration",
        "use it in an editor",
    ),
    "how-to/exit-codes": (
        "exit codes in scripts",
        "exit code",
        "check for failure in a shell script",
        "exit status",
    ),
    "how-to/fallback": (
        "rate limit",
        "fallback model",
        "quota exceeded",
        "provider is down",
        "retry",
    ),
    "how-to/github-action": (
        "github action",
        "use in github actions",
        "github workflow",
        "workflow yaml",
    ),
    "how-to/images": (
        "attach an image",
        "screenshot",
        "send an image",
        "paste a picture",
    ),
    "how-to/instructions": (
        "custom instructions",
        "AGENTS.md",
        "CLAUDE.md",
        "project instructions",
    ),
    "how-to/json-events": (
        "json output",
        "json events",
        "machine readable output",
        "parse the events of a run",
    ),
    "how-to/library": (
        "use as a library",
        "How do I use it as a library?",
        "python library",
        "python api",
        "use from python",
    ),
    "how-to/local-model": (
        "use local model",
        "How do I use a local model?",
        "ollama",
        "lm studio",
        "run offline",
        "llama.cpp",
        "self hosted llm",
        "run without internet",
    ),
    "how-to/plan": (
        "plan mode",
        "plan without changing anything",
        "dry run",
        "plan first",
    ),
    "how-to/profiles": (
        "profiles",
        "use several profiles",
        "switch between settings",
        "config profile",
    ),
    "how-to/protect-files": (
        "block files",
        "keep .env from it",
        "protect secrets",
        "prevent reading a file",
        "ignore files",
    ),
    "how-to/proxy": (
        "proxy",
        "corporate proxy",
        "HTTPS_PROXY",
        "self-signed certificate",
        "custom ca certificate",
        "tls",
        "SSL certificate verify failed",
    ),
    "how-to/reasoning-effort": (
        "reasoning effort",
        "set reasoning effort",
        "thinking level",
        "xhigh",
        "think harder",
        "model_reasoning_effort",
    ),
    "how-to/resume": (
        "resume last session",
        "How do I resume the last session?",
        "continue the last conversation",
        "resume",
        "go back to a previous session",
    ),
    "how-to/review": (
        "review a change",
        "code review",
        "review a pull request",
        "review uncommitted changes",
    ),
    "how-to/run-in-ci": (
        "run in ci",
        "How do I run it in CI?",
        "gitlab ci",
        "jenkins",
        "headless",
        "continuous integration",
        "non-interactive",
    ),
    "how-to/share-session": (
        "share a session",
        "export a session",
        "export conversation as markdown",
        "move session to another machine",
    ),
    "how-to/sign-in": (
        "sign in with chatgpt",
        "chatgpt plan",
        "login without a browser",
        "login",
        "device code login",
    ),
    "how-to/slash-command": (
        "custom slash command",
        "add a slash command",
        "custom prompts",
        "create my own slash command",
    ),
    "how-to/structured-output": (
        "structured output",
        "json schema",
        "typed answer as json",
        "output schema",
    ),
    "how-to/turn-off": (
        "turn off a feature",
        "disable web search",
        "disable telemetry",
        "disable hooks",
        "switch a feature off",
    ),
    "how-to/undo": (
        "undo",
        "How do I undo?",
        "undo changes",
        "revert what the agent changed",
        "roll back the last turn",
        "restore files",
    ),
    "how-to/verify": (
        "work until the tests pass",
        "run tests until they pass",
        "verify with tests",
        "test gate",
    ),
    "how-to/what-it-sends": (
        "what does it send",
        "see the request",
        "system prompt sent to the model",
        "privacy",
        "debug log",
    ),
    "how-to/windows": ("windows", "wsl", "use on windows", "powershell"),
    "how-to/worktree": (
        "worktree",
        "git worktree",
        "work in a separate worktree",
        "several agents in parallel",
        "run multiple agents",
    ),
    "how-to/write-hook": (
        "write a hook",
        "How do I write a hook?",
        "hook example",
        "block git push",
        "PreToolUse",
    ),
    "updating": (
        "update",
        "How do I update?",
        "upgrade to the newest version",
        "uninstall",
        "remove it from disk",
    ),
    # What somebody looks for by its own name is found by it.
    "app-server": ("app server",),
    "compatibility": ("compatibility",),
    "error-codes": ("error codes",),
    "limits": ("limits", "built-in limits", "timeout limits"),
    "slash-commands": (
        "slash commands",
        "all slash commands",
        "built-in slash commands",
    ),
    "tutorial": ("tutorial", "fix a failing test"),
}


def test_each_how_to_has_several_wordings_of_its_question() -> None:
    pages = {f"how-to/{page.stem}" for page in (DOCS / "how-to").glob("*.md")} - {
        "how-to/index"
    }
    assert {page for page in QUESTIONS if page.startswith("how-to/")} == pages
    assert len(pages) >= 30
    assert [page for page in pages if len(QUESTIONS[page]) < 4] == []


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
@pytest.mark.skipif(
    importlib.util.find_spec("sphinx") is None, reason="needs the packages of `docs`"
)
@pytest.mark.timeout(_BUILD_S * 2)
def test_the_page_that_answers_a_question_is_found_first(tmp_path: Path) -> None:
    site = tmp_path / "site"
    build = [sys.executable, "-m", "sphinx", "-q", "-d", str(tmp_path / "doctrees")]
    subprocess.run([*build, str(DOCS), str(site)], check=True, timeout=_BUILD_S)
    asked = [(page, words) for page in QUESTIONS for words in QUESTIONS[page]]
    queries = tmp_path / "queries.json"
    queries.write_text(json.dumps([words for _, words in asked]), encoding="utf-8")
    node = ["node", str(ROOT / "tests/support/site_search.js"), str(site), str(queries)]
    done = subprocess.run(node, capture_output=True, check=True, timeout=60)
    found: list[list[str]] = json.loads(done.stdout)
    wrong = {
        words: pages[:3]
        for (page, words), pages in zip(asked, found, strict=True)
        if pages[:1] != [page]
    }
    assert wrong == {}
