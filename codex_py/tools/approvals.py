"""Putting a call to whoever decides: the part that commands, patches and other calls have in common."""

from codex_py.errors import ToolError
from codex_py.protocol.approval import ApprovalRequest, Approver, ReviewDecision


async def approved(
    request: ApprovalRequest, approver: Approver, *, rejected: str
) -> ReviewDecision:
    """Ask, and come back with the kind of yes.

    Args:
        rejected: what the model is told of a no, with what the user said to it.

    Raises:
        ToolError: the answer is no. Where it ends the turn too, that is for the approver to see to.
    """
    review = await approver.review(request)
    if review.decision in {ReviewDecision.DENIED, ReviewDecision.ABORT}:
        said = f": {review.feedback}" if review.feedback else ""
        raise ToolError(f"{rejected}{said}", code="ApprovalDenied")
    return review.decision
