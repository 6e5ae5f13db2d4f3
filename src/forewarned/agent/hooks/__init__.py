"""The hooks that the agent runs before and after an interruption."""
