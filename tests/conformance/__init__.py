"""Programs that compare irlang with recorded results of other systems, on any folder of them."""
