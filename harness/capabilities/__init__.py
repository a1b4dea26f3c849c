"""What an agent can do beyond its own turn and tools: have children, and keep its history short."""
