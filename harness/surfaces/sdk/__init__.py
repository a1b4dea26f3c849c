"""The SDK server: a program in any language embeds the agent over JSON-RPC on the standard streams.

Room: the command line comes in.
"""
