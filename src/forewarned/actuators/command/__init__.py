"""The driver that runs programs of the operator's."""
