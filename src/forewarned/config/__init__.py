"""Reading configuration: values, durations, and strict TOML with the line of every mistake."""
