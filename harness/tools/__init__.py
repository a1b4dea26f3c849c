"""The tools shipped with the harness: files of one workspace, and a shell in it.

Room: assemble takes the tools from shipped; nobody else comes in. No tool knows the loop's state, only its own call.
"""
