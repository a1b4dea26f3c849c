"""The mock provider beside a bare responder and other mock servers, in one run."""
