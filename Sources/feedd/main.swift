print("feedd")
