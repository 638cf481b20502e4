"""Functions as tools. One of them is asked for on the terminal before each call."""

from codex_py import Agent, ApprovalRequest, Review, ReviewDecision, tool

STOCK = {"bolts": 7, "nuts": 0}


def stock(part: str) -> int:
    """How many of a part there are."""
    return STOCK[part]


@tool(needs_approval=True)
def order(part: str, count: int) -> str:
    """Order more of a part."""
    STOCK[part] += count
    return f"{count} {part} are on their way"


def approve(request: ApprovalRequest) -> bool | Review:
    answer = input(f"{request.summary}: y, n, or what to do instead? ")
    if answer in {"y", "n"}:
        return answer == "y"
    return Review(ReviewDecision.DENIED, answer)


with Agent(tools=[stock, order], approve=approve) as agent:
    print(agent.run_sync("Order what we have run out of").text)
