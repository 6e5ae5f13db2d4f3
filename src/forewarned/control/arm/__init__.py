"""The ARM listener: Azure Resource Manager's calls, for `az` and the Azure SDKs as they are."""
