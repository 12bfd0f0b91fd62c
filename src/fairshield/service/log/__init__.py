"""The log of one stream: its entries, and the live stream that a replay of them makes."""
