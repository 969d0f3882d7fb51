"""An agent whose core model plans, calls geometry tools and answers; no training (`docs/agent.md`).

An agent is a model like any other (`backend.AgentBackend`), named `agent:react+openai:gpt-4o?tools=classical`.
"""
