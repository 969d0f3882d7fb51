"""A tool server on the standard library alone (`docs/agent.md#the-protocol`): put your model in place of `measure`."""

import base64
import hashlib
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CHECKSUM = hashlib.sha256(b"weights-of-your-model").hexdigest()[:16]
TOOL = {
    "name": "MeasureSize",
    "does": "Tells how many bytes an image has, scaled.",
    "arguments": {
        "image": {"type": "string", "description": "name of the image"},
        "factor": {
            "type": "number",
            "minimum": 0,
            "default": 1.0,
            "description": "the number of bytes is multiplied by it",
        },
    },
    "required": ["image"],
    "returns": {"size": "bytes times the factor"},
    "version": "1",
    "checksum": CHECKSUM,
    "timeout_s": 30,
}


def measure(arguments, images):
    """The values of one call; images: their JPEG or PNG bytes."""
    return {"size": len(images[0]) * arguments["factor"]}


class Expert(BaseHTTPRequestHandler):
    def do_GET(self):
        self.reply({"protocol": 1, "server": "my expert", "workers": 1, "tools": [TOOL]})

    def do_POST(self):
        length = int(self.headers.get("content-length", 0))
        if self.path != "/tools/MeasureSize" or length > 32 << 20:
            self.send_error(404)
            return
        sent = json.loads(self.rfile.read(length))
        result = {"version": TOOL["version"], "checksum": CHECKSUM}
        try:
            result["values"] = measure(sent["arguments"], [base64.b64decode(text) for text in sent["images"]])
        except Exception as error:
            result |= {"failure": "tool_error", "message": str(error)[:500]}
        self.reply(result)

    def reply(self, result):
        data = json.dumps(result).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


server = ThreadingHTTPServer(("127.0.0.1", 0), Expert)
print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
server.serve_forever()
