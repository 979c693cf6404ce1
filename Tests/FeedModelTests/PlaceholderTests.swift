import Testing
@testable import FeedModel
