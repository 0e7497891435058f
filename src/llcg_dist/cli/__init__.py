"""The command line `llcg`: parses arguments, calls the other rooms, prints. No other room imports it."""
