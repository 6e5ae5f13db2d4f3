"""What every part reads configuration with: values, durations, and TOML with line numbers."""
