"""What goes in: graphs, where they come from, and how their links are split."""
