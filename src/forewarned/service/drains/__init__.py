"""Host drains: every VM leaves a host, each with notice, and no other is moved there."""
