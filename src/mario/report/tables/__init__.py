"""Tables: what they show (`entries`, `columns`, `study`), what they are (`table`), and their forms."""
