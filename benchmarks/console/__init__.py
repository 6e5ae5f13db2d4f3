"""The console before a fleet of 10,000 VMs: how long pages take, and what a live window costs."""
