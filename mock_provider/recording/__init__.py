"""Recording a provider: passed on, cleaned, written as a cassette and as a script."""
