"""Images: the read-only root file systems that machines start from, built from recipes and named by the digest of their content."""
