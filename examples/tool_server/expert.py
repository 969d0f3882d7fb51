"""A server of one tool (`docs/agent.md#servers`, extra `mcp`): put your model in place of `MeasureSize`."""

import base64
import sys

from mcp.server import MCPServer

server = MCPServer("my expert")


@server.tool()
def MeasureSize(image: str, factor: float = 1.0) -> dict[str, float]:
    """Tells how many bytes an image has, scaled."""
    return {"size": len(base64.b64decode(image)) * factor}


if __name__ == "__main__":
    server.run("streamable-http", port=int(sys.argv[1]), max_request_body_size=32 << 20)
