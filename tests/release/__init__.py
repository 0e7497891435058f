"""What `make release-check` does: builds, checks, installs and tries the package as others get it."""
