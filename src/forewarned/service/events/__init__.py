"""Events as operators and VMs cause, approve, preview and explain them."""
