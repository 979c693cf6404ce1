print("feedclient")
