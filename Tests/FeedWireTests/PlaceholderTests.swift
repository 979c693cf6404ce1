import Testing
@testable import FeedWire
