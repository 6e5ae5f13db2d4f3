"""Microsoft.Compute: VMs, scale sets, availability sets, images, sizes."""
