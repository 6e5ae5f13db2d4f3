"""VMs and sets as they are declared: typed values, with the whole document beside them."""
