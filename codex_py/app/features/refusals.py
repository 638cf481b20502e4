"""Learns from a server's errors what it refuses, and leaves that out of further requests."""

from dataclasses import replace

from codex_py.app.features.argument_refusals import broken_calls, refuses_arguments
from codex_py.app.features.field_refusals import remedy
from codex_py.app.features.image_refusals import refused_images, takes_no_images
from codex_py.app.features.tool_refusals import ToolRefusals
from codex_py.errors import ModelError
from codex_py.model.provider_data import without_maker
from codex_py.model.providers import Provider
from codex_py.protocol.messages import EncodedItem
from codex_py.protocol.stream import Prompt


class Refusals:
    """What the server of one provider is known to refuse."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        """The provider, with a profile that leaves out what its server refuses."""
        self.takes_images = True
        """False once all images were refused, whatever the catalogue says."""
        self._takes_any_arguments = True
        """False once the server refused arguments that are no JSON object."""
        self._replaced: dict[EncodedItem, EncodedItem | None] = {}
        """The items that are refused as they are, with the items sent in their place. None: nothing
        is sent."""
        self._tools = ToolRefusals()

    def learn(
        self,
        error: ModelError,
        prompt: Prompt,
        *,
        may_write_calls: bool,
    ) -> str | None:
        """Change the next requests so that the server accepts them.

        Returns the change, as a clause for the user; None if the error refuses nothing known.

        Args:
            prompt: the failed request, unchanged.
            may_write_calls: calls may be written as text instead.
        """
        if error.quotes_request:
            return None
        if _is_about_reasoning(error):
            return self._leave_out_reasoning(prompt)
        # The remedy for a named tool comes first. The last one is a guess: the error names nothing.
        return (
            self._tools.change_named(error, prompt.tools)
            or self._leave_out_images(error, prompt)
            or self._leave_out_fields(error, may_write_calls=may_write_calls)
            or self._mend_arguments(error, prompt)
            or self._tools.change_all(error, prompt.tools)
        )

    def adapted(self, prompt: Prompt) -> Prompt:
        """A request without what the server refuses."""
        if not self._takes_any_arguments:
            self._replaced |= broken_calls(prompt.input)
        if self._replaced:
            items = [self._replaced.get(item, item) for item in prompt.input]
            prompt = replace(prompt, input=[item for item in items if item is not None])
        if not self.takes_images:
            prompt = replace(prompt, abilities=replace(prompt.abilities, images=False))
        if self._tools.changes:
            prompt = replace(prompt, tools=self._tools.offered(prompt.tools))
        return prompt

    def _leave_out_reasoning(self, prompt: Prompt) -> str | None:
        """Leave out the marks that items of another server, or of another account, have."""
        new = {
            item: without_maker(item)
            for item in prompt.input
            if b'"id"' in item or b'"encrypted_content"' in item
        }
        if new.keys() <= self._replaced.keys():
            return None
        self._replaced |= new
        return "refuses its earlier reasoning, which is left out"

    def _leave_out_images(self, error: ModelError, prompt: Prompt) -> str | None:
        if not self.takes_images:
            return None
        if takes_no_images(error) and prompt.has_images:
            self.takes_images = False
            return "takes no images: a note is in the place of each from now on"
        new = refused_images(error, prompt.input, self._replaced)
        if not new:
            return None
        self._replaced |= new
        count = "an image" if len(new) == 1 else "images"
        return f"refuses {count} of the conversation; a note is sent instead"

    def _leave_out_fields(
        self, error: ModelError, *, may_write_calls: bool
    ) -> str | None:
        found = remedy(error, self.provider.profile, may_write_calls=may_write_calls)
        if found is None:
            return None
        profile, change = found
        self.provider = replace(self.provider, profile=profile)
        return change

    def _mend_arguments(self, error: ModelError, prompt: Prompt) -> str | None:
        """Send broken arguments as objects."""
        # The other wires send no broken arguments.
        if self.provider.wire_api != "responses" or not self._takes_any_arguments:
            return None
        if not (refuses_arguments(error) and broken_calls(prompt.input)):
            return None
        self._takes_any_arguments = False
        return "refuses the arguments of a call that are no JSON object: they are sent within one from now on"


def _is_about_reasoning(error: ModelError) -> bool:
    return (
        error.code == "invalid_encrypted_content"
        or "encrypted content" in str(error).lower()
    )
