"""The hard subset: which questions many models fail, and a choice among them that no constant answer profits from."""
