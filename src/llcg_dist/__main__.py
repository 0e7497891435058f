"""`python -m llcg_dist COMMAND …`, the same as `llcg COMMAND …`."""

from llcg_dist.cli.main import main

if __name__ == "__main__":
    main()
