"""Who is who: identities and roles, tokens, principals, certificates."""
