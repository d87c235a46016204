"""One training by several processes: who they are, what each of them has, and what they tell each other."""
