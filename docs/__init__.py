"""The pages of documentation, which are installed with the package: `llcg help TOPIC` shows them."""
