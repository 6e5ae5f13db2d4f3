"""Commands for the actuators of this machine."""
