"""The ACP server: editors and automation drive the agent with the Agent Client Protocol on the standard streams.

Room: the command line comes in.
"""
