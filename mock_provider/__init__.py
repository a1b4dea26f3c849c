"""A deterministic model server that knows the providers' wire and nothing of the harness."""
